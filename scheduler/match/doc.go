// Package match says which deployment targets go to which cluster types, and
// by which policies. Everything here is a function of its arguments, and
// everything that leaves it is sorted.
package match

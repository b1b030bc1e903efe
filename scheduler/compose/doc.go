// Package compose makes the configuration of an assignment: the values of every
// ConfigMap whose labels apply, merged in order of name, with a record of who
// gave each of them and who was overridden, and checked against every schema
// that applies.
//
// Everything here is a function of its arguments. A Composer and a Checker
// remember what they did, so that many assignments cost little more than the
// few combinations of ConfigMaps that they differ by; each belongs to one
// goroutine.
package compose

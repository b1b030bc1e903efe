// Package flux reads Flux objects: one pure function per kind makes facts of an
// object and of the source that it reads from, without a clock and without the
// API server. Its status rules are the tables of the design; testdata/ROWS.md
// says which object proves which row.
package flux

// Package argocd reads Argo CD Applications: one pure function makes facts of
// the object, without a clock and without the API server. It reads the few
// fields it needs and links none of Argo CD's own types. Its status rules are
// the table of the design; testdata/ROWS.md says which object proves which row.
package argocd

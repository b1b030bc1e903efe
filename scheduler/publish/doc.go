// Package publish turns what a GitOps repository should hold into a commit. It
// builds Git's objects directly, compares them with what a branch has, and
// touches only the folders that are the scheduler's: it makes no checkout, and
// no commit where nothing changed.
package publish

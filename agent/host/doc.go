// Package host is the agent on a machine without Kubernetes: it follows folders
// of Git repositories and runs an apply command when one changed. What it knows
// of each it reports as a reconciler of the kind HostRunner, and keeps on disk:
// a restart applies nothing that is applied, and runs again what was cut off.
//
// A commit that leaves the folder's tree as it is needs no apply: what is
// applied is then that commit, and success is reported at it.
package host

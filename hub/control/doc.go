// Package control runs the scheduler for the hub: it follows the control planes
// that hub.yaml names, their further config repositories and the sources of
// their registrations, plans each environment, publishes what changed to its
// GitOps repository, and keeps what was decided.
//
// Every environment has a goroutine of its own that looks at where things are
// now and not at what happened: a round may be run twice, begins anew after a
// restart, and makes no commit when there is nothing to change. What cannot be
// read keeps what is known of it, and stops only what hangs on it.
package control

// Package scheduler plans what a GitOps repository should hold: a control plane
// in, the files of every assignment out.
//
// It joins the steps that its folders hold. controlplane reads documents, match
// says which deployment targets go to which cluster types, compose gives each
// assignment its configuration, render turns templates into files, and publish
// writes them. Nothing here knows a reconciler: what is written is what the
// templates say.
//
// A Planner keeps what it made, and makes again only what a change touches: see
// Planner.Plan. A plan is a function of its model all the same: it is equal,
// byte by byte, to the plan that is made of the same model from cold, on any
// machine.
package scheduler

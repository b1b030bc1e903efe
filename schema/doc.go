// Package schema is Landfall's vocabulary: reports, reconcilers, revisions,
// endpoints, verdicts, policies and error codes, with the pure rules that
// belong to the words themselves (canonical forms, validation, the state
// digest). It depends on nothing but the standard library, so that agent,
// hub, command line and dashboards can all speak it.
package schema

package schema

import "time"

// Question asks whether a commit has landed at an endpoint and may go on.
type Question struct {
	// Repo, Ref, Path and Commit are the question as it was written.
	Repo, Ref, Path, Commit string
	// Endpoint is the canonical form of Repo, Ref and Path.
	Endpoint Endpoint
	// ID is the full commit id in lower case.
	ID string

	Policy Policy
	// Mandatory is the parsed form of Policy.Mandatory; nil where that is empty.
	Mandatory func(labels map[string]string) bool
}

// Final reports whether the state answers the question; waiting does not.
// It may still change: every question is judged anew.
func (s State) Final() bool { return s == Passed || s == Failed }

// SameAs reports whether two verdicts say the same, times and the wording of
// reasons aside: whoever waits for a change is told when it is false.
func (v *Verdict) SameAs(o *Verdict) bool {
	if v.State != o.State || v.Reason != o.Reason || v.Counts != o.Counts || len(v.Unfinished) != len(o.Unfinished) ||
		len(v.Currently) != len(o.Currently) || len(v.ByClusterType) != len(o.ByClusterType) {
		return false
	}
	for k, c := range v.ByClusterType {
		if o.ByClusterType[k] != c {
			return false
		}
	}
	for i, u := range v.Unfinished {
		w := o.Unfinished[i]
		if u.Cluster != w.Cluster || u.Reconciler != w.Reconciler || u.Verdict != w.Verdict || u.Revision != w.Revision {
			return false
		}
	}
	for i, c := range v.Currently {
		if w := o.Currently[i]; c.Cluster != w.Cluster || c.Reconciler != w.Reconciler || c.Status != w.Status {
			return false
		}
	}
	return true
}

// ClusterFilter narrows GET /clusters; empty members match all. Without a
// Status, decommissioned clusters are left out.
type ClusterFilter struct {
	Environment string
	ClusterType string
	Status      ClusterStatus
}

// StateFilter narrows GET /state, /state/clusters and what is built on them;
// empty members match all.
type StateFilter struct {
	Environment      string
	Workspace        string
	Application      string
	Workload         string
	DeploymentTarget string
	ClusterType      string
	Cluster          string
	Status           Status
}

// Span is a part of time: from From on, before To. Zero is open.
type Span struct{ From, To time.Time }

// Contains reports whether t is in the span.
func (s Span) Contains(t time.Time) bool {
	return (s.From.IsZero() || !t.Before(s.From)) && (s.To.IsZero() || t.Before(s.To))
}

// HistoryFilter narrows GET /history, by when the hub received a row.
type HistoryFilter struct {
	StateFilter
	Span
}

// DiscrepancyFilter narrows GET /discrepancies. All asks for targets that do not
// differ, too.
type DiscrepancyFilter struct {
	StateFilter
	All bool
}

// DriftFilter narrows GET /drift, by since when a reconciler is behind, or has
// been as it is where it was changed live. All asks for reconcilers that run
// what is desired, too.
type DriftFilter struct {
	StateFilter
	Span
	All bool
}

// DORAFilter narrows GET /dora; of the StateFilter only the names count. An open
// To is now, an open From 30 days before To.
type DORAFilter struct {
	StateFilter
	Span
}

// Page is a part of a list: at most Limit rows after the row whose key is
// After; an empty After begins at the start.
type Page struct {
	After []string
	Limit int
}

// MaxPage is the most rows that one page holds.
const MaxPage = 1000

// Refusal says that a well-formed request cannot be done, and why. Its code
// decides the HTTP status.
type Refusal struct {
	Code Code
	// Detail names what stands in the way and the remedy.
	Detail string
	// Err is the cause, or nil; it is for logs, not for answers.
	Err error
}

// Error returns the refusal with its cause.
func (e *Refusal) Error() string {
	if e.Err != nil {
		return string(e.Code) + ": " + e.Detail + ": " + e.Err.Error()
	}
	return string(e.Code) + ": " + e.Detail
}

// Unwrap returns the cause.
func (e *Refusal) Unwrap() error { return e.Err }

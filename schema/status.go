package schema

import "slices"

// Status is what a reconciler says of itself at one moment.
type Status string

// The statuses a reconciler can have. Unknown means that a reader met a state
// it does not know, or that the object's kind can no longer be listed.
const (
	StatusSuccess    Status = "success"
	StatusFailure    Status = "failure"
	StatusInProgress Status = "in_progress"
	StatusPending    Status = "pending"
	StatusSuspended  Status = "suspended"
	StatusUnknown    Status = "unknown"
)

// Statuses lists every status, in the order in which documents show them.
func Statuses() []Status {
	return []Status{StatusSuccess, StatusFailure, StatusInProgress, StatusPending, StatusSuspended, StatusUnknown}
}

// Valid reports whether s is one of the statuses.
func (s Status) Valid() bool { return slices.Contains(Statuses(), s) }

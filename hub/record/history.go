package record

import (
	"cmp"
	"errors"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// ErrTooMany says that an answer would be larger than the bound of its query.
var ErrTooMany = errors.New("more than the query's bound")

// HistoryKey names a row of the history.
type HistoryKey struct {
	ReceivedAt time.Time
	Endpoint   schema.Endpoint
	Cluster    string
	Ref        schema.ObjectRef
	// Epoch and Sequence are of the message that brought it.
	Epoch, Sequence uint64
}

// Compare orders the keys as lists show them: the newest first, then by name.
func (k *HistoryKey) Compare(o *HistoryKey) int {
	return cmp.Or(o.ReceivedAt.Compare(k.ReceivedAt),
		cmp.Compare(k.Endpoint.Repo, o.Endpoint.Repo), cmp.Compare(k.Endpoint.Ref, o.Endpoint.Ref), cmp.Compare(k.Endpoint.Path, o.Endpoint.Path),
		cmp.Compare(k.Cluster, o.Cluster), k.Ref.Compare(o.Ref), cmp.Compare(k.Epoch, o.Epoch), cmp.Compare(k.Sequence, o.Sequence))
}

// HistoryQuery narrows the rows of History. Nil lists match all, empty ones
// none.
type HistoryQuery struct {
	// Under are folders as in StateQuery.
	Under []schema.Endpoint
	// Destinations are deployed to. Clusters report the rows; the store fills them
	// in where that narrows its search.
	Destinations, Clusters []string
	// Either says that a row of Under or of Destinations is wanted, though it is
	// not of both.
	Either bool
	Status schema.Status
	// From and To bound the time of arrival: from From on, before To. Zero is open.
	From, To time.Time
	// After is the row before the first, or nil.
	After *HistoryKey
	Limit int
}

// HistoryRow is a reported change of a reconciler. Its endpoint is that of its
// main source.
type HistoryRow struct {
	HistoryKey
	Change            schema.Change
	ObservedAt        time.Time
	Destination       string
	URL, GitRef, Path string
	Commit, Attempted string
	Status            schema.Status
	Reason, Message   string
	Drifted           bool
}

// Reconciler names a reconciler by who reports it.
type Reconciler struct {
	Cluster string
	Ref     schema.ObjectRef
}

// Success is the first of the messages in a row in which a reconciler said that
// it runs a commit of an endpoint.
type Success struct {
	Running
	Epoch, Sequence uint64
}

// Before reports whether it was said before another message of its reconciler.
func (s *Success) Before(epoch, sequence uint64) bool {
	return s.Epoch < epoch || s.Epoch == epoch && s.Sequence < sequence
}

// DeliveryQuery asks what was delivered to some targets: to each from several
// endpoints. What was observed at To or later is left out.
type DeliveryQuery struct {
	Targets  [][]schema.Endpoint
	From, To time.Time
}

// Delivery is what was delivered to the targets of a query, each with its
// number in it.
type Delivery struct {
	Commits []DeliveredCommit
	Courses []Course
	Repairs []Repair
}

// DeliveredCommit is a commit that was tried on a target. Times are zero for
// what never happened.
type DeliveredCommit struct {
	Target int
	Commit string
	// Tried is when it first succeeded or failed anywhere, Failed when it first
	// failed, Landed when it was first applied with success.
	Tried, Failed, Landed time.Time
}

// Course is a way that some reconcilers of a target went: the commits that they
// ran with success, one after the other.
type Course struct {
	Target int
	Steps  []Step
}

// Step is a commit of a course; Within says that it began at From or later.
type Step struct {
	Commit string
	Within bool
}

// Repair sums up failures of a target's reconcilers.
type Repair struct {
	Target int
	// Restored counts the failures that ended at From or later, Median is half-way
	// through their lengths.
	Restored uint64
	Median   time.Duration
	// Unrestored counts those that had not ended.
	Unrestored uint64
}

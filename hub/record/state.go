package record

import (
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// StateQuery narrows the rows of States. Nil lists match every cluster; an
// empty list that is not nil matches none.
type StateQuery struct {
	// Clusters are those whose agents report the rows that are wanted,
	// Destinations those that they deploy to.
	Clusters, Destinations []string
	// Silent are those whose rows count as unknown, whatever they say.
	Silent []string
	Status schema.Status
	// Under are folders: only who reads one of them, or a folder below, is
	// wanted. Where there are many, all who read their refs come. Nil is everybody.
	Under []schema.Endpoint
	// Off, where it is not nil, asks only for those that run one of these, and for
	// those that were changed live.
	Off []Running
	// After is cluster, kind, namespace and name of the row before the first.
	After []string
	Limit int
}

// Running is a commit that is applied from an endpoint.
type Running struct {
	Endpoint schema.Endpoint
	Commit   string
}

// StateRow is one reconciler as it is now.
type StateRow struct {
	Cluster, Destination string
	Ref                  schema.ObjectRef
	// Sources are at least one, the main one first; it is empty for a reconciler
	// that reads nothing.
	Sources         []StateSource
	Status          schema.Status
	Reason, Message string
	Drifted         bool
	Since           time.Time
}

// StateSource is what a reconciler reads, as it was written and in canonical
// form, and the commits of it that are applied and tried.
type StateSource struct {
	URL, Ref, Path    string
	Endpoint          schema.Endpoint
	Commit, Attempted string
}

// GroupQuery asks who reads what at which commit, in groups of clusters.
type GroupQuery struct {
	// Under are folders as in StateQuery.
	Under []schema.Endpoint
	// Destinations are the clusters that are deployed to; nil matches all, an empty
	// list none.
	Destinations []string
	// Silent are reporting clusters whose reconcilers count as unknown.
	Silent []string
	Status schema.Status
	// Classes divide the clusters that are deployed to: a group is of one class.
	// Those that are not here are of the class Others.
	Classes map[string]uint32
	Others  uint32
	// Named asks for the clusters' names.
	Named bool
	// Most bounds the groups; the store says ErrTooMany beyond it.
	Most int
}

// Group is the clusters of one class on which a commit of an endpoint is
// applied, with one status.
type Group struct {
	Running
	Status schema.Status
	Class  uint32
	// Clusters counts each cluster that is deployed to once.
	Clusters uint64
	// Names are the clusters, where they were asked for, in no order.
	Names []string
}

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
	// After is cluster, kind, namespace and name of the row before the first.
	After []string
	Limit int
}

// StateRow is one reconciler as it is now.
type StateRow struct {
	Cluster, Destination string
	Ref                  schema.ObjectRef
	Repo, GitRef, Path   string
	Commit, Attempted    string
	Status               schema.Status
	Reason, Message      string
	Drifted              bool
	Since                time.Time
}

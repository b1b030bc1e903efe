package fold

import (
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// Registered is a cluster as it registered last, or as it was decommissioned.
type Registered struct {
	Name  string
	Epoch uint64
	// Decommissioned takes it out of verdicts until it registers again.
	Decommissioned    bool
	Kind              schema.ClusterKind
	Labels            map[string]string
	Memberships       []schema.Membership
	ReportsFor        []string
	HeartbeatInterval time.Duration
	AgentVersion      string
	RegisteredAt      time.Time
}

// Package record holds what passes between the store and the packages that ask
// it: rows in the hub's own words, free of any database.
package record

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
	// Nonce tells registrations apart that two hubs gave the same epoch.
	Nonce uint64
}

// Heartbeat says when a cluster's agent of an epoch was last heard of.
type Heartbeat struct {
	Cluster    string
	Epoch      uint64
	ReceivedAt time.Time
}

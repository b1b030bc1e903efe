package schema

import (
	"encoding/json"
	"fmt"
	"time"
)

// ClusterKind says what a cluster is.
type ClusterKind string

// The kinds of cluster.
const (
	ClusterKubernetes ClusterKind = "kubernetes"
	ClusterHost       ClusterKind = "host"
)

// DefaultHeartbeatInterval is assumed for a cluster that registers without one.
const DefaultHeartbeatInterval = Duration(30 * time.Second)

// Membership places a cluster in an environment as one of a cluster type.
type Membership struct {
	Environment string `json:"environment"`
	Type        string `json:"type"`
}

// Registration is what a cluster says of itself when its agent starts.
// Environment and Type are shorthand for one membership.
type Registration struct {
	Memberships []Membership      `json:"memberships,omitempty"`
	Environment string            `json:"environment,omitempty"`
	Type        string            `json:"type,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Kind        ClusterKind       `json:"kind,omitempty"`
	// HeartbeatInterval is how often the agent means to be heard; the cluster
	// is silent after five of them.
	HeartbeatInterval Duration `json:"heartbeat_interval,omitempty"`
	// ReportsFor lists the destination clusters it may report for.
	ReportsFor []string `json:"reports_for,omitempty"`
	Agent      Agent    `json:"agent,omitzero"`
}

// RegistrationAnswer gives the agent its session epoch.
type RegistrationAnswer struct {
	Epoch uint64 `json:"epoch"`
}

// ClusterStatus says whether a cluster is heard of.
type ClusterStatus string

// The states of a cluster.
const (
	ClusterLive           ClusterStatus = "live"
	ClusterSilent         ClusterStatus = "silent"
	ClusterDecommissioned ClusterStatus = "decommissioned"
)

// Cluster is a row of GET /clusters.
type Cluster struct {
	Name              string            `json:"name"`
	Kind              ClusterKind       `json:"kind"`
	Status            ClusterStatus     `json:"status"`
	Memberships       []Membership      `json:"memberships"`
	Labels            map[string]string `json:"labels"`
	ReportsFor        []string          `json:"reports_for"`
	HeartbeatInterval Duration          `json:"heartbeat_interval"`
	AgentVersion      string            `json:"agent_version"`
	Epoch             uint64            `json:"epoch"`
	Sequence          uint64            `json:"sequence"`
	UnlistedKinds     []string          `json:"unlisted_kinds"`
	RegisteredAt      time.Time         `json:"registered_at"`
	// LastSeen is zero when the cluster registered and was never heard of again.
	LastSeen time.Time `json:"last_seen,omitzero"`
	// Counts are the cluster's reconcilers by status, with all six statuses.
	Counts map[Status]uint64 `json:"counts"`
}

// Duration is a time.Duration that JSON writes as "30s".
type Duration time.Duration

// String returns the duration in Go's notation without empty trailing units.
func (d Duration) String() string {
	s := time.Duration(d).String()
	for _, tail := range []string{"m0s", "h0m"} {
		if len(s) > len(tail) && s[len(s)-len(tail):] == tail {
			s = s[:len(s)-2]
		}
	}
	return s
}

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a string such as "30s" or "1h30m".
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration is a string such as \"30s\": %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("a duration is a string such as \"30s\", not %q", s)
	}
	*d = Duration(v)
	return nil
}

// UnmarshalText reads the same notation from YAML, flags and the environment.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("a duration is written like 30s or 10m, not %q", b)
	}
	*d = Duration(v)
	return nil
}

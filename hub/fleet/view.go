package fleet

import (
	"context"
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
)

// Reader reads what is stored of clusters beside their registrations.
type Reader interface {
	Counts(ctx context.Context, clusters []string) (map[string]map[schema.Status]uint64, error)
	Positions(ctx context.Context, clusters []string) (map[string]fold.Position, error)
}

// View answers people's questions about clusters, a page at a time.
type View struct {
	fleet  *Fleet
	reader Reader
}

// NewView makes a view of the fleet.
func NewView(f *Fleet, r Reader) *View { return &View{fleet: f, reader: r} }

// Clusters lists clusters by name. The key of a page is the last row's name.
func (v *View) Clusters(ctx context.Context, f schema.ClusterFilter, p schema.Page) (rows []schema.Cluster, next []string, err error) {
	if len(p.After) > 1 {
		return nil, nil, badCursor()
	}
	var found []Member
	for _, m := range v.fleet.All() {
		if matches(m, f) && (len(p.After) == 0 || m.Name > p.After[0]) {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	if len(found) > p.Limit {
		found = found[:p.Limit]
		next = []string{found[p.Limit-1].Name}
	}
	rows, err = v.describe(ctx, found)
	return rows, next, err
}

func badCursor() error {
	return &schema.Refusal{Code: schema.CodeInvalidCursor, Detail: "this list never gave that cursor; begin again without one"}
}

func matches(m Member, f schema.ClusterFilter) bool {
	if f.Status == "" && m.Decommissioned || f.Status != "" && f.Status != status(m) {
		return false
	}
	if f.Environment == "" && f.ClusterType == "" {
		return true
	}
	return slices.ContainsFunc(m.Memberships, func(s schema.Membership) bool {
		return (f.Environment == "" || f.Environment == s.Environment) && (f.ClusterType == "" || f.ClusterType == s.Type)
	})
}

func status(m Member) schema.ClusterStatus {
	switch {
	case m.Decommissioned:
		return schema.ClusterDecommissioned
	case m.Silent:
		return schema.ClusterSilent
	}
	return schema.ClusterLive
}

// Cluster describes one cluster.
func (v *View) Cluster(ctx context.Context, name string) (schema.Cluster, error) {
	m, ok := v.fleet.Get(name)
	if !ok {
		return schema.Cluster{}, &schema.Refusal{Code: schema.CodeNotFound, Detail: "no cluster " + name + " is registered"}
	}
	rows, err := v.describe(ctx, []Member{m})
	if err != nil {
		return schema.Cluster{}, err
	}
	return rows[0], nil
}

func (v *View) describe(ctx context.Context, members []Member) ([]schema.Cluster, error) {
	names := make([]string, len(members))
	for i := range members {
		names[i] = members[i].Name
	}
	if len(names) == 0 {
		return []schema.Cluster{}, nil
	}
	counts, err := v.reader.Counts(ctx, names)
	if err != nil {
		return nil, unavailable(err)
	}
	positions, err := v.reader.Positions(ctx, names)
	if err != nil {
		return nil, unavailable(err)
	}
	rows := make([]schema.Cluster, len(members))
	for i, m := range members {
		p := positions[m.Name]
		row := schema.Cluster{
			Name: m.Name, Kind: m.Kind, Status: status(m), Memberships: m.Memberships, Labels: m.Labels, ReportsFor: m.ReportsFor,
			HeartbeatInterval: schema.Duration(m.HeartbeatInterval), AgentVersion: m.AgentVersion, Epoch: m.Epoch,
			UnlistedKinds: p.UnlistedKinds, RegisteredAt: m.RegisteredAt, LastSeen: m.LastSeen, Counts: map[schema.Status]uint64{},
		}
		if p.Epoch == m.Epoch {
			row.Sequence = p.Sequence
		}
		if p.AgentVersion != "" {
			row.AgentVersion = p.AgentVersion
		}
		for _, s := range schema.Statuses() {
			row.Counts[s] = counts[m.Name][s]
		}
		rows[i] = fillEmpty(row)
	}
	return rows, nil
}

// fillEmpty makes absent lists empty ones, as JSON shows them.
func fillEmpty(c schema.Cluster) schema.Cluster {
	if c.Memberships == nil {
		c.Memberships = []schema.Membership{}
	}
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	if c.ReportsFor == nil {
		c.ReportsFor = []string{}
	}
	if c.UnlistedKinds == nil {
		c.UnlistedKinds = []string{}
	}
	return c
}

// Place returns the environment and cluster type of the reconcilers on a
// cluster: empty where there are several memberships and nothing tells which.
func Place(memberships []schema.Membership) (environment, clusterType string) {
	if len(memberships) != 1 {
		return "", ""
	}
	return memberships[0].Environment, memberships[0].Type
}

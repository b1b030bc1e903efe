package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// Reader reads what is stored of clusters beside their registrations.
type Reader interface {
	Counts(ctx context.Context, clusters []string) (map[string]map[schema.Status]uint64, error)
	Positions(ctx context.Context, clusters []string) (map[string]fold.Position, error)
	States(ctx context.Context, q record.StateQuery) ([]record.StateRow, error)
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

// ClusterStates lists reconcilers as they are now. A reconciler whose cluster is
// silent is unknown: what it last said may not hold any more.
func (v *View) ClusterStates(ctx context.Context, f schema.StateFilter, p schema.Page) (rows []schema.ClusterState, next []string, err error) {
	if f.Workspace != "" || f.Application != "" || f.Workload != "" || f.DeploymentTarget != "" {
		return []schema.ClusterState{}, nil, nil // no row has these names yet
	}
	if n := len(p.After); n != 0 && n != 4 {
		return nil, nil, badCursor()
	}
	members := map[string]Member{}
	q := record.StateQuery{Status: f.Status, After: p.After, Limit: p.Limit + 1}
	for _, m := range v.fleet.All() {
		members[m.Name] = m
		if m.Silent {
			q.Silent = append(q.Silent, m.Name)
		}
	}
	if f != (schema.StateFilter{Status: f.Status}) {
		q.Clusters, q.Destinations = places(members, f)
	}
	slices.Sort(q.Silent)
	found, err := v.reader.States(ctx, q)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	if len(found) > p.Limit {
		found = found[:p.Limit]
		last := found[p.Limit-1]
		next = []string{last.Cluster, last.Ref.Kind, last.Ref.Namespace, last.Ref.Name}
	}
	now := v.fleet.opts.Now()
	rows = make([]schema.ClusterState, len(found))
	for i := range found {
		rows[i] = stateRow(&found[i], members, now)
	}
	return rows, next, nil
}

// places returns the clusters whose rows are asked for, as places that are
// deployed to, and those that may report for them. Where each reports for itself
// alone, the destinations are nil.
func places(members map[string]Member, f schema.StateFilter) (reporters, destinations []string) {
	asked := map[string]bool{}
	for name, m := range members {
		if !m.Decommissioned && within(name, m, f) {
			asked[name] = true
		}
	}
	if _, registered := members[f.Cluster]; !registered && f.Cluster != "" && within(f.Cluster, Member{}, f) {
		asked[f.Cluster] = true // nobody's agent; others may deploy there
	}
	reporters = []string{} // none, unlike nil, matches none
	for name, m := range members {
		if asked[name] || slices.ContainsFunc(m.ReportsFor, func(to string) bool { return asked[to] }) {
			reporters = append(reporters, name)
			if len(m.ReportsFor) > 0 {
				destinations = slices.Sorted(maps.Keys(asked))
			}
		}
	}
	slices.Sort(reporters)
	return reporters, destinations
}

// within says whether a place is asked for. The environment and type of its
// reconcilers are known where it has one membership.
func within(name string, m Member, f schema.StateFilter) bool {
	environment, clusterType := Place(m.Memberships)
	return (f.Cluster == "" || f.Cluster == name) && (f.Environment == "" || f.Environment == environment) &&
		(f.ClusterType == "" || f.ClusterType == clusterType)
}

// Place returns the environment and cluster type of the reconcilers on a
// cluster: empty where there are several memberships and nothing tells which.
func Place(memberships []schema.Membership) (environment, clusterType string) {
	if len(memberships) != 1 {
		return "", ""
	}
	return memberships[0].Environment, memberships[0].Type
}

func stateRow(r *record.StateRow, members map[string]Member, now time.Time) schema.ClusterState {
	reporter := members[r.Cluster]
	at := reporter
	if r.Destination != r.Cluster {
		at = members[r.Destination]
	}
	row := schema.ClusterState{
		Cluster: r.Destination, Reconciler: r.Ref.String(), Repo: r.Repo, Ref: r.GitRef, Path: r.Path,
		Commit: r.Commit, AttemptedCommit: r.Attempted, Status: r.Status, Reason: r.Reason, Message: r.Message,
		Drifted: r.Drifted, Since: r.Since, LastSeen: reporter.LastSeen,
	}
	row.Environment, row.ClusterType = Place(at.Memberships)
	if reporter.Silent {
		row.Status, row.Reason = schema.StatusUnknown, fmt.Sprintf("no heartbeat for %s", now.Sub(reporter.LastSeen).Round(time.Second))
	}
	return row
}

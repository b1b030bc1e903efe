package overview

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// EnvironmentStates lists deployment targets with what should run of them and
// what does, and endpoints that belong to none. With a cluster, a cluster type
// or a status asked for, only what is deployed there counts.
func (v *View) EnvironmentStates(ctx context.Context, f schema.StateFilter, p schema.Page) (rows []schema.EnvironmentState, next []string, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	all, err := v.environments(ctx, v.look(), f)
	if err != nil {
		return nil, nil, failed(ctx, err)
	}
	found, next, err := cut(all, p, (*environment).key)
	rows = make([]schema.EnvironmentState, len(found))
	for i := range found {
		rows[i] = found[i].row
	}
	return rows, next, err
}

// environment is a row of GET /state in the making.
type environment struct {
	row schema.EnvironmentState
	// at is the canonical endpoint; target is nil for a row without a name.
	at     schema.Endpoint
	target *names.Target
	// descriptor says that one names the scheduled version.
	descriptor bool

	deployed map[deployment]*tally
	// read are the endpoints that reconcilers read of a target.
	read map[schema.Endpoint]bool
	// twice says that a cluster may be counted twice, because it may read several
	// of them.
	twice bool
	// configs are the scheduled configurations of the clusters.
	configs map[string]bool
}

// deployment is what tells two entries of a row apart.
type deployment struct {
	version, config, commit string
	status                  schema.Status
}

// tally counts clusters: by class, each of which is asked for once for an
// endpoint, or by name.
type tally struct {
	clusters uint64
	classes  map[uint32]bool
	names    map[string]struct{}
}

func (e *environment) key() []string {
	t := &e.row.Target
	k := []string{t.Environment, t.Workspace, t.Application, t.Workload, t.DeploymentTarget, "", "", ""}
	if e.target == nil {
		k[5], k[6], k[7] = e.at.Repo, e.at.Ref, e.at.Path
	}
	return k
}

// environments makes all rows, sorted by key.
func (v *View) environments(ctx context.Context, s *sight, f schema.StateFilter) ([]environment, error) {
	g := gathering{View: v, sight: s, filter: f, targets: s.index.Find(f), rows: map[rowKey]*environment{}}
	for i := range g.targets {
		g.row(rowKey{Target: g.targets[i].Target}, &g.targets[i])
	}
	if !byName(&f) || len(g.targets) > 0 {
		if err := g.gather(ctx); err != nil {
			return nil, err
		}
	}
	narrowed := f.Cluster != "" || f.ClusterType != "" || f.Status != ""
	all := make([]environment, 0, len(g.rows))
	for _, e := range g.rows {
		e.finish()
		if !narrowed || len(e.row.Deployed) > 0 {
			all = append(all, *e)
		}
	}
	sortByKey(all, (*environment).key)
	return all, nil
}

// gathering is the rows of one question in the making.
type gathering struct {
	*View
	*sight
	filter  schema.StateFilter
	targets []names.Target
	rows    map[rowKey]*environment

	configs *configurations
	classes []class
}

// rowKey names a row: by its target, or by environment and endpoint.
type rowKey struct {
	schema.Target
	endpoint schema.Endpoint
}

func (g *gathering) row(k rowKey, t *names.Target) *environment {
	e, ok := g.rows[k]
	if ok {
		return e
	}
	e = &environment{at: k.endpoint, target: t, deployed: map[deployment]*tally{}, read: map[schema.Endpoint]bool{}, configs: map[string]bool{}}
	e.row = schema.EnvironmentState{Target: k.Target, Repo: k.endpoint.Repo, Ref: k.endpoint.Ref, Path: k.endpoint.Path}
	if t != nil {
		e.at = t.Endpoint
		e.row.Repo, e.row.Ref, e.row.Path = t.URL, t.Endpoint.Ref, t.Endpoint.Path
		e.row.ScheduledVersion, e.row.ScheduledCommit, e.descriptor = g.scheduled(t)
	}
	g.rows[k] = e
	return e
}

func (g *gathering) gather(ctx context.Context) error {
	var err error
	if g.configs, err = g.configurations(ctx, g.sight, nil); err != nil {
		return err
	}
	q := record.GroupQuery{Silent: g.silent, Status: g.filter.Status, Most: mostGroups}
	g.classes, q.Classes, q.Others = g.configs.classes(g.sight, g.targets)
	if byName(&g.filter) {
		q.Under = g.endpoints(g.targets)
	}
	q.Destinations = sortedNames(g.places("", g.filter.ClusterType, g.filter.Cluster, false))
	groups, err := g.opts.Current.Groups(ctx, q)
	if err != nil {
		return err
	}
	for i := range groups {
		g.add(&groups[i], nil)
	}
	return g.countAgain(ctx, q)
}

// countAgain counts by name what reads several endpoints of one target.
func (g *gathering) countAgain(ctx context.Context, q record.GroupQuery) error {
	again := map[*environment]bool{}
	q.Under, q.Named = []schema.Endpoint{}, true
	for _, e := range g.rows {
		if e.twice {
			again[e] = true
			e.deployed = map[deployment]*tally{}
			q.Under = append(q.Under, slices.Collect(maps.Keys(e.read))...)
		}
	}
	if len(again) == 0 {
		return nil
	}
	groups, err := g.opts.Current.Groups(ctx, q)
	if err != nil {
		return err
	}
	for i := range groups {
		g.add(&groups[i], again)
	}
	return nil
}

// add counts a group; of all rows, or of those that are counted again.
func (g *gathering) add(group *record.Group, again map[*environment]bool) {
	n := g.name(group.Endpoint)
	c := &g.classes[group.Class]
	environment, clusterType := n.place(c.memberships)
	if g.filter.Environment != "" && environment != g.filter.Environment || g.filter.ClusterType != "" && clusterType != g.filter.ClusterType {
		return
	}
	k := rowKey{Target: schema.Target{Environment: environment}, endpoint: group.Endpoint}
	var t *names.Target
	if n.known {
		k, t = rowKey{Target: n.target.Target}, &n.target
		if _, wanted := g.rows[k]; !wanted {
			return
		}
	} else if byName(&g.filter) {
		return
	}
	e := g.row(k, t)
	if again != nil && !again[e] {
		return
	}
	d := deployment{version: g.version(&n, group.Commit), commit: group.Commit, status: group.Status}
	if t != nil {
		d.config = g.configs.at(t.Target, c.applied)
		if scheduled := g.configs.scheduled(t.Target, c.applied); scheduled != "" {
			e.configs[scheduled] = true
		}
	}
	e.read[group.Endpoint] = true
	counted, ok := e.deployed[d]
	if !ok {
		counted = &tally{classes: map[uint32]bool{}, names: map[string]struct{}{}}
		e.deployed[d] = counted
	}
	if again != nil {
		for _, name := range group.Names {
			counted.names[name] = struct{}{}
		}
		counted.clusters = uint64(len(counted.names))
		return
	}
	e.twice = e.twice || counted.classes[group.Class]
	counted.classes[group.Class] = true
	counted.clusters += group.Clusters
}

// finish makes the row of what was counted.
func (e *environment) finish() {
	e.row.Deployed = make([]schema.Deployed, 0, len(e.deployed))
	for d, counted := range e.deployed {
		e.row.Deployed = append(e.row.Deployed, schema.Deployed{
			Version: d.version, ConfigVersion: d.config, Commit: d.commit, Status: d.status, Clusters: counted.clusters,
		})
	}
	slices.SortFunc(e.row.Deployed, func(a, b schema.Deployed) int {
		return cmp.Or(cmp.Compare(b.Clusters, a.Clusters), strings.Compare(a.Version, b.Version), strings.Compare(a.ConfigVersion, b.ConfigVersion),
			strings.Compare(a.Commit, b.Commit), cmp.Compare(a.Status, b.Status))
	})
	if len(e.configs) == 1 {
		for scheduled := range e.configs {
			e.row.ScheduledConfigVersion = scheduled
		}
	}
}

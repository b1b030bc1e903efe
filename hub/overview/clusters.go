package overview

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// ClusterStates lists reconcilers as they are now. A reconciler whose cluster is
// silent is unknown: what it last said may not hold any more.
func (v *View) ClusterStates(ctx context.Context, f schema.StateFilter, p schema.Page) (rows []schema.ClusterState, next []string, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	s := v.look()
	q, err := v.narrow(ctx, s, &f)
	if err != nil {
		return nil, nil, failed(ctx, err)
	}
	return pages(ctx, v, s, q, p, func(r *reading) (schema.ClusterState, bool) {
		row := r.state()
		return row, matches(&f, &row)
	})
}

// narrow returns a query of which no row is missing that matches the filter, and
// not many come that do not.
func (v *View) narrow(ctx context.Context, s *sight, f *schema.StateFilter) (record.StateQuery, error) {
	q := record.StateQuery{Status: f.Status, Silent: s.silent}
	if byName(f) {
		q.Under = s.endpoints(s.index.Find(*f))
	}
	environment := f.Environment
	if q.Under != nil {
		environment = "" // the endpoints' it is
	}
	places := s.places(environment, f.ClusterType, f.Cluster, false)
	if refs := s.index.Serving(environment); f.Cluster == "" && len(refs) > 0 {
		serving, err := v.opts.Current.Destinations(ctx, refs)
		if err != nil {
			return q, err
		}
		for _, name := range serving { // they need not be members
			places[name] = true
		}
	}
	q.Clusters, q.Destinations = s.reporters(places)
	return q, nil
}

// mostRounds bounds how often the store is asked for one page: rows that a query
// cannot tell from those that are asked for are rare.
const mostRounds = 10

// reading is a reconciler as it is read for a row.
type reading struct {
	*sight
	configs *configurations
	row     *record.StateRow
	// named is of the source that names it.
	named  named
	source *record.StateSource
}

// pages makes a page of rows of the reconcilers that a query finds and that row
// wants. A page may be short, and yet there is a next one.
func pages[T any](ctx context.Context, v *View, s *sight, q record.StateQuery, p schema.Page, row func(*reading) (T, bool)) (rows []T, next []string, err error) {
	rows = []T{}
	if n := len(p.After); n != 0 && n != 4 {
		return nil, nil, badCursor()
	}
	q.After, q.Limit = p.After, p.Limit+1
	for range mostRounds {
		found, err := v.opts.Current.States(ctx, q)
		if err != nil {
			return nil, nil, failed(ctx, err)
		}
		configs, err := v.configurations(ctx, s, destinationsOf(found))
		if err != nil {
			return nil, nil, failed(ctx, err)
		}
		for i := range found {
			r := reading{sight: s, configs: configs, row: &found[i]}
			r.choose()
			if made, wanted := row(&r); wanted {
				rows = append(rows, made)
			}
			key := []string{found[i].Cluster, found[i].Ref.Kind, found[i].Ref.Namespace, found[i].Ref.Name}
			if len(rows) == p.Limit {
				if i < len(found)-1 || len(found) == q.Limit {
					next = key
				}
				return rows, next, nil
			}
			q.After = key
		}
		if len(found) < q.Limit {
			return rows, nil, nil
		}
		q.Limit = max(q.Limit, schema.MaxPage)
	}
	return rows, q.After, nil
}

func destinationsOf(rows []record.StateRow) []string {
	all := []string{}
	for i := range rows {
		all = append(all, rows[i].Destination)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// choose takes the source that names the reconciler: the first that belongs to a
// deployment target, else the first that serves a known environment, else the
// main one.
func (r *reading) choose() {
	r.source = &r.row.Sources[0]
	r.named = r.name(r.source.Endpoint)
	for i := 1; i < len(r.row.Sources) && !r.named.known; i++ {
		source := &r.row.Sources[i]
		n := r.name(source.Endpoint)
		if n.known || r.named.environment == "" && n.environment != "" {
			r.named, r.source = n, source
		}
	}
}

// state makes the row.
func (r *reading) state() schema.ClusterState {
	row := schema.ClusterState{
		Cluster: r.row.Destination, Reconciler: r.row.Ref.String(), Repo: r.source.URL, Ref: r.source.Ref, Path: r.source.Path,
		Commit: r.source.Commit, AttemptedCommit: r.source.Attempted, Status: r.row.Status, Reason: r.row.Reason, Message: r.row.Message,
		Drifted: r.row.Drifted, Since: r.row.Since,
	}
	reporter := r.members[r.row.Cluster]
	row.LastSeen = reporter.LastSeen
	row.Environment, row.ClusterType = r.named.place(r.members[r.row.Destination].Memberships)
	r.entitle(&row, &r.named, r.configs.at(r.named.target.Target, r.configs.applied[r.row.Destination]))
	if reporter.Silent {
		row.Status, row.Reason = schema.StatusUnknown, silence(&reporter, r.now)
	}
	return row
}

func silence(m *fleet.Member, now time.Time) string {
	return fmt.Sprintf("no heartbeat for %s", now.Sub(m.LastSeen).Round(time.Second))
}

// entitle gives a row the names of its endpoint and the version of its commit.
func (s *sight) entitle(row *schema.ClusterState, n *named, config string) {
	row.Version = s.version(n, row.Commit)
	if n.known {
		t := &n.target
		row.Workspace, row.Application, row.Workload, row.DeploymentTarget = t.Workspace, t.Application, t.Workload, t.DeploymentTarget
		row.ConfigVersion = config
	}
}

package catalog

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// publish makes a new Index of the sheets. c.mu is held.
func (c *Catalog) publish() {
	g := &gathering{resolve: c.own, found: map[schema.Target]*naming{}, problems: map[string][]problem{}}
	facts := names.Facts{}
	for _, repo := range slices.Sorted(maps.Keys(c.repos)) {
		r := c.repos[repo]
		for _, ref := range slices.Sorted(maps.Keys(c.sheets[repo])) {
			g.sheets = append(g.sheets, c.sheets[repo][ref])
			r.Refs = append(r.Refs, c.sheets[repo][ref].ref)
		}
		facts.Repos = append(facts.Repos, r)
	}
	facts.Repos = append(facts.Repos, c.arrivals(g)...)
	g.complaints()
	g.claims()
	c.live = make(map[schema.Target]record.NamedTarget, len(g.found))
	for t, n := range g.found {
		facts.Targets = append(facts.Targets, n.Target)
		c.live[t] = record.NamedTarget{Target: n.Target, Source: n.rank.String()}
	}
	c.former = map[schema.Target]record.NamedTarget{}
	for _, s := range g.sheets {
		for _, t := range s.past {
			c.former[t.Target] = record.NamedTarget{Target: t, Source: byOwn.String(), Gone: true}
		}
	}
	for t, old := range c.stored {
		_, named := c.live[t]
		switch {
		case named:
		case old.Gone || c.settled(old.Endpoint.Repo):
			old.Gone = true
			c.former[t] = old
		default: // until all is read, what was named before still is
			facts.Targets = append(facts.Targets, old.Target)
			delete(c.former, t)
		}
	}
	for t, old := range c.former {
		if _, named := c.live[t]; !named {
			facts.Former = append(facts.Former, old.Target)
		}
	}
	facts.Environments = g.environments()
	c.index.Store(names.New(facts))
	c.report(g.problems)
}

// String is how the table of targets says what names one.
func (r rank) String() string {
	if r == byWorkload {
		return "workload"
	}
	return "descriptor"
}

// settled reports whether the repository of an endpoint was read once; of one
// that nobody follows, whether all others were, which may name its targets.
func (c *Catalog) settled(repo string) bool {
	if i := slices.IndexFunc(c.followers, func(f *follower) bool { return f.repo == repo }); i >= 0 {
		return c.followers[i].read.Load()
	}
	return !slices.ContainsFunc(c.followers, func(f *follower) bool { return !f.read.Load() })
}

// report counts what is wrong.
func (c *Catalog) report(problems map[string][]problem) {
	for repo, all := range problems {
		slices.SortFunc(all, func(a, b problem) int { return cmp.Or(cmp.Compare(a.ref, b.ref), a.Compare(b.Problem)) })
		problems[repo] = slices.Compact(all)
	}
	c.problems = problems
	for _, f := range c.followers {
		c.metrics.problems.WithLabelValues(f.repo).Set(float64(len(problems[f.repo])))
	}
	c.metrics.targets.Set(float64(len(c.live)))
}

// arrivals are the repositories that descriptors were pushed for and nobody
// follows; their targets join the others.
func (c *Catalog) arrivals(g *gathering) []names.Repo {
	repos := map[string]*names.Repo{}
	for _, key := range slices.SortedFunc(maps.Keys(c.pushed), compareKeys) {
		all := c.pushed[key]
		for _, p := range all {
			g.offer(&naming{Target: p.Target, rank: byOwn, changed: p.ReceivedAt.UnixMicro(), version: &p.Version})
		}
		if _, followed := c.repos[key.Repo]; followed {
			continue
		}
		if repos[key.Repo] == nil {
			repos[key.Repo] = &names.Repo{Names: []string{key.Repo}}
		}
		repos[key.Repo].Refs = append(repos[key.Repo].Refs, arrivedRef(key, all))
	}
	var out []names.Repo
	for _, repo := range slices.Sorted(maps.Keys(repos)) {
		out = append(out, *repos[repo])
	}
	return out
}

func compareKeys(a, b record.RefKey) int {
	return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Ref, b.Ref))
}

// arrivedRef is a ref that nobody follows, as far as what was pushed tells.
func arrivedRef(key record.RefKey, all []*push) names.Ref {
	l := arrivals{places: map[string]int{}}
	ref := names.Ref{Name: key.Ref, Chains: []names.Chain{{Number: 0, Fork: -1}}, Assignments: map[schema.Target][]names.Assignment{}}
	for _, p := range all {
		if _, ok := l.places[p.Commit]; !ok {
			l.places[p.Commit] = len(l.commits)
			l.commits, l.times = append(l.commits, p.Commit), append(l.times, p.ReceivedAt)
		}
	}
	for _, p := range all {
		t, at := p.Target.Target, int64(l.places[p.Commit])
		steps := ref.Assignments[t]
		i, there := slices.BinarySearchFunc(steps, at, func(a names.Assignment, at int64) int { return cmp.Compare(a.Position, at) })
		if there {
			steps[i].Version = &p.Version
			continue
		}
		ref.Assignments[t] = slices.Insert(steps, i, names.Assignment{Position: at, Version: &p.Version})
	}
	ref.Lineage = l
	return ref
}

// arrivals are the commits of a ref that nobody follows, in the order in which
// descriptors came for them.
type arrivals struct {
	commits []string
	times   []time.Time
	places  map[string]int
}

func (a arrivals) point(i int) names.Point {
	return names.Point{Position: int64(i), Commit: a.commits[i], CommittedAt: a.times[i]}
}

// Place returns the point of a commit for which something came.
func (a arrivals) Place(commit string) (names.Point, bool) {
	i, ok := a.places[commit]
	if !ok {
		return names.Point{}, false
	}
	return a.point(i), true
}

// On returns the nth commit.
func (a arrivals) On(_ uint32, position int64) (names.Point, bool) {
	if position < 0 || position >= int64(len(a.commits)) {
		return names.Point{}, false
	}
	return a.point(int(position)), true
}

// Head returns the newest commit.
func (a arrivals) Head() (names.Point, bool) { return a.On(0, int64(len(a.commits))-1) }

// Configuration is not known of what is not read.
func (a arrivals) Configuration(string, string) string { return "" }

// writeTargets brings the tables of repositories and targets up to date.
func (c *Catalog) writeTargets(ctx context.Context) error {
	if err := c.writing.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.writing.Release(1)
	c.mu.Lock()
	rows := c.unstored()
	c.mu.Unlock()
	for part := range slices.Chunk(rows, c.opts.batch) {
		if err := c.opts.Writer.WriteNames(ctx, record.Names{Targets: part}); err != nil {
			return err
		}
		c.mu.Lock()
		for _, t := range part {
			c.stored[t.Target.Target] = t
		}
		c.mu.Unlock()
	}
	return nil
}

// unstored are the targets that ClickHouse has not, or has otherwise, in order.
func (c *Catalog) unstored() []record.NamedTarget {
	var rows []record.NamedTarget
	for key, t := range c.live {
		if old, ok := c.stored[key]; !ok || old.Gone || old.Source != t.Source || old.Endpoint != t.Endpoint || old.URL != t.URL || !maps.Equal(old.Labels, t.Labels) {
			rows = append(rows, t)
		}
	}
	for key, t := range c.former {
		_, named := c.live[key]
		if old, ok := c.stored[key]; !named && (!ok || !old.Gone) && c.settled(t.Endpoint.Repo) {
			rows = append(rows, t)
		}
	}
	slices.SortFunc(rows, func(a, b record.NamedTarget) int { return names.Compare(a.Target.Target, b.Target.Target) })
	return rows
}

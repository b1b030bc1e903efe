package gate

import (
	"context"
	"slices"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// What is reported is stored under the name that the reporter used; a repository
// with several names is asked about under all of them.

// landing looks up who reads the endpoint, under all names of its repository. All
// but the last are looked up twice: who moves from one name to another meanwhile
// is seen at one of them.
func (g *Gate) landing(ctx context.Context, q schema.Question, names []string) (record.Landing, error) {
	all, err := g.opts.Landings.Landing(ctx, q.Endpoint, q.ID)
	if err != nil || len(names) == 1 {
		return all, err
	}
	for _, name := range append(names[1:len(names):len(names)], names[:len(names)-1]...) {
		e := q.Endpoint
		e.Repo = name
		more, err := g.opts.Landings.Landing(ctx, e, q.ID)
		if err != nil {
			return all, err
		}
		join(&all, &more)
	}
	for _, c := range all.Clusters {
		c.Blocked = renamed(c.Blocked, names)
	}
	return all, nil
}

// reader names a reconciler across clusters.
type reader struct {
	cluster string
	ref     schema.ObjectRef
}

// join adds another look-up. A reconciler that is in both is one subscriber; of
// what it reads, that which is asked for counts. Where it changed in between,
// what either look-up saw counts, and the worse of it wins.
func join(all, more *record.Landing) {
	known := make(map[reader]int, len(all.Subscribers))
	for i := range all.Subscribers {
		s := &all.Subscribers[i]
		known[reader{s.Reporter.Name, s.Ref}] = i
	}
	for name, c := range more.Clusters {
		old, ok := all.Clusters[name]
		if !ok {
			all.Clusters[name] = c
			continue
		}
		old.Blocked = union(old.Blocked, c.Blocked)
		old.UnlistedKinds = union(old.UnlistedKinds, c.UnlistedKinds)
	}
	for i := range more.Subscribers {
		s := more.Subscribers[i]
		s.Reporter = all.Clusters[s.Reporter.Name]
		at, ok := known[reader{s.Reporter.Name, s.Ref}]
		switch {
		case !ok:
			all.Subscribers = append(all.Subscribers, s)
		case s.Asked == all.Subscribers[at].Asked:
			all.Subscribers[at].Sources = sources(all.Subscribers[at].Sources, s.Sources)
		case s.Asked:
			all.Subscribers[at] = s
		}
	}
}

// union returns what is in either, in the order of the first; neither changes.
func union[T comparable](a, b []T) []T {
	out := a[:len(a):len(a)]
	for _, x := range b {
		if !slices.Contains(a, x) {
			out = append(out, x)
		}
	}
	return out
}

// sources returns those of both look-ups, each once.
func sources(a, b []compliance.Source) []compliance.Source {
	out := a[:len(a):len(a)]
	for _, x := range b {
		if !slices.ContainsFunc(a, func(y compliance.Source) bool {
			return x.Path == y.Path && x.Applied == y.Applied && x.Attempted == y.Attempted && slices.Equal(x.Runs, y.Runs)
		}) {
			out = append(out, x)
		}
	}
	return out
}

// renamed returns the blocked ones with the repository's own name for all its
// names: what reads it is judged at the commit.
func renamed(blocked []compliance.Blocked, names []string) []compliance.Blocked {
	alias := func(b compliance.Blocked) bool { return slices.Contains(names[1:], b.Repo) }
	if !slices.ContainsFunc(blocked, alias) {
		return blocked
	}
	out := slices.Clone(blocked) // the others are read by others too
	for i := range out {
		if alias(out[i]) {
			out[i].Repo = names[0]
		}
	}
	return out
}

// nearMisses looks up near misses under all names of the endpoint's repository.
func (g *Gate) nearMisses(ctx context.Context, e schema.Endpoint, names []string) ([]schema.NearMiss, error) {
	var all []schema.NearMiss
	for _, name := range names {
		e.Repo = name
		found, err := g.recall.nearMisses(e, func() ([]schema.NearMiss, error) { return g.opts.Store.NearMisses(ctx, e) })
		if err != nil {
			return nil, err
		}
		if len(names) == 1 {
			return found, nil
		}
		all = append(all, found...)
	}
	return all, nil
}

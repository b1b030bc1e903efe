package names

import (
	"cmp"
	"math"
	"path"
	"slices"

	"github.com/landfall-hub/landfall/schema"
)

// Place returns the point of a commit on a ref.
func (x *Index) Place(repo, ref, commit string) (Point, bool) {
	r := x.ref(repo, ref)
	if r == nil {
		return Point{}, false
	}
	return r.Lineage.Place(commit)
}

// Head returns the point of a ref's newest commit.
func (x *Index) Head(repo, ref string) (Point, bool) {
	r := x.ref(repo, ref)
	if r == nil {
		return Point{}, false
	}
	return r.Lineage.Head()
}

// VersionAt returns what the descriptors say of a target at a commit of its ref:
// its newest assignment at or before the commit, and where that is. The point is
// on the commit's chain.
func (x *Index) VersionAt(t Target, commit string) (v Version, at Point, ok bool) {
	r := x.ref(t.Endpoint.Repo, t.Endpoint.Ref)
	if r == nil {
		return Version{}, Point{}, false
	}
	here, ok := r.Lineage.Place(commit)
	if !ok {
		return Version{}, Point{}, false
	}
	return r.version(t.Target, here)
}

// Scheduled returns the newest assignment of a target on its ref.
func (x *Index) Scheduled(t Target) (v Version, at Point, ok bool) {
	r := x.ref(t.Endpoint.Repo, t.Endpoint.Ref)
	if r == nil {
		return Version{}, Point{}, false
	}
	head, ok := r.Lineage.Head()
	if !ok {
		return Version{}, Point{}, false
	}
	return r.version(t.Target, head)
}

// version returns the newest assignment at or before a point.
func (r *Ref) version(t schema.Target, here Point) (v Version, at Point, ok bool) {
	a := r.newest(r.Assignments[t], r.chain(here.Chain), here.Position)
	if a == nil || a.Version == nil {
		return Version{}, Point{}, false
	}
	at, ok = r.Lineage.On(here.Chain, a.Position)
	return *a.Version, at, ok
}

// Pending returns the first assignment of a target after a commit of the chain
// that its ref is on: what has been waiting longest where that commit is
// applied.
func (x *Index) Pending(t Target, commit string) (oldest Point, ok bool) {
	r := x.ref(t.Endpoint.Repo, t.Endpoint.Ref)
	if r == nil {
		return Point{}, false
	}
	here, ok := r.Lineage.Place(commit)
	head, has := r.Lineage.Head()
	if !ok || !has || here.Chain != head.Chain {
		return Point{}, false
	}
	a := r.oldest(r.Assignments[t.Target], r.chain(here.Chain), here.Position+1, math.MaxInt64)
	if a == nil {
		return Point{}, false
	}
	return r.Lineage.On(here.Chain, a.Position)
}

// chain returns the index of a chain.
func (r *Ref) chain(number uint32) int {
	i, _ := slices.BinarySearchFunc(r.Chains, number, func(c Chain, number uint32) int { return cmp.Compare(c.Number, number) })
	return i
}

// search returns the index of the first assignment at or after a position.
func search(all []Assignment, chain uint32, position int64) int {
	i, _ := slices.BinarySearchFunc(all, position, func(a Assignment, position int64) int {
		return cmp.Or(cmp.Compare(a.Chain, chain), cmp.Compare(a.Position, position))
	})
	return i
}

// newest returns the last assignment at or before a position of the nth chain:
// its own, or one from below its fork.
func (r *Ref) newest(all []Assignment, n int, position int64) *Assignment {
	for ; n >= 0 && n < len(r.Chains); n-- {
		c := r.Chains[n]
		if i := search(all, c.Number, position+1) - 1; i >= 0 && all[i].Chain == c.Number {
			return &all[i]
		}
		position = min(position, c.Fork)
	}
	return nil
}

// oldest returns the first version between two positions of the nth chain.
func (r *Ref) oldest(all []Assignment, n int, from, to int64) *Assignment {
	if n < 0 || n >= len(r.Chains) {
		return nil
	}
	c := r.Chains[n]
	if from <= c.Fork {
		if a := r.oldest(all, n-1, from, min(to, c.Fork)); a != nil {
			return a
		}
	}
	for i := search(all, c.Number, from); i < len(all) && all[i].Chain == c.Number && all[i].Position <= to; i++ {
		if all[i].Version != nil {
			return &all[i]
		}
	}
	return nil
}

// ConfigFolders are the names that the folder of a target's configuration may
// have, the likeliest first.
func ConfigFolders(t schema.Target) []string {
	return []string{t.Workload + "-" + t.DeploymentTarget, t.DeploymentTarget, t.Workload}
}

// Platform reports whether configurations are known of a repository and ref.
func (x *Index) Platform(repo, ref string) bool {
	r := x.ref(repo, ref)
	return r != nil && r.Configured
}

// ConfigAt returns the version of the configuration in a folder below an
// endpoint of a platform repository at a commit; "" where there is none, or that
// is not known.
func (x *Index) ConfigAt(e schema.Endpoint, folder, commit string) string {
	r := x.ref(e.Repo, e.Ref)
	if r == nil || !r.Configured {
		return ""
	}
	return r.Lineage.Configuration(commit, path.Join(e.Path, folder))
}

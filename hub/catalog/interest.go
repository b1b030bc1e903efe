package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/landfall-hub/landfall/hub/gitops"
)

// interesting returns the refs to follow, in order: those that the operator
// named, else the default branch, and those that somebody reads, that descriptors
// name or were pushed for, or that hold documents of their own.
func (f *follower) interesting(ctx context.Context, h *gitops.History, heads map[string]gitops.ID) []string {
	named := h.Named()
	var refs []string
	add := func(ref string) {
		if ref == "" {
			ref = h.Default()
		}
		if _, there := heads[ref]; there && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	if len(named) > 0 {
		for _, ref := range named {
			add(ref)
		}
		slices.Sort(refs)
		return refs
	}
	add("")
	for _, ref := range f.wanted() {
		add(ref)
	}
	for _, ref := range f.holders(ctx, h, heads, refs) {
		add(ref)
	}
	left := max(len(refs)-mostRefs, 0)
	if left > 0 && f.left != left {
		f.log.Warn("more branches matter than are read for names; name those that do in refs", "read", mostRefs, "left", left)
	}
	f.left = left
	return refs[:len(refs)-left]
}

// wanted returns refs that matter to somebody, those that are followed first.
func (f *follower) wanted() []string {
	c := f.catalog
	refs := slices.Sorted(maps.Keys(f.books))
	more := map[string]bool{}
	for _, b := range f.books {
		for _, file := range b.tree.Files {
			for i := range file.Found.Claims {
				if e := file.Found.Claims[i].Endpoint; slices.Contains(c.opts.Mirrors.Names(f.repo), e.Repo) {
					more[e.Ref] = true
				}
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.subscribed {
		if c.opts.Mirrors.Names(key.Repo)[0] == f.repo {
			more[key.Ref] = true
		}
	}
	for key := range c.pushed {
		if key.Repo == f.repo {
			more[key.Ref] = true
		}
	}
	for key := range c.chains {
		if key.Repo == f.repo {
			more[key.Ref] = true
		}
	}
	return append(refs, slices.Sorted(maps.Keys(more))...)
}

// mostHolding is of how many commits is remembered whether they hold documents.
const mostHolding = 10_000

// errFound ends a search.
var errFound = errors.New("found")

// holders returns the other branches that hold documents which the default
// branch does not.
func (f *follower) holders(ctx context.Context, h *gitops.History, heads map[string]gitops.ID, known []string) []string {
	base := heads[h.Default()]
	var found []string
	var compare *gitops.Comparer
	r := h.Reader()
	for _, ref := range slices.Sorted(maps.Keys(heads)) {
		head := heads[ref]
		if slices.Contains(known, ref) || ctx.Err() != nil || len(found) > mostRefs {
			continue
		}
		holds, looked := f.holding[head]
		if !looked {
			if compare == nil {
				compare = gitops.NewComparer(r)
			}
			err := compare.Compare(ctx, base, head, func(at gitops.Change) error {
				if !mayHold(at.Path, at.After) {
					return nil
				}
				file, err := read(r, at.Path, at.After.ID)
				if err == nil && !file.IsEmpty() {
					err = errFound
				}
				return err
			})
			if holds = errors.Is(err, errFound); err != nil && !holds {
				continue
			}
			if len(f.holding) >= mostHolding {
				clear(f.holding)
			}
			f.holding[head] = holds
		}
		if holds {
			found = append(found, ref)
		}
	}
	return found
}

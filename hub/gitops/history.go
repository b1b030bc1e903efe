package gitops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/schema"
)

// ID names a commit, a folder or a file of a repository.
type ID = gitrepo.ID

// Repositories returns the repositories that are followed, each by its own
// canonical name, sorted.
func (all *Mirrors) Repositories() []string {
	names := make([]string, len(all.all))
	for i := range all.all {
		names[i] = all.all[i].mirror.repo
	}
	return names
}

// History is what a mirror held at one moment, for those who read all of it: the
// chains of first parents of its refs, and what changed along them. It never
// changes, and asks no server anything.
type History struct {
	*snapshot
	mirror *mirror
}

// History returns the history of a repository, by its own name; false where
// nobody follows it.
func (all *Mirrors) History(repo string) (*History, bool) {
	n, ok := all.byName[repo]
	if !ok {
		return nil, false
	}
	return &History{snapshot: n.mirror.current.Load(), mirror: n.mirror}, true
}

// Written returns the repository's address as it was configured, without user
// info.
func (h *History) Written() string { return h.mirror.source.Name() }

// Named returns the refs that the operator asked for, in canonical form; none
// means every branch.
func (h *History) Named() []string {
	named := make([]string, 0, len(h.mirror.refs))
	for _, ref := range h.mirror.refs {
		if ref, err := schema.CanonicalRef(ref); err == nil {
			named = append(named, ref)
		}
	}
	return named
}

// Default returns the name of the default branch; empty where the server does
// not say.
func (h *History) Default() string { return h.defaultBranch }

// Heads returns the commits of the refs. The default branch is under its name,
// and under "" only where that is not known.
func (h *History) Heads() map[string]ID {
	heads := maps.Clone(h.heads)
	if id, ok := heads[""]; ok && h.defaultBranch != "" {
		delete(heads, "")
		heads[h.defaultBranch] = id
	}
	return heads
}

// Want asks for a fetch because a commit is not known; it waits for nothing.
func (h *History) Want(id ID) { h.mirror.want(id) }

// Knows reports whether a commit is known, whatever leads to it.
func (h *History) Knows(id ID) bool { return h.graph.find(id) != absent }

// Position returns how many first parents a commit has below it.
func (h *History) Position(id ID) (int64, bool) {
	n := h.graph.find(id)
	if n == absent {
		return 0, false
	}
	return int64(h.graph.depth[n]), true
}

// CommittedAt returns the committer's time; zero where it is not known.
func (h *History) CommittedAt(id ID) time.Time {
	n := h.graph.find(id)
	if n == absent || h.graph.when[n] == 0 {
		return time.Time{}
	}
	return time.Unix(h.graph.when[n], 0).UTC()
}

// At returns the commit at a position of the chain below a head.
func (h *History) At(head ID, position int64) (ID, bool) {
	n := h.graph.find(head)
	if n == absent {
		return ID{}, false
	}
	if n = h.graph.onChain(n, position); n == absent {
		return ID{}, false
	}
	return h.graph.ids[n], true
}

// Place returns the position at which a commit came to the chain below a head:
// its own, or that of the merge that brought it.
func (h *History) Place(head, commit ID) (int64, bool) {
	from, to := h.graph.find(head), h.graph.find(commit)
	if from == absent || to == absent {
		return 0, false
	}
	n := h.graph.brought(from, to)
	if n == absent {
		return 0, false
	}
	return int64(h.graph.depth[n]), true
}

// Fork returns the last position that the chains below two heads share, -1 where
// they share none.
func (h *History) Fork(old, next ID) int64 {
	a, b := h.graph.find(old), h.graph.find(next)
	if a == absent || b == absent {
		return -1
	}
	n := h.graph.fork(a, b)
	if n == absent {
		return -1
	}
	return int64(h.graph.depth[n])
}

// Open returns a reader for much at once; it is to be closed.
func (h *History) Open() *gitrepo.Reader { return h.mirror.source.OpenReader() }

// Reader returns a reader for a little.
func (h *History) Reader() *gitrepo.Reader { return h.reader }

// Step is a commit of a chain.
type Step struct {
	Position int64
	Commit   Node
	// Brought are the side commits that a merge brought, parents before children.
	Brought []Node
}

// Node is a commit with its parents.
type Node struct {
	ID      ID
	Parents []ID
}

// Walk calls visit with the commits of the chain below a head, from the one
// after a position (-1 for the first) on.
func (h *History) Walk(ctx context.Context, head ID, after int64, visit func(Step) error) error {
	g := h.graph
	n := g.find(head)
	if n == absent {
		return fmt.Errorf("walking to %s of %s: %w", head, h.Written(), gitrepo.ErrNoCommit)
	}
	var chain []int32
	for at := n; at != absent && int64(g.depth[at]) > after; at = g.firstParent(at) {
		chain = append(chain, at)
	}
	slices.Reverse(chain)
	w := sideways{graph: g, base: g.onChain(n, after), seen: make([]uint64, len(g.ids)/64+1)}
	for _, at := range chain {
		if err := ctx.Err(); err != nil {
			return err
		}
		step := Step{Position: int64(g.depth[at]), Commit: h.node(at)}
		for _, side := range w.brought(at) {
			step.Brought = append(step.Brought, h.node(side))
		}
		if err := visit(step); err != nil {
			return err
		}
	}
	return nil
}

func (h *History) node(n int32) Node {
	c := Node{ID: h.graph.ids[n]}
	for _, p := range h.graph.parentsOf(n) {
		if p != absent {
			c.Parents = append(c.Parents, h.graph.ids[p])
		}
	}
	return c
}

// sideways finds the commits that merges bring to a chain.
type sideways struct {
	graph *graph
	// base is the commit of the chain before the first step, or absent; what leads
	// to it is there already.
	base int32
	seen []uint64
}

// brought returns the side commits that the next commit of the chain brings, in
// the order of their numbers, which puts parents first.
func (w *sideways) brought(at int32) []int32 {
	w.mark(at)
	parents := w.graph.parentsOf(at)
	if len(parents) < 2 {
		return nil
	}
	var found, stack []int32
	enter := func(n int32) {
		if n == absent || !w.mark(n) || w.base != absent && w.graph.reaches(n, w.base) {
			return
		}
		found, stack = append(found, n), append(stack, n)
	}
	for _, p := range parents[1:] {
		enter(p)
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, p := range w.graph.parentsOf(n) {
			enter(p)
		}
	}
	slices.Sort(found)
	return found
}

func (w *sideways) mark(n int32) bool {
	word, bit := n/64, uint64(1)<<(n%64)
	if w.seen[word]&bit != 0 {
		return false
	}
	w.seen[word] |= bit
	return true
}

// ParseID reads a full id in hexadecimal; ok is false for any other text.
func ParseID(s string) (id ID, ok bool) { return gitrepo.ParseID(s) }

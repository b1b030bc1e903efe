package gitops

import (
	"bytes"
	"slices"
	"sync"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// graph holds the commits of a repository, about 80 bytes each. It is never
// changed: with adds what is new to a copy.
//
// Commits are numbered so that parents come before their children. A number is
// int32: a repository has far fewer than 2³¹ commits.
type graph struct {
	ids []gitrepo.ID
	// parents of commit i are parents[start[i]:start[i+1]], absent where the
	// mirror does not have one.
	parents []int32
	start   []int32
	// when are the committers' times in seconds since 1970.
	when []int64
	// sorted are the numbers in the order of the ids.
	sorted []int32

	// level is the length of the longest way down to a commit without parents: an
	// ancestor's is lower.
	level []int32
	// place and size make the tree of first parents: the commits whose first
	// parents lead to i have the places from place[i] to place[i]+size[i]-1.
	place, size []int32
	// merge is the nearest commit with several parents on the way down the first
	// parents, i included; absent where there is none.
	merge []int32
	// depth is how many first parents lie below a commit; jump is one of them, far
	// enough down that any is found in a few steps (see chain.go).
	depth, jump []int32
	// partial says that something below is not in the mirror: what is not found
	// there may be there all the same.
	partial []bool
	// cut is how many commits lack a parent.
	cut int
}

// absent is the number of a commit that is not there.
const absent int32 = -1

// with returns a graph that holds new commits too. Parents come before children
// in them, and none is in g.
func (g *graph) with(fresh []gitrepo.Commit) *graph {
	n := len(g.ids) + len(fresh)
	next := &graph{
		ids: append(make([]gitrepo.ID, 0, n), g.ids...), parents: append(make([]int32, 0, len(g.parents)+2*len(fresh)), g.parents...),
		start: append(make([]int32, 0, n+1), g.start...), when: append(make([]int64, 0, n), g.when...),
	}
	if len(next.start) == 0 {
		next.start = append(next.start, 0)
	}
	numbers := make(map[gitrepo.ID]int32, len(fresh))
	for i := range fresh {
		c := &fresh[i]
		for _, p := range c.Parents {
			number, ok := numbers[p]
			if !ok {
				number = g.find(p)
			}
			next.parents = append(next.parents, number)
		}
		numbers[c.ID] = int32(len(next.ids)) //nolint:gosec // see graph
		next.ids, next.when = append(next.ids, c.ID), append(next.when, c.CommittedAt)
		next.start = append(next.start, int32(len(next.parents))) //nolint:gosec // see graph
	}
	next.sorted = next.mergeSorted(g.sorted)
	next.index()
	return next
}

// mergeSorted puts the numbers that are not in sorted, the last ones, in their
// places between them.
func (g *graph) mergeSorted(sorted []int32) []int32 {
	less := func(a, b int32) int { return bytes.Compare(g.ids[a][:], g.ids[b][:]) }
	fresh := make([]int32, len(g.ids)-len(sorted))
	for i := range fresh {
		fresh[i] = int32(len(sorted) + i) //nolint:gosec // see graph
	}
	slices.SortFunc(fresh, less)
	merged := make([]int32, 0, len(g.ids))
	for _, f := range fresh {
		n, _ := slices.BinarySearchFunc(sorted, f, less)
		merged = append(append(merged, sorted[:n]...), f)
		sorted = sorted[n:]
	}
	return append(merged, sorted...)
}

// index computes all that follows from ids and parents.
func (g *graph) index() {
	n := len(g.ids)
	g.level, g.place, g.size, g.merge = make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
	g.depth, g.jump = make([]int32, n), make([]int32, n)
	g.partial, g.cut = make([]bool, n), 0
	for i := range n {
		g.merge[i] = absent
		parents := g.parentsOf(int32(i))
		lacks := false
		for _, p := range parents {
			if p == absent {
				lacks = true
				continue
			}
			g.level[i] = max(g.level[i], g.level[p]+1)
			g.partial[i] = g.partial[i] || g.partial[p]
		}
		if lacks {
			g.cut++
			g.partial[i] = true
		}
		switch {
		case len(parents) > 1:
			g.merge[i] = int32(i)
		case len(parents) == 1 && parents[0] != absent:
			g.merge[i] = g.merge[parents[0]]
		}
		g.deepen(int32(i))
	}
	g.plant()
}

// plant numbers the tree of first parents: sizes from the leaves down, then
// places from the roots up, each child after those that were placed before it.
func (g *graph) plant() {
	for i := len(g.ids) - 1; i >= 0; i-- {
		g.size[i]++
		if p := g.firstParent(int32(i)); p != absent { //nolint:gosec // see graph
			g.size[p] += g.size[i]
		}
	}
	free := make([]int32, len(g.ids))
	roots := int32(0)
	for i := range g.ids {
		if p := g.firstParent(int32(i)); p != absent {
			g.place[i] = free[p]
			free[p] += g.size[i]
		} else {
			g.place[i] = roots
			roots += g.size[i]
		}
		free[i] = g.place[i] + 1
	}
}

// find returns a commit's number.
func (g *graph) find(id gitrepo.ID) int32 {
	at, ok := slices.BinarySearchFunc(g.sorted, id, func(i int32, id gitrepo.ID) int { return bytes.Compare(g.ids[i][:], id[:]) })
	if !ok {
		return absent
	}
	return g.sorted[at]
}

func (g *graph) parentsOf(i int32) []int32 { return g.parents[g.start[i]:g.start[i+1]] }

// firstParent returns absent for a commit without parents, and where the mirror
// lacks the first one.
func (g *graph) firstParent(i int32) int32 {
	if parents := g.parentsOf(i); len(parents) > 0 {
		return parents[0]
	}
	return absent
}

// leads reports whether a's first parents lead down from b to a.
func (g *graph) leads(a, b int32) bool {
	return g.place[a] <= g.place[b] && g.place[b] < g.place[a]+g.size[a]
}

// search is what one walk needs, kept for the next.
type search struct {
	seen  []uint64
	stack []int32
	marks []int32
}

var searches = sync.Pool{New: func() any { return new(search) }}

// visit marks a commit; it is false where it was marked before.
func (s *search) visit(i int32) bool {
	word, bit := i/64, uint64(1)<<(i%64)
	if s.seen[word]&bit != 0 {
		return false
	}
	if s.seen[word] == 0 {
		s.marks = append(s.marks, word)
	}
	s.seen[word] |= bit
	return true
}

// reaches reports whether a is b or is found below it.
//
// Down a way of first parents, only merges matter: whether a itself lies on it
// is known without a walk.
func (g *graph) reaches(a, b int32) bool {
	if g.leads(a, b) {
		return true
	}
	if !g.mayReach(a, b) {
		return false
	}
	s := searches.Get().(*search)
	if words := len(g.ids)/64 + 1; len(s.seen) < words {
		s.seen = make([]uint64, words)
	}
	found := g.walk(s, a, b)
	for _, word := range s.marks {
		s.seen[word] = 0
	}
	s.marks, s.stack = s.marks[:0], s.stack[:0]
	searches.Put(s)
	return found
}

// mayReach is false where a cannot be an ancestor of b: it comes later, or is at
// least as high.
func (g *graph) mayReach(a, b int32) bool { return a < b && g.level[a] < g.level[b] }

func (g *graph) walk(s *search, a, b int32) bool {
	s.stack = append(s.stack, b)
	for len(s.stack) > 0 {
		at := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		for at != absent {
			at = g.merge[at]
			if at == absent || !g.mayReach(a, at) || !s.visit(at) {
				break
			}
			parents := g.parentsOf(at)
			for _, p := range parents[1:] {
				if p == absent {
					continue
				}
				if g.leads(a, p) {
					return true
				}
				if g.mayReach(a, p) {
					s.stack = append(s.stack, p)
				}
			}
			at = parents[0]
		}
	}
	return false
}

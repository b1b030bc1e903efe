package gitops

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// Positions, places and forks on random graphs are those that a walk finds.
func TestChains(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		g := inParts(r, randomHistory(r, 2+r.IntN(120), seed%2 == 1))
		n := int32(len(g.ids))
		chainOf := func(head int32) []int32 {
			var chain []int32
			for at := head; at != absent; at = g.firstParent(at) {
				chain = append(chain, at)
			}
			slices.Reverse(chain)
			return chain
		}
		for range 40 {
			head, c, other := r.Int32N(n), r.Int32N(n), r.Int32N(n)
			chain, second := chainOf(head), chainOf(other)
			if int(g.depth[head]) != len(chain)-1 {
				t.Fatalf("seed %d: the depth of %d is %d, want %d", seed, head, g.depth[head], len(chain)-1)
			}
			p := r.Int64N(int64(len(chain)) + 1)
			want := absent
			if p < int64(len(chain)) {
				want = chain[p]
			}
			if got := g.onChain(head, p); got != want {
				t.Fatalf("seed %d: at %d below %d is %d, want %d", seed, p, head, got, want)
			}
			want = absent
			if i := slices.IndexFunc(chain, func(at int32) bool { return g.reaches(c, at) }); i >= 0 {
				want = chain[i]
			}
			if got := g.brought(head, c); got != want {
				t.Fatalf("seed %d: %d came to %d with %d, want %d", seed, c, head, got, want)
			}
			want = absent
			for i := range min(len(chain), len(second)) {
				if chain[i] == second[i] {
					want = chain[i]
				}
			}
			if got := g.fork(other, head); got != want {
				t.Fatalf("seed %d: %d and %d fork at %d, want %d", seed, head, other, got, want)
			}
		}
	}
}

// A walk visits every commit that leads to a head and not to where it begins,
// each once, with the commit of the chain that brought it.
func TestWalk(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		g := inParts(r, randomHistory(r, 2+r.IntN(120), false))
		h := &History{snapshot: &snapshot{graph: g}}
		head := r.Int32N(int32(len(g.ids)))
		after := r.Int64N(int64(g.depth[head])+2) - 1
		base := g.onChain(head, after)
		want := map[ID]int64{}
		for c := range int32(len(g.ids)) {
			if at := g.brought(head, c); at != absent && (base == absent || !g.reaches(c, base)) {
				want[g.ids[c]] = int64(g.depth[at])
			}
		}
		got := map[ID]int64{}
		position := after
		err := h.Walk(t.Context(), g.ids[head], after, func(s Step) error {
			if position++; s.Position != position {
				t.Errorf("seed %d: a step at %d, want %d", seed, s.Position, position)
			}
			for _, n := range append(s.Brought, s.Commit) {
				if _, twice := got[n.ID]; twice {
					t.Errorf("seed %d: %s is visited twice", seed, n.ID)
				}
				got[n.ID] = s.Position
			}
			return nil
		})
		if err != nil || len(got) != len(want) {
			t.Fatalf("seed %d: %d commits, want %d: %v", seed, len(got), len(want), err)
		}
		for id, at := range want {
			if got[id] != at {
				t.Errorf("seed %d: %s came at %d, want %d", seed, id, got[id], at)
			}
		}
	}
}

// Every path that differs is told, folders before what is in them; what two
// commits share is not read.
func TestCompare(t *testing.T) {
	dir := t.TempDir()
	s := newStream()
	first := s.commit(nil, map[string]string{"a/b/x": "1", "a/y": "1", "same/z": "1", "turns": "1", `"odd\nname"`: "1", "link": "-> a"})
	second := s.commit([]int{first}, map[string]string{"a/b/x": "2", "turns": "", "turns/into/folder": "1", `"odd\nname"`: "", "link": "-> same"})
	s.branch("main", second)
	ids := s.into(t, dir)
	m := newMirrors(t, t.TempDir(), Repository{URL: dir})
	if wrong := fetchAll(t, m); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	h, _ := m.History(m.all[0].mirror.repo)
	id := func(n int) ID {
		id, _ := gitrepo.ParseID(ids[n])
		return id
	}
	compared := func(old, next ID) string {
		var all []string
		c := NewComparer(h.Reader())
		if err := c.Compare(t.Context(), old, next, func(ch Change) error {
			what := ch.Path
			if !ch.Before.There {
				what = "+" + what
			}
			if !ch.After.There {
				what = "-" + what
			}
			all = append(all, what)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, entries := range c.trees.folders {
			if slices.ContainsFunc(entries, func(e gitrepo.Entry) bool { return e.Name == "z" }) && old != (ID{}) {
				t.Error("a folder was read that did not change")
			}
		}
		return strings.Join(all, ", ")
	}
	if got, want := compared(id(first), id(second)), ", a, a/b, a/b/x, link, -odd\nname, turns, +turns/into, +turns/into/folder"; got != want {
		t.Errorf("changed are %q, want %q", got, want)
	}
	if got, want := compared(ID{}, id(first)), "+, +a, +a/b, +a/b/x, +a/y, +link, +odd\nname, +same, +same/z, +turns"; got != want {
		t.Errorf("new are %q, want %q", got, want)
	}
	if got := compared(id(first), id(first)); got != "" {
		t.Errorf("nothing changed, and %q did", got)
	}
	if h.Default() != "main" || len(h.Heads()) != 1 || h.Heads()["main"] != id(second) {
		t.Errorf("the default branch is %q, the heads are %v", h.Default(), h.Heads())
	}
	if at := h.CommittedAt(id(second)); at.Unix() != 1_700_000_002 {
		t.Errorf("it was committed at %s", at)
	}
}

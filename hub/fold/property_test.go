package fold

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/landfall-hub/landfall/schema"
)

// model is what Apply must do, in the plainest way: a map, and for a snapshot in
// parts the objects that its parts held.
type model struct {
	known map[schema.ObjectRef]schema.Digest
	// next is the part that would go on with the open set, nil for no set.
	next *schema.Report
	seen map[schema.ObjectRef]bool
}

func (m *model) tell(r *schema.Report) (changed, gone int) {
	held := map[schema.ObjectRef]bool{}
	for i := range r.Reconcilers {
		ref, digest := r.Reconcilers[i].Ref(), r.Reconcilers[i].Digest()
		held[ref] = true
		if old, ok := m.known[ref]; !ok || old != digest {
			changed++
		}
		m.known[ref] = digest
	}
	for _, ref := range r.Removed {
		if _, ok := m.known[ref]; ok {
			gone++
		}
		delete(m.known, ref)
	}
	next := m.next
	m.next = nil
	if r.Mode != schema.ModeSnapshot {
		return changed, gone
	}
	switch {
	case r.Parts == 0 || r.Part == 1:
		m.seen = held
	case next == nil || next.Part != r.Part || next.Parts != r.Parts || next.Epoch != r.Epoch || next.Sequence != r.Sequence || !slices.Equal(next.Kinds, r.Kinds):
		return changed, gone
	default:
		for ref := range held {
			m.seen[ref] = true
		}
	}
	if r.Part < r.Parts {
		m.next = &schema.Report{Epoch: r.Epoch, Sequence: r.Sequence + 1, Part: r.Part + 1, Parts: r.Parts, Kinds: r.Kinds}
		return changed, gone
	}
	for ref := range m.known {
		if slices.Contains(r.Kinds, ref.Kind) && !m.seen[ref] {
			delete(m.known, ref)
			gone++
		}
	}
	return changed, gone
}

// stream makes up an agent's messages.
type stream struct {
	*rand.Rand
	epoch, sequence uint64
	// part is the last one sent of a snapshot in parts.
	part *schema.Report
}

var streamKinds = []string{"Application", "HelmRelease", "Kustomization"}

func (g *stream) reconciler() schema.Reconciler {
	statuses := schema.Statuses()
	commits := []string{commitA, commitB, commitC}
	r := kustomization(fmt.Sprint("r", g.IntN(6)), ofKind(streamKinds[g.IntN(3)]), status(statuses[g.IntN(len(statuses))], ""),
		applies(commits[g.IntN(3)]), sources(git("apps", fmt.Sprint("p", g.IntN(3)))))
	if g.IntN(3) == 0 {
		r.Owner = &schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "owner"}
	}
	return r
}

func (g *stream) reconcilers(most int) []schema.Reconciler {
	byRef := map[schema.ObjectRef]bool{}
	var list []schema.Reconciler
	for range g.IntN(most + 1) {
		if r := g.reconciler(); !byRef[r.Ref()] {
			byRef[r.Ref()] = true
			list = append(list, r)
		}
	}
	return list
}

func (g *stream) message() *schema.Report {
	g.sequence++
	if g.IntN(8) == 0 {
		g.sequence++ // one was lost
	}
	if g.IntN(20) == 0 {
		g.epoch, g.sequence = g.epoch+1, 1
	}
	r := delta(g.sequence, g.reconcilers(4)...)
	r.Epoch, r.ObservedAt = g.epoch, start
	last := g.part
	g.part = nil
	switch n := g.IntN(10); {
	case last != nil && n < 8:
		r.Mode, r.Kinds, r.Part, r.Parts = schema.ModeSnapshot, last.Kinds, last.Part+1, last.Parts
	case n < 4:
		for range g.IntN(3) {
			gone := g.reconciler()
			if ref := gone.Ref(); !slices.ContainsFunc(r.Reconcilers, func(o schema.Reconciler) bool { return o.Ref() == ref }) && !slices.Contains(r.Removed, ref) {
				r.Removed = append(r.Removed, ref)
			}
		}
		return r
	default:
		r.Mode, r.Kinds = schema.ModeSnapshot, streamKinds[g.IntN(3):]
		if n > 6 {
			r.Parts = 1 + g.IntN(4)
			r.Part = 1 + g.IntN(g.IntN(r.Parts)+1)
		}
	}
	if r.Part < r.Parts {
		g.part = r
	}
	return r
}

// Whatever an agent sends, the state is what a plain map would be, its digest is
// that of all entries, and the changes are just the differences.
func TestFoldingIsAMap(t *testing.T) {
	removals := 0
	for seed := range uint64(25) {
		g := &stream{Rand: rand.New(rand.NewPCG(seed, 1)), epoch: 1}
		s, m := NewState(), &model{known: map[schema.ObjectRef]schema.Digest{}}
		for step := range 120 {
			r := g.message()
			changed, gone := m.tell(r)
			c := tell(t, s, r)
			got := map[schema.ObjectRef]schema.Digest{}
			for ref, e := range s.Entries {
				got[ref] = e.Digest
			}
			if !maps.Equal(m.known, got) {
				diff(t, "the state", m.known, got)
			}
			marked, _ := upserts(c)
			if len(marked) != changed || len(c.Removals) != gone {
				t.Errorf("%d changed and %d gone, want %d and %d", len(marked), len(c.Removals), changed, gone)
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d: %+v", seed, step, r)
			}
			removals += gone
		}
	}
	if removals < 100 {
		t.Errorf("only %d removals: the test tests little", removals)
	}
}

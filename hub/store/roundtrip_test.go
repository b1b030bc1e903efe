package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
)

// sameState holds a state against another, in all that the next report is
// folded by. What it keeps of versions matters only while a snapshot is open.
func sameState(t *testing.T, want, got *fold.State) {
	t.Helper()
	type entry struct {
		Digest, Latch, Owner, Status, Reason, Since string
		Endpoints                                   []schema.Endpoint
		Settled, Marked                             bool
	}
	flat := func(s *fold.State) map[schema.ObjectRef]entry {
		all := map[schema.ObjectRef]entry{}
		p := s.Position
		for ref, e := range s.Entries {
			f := entry{
				Digest: e.Digest.String(), Latch: e.Latch.String(), Owner: e.Owner.String(), Status: string(e.Status), Reason: e.Reason,
				Since: e.Since.UTC().Format(time.RFC3339Nano), Settled: e.Settled,
				Marked: p.Snapshot.Parts > 1 && e.Version >= schema.Version(p.Epoch, p.Snapshot.Start),
			}
			for _, h := range e.Endpoints {
				f.Endpoints = append(f.Endpoints, h.Value())
			}
			all[ref] = f
		}
		return all
	}
	if d := cmp.Diff(flat(want), flat(got)); d != "" {
		t.Errorf("entries (-want +got):\n%s", d)
	}
	position := func(p fold.Position) fold.Position {
		if p.Snapshot.Parts <= 1 {
			p.Snapshot = fold.Snapshot{}
		}
		if len(p.UnlistedKinds) == 0 {
			p.UnlistedKinds = nil
		}
		return p
	}
	if d := cmp.Diff(position(want.Position), position(got.Position)); d != "" {
		t.Errorf("position (-want +got):\n%s", d)
	}
}

// randomReport makes up the next message of an agent, of three kinds and a few
// names, so that most of it is about what is known.
func randomReport(g *rand.Rand, last *schema.Report) *schema.Report {
	kinds := []string{"Application", "HelmRelease", "Kustomization"}
	r := &schema.Report{Epoch: last.Epoch, Sequence: last.Sequence + 1, Mode: schema.ModeDelta, ObservedAt: start}
	if last.Sequence == 0 {
		r.Epoch = 1
	}
	if g.IntN(12) == 0 {
		r.Epoch, r.Sequence = r.Epoch+1, 1
	}
	held := map[schema.ObjectRef]bool{}
	for range g.IntN(5) {
		statuses := schema.Statuses()
		rec := reconciler(fmt.Sprint("r", g.IntN(5)), fmt.Sprint("p", g.IntN(3)), []string{commitA, commitB}[g.IntN(2)], statuses[g.IntN(len(statuses))])
		rec.Kind, rec.Reason = kinds[g.IntN(3)], []string{"", "ArtifactFailed", "Progressing"}[g.IntN(3)]
		if g.IntN(3) == 0 {
			rec.Sources = append(rec.Sources, schema.Source{Type: schema.SourceGit, URL: "https://git.example/org/values", Path: fmt.Sprint("v", g.IntN(2))})
		}
		if g.IntN(2) == 0 {
			rec = owned(rec, "owner")
		}
		if observed := g.IntN(2) == 0; g.IntN(3) == 0 {
			rec.GenerationObserved = &observed
		}
		if !held[rec.Ref()] {
			held[rec.Ref()] = true
			r.Reconcilers = append(r.Reconcilers, rec)
		}
	}
	open := last.Parts > 0 && last.Part < last.Parts
	switch n := g.IntN(10); {
	case open && n < 8:
		r.Mode, r.Kinds, r.Part, r.Parts = schema.ModeSnapshot, last.Kinds, last.Part+1, last.Parts
	case n < 5:
		gone := schema.ObjectRef{Kind: kinds[g.IntN(3)], Namespace: "flux-system", Name: fmt.Sprint("r", g.IntN(5))}
		if !held[gone] {
			r.Removed = []schema.ObjectRef{gone}
		}
		if n == 0 {
			r.UnlistedKinds = []string{kinds[g.IntN(3)]}
		}
	case n < 7:
		r.Mode, r.Kinds = schema.ModeSnapshot, kinds[g.IntN(3):]
	default:
		r.Mode, r.Kinds, r.Part, r.Parts = schema.ModeSnapshot, kinds[g.IntN(3):], 1, 1+g.IntN(3)
	}
	return r
}

// A hub that is restarted after every message, in the middle of snapshots too,
// comes to the same states and the same changes as one that never is; and what
// gates look up is the reconcilers' endpoints, no more and no less.
func TestRestartsChangeNothing(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	for seed := range uint64(2) {
		g := rand.New(rand.NewPCG(seed, 7))
		cluster := fmt.Sprint("c", seed)
		lasting, last := fold.NewState(), &schema.Report{}
		parts := 0
		for step := range 60 {
			r := randomReport(g, last)
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			if r.Part > 1 {
				parts++
			}
			now := start.Add(time.Duration(step) * time.Minute)
			states, err := s.Load(ctx, []string{cluster})
			if err != nil {
				t.Fatal(err)
			}
			restarted := states[cluster]
			sameState(t, lasting, restarted)
			want, got := lasting.Apply(cluster, r, now), restarted.Apply(cluster, r, now)
			if d := cmp.Diff(changed(want), changed(got)); d != "" {
				t.Errorf("changes (-lasting +restarted):\n%s", d)
			}
			if err := s.Write(ctx, []fold.Changes{got}); err != nil {
				t.Fatal(err)
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d: %+v", seed, step, r)
			}
			last = r
		}
		if parts < 5 {
			t.Errorf("only %d later parts: the test tests little", parts)
		}
		var want []string
		for ref, e := range lasting.Entries {
			for _, h := range e.Endpoints {
				want = append(want, fmt.Sprint(ref, " ", h.Value()))
			}
		}
		slices.Sort(want)
		if d := cmp.Diff(want, subscriptions(t, s, cluster)); d != "" {
			t.Errorf("subscriptions of seed %d (-want +got):\n%s", seed, d)
		}
	}
}

func subscriptions(t *testing.T, s *Store, cluster string) []string {
	t.Helper()
	var all []string
	for _, repo := range []string{"git.example/org/apps", "git.example/org/values"} {
		for _, ref := range []string{"dev", ""} {
			for _, sub := range land(t, s, schema.Endpoint{Repo: repo, Ref: ref}, commitA).Subscribers {
				for _, src := range sub.Sources {
					if sub.Reporter.Name == cluster {
						all = append(all, fmt.Sprint(sub.Ref, " ", schema.Endpoint{Repo: repo, Ref: ref, Path: src.Path}))
					}
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// changed is what history and gates see of changes.
func changed(c fold.Changes) []string {
	var all []string
	for _, u := range c.Upserts {
		all = append(all, fmt.Sprint(u.Reconciler.Ref(), " ", u.Changed, " ", len(u.Left), " ", u.Entry.Latch.String(), " ", u.Entry.Settled))
	}
	for _, r := range c.Removals {
		all = append(all, fmt.Sprint("gone ", r.Ref, " ", len(r.Endpoints)))
	}
	return append(all, fmt.Sprint(c.Blocked))
}

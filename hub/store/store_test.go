package store

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

var start = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

const (
	commitA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	commitB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(Options{URL: enginetest.Shared(t), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func reconciler(name, path, commit string, status schema.Status) schema.Reconciler {
	return schema.Reconciler{
		Kind: "Kustomization", Namespace: "flux-system", Name: name,
		Sources: []schema.Source{{Type: schema.SourceGit, URL: "https://git.example/org/apps.git", Ref: "dev", Path: path}},
		Status:  status, Attempted: []string{"dev@sha1:" + commit}, Applied: []string{"dev@sha1:" + commit},
	}
}

func delta(sequence uint64, rs ...schema.Reconciler) *schema.Report {
	return &schema.Report{Epoch: 1, Sequence: sequence, Mode: schema.ModeDelta, ObservedAt: start, Reconcilers: rs}
}

func TestWriteAndLookUp(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	state := fold.NewState()
	child := reconciler("child", "apps", commitA, schema.StatusFailure)
	child.Owner = &schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "root"}
	child.Sources[0].URL = "https://git.example/org/other"
	batch := []fold.Changes{state.Apply("c1", delta(1, reconciler("root", "./drone/", commitA, schema.StatusSuccess), child), start)}
	if err := s.Write(ctx, batch); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(ctx, batch); err != nil { // the same batch again
		t.Fatal(err)
	}
	l, err := landings(t, s).Landing(ctx, schema.Endpoint{Repo: "git.example/org/apps", Ref: "dev", Path: "drone"}, commitA)
	if err != nil {
		t.Fatal(err)
	}
	want := []compliance.Subscriber{{
		Ref: schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "root"}, DestinationName: "c1", Asked: true,
		Reporter: l.Clusters["c1"], Status: schema.StatusSuccess, Revision: "dev@sha1:" + commitA,
		Sources: []compliance.Source{{Path: "drone", Applied: commitA, Attempted: commitA, Runs: []compliance.Run{{Commit: commitA, SuccessAt: start, SteadyAt: start}}}},
	}}
	if d := cmp.Diff(want, l.Subscribers); d != "" {
		t.Errorf("subscribers (-want +got):\n%s", d)
	}
	if b := l.Clusters["c1"].Blocked; len(b) != 1 || b[0].Child.Name != "child" || b[0].Status != schema.StatusFailure {
		t.Errorf("the failing child is not known: %+v", b)
	}
	var n uint64
	if err := s.query(ctx, "test", "SELECT count() FROM {db}.history FINAL", scanInto(&n)); err != nil || n != 2 {
		t.Errorf("history has %d rows, want 2 (%v)", n, err)
	}
	if err := s.query(ctx, "test", "SELECT max(c) FROM (SELECT count() AS c FROM {db}.current FINAL GROUP BY row, repo, ref, path, cluster, kind, namespace, name)", scanInto(&n)); err != nil || n != 1 {
		t.Errorf("a key stands %d times (%v)", n, err)
	}

	states, err := s.Load(ctx, []string{"c1", "never"})
	if err != nil {
		t.Fatal(err)
	}
	if got := states["c1"]; got.Position.Digest != state.Position.Digest || got.Position.Version() != state.Position.Version() || len(got.Entries) != 2 {
		t.Errorf("loaded %+v, want %+v", got.Position, state.Position)
	}
	for ref, e := range state.Entries {
		if d := cmp.Diff(e, states["c1"].Entries[ref], cmp.Comparer(func(a, b fold.Run) bool { return a == b }), cmp.Comparer(func(a, b *fold.Entry) bool {
			return a.Digest == b.Digest && a.Version == b.Version && a.Owner == b.Owner && a.Settled == b.Settled && a.Latch.String() == b.Latch.String() &&
				len(a.Endpoints) == len(b.Endpoints) && a.Endpoints[0] == b.Endpoints[0] && a.Status == b.Status && a.Since.Equal(b.Since)
		})); d != "" {
			t.Errorf("%s loaded otherwise: %s", ref, d)
		}
	}
}

// A reconciler that moves path, then ref, then goes, leaves no ghost.
func TestMovesLeaveNoGhost(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	state := fold.NewState()
	at := func(sequence uint64, path, ref string) {
		r := reconciler("app", path, commitB, schema.StatusSuccess)
		r.Sources[0].Ref = ref
		if err := s.Write(ctx, []fold.Changes{state.Apply("c1", delta(sequence, r), start)}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(path, ref string) int {
		l, err := landings(t, s).Landing(ctx, schema.Endpoint{Repo: "git.example/org/apps", Ref: ref, Path: path}, commitB)
		if err != nil {
			t.Fatal(err)
		}
		return len(l.Subscribers)
	}
	expect := func(when string, want ...int) {
		t.Helper()
		got := []int{count("a", "dev"), count("b", "dev"), count("b", "prod")}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", when, d)
		}
	}
	at(1, "a", "dev")
	expect("at first", 1, 0, 0)
	at(2, "b", "dev")
	expect("moved path", 0, 1, 0)
	at(3, "b", "prod")
	expect("moved ref", 0, 0, 1)
	gone := &schema.Report{Epoch: 1, Sequence: 4, Mode: schema.ModeDelta, ObservedAt: start, Removed: []schema.ObjectRef{{Kind: "Kustomization", Namespace: "flux-system", Name: "app"}}}
	if err := s.Write(ctx, []fold.Changes{state.Apply("c1", gone, start)}); err != nil {
		t.Fatal(err)
	}
	expect("gone", 0, 0, 0)
	at(5, "a", "dev")
	expect("came back", 1, 0, 0)
}

// A child of the same repository is found below its root, though what stands
// between them reads another one, or is simply compliant.
func TestLinksBetweenRootAndChild(t *testing.T) {
	s := open(t)
	root, middle, child := reconciler("root", "root", commitA, schema.StatusSuccess), reconciler("middle", "", commitB, schema.StatusSuccess), reconciler("child", "elsewhere", commitA, schema.StatusFailure)
	middle.Sources[0].URL = "https://git.example/org/other"
	middle.Owner = &schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "root"}
	child.Owner = &schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "middle"}
	c := fold.NewState().Apply("c1", delta(1, root, middle, child), start)
	if err := s.Write(t.Context(), []fold.Changes{c}); err != nil {
		t.Fatal(err)
	}
	l, err := landings(t, s).Landing(t.Context(), schema.Endpoint{Repo: "git.example/org/apps", Ref: "dev", Path: "root"}, commitA)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, sub := range l.Subscribers {
		got[sub.Ref.Name] = sub.Asked
	}
	if d := cmp.Diff(map[string]bool{"root": true, "child": false, "middle": false}, got); d != "" {
		t.Errorf("the chain is (-want +got):\n%s", d)
	}
}

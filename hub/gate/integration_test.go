package gate

import (
	"log/slog"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/landing"
	"github.com/landfall-hub/landfall/hub/store"
	"github.com/landfall-hub/landfall/schema"
)

// tree is a reconciler that reads a folder of a repository, and its owner.
func tree(name, owner, repo, folder, commit string, status schema.Status) schema.Reconciler {
	r := schema.Reconciler{
		Kind: "Kustomization", Namespace: "flux-system", Name: name, Status: status,
		Sources:   []schema.Source{{Type: schema.SourceGit, URL: "https://git.example/org/" + repo, Ref: "dev", Path: folder}},
		Attempted: []string{"dev@sha1:" + commit}, Applied: []string{"dev@sha1:" + commit},
	}
	if owner != "" {
		r.Owner = &schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: owner}
	}
	return r
}

// From reports to verdicts over ClickHouse: a root that says Ready passes only
// when all below it is well, whatever stands between.
func TestVerdictsOfTrees(t *testing.T) {
	for name, shared := range map[string]bool{"FromMemory": false, "FromTheStore": true} {
		t.Run(name, func(t *testing.T) { testVerdictsOfTrees(t, shared) })
	}
}

func testVerdictsOfTrees(t *testing.T, shared bool) {
	const ok, bad, busy = schema.StatusSuccess, schema.StatusFailure, schema.StatusInProgress
	root := tree("root", "", "apps", "drone", commitA, ok)
	cases := map[string]struct {
		reason string
		is     []schema.Reconciler
		want   schema.State
		counts schema.Counts
	}{
		"Well":             {"All is well.", []schema.Reconciler{root, tree("mid", "root", "apps", "mid", commitA, ok), tree("leaf", "mid", "other", "leaf", commitB, ok)}, schema.Passed, schema.Counts{Total: 1, Compliant: 1}},
		"ChildFails":       {"A child that fails.", []schema.Reconciler{root, tree("leaf", "root", "apps", "leaf", commitA, bad)}, schema.Failed, schema.Counts{Total: 1, Failed: 1}},
		"ChildElsewhere":   {"One of another repository.", []schema.Reconciler{root, tree("leaf", "root", "other", "leaf", commitB, bad)}, schema.Failed, schema.Counts{Total: 1, Failed: 1}},
		"BelowOneThatIsOK": {"A failing one below one that is well.", []schema.Reconciler{root, tree("mid", "root", "apps", "mid", commitA, ok), tree("leaf", "mid", "apps", "leaf", commitA, bad)}, schema.Failed, schema.Counts{Total: 1, Failed: 1}},
		"BelowElsewhere":   {"Below one that reads another repository.", []schema.Reconciler{root, tree("mid", "root", "other", "mid", commitB, ok), tree("leaf", "mid", "apps", "leaf", commitA, bad)}, schema.Failed, schema.Counts{Total: 1, Failed: 1}},
		"FarBelow": {"However far.", []schema.Reconciler{root, tree("mid", "root", "apps", "mid", commitA, ok), tree("low", "mid", "other", "low", commitB, ok), tree("leaf", "low", "apps", "leaf", commitA, busy)},
			schema.Waiting, schema.Counts{Total: 1, InProgress: 1}},
		"ChildBehind":  {"A child that has not come to the commit.", []schema.Reconciler{root, tree("mid", "root", "apps", "mid", commitA, ok), tree("leaf", "mid", "apps", "leaf", commitB, ok)}, schema.Waiting, schema.Counts{Total: 1, InProgress: 1}},
		"NotItsChild":  {"What fails beside it is not its own.", []schema.Reconciler{root, tree("leaf", "somebody", "apps", "leaf", commitA, bad)}, schema.Passed, schema.Counts{Total: 1, Compliant: 1}},
		"NobodyIsHere": {"Nobody reads it.", []schema.Reconciler{tree("leaf", "", "apps", "leaf", commitA, ok)}, schema.Waiting, schema.Counts{}},
	}
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(store.Options{URL: enginetest.Shared(t), Log: log})
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
	f, err := fleet.New(fleet.Options{Store: s, SilentAfter: 5, Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Register(t.Context(), "c1", schema.Registration{HeartbeatInterval: schema.Duration(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	landings, err := landing.New(landing.Options{Store: s, Shared: shared})
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Options{Landings: landings, Store: s, Fleet: f, Rules: compliance.DefaultRules(), Graph: func(string) compliance.Graph { return compliance.Equality{} }, Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	state, sequence := fold.NewState(), uint64(0)
	report := func(is []schema.Reconciler) {
		sequence++
		r := &schema.Report{Epoch: 1, Sequence: sequence, Mode: schema.ModeSnapshot, Kinds: []string{"Kustomization"}, ObservedAt: time.Now(), Reconcilers: is}
		batch := []fold.Changes{state.Apply("c1", r, time.Now())}
		landings.Storing()
		if err := s.Write(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		landings.Stored(batch)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report(tc.is)
			v, err := g.Ask(t.Context(), question())
			if err != nil || v.State != tc.want || v.Counts != tc.counts {
				t.Errorf("%s %s with %+v (%v): %+v", tc.reason, v.State, v.Counts, err, v.Unfinished)
			}
			report(nil)
			if v, err := g.Ask(t.Context(), question()); err != nil || v.Counts.Total != 0 {
				t.Errorf("after they are gone: %+v, %v", v.Counts, err)
			}
		})
	}
}

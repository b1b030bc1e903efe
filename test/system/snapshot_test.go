package system

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

// have checks which reconcilers a cluster has.
func have(t testing.TB, a *agent, after string, want ...string) {
	t.Helper()
	got := slices.Sorted(maps.Keys(stateRows(t, a.client, a.cluster)))
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after %s (-want +got):\n%s", after, diff)
	}
	if n := total(t, a.client, a.cluster); n != len(want) {
		t.Errorf("after %s the counts add up to %d, want %d", after, n, len(want))
	}
}

func TestASnapshotRemovesOnlyWhatItsKindsCover(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a, neighbour := newAgent(t, h), newAgent(t, h)
	one, two := kustomization("one", repo, "one"), kustomization("two", repo, "two")
	chart := kustomization("one", repo, "charts")
	chart.Kind = "HelmRelease"
	const k, r = "Kustomization/flux-system/", "HelmRelease/flux-system/"
	neighbour.lists(t, one, two)

	a.send(t, schema.Report{Mode: schema.ModeSnapshot, Kinds: []string{"Kustomization", "HelmRelease"}, Reconcilers: []schema.Reconciler{one, two, chart}})
	have(t, a, "a snapshot of both kinds", k+"one", k+"two", r+"one")
	a.lists(t, one)
	have(t, a, "a snapshot of one kind without two", k+"one", r+"one")
	a.sequence++
	body := fmt.Sprintf(`{"epoch":%d,"sequence":%d,"mode":"snapshot","observed_at":"2026-11-20T09:00:00Z","kinds":[]}`, a.epoch, a.sequence)
	if status, text := request(t, http.MethodPost, h.url+"/api/v1/clusters/"+a.cluster+"/reports", "", body); status != http.StatusAccepted {
		t.Fatalf("a snapshot of no kind: %d %s", status, text)
	}
	have(t, a, "a snapshot of no kind", k+"one", r+"one")
	a.says(t, two)
	have(t, a, "a delta", k+"one", k+"two", r+"one")
	a.send(t, schema.Report{Mode: schema.ModeSnapshot, Kinds: []string{"HelmRelease"}})
	have(t, a, "an empty snapshot of the other kind", k+"one", k+"two")
	a.send(t, schema.Report{Mode: schema.ModeDelta, Removed: []schema.ObjectRef{one.Ref(), {Kind: "Kustomization", Namespace: "x", Name: "never"}}})
	have(t, a, "a removal", k+"two")
	have(t, neighbour, "all that on another cluster", k+"one", k+"two")
}

func TestASnapshotInPartsRemovesWithItsLastPartAlone(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	const k = "Kustomization/flux-system/"
	one, two, three, four := kustomization("one", repo, "1"), kustomization("two", repo, "2"), kustomization("three", repo, "3"), kustomization("four", repo, "4")
	part := func(a *agent, n, of int, has ...schema.Reconciler) {
		t.Helper()
		a.send(t, schema.Report{Mode: schema.ModeSnapshot, Kinds: []string{"Kustomization"}, Part: n, Parts: of, Reconcilers: has})
	}
	t.Run("complete", func(t *testing.T) {
		a := newAgent(t, h)
		a.lists(t, one, two, three)
		part(a, 1, 3, one)
		have(t, a, "the first part", k+"one", k+"two", k+"three")
		part(a, 2, 3)
		part(a, 3, 3, four)
		have(t, a, "the last part", k+"one", k+"four")
	})
	t.Run("a part is missing", func(t *testing.T) {
		a := newAgent(t, h)
		a.lists(t, one, two, three)
		part(a, 1, 3, one)
		a.sequence++ // part two never arrives
		part(a, 3, 3, four)
		have(t, a, "parts one and three", k+"one", k+"two", k+"three", k+"four")
	})
	t.Run("something between", func(t *testing.T) {
		a := newAgent(t, h)
		a.lists(t, one, two, three)
		part(a, 1, 2, one)
		a.says(t, four)
		part(a, 2, 2)
		have(t, a, "a delta between the parts", k+"one", k+"two", k+"three", k+"four")
	})
	t.Run("the first part is missing", func(t *testing.T) {
		a := newAgent(t, h)
		a.lists(t, one, two, three)
		part(a, 2, 2, four)
		have(t, a, "the last part alone", k+"one", k+"two", k+"three", k+"four")
	})
	t.Run("a new epoch between", func(t *testing.T) {
		a := newAgent(t, h)
		a.lists(t, one, two, three)
		part(a, 1, 2, one)
		a.register(t)
		part(a, 2, 2, four)
		have(t, a, "parts of two epochs", k+"one", k+"two", k+"three", k+"four")
	})
	t.Run("each part twice", func(t *testing.T) {
		a := newAgent(t, h)
		a.lists(t, one, two, three)
		for n := range 2 {
			for range 2 {
				a.send(t, schema.Report{
					Sequence: uint64(2 + n), Mode: schema.ModeSnapshot, Kinds: []string{"Kustomization"}, Part: n + 1, Parts: 2,
					Reconcilers: []schema.Reconciler{[]schema.Reconciler{one, four}[n]},
				})
			}
		}
		have(t, a, "repeated parts", k+"one", k+"four")
	})
}

func TestAKindThatCannotBeListedAnyMoreIsUnknown(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	app := at(kustomization("app", repo, "app"), commit(1), schema.StatusSuccess)
	a.lists(t, app)
	q := question(repo, "app", commit(1))
	expect(t, ask(t, a.client, q), schema.Passed, "")
	a.send(t, schema.Report{Mode: schema.ModeDelta, UnlistedKinds: []string{"Kustomization"}})
	if v := ask(t, a.client, q); v.State != schema.Waiting || v.Counts.Unknown != 1 {
		t.Errorf("want unknown while the kind cannot be listed: %s", show(v))
	}
	a.lists(t, app)
	expect(t, ask(t, a.client, q), schema.Passed, "")
}

// TestAReconcilerThatMovesLeavesNoGhost follows one through a change of path, of
// ref and of repository, its end, and its return.
func TestAReconcilerThatMovesLeavesNoGhost(t *testing.T) {
	t.Parallel()
	h, repo, other := sharedHub(t), newRepo(), newRepo()
	a := newAgent(t, h)
	source := func(url, ref, path string) schema.Source {
		return schema.Source{Type: schema.SourceGit, URL: url, Ref: ref, Path: path}
	}
	places := []schema.Source{
		source(repo, branch, "old"), source(repo, branch, "new"), source(repo, "stage", "new"), source(other, "stage", "new"), source(repo, branch, "old"),
	}
	const name = "Kustomization/flux-system/app"
	check := func(after string, here int) {
		t.Helper()
		for i, p := range places[:4] {
			q := question(p.URL, p.Path, commit(1))
			q.Ref = p.Ref
			v, want := ask(t, a.client, q), 0
			if here >= 0 && p == places[here] {
				want = 1
			}
			if v.Counts.Total != want || v.Counts.Compliant != want {
				t.Errorf("after %s, place %d (%s %s %s) has %s, want %d", after, i, p.URL, p.Ref, p.Path, show(v), want)
			}
		}
		rows := stateRows(t, a.client, a.cluster)
		switch {
		case here < 0 && len(rows) != 0:
			t.Errorf("after %s there is still %v", after, rows)
		case here >= 0 && (len(rows) != 1 || rows[name].Ref != places[here].Ref || rows[name].Path != places[here].Path || rows[name].Repo != places[here].URL):
			t.Errorf("after %s want one row at %v, got %v", after, places[here], rows)
		}
	}
	for i, p := range places {
		app := kustomization("app", p.URL, p.Path)
		app.Sources[0] = p
		app = at(app, commit(1), schema.StatusSuccess)
		if i == 4 {
			a.send(t, schema.Report{Mode: schema.ModeDelta, Removed: []schema.ObjectRef{app.Ref()}})
			check("it went", -1)
			a.says(t, app)
			check("it came back", 0)
			a.lists(t)
			check("a snapshot without it", -1)
			a.lists(t, app)
			check("a snapshot with it", 0)
			break
		}
		a.says(t, app)
		check("a move", i)
	}
	// Two endpoints of one reconciler, then one of them.
	both := kustomization("app", repo, "old")
	both.Sources = []schema.Source{places[0], places[2]}
	both.Status, both.Applied = schema.StatusSuccess, []string{branch + "@sha1:" + commit(1), "stage@sha1:" + commit(1)}
	a.says(t, both)
	for _, p := range []schema.Source{places[0], places[2]} {
		q := question(p.URL, p.Path, commit(1))
		q.Ref = p.Ref
		expect(t, ask(t, a.client, q), schema.Passed, "")
	}
	one := at(kustomization("app", repo, "old"), commit(1), schema.StatusSuccess)
	one.Sources[0] = places[0]
	a.says(t, one)
	check("its second source went", 0)
}

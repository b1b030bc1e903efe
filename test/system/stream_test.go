package system

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

// FalseGreen 7: the goodbye of an agent that was replaced.
func TestAnOlderEpochChangesNothingCurrentAndHearsTheCurrentOne(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	app := kustomization("app", repo, "app")
	old := a.epoch
	a.lists(t, at(app, commit(1), schema.StatusSuccess))
	a.register(t)
	if a.epoch <= old {
		t.Fatalf("epoch %d after %d: epochs increase", a.epoch, old)
	}
	a.lists(t, at(app, commit(2), schema.StatusSuccess))
	before := stateRows(t, a.client, a.cluster)

	for what, late := range map[string]schema.Report{
		"a delta":    {Mode: schema.ModeDelta, Reconcilers: []schema.Reconciler{at(app, commit(3), schema.StatusFailure)}},
		"a snapshot": {Mode: schema.ModeSnapshot, Kinds: []string{"Kustomization"}},
		"a removal":  {Mode: schema.ModeDelta, Removed: []schema.ObjectRef{app.Ref()}},
	} {
		late.Epoch, late.Sequence = old, 1_000_000+uint64(len(what))
		if answer := a.send(t, late); answer.CurrentEpoch != a.epoch {
			t.Errorf("%s of epoch %d heard of epoch %d, the current one is %d", what, old, answer.CurrentEpoch, a.epoch)
		}
		if diff := cmp.Diff(before, stateRows(t, a.client, a.cluster), ignoreLastSeen); diff != "" {
			t.Errorf("%s of an older epoch changed the current state (-before +after):\n%s", what, diff)
		}
	}
	expect(t, ask(t, a.client, question(repo, "app", commit(2))), schema.Passed, "")
}

func TestALowerSequenceChangesNothingCurrent(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	app := kustomization("app", repo, "app")
	a.send(t, schema.Report{Sequence: 7, Mode: schema.ModeDelta, Reconcilers: []schema.Reconciler{at(app, commit(2), schema.StatusSuccess)}})
	before := stateRows(t, a.client, a.cluster)
	a.send(t, schema.Report{Sequence: 6, Mode: schema.ModeDelta, Reconcilers: []schema.Reconciler{at(app, commit(1), schema.StatusFailure)}})
	if diff := cmp.Diff(before, stateRows(t, a.client, a.cluster), ignoreLastSeen); diff != "" {
		t.Errorf("a lower sequence changed the current state (-before +after):\n%s", diff)
	}
}

func TestASupersededAgentHearsTheCurrentEpochInItsHeartbeat(t *testing.T) {
	t.Parallel()
	h := sharedHub(t)
	first := newAgent(t, h)
	second := &agent{client: first.client, cluster: first.cluster}
	second.register(t)
	want := schema.HeartbeatAnswer{CurrentEpoch: second.epoch}
	if diff := cmp.Diff(want, first.beats(t)); diff != "" {
		t.Errorf("the superseded agent's heartbeat (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, second.beats(t)); diff != "" {
		t.Errorf("the current agent's heartbeat (-want +got):\n%s", diff)
	}
}

func TestAnEpochThatWasNeverIssuedIsRefused(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	a.lists(t, at(kustomization("app", repo, ""), commit(1), schema.StatusSuccess))
	before := stateRows(t, a.client, a.cluster)
	_, err := a.try(t.Context(), schema.Report{Epoch: a.epoch + 1, Sequence: 1, Mode: schema.ModeSnapshot, Kinds: []string{"Kustomization"}})
	refused(t, err, http.StatusConflict, schema.CodeFutureEpoch)
	_, err = a.client.Heartbeat(t.Context(), a.cluster, schema.Heartbeat{Epoch: a.epoch + 1})
	refused(t, err, http.StatusConflict, schema.CodeFutureEpoch)
	if diff := cmp.Diff(before, stateRows(t, a.client, a.cluster), ignoreLastSeen); diff != "" {
		t.Errorf("the refused report changed something (-before +after):\n%s", diff)
	}
}

func TestAClusterThatNeverRegisteredIsNotFound(t *testing.T) {
	t.Parallel()
	a := &agent{client: sharedHub(t).client(t), cluster: unique("stranger"), epoch: 1}
	_, err := a.try(t.Context(), schema.Report{Mode: schema.ModeDelta})
	refused(t, err, http.StatusNotFound, schema.CodeNotRegistered)
	_, err = a.client.Heartbeat(t.Context(), a.cluster, schema.Heartbeat{Epoch: 1})
	refused(t, err, http.StatusNotFound, schema.CodeNotRegistered)
}

func TestAHeartbeatWithAnotherDigestAsksForASnapshot(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	one, two := at(kustomization("one", repo, "one"), commit(1), schema.StatusSuccess), at(kustomization("two", repo, "two"), commit(1), schema.StatusFailure)
	a.lists(t, one, two)
	var right schema.Digest
	right.Toggle(one.Digest())
	right.Toggle(two.Digest())
	wrong := right
	wrong[0]++
	for digest, resync := range map[string]bool{right.String(): false, wrong.String(): true, "": false} {
		answer, err := a.client.Heartbeat(t.Context(), a.cluster, schema.Heartbeat{Epoch: a.epoch, Sequence: a.sequence, Digest: digest})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Resync != resync {
			t.Errorf("digest %q with %s at the hub: resync is %t", digest, right, answer.Resync)
		}
	}
}

// TestASilentClusterIsUnknownAndBlocksUntilItComesBack is FalseGreen 2. It waits for a real silence,
// the shortest there is: five heartbeats of a second.
func TestASilentClusterIsUnknownAndBlocksUntilItComesBack(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	q := question(repo, "app", commit(1))
	superseded := newAgent(t, h, everySecond)
	quiet := &agent{client: superseded.client, cluster: superseded.cluster}
	quiet.register(t, everySecond)
	lively := newAgent(t, h)
	app := kustomization("app", repo, "app")
	lively.lists(t, at(app, commit(1), schema.StatusInProgress))
	quiet.lists(t, at(app, commit(1), schema.StatusSuccess))

	v := askUntil(t, quiet.client, q, "the silent cluster is unknown", func(v *schema.Verdict) bool { return v.Counts.Unknown == 1 })
	expect(t, v, schema.Waiting, v.Reason)
	if v.Counts != (schema.Counts{Total: 2, Unknown: 1, InProgress: 1}) || v.Unfinished[0].Cluster != quiet.cluster || v.Unfinished[0].Reason == "" {
		t.Errorf("want the silent cluster first, and why: %s", show(v))
	}
	row, err := quiet.client.Cluster(t.Context(), quiet.cluster)
	if err != nil || row.Status != schema.ClusterSilent {
		t.Errorf("want it listed as silent: %v, %v", row.Status, err)
	}
	if got := stateRows(t, quiet.client, quiet.cluster)["Kustomization/flux-system/app"]; got.Status != schema.StatusUnknown {
		t.Errorf("want its state unknown: %+v", got)
	}
	if !superseded.beats(t).Silent {
		t.Error("its superseded agent is not told that it may register")
	}
	lively.says(t, at(app, commit(1), schema.StatusSuccess))
	if v := ask(t, quiet.client, q); v.State != schema.Waiting || v.Counts.Unknown != 1 {
		t.Errorf("want the silent cluster alone to block: %s", show(v))
	}
	expect(t, ask(t, quiet.client, question(repo, "app", commit(1), "unknown", "exclude")), schema.Passed, "")

	answer := later(t, quiet.client, q, time.Minute)
	quiet.beats(t)
	expect(t, (<-answer).verdict, schema.Passed, "")
}

func everySecond(r *schema.Registration) { r.HeartbeatInterval = schema.Duration(time.Second) }

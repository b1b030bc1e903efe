package system

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/internal/polltest"
	"github.com/landfall-hub/landfall/schema"
)

// ignoreLastSeen leaves out what every sign of life moves.
var ignoreLastSeen = cmpopts.IgnoreFields(schema.ClusterState{}, "LastSeen")

// answer is what somebody who waited heard, and when.
type answer struct {
	verdict *schema.Verdict
	at      time.Time
}

// later asks in the background; the channel is closed without an answer when
// the question failed.
func later(t testing.TB, c *hubclient.Client, q hubclient.Question, wait time.Duration) <-chan answer {
	t.Helper()
	answers := make(chan answer, 1)
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		v, err := c.Compliance(t.Context(), q, wait)
		if err != nil {
			t.Errorf("asking for %s: %v", q.Commit, err)
			v = &schema.Verdict{}
		}
		answers <- answer{v, time.Now()}
	}()
	return answers
}

// FalseGreen 3: nobody to ask.
func TestZeroTargetsAreDeniedByDefault(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	t.Run("waiting, then failed when the deadline is over", func(t *testing.T) {
		t.Parallel()
		v := ask(t, a.client, question(repo, "", commit(1)))
		if v.State != schema.Waiting || v.Counts.Total != 0 {
			t.Errorf("want waiting for nobody: %s", show(v))
		}
		// A deadline of its own is a gate of its own, with its own first question.
		v = askUntil(t, a.client, question(repo, "", commit(1), "progress_deadline", "1s"), "failed", isFinal)
		expect(t, v, schema.Failed, "zero_targets")
	})
	t.Run("allowed", func(t *testing.T) {
		t.Parallel()
		expect(t, ask(t, a.client, question(repo, "", commit(1), "zero_targets", "allow")), schema.Passed, "")
	})
	t.Run("two required", func(t *testing.T) {
		t.Parallel()
		repo, a, b := newRepo(), newAgent(t, h), newAgent(t, h)
		app := at(kustomization("app", repo, "app"), commit(1), schema.StatusSuccess)
		a.lists(t, app)
		expect(t, ask(t, a.client, question(repo, "", commit(1))), schema.Passed, "")
		q := question(repo, "", commit(1), "zero_targets", "require:2", "progress_deadline", "1s")
		expect(t, askUntil(t, a.client, q, "failed", isFinal), schema.Failed, "zero_targets")
		b.lists(t, app)
		expect(t, ask(t, a.client, q), schema.Passed, "")
	})
}

func isFinal(v *schema.Verdict) bool { return v.State.Final() }

func TestAWaitForWhatIsFinalAlreadyAnswersAtOnce(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	a.lists(t, at(kustomization("good", repo, "good"), commit(1), schema.StatusSuccess), at(kustomization("bad", repo, "bad"), commit(1), schema.StatusFailure))
	for path, state := range map[string]schema.State{"good": schema.Passed, "bad": schema.Failed} {
		began := time.Now()
		// An answer that is held back comes after five minutes: the client gives
		// up before it.
		v := askWaiting(t, a.client, question(repo, path, commit(1)), 5*time.Minute)
		t.Logf("%s after %s", v.State, time.Since(began))
		if v.State != state {
			t.Errorf("want %s: %s", state, show(v))
		}
	}
}

// TestAWaitAnswersWhenTheVerdictChanges has a hub of its own, whose count of
// those who wait is this test's.
func TestAWaitAnswersWhenTheVerdictChanges(t *testing.T) {
	t.Parallel()
	h, repo := newHub(t), newRepo()
	a := newAgent(t, h)
	app := kustomization("app", repo, "app")
	a.lists(t, at(app, commit(0), schema.StatusSuccess))
	waiting := func(n int) {
		t.Helper()
		polltest.Until(t, fmt.Sprintf("%d wait", n), func() bool { return int(gauge(t, h, "landfall_gate_watchers")) == n })
	}
	var slowest time.Duration
	for n := 1; n <= 5; n++ {
		q := question(repo, "app", commit(n))
		poll, stream := later(t, a.client, q, time.Minute), open(t, a.client, q)
		if v := stream.next(); v.State != schema.Waiting {
			t.Fatalf("the stream begins with %s", show(v))
		}
		waiting(2)
		a.says(t, at(app, commit(n), schema.StatusInProgress))
		heard := time.Now()
		if v := (<-poll); v.verdict.State != schema.Waiting || v.verdict.Counts.InProgress != 1 {
			t.Errorf("want in progress: %s", show(v.verdict))
		} else {
			slowest = max(slowest, v.at.Sub(heard))
		}
		if v := stream.next(); v.Counts.InProgress != 1 {
			t.Errorf("want the stream to tell of progress: %s", show(v))
		}
		poll = later(t, a.client, q, time.Minute)
		waiting(2)
		a.says(t, at(app, commit(n), schema.StatusSuccess))
		heard = time.Now()
		v := <-poll
		expect(t, v.verdict, schema.Passed, "")
		slowest = max(slowest, v.at.Sub(heard))
		expect(t, stream.next(), schema.Passed, "")
		slowest = max(slowest, time.Since(heard))
		if _, err := stream.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("want the stream to end after passed, got %v", err)
		}
		waiting(0)
	}
	t.Logf("the slowest answer came %s after the report's", slowest)
}

// stream is an open stream of verdicts.
type stream struct {
	*hubclient.Stream
	t testing.TB
}

func open(t testing.TB, c *hubclient.Client, q hubclient.Question) *stream {
	t.Helper()
	s, err := c.ComplianceStream(t.Context(), q)
	if err != nil {
		t.Fatalf("opening a stream: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &stream{s, t}
}

func (s *stream) next() *schema.Verdict {
	s.t.Helper()
	v, err := s.Next()
	if err != nil {
		s.t.Fatalf("reading the stream: %v", err)
	}
	return v
}

func TestAWaitThatEndsGivesTheVerdictOfThatMoment(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	a.lists(t, at(kustomization("app", repo, "app"), commit(1), schema.StatusInProgress))
	q := question(repo, "app", commit(1))
	before := ask(t, a.client, q)
	after := askWaiting(t, a.client, q, time.Second)
	if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(schema.Verdict{}, "EvaluatedAt"), cmpopts.EquateComparable(schema.Percent{}, schema.ZeroTargets{})); diff != "" {
		t.Errorf("the verdict changed while nothing happened (-before +after):\n%s", diff)
	}
	if waited := after.EvaluatedAt.Sub(before.EvaluatedAt); waited < 900*time.Millisecond {
		t.Errorf("it was judged %s after the first question: before the wait was over", waited)
	}
}

func TestTheNextQuestionSeesWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	app := kustomization("app", repo, "app")
	began := time.Now()
	const rounds = 200
	for n := range rounds {
		status, state := schema.StatusSuccess, schema.Passed
		if n%3 == 2 {
			status, state = schema.StatusFailure, schema.Failed
		}
		app = at(app, commit(n), status)
		a.says(t, app)
		if v := ask(t, a.client, question(repo, "app", commit(n))); v.State != state {
			t.Fatalf("round %d: want %s: %s", n, state, show(v))
		}
		if n%20 != 0 {
			continue
		}
		if got := stateRows(t, a.client, a.cluster)["Kustomization/flux-system/app"]; got.AttemptedCommit != commit(n) || got.Status != status {
			t.Fatalf("round %d: the state shows %+v", n, got)
		}
	}
	t.Logf("a report and a question take %s", time.Since(began)/rounds)
}

func TestARootThatIsReadyWaitsForItsChildren(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	root := kustomization("root", repo, "clusters/drone")
	child := ownedBy(kustomization("child", newRepo(), "child"), root)
	grandchild := ownedBy(kustomization("grandchild", newRepo(), "grandchild"), child)
	grandchild.Kind = "HelmRelease"
	q := question(repo, "clusters/drone", commit(1))
	elsewhere := commit(77)
	a.lists(t, at(root, commit(1), schema.StatusSuccess), at(child, elsewhere, schema.StatusFailure), at(grandchild, elsewhere, schema.StatusSuccess))
	named := func(v *schema.Verdict, state schema.State, what string) {
		t.Helper()
		if v.State != state || len(v.Unfinished) != 1 || !strings.Contains(v.Unfinished[0].Reason, what) {
			t.Errorf("want %s, naming %s: %s", state, what, show(v))
		}
	}
	named(ask(t, a.client, q), schema.Failed, "Kustomization/flux-system/child")
	expect(t, ask(t, a.client, question(repo, "clusters/drone", commit(1), "children", "ignore")), schema.Passed, "")

	a.says(t, at(child, elsewhere, schema.StatusSuccess))
	expect(t, ask(t, a.client, q), schema.Passed, "")

	other := ownedBy(kustomization("other", newRepo(), "other"), child)
	a.says(t, at(other, elsewhere, schema.StatusInProgress))
	named(ask(t, a.client, q), schema.Waiting, "Kustomization/flux-system/other")
	a.says(t, at(other, elsewhere, schema.StatusFailure))
	named(ask(t, a.client, q), schema.Failed, "Kustomization/flux-system/other")
	waiting := later(t, a.client, question(repo, "clusters/drone", commit(1), "max_failures", "1", "min_compliant", "100%", "mandatory", "no=body"), time.Second)
	a.says(t, at(other, elsewhere, schema.StatusSuccess))
	<-waiting
	expect(t, ask(t, a.client, q), schema.Passed, "")
}

func TestASoakPassesWhenItElapses(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	const soak = 2 * time.Second
	app := kustomization("app", repo, "app")
	q := question(repo, "app", commit(1), "min_success_time", soak.String())
	app = at(app, commit(1), schema.StatusSuccess)
	// held asks after a success. On a machine so slow that the soak is over by
	// then, passing is right.
	held := func(what string, succeeds func()) {
		t.Helper()
		began := time.Now()
		succeeds()
		v := ask(t, a.client, q)
		if v.Counts.Compliant != 1 || v.State != schema.Waiting && time.Since(began) < soak {
			t.Errorf("want %s to hold it back: %s", what, show(v))
		}
	}
	held("the soak", func() { a.lists(t, app) })
	began := time.Now()
	v := askWaiting(t, a.client, q, time.Minute)
	expect(t, v, schema.Passed, "")
	t.Logf("a soak of 2s fired %s after it was asked for", time.Since(began))
	// A failure at the commit begins it anew, also one that names nothing applied.
	bare := at(kustomization("app", repo, "app"), commit(1), schema.StatusFailure)
	for what, failing := range map[string]schema.Reconciler{"in full": at(app, commit(1), schema.StatusFailure), "without what is applied": bare} {
		a.says(t, failing)
		if v := ask(t, a.client, q); v.State == schema.Passed {
			t.Errorf("it fails, reported %s, and the soak goes on: %s", what, show(v))
		}
		held("a soak that began anew after a failure that was reported "+what, func() { a.says(t, app) })
		expect(t, askUntil(t, a.client, q, "passed", isFinal), schema.Passed, "")
	}
}

func TestAFailedGatePassesWhenSuccessComesLate(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	app := kustomization("app", repo, "app")
	q := question(repo, "app", commit(1), "progress_deadline", "1s")
	a.lists(t, at(app, commit(1), schema.StatusInProgress))
	v := askUntil(t, a.client, q, "failed", isFinal)
	if v.State != schema.Failed || v.Counts.InProgress != 1 || v.Reason == "" {
		t.Errorf("want the deadline to fail it, and say so: %s", show(v))
	}
	t.Logf("the reason of a deadline is %q", v.Reason)
	a.says(t, at(app, commit(1), schema.StatusSuccess))
	expect(t, ask(t, a.client, q), schema.Passed, "")
}

// TestAGatesClocksOutliveTheHub restarts the hub between the questions.
func TestAGatesClocksOutliveTheHub(t *testing.T) {
	t.Parallel()
	h, repo := newHub(t), newRepo()
	a := newAgent(t, h)
	app, slow := at(kustomization("app", repo, "app"), commit(1), schema.StatusSuccess), kustomization("slow", repo, "slow")
	a.lists(t, app, at(slow, commit(1), schema.StatusInProgress))
	soaked, deadline := question(repo, "app", commit(1), "min_success_time", "1s"), question(repo, "slow", commit(1), "progress_deadline", "1h")
	ask(t, a.client, soaked)
	before := ask(t, a.client, deadline)
	if err := h.stop(t); err != nil {
		t.Fatalf("stopping the hub: %v", err)
	}
	h.start(t)
	after := ask(t, a.client, deadline)
	if !after.DeadlineAt.Equal(before.DeadlineAt) || after.State != schema.Waiting {
		t.Errorf("the deadline was %s, after the restart it is %s: %s", before.DeadlineAt, after.DeadlineAt, show(after))
	}
	expect(t, askUntil(t, a.client, soaked, "passed", isFinal), schema.Passed, "")
	// What was reached stays reached: a later commit, a failure after it.
	a.says(t, at(app, commit(2), schema.StatusFailure))
	for _, q := range []hubclient.Question{question(repo, "app", commit(1)), soaked} {
		v := ask(t, a.client, q)
		expect(t, v, schema.Passed, "")
		if len(v.Currently) != 1 || v.Currently[0].Status != schema.StatusFailure {
			t.Errorf("want it passed and failing now, at a later commit: %+v", v.Currently)
		}
	}
}

package compliance_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/schema"
)

// The false greens and hangs that other gates had, one test each.

// expectState compares state and reason of a verdict.
func expectState(t *testing.T, when string, got schema.Verdict, state schema.State, reason string) {
	t.Helper()
	if got.State != state || got.Reason != reason {
		t.Errorf("%s: want %s %q, got %s %q with %+v", when, state, reason, got.State, got.Reason, got.Counts)
	}
}

func TestFalseGreenPreviousRevision(t *testing.T) {
	// 1. The status of the previous revision is still there, and green.
	s := compliantOn("drone-01")
	source("c1", "c1", run("c1", 59))(&s)
	expectState(t, "success at the previous commit", compliance.Evaluate(ask(s)).Verdict, schema.Waiting, "")
	source("c1", "c2", run("c1", 59))(&s)
	expectState(t, "the same while the new one is tried", compliance.Evaluate(ask(s)).Verdict, schema.Waiting, "")
	source("c2", "c2", run("c1", 59), compliance.Run{Commit: "c2"})(&s)
	s.Status = schema.StatusInProgress
	expectState(t, "the new one applied and not healthy yet", compliance.Evaluate(ask(s)).Verdict, schema.Waiting, "")
	source("c2", "c2", run("c1", 59), run("c2", 60))(&s)
	s.Status = schema.StatusSuccess
	expectState(t, "success at the new one", compliance.Evaluate(ask(s)).Verdict, schema.Passed, "")
}

func TestFalseGreenDisconnectedCluster(t *testing.T) {
	// 2. A cluster that is cut off keeps its last status.
	gone := compliantOn("drone-02")
	gone.Reporter.LastSeen = at(30)
	in := ask(compliantOn("drone-01"), gone)
	got := compliance.Evaluate(in).Verdict
	expectState(t, "one of two cut off", got, schema.Waiting, "")
	if got.Unfinished[0].Reason != "no heartbeat for 30m" {
		t.Errorf("why: got %q", got.Unfinished[0].Reason)
	}
	gone.Reporter.LastSeen = now
	expectState(t, "and back", compliance.Evaluate(in).Verdict, schema.Passed, "")
}

func TestFalseGreenZeroTargets(t *testing.T) {
	// 3. Nobody subscribes: neither success nor waiting for ever.
	in := ask()
	r := compliance.Evaluate(in)
	expectState(t, "nobody yet", r.Verdict, schema.Waiting, "zero_targets")
	if !r.NextAt.Equal(r.Verdict.DeadlineAt) {
		t.Errorf("it must look again at the deadline %s, not at %s", r.Verdict.DeadlineAt, r.NextAt)
	}
	in.Now, in.Progress = r.NextAt, r.Progress
	expectState(t, "nobody at the deadline", compliance.Evaluate(in).Verdict, schema.Failed, "zero_targets")
}

func TestFalseGreenNewerCommit(t *testing.T) {
	// 4. A newer commit came during the wait, and the asked one is never seen.
	s := compliantOn("drone-01")
	source("c3", "c3", run("c1", 1), run("c3", 58))(&s)
	expectState(t, "only the newer one was applied", compliance.Evaluate(ask(s)).Verdict, schema.Passed, "")
}

func TestFalseGreenRollback(t *testing.T) {
	// 5. A rollback to an older commit that keeps showing the newer one.
	s := compliantOn("drone-01")
	source("c1", "c1", run("c1", 1), run("c2", 10), run("c1", 50))(&s)
	in := ask(s)
	got := compliance.Evaluate(in).Verdict
	expectState(t, "back at the older one", got, schema.Waiting, "")
	if got.Unfinished[0].Reason != "rolled back" {
		t.Errorf("why: got %q", got.Unfinished[0].Reason)
	}
	in.Commit = "c1"
	in.Policy.MinSuccessTime = minutes(30)
	expectState(t, "the older one itself, which never left", compliance.Evaluate(in).Verdict, schema.Passed, "")
}

func TestFalseGreenUntouchedPath(t *testing.T) {
	// 6. A commit of a monorepo that does not touch the target's path.
	s := compliantOn("drone-01")
	source("c1", "c1", run("c1", 1))(&s)
	folder("idle")(&s)
	expectState(t, "another folder changed", compliance.Evaluate(ask(s)).Verdict, schema.Passed, "")
}

func TestFalseGreenSoakReset(t *testing.T) {
	// 10. The soak began anew because a later commit took the stage.
	s := compliantOn("drone-01")
	in := ask(s)
	in.Policy.MinSuccessTime = minutes(30)
	in.Now = at(39)
	heardNow(&in)
	r := compliance.Evaluate(in)
	expectState(t, "29 minutes of 30", r.Verdict, schema.Waiting, "min_success_time")
	if !r.NextAt.Equal(at(40)) {
		t.Errorf("it must look again when the soak is over, not at %s", r.NextAt)
	}
	source("c3", "c3", run("c2", 10), compliance.Run{Commit: "c3"})(&in.Subscribers[0])
	in.Subscribers[0].Status = schema.StatusInProgress
	in.Now = r.NextAt
	expectState(t, "a later commit is on its way", compliance.Evaluate(in).Verdict, schema.Passed, "")
}

func TestFalseGreenMissedHeartbeats(t *testing.T) {
	// 8. Everybody is called offline after one heartbeat that was missed. (7, two
	// agents of one cluster, is about reports: hub, test/system, test/e2e.)
	s := compliantOn("drone-01")
	interval := s.Reporter.HeartbeatInterval
	in := ask(s)
	for missed := range 5 {
		s.Reporter.LastSeen = now.Add(-time.Duration(missed) * interval)
		expectState(t, fmt.Sprintf("%d missed", missed), compliance.Evaluate(in).Verdict, schema.Passed, "")
	}
	s.Reporter.LastSeen = now.Add(-5*interval - time.Second)
	expectState(t, "more than five missed", compliance.Evaluate(in).Verdict, schema.Waiting, "")
}

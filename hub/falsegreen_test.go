package hub

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// The false greens and hangs of other gates, on real repositories and over the
// API; the numbers are those of the design's notes. hub/compliance has the same
// of the pure rules (TestFalseGreen…), test/e2e those that real reconcilers
// bring; number 9 is about commit statuses, which are not written yet.
func TestFalseGreens(t *testing.T) {
	s := newStage(t, "previous", "newer", "rollback", "untouched", "base", "soak", "cut-off", "nobody", "two-agents", "missed")
	t.Run("FalseGreen 1: the previous revision's status", func(t *testing.T) {
		a := s.agent(t, "previous")
		c1, c2 := a.commit(one), a.commit(two)
		a.says(c1, schema.StatusSuccess)
		a.expect("success at the one before", c2, notFetched)
		a.says(c2, schema.StatusInProgress)
		a.expect("on its way", c2, `waiting in_progress "in_progress"`)
		a.says(c2, schema.StatusSuccess)
		a.expect("there", c2, passed)
	})
	t.Run("FalseGreen 4: a newer commit during the wait", func(t *testing.T) {
		a := s.agent(t, "newer")
		c1, c2 := a.commit(one), a.commit(two)
		a.says(c1, schema.StatusSuccess)
		a.expect("before", c2, notFetched)
		c3 := a.commit(three)
		a.says(c3, schema.StatusSuccess)
		a.expect("only the newer one was applied", c2, passed)
		a.expect("which counts as well", c3, passed)
	})
	t.Run("FalseGreen 5: a rollback that keeps showing the newer commit", func(t *testing.T) {
		a := s.agent(t, "rollback")
		c1, c2 := a.commit(one), a.commit(two)
		a.says(c1, schema.StatusSuccess)
		a.says(c2, schema.StatusSuccess)
		a.expect("there", c2, passed)
		a.says(c1, schema.StatusSuccess)
		a.expect("and gone", c2, `waiting pending "rolled back"`)
		a.expect("what it went back to", c1, passed)
	})
	t.Run("FalseGreen 6: a commit that does not touch the path", func(t *testing.T) {
		a := s.agent(t, "untouched")
		c1 := a.commit(one)
		c2 := a.commit(map[string]string{"drone/a": "1", "large/a": "2"})
		c3 := a.commit(map[string]string{"drone/a": "3", "large/a": "2"})
		a.says(c1, schema.StatusSuccess)
		a.expect("another folder changed", c2, passed)
		a.expect("and then its own", c3, notFetched)
		a.says(c1, schema.StatusFailure)
		a.expect("untouched and failing", c2, notFetched)
	})
	t.Run("FalseGreen 6: but what the path reads", func(t *testing.T) {
		a := s.agent(t, "base")
		kustomization := "resources: [../base]\n"
		c1 := a.commit(map[string]string{"drone/kustomization.yaml": kustomization, "base/a": "1"})
		c2 := a.commit(map[string]string{"drone/kustomization.yaml": kustomization, "base/a": "2"})
		a.says(c1, schema.StatusSuccess)
		a.expect("the base changed", c2, notFetched)
		a.says(c2, schema.StatusSuccess)
		a.expect("and was applied", c2, passed)
	})
	t.Run("FalseGreen 10: a soak that a later commit resets", func(t *testing.T) {
		a := s.agent(t, "soak")
		c1, c2 := a.commit(one), a.commit(two)
		a.says(c1, schema.StatusSuccess)
		c3 := a.commit(three)
		a.expect("before", c2, notFetched, "min_success_time", "2s")
		a.says(c2, schema.StatusSuccess)
		a.says(c3, schema.StatusInProgress)
		a.expect("the later one is on its way all the time", c2, passed, "min_success_time", "2s")
	})
	// From here on the hub's clock goes ahead.
	t.Run("FalseGreen 2: a disconnected cluster that still shows success", func(t *testing.T) {
		a := s.agentOf(t, "cut-off", "cut-off", heartbeat)
		c1 := a.commit(one)
		a.says(c1, schema.StatusSuccess)
		a.expect("before", c1, passed)
		s.passes(5*heartbeat + time.Second)
		if v := a.ask(c1); v.State != schema.Waiting || v.Counts.Unknown != 1 || !strings.HasPrefix(v.Unfinished[0].Reason, "no heartbeat for ") {
			t.Errorf("cut off: %+v", v)
		}
		if v := a.ask(c1, "unknown", "exclude"); v.State != schema.Waiting || v.Reason != "zero_targets" {
			t.Errorf("left out of the count, it leaves nobody to pass for: %+v", v)
		}
		a.beats()
		a.expect("and back", c1, passed)
	})
	t.Run("FalseGreen 3: zero targets", func(t *testing.T) {
		a := s.agent(t, "nobody")
		c1 := a.commit(one) // and nobody reads it
		a.expect("nobody yet", c1, "waiting, 0 in all")
		a.expect("where that is allowed", c1, "passed, 0 in all", "zero_targets", "allow")
		s.passes(11 * time.Minute)
		a.expect("nobody until the deadline", c1, "failed, 0 in all")
		if v := a.ask(c1); v.Reason != "zero_targets" {
			t.Errorf("why: %+v", v)
		}
		a.says(c1, schema.StatusSuccess)
		a.expect("somebody after all", c1, passed)
	})
	t.Run("FalseGreen 7: two agents of one cluster", func(t *testing.T) {
		old := s.agent(t, "two-agents")
		c1, c2 := old.commit(one), old.commit(two)
		old.says(c1, schema.StatusSuccess)
		now := s.agent(t, "two-agents")
		now.says(c2, schema.StatusSuccess)
		now.expect("the new one has taken over", c2, passed)
		old.says(c1, schema.StatusFailure)
		now.expect("what the old one sees", c2, passed)
		old.reports(schema.Report{Mode: schema.ModeSnapshot, Kinds: []string{"Kustomization"}})
		now.expect("its goodbye", c2, passed)
		old.reports(schema.Report{Mode: schema.ModeDelta, Removed: []schema.ObjectRef{{Kind: "Kustomization", Namespace: "flux-system", Name: "drone"}}})
		now.expect("and what it removes", c2, passed)
		c3 := old.commit(three)
		now.says(c3, schema.StatusFailure)
		old.says(c3, schema.StatusSuccess)
		now.expect("nor does its success make green what fails", c3, string(schema.Failed)+` failed "failure"`)
		if answer := old.beats(); answer.CurrentEpoch != now.epoch || answer.Silent {
			t.Errorf("the old one is not told who is there: %+v", answer)
		}
	})
	t.Run("FalseGreen 8: all offline after one missed heartbeat", func(t *testing.T) {
		const clusters = 60
		agents := make([]*agent, clusters)
		var commit string
		for i := range agents {
			agents[i] = s.agentOf(t, fmt.Sprintf("missed-%d", i), "missed", heartbeat)
			if i == 0 {
				commit = agents[0].commit(one)
			}
			agents[i].says(commit, schema.StatusSuccess)
		}
		// One after the other is missed, each a little late besides.
		for missed := 1; missed <= 4; missed++ {
			s.passes(heartbeat + heartbeat/10)
			if v := agents[0].ask(commit); v.State != schema.Passed || v.Counts.Compliant != clusters || v.Counts.Unknown != 0 {
				t.Errorf("%d missed: %s, %+v", missed, v.State, v.Counts)
			}
		}
		for _, a := range agents[:clusters/2] {
			a.beats()
		}
		s.passes(heartbeat)
		if v := agents[0].ask(commit); v.State != schema.Waiting || v.Counts.Compliant != clusters/2 || v.Counts.Unknown != clusters/2 {
			t.Errorf("those who stayed away: %s, %+v", v.State, v.Counts)
		}
	})
}

// heartbeat is the interval of agents that are there for their silence.
const heartbeat = 100 * time.Second // a slow machine takes less than half of it, and five of them are within the deadline

// ask asks once.
func (a *agent) ask(commit string, policy ...string) *schema.Verdict {
	a.t.Helper()
	v, err := a.client.Compliance(a.t.Context(), a.question(commit, policy...), 0)
	if err != nil {
		a.t.Fatal(err)
	}
	return v
}

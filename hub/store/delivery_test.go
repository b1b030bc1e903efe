package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

func TestDelivery(t *testing.T) {
	s := open(t)
	w := newTeller(t, s)
	const ok, bad, busy = schema.StatusSuccess, schema.StatusFailure, schema.StatusInProgress
	tries := func(r schema.Reconciler, commit string) schema.Reconciler {
		r.Attempted = []string{"dev@sha1:" + commit}
		return r
	}
	r := func(path, commit string, status schema.Status) schema.Reconciler {
		return reconciler("r", path, commit, status)
	}
	commitC := strings.Repeat("c", 40)
	// c1 goes A, fails at B for 4 minutes, B, back to A; through two endpoints of one target.
	w.says("c1", minutes(0), r("a", commitA, ok))
	w.says("c1", minutes(10), tries(r("a", commitA, bad), commitB))
	w.says("c1", minutes(11), tries(r("a", commitA, busy), commitB))
	w.says("c1", minutes(12), tries(r("a", commitA, bad), commitB))
	w.says("c1", minutes(14), r("a/sub", commitB, ok))
	w.says("c1", minutes(20), r("a", commitA, ok))
	// c2 does the same without a failure, earlier; then fails for good.
	w.says("c2", minutes(1), r("a", commitA, ok))
	w.says("c2", minutes(8), r("a", commitB, ok))
	w.says("c2", minutes(9), r("a", commitA, ok))
	w.says("c2", minutes(25), tries(r("a", commitA, bad), commitC))
	// c3 fails for 6 minutes, and fails again until it is gone; its clock runs ahead.
	w.says("c3", minutes(2), r("a", commitA, bad))
	ahead := r("a", commitA, ok)
	ahead.ObservedAt = minutes(500)
	w.says("c3", minutes(8), ahead)
	w.says("c3", minutes(12), r("a", commitA, bad))
	w.sends("c3", minutes(13), &schema.Report{Mode: schema.ModeDelta, ObservedAt: minutes(13), Removed: []schema.ObjectRef{{Kind: "Kustomization", Namespace: "flux-system", Name: "r"}}})
	// Another target, and what is none of them; what is late; what is not over yet.
	w.says("c4", minutes(3), r("b", commitB, ok))
	w.says("c4", minutes(4), reconciler("x", "c", commitB, bad))
	late := delta(1, r("a", commitC, ok))
	late.Epoch = 0
	w.write(fold.Late("c1", late, minutes(5)))
	w.says("c1", minutes(40), r("a", commitC, ok))

	q := record.DeliveryQuery{Targets: [][]schema.Endpoint{{apps("b")}, {apps("a"), apps("a/sub")}, {}}, From: minutes(9), To: minutes(30)}
	got, err := s.Delivery(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got.Courses, func(a, b record.Course) int { return strings.Compare(steps(a), steps(b)) })
	want := record.Delivery{
		Commits: []record.DeliveredCommit{
			{Target: 0, Commit: commitB, Tried: minutes(3), Landed: minutes(3)},
			{Target: 1, Commit: commitA, Tried: minutes(0), Failed: minutes(2), Landed: minutes(0)},
			{Target: 1, Commit: commitB, Tried: minutes(8), Failed: minutes(10), Landed: minutes(8)},
			{Target: 1, Commit: commitC, Tried: minutes(25), Failed: minutes(25)},
		},
		Courses: []record.Course{
			{Target: 1, Steps: []record.Step{{Commit: commitA}, {Commit: commitB, Within: true}, {Commit: commitA, Within: true}}},
			{Target: 1, Steps: []record.Step{{Commit: commitA}, {Commit: commitB}, {Commit: commitA, Within: true}}},
		},
		// c1's took 4 minutes; c3's ended before; c2's has not ended.
		Repairs: []record.Repair{{Target: 0}, {Target: 1, Restored: 1, Median: 4 * time.Minute, Unrestored: 1}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("delivery (-want +got):\n%s", d)
	}
	q.From = minutes(0)
	if got, err := s.Delivery(t.Context(), q); err != nil || got.Repairs[1].Restored != 2 || got.Repairs[1].Median != 5*time.Minute {
		t.Errorf("half-way between 4 and 6 minutes: %+v, %v", got.Repairs, err)
	}
	if got, err := s.Delivery(t.Context(), record.DeliveryQuery{Targets: [][]schema.Endpoint{nil}, To: minutes(30)}); err != nil || len(got.Commits) != 0 {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
	endpoints, err := s.HistoryEndpoints(t.Context(), []schema.Endpoint{{Repo: "git.example/org/apps", Ref: "dev"}, {Repo: "git.example/org/none"}})
	if d := cmp.Diff([]schema.Endpoint{apps("a"), apps("a/sub"), apps("b"), apps("c")}, endpoints); err != nil || d != "" {
		t.Errorf("endpoints: %v\n%s", err, d)
	}
}

func steps(c record.Course) string {
	text := ""
	for _, s := range c.Steps {
		text += s.Commit[:1]
		if s.Within {
			text += "!"
		}
	}
	return text
}

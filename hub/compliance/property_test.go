package compliance_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/schema"
)

// rounds is how many random inputs each property sees.
const rounds = 2000

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// moment is a random time around the hour that the tests look at.
func moment(r *rand.Rand) time.Time { return at(float64(r.IntN(70))) }

func randomRuns(r *rand.Rand) (runs []compliance.Run, applied string) {
	for range r.IntN(4) {
		applied = pick(r, "c0", "c1", "c2", "c2", "c3", "c4", "z", "dead")
		u := compliance.Run{Commit: applied, Failed: r.IntN(4) == 0}
		if r.IntN(3) > 0 {
			u.SuccessAt = moment(r)
			if !u.Failed || r.IntN(2) == 0 {
				u.SteadyAt = u.SuccessAt.Add(time.Duration(r.IntN(300)) * time.Second)
			}
		}
		runs = append(runs, u)
	}
	return runs, applied
}

func randomSubscriber(r *rand.Rand, clusters []*compliance.Cluster, name string) compliance.Subscriber {
	c := pick(r, clusters...)
	s := compliance.Subscriber{
		Ref: kustomization(name), Reporter: c, Destination: c, DestinationName: c.Name,
		ClusterType: pick(r, "", "drone", "edge"), Asked: r.IntN(5) > 0,
		Status: pick(r, append(schema.Statuses(), schema.StatusSuccess, schema.StatusSuccess)...),
		Reason: pick(r, "", "BuildFailed", "Progressing"), Revision: pick(r, "dev@sha1:a", "dev@sha1:b"),
	}
	if r.IntN(20) == 0 {
		s.Expected, s.Status, s.Asked = true, "", true
		return s
	}
	for range 1 + r.IntN(5)/4 {
		src := compliance.Source{Path: pick(r, "drone", "other", "idle")}
		src.Runs, src.Applied = randomRuns(r)
		src.Attempted = pick(r, src.Applied, src.Applied, "", "c2", "c3")
		s.Sources = append(s.Sources, src)
	}
	if r.IntN(4) == 0 {
		s.AgingSince = moment(r)
	}
	if r.IntN(8) == 0 {
		s.SourceError = "denied"
	}
	if r.IntN(3) == 0 {
		o := kustomization(fmt.Sprint("k", r.IntN(12)))
		s.Owner = &o
	}
	s.OpaquePaths = r.IntN(6) == 0
	return s
}

// random is a question with everything that can be in one.
func random(r *rand.Rand) compliance.Input {
	var clusters []*compliance.Cluster
	for i := range 1 + r.IntN(5) {
		c := cluster(fmt.Sprint("drone-", i))
		c.HeartbeatInterval = pick(r, heartbeat, 10*time.Minute)
		c.LastSeen = now.Add(-time.Duration(r.IntN(200)) * time.Second)
		c.Labels = map[string]string{"tier": pick(r, "canary", "rest", "rest")}
		if r.IntN(15) == 0 {
			c.UnlistedKinds = []string{"Kustomization"}
		}
		for range r.IntN(8) / 6 {
			b := blocked(fmt.Sprint("h", r.IntN(3)), pick(r, schema.Statuses()...), pick(r, "", "InstallFailed"))
			b.Owner = kustomization(fmt.Sprint("k", r.IntN(12)))
			b.Repo, b.Ref = pick(r, "", "git.example/org/platform"), "dev"
			c.Blocked = append(c.Blocked, b)
		}
		clusters = append(clusters, c)
	}
	in := ask()
	for i := range r.IntN(12) {
		in.Subscribers = append(in.Subscribers, randomSubscriber(r, clusters, fmt.Sprint("k", i)))
	}
	in.Commit = pick(r, "c0", "c1", "c2", "c2", "c2", "c3", "dead")
	for field, values := range map[string][]string{
		"min_compliant": {"100%", "100%", "0%", "33.3%", "50%", "90%"}, "max_failures": {"0", "0", "1", "3"},
		"zero_targets": {"deny", "allow", "require:4"}, "unknown": {"block", "exclude"}, "suspended": {"block", "exclude"},
		"children": {"require", "ignore"}, "min_success_time": {"0s", "1m", "20m"}, "progress_deadline": {"10m", "1m"},
	} {
		if err := in.Policy.Set(field, pick(r, values...)); err != nil {
			panic(err)
		}
	}
	if r.IntN(3) == 0 {
		in.Policy.Mandatory, in.Mandatory = "tier=canary", canaries
	}
	in.Progress = pick(r, compliance.Progress{}, compliance.Progress{FirstAsked: at(55)}, compliance.Progress{FirstAsked: moment(r), Highest: r.IntN(5), RoseAt: moment(r)})
	if r.IntN(5) == 0 {
		in.Graph = compliance.Equality{}
	}
	return in
}

// each runs a property on random inputs and says which one broke it.
func each(t *testing.T, property func(t *testing.T, r *rand.Rand, in compliance.Input)) {
	t.Helper()
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 7)) // a test repeats itself
		property(t, r, random(r))
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// same compares verdicts apart from when they were made and how long somebody
// has been silent.
func same(a, b schema.Verdict) string {
	for _, v := range []*schema.Verdict{&a, &b} {
		v.EvaluatedAt = time.Time{}
		v.Unfinished = slices.Clone(v.Unfinished)
		for i := range v.Unfinished {
			if before, _, ok := strings.Cut(v.Unfinished[i].Reason, "no heartbeat for"); ok {
				v.Unfinished[i].Reason = before + "silent"
			}
		}
	}
	return cmp.Diff(a, b, cmp.AllowUnexported(schema.Percent{}, schema.ZeroTargets{}))
}

func TestCountsAddUp(t *testing.T) {
	each(t, func(t *testing.T, _ *rand.Rand, in compliance.Input) {
		v := compliance.Evaluate(in).Verdict
		asked := 0
		for i := range in.Subscribers {
			if in.Subscribers[i].Asked {
				asked++
			}
		}
		c := v.Counts
		sum := c.Compliant + c.Failed + c.InProgress + c.Pending + c.Suspended + c.Unknown + c.UnknownLineage
		var types schema.TypeCount
		for _, n := range v.ByClusterType {
			types.Total += n.Total
			types.Compliant += n.Compliant
		}
		if c.Total != asked || sum != asked || types.Total != asked || types.Compliant != c.Compliant || len(v.Unfinished) != asked-c.Compliant {
			t.Errorf("%d asked for: counts %+v, types %+v, %d unfinished", asked, c, v.ByClusterType, len(v.Unfinished))
		}
		for i := range v.Unfinished {
			if v.Unfinished[i].Reason == "" {
				t.Errorf("no reason: %+v", v.Unfinished[i])
			}
		}
	})
}

func TestOrderDoesNotMatter(t *testing.T) {
	each(t, func(t *testing.T, r *rand.Rand, in compliance.Input) {
		a := compliance.Evaluate(in)
		in.Subscribers = slices.Clone(in.Subscribers)
		r.Shuffle(len(in.Subscribers), func(i, j int) {
			in.Subscribers[i], in.Subscribers[j] = in.Subscribers[j], in.Subscribers[i]
		})
		b := compliance.Evaluate(in)
		if diff := same(a.Verdict, b.Verdict); diff != "" || a.Progress != b.Progress || !a.NextAt.Equal(b.NextAt) {
			t.Errorf("shuffled: %s\n%+v %s\n%+v %s", diff, a.Progress, a.NextAt, b.Progress, b.NextAt)
		}
	})
}

func TestPassedMeansEachClause(t *testing.T) {
	passed := 0
	each(t, func(t *testing.T, _ *rand.Rand, in compliance.Input) {
		v := compliance.Evaluate(in).Verdict
		if v.State != schema.Passed {
			return
		}
		passed++
		c, p := v.Counts, in.Policy
		counted := c.Total
		if p.Unknown == schema.Exclude {
			counted -= c.Unknown
		}
		if p.Suspended == schema.Exclude {
			counted -= c.Suspended
		}
		if c.Failed > p.MaxFailures || counted < p.ZeroTargets.Least() || counted > 0 && c.Compliant < 1 ||
			c.Compliant+min(c.Failed, p.MaxFailures) < p.MinCompliant.Of(counted) {
			t.Errorf("passed with %+v, %d counted, policy %+v", c, counted, p)
		}
		if v.Reason != "" {
			t.Errorf("passed for a reason: %q", v.Reason)
		}
		if in.Mandatory == nil {
			return
		}
		selected := 0
		for i := range in.Subscribers {
			s := &in.Subscribers[i]
			if !s.Asked || !in.Mandatory(s.Destination.Labels) {
				continue
			}
			selected++
			for _, u := range v.Unfinished {
				if u.Cluster == s.DestinationName && u.Reconciler == s.Ref.String() {
					t.Errorf("passed without the mandatory %+v", u)
				}
			}
		}
		if selected == 0 {
			t.Error("passed with no mandatory cluster")
		}
	})
	if passed < rounds/20 {
		t.Errorf("only %d of %d inputs passed: the property saw too little", passed, rounds)
	}
}

func TestNothingHappensBeforeNextAt(t *testing.T) {
	changed := 0
	each(t, func(t *testing.T, r *rand.Rand, in compliance.Input) {
		first := compliance.Evaluate(in)
		in.Progress = first.Progress
		next := first.NextAt
		if !next.IsZero() && !next.After(in.Now) {
			t.Fatalf("next is %s, now is %s", next, in.Now)
		}
		until := 10 * time.Hour
		if !next.IsZero() {
			until = next.Sub(in.Now)
		}
		start := in.Now
		for _, d := range []time.Duration{0, time.Duration(r.Int64N(int64(until))), until - 1} {
			in.Now = start.Add(d)
			later := compliance.Evaluate(in)
			if diff := same(first.Verdict, later.Verdict); diff != "" || later.Progress != first.Progress {
				t.Fatalf("%s after now, with next after %s: %s", d, until, diff)
			}
		}
		in.Now = start.Add(until)
		if same(first.Verdict, compliance.Evaluate(in).Verdict) != "" {
			changed++
		}
	})
	if changed < rounds/10 {
		t.Errorf("only %d of %d moments changed anything", changed, rounds)
	}
}

func TestAskingAgainChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, _ *rand.Rand, in compliance.Input) {
		a := compliance.Evaluate(in)
		in.Progress = a.Progress
		b := compliance.Evaluate(in)
		if diff := cmp.Diff(a, b, cmp.AllowUnexported(schema.Percent{}, schema.ZeroTargets{})); diff != "" {
			t.Errorf("asked twice at one moment: %s", diff)
		}
	})
}

func TestFailingNeverHelps(t *testing.T) {
	// By the design a forgiven failure counts towards the share, so that one
	// more forgiven failure may pass a gate; without a budget it never does.
	each(t, func(t *testing.T, _ *rand.Rand, in compliance.Input) {
		in.Commit = "c2"
		before := compliance.Evaluate(in).Verdict
		one := failedOn("drone-99")
		in.Subscribers = append(slices.Clone(in.Subscribers), one)
		after := compliance.Evaluate(in).Verdict
		if after.Counts.Failed != before.Counts.Failed+1 {
			t.Fatalf("the one that fails is not counted: %+v, then %+v", before.Counts, after.Counts)
		}
		if after.Counts.Failed > in.Policy.MaxFailures && after.State != schema.Failed {
			t.Errorf("beyond the budget it is failed, not %s", after.State)
		}
	})
}

func TestFailingInsteadOfSucceedingNeverHelps(t *testing.T) {
	each(t, func(t *testing.T, _ *rand.Rand, in compliance.Input) {
		in.Policy.MinSuccessTime, in.Policy.Children = 0, schema.ChildrenIgnore
		before := compliance.Evaluate(in).Verdict
		if before.State == schema.Passed {
			return
		}
		in.Subscribers = slices.Clone(in.Subscribers)
		for i := range in.Subscribers {
			alone := in
			alone.Subscribers = in.Subscribers[i : i+1]
			if compliance.Evaluate(alone).Verdict.Counts.Compliant == 0 {
				continue
			}
			in.Subscribers[i].Status = schema.StatusFailure
			in.Subscribers[i].Sources = []compliance.Source{{Path: "drone", Attempted: in.Commit}}
			after := compliance.Evaluate(in).Verdict
			if after.State == schema.Passed {
				t.Errorf("it passes because one failed: %+v, then %+v", before.Counts, after.Counts)
			}
			return
		}
	})
}

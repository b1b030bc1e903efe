package compliance_test

import (
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/schema"
)

// heardNow keeps every reporter from being silent.
func heardNow(in *compliance.Input) {
	for i := range in.Subscribers {
		if r := in.Subscribers[i].Reporter; r != nil {
			r.LastSeen = in.Now
		}
	}
}

func TestDeadline(t *testing.T) {
	cases := map[string]struct {
		reason string
		fleet  string
		before compliance.Progress
		want   compliance.Progress
		// deadline in minutes.
		deadline float64
		state    schema.State
	}{
		"FirstQuestion": {
			reason: "The first question is stored; what was compliant before it gives no more time.",
			fleet:  "cp", want: compliance.Progress{FirstAsked: at(60), Highest: 1, RoseAt: at(10)},
			deadline: 70, state: schema.Waiting,
		},
		"CountsFromTheFirstQuestion": {
			reason: "A later question changes nothing.",
			fleet:  "cp", before: compliance.Progress{FirstAsked: at(52), Highest: 1, RoseAt: at(10)},
			want:     compliance.Progress{FirstAsked: at(52), Highest: 1, RoseAt: at(10)},
			deadline: 62, state: schema.Waiting,
		},
		"OverAtTheBoundary": {
			reason: "The deadline itself is over.",
			fleet:  "cp", before: compliance.Progress{FirstAsked: at(50), Highest: 1, RoseAt: at(10)},
			want:     compliance.Progress{FirstAsked: at(50), Highest: 1, RoseAt: at(10)},
			deadline: 60, state: schema.Failed,
		},
		"Rise": {
			reason: "A rise gives time again, from the success on, not from the question.",
			fleet:  "cp", before: compliance.Progress{FirstAsked: at(2)},
			want:     compliance.Progress{FirstAsked: at(2), Highest: 1, RoseAt: at(10)},
			deadline: 20, state: schema.Failed,
		},
		"LostAndBack": {
			reason: "One that was lost and came back is no rise.",
			fleet:  "cp", before: compliance.Progress{FirstAsked: at(2), Highest: 1, RoseAt: at(5)},
			want:     compliance.Progress{FirstAsked: at(2), Highest: 1, RoseAt: at(5)},
			deadline: 15, state: schema.Failed,
		},
		"FewerThanEver": {
			reason: "The highest stays.",
			fleet:  "cp", before: compliance.Progress{FirstAsked: at(55), Highest: 7, RoseAt: at(57)},
			want:     compliance.Progress{FirstAsked: at(55), Highest: 7, RoseAt: at(57)},
			deadline: 67, state: schema.Waiting,
		},
		"RoseAtNeverFallsBack": {
			reason: "The latest rise counts.",
			fleet:  "ccp", before: compliance.Progress{FirstAsked: at(2), Highest: 1, RoseAt: at(58)},
			want:     compliance.Progress{FirstAsked: at(2), Highest: 2, RoseAt: at(58)},
			deadline: 68, state: schema.Waiting,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := ask(fleet(c.fleet)...)
			in.Progress = c.before
			r := compliance.Evaluate(in)
			if r.Progress != c.want {
				t.Errorf("%s\nprogress: want %+v, got %+v", c.reason, c.want, r.Progress)
			}
			if !r.Verdict.DeadlineAt.Equal(at(c.deadline)) || r.Verdict.State != c.state {
				t.Errorf("%s\nwant %s until %s, got %s until %s", c.reason, c.state, at(c.deadline), r.Verdict.State, r.Verdict.DeadlineAt)
			}
		})
	}
}

func TestRiseInTheFuture(t *testing.T) {
	s := compliantOn("drone-01")
	source("c2", "c2", run("c2", 90))(&s)
	if r := compliance.Evaluate(ask(s, pendingOn("drone-02"))); !r.Progress.RoseAt.Equal(now) {
		t.Errorf("a clock that is ahead gives no more time: want %s, got %s", now, r.Progress.RoseAt)
	}
}

func TestSoak(t *testing.T) {
	failedIn := func(commit string, success, steady float64) compliance.Run {
		r := compliance.Run{Commit: commit, SuccessAt: at(success), Failed: true}
		if steady > 0 {
			r.SteadyAt = at(steady)
		}
		return r
	}
	type runs = []compliance.Run
	cases := map[string]struct {
		reason string
		// each subscriber's runs; nil is one that failed at C.
		all    []runs
		set    map[string]string
		canary []int
		// end is when a soak of 30 minutes is over, in minutes; 0 for never.
		end float64
	}{
		"OfTheLast":      {reason: "It counts from the last success that was needed.", all: []runs{{run("c2", 10)}, {run("c2", 50)}}, end: 80},
		"LaterCommit":    {reason: "A later commit resets nothing.", all: []runs{{run("c2", 10), run("c3", 50)}}, end: 40},
		"LaterUnready":   {reason: "Nor while it is not ready.", all: []runs{{run("c2", 10), {Commit: "c3"}}}, end: 40},
		"EarlierCommit":  {reason: "A success before C does not count.", all: []runs{{run("c1", 1), run("c2", 10)}}, end: 40},
		"LeftAndBack":    {reason: "Nor one before A left C's descendants.", all: []runs{{run("c2", 5), run("c1", 7), run("c2", 10)}}, end: 40},
		"FailureAtC":     {reason: "A failure at C resets it.", all: []runs{{failedIn("c2", 10, 25)}}, end: 55},
		"FailureAfterC":  {reason: "A failure at a later commit too.", all: []runs{{run("c2", 10), failedIn("c3", 12, 25)}}, end: 55},
		"FailingNow":     {reason: "While it fails nothing is steady.", all: []runs{{run("c2", 10), failedIn("c3", 12, 0)}}},
		"SteadyAgain":    {reason: "The commit after a failure counts.", all: []runs{{failedIn("c2", 10, 0), run("c3", 20)}}, end: 50},
		"BeyondFailure":  {reason: "Not beyond a failure, however steady it was before.", all: []runs{{run("c2", 5), failedIn("c3", 8, 0), run("c3", 20)}}, end: 50},
		"OnlyTheNeeded":  {reason: "The two earliest are enough.", all: []runs{{run("c2", 10)}, {run("c2", 50)}, {run("c2", 20)}}, set: map[string]string{"min_compliant": "60%"}, end: 50},
		"Forgiven":       {reason: "A forgiven failure makes one fewer needed.", all: []runs{{run("c2", 10)}, {run("c2", 50)}, nil}, set: map[string]string{"max_failures": "1", "min_compliant": "50%"}, end: 40},
		"AtLeastOne":     {reason: "One is needed even at 0 %.", all: []runs{{run("c2", 20)}, {run("c2", 50)}}, set: map[string]string{"min_compliant": "0%"}, end: 50},
		"UnsteadySpare":  {reason: "One that is not steady is not needed.", all: []runs{{run("c2", 10)}, {failedIn("c2", 12, 0)}}, set: map[string]string{"min_compliant": "50%"}, end: 40},
		"MandatoryLast":  {reason: "The canary's soak is needed too.", all: []runs{{run("c2", 10)}, {run("c2", 50)}}, set: map[string]string{"min_compliant": "50%"}, canary: []int{1}, end: 80},
		"MandatoryFlaky": {reason: "A canary that is not steady holds it up.", all: []runs{{run("c2", 10)}, {failedIn("c2", 12, 0)}}, set: map[string]string{"min_compliant": "50%"}, canary: []int{1}},
		"Nobody":         {reason: "Without targets it counts from the first question.", set: map[string]string{"zero_targets": "allow"}, end: 85},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var all []compliance.Subscriber
			for i, r := range c.all {
				s := failedOn("drone-0" + string(rune('0'+i)))
				if r != nil {
					s = compliantOn(s.DestinationName)
					last := r[len(r)-1].Commit
					source(last, last, r...)(&s)
				}
				all = append(all, s)
			}
			label(all, "canary", c.canary...)
			in := ask(all...)
			in.Policy.MinSuccessTime, in.Policy.ProgressDeadline = minutes(30), minutes(10000)
			for field, value := range c.set {
				if err := in.Policy.Set(field, value); err != nil {
					t.Fatal(err)
				}
			}
			if c.canary != nil {
				in.Mandatory = canaries
			}
			judge := func(when time.Time, want schema.State) {
				t.Helper()
				in.Now = when
				heardNow(&in)
				r := compliance.Evaluate(in)
				if r.Verdict.State != want {
					t.Errorf("%s\nin minute %v: want %s, got %s %q", c.reason, when.Sub(at(0)).Minutes(), want, r.Verdict.State, r.Verdict.Reason)
				}
				if want == schema.Waiting && r.Verdict.Reason != "min_success_time" {
					t.Errorf("%s\nreason: got %q", c.reason, r.Verdict.Reason)
				}
			}
			if c.end == 0 {
				judge(at(5000), schema.Waiting)
				return
			}
			judge(at(c.end).Add(-time.Nanosecond), schema.Waiting)
			judge(at(c.end), schema.Passed)
		})
	}
}

func TestSoakOfOneThatIsNotAffected(t *testing.T) {
	s := pendingOn("drone-01") // at c1 since minute 1, steady since minute 20
	folder("idle")(&s)
	s.Sources[0].Runs[0].SteadyAt = at(20)
	in := ask(s)
	in.Policy.MinSuccessTime = minutes(30)
	r := compliance.Evaluate(in)
	if r.Verdict.State != schema.Passed || !r.Progress.RoseAt.Equal(at(20)) {
		t.Errorf("it counts from its newest run: got %s %q, rose %s", r.Verdict.State, r.Verdict.Reason, r.Progress.RoseAt)
	}
	in.Policy.MinSuccessTime = minutes(41)
	if got := compliance.Evaluate(in).Verdict; got.State != schema.Waiting {
		t.Errorf("forty minutes are not forty-one: got %s", got.State)
	}
}

func TestSoakOfTwoSources(t *testing.T) {
	s := compliantOn("drone-01")
	flaky := s.Sources[0]
	flaky.Runs = []compliance.Run{{Commit: "c2", SuccessAt: at(10), Failed: true}}
	s.Sources = append(s.Sources, flaky)
	in := ask(s)
	in.Policy.MinSuccessTime = minutes(1)
	if got := compliance.Evaluate(in).Verdict; got.Reason != "min_success_time" {
		t.Errorf("one source is not steady: got %s %q", got.State, got.Reason)
	}
	s.Sources[1].Runs[0].SteadyAt = at(40)
	r := compliance.Evaluate(in)
	if r.Verdict.State != schema.Passed {
		t.Errorf("both are steady: got %s %q", r.Verdict.State, r.Verdict.Reason)
	}
	in.Policy.MinSuccessTime = minutes(21)
	if got := compliance.Evaluate(in).Verdict; got.Reason != "min_success_time" {
		t.Errorf("it counts from the later of the two: got %s %q", got.State, got.Reason)
	}
}

func TestNextAt(t *testing.T) {
	silence := at(60).Add(-10*time.Second + 5*heartbeat)
	cases := map[string]struct {
		reason string
		change func(*compliance.Input)
		want   time.Time
	}{
		"Silence":  {reason: "The reporter falls silent.", change: func(*compliance.Input) {}, want: silence},
		"Deadline": {reason: "The deadline of a gate that waits.", change: func(in *compliance.Input) { in.Progress.FirstAsked = at(51) }, want: at(61)},
		"NoDeadlineOncePassed": {reason: "Passed does not expire.", change: func(in *compliance.Input) {
			in.Progress.FirstAsked = at(51)
			in.Subscribers = in.Subscribers[:1]
		}, want: silence},
		"Ageing": {reason: "A wait turns into a failure.", change: func(in *compliance.Input) {
			in.Subscribers[1].Status, in.Subscribers[1].AgingSince = schema.StatusInProgress, at(56)
		}, want: at(61)},
		"Soak": {reason: "The soak fires when it is over.", change: func(in *compliance.Input) {
			in.Subscribers = in.Subscribers[:1]
			in.Policy.MinSuccessTime = minutes(51)
		}, want: at(61)},
		"SoakAfterTheDeadline": {reason: "A gate that failed can pass by its soak.", change: func(in *compliance.Input) {
			in.Subscribers = in.Subscribers[:1]
			in.Policy.MinSuccessTime = minutes(51)
			in.Progress.FirstAsked = at(2)
		}, want: at(61)},
		"Never": {reason: "Silent already and over.", change: func(in *compliance.Input) {
			in.Progress.FirstAsked = at(2)
			for i := range in.Subscribers {
				in.Subscribers[i].Reporter.LastSeen = at(0)
			}
		}},
		"OfAChild": {reason: "A child ages too.", change: func(in *compliance.Input) {
			c := below(progressingOn("x"), in.Subscribers[0], "apps")
			c.AgingSince = at(55.5)
			in.Subscribers = append(in.Subscribers, c)
		}, want: at(60.5)},
		"OfAnIgnoredChild": {reason: "Children that do not count wake nobody.", change: func(in *compliance.Input) {
			c := below(progressingOn("x"), in.Subscribers[0], "apps")
			c.AgingSince = at(55.5)
			in.Subscribers = append(in.Subscribers, c)
			in.Policy.Children = schema.ChildrenIgnore
		}, want: silence},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := ask(compliantOn("drone-01"), pendingOn("drone-02"))
			c.change(&in)
			if got := compliance.Evaluate(in).NextAt; !got.Equal(c.want) {
				t.Errorf("%s\nwant %s, got %s", c.reason, c.want, got)
			}
		})
	}
}

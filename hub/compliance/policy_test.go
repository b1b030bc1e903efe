package compliance_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/schema"
)

func minutes(n int) schema.Duration { return schema.Duration(time.Duration(n) * time.Minute) }

// fleet is one subscriber per letter: compliant, failed, in progress, pending,
// suspended, unknown, l for unknown lineage.
func fleet(letters string) []compliance.Subscriber {
	kinds := map[rune]func(string) compliance.Subscriber{
		'c': compliantOn, 'f': failedOn, 'i': progressingOn, 'p': pendingOn,
		's': suspendedOn, 'u': unknownOn, 'l': strangerOn,
	}
	var all []compliance.Subscriber
	for i, l := range letters {
		all = append(all, kinds[l](fmt.Sprintf("drone-%02d", i)))
	}
	return all
}

// label puts labels on the clusters at these places.
func label(all []compliance.Subscriber, tier string, places ...int) {
	for _, i := range places {
		all[i].Destination.Labels = map[string]string{"tier": tier}
	}
}

func canaries(labels map[string]string) bool { return labels["tier"] == "canary" }

func TestPolicy(t *testing.T) {
	cases := map[string]struct {
		reason string
		fleet  string
		// set are policy fields as a user writes them.
		set map[string]string
		// canary are the places of canary clusters; with them the policy is
		// mandatory for tier=canary.
		canary []int
		// over asks after the deadline.
		over  bool
		state schema.State
		why   string
	}{
		"AllCompliant": {reason: "The default wants all.", fleet: "ccc", state: schema.Passed},
		"OneMissing":   {reason: "The default wants all.", fleet: "ccp", state: schema.Waiting},
		"DeadlineOver": {reason: "Waiting ends at the deadline.", fleet: "ccp", over: true, state: schema.Failed, why: "progress_deadline"},
		"PassedAfterTheDeadline": {
			reason: "Passed does not expire with the deadline, failed can become passed.",
			fleet:  "ccc", over: true, state: schema.Passed,
		},

		"MaxFailuresNone":     {reason: "The default allows none.", fleet: "ccf", state: schema.Failed, why: "max_failures"},
		"MaxFailuresOne":      {reason: "One is forgiven and counts for the share.", fleet: "ccf", set: map[string]string{"max_failures": "1"}, state: schema.Passed},
		"MaxFailuresOneOfTwo": {reason: "Two are too many.", fleet: "cff", set: map[string]string{"max_failures": "1"}, state: schema.Failed, why: "max_failures"},
		"MaxFailuresOnlyFail": {reason: "Failures alone never pass.", fleet: "ff", set: map[string]string{"max_failures": "2"}, state: schema.Waiting},
		"MaxFailuresFirst":    {reason: "Too many failures come before too few targets.", fleet: "f", set: map[string]string{"zero_targets": "require:3"}, state: schema.Failed, why: "max_failures"},
		"MaxFailuresIsNoMore": {reason: "The budget does not stand for those that are only late.", fleet: "cpp", set: map[string]string{"max_failures": "1"}, state: schema.Waiting},

		"MinCompliantShare":     {reason: "Three quarters of four.", fleet: "cccp", set: map[string]string{"min_compliant": "75%"}, state: schema.Passed},
		"MinCompliantRoundsUp":  {reason: "95 % of ten are ten.", fleet: "cccccccccp", set: map[string]string{"min_compliant": "95%"}, state: schema.Waiting},
		"MinCompliantExact":     {reason: "90 % of ten are nine.", fleet: "cccccccccp", set: map[string]string{"min_compliant": "90%"}, state: schema.Passed},
		"MinCompliantZero":      {reason: "At least one must be compliant.", fleet: "ppp", set: map[string]string{"min_compliant": "0%"}, state: schema.Waiting},
		"MinCompliantZeroOfOne": {reason: "One is enough.", fleet: "cpp", set: map[string]string{"min_compliant": "0%"}, state: schema.Passed},
		"MinCompliantOfCounted": {reason: "The share is of those that count.", fleet: "cccpssss", set: map[string]string{"min_compliant": "75%"}, state: schema.Passed},

		"ZeroTargetsDeny":         {reason: "Nobody is no success.", state: schema.Waiting, why: "zero_targets"},
		"ZeroTargetsDenyOver":     {reason: "And no hanging for ever.", over: true, state: schema.Failed, why: "zero_targets"},
		"ZeroTargetsAllow":        {reason: "Nobody is fine.", set: map[string]string{"zero_targets": "allow"}, state: schema.Passed},
		"ZeroTargetsAllowSome":    {reason: "Somebody is judged as ever.", fleet: "p", set: map[string]string{"zero_targets": "allow"}, state: schema.Waiting},
		"ZeroTargetsRequire":      {reason: "Two are not three.", fleet: "cc", set: map[string]string{"zero_targets": "require:3"}, state: schema.Waiting, why: "zero_targets"},
		"ZeroTargetsRequireOver":  {reason: "Two are not three.", fleet: "cc", set: map[string]string{"zero_targets": "require:3"}, over: true, state: schema.Failed, why: "zero_targets"},
		"ZeroTargetsRequireMet":   {reason: "Three are three.", fleet: "ccc", set: map[string]string{"zero_targets": "require:3"}, state: schema.Passed},
		"ZeroTargetsAllExcluded":  {reason: "Everybody is left out.", fleet: "ss", state: schema.Waiting, why: "zero_targets"},
		"ZeroTargetsAllowedEmpty": {reason: "Everybody is left out, and that is fine.", fleet: "ss", set: map[string]string{"zero_targets": "allow"}, state: schema.Passed},

		"UnknownBlock":     {reason: "The default.", fleet: "cu", state: schema.Waiting},
		"UnknownExclude":   {reason: "It is left out.", fleet: "cu", set: map[string]string{"unknown": "exclude"}, state: schema.Passed},
		"LineageIsCounted": {reason: "Only unknown is left out, not unknown lineage.", fleet: "cl", set: map[string]string{"unknown": "exclude"}, state: schema.Waiting},
		"SuspendedExclude": {reason: "The default.", fleet: "cs", state: schema.Passed},
		"SuspendedBlock":   {reason: "It counts.", fleet: "cs", set: map[string]string{"suspended": "block"}, state: schema.Waiting},

		"MandatoryCompliant": {reason: "The canary is there; half of the others too.", fleet: "ccpp", set: map[string]string{"min_compliant": "50%"}, canary: []int{0}, state: schema.Passed},
		"MandatoryMissing":   {reason: "The canary is late.", fleet: "ccpp", set: map[string]string{"min_compliant": "50%"}, canary: []int{2}, state: schema.Waiting, why: "mandatory"},
		"MandatoryFailed":    {reason: "A forgiven failure is not compliant.", fleet: "ccf", set: map[string]string{"max_failures": "1"}, canary: []int{2}, state: schema.Waiting, why: "mandatory"},
		"MandatoryExcluded":  {reason: "One that is left out is not compliant.", fleet: "ccs", canary: []int{2}, state: schema.Waiting, why: "mandatory"},
		"MandatoryNobody":    {reason: "At least one cluster must be selected.", fleet: "ccc", canary: []int{}, state: schema.Waiting, why: "mandatory"},
		"MandatoryAll":       {reason: "Each selected one counts.", fleet: "ccp", set: map[string]string{"min_compliant": "50%"}, canary: []int{0, 1, 2}, state: schema.Waiting, why: "mandatory"},
		"MandatoryAndShare":  {reason: "More is missing than the canary.", fleet: "cppp", set: map[string]string{"min_compliant": "50%"}, canary: []int{2}, state: schema.Waiting},
		"MandatoryOver":      {reason: "The deadline is the deadline.", fleet: "ccp", set: map[string]string{"min_compliant": "50%"}, canary: []int{2}, over: true, state: schema.Failed, why: "progress_deadline"},
		"MandatoryAllowZero": {reason: "Nobody to judge, and nobody selected.", set: map[string]string{"zero_targets": "allow"}, canary: []int{}, state: schema.Waiting, why: "mandatory"},

		"SoakOver":         {reason: "All succeeded 50 minutes ago.", fleet: "cc", set: map[string]string{"min_success_time": "50m"}, state: schema.Passed},
		"SoakGoing":        {reason: "Not 51 minutes ago.", fleet: "cc", set: map[string]string{"min_success_time": "51m"}, state: schema.Waiting, why: "min_success_time"},
		"SoakAndShare":     {reason: "More is missing than the soak.", fleet: "cp", set: map[string]string{"min_success_time": "51m"}, state: schema.Waiting},
		"SoakAndMandatory": {reason: "The canary comes first.", fleet: "ccp", set: map[string]string{"min_success_time": "51m", "min_compliant": "50%"}, canary: []int{2}, state: schema.Waiting, why: "mandatory"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			all := fleet(c.fleet)
			label(all, "canary", c.canary...)
			in := ask(all...)
			for field, value := range c.set {
				if err := in.Policy.Set(field, value); err != nil {
					t.Fatal(err)
				}
			}
			if c.canary != nil {
				in.Policy.Mandatory, in.Mandatory = "tier=canary", canaries
			}
			if c.over {
				in.Progress = compliance.Progress{FirstAsked: at(40), Highest: 99}
			}
			got := compliance.Evaluate(in).Verdict
			if got.State != c.state || got.Reason != c.why {
				t.Errorf("%s\nwant %s %q, got %s %q with %+v", c.reason, c.state, c.why, got.State, got.Reason, got.Counts)
			}
		})
	}
}

func TestMandatoryNeedsARegisteredCluster(t *testing.T) {
	all := fleet("cc")
	label(all, "canary", 0, 1)
	all[1].Destination = nil
	all[0].Destination = nil
	in := ask(all...)
	in.Policy.Mandatory, in.Mandatory = "tier=canary", canaries
	if got := compliance.Evaluate(in).Verdict; got.State != schema.Waiting || got.Reason != "mandatory" {
		t.Errorf("a cluster that is not registered has no labels: got %s %q", got.State, got.Reason)
	}
}

func TestMandatoryWithoutItsFunction(t *testing.T) {
	in := ask(fleet("cc")...)
	in.Policy.Mandatory = "tier=canary"
	if got := compliance.Evaluate(in).Verdict; got.State != schema.Waiting || got.Reason != "mandatory" {
		t.Errorf("a selector that cannot be asked selects nothing: got %s %q", got.State, got.Reason)
	}
}

func TestVerdict(t *testing.T) {
	all := fleet("slpcufi")
	all[0].ClusterType = ""
	all[3].Status, all[3].Reason = schema.StatusFailure, "HealthCheckFailed"
	child := below(failedOn("x"), all[0], "nobody-asked")
	child.ClusterType = "never"
	in := ask(append(all, child)...)
	in.Question = compliance.Question{Repo: "git@git.example:org/platform.git", Ref: "refs/heads/dev", Path: "./drone/", Commit: "C2"}
	in.Policy.MaxFailures = 1
	in.Now = now.In(time.FixedZone("somewhere", 3600))
	in.NearMisses = []schema.NearMiss{
		{Cluster: "b", Reconciler: "K/n/x", Ref: "stage", Why: schema.NearOtherRef},
		{Cluster: "a", Reconciler: "K/n/x", Ref: "refs/tags/v1", Why: schema.NearPinned},
	}
	got := compliance.Evaluate(in).Verdict
	rev := "dev@sha1:c2"
	row := func(i int, o schema.Outcome, reason, revision string) schema.Unfinished {
		return schema.Unfinished{Cluster: fmt.Sprintf("drone-%02d", i), Reconciler: "Kustomization/flux-system/drone", Verdict: o, Reason: reason, Revision: revision}
	}
	want := schema.Verdict{
		Repo: "git@git.example:org/platform.git", Ref: "refs/heads/dev", Path: "./drone/", Commit: "C2",
		State: schema.Waiting, Policy: in.Policy,
		Counts:        schema.Counts{Total: 7, Compliant: 1, Failed: 1, InProgress: 1, Pending: 1, Suspended: 1, Unknown: 1, UnknownLineage: 1},
		ByClusterType: map[string]schema.TypeCount{"": {Total: 1}, "drone": {Total: 6, Compliant: 1}},
		Unfinished: []schema.Unfinished{
			row(5, schema.OutcomeFailed, "BuildFailed", rev),
			row(4, schema.OutcomeUnknown, "HealthUnknown", rev),
			row(1, schema.OutcomeUnknownLineage, "its commit and this one are not related", rev),
			row(2, schema.OutcomePending, "not fetched", ""),
			row(6, schema.OutcomeInProgress, "Progressing", rev),
			row(0, schema.OutcomeSuspended, "suspended", ""),
		},
		Currently: []schema.Currently{{Cluster: "drone-03", Reconciler: "Kustomization/flux-system/drone", Status: schema.StatusFailure, Reason: "HealthCheckFailed"}},
		NearMisses: []schema.NearMiss{
			{Cluster: "a", Reconciler: "K/n/x", Ref: "refs/tags/v1", Why: schema.NearPinned},
			{Cluster: "b", Reconciler: "K/n/x", Ref: "stage", Why: schema.NearOtherRef},
		},
		DeadlineAt: at(65), EvaluatedAt: now,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(schema.Percent{}, schema.ZeroTargets{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.EvaluatedAt.Location() != time.UTC || in.NearMisses[0].Cluster != "b" {
		t.Error("times are in UTC, and the input stays as it was")
	}
}

func TestListsAreNeverNil(t *testing.T) {
	got := compliance.Evaluate(ask()).Verdict
	if got.Unfinished == nil || got.Currently == nil || got.NearMisses == nil || got.ByClusterType == nil {
		t.Errorf("an empty list is [], not null: %+v", got)
	}
}

func TestTwoReportersOfOneCluster(t *testing.T) {
	// Two hubs report the same name on the same cluster: the order of the rows
	// must not follow the order of the input.
	a, b := failedOn("drone-01"), failedOn("drone-01")
	a.Reporter, b.Reporter = cluster("hub-1"), cluster("hub-2")
	a.Revision, b.Revision = "dev@sha1:a", "dev@sha1:b"
	one, other := compliance.Evaluate(ask(a, b)).Verdict, compliance.Evaluate(ask(b, a)).Verdict
	if diff := cmp.Diff(one.Unfinished, other.Unfinished); diff != "" || len(one.Unfinished) != 2 {
		t.Errorf("the order shows: %s", diff)
	}
}

func TestListsAreCapped(t *testing.T) {
	var all []compliance.Subscriber
	for i := range 3000 {
		s := pendingOn(fmt.Sprintf("drone-%04d", 2999-i))
		if i%2 == 0 {
			s = compliantOn(s.DestinationName)
			s.Status = schema.StatusInProgress
		}
		all = append(all, s)
	}
	all = append(all, failedOn("zebra"))
	in := ask(all...)
	in.NearMisses = make([]schema.NearMiss, 150)
	got := compliance.Evaluate(in).Verdict
	if len(got.Unfinished) != schema.MaxUnfinished || len(got.Currently) != schema.MaxCurrently || len(got.NearMisses) != schema.MaxNearMisses {
		t.Fatalf("caps: got %d, %d, %d", len(got.Unfinished), len(got.Currently), len(got.NearMisses))
	}
	if got.Counts.Total != 3001 || got.Counts.Pending != 1500 || got.Counts.Compliant != 1500 {
		t.Errorf("counts are never cut: got %+v", got.Counts)
	}
	if got.Unfinished[0].Cluster != "zebra" || got.Unfinished[1].Cluster != "drone-0000" || got.Unfinished[999].Cluster != "drone-1996" {
		t.Errorf("worst first, then by cluster: got %s, %s … %s", got.Unfinished[0].Cluster, got.Unfinished[1].Cluster, got.Unfinished[999].Cluster)
	}
}

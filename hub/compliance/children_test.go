package compliance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/schema"
)

func helmRelease(name string) schema.ObjectRef {
	return schema.ObjectRef{Kind: "HelmRelease", Namespace: "apps", Name: name}
}

// below makes a subscriber of the same endpoint that another one owns and that
// nobody asked for.
func below(s, parent compliance.Subscriber, name string) compliance.Subscriber {
	owner := parent.Ref
	s.Ref, s.Owner, s.Asked = kustomization(name), &owner, false
	s.Reporter, s.Destination, s.DestinationName = parent.Reporter, parent.Destination, parent.DestinationName
	return s
}

// blocked says that an unsettled child of another endpoint stands below drone.
func blocked(name string, status schema.Status, reason string) compliance.Blocked {
	return compliance.Blocked{Owner: kustomization("drone"), Status: status, Child: helmRelease(name), Reason: reason, Count: 1}
}

func TestChildren(t *testing.T) {
	type subscribers = []compliance.Subscriber
	root := func(b ...compliance.Blocked) compliance.Subscriber {
		s := compliantOn("drone-01")
		s.Reporter.Blocked = b
		return s
	}
	same := blocked("same", schema.StatusFailure, "InstallFailed")
	same.Repo, same.Ref = "git.example/org/platform", "dev"
	other := same
	other.Ref = "stage"
	many := blocked("many", schema.StatusInProgress, "Progressing")
	many.Count = 3
	elsewhere := blocked("elsewhere", schema.StatusFailure, "InstallFailed")
	elsewhere.Owner = kustomization("another")

	cases := map[string]struct {
		reason string
		build  func() subscribers
		policy schema.Children
		want   schema.Outcome
		why    string
	}{
		"Settled":   {reason: "No child is in the way.", build: func() subscribers { return subscribers{root()} }, want: schema.OutcomeCompliant},
		"Failed":    {reason: "The commonest false green.", build: func() subscribers { return subscribers{root(blocked("web", schema.StatusFailure, "InstallFailed"))} }, want: schema.OutcomeFailed, why: "child HelmRelease/apps/web: InstallFailed"},
		"Unknown":   {reason: "Nobody knows of the child.", build: func() subscribers { return subscribers{root(blocked("web", schema.StatusUnknown, ""))} }, want: schema.OutcomeUnknown, why: "child HelmRelease/apps/web: unknown"},
		"Suspended": {reason: "The child will not go on.", build: func() subscribers { return subscribers{root(blocked("web", schema.StatusSuspended, "x"))} }, want: schema.OutcomeSuspended, why: "child HelmRelease/apps/web: x"},
		"Pending":   {reason: "Everything else is in progress.", build: func() subscribers { return subscribers{root(blocked("web", schema.StatusPending, "OutOfSync"))} }, want: schema.OutcomeInProgress, why: "child HelmRelease/apps/web: OutOfSync"},
		"Ignored": {
			reason: "The policy may leave children out.", policy: schema.ChildrenIgnore,
			build: func() subscribers {
				r := root(blocked("web", schema.StatusFailure, "InstallFailed"))
				return subscribers{r, below(failedOn("x"), r, "apps")}
			},
			want: schema.OutcomeCompliant,
		},
		"SameRefIsJudgedAtTheCommit": {reason: "A blocked child of the endpoint asked for is left to the table.", build: func() subscribers { return subscribers{root(same)} }, want: schema.OutcomeCompliant},
		"OtherRefOfTheRepository":    {reason: "Another ref is another endpoint.", build: func() subscribers { return subscribers{root(other)} }, want: schema.OutcomeFailed, why: "child HelmRelease/apps/same: InstallFailed"},
		"AnothersChild":              {reason: "It stands below somebody else.", build: func() subscribers { return subscribers{root(elsewhere)} }, want: schema.OutcomeCompliant},
		"Worst": {
			reason: "The worst is named, whatever the order, and the rest counted.",
			build: func() subscribers {
				return subscribers{root(many, blocked("b", schema.StatusFailure, "One"), blocked("a", schema.StatusFailure, "Two"))}
			},
			want: schema.OutcomeFailed, why: "child HelmRelease/apps/a: Two, and 4 more",
		},
		"SameRefAtDepthOne": {
			reason: "It stands at c1: its own reason is shown.",
			build:  func() subscribers { r := root(); return subscribers{r, below(pendingOn("x"), r, "apps")} },
			want:   schema.OutcomeInProgress, why: "child Kustomization/flux-system/apps: not fetched",
		},
		"SameRefCompliant": {
			reason: "It holds C.",
			build:  func() subscribers { r := root(); return subscribers{r, below(compliantOn("x"), r, "apps")} },
			want:   schema.OutcomeCompliant,
		},
		"SameRefReverted": {
			reason: "Judged by the same table, so reverted is seen too.",
			build: func() subscribers {
				r := root()
				c := below(compliantOn("x"), r, "apps")
				source("c4", "c4", run("c4", 10))(&c)
				return subscribers{r, c}
			},
			want: schema.OutcomeFailed, why: "child Kustomization/flux-system/apps: reverted",
		},
		"SameRefOfUnknownLineage": {
			reason: "Only failed, unknown and suspended are handed up as they are.",
			build:  func() subscribers { r := root(); return subscribers{r, below(strangerOn("x"), r, "apps")} },
			want:   schema.OutcomeInProgress, why: "child Kustomization/flux-system/apps: its commit and this one are not related",
		},
		"DepthThree": {
			reason: "Every depth counts.",
			build: func() subscribers {
				r := root()
				a := below(compliantOn("x"), r, "a")
				b := below(compliantOn("x"), a, "b")
				return subscribers{below(failedOn("x"), b, "c"), b, a, r}
			},
			want: schema.OutcomeFailed, why: "child Kustomization/flux-system/c: BuildFailed",
		},
		"DepthThreeThroughAnotherEndpoint": {
			reason: "One that is not asked for and has no source here is only a link of the chain.",
			build: func() subscribers {
				r := root()
				a := below(failedOn("x"), r, "a")
				a.Sources = nil
				b := below(compliantOn("x"), a, "b")
				return subscribers{r, a, b, below(progressingOn("x"), b, "c")}
			},
			want: schema.OutcomeInProgress, why: "child Kustomization/flux-system/c: Progressing",
		},
		"SameNamesOnTwoClusters": {
			reason: "The failing one is another cluster's.",
			build: func() subscribers {
				r := root()
				other := pendingOn("drone-02")
				other.Asked = false
				return subscribers{r, other, below(compliantOn("x"), r, "apps"), below(failedOn("x"), other, "apps")}
			},
			want: schema.OutcomeCompliant,
		},
		"ChildOfTheSecondCluster": {
			reason: "Each cluster's own children count.",
			build: func() subscribers {
				r := compliantOn("drone-02")
				return subscribers{r, below(failedOn("x"), r, "apps")}
			},
			want: schema.OutcomeFailed, why: "child Kustomization/flux-system/apps: BuildFailed",
		},
		"OnAnotherCluster": {
			reason: "Names are a cluster's own.",
			build: func() subscribers {
				r := root()
				c := below(failedOn("x"), r, "a")
				c.Reporter = cluster("drone-02")
				return subscribers{r, c}
			},
			want: schema.OutcomeCompliant,
		},
		"NotCompliantItself": {
			reason: "Children change only compliant ones.",
			build: func() subscribers {
				r := pendingOn("drone-01")
				return subscribers{r, below(failedOn("x"), r, "a")}
			},
			want: schema.OutcomePending, why: "not fetched",
		},
		"NotAffectedItself": {
			reason: "One that is not affected is compliant, and its children count.",
			build: func() subscribers {
				r := pendingOn("drone-01")
				folder("idle")(&r)
				return subscribers{r, below(failedOn("x"), r, "a")}
			},
			want: schema.OutcomeFailed, why: "child Kustomization/flux-system/a: BuildFailed",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := ask(c.build()...)
			if c.policy != "" {
				in.Policy.Children = c.policy
			}
			expect(t, c.reason, compliance.Evaluate(in), c.want, c.why, "")
		})
	}
}

func TestChildAskedToo(t *testing.T) {
	root := compliantOn("drone-01")
	child := below(failedOn("x"), root, "apps")
	child.Asked = true
	got := compliance.Evaluate(ask(root, child)).Verdict
	want := []schema.Unfinished{
		{Cluster: "drone-01", Reconciler: "Kustomization/flux-system/apps", Verdict: schema.OutcomeFailed, Reason: "BuildFailed", Revision: "dev@sha1:c2"},
		{Cluster: "drone-01", Reconciler: "Kustomization/flux-system/drone", Verdict: schema.OutcomeFailed, Reason: "child Kustomization/flux-system/apps: BuildFailed", Revision: "dev@sha1:c2"},
	}
	if diff := cmp.Diff(want, got.Unfinished); diff != "" {
		t.Errorf("a child that is asked for is counted itself as well: -want +got:\n%s", diff)
	}
	if got.Counts.Total != 2 {
		t.Errorf("total: want 2, got %d", got.Counts.Total)
	}
}

func TestChildOfBlockedChild(t *testing.T) {
	// The chain root → apps → web: web reads another endpoint, and the reporter
	// says so for both of its owners.
	root := compliantOn("drone-01")
	web := blocked("web", schema.StatusFailure, "InstallFailed")
	deep := web
	deep.Owner = kustomization("apps")
	root.Reporter.Blocked = []compliance.Blocked{deep, web}
	in := ask(root, below(compliantOn("x"), root, "apps"))
	expect(t, "The child below is named once, for the root.", compliance.Evaluate(in), schema.OutcomeFailed, "child HelmRelease/apps/web: InstallFailed", "")
}

func TestOwnersInACircle(t *testing.T) {
	root := compliantOn("drone-01")
	a := below(compliantOn("x"), root, "a")
	b := below(compliantOn("x"), a, "b")
	root.Owner = &b.Ref
	self := below(compliantOn("x"), root, "self")
	self.Owner = &self.Ref
	self.Asked = true
	in := ask(root, a, b, self)
	if got := compliance.Evaluate(in).Verdict.Counts; got.Compliant != 2 || got.Total != 2 {
		t.Errorf("a circle of compliant ones: want 2 of 2 compliant, got %+v", got)
	}
	says(schema.StatusUnknown, "odd")(&in.Subscribers[2])
	got := compliance.Evaluate(in).Verdict
	if got.Counts.Unknown != 1 || got.Unfinished[0].Reason != "child Kustomization/flux-system/b: odd" {
		t.Errorf("a circle with trouble: got %+v, %+v", got.Counts, got.Unfinished)
	}
}

func TestChildrenMoveTheClocks(t *testing.T) {
	root := compliantOn("drone-01")
	late := below(compliantOn("x"), root, "late")
	source("c2", "c2", run("c2", 40))(&late)
	in := ask(root, late)
	in.Policy.MinSuccessTime = minutes(30)
	r := compliance.Evaluate(in)
	if r.Verdict.State != schema.Waiting || r.Verdict.Reason != "min_success_time" {
		t.Errorf("the soak counts from the child's success: got %s %q", r.Verdict.State, r.Verdict.Reason)
	}
	if !r.Progress.RoseAt.Equal(at(40)) {
		t.Errorf("the count rose with the child's success: got %s", r.Progress.RoseAt)
	}
	in.Now, root.Reporter.LastSeen = at(70), at(70)
	if got := compliance.Evaluate(in).Verdict; got.State != schema.Passed {
		t.Errorf("thirty minutes after the child's success: got %s %q", got.State, got.Reason)
	}
}

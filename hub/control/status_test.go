package control

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/internal/forge"
)

// say has the heralds of all environments say what they have to.
func (s *stage) say() (errs []error) {
	s.t.Helper()
	for _, p := range s.control.planes {
		for _, e := range p.environments {
			if e.herald != nil {
				errs = append(errs, e.herald.send(s.t.Context()))
			}
		}
	}
	return errs
}

func TestTheCommitIsToldHowItStands(t *testing.T) {
	s := newStage(t)
	fakes := s.providers("control-plane")
	web := fakes["control-plane"]
	pushing := func(o *Options) {
		onlyDev(o)
		s.proposing(fakes)(o)
		o.ControlPlanes[0].Publish = publishPush
	}
	s.start(pushing)
	fine := forge.Status{Context: "landfall/dev", Verdict: forge.Success, Description: "2 assignments"}
	head := func() string { return web.rev("dev") }
	told := func(when string, want forge.Status, times int) {
		t.Helper()
		s.say()
		got, n := web.last(head())
		if diff := cmp.Diff(want, got); diff != "" || n != times {
			t.Errorf("%s: told %d times, want %d (-want +got):\n%s", when, n, times, diff)
		}
	}
	s.settle()
	told("planned", fine, 1)
	s.settle()
	s.control.environment("dev").done = ""
	s.settle()
	told("nothing changed", fine, 1)
	s.start(pushing)
	s.settle()
	told("restarted", fine, 1)

	// What is broken is said of the commit that breaks it, and of no other.
	good := head()
	s.commit("control-plane", "dev", map[string]string{"broken.yaml": template("broken", "reconciler", "a: {{.Nonsense}"), "types/drone.yaml": clusterType("drone", "broken")})
	s.settle()
	s.say()
	bad, n := web.last(head())
	if n != 1 || bad.Verdict != forge.Failure || !strings.HasPrefix(bad.Description, "1 problem: broken.yaml:") {
		t.Errorf("broken: told %d times, %+v", n, bad)
	}
	if _, n := web.last(good); n != 1 {
		t.Errorf("the commit before was told %d times", n)
	}
	// It clears with the commit that mends it, and with promoted content that does.
	s.commit("control-plane", "dev", map[string]string{"broken.yaml": "", "types/drone.yaml": clusterType("drone", "missing")})
	s.settle()
	s.say()
	if got, _ := web.last(head()); got.Verdict != forge.Failure || !strings.Contains(got.Description, "missing") {
		t.Errorf("a template that is not there: %+v", got)
	}
	s.commit("control-plane", "main", map[string]string{"templates/missing.yaml": template("missing", "reconciler", "kind: Kustomization\nmetadata: {name: {{.DeploymentTargetName}}}")})
	s.settle()
	told("mended", fine, 2)

	// A round that fails.
	s.commit("control-plane", "dev", map[string]string{"gitops.yaml": ""})
	s.step()
	s.say()
	if got, _ := web.last(head()); got.Verdict != forge.Error || !strings.Contains(got.Description, "not up to date: the environment has no GitOpsRepo") {
		t.Errorf("nowhere to publish: %+v", got)
	}
}

// TestAStatusNeverKeepsAPlanWaiting: the provider is away, and all else goes on.
func TestAStatusNeverKeepsAPlanWaiting(t *testing.T) {
	s := newStage(t)
	fakes := s.providers("control-plane")
	web := fakes["control-plane"]
	web.goAway(errors.Join(forge.ErrAuth, errors.New("the words of a server")))
	s.start(onlyDev, s.proposing(fakes), func(o *Options) { o.ControlPlanes[0].Publish = "" })
	s.settle()
	if s.head("dev") == "" {
		t.Error("nothing is published")
	}
	if errs := s.say(); len(errs) != 1 || !errors.Is(errs[0], forge.ErrAuth) {
		t.Errorf("a provider that is away: %v", errs)
	}
	ok, detail := s.state("dev")
	if ok || !strings.HasSuffix(detail, "its commit status cannot be set: access was refused") {
		t.Errorf("the state: %v, %s", ok, detail)
	}
	if valueOf(s.control.metrics.statuses.WithLabelValues("dev", "failed")) != 1 {
		t.Error("the metrics do not say so")
	}
	// What was not said in time is not said any more.
	old := web.rev("dev")
	s.commit("control-plane", "dev", regionOf("east"))
	s.settle()
	web.goAway(nil)
	s.say()
	if _, n := web.last(old); n != 0 {
		t.Error("the old commit was told")
	}
	if got, n := web.last(web.rev("dev")); n != 1 || got.Verdict != forge.Success {
		t.Errorf("the new commit was told %d times, %+v", n, got)
	}
	if ok, detail := s.state("dev"); !ok {
		t.Errorf("the state: %s", detail)
	}
}

// TestACommitThatIsNotPlannedYetIsToldNothing: a repository that it names was not
// asked yet.
func TestACommitThatIsNotPlannedYetIsToldNothing(t *testing.T) {
	s := newStage(t)
	fakes := s.providers("control-plane")
	s.start(onlyDev, s.proposing(fakes), func(o *Options) { o.ControlPlanes[0].Publish = "" })
	s.settle()
	s.say()
	s.repos["other-src"] = s.git.NewRepo(t, "other-src", "sha1")
	s.commit("other-src", "main", map[string]string{"app.yaml": s.workload("elsewhere")})
	s.commit("control-plane", "dev", map[string]string{"base.yaml": kalypso + "kind: BaseRepo\nmetadata: {name: base}\nspec: {repo: " + s.url("other-src") + ", branch: main}\n"})
	plane := s.control.pool.all[key{s.name("control-plane"), true}]
	if _, err := plane.fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := s.control.environment("dev")
	err := e.round(t.Context())
	e.note(err)
	s.say()
	if _, n := fakes["control-plane"].last(fakes["control-plane"].rev("dev")); err != nil || n != 0 {
		t.Errorf("%v; told %d times", err, n)
	}
}

func TestWhatIsToldOfAPullRequest(t *testing.T) {
	open := outcome{assignments: 1, request: forge.PullRequest{Number: 7, State: forge.Open, URL: "https://git.example/7"}}
	closed := open
	closed.request.State = forge.Closed
	said, _ := about(&closed.request)
	closed.problems = []string{said}
	for name, c := range map[string]struct {
		o    outcome
		err  error
		want forge.Status
	}{
		"open":   {open, nil, forge.Status{Verdict: forge.Pending, Description: "1 assignment, pull request 7 waits to be merged"}},
		"closed": {closed, nil, forge.Status{Verdict: forge.Failure, Description: "1 problem: " + said}},
		"failed": {outcome{assignments: 3, failed: 2}, nil, forge.Status{Verdict: forge.Failure, Description: "3 assignments, 2 of them could not be planned"}},
		"broken": {open, &failure{"storing", errors.New("secret")}, forge.Status{Verdict: forge.Error, Description: "not up to date: storing: it failed; the hub's log says why"}},
	} {
		c.want.Context, c.want.URL = "landfall/dev", c.o.request.URL
		if diff := cmp.Diff(c.want, c.o.status("dev", c.err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestItIsToldWhileTheHubRuns: plan, pull request and status, each by the
// goroutine that does it.
func TestItIsToldWhileTheHubRuns(t *testing.T) {
	s := newStage(t)
	fakes := s.providers("control-plane", "platform-gitops")
	fakes["control-plane"].told = make(chan forge.Status, 100)
	r := s.run(onlyDev, s.proposing(fakes))
	<-r.published // the branch is made
	want := func(verdict forge.Verdict) {
		t.Helper()
		if got := <-fakes["control-plane"].told; got.Verdict != verdict {
			t.Errorf("told %+v, want %s", got, verdict)
		}
	}
	want(forge.Success)
	s.commit("control-plane", "dev", regionOf("east"))
	s.control.Fetch(s.name("control-plane"))
	want(forge.Pending)
	fakes["platform-gitops"].merge(1, false)
	s.control.Fetch(s.name("platform-gitops"))
	<-r.published
	want(forge.Success)
}

func TestPause(t *testing.T) {
	e := &environment{plane: &plane{}}
	for failures, want := range map[int]time.Duration{0: 0, 1: firstRetry, 3: 4 * firstRetry, 100: lastRetry} {
		if got := e.pause(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
	e.outcome.request.Number = 1
	if got := e.pause(0); got != minInterval {
		t.Errorf("a look that is due: %s, want %s", got, minInterval)
	}
	e.lookAt = time.Now().Add(time.Hour)
	if got := e.pause(0); got < time.Hour-time.Minute || got > time.Hour {
		t.Errorf("a look that is due in an hour: %s", got)
	}
	if got := e.pause(1); got != firstRetry {
		t.Errorf("after a failure: %s", got)
	}
}

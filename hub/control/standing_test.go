package control

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/internal/forge"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/schema"
)

const region = "large/hello-functional-test/platform-config.yaml"

// regionOf is a ConfigMap that large clusters are given.
func regionOf(value string) map[string]string {
	return map[string]string{"large.yaml": configMap("large", ", size: large", "REGION: "+value)}
}

// onlyDev leaves one environment.
func onlyDev(o *Options) { o.ControlPlanes[0].Environments = map[string]string{"dev": "dev"} }

// newProposingStage is a stage whose dev was made, and changes by pull requests.
func newProposingStage(t *testing.T) (*stage, map[string]*fakeProvider) {
	t.Helper()
	s := newStage(t)
	fakes := s.providers("platform-gitops")
	s.start(onlyDev, s.proposing(fakes))
	s.settle()
	return s, fakes
}

// recorded are the commits that are recorded of dev's assignments; "" for none.
func (s *stage) recorded() map[string]string {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	all := map[string]string{}
	for k, r := range s.store.rows {
		if k.Environment == "dev" {
			all[k.ClusterType+"/"+k.DeploymentTarget] = r.GitOpsCommit
		}
	}
	return all
}

// valueOf reads a counter or a gauge.
func valueOf(m prometheus.Metric) float64 {
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		return -1
	}
	return d.GetCounter().GetValue() + d.GetGauge().GetValue()
}

func TestAPlanWaitsForItsPullRequest(t *testing.T) {
	s := newStage(t)
	fakes := s.providers("platform-gitops")
	web, reg := fakes["platform-gitops"], prometheus.NewRegistry()
	s.start(onlyDev, s.proposing(fakes), func(o *Options) { o.Registerer = reg })
	s.settle()
	first := s.head("dev")
	if first == "" || web.states() != "" {
		t.Fatalf("a branch that is missing is made: dev is at %q, pull requests: %s", first, web.states())
	}
	if ok, detail := s.state("dev"); !ok {
		t.Errorf("made: %s", detail)
	}

	s.commit("control-plane", "dev", regionOf("east"))
	s.settle()
	if s.head("dev") != first || web.states() != "open" {
		t.Fatalf("dev moved to %s without being asked; pull requests: %s", s.head("dev"), web.states())
	}
	small, large := "drone/hello-functional-test", "large/hello-functional-test"
	if diff := cmp.Diff(map[string]string{small: first, large: ""}, s.recorded()); diff != "" {
		t.Errorf("recorded while it is open (-want +got):\n%s", diff)
	}
	if ok, detail := s.state("dev"); ok || !strings.Contains(detail, "pull request 1 (https://git.example/org/platform/pulls/1) waits to be merged into "+first) || strings.Contains(detail, "published as") {
		t.Errorf("the state while it is open: %v, %s", ok, detail)
	}
	metric := func(state string) float64 {
		return valueOf(s.control.metrics.waiting.WithLabelValues("dev", state))
	}
	if metric("open") != 1 || metric("closed") != 0 || valueOf(s.control.metrics.requests.WithLabelValues("dev")) != 1 {
		t.Error("the metrics do not say that one is open")
	}

	// Nothing changes: none is opened, nothing is stored, also after a restart.
	rows := len(s.store.written)
	s.settle()
	s.control.environment("dev").done = ""
	s.look()
	s.start(onlyDev, s.proposing(fakes))
	s.settle()
	gitCommit(t, s, "dev", "docs/people.md")
	s.settle()
	if web.states() != "open" || len(s.store.written) != rows {
		t.Errorf("nothing changed; pull requests: %s; stored: %v", web.states(), s.store.written[rows:])
	}

	// A plan that changed takes its place.
	s.commit("control-plane", "dev", regionOf("north"))
	s.settle()
	if web.states() != "closed/open" {
		t.Errorf("another plan; pull requests: %s", web.states())
	}
	if got := strings.Fields(gittest.Git(t, web.repo.Bare, "for-each-ref", "--format=%(refname:short)", "refs/heads/landfall")); len(got) != 1 || got[0] != web.requests[1].Head {
		t.Errorf("the branches of pull requests are %v; that of the open one is %s", got, web.requests[1].Head)
	}
	if _, detail := s.state("dev"); !strings.Contains(detail, "pull request 2") {
		t.Errorf("the state: %s", detail)
	}

	// Merged: recorded with the commit of the branch that holds it.
	web.merge(2, false)
	s.settle()
	merged := s.head("dev")
	if merged == first || !strings.Contains(s.file("dev", region), "north") || web.states() != "closed/merged" {
		t.Fatalf("dev is at %s; pull requests: %s", merged, web.states())
	}
	if diff := cmp.Diff(map[string]string{small: first, large: merged}, s.recorded()); diff != "" {
		t.Errorf("recorded when it is merged (-want +got):\n%s", diff)
	}
	if ok, detail := s.state("dev"); !ok || !strings.Contains(detail, "published as "+merged) || metric("open") != 0 {
		t.Errorf("the state when it is merged: %v, %s", ok, detail)
	}

	// The provider may know of a merge before the branch was fetched.
	s.commit("control-plane", "dev", regionOf("south"))
	s.settle()
	web.merge(3, true)
	s.told = nil
	e := s.control.environment("dev")
	e.lookAt = e.lookAt.AddDate(-1, 0, 0)
	if err := e.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.recorded()[large]; got != s.head("dev") || len(s.told) != 1 {
		t.Errorf("recorded at %s, dev is at %s; told: %v", got, s.head("dev"), s.told)
	}

	// What is planned as the branch is leaves nothing to be asked for.
	s.commit("control-plane", "dev", regionOf("nowhere"))
	s.settle()
	s.commit("control-plane", "dev", regionOf("south"))
	s.settle()
	if web.states() != "closed/merged/merged/closed" || s.recorded()[large] != s.head("dev") {
		t.Errorf("taken back; pull requests: %s; recorded: %v", web.states(), s.recorded())
	}
}

// expected are the cluster types that should read a folder of dev.
func (s *stage) expected(repo, path string) string {
	var types []string
	for _, x := range s.control.Expected(schema.Endpoint{Repo: repo, Ref: "dev", Path: path}, []string{repo}) {
		types = append(types, x.ClusterType)
	}
	return strings.Join(types, " ")
}

// TestOnlyWhatIsMergedIsExpected: a gate waits for nobody who cannot have read
// it, and for everybody who should read what the branch still holds.
func TestOnlyWhatIsMergedIsExpected(t *testing.T) {
	s := newStage(t)
	fakes := s.providers("platform-gitops")
	// A type that nothing is assigned to has a folder, too.
	s.commit("control-plane", "dev", map[string]string{
		"types/idle.yaml": clusterType("idle", "flux"), "policy.yaml": policyOf("everything", "{}", "{matchExpressions: [{key: size, operator: NotIn, values: [idle]}]}"),
	})
	s.start(onlyDev, s.proposing(fakes))
	s.settle()
	app, platform := s.name("app-gitops"), s.name("platform-gitops")
	expected := s.expected
	check := func(when string, want map[string]string) {
		t.Helper()
		got := map[string]string{
			"app": expected(app, "functional-test"), "new": expected(app, "new"), "moved": expected(app, "elsewhere"),
			"drone": expected(platform, "drone"), "large": expected(platform, "large"), "tiny": expected(platform, "tiny"), "idle": expected(platform, "idle"),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	before := map[string]string{"app": "drone large", "new": "", "moved": "", "drone": "drone", "large": "large", "tiny": "", "idle": "idle"}
	check("published", before)

	// large goes, tiny comes, a target is new, and another's manifests move.
	s.commit("control-plane", "dev", map[string]string{"types/large.yaml": "", "types/tiny.yaml": clusterType("tiny", "flux")})
	s.commit("app-src", "main", map[string]string{"workload/app.yaml": strings.ReplaceAll(s.workload("functional-test", "new"), "path: ./functional-test", "path: ./elsewhere")})
	s.settle()
	check("open", before)
	s.start(onlyDev, s.proposing(fakes))
	check("restarted", map[string]string{"app": "drone large", "new": "", "moved": "", "drone": "drone", "large": "large", "tiny": "", "idle": ""})
	s.settle()
	check("restarted and planned", before)

	// Nobody can open one now: no difference to who should read what.
	fakes["platform-gitops"].goAway(forge.ErrLimited)
	s.commit("app-src", "main", map[string]string{"workload/app.yaml": strings.ReplaceAll(s.workload("functional-test", "new", "newer"), "path: ./functional-test", "path: ./elsewhere")})
	if errs := s.step(); errs["dev"] == nil {
		t.Error("a provider that is away is no trouble")
	}
	check("provider away", before)
	s.goAway("platform-gitops", true)
	s.control.environment("dev").done = ""
	if errs := s.step(); errs["dev"] == nil {
		t.Error("a repository that is away is no trouble")
	}
	check("repository away", before)
	s.goAway("platform-gitops", false)
	fakes["platform-gitops"].goAway(nil)
	s.settle()
	check("back", before)

	fakes["platform-gitops"].merge(2, false)
	s.settle()
	check("merged", map[string]string{"app": "", "new": "drone tiny", "moved": "drone tiny", "drone": "drone", "large": "", "tiny": "tiny", "idle": "idle"})
	for name, commit := range s.recorded() {
		if commit != s.head("dev") {
			t.Errorf("%s is recorded at %q, and dev is at %s", name, commit, s.head("dev"))
		}
	}
}

// TestAMergeBeforeTheNextMove: what is merged and planned otherwise before the hub
// looks is what the branch holds, and should be read.
func TestAMergeBeforeTheNextMove(t *testing.T) {
	for name, restart := range map[string]bool{"at once": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			s, fakes := newProposingStage(t)
			web := fakes["platform-gitops"]
			plan := func(names ...string) {
				text := s.workload(append([]string{"functional-test"}, names[1:]...)...)
				text = strings.ReplaceAll(text, "path: ./functional-test", "path: ./"+names[0])
				s.commit("app-src", "main", map[string]string{"workload/app.yaml": text})
				if restart {
					s.start(onlyDev, s.proposing(fakes))
				}
				s.settle()
			}
			check := func(when, want string) {
				t.Helper()
				e := s.control.environment("dev")
				var onDisk proposed
				readFile(s.control.fileOf("proposal", "dev"), &onDisk)
				if diff := cmp.Diff(e.proposed, onDisk, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s: what a restart would know (-want +got):\n%s", when, diff)
				}
				var got []string
				for _, path := range []string{"functional-test", "second", "third", "new"} {
					if types := s.expected(s.name("app-gitops"), path); types != "" {
						got = append(got, path+": "+types)
					}
				}
				if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
					t.Errorf("%s (-want +got):\n%s", when, diff)
				}
			}
			plan("second", "new")
			check("proposed", "functional-test: drone large")
			web.merge(1, false)
			plan("third") // and new is wanted no more
			check("merged, and moved on", "second: drone large, new: drone large")
			web.merge(2, true)
			plan("functional-test")
			check("merged, and moved back", "third: drone large")
			plan("second")
			check("proposed again", "third: drone large")
			web.merge(int64(len(web.requests)), false)
			s.settle()
			check("merged", "second: drone large")
			if n := len(s.control.environment("dev").proposed.Places); n != 0 {
				t.Errorf("the places of %d assignments are kept", n)
			}
		})
	}
}

// TestABranchThatAnotherHubFilled: a hub that remembers nothing expects what the
// branch holds, and no more.
func TestABranchThatAnotherHubFilled(t *testing.T) {
	s := newStage(t)
	s.start(onlyDev)
	s.settle()
	s.store.rows = map[record.ScheduleKey]record.Schedule{}
	s.commit("control-plane", "dev", regionOf("east"))
	s.commit("app-src", "main", map[string]string{"workload/app.yaml": s.workload("functional-test", "new")})
	s.dir = t.TempDir()
	s.start(onlyDev, s.proposing(s.providers("platform-gitops")))
	s.settle()
	app := s.name("app-gitops")
	for path, want := range map[string]int{"functional-test": 2, "new": 0} {
		if got := s.control.Expected(schema.Endpoint{Repo: app, Ref: "dev", Path: path}, []string{app}); len(got) != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestAPullRequestThatSomebodyClosedStaysClosed(t *testing.T) {
	s, fakes := newProposingStage(t)
	web := fakes["platform-gitops"]
	s.commit("control-plane", "dev", regionOf("east"))
	s.settle()
	refuse := func(number int64) {
		if err := web.set(number, forge.Closed); err != nil {
			t.Fatal(err)
		}
	}
	refuse(1)
	s.settle()
	if _, detail := s.state("dev"); !strings.Contains(detail, "waits to be merged") {
		t.Errorf("before it is time to look: %s", detail)
	}
	s.look()
	said := func(when string) {
		t.Helper()
		ok, detail := s.state("dev")
		if ok || !strings.Contains(detail, "1 problem: pull request 1 (https://git.example/org/platform/pulls/1) was closed without being merged") || web.states() != "closed" {
			t.Errorf("%s: %v, %s; pull requests: %s", when, ok, detail, web.states())
		}
	}
	said("closed")
	if got := valueOf(s.control.metrics.waiting.WithLabelValues("dev", "closed")); got != 1 {
		t.Errorf("closed by the metrics: %v", got)
	}
	s.look()
	said("looked at again")
	s.start(onlyDev, s.proposing(fakes))
	s.settle()
	said("after a restart")
	gitCommit(t, s, "dev", "docs/people.md")
	s.settle()
	said("after the branch moved")

	// Whoever closed it reopens it.
	if err := web.set(1, forge.Open); err != nil {
		t.Fatal(err)
	}
	s.look()
	if _, detail := s.state("dev"); !strings.Contains(detail, "waits to be merged") || strings.Contains(detail, "problem") {
		t.Errorf("reopened: %s", detail)
	}
	refuse(1)
	s.look()
	said("closed again")

	s.commit("control-plane", "dev", regionOf("north"))
	s.settle()
	if web.states() != "closed/open" {
		t.Errorf("another plan; pull requests: %s", web.states())
	}
	web.merge(2, true)
	s.settle()
	if ok, detail := s.state("dev"); !ok || !strings.Contains(s.file("dev", region), "north") {
		t.Errorf("merged: %s", detail)
	}
}

// TestAProviderThatIsAway stops the environment that needs it, and no other.
func TestAProviderThatIsAway(t *testing.T) {
	s := newStage(t)
	s.repos["other-gitops"] = s.git.NewRepo(t, "other-gitops", "sha1")
	s.commit("control-plane", "stage", map[string]string{"gitops.yaml": kalypso + "kind: GitOpsRepo\nmetadata: {name: x}\nspec: {repo: " + s.url("other-gitops") + ", branch: stage}\n"})
	fakes := s.providers("platform-gitops", "other-gitops")
	s.start(s.proposing(fakes))
	s.settle()
	web := fakes["platform-gitops"]
	web.goAway(errors.Join(forge.ErrAuth, errors.New("the words of a server")))
	for _, branch := range []string{"dev", "stage"} {
		s.commit("control-plane", branch, regionOf("east"))
	}
	errs := s.step()
	if errs["stage"] != nil || fakes["other-gitops"].states() != "open" {
		t.Errorf("the other environment: %v; pull requests: %s", errs["stage"], fakes["other-gitops"].states())
	}
	if !errors.Is(errs["dev"], forge.ErrAuth) {
		t.Errorf("dev: %v", errs["dev"])
	}
	_, detail := s.state("dev")
	if !strings.Contains(detail, "not up to date: proposing a pull request to the branch dev of "+s.name("platform-gitops")+": access was refused") || strings.Contains(detail, "words of a server") {
		t.Errorf("the state: %s", detail)
	}
	if got := s.recorded()["large/hello-functional-test"]; got != "" {
		t.Errorf("what is not even proposed is recorded at %s", got)
	}
	web.goAway(nil)
	s.settle()
	if ok, detail := s.state("dev"); web.states() != "open" || ok || !strings.Contains(detail, "pull request 1") {
		t.Errorf("back: %s; pull requests: %s", detail, web.states())
	}

	// While one is open, the provider is away when it is looked at.
	web.goAway(forge.ErrLimited)
	if errs := s.look(); !errors.Is(errs["dev"], forge.ErrLimited) || errs["stage"] != nil {
		t.Errorf("looking: %v", errs)
	}
	web.goAway(nil)
	if errs := s.look(); len(errs) != 0 || web.states() != "open" {
		t.Errorf("looking again: %v; pull requests: %s", errs, web.states())
	}
}

// TestAnOldRequestThatCannotBeClosed fails between the new request and the old:
// the new one is known, and the old one is closed later.
func TestAnOldRequestThatCannotBeClosed(t *testing.T) {
	s, fakes := newProposingStage(t)
	web := fakes["platform-gitops"]
	s.commit("control-plane", "dev", regionOf("east"))
	s.settle()
	web.stuck = forge.ErrLimited
	s.commit("control-plane", "dev", regionOf("north"))
	if errs := s.step(); !errors.Is(errs["dev"], forge.ErrLimited) || web.states() != "open/open" {
		t.Errorf("%v; pull requests: %s", errs, web.states())
	}
	if _, detail := s.state("dev"); !strings.Contains(detail, "pull request 2") || !strings.Contains(detail, "not up to date: proposing") {
		t.Errorf("the state: %s", detail)
	}
	// A person closes the new one before a restart.
	if err := web.set(2, forge.Closed); err != nil {
		t.Fatal(err)
	}
	web.stuck = nil
	s.start(onlyDev, s.proposing(fakes))
	s.settle()
	if _, detail := s.state("dev"); web.states() != "closed/closed" || !strings.Contains(detail, "pull request 2 (https://git.example/org/platform/pulls/2) was closed without being merged") {
		t.Errorf("pull requests: %s; the state: %s", web.states(), detail)
	}
}

func TestARepositoryWithoutAProviderSaysWhatToDo(t *testing.T) {
	s := newStage(t)
	s.repos["elsewhere"] = s.git.NewRepo(t, "elsewhere", "sha1")
	s.start(onlyDev, s.proposing(s.providers("elsewhere")))
	errs := s.step()
	if !errors.Is(errs["dev"], errNoForge) || s.head("dev") != "" {
		t.Errorf("dev: %v", errs["dev"])
	}
	if _, detail := s.state("dev"); !strings.Contains(detail, s.name("platform-gitops")+": hub.yaml does not say what its Git provider is: name it under repositories, with forge:") {
		t.Errorf("the state: %s", detail)
	}
}

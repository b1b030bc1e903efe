package control

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

func TestAChangeBecomesExactlyItsCommit(t *testing.T) {
	s := newStage(t)
	s.start()
	s.settle()
	want := []string{
		".github/tracking/Promoted_Commit_Id", "drone/README.md",
		"drone/hello-functional-test/namespace.yaml", "drone/hello-functional-test/platform-config.yaml", "drone/hello-functional-test/reconciler.yaml",
		"large/README.md",
		"large/hello-functional-test/namespace.yaml", "large/hello-functional-test/platform-config.yaml", "large/hello-functional-test/reconciler.yaml",
	}
	for _, branch := range []string{"dev", "stage"} {
		if diff := cmp.Diff(want, s.published(branch)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", branch, diff)
		}
	}
	if got := s.file("dev", "large/hello-functional-test/platform-config.yaml"); !strings.Contains(got, "REGION") || !strings.Contains(got, "mysql") {
		t.Errorf("the configuration of large clusters: %s", got)
	}
	dev := s.head("dev")
	main := s.commit("control-plane", "main", nil)
	s.settle()
	if diff := cmp.Diff([]string{".github/tracking/Promoted_Commit_Id"}, s.changed(dev, s.head("dev"))); diff != "" || strings.TrimSpace(s.file("dev", ".github/tracking/Promoted_Commit_Id")) != main {
		t.Errorf("the promoted commit alone moves with main: %s", diff)
	}
	dev, stage := s.head("dev"), s.head("stage")
	s.commit("control-plane", "dev", map[string]string{"large.yaml": configMap("large", ", size: large", "REGION: east")})
	s.settle()
	if diff := cmp.Diff([]string{"large/hello-functional-test/platform-config.yaml"}, s.changed(dev, s.head("dev"))); diff != "" {
		t.Errorf("one ConfigMap (-want +got):\n%s", diff)
	}
	if s.head("stage") != stage {
		t.Error("one ConfigMap of dev made a commit in stage")
	}
	// Folders that are assigned no more go, and nothing else.
	s.commit("app-src", "main", map[string]string{"workload/app.yaml": s.workload("other")})
	s.settle()
	if got := s.published("dev"); slices.ContainsFunc(got, func(name string) bool { return strings.Contains(name, "functional-test") }) || !slices.Contains(got, "drone/hello-other/reconciler.yaml") {
		t.Errorf("another target took the place of the first: %v", got)
	}
	if !slices.Contains(s.told, strings.TrimPrefix(strings.TrimSuffix(s.url("platform-gitops"), ".git"), "http://")) {
		t.Errorf("nobody was told of the commits: %v", s.told)
	}
}

func TestARestartPlansAgainAndCommitsNothing(t *testing.T) {
	s := newStage(t)
	s.start()
	s.settle()
	dev, stage, rows := s.head("dev"), s.head("stage"), len(s.store.written)
	s.start()
	s.settle()
	if s.head("dev") != dev || s.head("stage") != stage {
		t.Error("a restart made a commit")
	}
	if len(s.store.written) != rows {
		t.Errorf("a restart stored %v again", s.store.written[rows:])
	}
	if ok, detail := s.state("dev"); !ok || !strings.Contains(detail, "2 assignments") {
		t.Errorf("after the restart: %v, %s", ok, detail)
	}
}

func TestARoundIsDoneTwiceForNothing(t *testing.T) {
	s := newStage(t)
	s.start()
	s.settle()
	dev := s.head("dev")
	s.control.environment("dev").done = ""
	s.settle()
	if s.head("dev") != dev {
		t.Error("the same round made another commit")
	}
}

func TestOnesTroubleIsNotTheOthers(t *testing.T) {
	cases := map[string]struct {
		reason string
		breaks func(s *stage)
		// err and detail are parts of what is said of dev.
		err, detail string
		// kept says that drone's folder stays as it is, while large's is written.
		kept bool
	}{
		"template": {
			reason: "a broken template stops its own assignments",
			breaks: func(s *stage) {
				s.commit("control-plane", "dev", map[string]string{
					"broken.yaml": template("broken", "reconciler", "a: {{.Nonsense}"), "types/drone.yaml": clusterType("drone", "broken"),
					"all.yaml": configMap("common", "", "DATABASE: other"),
				})
			},
			detail: "1 of them stay as they were", kept: true,
		},
		"document": {
			reason: "a document that cannot be read hides what it says: nothing is deleted",
			breaks: func(s *stage) {
				s.commit("control-plane", "dev", map[string]string{"types/drone.yaml": kalypso + "kind: ClusterType\nmetadata: [\n", "all.yaml": configMap("common", "", "DATABASE: other")})
			},
			detail: "types/drone.yaml", kept: true,
		},
		"environment": {
			reason: "a branch that is gone stops its environment, and what it held stays",
			breaks: func(s *stage) { s.repos["control-plane"].Push(s.t, ":refs/heads/dev") },
			detail: "the branch dev is gone",
		},
		"nowhere to publish": {
			reason: "an environment without a GitOpsRepo is planned all the same",
			breaks: func(s *stage) { s.commit("control-plane", "dev", map[string]string{"gitops.yaml": ""}) },
			err:    "no GitOpsRepo", detail: "no GitOpsRepo",
		},
		"pin": {
			reason: "a commit that is not there",
			breaks: func(s *stage) {
				s.commit("control-plane", "dev", map[string]string{"base.yaml": kalypso + "kind: BaseRepo\nmetadata: {name: base}\nspec: {repo: " + s.url("control-plane") + ", branch: main, commit: " + strings.Repeat("1", 40) + "}\n"})
			},
			err: "base.yaml:1: BaseRepo \"base\"", detail: "pin one that is",
		},
		"own branch": {
			reason: "a plan is not published to where it is read from",
			breaks: func(s *stage) {
				s.commit("control-plane", "dev", map[string]string{"gitops.yaml": kalypso + "kind: GitOpsRepo\nmetadata: {name: x}\nspec: {repo: " + s.url("control-plane") + ", branch: stage}\n"})
			},
			err: "read by the control plane itself",
		},
		"another's branch": {
			reason: "two environments do not fight over a branch",
			breaks: func(s *stage) {
				s.commit("control-plane", "dev", map[string]string{"gitops.yaml": kalypso + "kind: GitOpsRepo\nmetadata: {name: x}\nspec: {repo: " + s.url("platform-gitops") + ", branch: stage}\n"})
			},
			err: "the environment stage is published to",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.start()
			s.settle()
			before := s.head("dev")
			c.breaks(s)
			// The other environment goes on.
			s.commit("control-plane", "stage", map[string]string{"all.yaml": configMap("common", "", "DATABASE: another")})
			errs := s.step()
			if got := text(errs["dev"]); c.err == "" && got != "" || !strings.Contains(got, c.err) {
				t.Errorf("%s: dev: %q, want %q", c.reason, got, c.err)
			}
			if errs["stage"] != nil || !strings.Contains(s.file("stage", "drone/hello-functional-test/platform-config.yaml"), "another") {
				t.Errorf("%s: stage: %v", c.reason, errs["stage"])
			}
			if ok, detail := s.state("dev"); ok || !strings.Contains(detail, c.detail) {
				t.Errorf("%s: the state of dev is %v, %q, want %q", c.reason, ok, detail, c.detail)
			}
			if ok, detail := s.state("stage"); !ok {
				t.Errorf("%s: the state of stage is %q", c.reason, detail)
			}
			changed := s.changed(before, s.head("dev"))
			if !c.kept {
				if len(changed) > 0 {
					t.Errorf("%s: dev has changed: %v", c.reason, changed)
				}
				return
			}
			if slices.ContainsFunc(changed, func(name string) bool { return strings.HasPrefix(name, "drone/hello") }) {
				t.Errorf("%s: what could not be planned did not stay: %v", c.reason, changed)
			}
			if !slices.Contains(changed, "large/hello-functional-test/platform-config.yaml") {
				t.Errorf("%s: the others did not go on: %v", c.reason, changed)
			}
		})
	}
}

func TestASourceThatIsAwayKeepsWhatItHeld(t *testing.T) {
	s := newStage(t)
	s.start()
	s.settle()
	dev := s.head("dev")
	s.goAway("app-src", true)
	s.commit("control-plane", "dev", map[string]string{"large.yaml": configMap("large", ", size: large", "REGION: east")})
	s.settle()
	if diff := cmp.Diff([]string{"large/hello-functional-test/platform-config.yaml"}, s.changed(dev, s.head("dev"))); diff != "" {
		t.Errorf("with its source away (-want +got):\n%s", diff)
	}
	if ok, detail := s.state("dev"); ok || !strings.Contains(detail, "app-src cannot be fetched") {
		t.Errorf("the state does not say it: %v, %s", ok, detail)
	}

	// A restart in the meantime knows it from its mirror.
	dev = s.head("dev")
	s.start()
	s.settle()
	if s.head("dev") != dev {
		t.Errorf("the restart changed %v", s.changed(dev, s.head("dev")))
	}
	s.goAway("app-src", false)
	s.settle()
	if ok, detail := s.state("dev"); !ok || s.head("dev") != dev {
		t.Errorf("when it is back: %v, %s", ok, detail)
	}

	// One that nobody has ever seen hides what it holds: nothing is deleted.
	s.goAway("app-src", true)
	s.dir = t.TempDir()
	s.start()
	if errs := s.step(); errs["dev"] != nil {
		t.Fatal(errs["dev"])
	}
	if got := s.published("dev"); !slices.Contains(got, "large/hello-functional-test/reconciler.yaml") {
		t.Errorf("what cannot be known was deleted: %v", got)
	}
	if len(s.store.rows) != 4 {
		t.Errorf("%d assignments are stored, want the 4 of before", len(s.store.rows))
	}
}

func TestALostRaceIsRunAgain(t *testing.T) {
	s := newStage(t)
	s.start(func(o *Options) {
		o.ControlPlanes[0].Environments = map[string]string{"dev": "dev"}
	})
	s.settle()
	raced := false
	s.before = func(r *http.Request) {
		if !raced && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "platform-gitops.git/git-receive-pack") {
			raced = true
			gitCommit(t, s, "dev", "docs/people.md")
		}
	}
	s.commit("control-plane", "dev", map[string]string{"large.yaml": configMap("large", ", size: large", "REGION: east")})
	s.settle()
	if !raced || s.commits("dev") != 3 {
		t.Errorf("raced: %v; %d commits on the branch, want ours, theirs and ours", raced, s.commits("dev"))
	}
	if got := s.published("dev"); !slices.Contains(got, "docs/people.md") {
		t.Errorf("what others wrote is gone: %v", got)
	}
	if !strings.Contains(s.file("dev", "large/hello-functional-test/platform-config.yaml"), "east") {
		t.Error("our change did not arrive")
	}
}

func TestWhatOthersChangeInOurFoldersIsPutRight(t *testing.T) {
	s := newStage(t)
	s.start()
	s.settle()
	gitCommit(t, s, "dev", "large/hello-functional-test/reconciler.yaml")
	s.settle()
	if got := s.file("dev", "large/hello-functional-test/reconciler.yaml"); !strings.Contains(got, "Kustomization") {
		t.Errorf("it stays as people wrote it: %s", got)
	}
}

func TestANewPlatformRepositoryIsFilled(t *testing.T) {
	s := newStage(t)
	s.repos["empty"] = s.git.NewRepo(t, "empty", "sha1")
	s.commit("control-plane", "dev", map[string]string{"gitops.yaml": kalypso + "kind: GitOpsRepo\nmetadata: {name: x}\nspec: {repo: " + s.url("empty") + ", branch: dev}\n"})
	s.start()
	s.settle()
	s.repos["platform-gitops"] = s.repos["empty"]
	if got := s.published("dev"); !slices.Contains(got, "large/hello-functional-test/reconciler.yaml") || s.commits("dev") != 1 {
		t.Errorf("it holds %v", got)
	}
}

func TestAPrivateSourceSaysWhatToDo(t *testing.T) {
	s := newStage(t)
	s.start()
	s.settle()
	s.commit("control-plane", "main", map[string]string{
		"secret.yaml": kalypso + "kind: WorkloadRegistration\nmetadata: {name: secret}\nspec: {workspace: kaizen, workload: {repo: " + s.url("nowhere") + ", branch: main, path: workload}}\n",
	})
	s.settle()
	if _, detail := s.state("dev"); !strings.Contains(detail, "secret.yaml:1: WorkloadRegistration \"secret\"") || !strings.Contains(detail, "name it in hub.yaml under repositories") {
		t.Errorf("the state of dev is %q", detail)
	}
}

func TestWhatIsStored(t *testing.T) {
	s := newStage(t)
	s.start()
	s.settle()
	r := s.store.rows[record.ScheduleKey{Environment: "dev", ClusterType: "large", DeploymentTarget: "hello-functional-test"}]
	if diff := cmp.Diff([]schema.ConfigValue{
		{Key: "DATABASE", Value: "mysql", ConfigMap: "common", Place: "all.yaml:4", Overridden: []string{}},
		{Key: "REGION", Value: "west", ConfigMap: "large", Place: "large.yaml:4", Overridden: []string{}},
	}, r.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if r.Workload != "hello" || r.Target != "functional-test" || r.Workspace != "kaizen" || !slices.Equal(r.Policies, []string{"everything"}) ||
		r.Path != "./functional-test" || r.Endpoint.Path != "functional-test" || r.GitOpsCommit != s.head("dev") || len(r.ConfigVersion) != 40 {
		t.Errorf("row: %+v", r)
	}
	// One change, one row.
	n := len(s.store.written)
	s.commit("control-plane", "dev", map[string]string{"large.yaml": configMap("large", ", size: large", "REGION: east")})
	s.settle()
	if diff := cmp.Diff([][]string{{"dev/large/hello-functional-test"}}, s.store.written[n:]); diff != "" {
		t.Errorf("stored for one change (-want +got):\n%s", diff)
	}
	// What is not stored is stored with the next round.
	s.store.fail = errAway
	s.commit("control-plane", "dev", map[string]string{"types/large.yaml": ""})
	if errs := s.step(); errs["dev"] == nil {
		t.Error("a store that is away is no trouble")
	}
	s.store.fail = nil
	n = len(s.store.written)
	s.settle()
	if diff := cmp.Diff([][]string{{"-dev/large/hello-functional-test"}}, s.store.written[n:]); diff != "" {
		t.Errorf("stored afterwards (-want +got):\n%s", diff)
	}
	// An environment that no control plane has any more is forgotten, by a hub
	// that is alone.
	for _, shared := range []bool{true, false} {
		s.start(func(o *Options) {
			o.Shared, o.ControlPlanes[0].Environments = shared, map[string]string{"dev": "dev"}
		})
		if got := len(s.store.rows); shared != (got == 3) {
			t.Errorf("shared %v: %d rows", shared, got)
		}
	}
}

func TestAPinnedCommitIsWhatIsPlannedFrom(t *testing.T) {
	s := newStage(t)
	s.start()
	s.settle()
	pinned := strings.TrimSpace(s.file("dev", ".github/tracking/Promoted_Commit_Id"))
	for _, commit := range []string{pinned, pinned[:10]} {
		s.commit("control-plane", "dev", map[string]string{"base.yaml": kalypso + "kind: BaseRepo\nmetadata: {name: base}\nspec: {repo: " + s.url("control-plane") + ", branch: main, path: ., commit: \"" + commit + "\"}\n"})
		s.commit("control-plane", "main", map[string]string{"templates/ns.yaml": template("namespace", "namespace", "kind: Namespace\nmetadata: {name: new-{{.Namespace}}}")})
		s.settle()
		if strings.Contains(s.file("dev", "drone/hello-functional-test/namespace.yaml"), "new-") || !strings.Contains(s.file("stage", "drone/hello-functional-test/namespace.yaml"), "new-") {
			t.Errorf("%s: stage follows main, and dev the commit that it pins", commit)
		}
	}
}

func TestConfigRepositoriesJoinTheirEnvironment(t *testing.T) {
	s := newStage(t)
	s.repos["stage-configs"] = s.git.NewRepo(t, "stage-configs", "sha1")
	s.commit("stage-configs", "prod", map[string]string{".sourceignore": "*.yml\n", "more.yaml": configMap("more", "", "EXTRA: yes-it-is")})
	s.start(func(o *Options) {
		o.ControlPlanes[0].ConfigRepos = []ConfigRepo{{URL: s.url("stage-configs"), Environments: map[string]string{"stage": "prod"}}}
	})
	s.settle()
	file := "drone/hello-functional-test/platform-config.yaml"
	if strings.Contains(s.file("dev", file), "EXTRA") || !strings.Contains(s.file("stage", file), "yes-it-is") {
		t.Error("a config repository joins the environments that it has a branch for, and no other")
	}
	if k := s.store.rows[record.ScheduleKey{Environment: "stage", ClusterType: "drone", DeploymentTarget: "hello-functional-test"}]; !slices.ContainsFunc(k.Config, func(v schema.ConfigValue) bool { return v.Place == "stage-configs/more.yaml:4" }) {
		t.Errorf("where the value is from: %v", k.Config)
	}
}

func TestProblemsAreLoggedOnce(t *testing.T) {
	s := newStage(t)
	said := make(chan string, 1000)
	s.start(func(o *Options) { o.Log = slog.New(listener{o.Log.Handler(), said}) })
	count := func() (n int) {
		for {
			select {
			case text := <-said:
				if strings.HasPrefix(text, "something is not as it should be") {
					n++
				}
			default:
				return n
			}
		}
	}
	s.settle()
	broken := map[string]string{"types/drone.yaml": clusterType("drone", "nowhere")}
	for _, c := range []struct {
		reason string
		change map[string]string
		want   int
	}{
		{"it is new", broken, 1},
		{"it is known", map[string]string{"large.yaml": configMap("large", ", size: large", "REGION: east")}, 0},
		{"it is gone", map[string]string{"types/drone.yaml": clusterType("drone", "flux")}, 0},
		{"it is back", broken, 1},
	} {
		s.commit("control-plane", "dev", c.change)
		s.settle()
		if got := count(); got != c.want {
			t.Errorf("%s: logged %d times, want %d", c.reason, got, c.want)
		}
	}
	s.goAway("app-src", true)
	s.settle()
	s.settle()
	if got := count(); got != 2 { // in dev and in stage
		t.Errorf("a source that is away was logged %d times, want once in each environment", got)
	}
}

func TestFoldersOfThisMachine(t *testing.T) {
	s := newStage(t)
	rename := func(text string) string {
		for _, name := range []string{"app-src", "platform-gitops"} {
			text = strings.ReplaceAll(text, s.url(name), s.repos[name].Bare)
		}
		return text
	}
	for _, branch := range []string{"main", "dev"} {
		changes := map[string]string{}
		for name, text := range s.trees["control-plane@"+branch] {
			changes[name] = rename(text)
		}
		s.commit("control-plane", branch, changes)
	}
	only := func(o *Options) { o.ControlPlanes[0].Environments = map[string]string{"dev": "dev"} }
	// A control plane on a server names no folders of the hub's machine.
	s.start(only)
	if err := s.step()["dev"]; !strings.Contains(text(err), "gitops.yaml:1: GitOpsRepo \"platform\"") || !errors.Is(err, errLocal) {
		t.Errorf("a folder to publish to: %v", err)
	}
	if _, detail := s.state("dev"); !strings.Contains(detail, "app.yaml:1: WorkloadRegistration \"hello\"") || !strings.Contains(detail, "which is read only where hub.yaml names it") {
		t.Errorf("a folder to read: %s", detail)
	}
	if s.head("dev") != "" {
		t.Error("something was published")
	}
	// One that is a folder itself does, and so does one whose operator names them.
	for _, c := range []func(o *Options){
		func(o *Options) {
			o.Known = []Repository{{URL: s.repos["app-src"].Bare}, {URL: "file://" + s.repos["platform-gitops"].Bare}}
		},
		func(o *Options) { o.ControlPlanes[0].URL = s.repos["control-plane"].Bare },
	} {
		s.dir = t.TempDir()
		s.start(only, c)
		s.settle()
		if got := s.published("dev"); !slices.Contains(got, "large/hello-functional-test/reconciler.yaml") {
			t.Errorf("published: %v", got)
		}
		s.repos["platform-gitops"].Push(t, ":refs/heads/dev")
	}
}

package cli

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
)

// tutorial is the Kalypso tutorial: a control plane in folders, as it comes, and
// a platform GitOps repository on a real Git server.
type tutorial struct {
	t      *testing.T
	dir    string
	server *httptest.Server
	bare   *gittest.Repo
}

const (
	serviceSource = "https://github.com/microsoft/kalypso-svc-src"
	appSource     = "https://github.com/microsoft/kalypso-app-src"
)

func newTutorial(t *testing.T) *tutorial {
	t.Helper()
	w := &tutorial{t: t, dir: t.TempDir()}
	if err := os.CopyFS(w.dir, os.DirFS(filepath.Join("testdata", "tutorial"))); err != nil {
		t.Fatal(err)
	}
	git, err := gittest.New(t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	w.server = httptest.NewServer(git)
	t.Cleanup(w.server.Close)
	w.bare = git.NewRepo(t, "platform-gitops", "sha1")
	return w
}

// write writes a file of the control plane.
func (w *tutorial) write(name, text string) { writeFile(w.t, filepath.Join(w.dir, name), text) }

// run runs a command on an environment of the control plane.
func (w *tutorial) run(environment string, args ...string) (out, words string, code int) {
	w.t.Helper()
	args = append(args,
		"--base", filepath.Join(w.dir, "main"), "--control-plane", filepath.Join(w.dir, environment),
		"--source", serviceSource+"="+filepath.Join(w.dir, "svc"), "--source", appSource+"="+filepath.Join(w.dir, "app"))
	return runPlain(w.t, args...)
}

// runPlain runs a command that asks no hub.
func runPlain(t *testing.T, args ...string) (out, words string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{env: func(string) string { return "" }, streams: Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr}, now: func() time.Time { return testNow }}
	code = a.run(t.Context(), args)
	return stdout.String(), stderr.String(), code
}

// schedule plans an environment and publishes it to its branch.
func (w *tutorial) schedule(environment string) scheduled {
	w.t.Helper()
	out, words, code := w.run(environment, "schedule", "--environment", environment, "--out", w.server.URL+"/"+w.bare.Name+"@"+environment, "-o", "json")
	if code != exitDone {
		w.t.Fatalf("schedule %s: code %d: %s%s", environment, code, out, words)
	}
	var s scheduled
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// changed returns what a plan touched.
func changed(s *scheduled) map[string][]string {
	found := map[string][]string{}
	for word, names := range map[string][]string{"added": s.Added, "changed": s.Changed, "deleted": s.Deleted, "kept": s.Kept, "adopted": s.Adopted, "foreign": s.Foreign} {
		if len(names) > 0 {
			found[word] = names
		}
	}
	return found
}

func (w *tutorial) check(step string, s scheduled, want map[string][]string) {
	w.t.Helper()
	if diff := cmp.Diff(want, changed(&s)); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", step, diff)
	}
}

func (w *tutorial) file(branch, name string) string {
	w.t.Helper()
	return gittest.Git(w.t, w.bare.Bare, "show", branch+":"+name)
}

func policy(name, purpose, selector string) string {
	return `apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata:
  name: ` + name + `
spec:
  deploymentTargetSelector:
    workspace: kaizen-app-team
    labelSelector:
      matchLabels:
        purpose: ` + purpose + `
  clusterTypeSelector:
    labelSelector: ` + selector + "\n"
}

// TestTutorial goes through the Kalypso tutorial, step by step, on its own files.
func TestTutorial(t *testing.T) {
	w := newTutorial(t)
	w.check("the platform's own service", w.schedule("dev"), map[string][]string{"added": {"large/observability-prometheus"}})
	if got := strings.TrimSpace(w.file("dev", ".github/tracking/Promoted_Commit_Id")); got != "5523a85f37d12c0c7c10ab6616644db089fcd6f7" {
		t.Errorf("the promoted commit is %q, want the one that base-repo.yaml pins", got)
	}

	// 2: onboard the application. Without policies it goes nowhere.
	w.write("main/workloads/hello-world-app.yaml", `apiVersion: scheduler.kalypso.io/v1alpha1
kind: WorkloadRegistration
metadata:
  name: hello-world-app
  labels:
    type: application
spec:
  workload:
    repo: `+appSource+`
    branch: main
    path: workload/
  workspace: kaizen-app-team
`)
	if s := w.schedule("dev"); s.Written {
		t.Errorf("a registration alone changed %v", changed(&s))
	}
	w.write("dev/scheduling/kaizen/functional-test-policy.yaml", policy("functional-test-policy", "functional-test", `{matchLabels: {restricted: "true", edge: "true"}}`))
	w.write("dev/scheduling/kaizen/performance-test-policy.yaml", policy("performance-test-policy", "performance-test", "{matchLabels: {size: large}}"))
	w.check("policies of dev", w.schedule("dev"), map[string][]string{
		"added": {"drone/hello-world-app-functional-test", "large/hello-world-app-performance-test"},
	})
	folder := "drone/hello-world-app-functional-test/"
	golden(t, "tutorial-namespace.yaml", w.file("dev", folder+"namespace.yaml"))
	golden(t, "tutorial-platform-config.yaml", w.file("dev", folder+"platform-config.yaml"))
	golden(t, "tutorial-reconciler.yaml", w.file("dev", folder+"reconciler.yaml"))

	// Stage has drones and large clusters, and a policy that takes them all.
	for _, folder := range []string{"cluster-types/east-us/restricted/drones", "cluster-types/west-us/large"} {
		if err := os.CopyFS(filepath.Join(w.dir, "stage", folder), os.DirFS(filepath.Join("testdata", "tutorial", "dev", folder))); err != nil {
			t.Fatal(err)
		}
	}
	west := func(more string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: west-us-config, labels: {platform-config: "true", region: west-us}}, data: {REGION: West US` + more + "}}\n"
	}
	w.write("stage/config.yaml", `{apiVersion: v1, kind: ConfigMap, metadata: {name: stage-config, labels: {platform-config: "true"}}, data: {ENVIRONMENT: Stage, DATABASE_URL: "mysql://stage:8806/mysql"}}`)
	w.write("stage/cluster-types/west-us/west-us-config.yaml", west(""))
	w.write("stage/scheduling/kaizen/uat-test-policy.yaml", policy("uat-test-policy", "uat-test", "{}"))
	w.check("an empty selector takes all", w.schedule("stage"), map[string][]string{"added": {"drone/hello-world-app-uat-test", "large/hello-world-app-uat-test"}})

	// 4: another database for west-us.
	w.write("stage/cluster-types/west-us/west-us-config.yaml", west(`, DATABASE_URL: "mysql://west-stage:8806/mysql2"`))
	w.check("one region's database", w.schedule("stage"), map[string][]string{"changed": {"large/hello-world-app-uat-test"}})
	if text := w.file("stage", "large/hello-world-app-uat-test/platform-config.yaml"); !strings.Contains(text, "mysql://west-stage:8806/mysql2") {
		t.Errorf("the new database is not there:\n%s", text)
	}

	// 5: a new cluster type.
	w.write("stage/cluster-types/west-us/small/small-cluster-type.yaml", `apiVersion: scheduler.kalypso.io/v1alpha1
kind: ClusterType
metadata:
  name: small
  labels:
    region: west-us
    size: small
spec:
  reconciler: arc-flux
  namespaceService: default
  configType: configmap
`)
	w.check("a new cluster type", w.schedule("stage"), map[string][]string{"added": {"small/hello-world-app-uat-test"}})

	// Cleaning up: without its policy the application is gone, and nothing else.
	if err := os.Remove(filepath.Join(w.dir, "stage/scheduling/kaizen/uat-test-policy.yaml")); err != nil {
		t.Fatal(err)
	}
	w.check("no policy", w.schedule("stage"), map[string][]string{
		"deleted": {"drone/hello-world-app-uat-test", "large/hello-world-app-uat-test", "small/hello-world-app-uat-test"},
	})
	gittest.Git(t, w.bare.Bare, "fsck", "--strict")
}

// TestOneBadInputStopsItsOwn breaks one thing after another: what it stops keeps
// its last good output, and everything else goes on.
func TestOneBadInputStopsItsOwn(t *testing.T) {
	w := newTutorial(t)
	w.write("main/workloads/hello-world-app.yaml", "{apiVersion: scheduler.kalypso.io/v1alpha1, kind: WorkloadRegistration, metadata: {name: hello-world-app}, spec: {workload: {repo: "+appSource+", branch: main, path: workload}, workspace: kaizen-app-team}}\n")
	w.write("dev/p1.yaml", policy("functional-test-policy", "functional-test", "{}"))
	w.schedule("dev")
	out := filepath.Join(t.TempDir(), "out")
	if _, words, code := w.run("dev", "schedule", "--environment", "dev", "--out", out); code != exitDone {
		t.Fatal(words)
	}
	good := filesOf(t, out)

	w.write("main/templates/scheduler_v1alpha1_template_argocd.yaml", `{apiVersion: scheduler.kalypso.io/v1alpha1, kind: Template, metadata: {name: argocd}, spec: {type: reconciler, manifests: ["{{ .Nothing.there }}"]}}`)
	w.write("dev/configs/dev-config.yaml", `{apiVersion: v1, kind: ConfigMap, metadata: {name: dev-config, labels: {platform-config: "true"}}, data: {ENVIRONMENT: Changed}}`)
	text, words, code := w.run("dev", "schedule", "--environment", "dev", "--out", out)
	if code != exitFailed || !strings.Contains(text, "templates/scheduler_v1alpha1_template_argocd.yaml:1") {
		t.Errorf("code %d, %s%s", code, text, words)
	}
	now := filesOf(t, out)
	for _, name := range slices.Sorted(maps.Keys(good)) {
		same := good[name] == now[name]
		kept := strings.HasPrefix(name, "small/hello-world-app")
		switch {
		case !strings.HasSuffix(name, "platform-config.yaml"):
		case kept && !same:
			t.Errorf("%s was written, though its reconciler cannot be", name)
		case !kept && same:
			t.Errorf("%s was not written: one bad template stopped another cluster type", name)
		}
	}
	if text, _, code := w.run("dev", "validate", "--environment", "dev"); code != exitFailed || !strings.Contains(text, "argocd.yaml:1") {
		t.Errorf("validate: code %d:\n%s", code, text)
	}
}

func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	names, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rel, _ := filepath.Rel(dir, name)
		found[filepath.ToSlash(rel)] = string(text)
	}
	return found
}

func TestScheduleDryRun(t *testing.T) {
	w := newTutorial(t)
	out := filepath.Join(t.TempDir(), "out")
	text, words, code := w.run("dev", "schedule", "--environment", "dev", "--out", out, "--dry-run", "--diff")
	if code != exitDone || !strings.Contains(text, "+++ b/large/observability-prometheus/namespace.yaml") || !strings.Contains(text, "nothing was written") {
		t.Errorf("code %d: %s%s", code, text, words)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a dry run wrote something")
	}
	// The same on a branch.
	text, words, code = w.run("dev", "schedule", "--environment", "dev", "--out", w.server.URL+"/"+w.bare.Name+"@dev", "--dry-run", "--diff")
	if code != exitDone || !strings.Contains(text, "+++ b/large/observability-prometheus/namespace.yaml") {
		t.Errorf("code %d: %s%s", code, text, words)
	}
	if refs := gittest.Git(t, w.bare.Bare, "for-each-ref"); refs != "" {
		t.Errorf("a dry run made %s", refs)
	}
}

func TestExplain(t *testing.T) {
	w := newTutorial(t)
	w.write("dev/override.yaml", `{apiVersion: v1, kind: ConfigMap, metadata: {name: zz-large, labels: {platform-config: "true", size: large}}, data: {REGION: Somewhere}}`)
	w.write("dev/schema.yaml", `{apiVersion: scheduler.kalypso.io/v1alpha1, kind: ConfigSchema, metadata: {name: wanted, labels: {size: large}}, spec: {schema: '{"type": "object", "required": ["REGION", "TOKEN_URL"], "properties": {"REGION": {"enum": ["West US"]}}}'}}`)
	text, words, code := w.run("dev", "explain", "dev/large/observability-prometheus", "--missing")
	if code != exitDone {
		t.Fatalf("code %d: %s%s", code, text, words)
	}
	golden(t, "explain.txt", text)
	for _, test := range []struct{ name, want string }{
		{"dev/huge/observability-prometheus", `dev has no cluster type "huge"; it has command-center, drone, large, small`},
		{"dev/large/nothing", `dev has no deployment target "nothing"; it has observability-prometheus`},
		{"dev/drone/observability-prometheus", "no scheduling policy of dev assigns observability-prometheus to drone"},
	} {
		if _, words, code := w.run("dev", "explain", test.name); code != exitFailed || !strings.Contains(words, test.want) {
			t.Errorf("%s: code %d: %s", test.name, code, words)
		}
	}
}

func TestScheduleUsage(t *testing.T) {
	dir := t.TempDir()
	tests := map[string]struct {
		args []string
		want string
	}{
		"no base":        {[]string{"schedule", "--environment", "dev", "--control-plane", dir, "--out", dir}, "--base"},
		"no environment": {[]string{"schedule", "--base", dir, "--control-plane", dir, "--out", dir}, "--environment"},
		"no out":         {[]string{"schedule", "--base", dir, "--environment", "dev", "--control-plane", dir}, "--out"},
		"no such folder": {[]string{"validate", "--base", filepath.Join(dir, "none")}, "--base: reading the folder"},
		"no ref":         {[]string{"validate", "--base", "https://me:secret@git.example/org/repo"}, "names no ref"},
		"bad source":     {[]string{"validate", "--base", dir, "--source", "nonsense"}, "URL=DIR"},
		"source missing": {[]string{"validate", "--base", dir, "--source", "https://git.example/a=" + filepath.Join(dir, "none")}, "no such folder"},
		"bad name":       {[]string{"explain", "dev/drone", "--base", dir, "--control-plane", dir}, "ENVIRONMENT/CLUSTER-TYPE/DEPLOYMENT-TARGET"},
		"new bad name":   {[]string{"new", "policy", "A B"}, "is no name"},
		"new nothing":    {[]string{"new"}, "cluster-type"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, words, code := runPlain(t, test.args...)
			if code != exitUsage || !strings.Contains(words, test.want) {
				t.Errorf("code %d: %s", code, words)
			}
			if strings.Contains(words, "secret") {
				t.Errorf("user info is shown: %s", words)
			}
		})
	}
}

// TestNewFilesAreValid plans with what landfall new writes.
func TestNewFilesAreValid(t *testing.T) {
	w := newTutorial(t)
	for _, kind := range newKinds {
		place := map[bool]string{true: "main", false: "dev"}[kind.name == "registration" || kind.name == "environment"]
		name := filepath.Join(w.dir, place, "new", kind.name+".yaml")
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, words, code := runPlain(t, "new", kind.name, "my-"+kind.name, "--out", name); code != exitDone {
			t.Fatal(words)
		}
		if _, _, code := runPlain(t, "new", kind.name, "my-"+kind.name, "--out", name); code != exitUsage {
			t.Errorf("a second landfall new %s overwrote the first", kind.name)
		}
	}
	text, words, code := w.run("dev", "validate", "--environment", "dev", "--source", "https://git.example/my-team/my-registration="+w.dir)
	if code != exitFailed || strings.Count(strings.TrimSpace(text), "\n") != 0 || !strings.Contains(text, "workload") {
		t.Errorf("only the folder of the new registration is missing, and the complaints are (code %d):\n%s%s", code, text, words)
	}
}

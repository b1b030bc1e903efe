package hub

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/internal/polltest"
	"github.com/landfall-hub/landfall/schema"
)

// plant is the Kalypso tutorial on a real Git server, with a hub that runs the
// scheduler on it.
type plant struct {
	t      *testing.T
	server *httptest.Server
	repos  map[string]*gittest.Repo
	config Config
	hub    *Hub
	client *hubclient.Client

	mu sync.Mutex
	// before is called before the server answers.
	before func(*http.Request)
}

const hookSecret = "s3cr3t"

// tutorial is where the files of the Kalypso tutorial are.
var tutorial = filepath.Join("..", "internal", "cli", "testdata", "tutorial")

func newPlant(t *testing.T) *plant {
	t.Helper()
	git, err := gittest.New(t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	p := &plant{t: t, repos: map[string]*gittest.Repo{}}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		before := p.before
		p.mu.Unlock()
		if before != nil {
			before(r)
		}
		git.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	for _, name := range []string{"control-plane", "platform-gitops", "app-src", "svc-src"} {
		p.repos[name] = git.NewRepo(t, name, "sha1")
	}
	p.repos["platform-gitops"].Commit(t, map[string]string{"README.md": "the platform's\n"})
	p.commit("app-src", "main", p.files("app", nil))
	p.commit("svc-src", "main", p.files("svc", nil))
	p.commit("control-plane", "main", p.files("main", map[string]string{
		"workloads/hello-world-app.yaml": `apiVersion: scheduler.kalypso.io/v1alpha1
kind: WorkloadRegistration
metadata: {name: hello-world-app}
spec: {workspace: kaizen-app-team, workload: {repo: ` + p.url("app-src") + `, branch: main, path: workload/}}
`}))
	p.commit("control-plane", "dev", p.dev(nil))

	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(hookSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	p.config = DefaultConfig()
	p.config.Listen, p.config.DataDir = "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
	p.config.Webhooks.Gitea.SecretFile = secret
	p.config.Repositories = []RepositoryConfig{{URL: p.url("platform-gitops"), Interval: schema.Duration(time.Hour)}}
	// By the clock alone nothing would happen.
	p.config.ControlPlanes = []ControlPlaneConfig{{URL: p.url("control-plane"), Environments: map[string]string{"dev": "dev"}, Interval: schema.Duration(time.Hour)}}
	return p
}

func (p *plant) url(name string) string { return p.server.URL + "/" + name + ".git" }

// files reads a folder of the tutorial, with the addresses of this server, and
// adds some.
func (p *plant) files(folder string, more map[string]string) map[string]string {
	p.t.Helper()
	files := map[string]string{}
	root := os.DirFS(filepath.Join(tutorial, folder))
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		files[name] = strings.NewReplacer(
			"https://github.com/microsoft/kalypso-svc-src", p.url("svc-src"), "https://github.com/microsoft/kalypso-gitops", p.url("platform-gitops"),
		).Replace(string(text))
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	for name, text := range more {
		files[name] = text
	}
	return files
}

// dev is the branch of that environment: the promoted commit is not pinned.
func (p *plant) dev(more map[string]string) map[string]string {
	p.t.Helper()
	files := p.files("dev", map[string]string{"functional.yaml": `apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata: {name: functional-test-policy}
spec:
  deploymentTargetSelector: {workspace: kaizen-app-team, labelSelector: {matchLabels: {purpose: functional-test}}}
  clusterTypeSelector: {labelSelector: {matchLabels: {restricted: "true", edge: "true"}}}
`})
	delete(files, "base-repo.yaml")
	for name, text := range more {
		files[name] = text
	}
	return files
}

// commit makes a branch hold these files, and no others.
func (p *plant) commit(name, branch string, files map[string]string) {
	p.t.Helper()
	p.repos[name].CommitTo(p.t, branch, files)
}

// push is commit, of which the server tells the hub.
func (p *plant) push(name, branch string, files map[string]string) {
	p.t.Helper()
	p.commit(name, branch, files)
	body := fmt.Sprintf(`{"repository":{"clone_url":%q}}`, p.url(name))
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write([]byte(body))
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.hub.URL()+"/api/v1/webhooks/gitea", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Gitea-Event", "push")
	r.Header.Set("X-Gitea-Signature", hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ Followed bool }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || !answer.Followed {
		p.t.Errorf("the webhook of %s: %d, %v, %v", name, response.StatusCode, answer, err)
	}
}

// start starts the hub, with what it had before.
func (p *plant) start() (stop func()) {
	p.t.Helper()
	binary, library := enginetest.Files(p.t)
	hub, err := New(Options{Config: p.config, Version: "test", Log: slog.New(slog.NewTextHandler(p.t.Output(), nil)), EngineBinary: binary, EngineLibrary: library})
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	waitUntilReady(p.t, hub)
	p.hub = hub
	if p.client, err = hubclient.New(hubclient.Options{URL: hub.URL(), UserAgent: "test"}); err != nil {
		p.t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Errorf("the hub ended with %v", err)
		}
	})
}

// head returns where a branch of the platform repository is; "" for nowhere.
func (p *plant) head(branch string) string {
	p.t.Helper()
	return strings.TrimSpace(gittest.Git(p.t, p.repos["platform-gitops"].Bare, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch))
}

// moves waits until dev has left a commit, and returns the files that changed.
func (p *plant) moves(from string) []string {
	p.t.Helper()
	began := time.Now()
	p.until("the platform repository moves", func() bool { return p.head("dev") != from })
	p.t.Logf("from the push to the commit: %s", time.Since(began))
	if from == "" {
		return strings.Fields(gittest.Git(p.t, p.repos["platform-gitops"].Bare, "ls-tree", "-r", "--name-only", "dev"))
	}
	return strings.Fields(gittest.Git(p.t, p.repos["platform-gitops"].Bare, "diff", "--name-only", from, "dev"))
}

// until waits for something that must come.
func (p *plant) until(what string, holds func() bool) {
	p.t.Helper()
	polltest.Until(p.t, what, holds)
}

// get reads JSON from the hub.
func (p *plant) get(path string, into any) {
	p.t.Helper()
	response, text := get(p.t, p.hub.URL()+path)
	if response.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %d %s", path, response.StatusCode, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		p.t.Fatalf("%s: %v: %s", path, err, text)
	}
}

func (p *plant) assignments(query string) []string {
	p.t.Helper()
	var page struct{ Items []schema.Assignment }
	p.get("/api/v1/assignments"+query, &page)
	var names []string
	for _, a := range page.Items {
		name := a.Environment + "/" + a.ClusterType + "/" + a.DeploymentTarget
		if a.Error != "" {
			name += "!"
		}
		names = append(names, name)
	}
	return names
}

// readiness is what /readyz says of the control plane.
func (p *plant) readiness() (ok bool, detail string) {
	p.t.Helper()
	var ready struct {
		Checks []struct {
			Name, Detail string
			OK           bool
		}
	}
	p.get("/readyz", &ready)
	for _, c := range ready.Checks {
		if strings.HasPrefix(c.Name, "control plane ") {
			return c.OK, c.Detail
		}
	}
	p.t.Fatal("readiness does not know the control plane")
	return false, ""
}

func TestControlPlane(t *testing.T) {
	p := newPlant(t)
	stop := p.start()
	defer func() { stop() }()

	const drone, large = "drone/hello-world-app-functional-test/", "large/observability-prometheus/"
	want := []string{".github/tracking/Promoted_Commit_Id"}
	for _, folder := range []string{"command-center/", drone, large, "small/"} {
		want = append(want, strings.SplitAfter(folder, "/")[0]+"README.md")
		if folder == drone || folder == large {
			want = append(want, folder+"namespace.yaml", folder+"platform-config.yaml", folder+"reconciler.yaml")
		}
	}
	if diff := cmp.Diff(want, p.moves("")); diff != "" {
		t.Errorf("the first commit (-want +got):\n%s", diff)
	}
	all := []string{"dev/drone/hello-world-app-functional-test", "dev/large/observability-prometheus"}
	p.until("both are stored", func() bool { return slices.Equal(p.assignments(""), all) })
	if got := p.assignments("?cluster_type=large&deployment_target=prometheus&limit=1"); !slices.Equal(got, all[1:]) {
		t.Errorf("those of large clusters: %v", got)
	}
	var detail schema.AssignmentDetail
	p.get("/api/v1/assignments/"+all[0], &detail)
	if detail.GitOpsCommit != p.head("dev") || !slices.Equal(detail.Policies, []string{"functional-test-policy"}) || detail.Workspace != "kaizen-app-team" {
		t.Errorf("the assignment: %+v", detail.Assignment)
	}
	if !slices.ContainsFunc(detail.Config, func(v schema.ConfigValue) bool {
		return v.Key == "ENVIRONMENT" && v.Value == "Dev" && v.ConfigMap == "dev-config" && strings.HasPrefix(v.Place, "configs/dev-config.yaml:")
	}) {
		t.Errorf("its configuration: %+v", detail.Config)
	}
	if response, text := get(t, p.hub.URL()+"/api/v1/assignments/dev/drone/nothing"); response.StatusCode != http.StatusNotFound || !strings.Contains(text, "is not assigned to") {
		t.Errorf("one that is not there: %d %s", response.StatusCode, text)
	}
	if ok, detail := p.readiness(); !ok {
		t.Errorf("readiness: %s", detail)
	}

	// A push becomes exactly its commit.
	west := `{apiVersion: v1, kind: ConfigMap, metadata: {name: west-us-config, labels: {platform-config: "true", region: west-us}}, data: {REGION: West US, DATABASE_URL: "mysql://other"}}`
	changes := map[string]string{"cluster-types/west-us/west-us-config.yaml": west}
	before := p.head("dev")
	p.push("control-plane", "dev", p.dev(changes))
	if diff := cmp.Diff([]string{large + "platform-config.yaml"}, p.moves(before)); diff != "" {
		t.Errorf("one ConfigMap (-want +got):\n%s", diff)
	}

	// A broken template stops its own; the others go on, in spite of a lost race.
	before = p.head("dev")
	raced := false
	p.mu.Lock()
	p.before = func(r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "platform-gitops.git/git-receive-pack") && !raced {
			raced = true
			dir := t.TempDir()
			gittest.Git(t, dir, "clone", "--quiet", "--branch", "dev", p.repos["platform-gitops"].Bare, ".")
			gittest.Git(t, dir, "commit", "--quiet", "--allow-empty", "--message", "people")
			gittest.Git(t, dir, "push", "--quiet", "origin", "HEAD:refs/heads/dev")
		}
	}
	p.mu.Unlock()
	changes["broken.yaml"] = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata: {name: broken}\nspec: {type: reconciler, manifests: [\"a: {{.Nothing\"]}\n"
	changes["cluster-types/east-us/restricted/drones/drone-cluster-type.yaml"] = strings.Replace(
		p.files("dev", nil)["cluster-types/east-us/restricted/drones/drone-cluster-type.yaml"], "reconciler: arc-flux", "reconciler: broken", 1)
	changes["configs/dev-config.yaml"] = `{apiVersion: v1, kind: ConfigMap, metadata: {name: dev-config, labels: {platform-config: "true"}}, data: {ENVIRONMENT: Development}}`
	p.push("control-plane", "dev", p.dev(changes))
	p.until("the other assignment is published", func() bool {
		return strings.Contains(gittest.Git(t, p.repos["platform-gitops"].Bare, "show", "dev:"+large+"platform-config.yaml"), "Development")
	})
	if got := p.moves(before); slices.ContainsFunc(got, func(name string) bool { return strings.HasPrefix(name, drone) }) || !raced {
		t.Errorf("raced %v; the broken one's files changed: %v", raced, got)
	}
	p.until("the error is told", func() bool { return slices.Equal(p.assignments(""), []string{all[0] + "!", all[1]}) })
	p.until("readiness tells it", func() bool {
		ok, detail := p.readiness()
		return !ok && strings.Contains(detail, "1 of them stay as they were") && strings.Contains(detail, "broken.yaml")
	})
	if _, metrics := get(t, p.hub.URL()+"/metrics"); !strings.Contains(metrics, `landfall_control_assignments_failed{environment="dev"} 1`) {
		t.Error("the metrics do not tell of it")
	}

	// A restart plans again, and makes no commit.
	before = p.head("dev")
	stop()
	stop = p.start()
	p.until("it is planned again", func() bool {
		_, detail := p.readiness()
		return strings.Contains(detail, "2 assignments planned")
	})
	if p.head("dev") != before {
		t.Error("the restart made a commit")
	}
	delete(changes, "cluster-types/east-us/restricted/drones/drone-cluster-type.yaml")
	delete(changes, "broken.yaml")
	p.push("control-plane", "dev", p.dev(changes))
	p.until("all is well again", func() bool { ok, _ := p.readiness(); return ok })
	if diff := cmp.Diff([]string{drone + "platform-config.yaml"}, p.moves(before)); diff != "" {
		t.Errorf("the mended one (-want +got):\n%s", diff)
	}
}

// TestGatesWaitForWhoShouldRead: a cluster that should read a commit and has
// never said that it does keeps the gate closed.
func TestGatesWaitForWhoShouldRead(t *testing.T) {
	p := newPlant(t)
	defer p.start()()
	p.moves("")
	p.until("it is stored", func() bool { return len(p.assignments("")) == 2 })
	agents := map[string]*agent{}
	for _, name := range []string{"drone-1", "drone-2", "large-1"} {
		a := &agent{stage: &stage{hub: p.hub, client: p.client}, t: t, cluster: name}
		epoch, err := p.client.Register(t.Context(), name, schema.Registration{
			Memberships: []schema.Membership{{Environment: "dev", Type: strings.Split(name, "-")[0]}}, Kind: schema.ClusterKubernetes, HeartbeatInterval: schema.Duration(time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		a.epoch = epoch
		agents[name] = a
	}
	commit := p.head("dev")
	missing := func(repo, path, commit string) []string {
		t.Helper()
		v, err := p.client.Compliance(t.Context(), hubclient.Question{Repo: repo, Ref: "dev", Path: path, Commit: commit}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, u := range v.Unfinished {
			if u.Reason != "never reported" || u.Verdict != schema.OutcomePending || v.State == schema.Passed {
				t.Errorf("%s: %+v", v.State, u)
			}
			names = append(names, u.Cluster)
		}
		return names
	}
	platform, app := p.url("platform-gitops"), "https://github.com/microsoft/kalypso-app-gitops"
	lands := func(cluster, repo, path, commit string) {
		t.Helper()
		agents[cluster].reports(schema.Report{Mode: schema.ModeDelta, Reconcilers: []schema.Reconciler{{
			Kind: "Kustomization", Namespace: "flux-system", Name: strings.ReplaceAll(path, "/", "-"), Status: schema.StatusSuccess, Applied: []string{commit}, Attempted: []string{commit},
			Sources: []schema.Source{{Type: schema.SourceGit, URL: repo, Ref: "dev", Path: path}},
		}}})
	}
	check := func(step string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v never reported, want %v", step, got, want)
		}
	}
	check("nobody has reported", missing(platform, "", commit), "drone-1", "drone-2", "large-1")
	check("drones alone", missing(platform, "drone", commit), "drone-1", "drone-2")
	lands("drone-1", platform, "./drone", commit)
	check("one has", missing(platform, "", commit), "drone-2", "large-1")
	lands("drone-2", platform, "./drone", commit)
	lands("large-1", platform, "./large", commit)
	check("all have", missing(platform, "", commit))

	other := strings.Repeat("ab", 20)
	check("the application's", missing(app, "", other), "drone-1", "drone-2")
	lands("drone-2", app, "./functional-test", other)
	check("one has", missing(app, "functional-test", other), "drone-1")
	lands("drone-1", app, "./functional-test", other)
	check("both have", missing(app, "", other))
}

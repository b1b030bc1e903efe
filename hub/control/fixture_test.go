package control

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/schema"
)

// memory is a store that forgets nothing.
type memory struct {
	mu   sync.Mutex
	rows map[record.ScheduleKey]record.Schedule
	// written are the keys of each PutSchedules; fail is its answer.
	written [][]string
	fail    error
}

func (m *memory) Scheduled(context.Context) ([]record.Scheduled, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []record.Scheduled
	for k, r := range m.rows {
		all = append(all, record.Scheduled{ScheduleKey: k, Endpoint: r.Endpoint, GitOps: r.GitOps, Digest: r.Digest})
	}
	return all, nil
}

func (m *memory) PutSchedules(_ context.Context, rows []record.Schedule) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	var names []string
	for _, r := range rows {
		k := r.Key()
		name := k.Environment + "/" + k.ClusterType + "/" + k.DeploymentTarget
		if r.Gone {
			delete(m.rows, k)
			names = append(names, "-"+name)
			continue
		}
		m.rows[k] = r
		names = append(names, name)
	}
	m.written = append(m.written, names)
	return nil
}

// stage is a Git server with a control plane, and a Control that is driven step
// by step.
type stage struct {
	t      *testing.T
	git    *gittest.Server
	server *httptest.Server
	repos  map[string]*gittest.Repo
	// trees are what the branches hold, by repository and branch.
	trees map[string]map[string]string
	store *memory
	dir   string

	mu sync.Mutex
	// away are repositories that the server does not give out; asked are those
	// that were asked for, with the user.
	away  map[string]bool
	asked map[string]string
	// before is called before a request for a repository is served.
	before func(r *http.Request)

	control *Control
	told    []string
}

const (
	kalypso = "apiVersion: scheduler.kalypso.io/v1alpha1\n"
	policy  = kalypso + "kind: SchedulingPolicy\nmetadata: {name: %NAME}\nspec: {deploymentTargetSelector: {labelSelector: %TARGETS}, clusterTypeSelector: {labelSelector: %TYPES}}\n"
)

func clusterType(name, reconciler string) string {
	return kalypso + "kind: ClusterType\nmetadata: {name: " + name + ", labels: {size: " + name + "}}\nspec: {reconciler: " + reconciler + ", namespaceService: namespace}\n"
}

func policyOf(name, targets, types string) string {
	return strings.NewReplacer("%NAME", name, "%TARGETS", targets, "%TYPES", types).Replace(policy)
}

func configMap(name, labels, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", labels: {platform-config: \"true\"" + labels + "}}\ndata: {" + data + "}\n"
}

func template(name, kind, text string) string {
	return kalypso + "kind: Template\nmetadata: {name: " + name + "}\nspec:\n  type: " + kind + "\n  manifests:\n  - |\n    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
}

// newStage makes a control plane with the environments dev and stage, two
// cluster types, and one application with a target in each.
func newStage(t *testing.T) *stage {
	t.Helper()
	git, err := gittest.New(t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{
		t: t, git: git, repos: map[string]*gittest.Repo{}, trees: map[string]map[string]string{}, store: &memory{rows: map[record.ScheduleKey]record.Schedule{}},
		dir: t.TempDir(), away: map[string]bool{}, asked: map[string]string{},
	}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.server.Close)
	for _, name := range []string{"control-plane", "platform-gitops", "app-src"} {
		s.repos[name] = git.NewRepo(t, name, "sha1")
	}
	s.repos["platform-gitops"].Commit(t, map[string]string{"README.md": "nothing of the scheduler's\n"})
	s.commit("app-src", "main", map[string]string{"workload/app.yaml": s.workload("functional-test")})
	s.commit("control-plane", "main", map[string]string{
		"app.yaml":            kalypso + "kind: WorkloadRegistration\nmetadata: {name: hello}\nspec: {workspace: kaizen, workload: {repo: " + s.url("app-src") + ", branch: main, path: workload}}\n",
		"templates/flux.yaml": template("flux", "reconciler", "kind: Kustomization\nmetadata: {name: {{.DeploymentTargetName}}}\nspec: {path: {{.Manifests.path}}}"),
		"templates/ns.yaml":   template("namespace", "namespace", "kind: Namespace\nmetadata: {name: {{.Namespace}}}"),
	})
	for _, environment := range []string{"dev", "stage"} {
		s.commit("control-plane", environment, map[string]string{
			"types/drone.yaml": clusterType("drone", "flux"),
			"types/large.yaml": clusterType("large", "flux"),
			"all.yaml":         configMap("common", "", "DATABASE: mysql"),
			"large.yaml":       configMap("large", ", size: large", "REGION: west"),
			"policy.yaml":      policyOf("everything", "{}", "{}"),
			"gitops.yaml":      kalypso + "kind: GitOpsRepo\nmetadata: {name: platform}\nspec: {repo: " + s.url("platform-gitops") + ", branch: " + environment + "}\n",
		})
	}
	return s
}

// workload has one target in dev and stage for each name.
func (s *stage) workload(names ...string) string {
	text := kalypso + "kind: Workload\nmetadata: {name: hello}\nspec:\n  deploymentTargets:\n"
	for _, name := range names {
		for _, environment := range []string{"dev", "stage"} {
			text += "  - {name: " + name + ", environment: " + environment + ", labels: {purpose: " + name + "}, manifests: {repo: " + s.url("app-gitops") + ", branch: " + environment + ", path: ./" + name + "}}\n"
		}
	}
	return text
}

func (s *stage) serve(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git")
	user, password, _ := r.BasicAuth()
	s.mu.Lock()
	away, before := s.away[name], s.before
	s.asked[name] = user + ":" + password
	s.mu.Unlock()
	if before != nil {
		before(r)
	}
	if away {
		http.Error(w, "the server is away", http.StatusBadGateway)
		return
	}
	s.git.ServeHTTP(w, r)
}

func (s *stage) url(name string) string { return s.server.URL + "/" + name + ".git" }

// goAway has a repository away, or back.
func (s *stage) goAway(name string, away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away[name] = away
}

// commit makes a branch hold the files that it held, with changes: "" removes
// one.
func (s *stage) commit(name, branch string, changes map[string]string) (id string) {
	s.t.Helper()
	tree := s.trees[name+"@"+branch]
	if tree == nil {
		tree = map[string]string{}
		s.trees[name+"@"+branch] = tree
	}
	maps.Copy(tree, changes)
	maps.DeleteFunc(tree, func(_, text string) bool { return text == "" })
	return s.repos[name].CommitTo(s.t, branch, tree)
}

// start makes a Control with its own memory of before: what is on disk and in
// the store.
func (s *stage) start(change ...func(*Options)) {
	s.t.Helper()
	o := Options{
		ControlPlanes: []ControlPlane{{URL: s.url("control-plane"), Environments: map[string]string{"dev": "dev", "stage": "stage"}}},
		Dir:           s.dir, Store: s.store, Log: slog.New(slog.NewTextHandler(s.t.Output(), nil)),
		Published: func(repo string) { s.told = append(s.told, repo) },
		Now:       func() time.Time { return time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC) },
	}
	for _, c := range change {
		c(&o)
	}
	c, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.Load(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.control = c
}

// step fetches and plans until nothing is new, and returns what went wrong with
// each environment.
func (s *stage) step() map[string]error {
	s.t.Helper()
	for range 10 {
		news := false
		for _, k := range s.sources() {
			got, err := s.control.pool.all[k].fetch(s.t.Context())
			s.control.pool.all[k].note(err)
			news = news || got
		}
		known := len(s.sources())
		errs := map[string]error{}
		for _, p := range s.control.planes {
			for _, e := range p.environments {
				err := e.round(s.t.Context())
				e.note(err)
				if err != nil {
					errs[e.name] = err
				}
			}
		}
		if !news && len(s.sources()) == known {
			return errs
		}
	}
	s.t.Fatal("there is news without end")
	return nil
}

func (s *stage) sources() []key {
	s.control.pool.mu.Lock()
	defer s.control.pool.mu.Unlock()
	keys := slices.Collect(maps.Keys(s.control.pool.all))
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(folderOf(a), folderOf(b)) })
	return keys
}

// settle is step where nothing may go wrong.
func (s *stage) settle() {
	s.t.Helper()
	for name, err := range s.step() {
		s.t.Fatalf("%s: %v", name, err)
	}
}

// published returns the files of a branch of the platform repository, without
// those that are not the scheduler's; none where the branch is not there.
func (s *stage) published(branch string) []string {
	s.t.Helper()
	bare := s.repos["platform-gitops"].Bare
	if s.head(branch) == "" {
		return nil
	}
	return strings.Fields(gittest.Git(s.t, bare, "ls-tree", "-r", "--name-only", branch))
}

// head returns where a branch of the platform repository is; "" for nowhere.
func (s *stage) head(branch string) string {
	s.t.Helper()
	return strings.TrimSpace(gittest.Git(s.t, s.repos["platform-gitops"].Bare, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch))
}

// file returns a file of a branch of the platform repository.
func (s *stage) file(branch, name string) string {
	s.t.Helper()
	return gittest.Git(s.t, s.repos["platform-gitops"].Bare, "show", branch+":"+name)
}

// changed returns the files that differ between two commits there.
func (s *stage) changed(from, to string) []string {
	s.t.Helper()
	return strings.Fields(gittest.Git(s.t, s.repos["platform-gitops"].Bare, "diff", "--name-only", from, to))
}

// commits counts those of a branch there.
func (s *stage) commits(branch string) int {
	s.t.Helper()
	return len(strings.Fields(gittest.Git(s.t, s.repos["platform-gitops"].Bare, "rev-list", branch)))
}

func (s *stage) state(environment string) (ok bool, detail string) {
	return s.control.environment(environment).state()
}

func newFile(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

var errAway = errors.New("the store is away")

// gitCommit has somebody else write a file to a branch of the platform
// repository.
func gitCommit(t *testing.T, s *stage, branch, file string) {
	t.Helper()
	dir := t.TempDir()
	gittest.Git(t, dir, "clone", "--quiet", "--branch", branch, s.repos["platform-gitops"].Bare, ".")
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte("written by people\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "add", "--all")
	gittest.Git(t, dir, "commit", "--quiet", "--message", "people")
	gittest.Git(t, dir, "push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
}

func (m *memory) ScheduledPage(context.Context, schema.AssignmentFilter, []string, int) ([]schema.Assignment, error) {
	return nil, m.fail
}

func (m *memory) ScheduledDetail(context.Context, record.ScheduleKey) (schema.AssignmentDetail, bool, error) {
	return schema.AssignmentDetail{}, false, m.fail
}

package control

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// running is a Control that runs, and tells of what it published.
type running struct {
	*stage
	published chan string
}

// run has a Control run until the test ends. Nothing is fetched by the clock.
func (s *stage) run(change ...func(*Options)) *running {
	s.t.Helper()
	r := &running{stage: s, published: make(chan string, 100)}
	s.start(append(change, func(o *Options) {
		o.ControlPlanes[0].Interval = maxInterval
		o.Published = func(repo string) { r.published <- repo }
	})...)
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.control.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	return r
}

// name is a repository's canonical form.
func (s *stage) name(repo string) string {
	name, err := schema.CanonicalRepo(s.url(repo))
	if err != nil {
		s.t.Fatal(err)
	}
	return name
}

func TestAPushIsAnsweredAtOnce(t *testing.T) {
	s := newStage(t)
	r := s.run()
	<-r.published
	<-r.published // dev and stage
	for _, c := range []struct{ repo, branch, file, text, want string }{
		{"control-plane", "dev", "large.yaml", configMap("large", ", size: large", "REGION: east"), "east"},
		{"app-src", "main", "workload/more.yaml", strings.ReplaceAll(s.workload("more"), "name: hello", "name: more"), "east"},
	} {
		s.commit(c.repo, c.branch, map[string]string{c.file: c.text})
		began := time.Now()
		if !s.control.Fetch(s.name(c.repo)) {
			t.Errorf("nobody follows %s", c.repo)
		}
		if got := <-r.published; got != s.name("platform-gitops") {
			t.Errorf("published to %s", got)
		}
		t.Logf("from the push to %s to the commit: %s", c.repo, time.Since(began))
	}
	<-r.published // the application's goes to both environments
	if !strings.Contains(s.file("dev", "large/more-more/reconciler.yaml"), "./more") || !strings.Contains(s.file("stage", "drone/more-more/reconciler.yaml"), "./more") {
		t.Error("the new workload did not arrive")
	}
	if s.control.Fetch("git.example/nobody/knows") {
		t.Error("a repository that nobody reads is said to be fetched")
	}
	if !s.control.Fetch(s.name("platform-gitops")) {
		t.Error("the GitOps repository is not followed")
	}
}

// TestAServerThatStallsIsNotWaitedForByOthers: the first environment's config
// repository answers nothing at all.
func TestAServerThatStallsIsNotWaitedForByOthers(t *testing.T) {
	s := newStage(t)
	s.repos["stalls"] = s.git.NewRepo(t, "stalls", "sha1")
	s.commit("stalls", "dev", map[string]string{"a.yaml": configMap("more", "", "MORE: more")})
	over := make(chan struct{})
	s.before = func(q *http.Request) {
		if strings.HasPrefix(q.URL.Path, "/stalls.git") {
			<-over
		}
	}
	r := s.run(func(o *Options) {
		o.ControlPlanes[0].ConfigRepos = []ConfigRepo{{URL: s.url("stalls"), Environments: map[string]string{"dev": "dev"}}}
	})
	<-r.published
	if s.head("stage") == "" || s.head("dev") != "" {
		t.Errorf("dev is at %q, stage at %q", s.head("dev"), s.head("stage"))
	}
	close(over)
	<-r.published
	if !strings.Contains(s.file("dev", "drone/hello-functional-test/platform-config.yaml"), "MORE") {
		t.Error("what came late is not in the plan")
	}
}

func TestWhatNobodyReadsAnyMoreIsForgotten(t *testing.T) {
	s := newStage(t)
	said := make(chan string, 100)
	r := s.run(func(o *Options) { o.Log = slog.New(listener{o.Log.Handler(), said}) })
	<-r.published
	<-r.published
	gone := s.control.pool.all[key{s.name("app-src"), false}]
	s.repos["other-src"] = s.git.NewRepo(t, "other-src", "sha1")
	s.commit("other-src", "main", map[string]string{"app.yaml": s.workload("elsewhere")})
	s.commit("control-plane", "main", map[string]string{
		"app.yaml": kalypso + "kind: WorkloadRegistration\nmetadata: {name: hello}\nspec: {workspace: kaizen, workload: {repo: " + s.url("other-src") + ", branch: main}}\n",
	})
	s.control.Fetch(s.name("control-plane"))
	for said := range said {
		if said == "the repository is read no more" {
			break
		}
	}
	if _, err := os.Stat(gone.git.Dir()); !os.IsNotExist(err) || s.control.Fetch(s.name("app-src")) {
		t.Errorf("it is still followed, or its mirror is still there: %v", err)
	}
}

// listener hands on what is logged.
type listener struct {
	slog.Handler
	said chan<- string
}

func (l listener) Handle(ctx context.Context, r slog.Record) error {
	select {
	case l.said <- r.Message:
	default:
	}
	return l.Handler.Handle(ctx, r)
}

func (l listener) WithAttrs(a []slog.Attr) slog.Handler {
	return listener{l.Handler.WithAttrs(a), l.said}
}

func TestExpected(t *testing.T) {
	s := newStage(t)
	heard := 0
	expecting := func(o *Options) {
		o.Expecting = func() { heard++ }
		o.DefaultBranch = func(repo string) string {
			if repo == s.name("app-gitops") {
				return "dev"
			}
			return ""
		}
	}
	s.start(expecting)
	s.settle()
	if heard == 0 {
		t.Error("nobody was told")
	}
	app, platform := s.name("app-gitops"), s.name("platform-gitops")
	both := func(environment, path, name string) []record.Expected {
		return []record.Expected{{Environment: environment, ClusterType: "drone", Path: path, Name: name}, {Environment: environment, ClusterType: "large", Path: path, Name: name}}
	}
	folders := []record.Expected{
		{Environment: "dev", ClusterType: "drone", Path: "drone", Name: "drone"}, {Environment: "dev", ClusterType: "large", Path: "large", Name: "large"},
	}
	cases := map[string]struct {
		reason string
		ask    schema.Endpoint
		names  []string
		want   []record.Expected
	}{
		"manifests":       {"who is assigned the target", schema.Endpoint{Repo: app, Ref: "stage"}, []string{app}, both("stage", "functional-test", "hello-functional-test")},
		"folder":          {"the very folder", schema.Endpoint{Repo: app, Ref: "stage", Path: "functional-test"}, []string{app}, both("stage", "functional-test", "hello-functional-test")},
		"other folder":    {"nobody", schema.Endpoint{Repo: app, Ref: "stage", Path: "functional"}, []string{app}, nil},
		"below":           {"nobody reads a part", schema.Endpoint{Repo: app, Ref: "stage", Path: "functional-test/a"}, []string{app}, nil},
		"default branch":  {"by no name", schema.Endpoint{Repo: app}, []string{app}, both("dev", "functional-test", "hello-functional-test")},
		"other branch":    {"nobody", schema.Endpoint{Repo: app, Ref: "main"}, []string{app}, nil},
		"alias":           {"by another name", schema.Endpoint{Repo: "mirror.example/app", Ref: "stage"}, []string{"mirror.example/app", app}, both("stage", "functional-test", "hello-functional-test")},
		"platform":        {"every cluster type has a folder", schema.Endpoint{Repo: platform, Ref: "dev"}, []string{platform}, folders},
		"platform folder": {"one of them", schema.Endpoint{Repo: platform, Ref: "dev", Path: "large"}, []string{platform}, folders[1:]},
	}
	check := func(when string) {
		t.Helper()
		for name, c := range cases {
			if diff := cmp.Diff(c.want, s.control.Expected(c.ask, c.names)); diff != "" {
				t.Errorf("%s, %s: %s (-want +got):\n%s", when, name, c.reason, diff)
			}
		}
	}
	check("planned")
	// A restart knows it before it has planned.
	s.start(expecting)
	check("restarted")
	// What an incomplete plan lacks is expected all the same.
	s.commit("control-plane", "dev", map[string]string{"types/drone.yaml": kalypso + "kind: ClusterType\nmetadata: [\n"})
	s.settle()
	check("incomplete")
	heard = 0
	s.settle()
	if heard != 0 {
		t.Error("they are told of nothing")
	}
}

// TestHubsLearnFromEachOther: one that runs no control plane of its own knows
// what is expected all the same.
func TestHubsLearnFromEachOther(t *testing.T) {
	s := newStage(t)
	heard := 0
	other, err := New(Options{
		Dir: t.TempDir(), Store: s.store, Shared: true, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Expecting: func() { heard++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.start(func(o *Options) { o.Shared = true })
	s.settle()
	ask := func(c *Control) []record.Expected {
		return c.Expected(schema.Endpoint{Repo: s.name("app-gitops"), Ref: "dev"}, []string{s.name("app-gitops")})
	}
	if got := ask(other); got != nil {
		t.Errorf("before it looked: %v", got)
	}
	for range 2 {
		if err := other.learn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(ask(s.control), ask(other)); diff != "" || heard != 2 { // of dev and of stage
		t.Errorf("it was told %d times; what it expects (-want +got):\n%s", heard, diff)
	}
	clear(s.store.rows)
	if err := other.learn(t.Context()); err != nil || ask(other) != nil || heard != 4 {
		t.Errorf("when all is gone: %v, %v, told %d times", err, ask(other), heard)
	}
	if err := s.control.learn(t.Context()); err != nil || ask(s.control) == nil {
		t.Errorf("what a hub plans itself it knows itself: %v", err)
	}
}

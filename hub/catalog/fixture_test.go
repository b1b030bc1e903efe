package catalog

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/hub/store"
	"github.com/landfall-hub/landfall/schema"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

// bench is a catalog over real mirrors and a real store.
type bench struct {
	testing.TB
	store *store.Store
	url   string
	// mirrors and names are the folders of what survives a restart.
	mirrors, names string
	repositories   []gitops.Repository
	catalog        *Catalog
	// may says that a repository may be away.
	may bool
	// now is the clock of what is pushed.
	now time.Time
}

func newBench(t testing.TB, repositories ...gitops.Repository) *bench {
	t.Helper()
	url := enginetest.Shared(t)
	s, err := store.Open(store.Options{URL: url, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &bench{TB: t, store: s, url: url, mirrors: t.TempDir(), names: t.TempDir(), repositories: repositories, now: time.Unix(1_800_000_000, 0).UTC()}
}

func (b *bench) log() *slog.Logger {
	if t, ok := b.TB.(*testing.T); ok {
		return slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	return slog.New(slog.DiscardHandler)
}

// fetched returns mirrors that have been fetched once.
func (b *bench) fetched() *gitops.Mirrors {
	b.Helper()
	changed := make(chan string, 100)
	m, err := gitops.New(gitops.Options{
		Repositories: b.repositories, Dir: b.mirrors, Log: b.log(), Registerer: prometheus.NewRegistry(),
		Changed: func(repo string) {
			select {
			case changed <- repo:
			default:
			}
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	timeout := time.After(time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for waiting := true; waiting; {
		waiting = false
		for _, s := range m.States() {
			waiting = waiting || !s.OK && (!b.may || strings.HasPrefix(s.Detail, "not fetched"))
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-timeout:
			b.Fatalf("the repositories were not fetched: %v", m.States())
		}
	}
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return m
}

// start makes a catalog as a hub that starts does, and has it read everything.
func (b *bench) start() *Catalog {
	b.Helper()
	c, err := New(Options{
		Mirrors: b.fetched(), Reader: b.store, Writer: b.store, Dir: b.names, Log: b.log(), Registerer: prometheus.NewRegistry(),
		Now: func() time.Time { b.now = b.now.Add(time.Second); return b.now },
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.catalog = c
	b.update()
	return c
}

// again fetches, and has what is new read.
func (b *bench) again() {
	b.Helper()
	b.catalog.opts.Mirrors = b.fetched()
	b.update()
}

func (b *bench) update() {
	b.Helper()
	for _, f := range b.catalog.followers {
		if err := f.update(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// rows reads the lines of a query's answer, with tabs between the columns, by
// ClickHouse's own HTTP interface.
func (b *bench) rows(query string) []string {
	b.Helper()
	at, err := url.Parse(b.url)
	if err != nil {
		b.Fatal(err)
	}
	database := strings.Trim(at.Path, "/")
	at.Path, at.RawQuery = "/", url.Values{"database": {database}}.Encode()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, at.String(), strings.NewReader(query+" FORMAT TabSeparated"))
	if err != nil {
		b.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s: %v", resp.Status, text, err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// git runs plain git.
func git(tb testing.TB, dir string, args ...string) string {
	tb.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// said is what a descriptor of the tests says.
type said struct {
	target  schema.Target
	repo    string
	branch  string
	path    string
	version string
	built   time.Time
}

func (s said) text() string {
	return fmt.Sprintf(`apiVersion: hub.kalypso.io/v1alpha1
kind: DeploymentDescriptor
metadata: {name: %[1]s-%[2]s}
spec:
  workload:
    name: %[1]s
    source: {repo: https://git.example/org/source, branch: main, path: .}
    application: {name: %[3]s, workspace: {name: %[4]s}}
  deploymentTarget:
    name: %[2]s
    environment: %[5]s
    manifests: {repo: %[6]q, branch: %[7]s, path: %[8]s}
  workloadVersion: {version: %[9]q, build: b-1, commit: ca9ee9d0ff9ec52b998fdcf64e128c84ddd0e661, buildTime: %[10]q}
`, s.target.Workload, s.target.DeploymentTarget, s.target.Application, s.target.Workspace, s.target.Environment,
		s.repo, s.branch, s.path, s.version, s.built.Format(time.RFC3339))
}

func targetNamed(name string) schema.Target {
	return schema.Target{Environment: "dev", Workspace: "kaizen", Application: "greeting", Workload: "hello", DeploymentTarget: name}
}

var clones = maps.Clone[map[string]string]

package gitops

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
)

// newMirrors makes mirrors of repositories in a folder.
func newMirrors(t *testing.T, dir string, repositories ...Repository) *Mirrors {
	t.Helper()
	m, err := New(Options{Repositories: repositories, Dir: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// fetchAll fetches each repository once and returns what went wrong, by name.
func fetchAll(t *testing.T, m *Mirrors) map[string]error {
	t.Helper()
	wrong := map[string]error{}
	for _, f := range m.all {
		if err := f.restore(t.Context()); err != nil {
			t.Error(err)
		}
		err := f.fetch(t.Context())
		f.mirror.note(err, time.Second)
		if err != nil {
			wrong[f.mirror.repo] = err
		}
	}
	return wrong
}

// expectRelation compares how a stands to b.
func expectRelation(t *testing.T, when string, g compliance.Graph, a, b string, want compliance.Relation) {
	t.Helper()
	if got := g.Relate(a, b); got != want {
		t.Errorf("%s: it is %d, want %d", when, got, want)
	}
}

// A force-push leaves the commits known, apart from what nobody ever saw; a
// restart changes no answer, with the copy of the graph or without it.
func TestForcePushAndRestart(t *testing.T) {
	dir, bare := t.TempDir(), t.TempDir()
	s := newStream()
	first := s.commit(nil, map[string]string{"drone/a": "1", "large/a": "1"})
	second := s.commit([]int{first}, map[string]string{"drone/a": "2"})
	third := s.commit([]int{second}, map[string]string{"large/a": "2"})
	forced := s.commit([]int{first}, map[string]string{"drone/a": "3"})
	s.branch("main", third)
	ids := s.into(t, bare)
	m := newMirrors(t, dir, Repository{URL: bare})
	if wrong := fetchAll(t, m); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	repo := m.all[0].mirror.repo
	before := m.Graph(repo)
	expectRelation(t, "a commit of no branch", before, ids[forced], ids[first], compliance.Unknown)
	git(t, bare, nil, "update-ref", "refs/heads/main", ids[forced])

	check := func(when string, g compliance.Graph) {
		t.Helper()
		expectRelation(t, when+", lost to first", g, ids[third], ids[first], compliance.Descendant)
		expectRelation(t, when+", first to lost", g, ids[first], ids[second], compliance.Ancestor)
		expectRelation(t, when+", lost to forced", g, ids[third], ids[forced], compliance.Unrelated)
		expectRelation(t, when+", nobody's", g, ids[third], strings.Repeat("1", 40), compliance.Unknown)
		if same, ok := g.SameTrees(ids[second], ids[third], []string{"drone"}); !same || !ok {
			t.Errorf("%s: drone did not change: %t, %t", when, same, ok)
		}
		if same, ok := g.SameTrees(ids[second], ids[third], []string{"drone", "large"}); same || !ok {
			t.Errorf("%s: large changed: %t, %t", when, same, ok)
		}
		for _, ref := range []string{"", "main"} {
			if head, ok := g.Head(ref); !ok || head != ids[forced] {
				t.Errorf("%s: %q is at %s, %t", when, ref, head, ok)
			}
		}
		if p, ok := g.FirstParent(ids[forced]); !ok || p != ids[first] {
			t.Errorf("%s: the parent is %s, %t", when, p, ok)
		}
	}
	if wrong := fetchAll(t, m); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	check("after the fetch", m.Graph(repo))
	expectRelation(t, "a view from before", before, ids[forced], ids[first], compliance.Unknown)

	git(t, bare, nil, "update-ref", "-d", "refs/heads/main") // the server is no help
	check("after a restart", newMirrors(t, dir, Repository{URL: bare}).Graph(repo))
	copies, err := filepath.Glob(filepath.Join(dir, "*", graphFile))
	if err != nil || len(copies) != 1 {
		t.Fatal(copies, err)
	}
	if err := os.WriteFile(copies[0], []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	m = newMirrors(t, dir, Repository{URL: bare})
	expectRelation(t, "with a damaged copy, before it is read", m.Graph(repo), ids[second], ids[first], compliance.Unknown)
	if err := m.all[0].restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectRelation(t, "with a damaged copy", m.Graph(repo), ids[third], ids[forced], compliance.Unrelated)
	expectRelation(t, "with a damaged copy", m.Graph(repo), ids[third], ids[first], compliance.Descendant)
}

// What is missing of a history is unknown, and comes to be known with it.
func TestShallowServer(t *testing.T) {
	root := t.TempDir()
	full, shallow := filepath.Join(root, "full"), filepath.Join(root, "shallow")
	if err := os.Mkdir(full, 0o700); err != nil {
		t.Fatal(err)
	}
	s := newStream()
	tip := s.commit(nil, map[string]string{"a": "1"})
	for range 4 {
		tip = s.commit([]int{tip}, map[string]string{"a": "2"})
	}
	side := s.commit(nil, map[string]string{"b": "1"})
	s.branch("main", tip)
	s.branch("side", side)
	ids := s.into(t, full)
	git(t, root, nil, "clone", "--quiet", "--bare", "--no-single-branch", "--depth", "2", "file://"+full, shallow)
	m := newMirrors(t, t.TempDir(), Repository{URL: shallow})
	wrong := fetchAll(t, m)
	repo := m.all[0].mirror.repo
	if err := wrong[repo]; err == nil || !succeeded(err) || !strings.Contains(err.Error(), "only a part") {
		t.Errorf("the server's history is cut off: %v", err)
	}
	g := m.Graph(repo)
	expectRelation(t, "within what is there", g, ids[4], ids[3], compliance.Descendant)
	expectRelation(t, "beyond it", g, ids[4], ids[2], compliance.Unknown)
	expectRelation(t, "no way is seen, and none is ruled out", g, ids[4], ids[side], compliance.Unknown)
	if _, ok := g.FirstParent(ids[3]); ok {
		t.Error("the parent is not there")
	}
	// The rest comes: by what the server had, the mirror cannot know that it lacks
	// something; it finds out that nothing is cut off any more, and begins anew.
	git(t, shallow, nil, "fetch", "--quiet", "--unshallow", "origin")
	for range 2 {
		wrong = fetchAll(t, m)
	}
	if len(wrong) > 0 {
		t.Error(wrong)
	}
	g = m.Graph(repo)
	expectRelation(t, "all is there", g, ids[4], ids[0], compliance.Descendant)
	expectRelation(t, "and nothing is in doubt", g, ids[4], ids[side], compliance.Unrelated)
}

// A mirror that lost a pack says what it does not know, and mends itself.
func TestLostPack(t *testing.T) {
	dir, bare := t.TempDir(), t.TempDir()
	s := newStream()
	first := s.commit(nil, map[string]string{"a/x": "1"})
	s.branch("main", first)
	s.into(t, bare)
	m := newMirrors(t, dir, Repository{URL: bare})
	fetchAll(t, m)
	packs, err := filepath.Glob(filepath.Join(dir, "*/objects/pack/pack-*"))
	if err != nil || len(packs) != 2 {
		t.Fatal(packs, err)
	}
	second := s.commit([]int{first}, map[string]string{"a/x": "2"})
	s.branch("main", second)
	ids := s.into(t, bare)
	fetchAll(t, m)
	for _, file := range packs {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	copies, err := filepath.Glob(filepath.Join(dir, "*", graphFile))
	if err != nil || len(copies) != 1 {
		t.Fatal(copies, err)
	}
	if err := os.Remove(copies[0]); err != nil {
		t.Fatal(err)
	}
	m = newMirrors(t, dir, Repository{URL: bare})
	repo := m.all[0].mirror.repo
	if err := m.all[0].restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := m.Graph(repo)
	expectRelation(t, "one is gone", g, ids[second], ids[first], compliance.Unknown)
	if same, ok := g.SameTrees(ids[second], ids[first], []string{"a"}); same || ok {
		t.Errorf("its folders: %t, %t", same, ok)
	}
	if err := m.all[0].fetch(t.Context()); err == nil || succeeded(err) {
		t.Errorf("the loss is no trouble: %v", err)
	}
	if wrong := fetchAll(t, m); len(wrong) > 0 {
		t.Error(wrong)
	}
	expectRelation(t, "mended", m.Graph(repo), ids[second], ids[first], compliance.Descendant)
}

// Repositories that cannot be had say why, and what holds of them is equality.
func TestTroubles(t *testing.T) {
	server, err := gittest.New(t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	sha256 := server.NewRepo(t, "sha256", "sha256")
	commit := sha256.Commit(t, map[string]string{"a": "1"})
	good := server.NewRepo(t, "good", "sha1")
	known := good.Commit(t, map[string]string{"a": "1"})
	denied := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "who are you, u:s3cr3t?", http.StatusUnauthorized)
	}))
	defer denied.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("s3cr3t"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := newMirrors(t, t.TempDir(),
		Repository{URL: sha256.Bare}, Repository{URL: good.Bare, Refs: []string{"main", "dev"}},
		Repository{URL: denied.URL + "/a/b", Auth: gitrepo.Auth{TokenFile: token}}, Repository{URL: "/nowhere/at/all"},
	)
	wrong := fetchAll(t, m)
	want := map[string]string{
		"sha256": "the repository uses SHA-256", "good": "no such ref: dev", "b": "access was refused", "all": "no such repository",
	}
	for _, s := range m.States() {
		name := s.Repo[strings.LastIndexByte(s.Repo, '/')+1:]
		err := wrong[s.Repo]
		if s.OK || err == nil || !strings.Contains(err.Error(), want[name]) {
			t.Errorf("%s: %v, %+v; want %q", name, err, s, want[name])
			continue
		}
		if strings.Contains(err.Error()+s.Detail, "s3cr3t") {
			t.Errorf("%s holds the token: %v, %s", name, err, s.Detail)
		}
		if g := m.Graph(s.Repo); g.Relate(commit, commit) != compliance.Same || g.Relate(commit, known) != compliance.Unknown {
			t.Errorf("%s: equality is all that is known", name)
		}
		var up dto.Metric
		if err := m.all[0].mirror.metrics.up.WithLabelValues(s.Repo).Write(&up); err != nil || up.GetGauge().GetValue() != 0 {
			t.Errorf("%s is up: %v, %v", name, &up, err)
		}
	}
	// One missing ref keeps nobody from the others.
	for _, s := range m.States() {
		if head, ok := m.Graph(s.Repo).Head("main"); ok != strings.HasSuffix(s.Repo, "good") || ok && head != known {
			t.Errorf("%s: main is at %s, %t", s.Repo, head, ok)
		}
	}
}

// Names of one repository lead to one graph.
func TestNames(t *testing.T) {
	m := newMirrors(t, t.TempDir(), Repository{URL: "https://git.example/org/platform", Aliases: []string{"git@mirror.example:platform.git", "https://git.example/org/platform.git"}})
	both := []string{"git.example/org/platform", "mirror.example/platform"}
	for _, name := range both {
		if diff := cmp.Diff(both, m.Names(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if _, ok := m.Graph(name).(view); !ok {
			t.Errorf("%s has no graph", name)
		}
	}
	if diff := cmp.Diff([]string{"git.example/org/apps"}, m.Names("git.example/org/apps")); diff != "" {
		t.Error(diff)
	}
	if _, ok := m.Graph("git.example/org/apps").(compliance.Equality); !ok {
		t.Error("a repository that nobody named has a graph")
	}
}

// following runs a follower of a repository that is nowhere, with a fetch of the
// test's own.
func following(t *testing.T, slots chan struct{}, interval time.Duration, fetch func(context.Context) error) *mirror {
	t.Helper()
	m := newMirrors(t, t.TempDir(), Repository{URL: "/nowhere/at/all"})
	f := m.all[0]
	f.slots, f.interval, f.fetch = slots, interval, fetch
	f.restore = func(context.Context) error { return nil }
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { defer close(done); f.run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return f.mirror
}

// The rhythm of fetches: on the interval, sooner when asked, but not as often as
// asked, and more seldom after failures.
func TestRhythm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var times []time.Time
		var fails atomic.Bool
		start := time.Now()
		m := following(t, make(chan struct{}, 1), time.Minute, func(context.Context) error {
			mu.Lock()
			times = append(times, time.Now())
			mu.Unlock()
			if fails.Load() {
				return context.DeadlineExceeded
			}
			return nil
		})
		began := func() []time.Time {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(times)
		}
		at := func(n int) time.Duration { return began()[n].Sub(start).Round(time.Second) }
		between := func(what string, got, least, most time.Duration) {
			t.Helper()
			if got < least || got > most {
				t.Errorf("%s after %s, want %s to %s", what, got, least, most)
			}
		}
		between("the first", at(0), 0, 0)
		time.Sleep(3 * time.Second)
		m.want(numbered(1))
		time.Sleep(3 * time.Second)
		between("the asked one", at(1), gap, gap)
		m.want(numbered(1)) // again: it did not come, and is not asked for once more
		time.Sleep(30 * time.Second)
		if n := len(began()); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
		time.Sleep(40 * time.Second)
		between("the regular one", at(2)-at(1), 54*time.Second, 66*time.Second)
		fails.Store(true)
		time.Sleep(80 * time.Minute)
		n := len(began())
		if n < 8 || n > 20 {
			t.Errorf("%d fetches of a repository that fails", n)
		}
		between("at the end", at(n-1)-at(n-2), 9*time.Minute, 11*time.Minute)
		m.want(numbered(2))
		time.Sleep(failedGap + time.Second)
		if got := len(began()); got != n+1 {
			t.Errorf("one that was asked for must come in spite of that: %d, were %d", got, n)
		}
	})
}

// A push is fetched at once, in a second after the fetch before, also one that
// comes while a fetch is under way; many at a time are one, and after a failure
// they wait as questions do.
func TestPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, release := make(chan time.Time, 100), make(chan error)
		m := following(t, make(chan struct{}, 1), time.Hour, func(ctx context.Context) error {
			began <- time.Now()
			select {
			case err := <-release:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		all := &Mirrors{byName: map[string]*named{"git.example/a": {mirror: m}, "mirror.example/a": {mirror: m}}}
		push := func(repo string) {
			t.Helper()
			if !all.Fetch(repo) {
				t.Errorf("%s is not followed", repo)
			}
		}
		next := func(what string, after, most time.Duration) {
			t.Helper()
			since := time.Now()
			if got := (<-began).Sub(since); got < after || got > most {
				t.Errorf("%s was fetched after %s, want %s to %s", what, got, after, most)
			}
		}
		next("the first", 0, 0)
		push("git.example/a") // the server may have listed its branches already
		release <- nil
		next("a push during a fetch", pushGap, pushGap)
		release <- nil
		time.Sleep(time.Minute)
		for range 10 {
			push("mirror.example/a")
		}
		next("a push after a while", 0, 0)
		release <- nil
		synctest.Wait()
		if n := len(began); n != 0 {
			t.Errorf("%d more fetches of one push", n)
		}
		push("git.example/a")
		next("one straight after", pushGap, pushGap)
		m.want(numbered(1))
		release <- nil
		next("a question", gap, gap)
		push("git.example/a")
		release <- context.DeadlineExceeded
		next("a push to a server that fails", failedGap, failedGap)
		release <- nil
		if all.Fetch("git.example/b") {
			t.Error("a repository that nobody named is followed")
		}
	})
}

// Servers that stall keep their slots for a while only.
func TestStalledServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := make(chan struct{}, 2)
		for range 6 {
			following(t, slots, time.Minute, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
		}
		synctest.Wait()
		fetched := make(chan time.Time, 100)
		start := time.Now()
		following(t, slots, time.Minute, func(context.Context) error {
			fetched <- time.Now()
			return nil
		})
		if got := (<-fetched).Sub(start); got > 3*slow {
			t.Errorf("it waited for %s", got)
		}
		if got := (<-fetched).Sub(start); got > 4*slow+time.Minute {
			t.Errorf("the second time after %s", got)
		}
	})
}

// Questions are answered while fetches replace the graph, and each from one
// moment: a head that is shown is known.
func TestReadsWhileFetching(t *testing.T) {
	bare := t.TempDir()
	s := newStream()
	tip := s.commit(nil, map[string]string{"a/x": "0"})
	s.branch("main", tip)
	s.into(t, bare)
	m := newMirrors(t, t.TempDir(), Repository{URL: bare})
	fetchAll(t, m)
	repo := m.all[0].mirror.repo
	root, _ := m.Graph(repo).Head("main")
	over := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				g := m.Graph(repo)
				head, ok := g.Head("main")
				if r := g.Relate(head, root); !ok || r != compliance.Descendant && r != compliance.Same {
					t.Errorf("the head %s, %t, is %d to the root", head, ok, r)
				}
				if same, ok := g.SameTrees(head, root, []string{"a"}); !ok || same != (head == root) {
					t.Errorf("the head's folder: %t, %t", same, ok)
				}
				g.Relate(strings.Repeat("1", 40), root)
				g.SelfContained(head, "a")
				m.States()
			}
		})
	}
	for i := range 10 {
		tip = s.commit([]int{tip}, map[string]string{"a/x": strings.Repeat("x", i+1)})
		s.branch("main", tip)
		s.into(t, bare)
		if wrong := fetchAll(t, m); len(wrong) > 0 {
			t.Error(wrong)
		}
	}
	close(over)
	readers.Wait()
}

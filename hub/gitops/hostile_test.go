package gitops

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	runtimemetrics "runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/internal/polltest"
	"github.com/landfall-hub/landfall/schema"
)

// full has hostile repositories as large as they come; without it they are as
// small as shows the same.
var full = flag.Bool("full", false, "hostile repositories at full size: 1 GB of files, 100,000 branches (make soak)")

// size returns the one of two sizes that is asked for.
func size[T any](small, large T) T {
	if *full {
		return large
	}
	return small
}

// peak runs something, prints what it took, and returns by how much the heap grew
// meanwhile at most, in bytes.
func peak(t *testing.T, what string, run func()) (grew uint64) {
	t.Helper()
	sample := func() uint64 {
		s := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		runtimemetrics.Read(s)
		return s[0].Value.Uint64()
	}
	runtime.GC()
	before := sample()
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			now := sample()
			grew = max(grew, now-min(before, now))
			select {
			case <-over:
				return
			case <-tick.C:
			}
		}
	}()
	began := time.Now()
	run()
	took := time.Since(began)
	close(over)
	<-ended
	t.Logf("%s: %s, the heap grew by %.1f MiB", what, took.Round(time.Millisecond), float64(grew)/(1<<20))
	return grew
}

// onDisk adds up the files below a folder.
func onDisk(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		bytes += info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// filled makes a repository with so many bytes in a few large files that cannot
// be compressed, and in many small ones.
func filled(t *testing.T, bare string, bytes int64, small int) {
	t.Helper()
	git(t, bare, nil, "init", "--quiet", "--bare", "--initial-branch", "main", ".")
	// The server is not what is tested: it is to send the files as they are.
	git(t, bare, nil, "config", "core.bigFileThreshold", "512k")
	git(t, bare, nil, "config", "core.compression", "0")
	r, w := io.Pipe()
	go func() {
		const large = 4
		noise := rand.NewChaCha8([32]byte{1})
		fmt.Fprint(w, "commit refs/heads/main\ncommitter t <t@example.invalid> 1700000000 +0000\ndata 1\nx\n")
		for i := range large {
			fmt.Fprintf(w, "M 100644 inline large/%d\ndata %d\n", i, bytes/large)
			_, _ = io.CopyN(w, noise, bytes/large)
			fmt.Fprintln(w)
		}
		for i := range small {
			fmt.Fprintf(w, "M 100644 inline small/%d/%d\ndata 8\n%08d\n", i%100, i, i)
		}
		fmt.Fprintln(w)
		_ = w.Close()
	}()
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = bare, r
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git fast-import: %v: %s", err, out)
	}
}

// A repository with 1 GB of files is refused where that is over its bound, with
// nothing left of it, and otherwise taken in memory that does not grow with it.
func TestAGigabyteOfFiles(t *testing.T) {
	server, err := gittest.New(t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	bytes, small := size(24<<20, 1<<30), size(2_000, 20_000)
	bare := filepath.Join(server.Root, "large.git")
	if err := os.Mkdir(bare, 0o700); err != nil {
		t.Fatal(err)
	}
	filled(t, bare, int64(bytes), small)
	web := httptest.NewServer(server)
	defer web.Close()
	fetch := func(most int64) (dir string, err error) {
		dir = filepath.Join(t.TempDir(), "mirror")
		r, err := gitrepo.Open(gitrepo.Options{URL: web.URL + "/large.git", Dir: dir, MaxBytes: most})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.FetchHeads(t.Context(), nil, mostBranches)
		return dir, err
	}
	// Memory in which files of any size pass through.
	const bound = 32 << 20
	var dir string
	grew := peak(t, fmt.Sprintf("refusing %d MB", bytes>>20), func() { dir, err = fetch(int64(bytes) / 2) })
	if !errors.Is(err, gitrepo.ErrTooLarge) || grew > bound {
		t.Errorf("half of it is over the bound: %v; %d bytes", err, grew)
	}
	if left := onDisk(t, dir); left > 10_000 {
		t.Errorf("%d bytes are left", left)
	}
	grew = peak(t, fmt.Sprintf("fetching %d MB", bytes>>20), func() { dir, err = fetch(int64(bytes) * 2) })
	if err != nil || grew > bound {
		t.Errorf("%v; %d bytes", err, grew)
	}
	git(t, dir, nil, "fsck", "--connectivity-only")
}

// Of 100,000 branches the default one and the first are followed, or those that
// are named; memory and time are those of reading a list.
func TestManyBranches(t *testing.T) {
	branches := size(4_000, 100_000)
	bare := t.TempDir()
	s := newStream()
	tip := s.commit(nil, map[string]string{"a": "1"})
	s.branch("main", tip)
	ids := s.into(t, bare)
	var refs strings.Builder
	fmt.Fprintln(&refs, "# pack-refs with: peeled fully-peeled sorted")
	for i := range branches {
		fmt.Fprintf(&refs, "%s refs/heads/b%06d\n", ids[tip], i)
	}
	fmt.Fprintf(&refs, "%s refs/heads/main\n", ids[tip])
	if err := os.WriteFile(filepath.Join(bare, "packed-refs"), []byte(refs.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	last := fmt.Sprintf("b%06d", branches-1)
	for name, c := range map[string]struct {
		refs   []string
		detail string
		heads  int
	}{
		"all of them": {nil, fmt.Sprintf("more than %d branches; name those that matter in refs", mostBranches), mostBranches},
		"named ones":  {[]string{"main", last}, "fetched at", 3},
	} {
		m := newMirrors(t, t.TempDir(), Repository{URL: bare, Refs: c.refs})
		for _, when := range []string{"first", "again"} {
			grew := peak(t, fmt.Sprintf("%s of %d branches, %s", name, branches, when), func() { fetchAll(t, m) })
			if grew > 128<<20 {
				t.Errorf("%s: the heap grew by %d bytes", name, grew)
			}
		}
		state := m.States()[0]
		if !strings.Contains(state.Detail, c.detail) || state.OK != (c.refs != nil) {
			t.Errorf("%s: %+v", name, state)
		}
		if got := len(m.all[0].mirror.current.Load().heads); got != c.heads {
			t.Errorf("%s: %d are followed, want %d", name, got, c.heads)
		}
		g := m.Graph(state.Repo)
		if head, ok := g.Head(""); !ok || head != ids[tip] {
			t.Errorf("%s: the default branch is at %s", name, head)
		}
		if _, ok := g.Head(last); ok != (c.refs != nil) {
			t.Errorf("%s: %s is followed: %t", name, last, ok)
		}
	}
}

// Names that no shell likes, links that lead out, folders without end, and a file
// of 50 MB where a small one is looked for: each is what it is, and no more.
func TestOddFiles(t *testing.T) {
	bare := t.TempDir()
	s := newStream()
	deep := strings.Repeat("d/", 1_500) + "file"
	long := strings.Repeat("n", 4_000)
	files := map[string]string{
		`"odd/new\nline"`: "1", `"odd/tab\tand \"quotes\""`: "1", `"odd/\377\376"`: "1", "odd/-rf": "1", `"odd/ "`: "1", "odd/" + long: "1",
		"links/out": "-> ../../../../etc/passwd", "links/root": "-> /", "links/self": "-> self", "deep/" + deep: "1", "app/a": "1",
		"descriptors/large.yaml": strings.Repeat("a: b # and so on\n", 50<<20/17), "descriptors/small.yaml": "a: b",
	}
	first := s.commit(nil, files)
	second := s.commit([]int{first}, map[string]string{`"odd/new\nline"`: "2"})
	third := s.commit([]int{second}, map[string]string{"links/out": "-> ../../../../etc/shadow"})
	s.branch("main", third)
	ids := s.into(t, bare)
	m := newMirrors(t, t.TempDir(), Repository{URL: bare})
	var wrong map[string]error
	if grew := peak(t, "fetching odd files", func() { wrong = fetchAll(t, m) }); len(wrong) > 0 || grew > 32<<20 {
		t.Fatal(wrong, grew)
	}
	state := m.States()[0]
	g := m.Graph(state.Repo)
	expectRelation(t, "lineage", g, ids[third], ids[first], compliance.Descendant)
	for _, c := range []struct {
		a, b int
		path string
		same bool
	}{
		{first, second, "odd", false}, {second, third, "odd", true}, {first, third, "app", true}, {first, third, "deep", true}, {first, third, "descriptors", true},
		{first, second, "links", true}, {second, third, "links", false}, {second, third, "links/out", false}, {second, third, "links/out/of/it", false},
		{first, third, "links/root/etc", true}, {first, third, "odd/-rf", true}, {first, third, "odd/" + long, true}, {first, third, "deep/" + strings.TrimSuffix(deep, "/file"), true},
	} {
		if same, ok := g.SameTrees(ids[c.a], ids[c.b], []string{c.path}); !ok || same != c.same {
			t.Errorf("%.40s at %d and %d: %t, %t; want %t", c.path, c.a, c.b, same, ok, c.same)
		}
	}
	for path, want := range map[string]bool{"odd": true, "app": true, "deep": true, "descriptors": true, "links": false, "links/out": false, "": false} {
		if got := g.SelfContained(ids[third], path); got != want {
			t.Errorf("%q leads nowhere else: %t, want %t", path, got, want)
		}
	}

	// Who looks for a small file is told that this one is large, without reading it.
	r := m.all[0].mirror.current.Load().reader
	commit, _ := gitrepo.ParseID(ids[third])
	folder, ok := m.all[0].mirror.trees.at(r, commit, "descriptors")
	if !ok {
		t.Fatal("the folder cannot be read")
	}
	entries, err := r.Tree(folder.id)
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	grew := peak(t, "looking for a descriptor", func() { _, err = r.File(entries[0].ID, 1<<20) })
	if !errors.Is(err, gitrepo.ErrTooLarge) || grew > 16<<20 {
		t.Errorf("the large one: %v, %d bytes", err, grew)
	}
	if text, err := r.File(entries[1].ID, 1<<20); err != nil || string(text) != "a: b" {
		t.Errorf("the one beside it: %q, %v", text, err)
	}
}

// stalling serves a repository until an answer is to stop for ever.
func stalling(server http.Handler, method string, answer func(w http.ResponseWriter, whole []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			server.ServeHTTP(w, r)
			return
		}
		whole := httptest.NewRecorder()
		server.ServeHTTP(whole, r)
		for key, values := range whole.Header() {
			w.Header()[key] = values
		}
		answer(w, whole.Body.Bytes())
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
}

// Whatever some servers do, each is given up in time with a clear error in the
// readiness detail, and the repository beside them is followed as if they were
// not there.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	server, err := gittest.New(t.TempDir(), io.Discard) // what is hung up on complains
	if err != nil {
		t.Fatal(err)
	}
	good := server.NewRepo(t, "good", "sha1")
	good.Commit(t, map[string]string{"app/a": "0"})
	server.NewRepo(t, "long-ids", "sha256").Commit(t, map[string]string{"a": "1"})
	noise := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(noise)
	server.NewRepo(t, "over-its-bound", "sha1").Commit(t, map[string]string{"a": string(noise)})
	const slowly = "took too long"
	hostile := map[string]struct {
		handler http.Handler
		detail  string
	}{
		"before-its-refs":   {stalling(server, http.MethodGet, func(http.ResponseWriter, []byte) {}), slowly},
		"after-the-headers": {stalling(server, http.MethodGet, func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusOK) }), slowly},
		"amid-its-refs":     {stalling(server, http.MethodGet, func(w http.ResponseWriter, b []byte) { _, _ = w.Write(b[:len(b)-10]) }), slowly},
		"before-its-pack":   {stalling(server, http.MethodPost, func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusOK) }), slowly},
		"amid-its-pack":     {stalling(server, http.MethodPost, func(w http.ResponseWriter, b []byte) { _, _ = w.Write(b[:len(b)/2]) }), slowly},
		"a-byte-at-a-time": {stalling(server, http.MethodGet, func(w http.ResponseWriter, b []byte) {
			pace := time.NewTicker(100 * time.Millisecond)
			defer pace.Stop()
			for i := range b {
				if _, err := w.Write(b[i : i+1]); err != nil || http.NewResponseController(w).Flush() != nil {
					return
				}
				<-pace.C
			}
		}), slowly},
		"refs-without-end": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "001e# service=git-upload-pack\n0000"+"0047"+strings.Repeat("1", 40)+" refs/heads/main\x00ofs-delta\n")
			for i := 0; ; i++ {
				if _, err := fmt.Fprintf(w, "0045%s refs/heads/%012d\n", strings.Repeat("1", 40), i); err != nil {
					return
				}
			}
		}), "larger than a mirror may be"},
		"no-pack-at-all": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				server.ServeHTTP(w, r)
				return
			}
			fmt.Fprint(w, "0008NAK\n0015\x01<html>not a pack0000")
		}), "cannot be fetched"},
		"over-its-bound": {server, "larger than a mirror may be"},
		"long-ids":       {server, "SHA-256"},
		"not-there":      {server, "no such repository"},
	}
	repositories := []Repository{{URL: good.Bare, Interval: time.Second}}
	for name, h := range hostile {
		if _, err := os.Stat(filepath.Join(server.Root, name+".git")); err != nil && name != "not-there" {
			server.NewRepo(t, name, "sha1").Commit(t, map[string]string{"a": string(bytes.Repeat([]byte("x"), 1000))})
		}
		web := httptest.NewServer(h.handler)
		t.Cleanup(func() {
			web.CloseClientConnections()
			web.Close()
		})
		repositories = append(repositories, Repository{URL: web.URL + "/" + name + ".git", Interval: time.Second})
	}
	m, err := New(Options{
		Repositories: repositories, Dir: t.TempDir(), Stall: 5 * time.Second, Timeout: 12 * time.Second, MaxBytes: 2 << 20,
		Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	repo, err := schema.CanonicalRepo(good.Bare)
	if err != nil {
		t.Fatal(err)
	}
	last, commits := "", 0
	grew := peak(t, fmt.Sprintf("following one repository beside %d that are hostile", len(hostile)), func() {
		began := time.Now()
		for pending := true; pending || commits < 3; commits++ {
			next := good.Commit(t, map[string]string{"app/a": fmt.Sprint(commits + 1)})
			polltest.Until(t, "the good repository is followed", func() bool {
				head, ok := m.Graph(repo).Head("main")
				// What was fetched is known before how it went is noted.
				return ok && head == next && (last != "" || slices.ContainsFunc(m.States(), func(s State) bool { return s.Repo == repo && s.OK }))
			})
			if last != "" {
				expectRelation(t, "in the good repository", m.Graph(repo), next, last, compliance.Descendant)
			}
			last, pending = next, false
			for _, s := range m.States() {
				name := strings.TrimSuffix(s.Repo[strings.LastIndexByte(s.Repo, '/')+1:], ".git")
				if s.Repo == repo {
					if !s.OK {
						t.Errorf("the good one: %+v", s)
					}
					continue
				}
				if s.OK {
					t.Errorf("a hostile one: %+v", s)
				}
				pending = pending || !strings.Contains(s.Detail, hostile[name].detail)
			}
			if pending && time.Since(began) > polltest.Patience {
				t.Fatalf("not within %s: every hostile one has its error: %+v", polltest.Patience, m.States())
			}
		}
	})
	for _, s := range m.States() {
		t.Logf("%s: %s", s.Repo[strings.LastIndexByte(s.Repo, '/')+1:], s.Detail)
	}
	t.Logf("%d commits of the good one were followed meanwhile", commits)
	if grew > 400<<20 {
		t.Errorf("the heap grew by %d bytes", grew)
	}
}

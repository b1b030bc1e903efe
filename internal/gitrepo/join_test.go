package gitrepo_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
)

// packs returns the names of a mirror's packs.
func packs(t testing.TB, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// pushes is a repository with as many commits, each on the one before or, every
// tenth, on an earlier one: what is pushed away then is there no more.
func pushes(t testing.TB, commits int) (bare string, ids []string) {
	t.Helper()
	bare = t.TempDir()
	s := gittest.NewStream()
	for i := range commits {
		var parents []int
		if i > 0 {
			parents = []int{i - 1}
		}
		if i%10 == 9 {
			parents = []int{i - 5}
		}
		s.Commit(parents, map[string]string{"a": fmt.Sprint(i), fmt.Sprintf("d%d/b", i%5): fmt.Sprint(i)})
	}
	return bare, s.Into(t, bare)
}

// push has the server's branch be at a commit.
func push(t testing.TB, bare, commit string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(bare, "refs", "heads", "main"), []byte(commit+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// holdsAll reads commits with all that is in them.
func holdsAll(t testing.TB, r *gitrepo.Reader, commits ...string) {
	t.Helper()
	for i, commit := range commits {
		number, _ := gitrepo.ParseID(commit)
		c, err := r.Commit(number)
		if err != nil {
			t.Fatalf("the commit %d: %v", i, err)
		}
		entries, err := r.Tree(c.Tree)
		if err != nil || len(entries) == 0 {
			t.Fatalf("the commit %d: %v, %v", i, entries, err)
		}
		if _, err := r.File(entries[0].ID, 100); err != nil {
			t.Fatalf("the commit %d: %v", i, err)
		}
	}
}

// A mirror that is fetched again and again has few packs, and all that it ever
// had, whether a ref leads to it or not; who reads meanwhile sees no difference.
func TestJoin(t *testing.T) {
	t.Parallel()
	bare, ids := pushes(t, 132)
	push(t, bare, ids[0])
	o := gitrepo.Options{URL: bare, Dir: filepath.Join(t.TempDir(), "mirror")}
	r := open(t, o)
	heads(t, r)
	early, opened := r.Reader(), r.OpenReader()
	defer opened.Close()
	over := make(chan struct{})
	var reading sync.WaitGroup
	for range 2 {
		reading.Go(func() {
			again := time.NewTicker(20 * time.Millisecond)
			defer again.Stop()
			for {
				select {
				case <-over:
					return
				case <-again.C:
				}
				for _, reader := range []*gitrepo.Reader{early, opened} {
					c, err := reader.Commit(id(t, ids[0]))
					if err == nil {
						_, err = reader.Tree(c.Tree)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	joins, most := 0, 0
	for _, commit := range ids[1:] {
		push(t, bare, commit)
		heads(t, r)
		joined, err := r.Join(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if joined {
			joins++
		}
		most = max(most, len(packs(t, o.Dir)))
	}
	close(over)
	reading.Wait()
	if joins != 2 || most != 64 {
		t.Errorf("joined %d times, %d packs at most", joins, most)
	}
	holdsAll(t, early, ids[:65]...) // as many as there were when packs were joined first
	holdsAll(t, open(t, o).Reader(), ids...)
	gittest.Git(t, o.Dir, "fsck", "--full")
}

// A mirror with a damaged pack begins anew when that is found out.
func TestJoinFindsDamage(t *testing.T) {
	t.Parallel()
	bare, ids := pushes(t, 66)
	o := gitrepo.Options{URL: bare, Dir: filepath.Join(t.TempDir(), "mirror")}
	r := open(t, o)
	for _, commit := range ids[:65] {
		push(t, bare, commit)
		heads(t, r)
	}
	damaged := packs(t, o.Dir)[7]
	text, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(damaged, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if joined, err := r.Join(t.Context()); joined || err == nil {
		t.Fatal(joined, err)
	}
	push(t, bare, ids[65])
	heads(t, r)
	if n := len(packs(t, o.Dir)); n != 1 {
		t.Errorf("%d packs, want one that is new", n)
	}
	holdsAll(t, r.Reader(), ids[65])
}

// A mirror that grows on and on by what is pushed away keeps its bound; one
// whose repository is too large as a whole says so, and loses nothing.
func TestOutgrown(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	repo := server.NewRepo(t, "repo", "sha1")
	const most = 200_000
	random := rand.NewChaCha8([32]byte{})
	noise := func(n int) string {
		var b bytes.Buffer
		for range n {
			b.WriteByte(byte(random.Uint64()))
		}
		return b.String()
	}
	first := repo.Commit(t, map[string]string{"a": "1"})
	o := gitrepo.Options{URL: repo.Bare, Dir: filepath.Join(t.TempDir(), "mirror"), MaxBytes: most}
	r := open(t, o)
	heads(t, r)
	reader := r.Reader()
	size := func() (size int64) {
		for _, file := range packs(t, o.Dir) {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			size += info.Size()
		}
		return size
	}
	largest, shrank := int64(0), 0
	for range 16 {
		gittest.Git(t, repo.Tree, "reset", "--quiet", "--hard", first)
		forced := repo.Commit(t, map[string]string{"a": noise(100_000)})
		before := size()
		heads(t, r)
		if size() < before {
			shrank++
		}
		largest = max(largest, size())
		for _, commit := range []string{first, forced} {
			if _, err := r.Reader().Commit(id(t, commit)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := reader.Commit(id(t, first)); err != nil {
			t.Fatal(err)
		}
	}
	if largest > 3*most || shrank < 3 {
		t.Errorf("%d bytes at most, of %d; it shrank %d times", largest, most, shrank)
	}
	gittest.Git(t, o.Dir, "fsck", "--full")

	var err error
	var kept []string
	for i := 0; i < 20 && err == nil; i++ {
		kept = append(kept, repo.Commit(t, map[string]string{"a": noise(100_000)}))
		_, err = r.FetchHeads(t.Context(), nil, 10)
	}
	if !errors.Is(err, gitrepo.ErrTooLarge) {
		t.Fatalf("it grew on and on: %v", err)
	}
	for _, commit := range kept[:len(kept)-1] {
		if _, err := r.Reader().Commit(id(t, commit)); err != nil {
			t.Errorf("what was there must stay: %v", err)
		}
	}
	if got := size(); got > 3*most {
		t.Errorf("%d bytes, of %d", got, most)
	}
}

// BenchmarkLookup reads a commit of a mirror that was fetched 200 times.
func BenchmarkLookup(b *testing.B) {
	bare, ids := pushes(b, 200)
	for _, joined := range []bool{false, true} {
		b.Run(fmt.Sprintf("joined=%t", joined), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "mirror")
			r, err := gitrepo.Open(gitrepo.Options{URL: bare, Dir: dir})
			if err != nil {
				b.Fatal(err)
			}
			for _, commit := range ids {
				push(b, bare, commit)
				if _, err := r.FetchHeads(b.Context(), nil, 10); err != nil {
					b.Fatal(err)
				}
				if joined {
					if _, err := r.Join(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
			commit, _ := gitrepo.ParseID(ids[len(ids)-1])
			found, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
			if err != nil {
				b.Fatal(err)
			}
			b.Run("first", func(b *testing.B) { // a Reader that knows nothing yet
				for b.Loop() {
					if _, err := r.Reader().Commit(commit); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(found)), "packs")
			})
			b.Run("next", func(b *testing.B) {
				reader := r.Reader()
				for b.Loop() {
					if _, err := reader.Commit(commit); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("fetch", func(b *testing.B) { // with no news
				for b.Loop() {
					if _, err := r.FetchHeads(b.Context(), nil, 10); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

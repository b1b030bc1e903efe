package gitops

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/compliance"
)

// pointed makes a bare repository's branch be at a commit.
func pointed(t *testing.T, bare, commit string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(bare, "refs", "heads", "main"), []byte(commit+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// After as many fetches as make packs be joined, among them pushes away of what
// was there, every commit that was ever seen is known with its lineage and its
// folders, in views from before and after it and after a restart.
func TestManyFetches(t *testing.T) {
	t.Parallel()
	const fetches = 80
	dir, bare := t.TempDir(), t.TempDir()
	s := newStream()
	tips := []int{s.commit(nil, map[string]string{"app/a": "0", "other/a": "0"})}
	for i := 1; i < fetches; i++ {
		parent := i - 1
		if i%10 == 9 {
			parent = i - 5
		}
		changes := map[string]string{"other/a": fmt.Sprint(i)}
		if i%3 == 0 {
			changes["app/a"] = fmt.Sprint(i)
		}
		tips = append(tips, s.commit([]int{tips[parent]}, changes))
	}
	ids := s.into(t, bare)
	m := newMirrors(t, dir, Repository{URL: bare})
	repo := m.all[0].mirror.repo
	most := 0
	for i, tip := range tips {
		pointed(t, bare, ids[tip])
		before := m.Graph(repo)
		if wrong := fetchAll(t, m); len(wrong) > 0 {
			t.Fatal(wrong)
		}
		packs, err := filepath.Glob(filepath.Join(dir, "*", "objects", "pack", "*.pack"))
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(packs))
		if i == 0 {
			continue
		}
		if same, ok := before.SameTrees(ids[0], ids[0], []string{"app"}); !ok || !same {
			t.Fatalf("%d: a view from before cannot read what it could: %t, %t", i, same, ok)
		}
	}
	if most > 64 {
		t.Errorf("%d packs", most)
	}
	check := func(when string, g compliance.Graph) {
		t.Helper()
		for i := 1; i < len(tips); i++ {
			parent, ok := g.FirstParent(ids[tips[i]])
			if !ok {
				t.Fatalf("%s: %d has no parent", when, i)
			}
			expectRelation(t, when, g, ids[tips[i]], parent, compliance.Descendant)
			if same, ok := g.SameTrees(ids[tips[i]], parent, []string{"app"}); !ok || same != (i%3 != 0) {
				t.Fatalf("%s: the folder at %d: %t, %t", when, i, same, ok)
			}
		}
	}
	check("at last", m.Graph(repo))
	check("after a restart", newMirrors(t, dir, Repository{URL: bare}).Graph(repo))
}

// A mirror that is downloaded as a whole, because it has outgrown its bound,
// loses what no ref leads to; its graph does not, and not by a crash either.
func TestOutgrownMirror(t *testing.T) {
	dir, bare := t.TempDir(), t.TempDir()
	noise := rand.NewChaCha8([32]byte{3})
	s := newStream()
	text := make([]byte, 40_000)
	first := s.commit(nil, map[string]string{"app/a": "0"})
	var tips []int
	for range 8 {
		_, _ = noise.Read(text)
		tips = append(tips, s.commit([]int{first}, map[string]string{"app/a": string(text)}))
	}
	ids := s.into(t, bare)
	open := func() *Mirrors {
		m, err := New(Options{
			Repositories: []Repository{{URL: bare}}, Dir: dir, MaxBytes: 100_000,
			Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Registerer: prometheus.NewRegistry(),
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := open()
	repo := m.all[0].mirror.repo
	known := func(when string, g compliance.Graph, n int) {
		t.Helper()
		for _, tip := range tips[:n] {
			expectRelation(t, when, g, ids[tip], ids[first], compliance.Descendant)
		}
	}
	largest, last := int64(0), int64(0)
	for i, tip := range tips {
		pointed(t, bare, ids[tip])
		file := filepath.Join(m.all[0].mirror.source.Dir(), graphFile)
		copied, err := os.ReadFile(file)
		if err != nil && i > 0 {
			t.Fatal(err)
		}
		if wrong := fetchAll(t, m); len(wrong) > 0 {
			t.Fatal(wrong)
		}
		known("fetched", m.Graph(repo), i+1)
		if i > 0 {
			// A crash came between the download and the new copy of the graph.
			if err := os.WriteFile(file, copied, 0o600); err != nil {
				t.Fatal(err)
			}
			m = open()
			known("after a crash", m.Graph(repo), i)
			if wrong := fetchAll(t, m); len(wrong) > 0 {
				t.Fatal(wrong)
			}
			known("and a fetch", m.Graph(repo), i+1)
			if head, ok := m.Graph(repo).Head("main"); !ok || head != ids[tip] {
				t.Errorf("%d: the branch is at %s, %t", i, head, ok)
			}
		}
		last = onDisk(t, filepath.Join(m.all[0].mirror.source.Dir(), "objects", "pack"))
		largest = max(largest, last)
	}
	if largest > 300_000 || last == largest {
		t.Errorf("%d bytes at most and %d at last, of 100,000 that one download may have", largest, last)
	}
	if same, ok := m.Graph(repo).SameTrees(ids[tips[0]], ids[first], []string{"app"}); ok {
		t.Errorf("what went with the old packs is unknown, not %t", same)
	}
}

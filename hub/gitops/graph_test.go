package gitops

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// numbered is the id of the nth commit; ids are in no order of n.
func numbered(n int) (id gitrepo.ID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint32(id[16:], uint32(n))
	return id
}

// randomHistory is a history of n commits: lines that fork, merge up to three
// ways, begin anew and, where lossy, lack a parent here and there.
func randomHistory(r *rand.Rand, n int, lossy bool) []gitrepo.Commit {
	commits := make([]gitrepo.Commit, n)
	for i := range commits {
		commits[i].ID = numbered(i)
		if i == 0 || r.IntN(40) == 0 {
			continue
		}
		for range 1 + r.IntN(6)/4 + r.IntN(10)/9 {
			p := numbered(max(0, i-1-r.IntN(1+r.IntN(30))))
			if lossy && r.IntN(20) == 0 {
				p = numbered(n + i) // nobody has it
			}
			commits[i].Parents = append(commits[i].Parents, p)
		}
	}
	return commits
}

// inParts makes a graph of commits that come in several fetches.
func inParts(r *rand.Rand, commits []gitrepo.Commit) *graph {
	g := (&graph{}).with(nil)
	for len(commits) > 0 {
		n := 1 + r.IntN(len(commits))
		g = g.with(commits[:n])
		commits = commits[n:]
	}
	return g
}

// relations works out by brute force how each commit stands to each other one.
// below[i] are the ancestors of i; unsure[i] says that some are not known.
func closure(commits []gitrepo.Commit) (below []map[int]bool, unsure []bool) {
	number := map[gitrepo.ID]int{}
	below, unsure = make([]map[int]bool, len(commits)), make([]bool, len(commits))
	for i, c := range commits {
		number[c.ID] = i
		below[i] = map[int]bool{}
		for _, p := range c.Parents {
			n, ok := number[p]
			if !ok {
				unsure[i] = true
				continue
			}
			below[i][n] = true
			for a := range below[n] {
				below[i][a] = true
			}
			unsure[i] = unsure[i] || unsure[n]
		}
	}
	return below, unsure
}

// Every pair of commits of random histories, against a walk that is too simple
// to be wrong.
func TestRelate(t *testing.T) {
	pairs := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		commits := randomHistory(r, 2+r.IntN(120), seed%3 == 0)
		v := view{snapshot: &snapshot{graph: inParts(r, commits)}, want: func(gitrepo.ID) {}}
		below, unsure := closure(commits)
		for i, a := range commits {
			for j, b := range commits {
				want := compliance.Unrelated
				switch {
				case i == j:
					want = compliance.Same
				case below[i][j]:
					want = compliance.Descendant
				case below[j][i]:
					want = compliance.Ancestor
				case unsure[i] || unsure[j]:
					want = compliance.Unknown
				}
				pairs++
				if got := v.Relate(a.ID.String(), b.ID.String()); got != want {
					t.Fatalf("seed %d: %d to %d is %d, want %d", seed, i, j, got, want)
				}
			}
		}
	}
	t.Logf("%d pairs", pairs)
}

// What a graph says of single commits.
func TestGraphOfOne(t *testing.T) {
	a, b, lost := numbered(1), numbered(2), numbered(3)
	var wanted []gitrepo.ID
	g := (&graph{}).with([]gitrepo.Commit{{ID: a}, {ID: b, Parents: []gitrepo.ID{a}}, {ID: numbered(4), Parents: []gitrepo.ID{lost, a}}})
	v := view{snapshot: &snapshot{graph: g, heads: map[string]gitrepo.ID{"dev": b}}, want: func(id gitrepo.ID) { wanted = append(wanted, id) }}
	if p, ok := v.FirstParent(b.String()); !ok || p != a.String() {
		t.Errorf("the first parent is %s, %t", p, ok)
	}
	for _, none := range []gitrepo.ID{a, numbered(4)} {
		if p, ok := v.FirstParent(none.String()); ok {
			t.Errorf("%s has no first parent, got %s", none, p)
		}
	}
	if head, ok := v.Head("dev"); !ok || head != b.String() {
		t.Errorf("the head is %s, %t", head, ok)
	}
	if head, ok := v.Head(""); ok {
		t.Errorf("nobody knows the default branch, got %s", head)
	}
	if len(wanted) != 0 {
		t.Errorf("known commits were asked for: %v", wanted)
	}
	if r := v.Relate(lost.String(), a.String()); r != compliance.Unknown {
		t.Errorf("a commit that is not known is %d", r)
	}
	if r := v.Relate(lost.String(), lost.String()); r != compliance.Same {
		t.Errorf("a commit that is not known is the same as itself, got %d", r)
	}
	sha256 := strings.Repeat("ab", 32)
	if r := v.Relate(sha256, a.String()); r != compliance.Unknown {
		t.Errorf("a SHA-256 commit is %d", r)
	}
	if diff := cmp.Diff([]gitrepo.ID{lost, lost, lost}, wanted); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
}

// mainline is a repository of n commits: every tenth merges a branch of three.
func mainline(n int) []gitrepo.Commit {
	var commits []gitrepo.Commit
	add := func(parents ...gitrepo.ID) gitrepo.ID {
		id := numbered(len(commits))
		commits = append(commits, gitrepo.Commit{ID: id, Parents: parents})
		return id
	}
	tip := add()
	for len(commits) < n {
		side := add(add(add(tip)))
		for range 6 {
			tip = add(tip)
		}
		tip = add(tip, side)
	}
	return commits
}

// BenchmarkAncestor asks a graph of 100,000 commits, 10,000 of them merges; git
// is asked the same beside it.
func BenchmarkAncestor(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		commits := mainline(n)
		g := (&graph{}).with(commits)
		v := view{snapshot: &snapshot{graph: g}, want: func(gitrepo.ID) {}}
		// An early commit of a side branch (found at the end of a long walk), its
		// mirror image (never found), and random pairs.
		side, tip := commits[2].ID.String(), commits[len(commits)-1].ID.String()
		other := commits[len(commits)-9].ID.String()
		r := rand.New(rand.NewPCG(1, 2))
		asks := map[string]func() (string, string){
			"FarSide":   func() (string, string) { return tip, side },
			"Unrelated": func() (string, string) { return other, commits[len(commits)-2].ID.String() },
			"Random":    func() (string, string) { return commits[r.IntN(n)].ID.String(), commits[r.IntN(n)].ID.String() },
		}
		for name, ask := range asks {
			b.Run(name+"/"+itoa(n), func(b *testing.B) {
				for b.Loop() {
					v.Relate(ask())
				}
			})
		}
		b.Run("Git/"+itoa(n), func(b *testing.B) {
			dir, ids := imported(b, commits)
			b.ResetTimer()
			for b.Loop() {
				cmd := exec.Command("git", "-C", dir, "merge-base", "--is-ancestor", ids[2], ids[len(ids)-1])
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Build/"+itoa(n), func(b *testing.B) {
			for b.Loop() {
				(&graph{}).with(commits)
			}
		})
		b.Run("Load/"+itoa(n), func(b *testing.B) {
			dir := b.TempDir()
			if err := save(dir, &snapshot{graph: g}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := load(dir); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func itoa(n int) string {
	if n%1000 == 0 {
		return itoa(n/1000) + "k"
	}
	s := ""
	for ; n > 0; n /= 10 {
		s = string(rune('0'+n%10)) + s
	}
	return s
}

// imported writes a history into a repository by git fast-import and returns its
// folder, and the ids in the order of the commits.
func imported(tb testing.TB, commits []gitrepo.Commit) (dir string, ids []string) {
	tb.Helper()
	dir = tb.TempDir()
	s := newStream()
	number := map[gitrepo.ID]int{}
	for i, c := range commits {
		number[c.ID] = i
		var parents []int
		for _, p := range c.Parents {
			parents = append(parents, number[p])
		}
		s.commit(parents, nil)
	}
	s.branch("main", len(commits)-1)
	return dir, s.into(tb, dir)
}

// A copy of the graph is read as it was written; a damaged one is refused.
func TestKeep(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	commits := randomHistory(r, 200, true)
	dir := t.TempDir()
	want := &snapshot{graph: inParts(r, commits), heads: map[string]gitrepo.ID{"": numbered(3), "dev": numbered(199)}}
	if err := save(dir, want); err != nil {
		t.Fatal(err)
	}
	restored, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.graph, restored.graph, cmp.AllowUnexported(graph{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want.heads, restored.heads); diff != "" {
		t.Error(diff)
	}
	file := filepath.Join(dir, graphFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{"empty": nil, "short": text[:len(text)-1], "changed": append(text[:len(text)-1:len(text)-1], text[len(text)-1]^1)} {
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := load(dir); err == nil {
			t.Errorf("%s: it was read", name)
		}
	}
}

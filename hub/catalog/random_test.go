package catalog

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/schema"
)

var (
	soak = flag.Duration("soak", 0, "how long TestAgainstGit goes on; by default it checks a few repositories")
	seed = flag.Uint64("seed", 0, "the first repository of TestAgainstGit")
)

const fewRepositories = 3

// TestAgainstGit makes random repositories, with merges, forced branches, and
// descriptors that come, go, move and contradict one another, and compares what
// the catalog says of every commit and target with what plain git and a walk
// through it say. The hub starts again in between, with its copies and without.
func TestAgainstGit(t *testing.T) {
	began, repositories, total := time.Now(), uint64(0), tally{}
	for ; repositories < fewRepositories && *soak == 0 || time.Since(began) < *soak; repositories++ {
		s := *seed + repositories
		if !t.Run(fmt.Sprint("seed ", s), func(t *testing.T) { newTrial(t, s).run(&total) }) {
			break
		}
	}
	t.Logf("%d repositories, %+v", repositories, total)
	if total.versions == 0 || total.none == 0 || total.lost == 0 || total.pushed == 0 || total.forced == 0 || total.foreign == 0 {
		t.Error("the histories are too tame")
	}
}

// tally counts what was compared.
type tally struct{ versions, none, lost, pushed, forced, foreign, rows int }

// trial is one random repository.
type trial struct {
	*rand.Rand
	*bench
	t      *testing.T
	dir    string
	stream *gittest.Stream
	// files are what each commit holds, by its number.
	files   []map[string]string
	parents [][]int
	ids     []string
	tip     int
	// says are what the texts of files say.
	says   map[string][]said
	pushes []pushed
	// answers are git's, by what it was asked.
	answers map[string]string
	past    []*oracle
	built   time.Time
}

type pushed struct {
	commit string
	said
}

func newTrial(t *testing.T, seed uint64) *trial {
	t.Helper()
	dir := t.TempDir()
	return &trial{
		Rand: rand.New(rand.NewPCG(seed, 5)), bench: newBench(t, gitops.Repository{URL: dir, Aliases: []string{"https://git.example/org/apps"}}),
		t: t, dir: dir, stream: gittest.NewStream(), says: map[string][]said{}, answers: map[string]string{}, built: time.Unix(1_700_000_000, 0).UTC(),
	}
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

var paths = []string{"a.yaml", "deep/b.yml", "deep/c.json", "moved/a.yaml", "link.yaml", "kustomization.yaml"}

// claim makes up what a descriptor says.
func (r *trial) claim() said {
	name := one(r.Rand, "one", "two", "three")
	s := said{
		target: targetNamed(name), repo: one(r.Rand, r.dir, "https://git.example/org/apps.git"), branch: "main", path: name,
		version: fmt.Sprint("1.", r.IntN(5)), built: r.built.Add(time.Duration(r.IntN(4)) * time.Minute),
	}
	switch r.IntN(12) {
	case 0:
		s.branch = "elsewhere"
	case 1:
		s.repo = "https://git.example/org/other"
	}
	return s
}

// text makes up a file and remembers what it says.
func (r *trial) text() string {
	var all []said
	parts := []string{}
	for range one(r.Rand, 0, 1, 1, 1, 2, 3) {
		s := r.claim()
		text := s.text()
		switch r.IntN(10) {
		case 0: // broken: it says nothing
			text = strings.Replace(text, "workloadVersion:", "workloadversion:", 1)
		case 1:
			text = strings.Replace(text, "kind: DeploymentDescriptor", "kind: ConfigMap", 1)
		default:
			all = append(all, s)
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, "---\n") + fmt.Sprintf("# %d\n", r.IntN(1000))
	r.says[text] = all
	return text
}

// grow adds commits.
func (r *trial) grow(n int) {
	for range n {
		parents, now := []int(nil), map[string]string{}
		if len(r.files) > 0 {
			parents, now = []int{r.tip}, r.files[r.tip]
			if r.IntN(5) == 0 { // a branch off an earlier commit, maybe merged later
				p := r.IntN(len(r.files))
				parents, now = []int{p}, r.files[p]
			}
			if r.IntN(4) == 0 {
				if other := r.IntN(len(r.files)); other != parents[0] {
					parents = append(parents, other)
				}
			}
		}
		changes := map[string]string{}
		for range one(r.Rand, 0, 1, 1, 1, 2) {
			name := one(r.Rand, paths...)
			changes[name] = one(r.Rand, r.text(), r.text(), r.text(), "")
			if name == "link.yaml" {
				changes[name] = one(r.Rand, "-> a.yaml", r.text())
			}
		}
		if len(parents) > 1 && r.IntN(2) == 0 { // a merge brings what the other side has
			for name, text := range r.files[parents[1]] {
				if now[name] != text {
					changes[name] = text
				}
			}
		}
		next := clones(now)
		if next == nil {
			next = map[string]string{}
		}
		for name, text := range changes {
			if text == "" && now[name] == "" {
				delete(changes, name)
				continue
			}
			if next[name] = text; text == "" {
				delete(next, name)
			}
		}
		at := r.stream.Commit(parents, changes)
		r.files, r.parents = append(r.files, next), append(r.parents, parents)
		if len(parents) == 0 || parents[0] == r.tip || r.IntN(6) == 0 {
			r.tip = at
		}
	}
}

// send puts main at a commit and pushes all.
func (r *trial) send(at int) string {
	r.stream.Branch("main", at)
	r.ids = r.stream.Into(r.t, r.dir)
	r.stream.ContinueFrom(r.ids)
	return r.ids[at]
}

func (r *trial) run(total *tally) {
	for round := range 8 {
		r.grow(4 + r.IntN(10))
		at := r.tip
		if round > 1 && r.IntN(3) == 0 {
			at = r.IntN(len(r.files))
			r.tip = at
		}
		head := r.send(at)
		switch {
		case r.catalog == nil || r.IntN(3) == 0:
			if r.catalog != nil {
				r.catalog.followers[0].close()
				r.names = one(r.Rand, r.names, r.names, r.t.TempDir())
			}
			r.start()
		default:
			r.again()
		}
		r.see(head, total)
		r.push(total)
		r.compare(total)
		if r.t.Failed() {
			for _, p := range r.pushes {
				r.t.Logf("pushed for %s: %s %s, built %s; at %d", p.commit, p.target.DeploymentTarget, p.version, p.built, r.past[len(r.past)-1].place[p.commit])
			}
			r.t.Fatalf("in round %d, main at %s", round, head)
		}
	}
}

// see makes an oracle for a head that the catalog saw.
func (r *trial) see(head string, total *tally) {
	o := newOracle(r, head)
	if n := len(r.past); n > 0 {
		if slices.Contains(o.chain, r.past[n-1].head()) {
			r.past = r.past[:n-1]
		} else {
			total.forced++
		}
	}
	r.past = append(r.past, o)
	if len(r.past) > mostChains {
		r.past = r.past[1:]
	}
}

// push sends descriptors by the API, now and then.
func (r *trial) push(total *tally) {
	for range one(r.Rand, 0, 0, 1, 2) {
		s := r.claim()
		s.branch = "main"
		s.repo = r.dir
		s.version = "p" + s.version
		s.built = s.built.Add(time.Duration(len(r.pushes)) * time.Hour) // each is newer, so that the last of one commit counts
		commit := one(r.Rand, r.ids...)
		if _, err := r.catalog.Push(r.Context(), schema.Endpoint{Repo: "git.example/org/apps", Ref: "main"}, commit, []byte(s.text())); err != nil {
			r.t.Fatal(err)
		}
		r.pushes = append(r.pushes, pushed{commit, s})
		total.pushed++
	}
}

// compare holds the catalog against the oracles.
func (r *trial) compare(total *tally) {
	x := r.catalog.Index()
	repo := r.catalog.followers[0].repo
	newest := r.past[len(r.past)-1]
	live := map[string]bool{}
	for _, t := range x.Targets() {
		live[t.DeploymentTarget] = true
	}
	for _, name := range []string{"one", "two", "three"} {
		target := targetNamed(name)
		t, ok := x.At(schema.Endpoint{Repo: repo, Ref: "", Path: name + "/sub"})
		if !ok || t.Target != target {
			if newest.named(target) {
				r.t.Errorf("%s is not known at its endpoint", name)
			}
			continue
		}
		for _, commit := range r.ids {
			o := r.placed(commit)
			got, at, ok := x.VersionAt(t, commit)
			p, known := x.Place(repo, "main", commit)
			if known != (o != nil) {
				r.t.Errorf("commit %s: known %t, want %t", commit, known, o != nil)
				continue
			}
			if o == nil {
				continue
			}
			if o != newest {
				total.lost++
			}
			position := o.place[commit]
			if p.Position != int64(position) {
				r.t.Errorf("commit %s is at %d, want %d", commit, p.Position, position)
			}
			want, since := o.version(target, position)
			if ok != (want != nil) || ok && (got.Version != want.version || !got.BuildTime.Equal(want.built)) {
				r.t.Errorf("commit %s at %d: %s is %+v, %t; want %+v", commit, position, name, got, ok, want)
				continue
			}
			if !ok {
				total.none++
				continue
			}
			total.versions++
			if at.Position != int64(since) || at.Commit != o.chain[since] || at.Chain != p.Chain {
				r.t.Errorf("commit %s at %d: %s is since %+v, want %d, %s, chain %d", commit, position, name, at, since, o.chain[since], p.Chain)
			}
			if o == newest {
				next, pending := x.Pending(t, commit)
				if want := o.pending(target, position); pending != (want >= 0) || pending && next.Position != int64(want) {
					r.t.Errorf("commit %s: pending since %+v, %t; want %d", commit, next, pending, want)
				}
			}
		}
		got, _, ok := x.Scheduled(t)
		want, _ := newest.version(target, len(newest.chain)-1)
		if ok != (want != nil) || ok && got.Version != want.version {
			r.t.Errorf("%s is scheduled at %+v, %t; want %+v", name, got, ok, want)
		}
	}
	r.compareTables(total, repo)
	if n, _ := r.catalog.Problems(repo); n > 0 {
		total.foreign += n
	}
}

// compareTables asks ClickHouse what the commits of the newest chain carry.
func (r *trial) compareTables(total *tally, repo string) {
	newest := r.past[len(r.past)-1]
	got := map[string]string{}
	for _, line := range r.rows(fmt.Sprintf(`
		SELECT t.deployment_target, c.commit, c.position, a.workload_version
		FROM (SELECT * FROM commits FINAL WHERE repo = '%s') AS c
		CROSS JOIN (SELECT DISTINCT environment, workspace, application, workload, deployment_target FROM assignments) AS t
		ASOF LEFT JOIN (SELECT * FROM assignments FINAL WHERE repo = '%s') AS a
		ON a.chain = c.chain AND a.deployment_target = t.deployment_target AND c.position >= a.position`, repo, repo)) {
		f := strings.Split(line, "\t")
		got[f[0]+" "+f[1]] = f[2] + " " + f[3]
	}
	for commit, position := range newest.place {
		for _, name := range []string{"one", "two", "three"} {
			want := fmt.Sprint(position, " ")
			if v, _ := newest.version(targetNamed(name), position); v != nil {
				want += v.version
			}
			if row, ok := got[name+" "+commit]; ok && row != want {
				r.t.Errorf("the tables have %q for %s at %s, want %q", row, name, commit, want)
			}
			total.rows++
		}
	}
}

// placed returns the newest oracle that knows a commit.
func (r *trial) placed(commit string) *oracle {
	for _, o := range slices.Backward(r.past) {
		if _, ok := o.place[commit]; ok {
			return o
		}
	}
	return nil
}

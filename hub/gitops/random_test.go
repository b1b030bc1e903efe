package gitops

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

var (
	soak = flag.Duration("soak", 0, "how long TestAgainstGit goes on; by default it checks a few repositories")
	seed = flag.Uint64("seed", 0, "the first repository of TestAgainstGit")
)

// fewRepositories is what every run of the tests checks.
const fewRepositories = 6

// TestAgainstGit makes random repositories and random histories of reconcilers,
// and compares each verdict with what plain git and a walk through the table of
// the domain say of it.
func TestAgainstGit(t *testing.T) {
	var total tallies
	began := time.Now()
	repositories := uint64(0)
	for ; repositories < fewRepositories && *soak == 0 || time.Since(began) < *soak; repositories++ {
		s := *seed + repositories
		if !t.Run(fmt.Sprint("seed ", s), func(t *testing.T) { newTrial(t, s).run(&total) }) {
			break
		}
	}
	t.Logf("%d repositories, %d verdicts and %d relations compared: %v", repositories, total.verdicts, total.relations, total.outcomes)
	for _, o := range severity {
		if total.outcomes[o] == 0 {
			t.Errorf("no verdict was %s: the histories are too tame", o)
		}
	}
	for _, reason := range []string{"reverted", "rolled back", "not fetched", "never applied", "its commit and this one are not related", "its commit or this one is not in the mirror"} {
		if total.reasons[reason] == 0 {
			t.Errorf("no verdict was %q", reason)
		}
	}
	if total.notAffected == 0 {
		t.Error("no verdict was not_affected")
	}
}

// tallies are what was compared.
type tallies struct {
	verdicts, relations, notAffected int
	outcomes                         map[schema.Outcome]int
	reasons                          map[string]int
}

// trial is one random repository with its mirror.
type trial struct {
	*rand.Rand
	t       *testing.T
	dir     string
	mirrors string
	m       *Mirrors
	oracle  *oracle
	stream  *stream
	files   []layout
	parents [][]int
	// undone are changes that a later commit took back.
	undone []undone
	// ids are the commits, known after each push.
	ids []string
}

// undone says that a commit took back what another one changed in a folder.
type undone struct {
	what, by int
	folder   string
}

func newTrial(t *testing.T, seed uint64) *trial {
	t.Helper()
	r := &trial{Rand: rand.New(rand.NewPCG(seed, 3)), t: t, dir: t.TempDir(), mirrors: t.TempDir(), stream: newStream()}
	r.oracle = newOracle(t, r.dir)
	return r
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// folders are those that reconcilers read; some are in others, some come and go,
// one is a link at times.
var folders = []string{"", "drone", "drone/sub", "large", "idle", "overlay", "overlay/deep", "base", "gone", "link"}

// write makes random changes.
func (r *trial) write(now layout) map[string]string {
	changes := map[string]string{}
	for range one(r.Rand, 0, 1, 1, 1, 2, 3) {
		switch r.IntN(14) {
		case 0:
			changes["overlay/kustomization.yaml"] = one(r.Rand, "resources: [deep]\n", "resources:\n- ../base\n", "")
		case 1:
			changes["overlay/deep/kustomization.yaml"] = one(r.Rand, "resources: [a.yaml]\n", "components: [../../base]\n", "resources: [\"../x.yaml\"]\n")
		case 2:
			changes["link"] = one(r.Rand, "-> drone", "-> large", "")
		case 3:
			changes["drone/sub/ref"] = one(r.Rand, "-> ../a", "", "")
		case 4:
			changes[one(r.Rand, ".sourceignore", "drone/.sourceignore")] = one(r.Rand, "x", "y", "")
		case 5:
			changes["gone/a"] = one(r.Rand, "1", "")
		default:
			folder := one(r.Rand, "drone", "drone", "drone/sub", "large", "overlay", "overlay/deep", "base", "idle", ".")
			changes[filepath.Join(folder, one(r.Rand, "a", "b"))] = one(r.Rand, "1", "2", "3", "")
		}
	}
	for name, text := range changes {
		if text == "" && now[name] == "" {
			delete(changes, name)
		}
	}
	return changes
}

// grow adds commits on top of some that are there: changes, merges, reverts,
// commits without a change, roots.
func (r *trial) grow(n int) {
	for range n {
		count := len(r.files)
		if count == 0 || r.IntN(40) == 0 {
			first := map[string]string{"drone/a": "1", "large/a": "1", "idle/a": "1", "base/a": "1", "overlay/a": "1"}
			r.add(nil, layout{}, first)
			continue
		}
		parent := r.tip()
		now := r.files[parent]
		changes := r.write(now)
		parents := []int{parent}
		switch r.IntN(10) {
		case 0, 1: // a revert of what some commit before changed in a folder
			what := parent
			for range r.IntN(4) {
				if up := r.parents[what]; len(up) > 0 {
					what = up[0]
				}
			}
			if up := r.parents[what]; len(up) > 0 {
				u := undone{what: what, by: count, folder: one(r.Rand, folders[1:6]...)}
				changes = now.changesTo(r.files[up[0]], u.folder)
				r.undone = append(r.undone, u)
			}
		case 2, 3: // a merge, with or without changes of its own
			if other := r.tip(); other != parent {
				parents = append(parents, other)
				if r.IntN(2) == 0 {
					changes = now.changesTo(r.files[other], one(r.Rand, folders[:6]...))
				}
			}
		}
		r.add(parents, now, changes)
	}
}

// tip is mostly one of the newest commits.
func (r *trial) tip() int {
	if r.IntN(3) > 0 {
		return len(r.files) - 1
	}
	return max(0, len(r.files)-1-r.IntN(8))
}

func (r *trial) add(parents []int, now layout, changes map[string]string) {
	r.stream.commit(parents, changes)
	r.files = append(r.files, now.with(changes))
	r.parents = append(r.parents, parents)
}

// push moves branches, forward or by force, and writes the repository.
func (r *trial) push() {
	n := len(r.files)
	r.stream.branch("main", max(0, n-1-r.IntN(4)))
	for _, name := range []string{"dev", "side/a", "side"} {
		if r.IntN(3) == 0 {
			_, _ = tryGit(r.dir, nil, "update-ref", "-d", "refs/heads/side") // a branch and a folder of branches cannot both be
			_, _ = tryGit(r.dir, nil, "update-ref", "-d", "refs/heads/side/a")
			r.stream.branch(name, r.IntN(n))
			break
		}
	}
	r.ids = r.stream.into(r.t, r.dir)
	r.stream.continueFrom(r.ids)
}

func (r *trial) fetch() {
	r.t.Helper()
	if r.m == nil || r.IntN(3) == 0 { // a start, or a restart
		r.m = newMirrors(r.t, r.mirrors, Repository{URL: r.dir})
	}
	if wrong := fetchAll(r.t, r.m); len(wrong) > 0 {
		r.t.Fatal(wrong)
	}
	r.oracle.fetch()
}

func (r *trial) graph() compliance.Graph { return r.m.Graph(r.m.all[0].mirror.repo) }

func (r *trial) run(total *tallies) {
	r.t.Helper()
	if total.outcomes == nil {
		total.outcomes, total.reasons = map[schema.Outcome]int{}, map[string]int{}
	}
	for range 1 + r.IntN(4) {
		r.grow(5 + r.IntN(15))
		r.push()
		if r.IntN(4) > 0 || r.m == nil {
			r.fetch()
		}
		r.relations(total)
		for range 60 {
			r.verdict(total)
		}
	}
}

// commit is one of the repository, fetched or not, or of nobody's.
func (r *trial) commit() string {
	if r.IntN(25) == 0 {
		return strings.Repeat(one(r.Rand, "1", "2"), 40)
	}
	return r.ids[max(0, len(r.ids)-1-r.IntN(len(r.ids)))]
}

// relations compares how commits stand to each other, and what is in folders.
func (r *trial) relations(total *tallies) {
	r.t.Helper()
	g := r.graph()
	for range 100 {
		a, b := r.commit(), r.commit()
		want := compliance.Unknown
		switch {
		case a == b:
			want = compliance.Same
		case !r.oracle.fetched[a] || !r.oracle.fetched[b]:
		case r.oracle.reaches(a, b):
			want = compliance.Descendant
		case r.oracle.reaches(b, a):
			want = compliance.Ancestor
		default:
			want = compliance.Unrelated
		}
		if got := g.Relate(a, b); got != want {
			r.t.Fatalf("%s to %s is %d, want %d", a, b, got, want)
		}
		total.relations++
		if !r.oracle.fetched[a] || !r.oracle.fetched[b] {
			continue
		}
		folder := one(r.Rand, append(folders, "drone/a", ".sourceignore", "drone/a/b", "link/x")...)
		if same, ok := g.SameTrees(a, b, []string{folder}); same != r.oracle.sameAll(a, b, folder) || !ok {
			r.t.Fatalf("%q at %s and %s: %t, %t; want %t", folder, a, b, same, ok, !same)
		}
	}
}

// history is what a reconciler said: it goes forward mostly, back at times, and
// to commits that nobody fetched.
func (r *trial) history() subject {
	s := subject{folders: []string{one(r.Rand, folders...)}}
	if r.IntN(6) == 0 {
		if other := one(r.Rand, folders...); other != s.folders[0] {
			s.folders = append(s.folders, other)
		}
	}
	place, minute := r.IntN(len(r.ids)), 0
	n := 1 + r.IntN(7)
	for i := range n {
		minute += 1 + r.IntN(4)
		st := step{status: one(r.Rand, append(schema.Statuses(), schema.StatusSuccess, schema.StatusSuccess, schema.StatusSuccess)...), minute: minute}
		if i > 0 || r.IntN(3) > 0 {
			st.applied = r.ids[place]
			if r.IntN(20) == 0 {
				st.applied = r.commit()
			}
		}
		st.attempted = one(r.Rand, st.applied, st.applied, r.commit())
		if st.status == schema.StatusFailure && (i < n-1 || r.IntN(3) > 0) && st.attempted == "" {
			st.attempted = r.commit() // only the last one may have failed nowhere
		}
		if st.status == schema.StatusFailure && i == n-1 && r.IntN(3) == 0 {
			st.attempted = ""
		}
		place = min(max(place+r.IntN(6)-1, 0), len(r.ids)-1)
		s.steps = append(s.steps, st)
	}
	return s
}

// reports folds what a reconciler said into a landing, as the hub does.
func (s subject) landing(t *testing.T, repo, asked string) record.Landing {
	t.Helper()
	state := fold.NewState()
	var found []*record.Subscription
	for i, st := range s.steps {
		r := schema.Reconciler{Kind: "Kustomization", Namespace: "flux-system", Name: "drone", Status: st.status}
		for _, f := range s.folders {
			r.Sources = append(r.Sources, schema.Source{Type: schema.SourceGit, URL: repo, Ref: "main", Path: "./" + f})
		}
		for range s.folders {
			if st.applied != "" {
				r.Applied = append(r.Applied, "main@sha1:"+st.applied)
			}
			if st.attempted != "" {
				r.Attempted = append(r.Attempted, "main@sha1:"+st.attempted)
			}
		}
		report := &schema.Report{
			Agent: schema.Agent{Version: "1"}, Epoch: 1, Sequence: uint64(i + 1), Mode: schema.ModeDelta, ObservedAt: at(st.minute), Reconcilers: []schema.Reconciler{r},
		}
		c := state.Apply("drone-01", report, at(st.minute))
		if len(c.Upserts) == 0 {
			continue
		}
		found = nil
		for nth := range c.Upserts[0].Entry.Endpoints {
			found = append(found, record.SubscriptionOf("drone-01", &c.Upserts[0], nth))
		}
	}
	return record.NewLanding(asked, found)
}

// verdict asks about a random commit and a random reconciler.
func (r *trial) verdict(total *tallies) {
	r.t.Helper()
	s := r.history()
	commit := r.ids[r.IntN(len(r.ids))]
	last := s.steps[len(s.steps)-1]
	if r.IntN(3) == 0 && last.applied != "" {
		commit = last.applied
	}
	if len(r.undone) > 0 && r.IntN(4) == 0 {
		u := one(r.Rand, r.undone...)
		commit, s.folders = r.ids[u.what], []string{u.folder}
		s.steps[len(s.steps)-1].applied = r.ids[min(u.by+r.IntN(3), len(r.ids)-1)]
		last = s.steps[len(s.steps)-1]
	}
	asked := one(r.Rand, "", s.folders[0], strings.Split(s.folders[0], "/")[0])
	minute := last.minute + one(r.Rand, 0, 4, 5, 30)
	repo := r.m.all[0].mirror.repo
	landing := s.landing(r.t, r.dir, asked)
	for _, c := range landing.Clusters {
		c.HeartbeatInterval, c.LastSeen = time.Minute, at(minute)
	}
	in := compliance.Input{
		Endpoint: schema.Endpoint{Repo: repo, Ref: "main", Path: asked}, Commit: commit, Policy: schema.DefaultPolicy(),
		Subscribers: landing.Subscribers, Graph: r.graph(), Rules: compliance.DefaultRules(), Now: at(minute),
	}
	v := compliance.Evaluate(in).Verdict
	outcome, why := schema.OutcomeCompliant, ""
	if len(v.Unfinished) > 0 {
		outcome, why = v.Unfinished[0].Verdict, v.Unfinished[0].Reason
	}
	wantOutcome, wantWhy := r.oracle.judge(s, commit, asked, minute)
	several := len(s.folders) > 1 // of two that are equally bad, either may be named
	if v.Counts.Total != 1 || outcome != wantOutcome || why != wantWhy && !several {
		r.t.Fatalf("commit %s, path %q, minute %d: %s %q, want %s %q (%d subscribers)\n%s", commit, asked, minute, outcome, why, wantOutcome, wantWhy, v.Counts.Total, s.describe())
	}
	total.verdicts++
	total.outcomes[outcome]++
	total.reasons[why]++
	if outcome == schema.OutcomeCompliant && last.applied != commit && r.oracle.fetched[commit] && r.oracle.fetched[last.applied] && r.oracle.reaches(commit, last.applied) &&
		!slices.ContainsFunc(s.steps, func(st step) bool { return st.applied == commit }) {
		total.notAffected++
	}
}

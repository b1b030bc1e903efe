package overview

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/hub/store"
	"github.com/landfall-hub/landfall/internal/gitlink"
	"github.com/landfall-hub/landfall/schema"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

var start = time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)

func minutes(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

func id(parts ...any) string {
	sum := sha1.Sum(fmt.Append(nil, parts...)) // an id, no secret
	return hex.EncodeToString(sum[:])
}

// branch is a ref whose commits follow one another, and the folders that they
// change.
type branch struct {
	repo, ref string
	aliases   []string
	commits   []string
	times     []time.Time
	changed   map[string][]int // folder to positions, from 0 on
}

func (b *branch) position(commit string) int { return slices.Index(b.commits, commit) }

// tree is the id of a folder at a position, "" where nothing is known of it.
func (b *branch) tree(folder string, at int) string {
	last := -1
	for _, n := range b.changed[folder] {
		if n <= at {
			last = n
		}
	}
	if last < 0 {
		return ""
	}
	return id(b.repo, b.ref, folder, last)[:12]
}

// lineage shows a branch as hub/names reads it.
type lineage struct{ *branch }

func (l lineage) Place(commit string) (names.Point, bool) {
	return l.On(1, int64(l.position(commit)))
}

func (l lineage) On(_ uint32, at int64) (names.Point, bool) {
	if at < 0 || at >= int64(len(l.commits)) {
		return names.Point{}, false
	}
	return names.Point{Chain: 1, Position: at, Commit: l.commits[at], CommittedAt: l.times[at]}, true
}

func (l lineage) Head() (names.Point, bool) { return l.On(1, int64(len(l.commits)-1)) }

func (l lineage) Configuration(commit, folder string) string {
	return l.tree(folder, l.position(commit))
}

// trees shows the branches of a repository as a verdict reads them.
type trees []*branch

func (t trees) find(commit string) (*branch, int) {
	for _, b := range t {
		if n := b.position(commit); n >= 0 {
			return b, n
		}
	}
	return nil, -1
}

func (t trees) SameTrees(a, b string, folders []string) (same, ok bool) {
	x, i := t.find(a)
	y, j := t.find(b)
	if x == nil || x != y {
		return false, false
	}
	for _, f := range folders {
		if strings.HasSuffix(f, ".sourceignore") {
			continue
		}
		if x.tree(f, i) == "" || x.tree(f, i) != y.tree(f, j) {
			return false, x.tree(f, i) != ""
		}
	}
	return true, true
}

func (t trees) FirstParent(commit string) (string, bool) {
	b, n := t.find(commit)
	if n < 1 {
		return "", false
	}
	return b.commits[n-1], true
}

func (trees) Relate(string, string) compliance.Relation { return compliance.Unknown }
func (trees) SelfContained(string, string) bool         { return true }
func (trees) Head(string) (string, bool)                { return "", false }

// goal is a deployment target with the versions that its branch brought.
type goal struct {
	schema.Target
	branch *branch
	path   string
	// versions are by position; none where no descriptor names any.
	versions map[int]string
}

// world is a generated fleet with all that happened in it.
type world struct {
	t        *testing.T
	g        *rand.Rand
	branches []*branch
	goals    []*goal
	// serves says which environment a ref of a repository serves.
	serves map[[2]string]string

	url    string
	store  *store.Store
	fleet  *fleet.Fleet
	view   *View
	now    time.Time
	mu     sync.Mutex
	states map[string]*fold.State
	// clusters are the registered ones, gone those that were decommissioned.
	clusters map[string]schema.Registration
	silent   map[string]bool
	gone     map[string]bool
	events   []event
}

// event is a reported change.
type event struct {
	cluster, destination string
	ref                  schema.ObjectRef
	epoch, sequence      uint64
	observed, received   time.Time
	change               schema.Change
	status               schema.Status
	sources              []source
	drifted              bool
}

type source struct {
	at                 schema.Endpoint
	applied, attempted string
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) branch(repo, ref string, folders []string, aliases ...string) *branch {
	b := &branch{repo: repo, ref: ref, aliases: aliases, changed: map[string][]int{}}
	for n := range 12 {
		b.commits = append(b.commits, id(repo, ref, n))
		b.times = append(b.times, minutes(-600+n*100))
		for _, f := range folders {
			if n == 0 || w.g.IntN(3) == 0 {
				b.changed[f] = append(b.changed[f], n)
			}
		}
	}
	w.branches = append(w.branches, b)
	return b
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, g: rand.New(rand.NewPCG(seed, 7)), now: start, serves: map[[2]string]string{}, states: map[string]*fold.State{},
		clusters: map[string]schema.Registration{}, silent: map[string]bool{}, gone: map[string]bool{},
	}
	environments := []string{"dev", "stage", "prod"}
	for i, workload := range []string{"hello", "world", "plain"} {
		repo := "git.example/org/" + workload
		for _, env := range environments {
			b := w.branch(repo, env, []string{"functional", "performance"}, "mirror.example/"+workload)
			for _, name := range []string{"functional", "performance"} {
				if i > 0 && name == "performance" && env == "prod" {
					continue // not everywhere
				}
				goal := &goal{Target: schema.Target{Environment: env, Workspace: "team", Application: "app" + fmt.Sprint(i%2), Workload: workload, DeploymentTarget: name}, branch: b, path: name, versions: map[int]string{}}
				if workload != "plain" {
					for n := 1; n < len(b.commits); n++ {
						if w.g.IntN(3) == 0 {
							goal.versions[n] = fmt.Sprintf("1.%d", w.g.IntN(4)) // versions come back
						}
					}
				}
				w.goals = append(w.goals, goal)
				w.serves[[2]string{repo, env}] = env
			}
		}
	}
	for _, env := range environments {
		var folders []string
		for _, kind := range []string{"drone", "large"} {
			folders = append(folders, kind, kind+"/hello-functional", kind+"/performance", kind+"/world")
		}
		w.branch("git.example/org/platform", env, folders)
		w.serves[[2]string{"git.example/org/platform", env}] = env
	}
	w.serves[[2]string{"git.example/org/shared", "main"}] = "stage"

	w.url = enginetest.Shared(t)
	s, err := store.Open(store.Options{URL: w.url, Log: slog.New(slog.DiscardHandler)})
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
	w.store = s
	if w.fleet, err = fleet.New(fleet.Options{Store: s, SilentAfter: 5, Now: w.clock, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	w.view, err = New(Options{
		Current: s, Past: s, Fleet: w.fleet, Names: known{names.New(w.facts())}, Links: gitlink.Links{}, Now: w.clock,
		Graph: func(repo string) compliance.Graph {
			var found trees
			for _, b := range w.branches {
				if b.repo == repo || slices.Contains(b.aliases, repo) {
					found = append(found, b)
				}
			}
			return found
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

type known struct{ index *names.Index }

func (k known) Index() *names.Index { return k.index }

func (w *world) facts() names.Facts {
	var f names.Facts
	repos := map[string]int{}
	for _, b := range w.branches {
		n, ok := repos[b.repo]
		if !ok {
			n = len(f.Repos)
			repos[b.repo] = n
			f.Repos = append(f.Repos, names.Repo{Names: append([]string{b.repo}, b.aliases...), Written: "https://github." + b.repo, Default: "main"})
		}
		r := names.Ref{Name: b.ref, Lineage: lineage{b}, Chains: []names.Chain{{Number: 1, Fork: -1}}, Assignments: map[schema.Target][]names.Assignment{}, Configured: b.repo == "git.example/org/platform"}
		for _, goal := range w.goals {
			if goal.branch != b {
				continue
			}
			for at := range b.commits {
				if v, ok := goal.versions[at]; ok {
					r.Assignments[goal.Target] = append(r.Assignments[goal.Target], names.Assignment{Chain: 1, Position: int64(at), Version: &names.Version{Version: v}})
				}
			}
		}
		f.Repos[n].Refs = append(f.Repos[n].Refs, r)
	}
	for _, goal := range w.goals {
		f.Targets = append(f.Targets, names.Target{Target: goal.Target, Endpoint: schema.Endpoint{Repo: goal.branch.repo, Ref: goal.branch.ref, Path: goal.path}, URL: "https://" + goal.branch.repo})
	}
	for at, env := range w.serves {
		f.Environments = append(f.Environments, names.Environment{Repo: at[0], Ref: at[1], Name: env})
	}
	return f
}

func (w *world) register(name string, r schema.Registration) {
	w.t.Helper()
	if r.HeartbeatInterval == 0 {
		r.HeartbeatInterval = schema.Duration(10_000 * time.Hour)
	}
	r.Kind = schema.ClusterKubernetes
	if _, err := w.fleet.Register(w.t.Context(), name, r); err != nil {
		w.t.Fatal(err)
	}
	w.clusters[name], w.silent[name] = r, r.HeartbeatInterval == schema.Duration(time.Second)
}

// people registers a dozen clusters.
func (w *world) people() {
	in := func(places ...string) (r schema.Registration) {
		for i := 0; i < len(places); i += 2 {
			r.Memberships = append(r.Memberships, schema.Membership{Environment: places[i], Type: places[i+1]})
		}
		return r
	}
	for i := range 3 {
		w.register(fmt.Sprint("dev-", i), in("dev", "drone"))
		w.register(fmt.Sprint("stage-", i), in("stage", []string{"drone", "large"}[i%2]))
	}
	w.register("prod-0", in("prod", "large"))
	w.register("prod-1", in("prod", "drone"))
	w.register("both", in("dev", "drone", "stage", "large"))
	quiet := in("dev", "large")
	quiet.HeartbeatInterval = schema.Duration(time.Second)
	w.register("quiet", quiet)
	argo := in("prod", "large")
	argo.ReportsFor = []string{"spoke", "dev-0"}
	w.register("argo", argo)
	w.register("leaving", in("dev", "drone"))
}

// reconcilers are those that a cluster may have.
func (w *world) reconcilers(cluster string) []schema.Reconciler {
	var all []schema.Reconciler
	add := func(name, destination string, at ...schema.Endpoint) {
		r := schema.Reconciler{Kind: "Kustomization", Namespace: "flux-system", Name: name, Cluster: destination}
		for _, e := range at {
			r.Sources = append(r.Sources, schema.Source{Type: schema.SourceGit, URL: "https://" + e.Repo + ".git", Ref: e.Ref, Path: "./" + e.Path})
		}
		all = append(all, r)
	}
	at := func(repo, ref, path string) schema.Endpoint { return schema.Endpoint{Repo: repo, Ref: ref, Path: path} }
	for _, m := range w.clusters[cluster].Memberships {
		add("platform-"+m.Environment, "", at("git.example/org/platform", m.Environment, m.Type))
		for _, goal := range w.goals {
			if goal.Environment != m.Environment {
				continue
			}
			name := goal.Workload + "-" + goal.DeploymentTarget + "-" + m.Environment
			e := at(goal.branch.repo, goal.branch.ref, goal.path)
			switch cluster {
			case "dev-1":
				e.Repo = goal.branch.aliases[0]
			case "dev-2":
				add(name+"-more", "", at(e.Repo, e.Ref, e.Path+"/more")) // two of one target
			case "stage-1":
				add(name+"-values", "", e, at("git.example/org/values", "main", ""))
				continue
			case "argo":
				add(name+"-spoke", "spoke", e)
			}
			add(name, "", e)
		}
	}
	add("stray", "", at("git.example/org/stray", "main", "x"))
	add("shared", "", at("git.example/org/shared", "main", "y"))
	if cluster == "argo" {
		add("platform-dev-0", "dev-0", at("git.example/org/platform", "dev", "large")) // beside the cluster's own
	}
	return all
}

// step lets a cluster say something.
func (w *world) step(n int) {
	w.t.Helper()
	clusters := []string{"dev-0", "dev-1", "dev-2", "stage-0", "stage-1", "stage-2", "prod-0", "prod-1", "both", "quiet", "argo", "leaving"}
	cluster := clusters[w.g.IntN(len(clusters))]
	all := w.reconcilers(cluster)
	received := minutes(n * 7)
	r := &schema.Report{Mode: schema.ModeDelta, ObservedAt: received.Add(time.Duration(w.g.IntN(300)-200) * time.Second)}
	st, ok := w.states[cluster]
	if !ok {
		st = fold.NewState()
		w.states[cluster] = st
	}
	r.Epoch, r.Sequence = max(1, st.Position.Epoch), st.Position.Sequence+1
	if w.g.IntN(25) == 0 && ok {
		r.Epoch, r.Sequence = r.Epoch+1, 1
	}
	for range 1 + w.g.IntN(8) {
		said := all[w.g.IntN(len(all))]
		if w.g.IntN(2) == 0 { // some say more than others
			said = all[1+w.g.IntN(3)]
		}
		if slices.ContainsFunc(r.Reconcilers, func(o schema.Reconciler) bool { return o.Ref() == said.Ref() }) {
			continue
		}
		if _, there := st.Entries[said.Ref()]; there && w.g.IntN(12) == 0 {
			r.Removed = append(r.Removed, said.Ref())
			continue
		}
		w.fill(&said, n)
		r.Reconcilers = append(r.Reconcilers, said)
	}
	r.Removed = slices.DeleteFunc(r.Removed, func(ref schema.ObjectRef) bool {
		return slices.ContainsFunc(r.Reconcilers, func(o schema.Reconciler) bool { return o.Ref() == ref })
	})
	var c fold.Changes
	if st.Position.Epoch > 1 && w.g.IntN(10) == 0 {
		r.Epoch, r.Sequence, r.Removed = 1, 1_000+uint64(n), nil
		c = fold.Late(cluster, r, received)
	} else {
		c = st.Apply(cluster, r, received)
	}
	before := len(w.events)
	w.write(c)
	if w.g.IntN(10) == 0 { // the same again, as after a crash
		w.events = w.events[:before]
		c.ReceivedAt = received.Add(time.Second)
		w.write(c)
	}
}

// fill says something of a reconciler's state.
func (w *world) fill(r *schema.Reconciler, n int) {
	statuses := []schema.Status{"success", "success", "success", "success", "failure", "failure", "in_progress", "pending", "suspended", "unknown"}
	r.Status = statuses[w.g.IntN(len(statuses))]
	r.Message = fmt.Sprint("step ", n) // each is a change
	r.Drifted = w.g.IntN(10) == 0
	for _, s := range r.Sources {
		e, err := s.Endpoint()
		if err != nil {
			w.t.Fatal(err)
		}
		applied, attempted := w.commit(e, n), w.commit(e, n)
		if r.Status == schema.StatusSuccess {
			attempted = applied
		}
		if applied != "" {
			applied = "x@sha1:" + applied
		}
		if attempted != "" {
			attempted = "x@sha1:" + attempted
		}
		r.Applied, r.Attempted = append(r.Applied, applied), append(r.Attempted, attempted)
	}
}

// commit is one that may run at that time; most are new, some go back.
func (w *world) commit(e schema.Endpoint, n int) string {
	switch w.g.IntN(25) {
	case 0:
		return ""
	case 1:
		return id("from nowhere", w.g.IntN(3))
	}
	for _, b := range w.branches {
		if (b.repo == e.Repo || slices.Contains(b.aliases, e.Repo)) && b.ref == e.Ref {
			newest := min(len(b.commits)-1, 2+n/15)
			if w.g.IntN(2) == 0 {
				return b.commits[newest]
			}
			return b.commits[w.g.IntN(newest+1)]
		}
	}
	return id(e.Repo, w.g.IntN(3))
}

// write stores a message and notes what it changed.
func (w *world) write(c fold.Changes) {
	w.t.Helper()
	if err := w.store.Write(w.t.Context(), []fold.Changes{c}); err != nil {
		w.t.Fatal(err)
	}
	base := event{cluster: c.Cluster, destination: c.Cluster, received: c.ReceivedAt, observed: c.ReceivedAt, epoch: c.Position.Epoch, sequence: c.Position.Sequence}
	if c.Report != nil {
		base.epoch, base.sequence, base.observed = c.Report.Epoch, c.Report.Sequence, c.Report.ObservedAt
	}
	for i := range c.Upserts {
		r := c.Upserts[i].Reconciler
		if !c.Upserts[i].Changed {
			continue
		}
		e := base
		e.change, e.ref, e.status, e.drifted = schema.ChangeReported, r.Ref(), r.Status, r.Drifted
		if c.Late {
			e.change = schema.ChangeLate
		}
		if r.Cluster != "" {
			e.destination = r.Cluster
		}
		for n, s := range r.Sources {
			at, _ := s.Endpoint()
			e.sources = append(e.sources, source{at, r.AppliedCommit(n), r.AttemptedCommit(n)})
		}
		w.events = append(w.events, e)
	}
	for _, gone := range c.Removals {
		e := base
		e.change, e.ref = schema.ChangeRemoved, gone.Ref
		e.sources = []source{{at: gone.Endpoints[0].Value()}}
		w.events = append(w.events, e)
	}
}

// live generates all of it.
func (w *world) live(steps int) {
	w.people()
	for n := range steps {
		w.step(n)
	}
	// Both of one target on one cluster run the same: it counts once.
	together := &schema.Report{Mode: schema.ModeDelta, ObservedAt: minutes(steps * 7)}
	for _, r := range w.reconcilers("dev-2") {
		if strings.HasPrefix(r.Name, "hello-functional") {
			w.fill(&r, steps)
			newest := "x@sha1:" + w.goals[0].branch.commits[11]
			r.Status, r.Applied, r.Attempted = schema.StatusSuccess, []string{newest}, []string{newest}
			together.Reconcilers = append(together.Reconcilers, r)
		}
	}
	st := w.states["dev-2"]
	together.Epoch, together.Sequence = st.Position.Epoch, st.Position.Sequence+1
	w.write(st.Apply("dev-2", together, minutes(steps*7)))
	w.mu.Lock()
	w.now = minutes(steps*7 + 60)
	w.mu.Unlock()
	if st := w.states["leaving"]; st != nil {
		c, _ := st.Clear("leaving", st.Position.Epoch, w.clock())
		w.write(c)
	}
	if _, err := w.fleet.Decommission(w.t.Context(), "leaving"); err != nil {
		w.t.Fatal(err)
	}
	w.gone["leaving"] = true
}

// publish writes the names into the store, as hub/catalog does, for the view.
func (w *world) publish() {
	w.t.Helper()
	var n record.Names
	var repos []record.Repository
	seen := map[string]bool{}
	for _, b := range w.branches {
		key := record.RefKey{Repo: b.repo, Ref: b.ref}
		if !seen[b.repo] {
			seen[b.repo] = true
			for _, name := range append([]string{b.repo}, b.aliases...) {
				repos = append(repos, record.Repository{Alias: name, Repo: b.repo, URL: "https://" + b.repo, Default: "main"})
			}
		}
		n.Chains = append(n.Chains, record.Chain{RefKey: key, Number: 1, Fork: -1, Head: b.commits[len(b.commits)-1], Position: int64(len(b.commits) - 1)})
		for at, c := range b.commits {
			n.Commits = append(n.Commits, record.Commit{RefKey: key, ID: c, Chain: 1, Position: int64(at), Author: "a", At: b.times[at], Subject: "s"})
		}
	}
	for _, goal := range w.goals {
		key := record.RefKey{Repo: goal.branch.repo, Ref: goal.branch.ref}
		n.Targets = append(n.Targets, record.NamedTarget{Source: "descriptor", Target: names.Target{
			Target: goal.Target, Endpoint: schema.Endpoint{Repo: goal.branch.repo, Ref: goal.branch.ref, Path: goal.path}, URL: "https://" + goal.branch.repo,
		}})
		for at, v := range goal.versions {
			n.Assignments = append(n.Assignments, record.Assignment{RefKey: key, Target: goal.Target, Chain: 1, Position: int64(at), Commit: goal.branch.commits[at], Version: &names.Version{Version: v}, File: "f"})
		}
	}
	if err := w.store.PutRepositories(w.t.Context(), repos); err != nil {
		w.t.Fatal(err)
	}
	if err := w.store.WriteNames(w.t.Context(), n); err != nil {
		w.t.Fatal(err)
	}
}

package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/landing"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// asked is the endpoint that these tests ask about.
var asked = schema.Endpoint{Repo: "git.example/org/apps", Ref: "dev", Path: "drone"}

// landings asks the store each time.
func landings(t *testing.T, s *Store) *landing.Landings {
	t.Helper()
	k, err := landing.New(landing.Options{Store: s, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func land(t *testing.T, s *Store, e schema.Endpoint, commit string) record.Landing {
	t.Helper()
	l, err := landings(t, s).Landing(t.Context(), e, commit)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// shape is a subscriber in a line: who, asked or not, its paths.
func shape(l record.Landing) []string {
	var all []string
	for _, s := range l.Subscribers {
		text := s.Reporter.Name + " " + s.Ref.Name
		if !s.Asked {
			text += " (not asked)"
		}
		for _, src := range s.Sources {
			text += " " + src.Path
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func owned(r schema.Reconciler, owner string) schema.Reconciler {
	r.Owner = &schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: owner}
	return r
}

func TestLandingFindsByPath(t *testing.T) {
	s := open(t)
	ok := func(name, path string) schema.Reconciler {
		return reconciler(name, path, commitA, schema.StatusSuccess)
	}
	other := ok("other-ref", "drone")
	other.Sources[0].Ref = "prod"
	write(t, s, map[string][]schema.Reconciler{
		"c1": {ok("at", "drone"), ok("below", "drone/x/y"), ok("beside", "drone2"), ok("above", ""), ok("like", "dron_"), other},
		"c2": {ok("at", "./drone/")},
	})
	cases := map[string]struct {
		path string
		want []string
	}{
		"Path":    {"drone", []string{"c1 at drone", "c1 below drone/x/y", "c2 at drone"}},
		"Below":   {"drone/x", []string{"c1 below drone/x/y"}},
		"Root":    {"", []string{"c1 above ", "c1 at drone", "c1 below drone/x/y", "c1 beside drone2", "c1 like dron_", "c2 at drone"}},
		"Nothing": {"nowhere", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := asked
			e.Path = tc.path
			if d := cmp.Diff(tc.want, shape(land(t, s, e, commitA))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLandingMergesPathsOfOne(t *testing.T) {
	s := open(t)
	two := reconciler("two", "drone/a", commitA, schema.StatusSuccess)
	two.Sources = append(two.Sources, two.Sources[0], two.Sources[0], two.Sources[0])
	two.Sources[1].Path, two.Sources[2].Path, two.Sources[3].Path = "drone/b", "before", "drone/a/"
	two.Applied = []string{"dev@sha1:" + commitA, "dev@sha1:" + commitB, "dev@sha1:" + commitB, "dev@sha1:" + commitB}
	two.Attempted = two.Applied
	two = owned(two, "root")
	write(t, s, map[string][]schema.Reconciler{"c1": {two}})
	l := land(t, s, asked, commitA)
	if len(l.Subscribers) != 1 {
		t.Fatalf("one reconciler is %d subscribers: %v", len(l.Subscribers), shape(l))
	}
	run := func(c string) []compliance.Run {
		return []compliance.Run{{Commit: c, SuccessAt: start, SteadyAt: start}}
	}
	want := []compliance.Source{
		{Path: "drone/a", Applied: commitA, Attempted: commitA, Runs: run(commitA)},
		{Path: "drone/b", Applied: commitB, Attempted: commitB, Runs: run(commitB)},
	}
	if d := cmp.Diff(want, l.Subscribers[0].Sources); d != "" || !l.Subscribers[0].Asked {
		t.Errorf("its sources (-want +got):\n%s", d)
	}
	if got := l.Subscribers[0].Revision; got != "dev@sha1:"+commitA {
		t.Errorf("its revision is shown as %s, which is that of a path that is not asked for", got)
	}
}

// The whole way between a subscriber and a child that is not well is there,
// whatever stands on it.
func TestLandingHoldsChainsOfOwners(t *testing.T) {
	ok := func(name, path string) schema.Reconciler {
		return reconciler(name, path, commitA, schema.StatusSuccess)
	}
	elsewhere := func(r schema.Reconciler) schema.Reconciler {
		r.Sources[0].URL = "https://git.example/org/other"
		return r
	}
	failing := reconciler("leaf", "leaf", commitA, schema.StatusFailure)
	behind := reconciler("leaf", "leaf", commitB, schema.StatusSuccess)
	cases := map[string]struct {
		reason string
		is     []schema.Reconciler
		want   []string
	}{
		"Well":        {"A child that is well is left out.", []schema.Reconciler{ok("root", "drone"), owned(ok("leaf", "leaf"), "root")}, []string{"c1 root drone"}},
		"Failing":     {"One that fails is there.", []schema.Reconciler{ok("root", "drone"), owned(failing, "root")}, []string{"c1 leaf (not asked) leaf", "c1 root drone"}},
		"Behind":      {"One at another commit is there.", []schema.Reconciler{ok("root", "drone"), owned(behind, "root")}, []string{"c1 leaf (not asked) leaf", "c1 root drone"}},
		"WellBetween": {"What is well between them is there as a link.", []schema.Reconciler{ok("root", "drone"), owned(ok("mid", "mid"), "root"), owned(failing, "mid")}, []string{"c1 leaf (not asked) leaf", "c1 mid (not asked)", "c1 root drone"}},
		"TwoBetween": {"However many there are.", []schema.Reconciler{ok("root", "drone"), owned(ok("mid", "mid"), "root"), owned(ok("low", "low"), "mid"), owned(failing, "low")},
			[]string{"c1 leaf (not asked) leaf", "c1 low (not asked)", "c1 mid (not asked)", "c1 root drone"}},
		"OtherRepo":   {"A link may read another repository.", []schema.Reconciler{ok("root", "drone"), owned(elsewhere(ok("mid", "mid")), "root"), owned(failing, "mid")}, []string{"c1 leaf (not asked) leaf", "c1 mid (not asked)", "c1 root drone"}},
		"AbsentOwner": {"A chain may end at one that nobody knows.", []schema.Reconciler{ok("root", "drone"), owned(failing, "nobody")}, []string{"c1 leaf (not asked) leaf", "c1 root drone"}},
		"Circle":      {"A circle is walked once.", []schema.Reconciler{owned(ok("a", "a"), "b"), owned(ok("b", "b"), "a"), owned(failing, "a")}, []string{"c1 a (not asked)", "c1 b (not asked)", "c1 leaf (not asked) leaf"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			write(t, s, map[string][]schema.Reconciler{"c1": tc.is})
			l := land(t, s, asked, commitA)
			if d := cmp.Diff(tc.want, shape(l)); d != "" {
				t.Errorf("%s\n%s", tc.reason, d)
			}
			for _, sub := range l.Subscribers {
				if sub.Reporter == nil || sub.DestinationName != "c1" {
					t.Errorf("%s has no cluster: %+v", sub.Ref, sub)
				}
			}
		})
	}
}

// Many chains need more than one statement; names as long as they may be.
func TestLandingManyLinks(t *testing.T) {
	s := open(t)
	long := func(p string, i int) string { return fmt.Sprintf("%s%0250d", p, i) }
	clusters := map[string][]schema.Reconciler{}
	const clustersN, each = 4, 150
	for c := range clustersN {
		var list []schema.Reconciler
		for i := range each {
			list = append(list, reconciler(long("m", i), "mid", commitA, schema.StatusSuccess),
				owned(reconciler(long("l", i), "leaf", commitA, schema.StatusFailure), long("m", i)))
		}
		clusters[fmt.Sprint("c", c)] = list
	}
	write(t, s, clusters)
	if n := len(land(t, s, asked, commitA).Subscribers); n != 2*clustersN*each {
		t.Errorf("%d subscribers, want %d leaves and as many links", n, clustersN*each)
	}
}

// What the look-up returns of an endpoint's runs is enough for the latch.
func TestLandingRuns(t *testing.T) {
	second := reconciler("r", "drone", commitA, schema.StatusSuccess)
	second.Sources = append(second.Sources, schema.Source{Type: schema.SourceGit, URL: "https://git.example/org/values"})
	with := func(status schema.Status, commits ...string) schema.Reconciler {
		r := second
		r.Status, r.Applied = status, nil
		for _, c := range commits {
			r.Applied = append(r.Applied, "dev@sha1:"+c)
		}
		r.Attempted = r.Applied
		return r
	}
	cases := map[string]struct {
		reason string
		says   []schema.Reconciler
		want   int // runs
		first  int // minute of the earliest success among them
	}{
		"OnlyIt":       {"One run is one.", []schema.Reconciler{with(schema.StatusSuccess, commitA, commitB)}, 1, 0},
		"OldOnes":      {"Older commits are there too.", []schema.Reconciler{with(schema.StatusSuccess, commitB, commitB), with(schema.StatusSuccess, commitA, commitB)}, 2, 0},
		"OtherSource":  {"Another source that moves does not take the success away.", []schema.Reconciler{with(schema.StatusSuccess, commitA, commitB), with(schema.StatusInProgress, commitA, commitA)}, 2, 0},
		"SoakGoesOn":   {"Nor does it begin the soak again.", []schema.Reconciler{with(schema.StatusSuccess, commitA, commitB), with(schema.StatusSuccess, commitA, commitA)}, 2, 0},
		"NotThere":     {"Of another commit all runs are needed.", []schema.Reconciler{with(schema.StatusSuccess, commitA, commitB), with(schema.StatusSuccess, commitB, commitB)}, 2, 0},
		"NotSucceeded": {"Before it succeeds, what came before may count.", []schema.Reconciler{with(schema.StatusSuccess, commitB, commitB), with(schema.StatusInProgress, commitA, commitB)}, 2, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			state := fold.NewState()
			var batch []fold.Changes
			for i, r := range tc.says {
				batch = append(batch, state.Apply("c1", delta(uint64(i)+1, r), start.Add(time.Duration(i)*time.Minute)))
			}
			if err := s.Write(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			runs := land(t, s, asked, commitA).Subscribers[0].Sources[0].Runs
			if len(runs) != tc.want || !runs[0].SuccessAt.Equal(start.Add(time.Duration(tc.first)*time.Minute)) {
				t.Errorf("%s The runs are %+v", tc.reason, runs)
			}
		})
	}
}

func nearMisses(t *testing.T, s *Store, e schema.Endpoint) []schema.NearMiss {
	t.Helper()
	misses, err := s.NearMisses(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return misses
}

func TestNearMisses(t *testing.T) {
	s := open(t)
	with := func(name, ref, path string) schema.Reconciler {
		r := reconciler(name, path, commitA, schema.StatusSuccess)
		r.Sources[0].Ref = ref
		return r
	}
	elsewhere := with("elsewhere", "dev", "dr")
	elsewhere.Sources[0].URL = "https://git.example/org/else"
	write(t, s, map[string][]schema.Reconciler{"c1": {
		with("hit", "dev", "dr/one"), with("parent", "dev", "dr"), with("root", "dev", ""), with("branch", "prod", "dr/one"), with("default", "", "dr"),
		with("tag", "refs/tags/v1", "dr/one/x"), with("semver", "semver:>=1", "dr"), with("commit", commitB, "dr/one"),
		with("sibling", "dev", "dr/two"), with("far", "prod", "dr/two"), elsewhere,
	}})
	got := nearMisses(t, s, schema.Endpoint{Repo: asked.Repo, Ref: "dev", Path: "dr/one"})
	var all []string
	for _, m := range got {
		all = append(all, fmt.Sprintf("%s %s %s:%s %s", m.Cluster, m.Reconciler, m.Ref, m.Path, m.Why))
	}
	slices.Sort(all)
	const k = "c1 Kustomization/flux-system/"
	want := []string{
		k + "branch prod:dr/one other_ref", k + "commit " + commitB + ":dr/one pinned", k + "default :dr other_ref", k + "parent dev:dr parent_path",
		k + "root dev: parent_path", k + "semver semver:>=1:dr pinned", k + "tag refs/tags/v1:dr/one/x pinned",
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Errorf("near misses (-want +got):\n%s", d)
	}
	if got := nearMisses(t, s, schema.Endpoint{Repo: asked.Repo, Ref: "nobody"}); len(got) != 10 {
		t.Errorf("of a ref that nobody reads %d near misses, want everything of the repository", len(got))
	}
}

func TestLandingTroubles(t *testing.T) {
	s := open(t)
	r := delta(1, reconciler("root", "drone", commitA, schema.StatusSuccess))
	r.UnlistedKinds = []string{"HelmRelease"}
	child := owned(reconciler("child", "x", commitA, schema.StatusFailure), "root")
	child.Sources[0].URL = "https://git.example/org/other"
	if err := s.Write(t.Context(), []fold.Changes{
		fold.NewState().Apply("c1", r, start),
		fold.NewState().Apply("c2", delta(1, reconciler("root", "drone", commitA, schema.StatusSuccess), child), start),
		fold.NewState().Apply("c3", delta(1, child), start), // in trouble, and none of ours
	}); err != nil {
		t.Fatal(err)
	}
	l := land(t, s, asked, commitA)
	if len(l.Clusters) != 2 || len(l.Clusters["c1"].UnlistedKinds) != 1 || len(l.Clusters["c1"].Blocked) != 0 || len(l.Clusters["c2"].Blocked) != 1 {
		t.Errorf("clusters are %+v %+v", l.Clusters["c1"], l.Clusters["c2"])
	}
	for _, sub := range l.Subscribers {
		if sub.Reporter != l.Clusters[sub.Reporter.Name] {
			t.Error("a subscriber has a cluster of its own")
		}
	}
}

// Ageing reaches the look-up while it counts, and not during a flicker.
func TestLandingAging(t *testing.T) {
	s := open(t)
	state := fold.NewState()
	for i, reason := range []string{"ArtifactFailed", "Progressing", "ArtifactFailed"} {
		r := reconciler("a", "drone", commitA, schema.StatusInProgress)
		r.Reason = reason
		if err := s.Write(t.Context(), []fold.Changes{state.Apply("c1", delta(uint64(i)+1, r), start.Add(time.Duration(i)*time.Minute))}); err != nil {
			t.Fatal(err)
		}
		want := start
		if reason == "Progressing" {
			want = time.Time{}
		}
		if got := land(t, s, asked, commitA).Subscribers[0].AgingSince; !got.Equal(want) {
			t.Errorf("%s: ageing since %s, want %s", reason, got, want)
		}
	}
}

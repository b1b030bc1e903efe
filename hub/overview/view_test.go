package overview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/internal/gitlink"
	"github.com/landfall-hub/landfall/schema"
)

// shelf is a store of rows that a test laid there. It narrows nothing but the
// page, so that the view must.
type shelf struct {
	groups    []record.Group
	rows      []record.StateRow
	history   []record.HistoryRow
	successes map[record.Reconciler][]record.Success
	delivery  record.Delivery
	err       error
	asked     []record.StateQuery
	spans     []record.DeliveryQuery
}

func (s *shelf) Groups(context.Context, record.GroupQuery) ([]record.Group, error) {
	return s.groups, s.err
}

func (s *shelf) States(_ context.Context, q record.StateQuery) ([]record.StateRow, error) {
	s.asked = append(s.asked, q)
	var rows []record.StateRow
	for _, r := range s.rows {
		if (len(q.After) == 0 || slices.Compare([]string{r.Cluster, r.Ref.Kind, r.Ref.Namespace, r.Ref.Name}, q.After) > 0) && len(rows) < q.Limit {
			rows = append(rows, r)
		}
	}
	return rows, s.err
}

func (s *shelf) Destinations(context.Context, []schema.Endpoint) ([]string, error) { return nil, s.err }

func (s *shelf) History(_ context.Context, q record.HistoryQuery) ([]record.HistoryRow, error) {
	var rows []record.HistoryRow
	for i := range s.history {
		if (q.After == nil || s.history[i].Compare(q.After) > 0) && len(rows) < q.Limit {
			rows = append(rows, s.history[i])
		}
	}
	return rows, s.err
}

func (s *shelf) Successes(context.Context, []record.Reconciler) (map[record.Reconciler][]record.Success, error) {
	return s.successes, s.err
}

func (s *shelf) HistoryEndpoints(context.Context, []schema.Endpoint) ([]schema.Endpoint, error) {
	return nil, s.err
}

func (s *shelf) Delivery(_ context.Context, q record.DeliveryQuery) (record.Delivery, error) {
	s.spans = append(s.spans, q)
	return s.delivery, s.err
}

// people is a fleet.
type people []fleet.Member

func (p people) All() []fleet.Member { return p }

func member(name string, places ...string) fleet.Member {
	m := fleet.Member{LastSeen: start}
	m.Name = name
	for i := 0; i < len(places); i += 2 {
		m.Memberships = append(m.Memberships, schema.Membership{Environment: places[i], Type: places[i+1]})
	}
	return m
}

var (
	hello = schema.Target{Environment: "dev", Workspace: "w", Application: "a", Workload: "hello", DeploymentTarget: "functional"}
	dev   = &branch{repo: "github.com/org/hello", ref: "dev", commits: []string{id(0), id(1), id(2), id(3)}, times: []time.Time{minutes(0), minutes(10), minutes(20), minutes(30)}}
)

// helloNames know one target with versions 1, 2, 1 and 3.
func helloNames() *names.Index {
	ref := names.Ref{Name: "dev", Lineage: lineage{dev}, Chains: []names.Chain{{Number: 1, Fork: -1}}, Assignments: map[schema.Target][]names.Assignment{}}
	for at, v := range []string{"1", "2", "1", "3"} {
		ref.Assignments[hello] = append(ref.Assignments[hello], names.Assignment{Chain: 1, Position: int64(at), Version: &names.Version{Version: v}})
	}
	return names.New(names.Facts{
		Repos:   []names.Repo{{Names: []string{dev.repo}, Written: "https://github.com/org/hello", Refs: []names.Ref{ref}}},
		Targets: []names.Target{{Target: hello, Endpoint: schema.Endpoint{Repo: dev.repo, Ref: "dev", Path: "x"}, URL: "https://github.com/org/hello"}},
	})
}

func newView(t *testing.T, s *shelf, index *names.Index, members ...fleet.Member) *View {
	t.Helper()
	v, err := New(Options{
		Current: s, Past: s, Fleet: people(members), Names: known{index}, Links: gitlink.Links{}, Now: func() time.Time { return minutes(60) },
		Graph: func(string) compliance.Graph { return compliance.Equality{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func code(err error) schema.Code {
	var refusal *schema.Refusal
	var problem *schema.Problem
	switch {
	case errors.As(err, &refusal):
		return refusal.Code
	case errors.As(err, &problem):
		return problem.Code
	}
	return schema.Code(fmt.Sprint(err))
}

func TestPlace(t *testing.T) {
	one := []schema.Membership{{Environment: "dev", Type: "drone"}}
	two := append(slices.Clone(one), schema.Membership{Environment: "stage", Type: "large"})
	alike := append(slices.Clone(one), schema.Membership{Environment: "dev", Type: "large"})
	cases := map[string]struct {
		reason, serves string
		memberships    []schema.Membership
		want           [2]string
	}{
		"OneUnknown":  {"The only membership tells.", "", one, [2]string{"dev", "drone"}},
		"TwoUnknown":  {"Nobody knows which.", "", two, [2]string{"", ""}},
		"Nobody":      {"A place without an agent has none.", "", nil, [2]string{"", ""}},
		"Serves":      {"The endpoint tells which.", "stage", two, [2]string{"stage", "large"}},
		"ServesOther": {"It does not matter where the cluster says it is; it is of one type.", "prod", one, [2]string{"prod", "drone"}},
		"ServesNone":  {"Of which type it is there nobody knows.", "prod", two, [2]string{"prod", ""}},
		"ServesTwo":   {"Two types in one environment.", "dev", alike, [2]string{"dev", ""}},
		"ServesHost":  {"An environment is known of a place without an agent.", "dev", nil, [2]string{"dev", ""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := named{environment: tc.serves}
			environment, clusterType := n.place(tc.memberships)
			if got := [2]string{environment, clusterType}; got != tc.want {
				t.Errorf("%v: %s", got, tc.reason)
			}
		})
	}
}

func TestTrouble(t *testing.T) {
	questions := map[string]func(v *View, p schema.Page) error{
		"state": func(v *View, p schema.Page) error {
			_, _, err := v.EnvironmentStates(t.Context(), schema.StateFilter{}, p)
			return err
		},
		"clusters": func(v *View, p schema.Page) error {
			_, _, err := v.ClusterStates(t.Context(), schema.StateFilter{}, p)
			return err
		},
		"history": func(v *View, p schema.Page) error {
			_, _, err := v.History(t.Context(), schema.HistoryFilter{}, p)
			return err
		},
		"discrepancies": func(v *View, p schema.Page) error {
			_, _, err := v.Discrepancies(t.Context(), schema.DiscrepancyFilter{All: true}, p)
			return err
		},
		"drift": func(v *View, p schema.Page) error {
			_, _, err := v.Drift(t.Context(), schema.DriftFilter{}, p)
			return err
		},
		"dora": func(v *View, p schema.Page) error {
			_, _, err := v.DORA(t.Context(), schema.DORAFilter{}, p)
			return err
		},
	}
	for name, ask := range questions {
		t.Run(name, func(t *testing.T) {
			down := newView(t, &shelf{err: errors.New("the store is down")}, helloNames())
			if err := ask(down, schema.Page{Limit: 10}); code(err) != schema.CodeUnavailable {
				t.Errorf("while the store is down: %v", err)
			}
			many := newView(t, &shelf{err: fmt.Errorf("querying: %w", record.ErrTooMany)}, helloNames())
			if err := ask(many, schema.Page{Limit: 10}); code(err) != schema.CodeInvalidParameter {
				t.Errorf("too many groups: %v", err)
			}
			fine := newView(t, &shelf{}, helloNames())
			for _, bad := range [][]string{{"x"}, {"a", "b", "c"}, make([]string, 11), {"x", "", "", "", "", "", "", "", "", ""}, {"", "", "", "", "", "9", "1"}} {
				if err := ask(fine, schema.Page{Limit: 10, After: bad}); code(err) != schema.CodeInvalidCursor {
					t.Errorf("the cursor %q: %v", bad, err)
				}
			}
			if err := ask(fine, schema.Page{Limit: 10}); err != nil {
				t.Errorf("an empty store: %v", err)
			}
		})
	}
	if _, err := New(Options{}); err == nil {
		t.Error("a view was made of nothing")
	}
}

func stateRow(cluster, name, path, commit string) record.StateRow {
	return record.StateRow{
		Cluster: cluster, Destination: cluster, Ref: schema.ObjectRef{Kind: "K", Namespace: "n", Name: name}, Status: schema.StatusSuccess, Since: start,
		Sources: []record.StateSource{{URL: "https://github.com/org/hello", Ref: "dev", Path: path, Endpoint: schema.Endpoint{Repo: dev.repo, Ref: "dev", Path: path}, Commit: commit, Attempted: commit}},
	}
}

func TestClusterStateRow(t *testing.T) {
	silent := member("c2", "dev", "drone")
	silent.Silent = true
	several := stateRow("c1", "b", "elsewhere", id(9))
	several.Sources = append(several.Sources, stateRow("c1", "b", "x/deep", id(1)).Sources...)
	s := &shelf{rows: []record.StateRow{stateRow("c1", "a", "x", id(2)), several, stateRow("c2", "a", "y", id(1))}}
	v := newView(t, s, helloNames(), member("c1", "dev", "drone", "stage", "large"), silent)
	got, next, err := v.ClusterStates(t.Context(), schema.StateFilter{}, schema.Page{Limit: 10})
	if err != nil || next != nil {
		t.Fatalf("next %v, %v", next, err)
	}
	row := func(cluster, name, path, commit string) schema.ClusterState {
		return schema.ClusterState{
			Cluster: cluster, ClusterType: "drone", Environment: "dev", Reconciler: "K/n/" + name, Repo: "https://github.com/org/hello", Ref: "dev", Path: path,
			Version: commit, Commit: commit, AttemptedCommit: commit, Status: schema.StatusSuccess, Since: start, LastSeen: start,
		}
	}
	of := func(r schema.ClusterState, version string) schema.ClusterState {
		r.Workspace, r.Application, r.Workload, r.DeploymentTarget, r.Version = "w", "a", "hello", "functional", version
		return r
	}
	quiet := row("c2", "a", "y", id(1))
	quiet.Status, quiet.Reason = schema.StatusUnknown, "no heartbeat for 1h0m0s"
	// The second reconciler is named by its second source: the first is no target.
	if d := cmp.Diff([]schema.ClusterState{of(row("c1", "a", "x", id(2)), "1"), of(row("c1", "b", "x/deep", id(1)), "2"), quiet}, got); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

// Rows that the store cannot tell apart are left out, however many there are,
// and the cursor goes on behind them.
func TestPagesOfFewRows(t *testing.T) {
	s := &shelf{}
	for i := range 3_000 {
		path := "other"
		if i%700 == 0 {
			path = "x"
		}
		s.rows = append(s.rows, stateRow("c1", fmt.Sprintf("r%05d", i), path, id(1)))
	}
	v := newView(t, s, helloNames(), member("c1", "dev", "drone"))
	for _, limit := range []int{1, 2, 5, 100} {
		got := collect(t, v.ClusterStates, schema.StateFilter{Workload: "hello"}, limit)
		if len(got) != 5 || got[4].Reconciler != "K/n/r02800" {
			t.Errorf("pages of %d: %d rows", limit, len(got))
		}
	}
	s.asked = nil
	if _, next, err := v.ClusterStates(t.Context(), schema.StateFilter{Workload: "nobody's"}, schema.Page{Limit: 1}); err != nil || next != nil || len(s.asked) > mostRounds {
		t.Errorf("asked %d times; next %v, %v", len(s.asked), next, err)
	}
}

func TestHistoryRow(t *testing.T) {
	ref := schema.ObjectRef{Kind: "K", Namespace: "n", Name: "a"}
	at := schema.Endpoint{Repo: dev.repo, Ref: "dev", Path: "x"}
	said := func(sequence uint64, status schema.Status, applied, attempted string) record.HistoryRow {
		return record.HistoryRow{
			HistoryKey: record.HistoryKey{ReceivedAt: minutes(int(sequence)), Endpoint: at, Cluster: "c1", Ref: ref, Epoch: 1, Sequence: sequence}, Change: schema.ChangeReported,
			ObservedAt: minutes(int(sequence)), Destination: "c1", URL: "git@mirror.example:org/hello", GitRef: "dev", Path: "./x", Commit: applied, Attempted: attempted, Status: status,
		}
	}
	ran := func(sequence uint64, commit string) record.Success {
		return record.Success{Running: record.Running{Endpoint: at, Commit: commit}, Epoch: 1, Sequence: sequence}
	}
	elsewhere := ran(4, id(9))
	elsewhere.Endpoint.Path = "other"
	const ok, bad = schema.StatusSuccess, schema.StatusFailure
	late, gone := said(7, ok, id(1), id(1)), said(9, "", "", "")
	late.Change = schema.ChangeLate
	gone.Change, gone.URL, gone.GitRef, gone.Path, gone.HistoryKey.Cluster = schema.ChangeRemoved, "", "", "", "c1"
	s := &shelf{
		// 0 is version 1, 1 is 2, 2 is 1 again, 3 is 3.
		successes: map[record.Reconciler][]record.Success{{Cluster: "c1", Ref: ref}: {ran(1, id(0)), ran(3, id(1)), elsewhere, ran(5, id(2)), ran(8, id(0))}},
		history: []record.HistoryRow{
			gone, said(8, ok, id(0), id(0)), late, said(6, bad, id(2), id(3)), said(5, ok, id(2), id(2)), said(3, ok, id(1), id(1)), said(2, ok, id(0), id(0)), said(1, ok, id(0), id(0)),
		},
	}
	v := newView(t, s, helloNames(), member("c1", "dev", "drone"))
	const page = "https://github.com/org/hello/"
	commit := func(n int) string { return page + "commit/" + id(n) }
	compare := func(from, to int) string { return page + "compare/" + id(from) + "..." + id(to) }
	want := []string{
		"removed unknown false  ",
		"reported success false " + commit(0) + " " + compare(2, 0), // of the same version as the one before
		"late success false " + commit(1) + " ",                     // counts for nothing
		"reported failure false " + commit(3) + " " + compare(2, 3), // what was tried
		"reported success true " + commit(2) + " " + compare(1, 2),  // back to version 1
		"reported success false " + commit(1) + " " + compare(0, 1),
		"reported success false " + commit(0) + " ", // a flicker
		"reported success false " + commit(0) + " ",
	}
	var got []string
	for _, r := range collect(t, v.History, schema.HistoryFilter{}, 3) {
		got = append(got, fmt.Sprint(r.Change, " ", r.Status, " ", r.Rollback, " ", r.CommitURL, " ", r.CompareURL))
		if r.Workload != "hello" || r.Repo == "" {
			t.Errorf("%s: it is of %q at %q", r.ReceivedAt, r.Workload, r.Repo)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

// Figures of one list are of one time, however long somebody turns its pages.
func TestFiguresKeepTheirSpan(t *testing.T) {
	index := func(n int) *names.Index {
		var f names.Facts
		for i := range n {
			target := hello
			target.Workload = fmt.Sprintf("w%03d", i)
			f.Targets = append(f.Targets, names.Target{Target: target, Endpoint: schema.Endpoint{Repo: "h/r", Ref: "dev", Path: target.Workload}})
		}
		return names.New(f)
	}
	s := &shelf{}
	v := newView(t, s, index(230))
	now := minutes(60)
	v.opts.Now = func() time.Time { now = now.Add(time.Hour); return now }
	rows := collect(t, v.DORA, schema.DORAFilter{}, 1000)
	if len(rows) != 230 || len(s.spans) != 3 {
		t.Fatalf("%d rows of %d questions", len(rows), len(s.spans))
	}
	for i := range rows {
		if rows[i].Workload != fmt.Sprintf("w%03d", i) || !rows[i].To.Equal(minutes(120)) || rows[i].To.Sub(rows[i].From) != defaultDORA {
			t.Errorf("row %d is of %s, from %s to %s", i, rows[i].Workload, rows[i].From, rows[i].To)
		}
	}
}

func TestDriftLinks(t *testing.T) {
	changed := stateRow("c1", "b", "x", id(3))
	changed.Drifted = true
	s := &shelf{
		groups: []record.Group{{Running: record.Running{Endpoint: schema.Endpoint{Repo: dev.repo, Ref: "dev", Path: "x"}, Commit: id(1)}}},
		rows:   []record.StateRow{stateRow("c1", "a", "x", id(1)), changed, stateRow("c1", "c", "x", id(3)), stateRow("c1", "d", "x", id(9))},
	}
	v := newView(t, s, helloNames(), member("c1", "dev", "drone"))
	rows := collect(t, v.Drift, schema.DriftFilter{}, 2)
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprint(r.Reconciler, " ", r.DesiredVersion, " ", r.BehindCommits, " ", r.BehindSeconds, " ", r.CompareURL))
	}
	want := []string{
		// Version 1 came at 20 minutes and is what waits longest.
		"K/n/a 3 2 2400 https://github.com/org/hello/compare/" + id(1) + "..." + id(3),
		"K/n/b 3 0 0 ",
		"K/n/d 3 -1 1800 https://github.com/org/hello/compare/" + id(9) + "..." + id(3),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]record.Running{s.groups[0].Running}, s.asked[0].Off); d != "" {
		t.Errorf("the store was asked for (-want +got):\n%s", d)
	}
}

// What many reconcilers did together is one rollback; a version is one, whichever
// of its commits runs.
func TestRollbacks(t *testing.T) {
	s := &sight{index: helloNames()}
	n := s.name(schema.Endpoint{Repo: dev.repo, Ref: "dev", Path: "x"})
	// Commits 0 and 2 are of one version. What began before the time asked for has
	// a capital.
	course := func(text string) (c record.Course) {
		for _, step := range text {
			c.Steps = append(c.Steps, record.Step{Commit: id(int(step|0x20) - 'a'), Within: step >= 'a'})
		}
		return c
	}
	cases := map[string]struct {
		reason  string
		courses []string
		want    uint64
	}{
		"Forward":   {"Nothing came back.", []string{"abd", "ad"}, 0},
		"Back":      {"Another commit of the version before.", []string{"abc"}, 1},
		"Same":      {"Another commit of the same version.", []string{"ac", "aca"}, 0},
		"Before":    {"It went back before the time asked for.", []string{"ABCd"}, 0},
		"Since":     {"It went back in it, to what was there before.", []string{"ABd", "ABa"}, 1},
		"Together":  {"Three went back once.", []string{"aba", "ABa", "dabc"}, 1},
		"Twice":     {"One went back twice, to two versions.", []string{"abab", "aba"}, 2},
		"Again":     {"One went back to the same twice.", []string{"abada", "aba"}, 2},
		"Elsewhere": {"Each to another version.", []string{"aba", "bdb"}, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var courses []record.Course
			for _, text := range tc.courses {
				courses = append(courses, course(text))
			}
			if got := s.rollbacks(&n, courses); got != tc.want {
				t.Errorf("%d, want %d: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	for _, tc := range []struct {
		values  []float64
		q, want float64
	}{{[]float64{7}, 0.95, 7}, {[]float64{1, 3}, 0.5, 2}, {[]float64{1, 2, 3}, 0.5, 2}, {[]float64{0, 10, 20, 30, 40}, 0.95, 38}, {[]float64{1, 2}, 1, 2}} {
		if got := quantile(tc.values, tc.q); got == nil || *got < tc.want-1e-9 || *got > tc.want+1e-9 {
			t.Errorf("%v of %v is %v, want %v", tc.q, tc.values, got, tc.want)
		}
	}
	if quantile(nil, 0.5) != nil {
		t.Error("nothing has a median")
	}
}

package fleet

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// shelf is a reader of rows that a test laid there.
type shelf struct {
	positions map[string]fold.Position
	rows      []record.StateRow
	asked     record.StateQuery
	err       error
}

func (s *shelf) Counts(_ context.Context, clusters []string) (map[string]map[schema.Status]uint64, error) {
	counts := map[string]map[schema.Status]uint64{}
	for _, r := range s.rows {
		if slices.Contains(clusters, r.Cluster) {
			if counts[r.Cluster] == nil {
				counts[r.Cluster] = map[schema.Status]uint64{}
			}
			counts[r.Cluster][r.Status]++
		}
	}
	return counts, s.err
}

func (s *shelf) Positions(context.Context, []string) (map[string]fold.Position, error) {
	return s.positions, s.err
}

func (s *shelf) States(_ context.Context, q record.StateQuery) ([]record.StateRow, error) {
	s.asked = q
	var rows []record.StateRow
	for _, r := range s.rows {
		if (q.Clusters == nil || slices.Contains(q.Clusters, r.Cluster)) && (q.Destinations == nil || slices.Contains(q.Destinations, r.Destination)) && len(rows) < q.Limit {
			rows = append(rows, r)
		}
	}
	return rows, s.err
}

func in(memberships ...string) func(*schema.Registration) {
	return func(r *schema.Registration) {
		r.Memberships = nil
		for i := 0; i < len(memberships); i += 2 {
			r.Memberships = append(r.Memberships, schema.Membership{Environment: memberships[i], Type: memberships[i+1]})
		}
	}
}

func reportsFor(names ...string) func(*schema.Registration) {
	return func(r *schema.Registration) { r.ReportsFor = names }
}

// sight is a fleet of six: c1 and c2 in dev, c3 in stage, c4 in both, hub that
// deploys to spoke and to nobody's cluster, and one that is gone. c2 is silent.
func sight(t *testing.T) (*View, *shelf, *clock) {
	t.Helper()
	c := newClock()
	f := newFleet(t, newMemory(), c)
	register(t, f, "c1", in("dev", "drone"))
	register(t, f, "c2", in("dev", "edge"), every(time.Second))
	register(t, f, "c3", in("stage", "drone"))
	register(t, f, "c4", in("dev", "drone", "stage", "drone"))
	register(t, f, "hub", in("ops", "control"), reportsFor("spoke", "c3"))
	register(t, f, "gone", in("dev", "drone"))
	if _, err := f.Decommission(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	c.advance(10 * time.Second)
	s := &shelf{positions: map[string]fold.Position{}}
	for _, at := range [][2]string{{"c1", "c1"}, {"c2", "c2"}, {"c3", "c3"}, {"c4", "c4"}, {"hub", "hub"}, {"hub", "spoke"}, {"hub", "c3"}} {
		s.rows = append(s.rows, record.StateRow{Cluster: at[0], Destination: at[1], Ref: schema.ObjectRef{Kind: "K", Namespace: "n", Name: at[0] + "-" + at[1]}, Status: schema.StatusSuccess, Since: start})
	}
	return NewView(f, s), s, c
}

func TestClustersFilters(t *testing.T) {
	v, _, _ := sight(t)
	cases := map[string]struct {
		reason string
		f      schema.ClusterFilter
		want   []string
	}{
		"All":            {"Those that are gone are left out.", schema.ClusterFilter{}, []string{"c1", "c2", "c3", "c4", "hub"}},
		"Gone":           {"Unless they are asked for.", schema.ClusterFilter{Status: schema.ClusterDecommissioned}, []string{"gone"}},
		"Silent":         {"Silent ones.", schema.ClusterFilter{Status: schema.ClusterSilent}, []string{"c2"}},
		"Live":           {"Live ones.", schema.ClusterFilter{Status: schema.ClusterLive}, []string{"c1", "c3", "c4", "hub"}},
		"Environment":    {"Any membership counts.", schema.ClusterFilter{Environment: "dev"}, []string{"c1", "c2", "c4"}},
		"Type":           {"So for the type.", schema.ClusterFilter{ClusterType: "drone"}, []string{"c1", "c3", "c4"}},
		"Both":           {"Both must be of one membership.", schema.ClusterFilter{Environment: "stage", ClusterType: "drone"}, []string{"c3", "c4"}},
		"NotOfOne":       {"Not of two.", schema.ClusterFilter{Environment: "dev", ClusterType: "control"}, nil},
		"GoneAndElse":    {"Filters join.", schema.ClusterFilter{Status: schema.ClusterDecommissioned, Environment: "stage"}, nil},
		"SilentInNobody": {"Nothing is an empty list.", schema.ClusterFilter{Environment: "nowhere"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rows, next, err := v.Clusters(t.Context(), tc.f, schema.Page{Limit: 100})
			if err != nil || rows == nil || next != nil {
				t.Fatalf("rows %v, next %v, %v", rows, next, err)
			}
			var got []string
			for _, r := range rows {
				got = append(got, r.Name)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s\n%s", tc.reason, d)
			}
		})
	}
}

func TestClustersPaging(t *testing.T) {
	v, _, _ := sight(t)
	for limit := 1; limit < 7; limit++ {
		var got []string
		page := schema.Page{Limit: limit}
		for {
			rows, next, err := v.Clusters(t.Context(), schema.ClusterFilter{}, page)
			if err != nil || len(rows) > limit {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
			for _, r := range rows {
				got = append(got, r.Name)
			}
			if next == nil || len(got) > 10 {
				break
			}
			page.After = next
		}
		if d := cmp.Diff([]string{"c1", "c2", "c3", "c4", "hub"}, got); d != "" {
			t.Errorf("pages of %d:\n%s", limit, d)
		}
	}
	if rows, _, err := v.Clusters(t.Context(), schema.ClusterFilter{}, schema.Page{After: []string{"zzz"}, Limit: 9}); err != nil || rows == nil || len(rows) != 0 {
		t.Errorf("after the last: %v, %v", rows, err)
	}
	for _, bad := range [][]string{{"a", "b"}, {"a", "b", "c", "d"}} {
		if _, _, err := v.Clusters(t.Context(), schema.ClusterFilter{}, schema.Page{After: bad, Limit: 9}); code(t, err) != schema.CodeInvalidCursor {
			t.Errorf("the cursor %v: %v", bad, err)
		}
	}
}

func TestClusterRow(t *testing.T) {
	v, s, c := sight(t)
	s.positions["c1"] = fold.Position{Epoch: 1, Sequence: 7, UnlistedKinds: []string{"HelmRelease"}, AgentVersion: "9.9"}
	s.positions["c3"] = fold.Position{Epoch: 9, Sequence: 7}
	counts := func(success uint64) map[schema.Status]uint64 {
		all := map[schema.Status]uint64{}
		for _, status := range schema.Statuses() {
			all[status] = 0
		}
		all[schema.StatusSuccess] = success
		return all
	}
	got, err := v.Cluster(t.Context(), "c1")
	if err != nil {
		t.Fatal(err)
	}
	want := schema.Cluster{
		Name: "c1", Kind: schema.ClusterKubernetes, Status: schema.ClusterLive, Memberships: []schema.Membership{{Environment: "dev", Type: "drone"}},
		Labels: map[string]string{"a": "b"}, ReportsFor: []string{}, HeartbeatInterval: schema.Duration(30 * time.Second), AgentVersion: "9.9",
		Epoch: 1, Sequence: 7, UnlistedKinds: []string{"HelmRelease"}, RegisteredAt: start, LastSeen: start, Counts: counts(1),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the row (-want +got):\n%s", d)
	}
	if got, err := v.Cluster(t.Context(), "c3"); err != nil || got.Sequence != 0 || got.UnlistedKinds == nil {
		t.Errorf("of another epoch's stream: %+v, %v", got, err)
	}
	if got, err := v.Cluster(t.Context(), "gone"); err != nil || got.Status != schema.ClusterDecommissioned {
		t.Errorf("one that is gone: %+v, %v", got, err)
	}
	if _, err := v.Cluster(t.Context(), "never"); code(t, err) != schema.CodeNotFound {
		t.Errorf("nobody: %v", err)
	}
	c.advance(time.Hour)
	if got, _ := v.Cluster(t.Context(), "c1"); got.Status != schema.ClusterSilent { // the row tells
		t.Errorf("an hour later it is %s", got.Status)
	}
	s.err = errDown
	if _, err := v.Cluster(t.Context(), "c1"); code(t, err) != schema.CodeUnavailable {
		t.Errorf("while the store is down: %v", err)
	}
	if _, _, err := v.Clusters(t.Context(), schema.ClusterFilter{}, schema.Page{Limit: 1}); code(t, err) != schema.CodeUnavailable {
		t.Errorf("while the store is down: %v", err)
	}
}

// A filter matches what a row shows: the place that is deployed to.
func TestClusterStatesFilters(t *testing.T) {
	cases := map[string]struct {
		reason string
		f      schema.StateFilter
		want   []string
	}{
		"All":              {"Nothing is left out.", schema.StateFilter{}, []string{"c1-c1", "c2-c2", "c3-c3", "c4-c4", "hub-hub", "hub-spoke", "hub-c3"}},
		"Cluster":          {"A cluster's own.", schema.StateFilter{Cluster: "c1"}, []string{"c1-c1"}},
		"Destination":      {"What others deploy to it counts.", schema.StateFilter{Cluster: "c3"}, []string{"c3-c3", "hub-c3"}},
		"Reporter":         {"What it deploys elsewhere does not.", schema.StateFilter{Cluster: "hub"}, []string{"hub-hub"}},
		"NotRegistered":    {"A place without an agent is one.", schema.StateFilter{Cluster: "spoke"}, []string{"hub-spoke"}},
		"Nowhere":          {"Nobody's place is empty.", schema.StateFilter{Cluster: "nowhere"}, nil},
		"Environment":      {"The environment is the destination's.", schema.StateFilter{Environment: "stage"}, []string{"c3-c3", "hub-c3"}},
		"Type":             {"So is the type. Where there are two memberships nobody knows.", schema.StateFilter{ClusterType: "drone"}, []string{"c1-c1", "c3-c3", "hub-c3"}},
		"Both":             {"Filters join.", schema.StateFilter{Environment: "dev", ClusterType: "drone"}, []string{"c1-c1"}},
		"SpokeEnvironment": {"A place without an agent has no environment.", schema.StateFilter{Cluster: "spoke", Environment: "dev"}, nil},
		"Gone":             {"One that is gone has none.", schema.StateFilter{Cluster: "gone"}, nil},
		"Workload":         {"No row has these names yet.", schema.StateFilter{Workload: "x"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, _, _ := sight(t)
			rows, next, err := v.ClusterStates(t.Context(), tc.f, schema.Page{Limit: 100})
			if err != nil || rows == nil || next != nil {
				t.Fatalf("rows %v, next %v, %v", rows, next, err)
			}
			var got []string
			for _, r := range rows {
				got = append(got, r.Reconciler[len("K/n/"):])
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s\n%s", tc.reason, d)
			}
		})
	}
}

func TestClusterStateRows(t *testing.T) {
	v, s, _ := sight(t)
	rows, _, err := v.ClusterStates(t.Context(), schema.StateFilter{Status: schema.StatusFailure}, schema.Page{Limit: 100, After: []string{"a", "b", "c", "d"}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(record.StateQuery{Status: schema.StatusFailure, Silent: []string{"c2"}, After: []string{"a", "b", "c", "d"}, Limit: 101}, s.asked); d != "" {
		t.Errorf("the store was asked (-want +got):\n%s", d)
	}
	shown := map[string]string{}
	for _, r := range rows {
		shown[r.Reconciler[len("K/n/"):]] = fmt.Sprint(r.Cluster, " ", r.Environment, "/", r.ClusterType, " ", r.Status, " ", r.Reason)
	}
	want := map[string]string{
		"c1-c1": "c1 dev/drone success ", "c2-c2": "c2 dev/edge unknown no heartbeat for 10s", "c3-c3": "c3 stage/drone success ", "c4-c4": "c4 / success ",
		"hub-hub": "hub ops/control success ", "hub-spoke": "spoke / success ", "hub-c3": "c3 stage/drone success ",
	}
	if d := cmp.Diff(want, shown); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	rows, next, err := v.ClusterStates(t.Context(), schema.StateFilter{}, schema.Page{Limit: 6})
	if err != nil || len(rows) != 6 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if d := cmp.Diff([]string{"hub", "K", "n", "hub-spoke"}, next); d != "" {
		t.Errorf("the next page's key, which is the reporter's (-want +got):\n%s", d)
	}
	if _, next, err := v.ClusterStates(t.Context(), schema.StateFilter{}, schema.Page{Limit: 7}); err != nil || next != nil {
		t.Errorf("a page that holds all goes on at %v, %v", next, err)
	}
	for _, bad := range [][]string{{"a"}, {"a", "b", "c"}, {"a", "b", "c", "d", "e"}} {
		if _, _, err := v.ClusterStates(t.Context(), schema.StateFilter{}, schema.Page{After: bad, Limit: 9}); code(t, err) != schema.CodeInvalidCursor {
			t.Errorf("the cursor %v: %v", bad, err)
		}
	}
	s.err = errDown
	if _, _, err := v.ClusterStates(t.Context(), schema.StateFilter{}, schema.Page{Limit: 9}); code(t, err) != schema.CodeUnavailable {
		t.Errorf("while the store is down: %v", err)
	}
}

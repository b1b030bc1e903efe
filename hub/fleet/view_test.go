package fleet

import (
	"context"
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

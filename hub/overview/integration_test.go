package overview

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/schema"
)

// collect reads a list to its end.
func collect[F, T any](t *testing.T, read func(context.Context, F, schema.Page) ([]T, []string, error), f F, limit int) []T {
	t.Helper()
	var all []T
	p := schema.Page{Limit: limit}
	for range 10_000 {
		rows, next, err := read(t.Context(), f, p)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > limit {
			t.Fatalf("a page of %d has %d rows", limit, len(rows))
		}
		all = append(all, rows...)
		if next == nil {
			return all
		}
		p.After = next
	}
	t.Fatal("a list without an end")
	return nil
}

// TestAgainstPlainLoops compares every answer about a generated fleet with what
// loops over all that was ever said make of it.
func TestAgainstPlainLoops(t *testing.T) {
	w := newWorld(t, *seed)
	w.live(120)
	compareAll(t, w)
	w.publish()
	compareView(t, w)
}

var seed = flag.Uint64("seed", 1, "the seed of the generated fleet")

// filters are some of each kind, and some together.
func filters() []schema.StateFilter {
	return []schema.StateFilter{
		{}, {Environment: "dev"}, {Environment: "stage"}, {Environment: "nowhere"}, {Workload: "hello"}, {Workload: "plain", Environment: "dev"}, {Workload: "none"},
		{Application: "app0", DeploymentTarget: "functional"}, {Workspace: "team", Environment: "prod"}, {Cluster: "dev-0"}, {Cluster: "both"}, {Cluster: "spoke"}, {Cluster: "leaving"},
		{ClusterType: "large"}, {ClusterType: "drone", Environment: "stage"}, {ClusterType: "large", Workload: "world"}, {Status: "failure"}, {Status: "unknown"},
		{Status: "success", Environment: "dev", Cluster: "both"}, {Status: "success", Workload: "hello", ClusterType: "drone"},
	}
}

func compareAll(t *testing.T, w *world) {
	t.Helper()
	exact := cmpopts.EquateApprox(0, 1e-6)
	state := cmpopts.IgnoreFields(schema.ClusterState{}, "Repo", "Ref", "Path", "Reason", "Message", "Since", "LastSeen")
	entry := cmpopts.IgnoreFields(schema.HistoryEntry{}, "CommitURL", "CompareURL")
	drift := cmpopts.IgnoreFields(schema.Drift{}, "CompareURL")
	same := func(what string, f, want, got any) {
		t.Helper()
		if d := cmp.Diff(want, got, exact, state, entry, drift, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s of %+v (-want +got):\n%s", what, f, d)
		}
	}
	rollbacks, drifts, discrepancies := 0, 0, 0
	for i, f := range filters() {
		limit := []int{1000, 20, 7}[i%3]
		same("state", f, w.environmentStates(f), collect(t, w.view.EnvironmentStates, f, limit))
		same("cluster states", f, w.clusterStates(f), collect(t, w.view.ClusterStates, f, max(limit, 20)))
		spans := []schema.Span{{}, {From: minutes(300), To: minutes(700)}}
		for _, span := range spans[:1+i%2] {
			h := schema.HistoryFilter{StateFilter: f, Span: span}
			want := w.history(h)
			for _, r := range want {
				if r.Rollback {
					rollbacks++
				}
			}
			same("history", h, want, collect(t, w.view.History, h, max(limit, 100)))
			for _, all := range []bool{false, true} {
				d := schema.DriftFilter{StateFilter: f, Span: span, All: all}
				want := w.drift(d)
				drifts += len(want)
				same("drift", d, want, collect(t, w.view.Drift, d, max(limit, 40)))
			}
		}
		for _, all := range []bool{false, true} {
			d := schema.DiscrepancyFilter{StateFilter: f, All: all}
			want := w.discrepancies(d)
			discrepancies += len(want)
			same("discrepancies", d, want, collect(t, w.view.Discrepancies, d, limit))
		}
		if f.Cluster == "" && f.ClusterType == "" && f.Status == "" {
			for _, span := range []schema.Span{{From: minutes(0), To: w.clock()}, {From: minutes(400), To: minutes(800)}} {
				d := schema.DORAFilter{StateFilter: f, Span: span}
				same("dora", d, w.dora(d), collect(t, w.view.DORA, d, limit))
			}
		}
	}
	if rollbacks == 0 || drifts == 0 || discrepancies == 0 {
		t.Errorf("the fleet shows nothing: %d rollbacks, %d drifts, %d discrepancies", rollbacks, drifts, discrepancies)
	}
	t.Logf("%d events, %d rollbacks, %d drifts, %d discrepancies compared", len(w.events), rollbacks, drifts, discrepancies)
}

// compareView holds the view for people's SQL against the API.
func compareView(t *testing.T, w *world) {
	t.Helper()
	got := strings.Split(strings.TrimSpace(enginetest.Exec(t, w.url, `
		SELECT environment, workspace, application, workload, deployment_target, version, commit, if(cluster = 'quiet', 'unknown', status) AS said, uniqExact(destination)
		FROM deployments WHERE workload != '' GROUP BY ALL FORMAT TSV`)), "\n")
	counted := map[string]uint64{}
	for _, r := range collect(t, w.view.EnvironmentStates, schema.StateFilter{}, 1000) {
		for _, d := range r.Deployed {
			if r.Workload != "" { // the view knows no configurations
				counted[strings.Join([]string{r.Environment, r.Workspace, r.Application, r.Workload, r.DeploymentTarget, d.Version, d.Commit, string(d.Status)}, "\t")] += d.Clusters
			}
		}
	}
	var want []string
	for line, n := range counted {
		want = append(want, fmt.Sprint(line, "\t", n))
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the API (-) and the view (+):\n%s", d)
	}
	if len(got) < 10 {
		t.Errorf("the view has %d rows", len(got))
	}
}

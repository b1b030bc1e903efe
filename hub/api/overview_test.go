package api

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

func TestFiltersOfLists(t *testing.T) {
	state := schema.StateFilter{Environment: "dev", Workspace: "w", Application: "a", Workload: "l", DeploymentTarget: "t", ClusterType: "drone", Cluster: "drone-07", Status: "success"}
	names := schema.StateFilter{Environment: "dev", Workspace: "w", Application: "a", Workload: "l", DeploymentTarget: "t"}
	const five, three = "environment=dev&workspace=w&application=a&workload=l&deployment_target=t", "&cluster_type=drone&cluster=drone-07&status=success"
	const span = "&from=2026-11-20T09:00:00Z&to=2026-11-20T11:00:00%2B01:00"
	whole := schema.Span{From: at, To: at.Add(time.Hour)}
	cases := map[string]struct {
		reason, target string
		want           any
	}{
		"state":            {"all but time and all", "/api/v1/state?" + five + three, state},
		"history":          {"when it was received; times of any zone", "/api/v1/history?" + five + three + span, schema.HistoryFilter{StateFilter: state, Span: whole}},
		"history open":     {"either end may be left out", "/api/v1/history?to=2026-11-20T10:00:00Z", schema.HistoryFilter{Span: schema.Span{To: at.Add(time.Hour)}}},
		"history at once":  {"from may be to: nothing is asked for", "/api/v1/history?from=2026-11-20T09:00:00Z&to=2026-11-20T09:00:00Z", schema.HistoryFilter{Span: schema.Span{From: at, To: at}}},
		"discrepancies":    {"all", "/api/v1/discrepancies?" + five + three + "&all=true", schema.DiscrepancyFilter{StateFilter: state, All: true}},
		"no discrepancies": {"false is the default, said aloud", "/api/v1/discrepancies?all=false", schema.DiscrepancyFilter{}},
		"drift":            {"both", "/api/v1/drift?" + five + three + span + "&all=true", schema.DriftFilter{StateFilter: state, Span: whole, All: true}},
		"assignments": {"what the scheduler knows", "/api/v1/assignments?environment=dev&cluster_type=drone&deployment_target=t&workload=l&workspace=w", schema.AssignmentFilter{
			Environment: "dev", ClusterType: "drone", DeploymentTarget: "t", Workload: "l", Workspace: "w",
		}},
		"assignment": {"names may hold what a path escapes", "/api/v1/assignments/dev/large%2Fx/hello%20app", []string{"dev", "large/x", "hello app"}},
		"dora":       {"by name and time", "/api/v1/dora?" + five + span, schema.DORAFilter{StateFilter: names, Span: whole}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if w := f.do(t, request{target: tc.target, role: schema.RoleReader}); w.Code != http.StatusOK {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			got := f.hub.filter
			if got == nil {
				got = f.hub.states
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBadParametersOfLists(t *testing.T) {
	cases := map[string]struct {
		reason, target, parameter string
		code                      schema.Code
	}{
		"status":        {"nobody has it", "/api/v1/state?status=green", "status", schema.CodeInvalidParameter},
		"no time":       {"a date is no time", "/api/v1/history?from=2026-11-20", "from", schema.CodeInvalidParameter},
		"no zone":       {"whose nine o'clock?", "/api/v1/dora?to=2026-11-20T09:00:00", "to", schema.CodeInvalidParameter},
		"plus":          {"a plus sign is a space", "/api/v1/drift?to=2026-11-20T09:00:00+01:00", "to", schema.CodeInvalidParameter},
		"empty":         {"left out is not the same as empty", "/api/v1/history?to=", "to", schema.CodeInvalidParameter},
		"before time":   {"nothing is older than the hub", "/api/v1/history?from=0001-01-01T00:00:00Z", "from", schema.CodeInvalidParameter},
		"far away":      {"the store cannot hold it", "/api/v1/history?to=9999-01-01T00:00:00Z", "to", schema.CodeInvalidParameter},
		"turned around": {"the names are mixed up", "/api/v1/history?from=2026-11-21T00:00:00Z&to=2026-11-20T00:00:00Z", "from", schema.CodeInvalidParameter},
		"all":           {"yes is no boolean", "/api/v1/drift?all=yes", "all", schema.CodeInvalidParameter},
		"no all":        {"the history has all", "/api/v1/history?all=true", "all", schema.CodeUnknownParameter},
		"no span":       {"state is now", "/api/v1/state?from=2026-11-20T09:00:00Z", "from", schema.CodeUnknownParameter},
		"no cluster":    {"the figures are of targets", "/api/v1/dora?cluster=drone-07", "cluster", schema.CodeUnknownParameter},
		"limit":         {"as everywhere", "/api/v1/dora?limit=0", "limit", schema.CodeInvalidParameter},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.do(t, request{target: tc.target})
			if p := problem(t, w); p.Code != tc.code || p.Parameter != tc.parameter {
				t.Errorf("%d %s in %q, though %s", w.Code, p.Code, p.Parameter, tc.reason)
			}
			if len(f.hub.asked()) > 0 {
				t.Errorf("the hub was asked: %v", f.hub.asked())
			}
		})
	}
}

// A cursor belongs to the span that it was given for.
func TestCursorsOfSpans(t *testing.T) {
	f := newFixture(t)
	f.hub.next = []string{"a"}
	const target = "/api/v1/history?from=2026-11-20T09:00:00Z"
	c := nextCursor(t, f, target)
	if w := f.do(t, request{target: "/api/v1/history?from=2026-11-20T10:00:00Z&cursor=" + c}); problem(t, w).Code != schema.CodeInvalidCursor {
		t.Errorf("another span's cursor: %d", w.Code)
	}
	if w := f.do(t, request{target: "/api/v1/history?from=2026-11-20T10:00:00%2B01:00&cursor=" + c}); w.Code != http.StatusOK {
		t.Errorf("the same moment, written in another zone: %d %s", w.Code, w.Body)
	}
	c = nextCursor(t, f, "/api/v1/drift?all=true")
	if w := f.do(t, request{target: "/api/v1/drift?cursor=" + c}); problem(t, w).Code != schema.CodeInvalidCursor {
		t.Errorf("the cursor of all: %d", w.Code)
	}
}

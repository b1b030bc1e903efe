package cli

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

const (
	otherCommit = "9e04d1b2c3a4f5e60718293a4b5c6d7e8f90a1b2"
	oneConfig   = "a41f09c2b3d4e5f60718293a4b5c6d7e8f901a2b"
	otherConfig = "b52e1ac3d4e5f60718293a4b5c6d7e8f901a2b3c"
)

// fakeRows are what people ask of the history.
type fakeRows struct {
	environments  []schema.EnvironmentState
	history       []schema.HistoryEntry
	discrepancies []schema.Discrepancy
	drift         []schema.Drift
	dora          []schema.DORA
}

// newFakeRows makes rows around one that is as it should be.
func newFakeRows(row schema.ClusterState) fakeRows {
	row.Cluster, row.ConfigVersion = "drone-07", oneConfig
	target := schema.Target{Environment: "dev", Workspace: "kaizen", Application: "greeting", Workload: "hello", DeploymentTarget: "functional-test"}
	deployed := func(version, config string, status schema.Status, clusters uint64) schema.Deployed {
		return schema.Deployed{Version: version, ConfigVersion: config, Commit: testCommit, Status: status, Clusters: clusters}
	}
	changed := func(change func(*schema.ClusterState)) schema.ClusterState {
		r := row
		change(&r)
		return r
	}
	environment := func(name, scheduled, config string, d ...schema.Deployed) schema.EnvironmentVersion {
		return schema.EnvironmentVersion{Environment: name, ScheduledVersion: scheduled, ScheduledCommit: otherCommit, ScheduledConfigVersion: config, Deployed: d}
	}
	compared := func(target string, discrepant bool, environments ...schema.EnvironmentVersion) schema.Discrepancy {
		return schema.Discrepancy{Workspace: "kaizen", Application: "greeting", Workload: "hello", DeploymentTarget: target, Discrepant: discrepant, Environments: environments}
	}
	seconds := func(d time.Duration) *float64 { s := d.Seconds(); return &s }
	share := func(f float64) *float64 { return &f }
	return fakeRows{
		environments: []schema.EnvironmentState{
			{
				Target: target, Repo: testRepo, Ref: "dev", Path: "functional-test", ScheduledVersion: "1.2.0", ScheduledCommit: otherCommit, ScheduledConfigVersion: oneConfig,
				Deployed: []schema.Deployed{deployed("1.2.0", oneConfig, schema.StatusSuccess, 40), deployed("1.1.0", otherConfig, schema.StatusFailure, 8)},
			},
			{Target: schema.Target{Environment: "stage", Workload: "hello", DeploymentTarget: "load-test"}, Repo: testRepo, ScheduledVersion: otherCommit, Deployed: []schema.Deployed{}},
			{Repo: testRepo, Ref: "dev", Path: "redis", Deployed: []schema.Deployed{deployed(testCommit, "", schema.StatusUnknown, 1)}},
		},
		history: []schema.HistoryEntry{
			{ClusterState: row, Change: schema.ChangeReported, ObservedAt: testNow.Add(-3 * time.Minute), ReceivedAt: testNow.Add(-3*time.Minute + 1500*time.Millisecond), Rollback: true,
				CommitURL: "https://github.com/org/app/commit/" + testCommit, CompareURL: "https://github.com/org/app/compare/" + otherCommit + "..." + testCommit},
			{ClusterState: changed(func(r *schema.ClusterState) {
				r.Status, r.Version, r.Drifted = schema.StatusFailure, otherCommit, true
				r.Reason, r.Message = `=HYPERLINK("http://evil.example";"x")`, "-1 of 2, \"quoted\"\nsecond line\x1b[2J"
			}), Change: schema.ChangeLate, ObservedAt: testNow.Add(-time.Hour), ReceivedAt: testNow},
			{ClusterState: schema.ClusterState{Cluster: "drone-01", Reconciler: "HelmRelease/apps/redis", Status: schema.StatusUnknown}, Change: schema.ChangeRemoved},
		},
		discrepancies: []schema.Discrepancy{
			compared("functional-test", true,
				environment("dev", "1.2.0", oneConfig, deployed("1.2.0", oneConfig, schema.StatusSuccess, 40), deployed("1.1.0", oneConfig, schema.StatusFailure, 8)),
				environment("stage", "1.1.0", oneConfig, deployed("1.1.0", oneConfig, schema.StatusSuccess, 10), deployed("1.1.0", oneConfig, schema.StatusInProgress, 2)),
				environment("prod", "1.1.0", otherConfig, deployed("1.1.0", oneConfig, schema.StatusSuccess, 5), deployed("1.1.0", otherConfig, schema.StatusSuccess, 1))),
			compared("load-test", true, environment("dev", otherCommit, ""), environment("qa", "", "", deployed("1.0.0", "", schema.StatusSuccess, 3))),
			compared("uat-test", false, environment("dev", "1.2.0", oneConfig, deployed("1.2.0", oneConfig, schema.StatusSuccess, 1))),
			compared("half-known", false, environment("dev", "1.2.0", "", deployed("1.2.0", oneConfig, schema.StatusSuccess, 1), deployed("1.2.0", "", schema.StatusSuccess, 2))),
		},
		drift: []schema.Drift{
			{ClusterState: row, DesiredVersion: "1.2.0", DesiredCommit: otherCommit, BehindCommits: 3, BehindSeconds: 2*3600 + 5*60},
			{ClusterState: changed(func(r *schema.ClusterState) { r.Drifted = true }), DesiredVersion: "1.1.0", DesiredCommit: testCommit},
			{ClusterState: changed(func(r *schema.ClusterState) { r.Cluster = "drone-01" }), DesiredVersion: "1.2.0", DesiredCommit: otherCommit, BehindCommits: -1, BehindSeconds: 8 * 86400},
		},
		dora: []schema.DORA{
			{Target: target, From: testNow.AddDate(0, 0, -30), To: testNow, Deployments: 45, Commits: 25, FailedCommits: 3, Rollbacks: 1, DeploymentsPerDay: 1.5,
				LeadTimeP50: seconds(150 * time.Second), LeadTimeP95: seconds(26 * time.Hour), ChangeFailureRate: share(0.12), TimeToRestore: seconds(45 * time.Minute), Unrestored: 1},
			{Target: schema.Target{Environment: "prod", Workload: "hello"}, From: testNow.AddDate(0, 0, -30), To: testNow},
		},
	}
}

// TestRowsGolden holds what the commands over rows print and ask.
func TestRowsGolden(t *testing.T) {
	cases := map[string]struct {
		args     []string
		terminal bool
		call     string
	}{
		"summary.txt":       {args: []string{"status", "--summary"}, call: "GET /api/v1/state?limit=1000"},
		"summary.json":      {args: []string{"status", "--summary", "--environment", "dev", "-o", "json"}, call: "GET /api/v1/state?environment=dev&limit=1000"},
		"summary-limit.txt": {args: []string{"status", "--summary", "--limit", "2"}, call: "GET /api/v1/state?limit=3"},
		"history.txt":       {args: []string{"history"}, call: "GET /api/v1/history?limit=1000"},
		"history-colour.txt": {args: []string{"history", "--from", "24h", "--to", "90m"}, terminal: true,
			call: "GET /api/v1/history?from=2026-11-19T09%3A00%3A00Z&limit=1000&to=2026-11-20T07%3A30%3A00Z"},
		"history.yaml": {args: []string{"history", "--from", "2026-11-01T01:00:00+01:00", "--cluster", "drone-07", "-o", "yaml"},
			call: "GET /api/v1/history?cluster=drone-07&from=2026-11-01T00%3A00%3A00Z&limit=1000"},
		"history.csv":       {args: []string{"history", "-o", "csv", "--from", "30d"}, call: "GET /api/v1/history?from=2026-10-21T09%3A00%3A00Z&limit=1000"},
		"history-limit.csv": {args: []string{"history", "-o", "csv", "--limit", "1"}, call: "GET /api/v1/history?limit=2"},
		"compare.txt":       {args: []string{"compare", "--all"}, call: "GET /api/v1/discrepancies?all=true&limit=1000"},
		"compare.json":      {args: []string{"compare", "--workspace", "kaizen", "-o", "json"}, call: "GET /api/v1/discrepancies?limit=1000&workspace=kaizen"},
		"drift.txt":         {args: []string{"drift", "--status", "failure"}, call: "GET /api/v1/drift?limit=1000&status=failure"},
		"drift.yaml":        {args: []string{"drift", "--all", "--from", "1h", "-o", "yaml"}, call: "GET /api/v1/drift?all=true&from=2026-11-20T08%3A00%3A00Z&limit=1000"},
		"dora.txt":          {args: []string{"dora", "--from", "30d"}, call: "GET /api/v1/dora?from=2026-10-21T09%3A00%3A00Z&limit=1000"},
		"dora.json":         {args: []string{"dora", "--environment", "prod", "-o", "json"}, call: "GET /api/v1/dora?environment=prod&limit=1000"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := runner{terminal: c.terminal, env: map[string]string{"TERM": "xterm"}, now: func() time.Time { return testNow }}
			api := newFakeAPI()
			defer r.net.serve(api)()
			got := r.run(t.Context(), c.args...)
			wantCode(t, got, exitDone)
			golden(t, name, got.out+"--- stderr\n"+got.err)
			if diff := cmp.Diff([]string{c.call}, api.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoRows prints the frame of a list alone.
func TestNoRows(t *testing.T) {
	for _, args := range [][]string{{"status", "--summary"}, {"history"}, {"compare"}, {"drift"}, {"dora"}} {
		for _, format := range []string{"table", "json"} {
			t.Run(strings.Join(args, " ")+" "+format, func(t *testing.T) {
				var r runner
				api := newFakeAPI()
				api.fakeRows = fakeRows{}
				defer r.net.serve(api)()
				got := r.run(t.Context(), append(args, "-o", format)...)
				wantCode(t, got, exitDone)
				if lines := strings.Count(got.out, "\n"); format == "table" && lines != 1 || format == "json" && !strings.Contains(got.out, `"items": []`) {
					t.Errorf("got:\n%s", got.out)
				}
			})
		}
	}
}

// TestCSVKeepsTexts reads an export back and compares it with the JSON.
func TestCSVKeepsTexts(t *testing.T) {
	var r runner
	api := newFakeAPI()
	defer r.net.serve(api)()
	plain, exported := r.run(t.Context(), "history", "-o", "json"), r.run(t.Context(), "history", "-o", "csv")
	wantCode(t, plain, exitDone)
	wantCode(t, exported, exitDone)
	if strings.Count(exported.out, "\n") != strings.Count(exported.out, "\r\n") {
		t.Error("a line does not end in CR LF")
	}
	var items list[map[string]any]
	if err := json.Unmarshal([]byte(plain.out), &items); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(strings.NewReader(exported.out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != len(items.Items)+1 {
		t.Fatalf("%d records of %d rows", len(records), len(items.Items))
	}
	for i, item := range items.Items {
		if len(records[0]) != len(item) {
			t.Fatalf("%d columns of %d members", len(records[0]), len(item))
		}
		for j, name := range records[0] {
			want := fmt.Sprint(item[name])
			got := records[i+1][j]
			switch {
			case want == "0001-01-01T00:00:00Z":
				want = ""
			case strings.HasPrefix(want, "="):
				want = "'" + want
			case strings.Contains(want, "\x1b"):
				want = "'" + strings.ReplaceAll(want, "\x1b", "")
			}
			if got != want {
				t.Errorf("row %d, %s: %q, want %q", i, name, got, want)
			}
		}
	}
}

// TestFormulas holds which cells get a quote.
func TestFormulas(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "1.0.0": "1.0.0", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "'quoted": "'quoted",
		"a=b": "a=b", " =1": " =1", "\x00=1": "'=1", "\r=1": "'=1", "ü": "ü", "a\nb": "a\nb",
	} {
		if got := cell(reflect.ValueOf(in)); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// TestExportThatBreaks keeps whole rows of what came, and fails.
func TestExportThatBreaks(t *testing.T) {
	var r runner
	api := newFakeAPI()
	for len(api.history) < 40 {
		api.history = append(api.history, api.history...)
	}
	api.refuse = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("cursor") != "30" {
			return false
		}
		problem(w, http.StatusServiceUnavailable, schema.CodeUnavailable, "try again")
		return true
	}
	defer r.net.serve(api)()
	got := r.run(t.Context(), "history", "-o", "csv")
	wantCode(t, got, exitNoAnswer)
	records, err := csv.NewReader(strings.NewReader(got.out)).ReadAll()
	if err != nil || len(records) != 31 || !strings.Contains(got.err, "try again") {
		t.Errorf("%d records, %v\n%s", len(records), err, got.err)
	}
}

// TestWhen reads times.
func TestWhen(t *testing.T) {
	for text, want := range map[string]time.Time{
		"": {}, "24h": testNow.Add(-24 * time.Hour), "0s": testNow, "1h30m": testNow.Add(-90 * time.Minute), "7d": testNow.AddDate(0, 0, -7),
		"2026-11-20T10:00:00+01:00": testNow, "2026-11-20T09:00:00.5Z": testNow.Add(500 * time.Millisecond),
	} {
		if got, err := when("from", text, testNow); err != nil || !got.Equal(want) {
			t.Errorf("%q is %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"24", "h", "d", "-1d", "1.5d", "70000d", "-1h", "2026-11-20", "now", "1h "} {
		if got, err := when("from", text, testNow); err == nil || exitCode(err) != exitUsage {
			t.Errorf("%q is %s, %v", text, got, err)
		}
	}
}

// TestSpan writes durations in two units.
func TestSpan(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "", -5: "", 0.4: "", 12: "12s", 59.9: "1m", 60: "1m", 61: "1m1s", 3600: "1h", 7500: "2h5m", 3659: "1h", 86400: "1d", 90000: "1d1h", 86400 * 400: "400d",
	} {
		if got := span(seconds); got != want {
			t.Errorf("%v is %q, want %q", seconds, got, want)
		}
	}
}

// TestAtMost ends rows at an error and at the limit.
func TestAtMost(t *testing.T) {
	rows := func(n int, err error) func(func(int, error) bool) {
		return func(yield func(int, error) bool) {
			for i := range n {
				if !yield(i, nil) {
					return
				}
			}
			if err != nil {
				yield(0, err)
			}
		}
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		rows  int
		err   error
		limit int
		want  int
		more  bool
	}{
		"all":              {rows: 5, want: 5},
		"below":            {rows: 2, limit: 3, want: 2},
		"exactly":          {rows: 3, limit: 3, want: 3},
		"more":             {rows: 4, limit: 3, want: 3, more: true},
		"error":            {rows: 2, err: broken, limit: 3, want: 2},
		"error at the end": {rows: 3, err: broken, limit: 3, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			more, n := false, 0
			var got error
			for _, err := range atMost(rows(c.rows, c.err), c.limit, &more) {
				if err != nil {
					got = err
					continue
				}
				n++
			}
			if n != c.want || more != c.more || !errors.Is(got, c.err) {
				t.Errorf("%d rows, more %t, error %v", n, more, got)
			}
		})
	}
}

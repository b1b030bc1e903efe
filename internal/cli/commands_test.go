package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/landfall-hub/landfall/schema"
)

var testNow = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// fakeAPI answers lists in pages of two, and keeps what was written.
type fakeAPI struct {
	clusters []schema.Cluster
	states   []schema.ClusterState
	tokens   []schema.Token
	fakeRows
	// calls are method, path and query of each request; bodies what was sent.
	calls  []string
	bodies []string
	// refuse, where it is set, answers everything.
	refuse func(http.ResponseWriter, *http.Request) bool
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	cursor := q.Get("cursor")
	q.Del("cursor")
	call := r.Method + " " + r.URL.Path
	if cursor == "" {
		f.calls = append(f.calls, strings.TrimSuffix(call+"?"+q.Encode(), "?"))
	}
	if b, err := io.ReadAll(r.Body); err == nil && len(b) > 0 {
		f.bodies = append(f.bodies, string(b))
	}
	if f.refuse != nil && f.refuse(w, r) {
		return
	}
	switch call {
	case "GET /api/v1/clusters":
		pageOf(w, f.clusters, cursor)
	case "GET /api/v1/state/clusters":
		pageOf(w, f.states, cursor)
	case "GET /api/v1/state":
		pageOf(w, f.environments, cursor)
	case "GET /api/v1/history":
		pageOf(w, f.history, cursor)
	case "GET /api/v1/discrepancies":
		pageOf(w, f.discrepancies, cursor)
	case "GET /api/v1/drift":
		pageOf(w, f.drift, cursor)
	case "GET /api/v1/dora":
		pageOf(w, f.dora, cursor)
	case "GET /api/v1/tokens":
		pageOf(w, f.tokens, cursor)
	case "GET /api/v1/clusters/drone-07":
		write(w, http.StatusOK, f.clusters[0])
	case "DELETE /api/v1/clusters/drone-07", "DELETE /api/v1/tokens/7f3a9c":
		w.WriteHeader(http.StatusNoContent)
	case "POST /api/v1/tokens":
		write(w, http.StatusCreated, schema.Token{ID: "7f3a9c", Role: schema.RoleAgent, Cluster: "drone-07", CreatedAt: testNow, Secret: "lf_7f3a9c_s3cr3t"})
	default:
		problem(w, http.StatusNotFound, schema.CodeNotFound, "no cluster or token of that name")
	}
}

func pageOf[T any](w http.ResponseWriter, items []T, cursor string) {
	from, _ := strconv.Atoi(cursor)
	to := min(from+2, len(items))
	answer := map[string]any{"items": items[from:to]}
	if to < len(items) {
		answer["next_cursor"] = strconv.Itoa(to)
	}
	write(w, http.StatusOK, answer)
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func newFakeAPI() *fakeAPI {
	ago := func(d time.Duration) time.Time { return testNow.Add(-d) }
	row := schema.ClusterState{
		ClusterType: "drone", Environment: "dev", Workspace: "kaizen", Application: "greeting", Workload: "hello", DeploymentTarget: "functional-test",
		Reconciler: "Kustomization/flux-system/hello", Repo: testRepo, Ref: "dev", Path: "functional-test", Version: "1.1.0", Commit: testCommit,
		Status: schema.StatusSuccess, Reason: "ReconciliationSucceeded", Since: ago(3 * time.Minute), LastSeen: ago(4 * time.Second),
	}
	at := func(cluster string, change func(*schema.ClusterState)) schema.ClusterState {
		r := row
		r.Cluster = cluster
		change(&r)
		return r
	}
	return &fakeAPI{
		fakeRows: newFakeRows(row),
		clusters: []schema.Cluster{
			{
				Name: "drone-07", Kind: schema.ClusterKubernetes, Status: schema.ClusterSilent,
				Memberships: []schema.Membership{{Environment: "stage", Type: "drone"}, {Environment: "dev", Type: "drone"}},
				Labels:      map[string]string{"tier": "canary", "region": "no"}, ReportsFor: []string{"edge-2", "edge-1"}, HeartbeatInterval: schema.DefaultHeartbeatInterval,
				AgentVersion: "0.1.0", Epoch: 7, Sequence: 42, UnlistedKinds: []string{"HelmRelease"},
				RegisteredAt: ago(75 * time.Hour), LastSeen: ago(6 * time.Minute),
				Counts: map[schema.Status]uint64{"success": 48, "failure": 2, "in_progress": 1},
			},
			{Name: "host-1", Kind: schema.ClusterHost, Status: schema.ClusterLive, RegisteredAt: ago(time.Hour), LastSeen: ago(time.Second), HeartbeatInterval: schema.DefaultHeartbeatInterval},
			{Name: "a-new-one", Kind: schema.ClusterKubernetes, Status: schema.ClusterLive, RegisteredAt: ago(time.Second)},
		},
		states: []schema.ClusterState{
			at("drone-07", func(*schema.ClusterState) {}),
			at("drone-02", func(r *schema.ClusterState) {
				r.Status, r.Reason, r.Drifted = schema.StatusFailure, "Health\x1b[2JCheckFailed\nof \u202eDeployment", true
			}),
			at("drone-01", func(r *schema.ClusterState) {
				*r = schema.ClusterState{Cluster: r.Cluster, Reconciler: "HelmRelease/apps/redis", Status: schema.StatusUnknown, Reason: strings.Repeat("long ", 80)}
			}),
		},
		tokens: []schema.Token{
			{ID: "b2", Name: "app pipelines", Role: schema.RolePipeline, CreatedAt: ago(time.Hour), Secret: "lf_b2_never"},
			{ID: "a1", Name: "", Role: schema.RoleAgent, Cluster: "drone-07", CreatedAt: ago(50 * time.Hour)},
			{ID: "c3", Name: "me", Role: schema.RoleAdmin, CreatedAt: ago(time.Minute)},
		},
	}
}

// TestCommandsGolden holds what the listing commands print.
func TestCommandsGolden(t *testing.T) {
	cases := map[string]struct {
		args     []string
		terminal bool
		env      map[string]string
		call     string
	}{
		"clusters.txt":          {args: []string{"clusters"}, call: "GET /api/v1/clusters?limit=1000"},
		"clusters-list.json":    {args: []string{"clusters", "list", "--environment", "dev", "--cluster-type", "drone", "--status", "silent", "-o", "json"}, call: "GET /api/v1/clusters?cluster_type=drone&environment=dev&limit=1000&status=silent"},
		"clusters-show.txt":     {args: []string{"clusters", "show", "drone-07"}, call: "GET /api/v1/clusters/drone-07"},
		"clusters-show.yaml":    {args: []string{"clusters", "show", "drone-07", "-o", "yaml"}, call: "GET /api/v1/clusters/drone-07"},
		"status.txt":            {args: []string{"status"}, call: "GET /api/v1/state/clusters?limit=1000"},
		"status-filtered.yaml":  {args: []string{"status", "--environment", "dev", "--workspace", "w", "--application", "a", "--workload", "l", "--deployment-target", "t", "--cluster-type", "y", "--cluster", "c", "--status", "in_progress", "-o", "yaml"}, call: "GET /api/v1/state/clusters?application=a&cluster=c&cluster_type=y&deployment_target=t&environment=dev&limit=1000&status=in_progress&workload=l&workspace=w"},
		"status-colour.txt":     {args: []string{"status"}, terminal: true, env: map[string]string{"TERM": "xterm"}, call: "GET /api/v1/state/clusters?limit=1000"},
		"status-limit.txt":      {args: []string{"status", "--limit", "2"}, call: "GET /api/v1/state/clusters?limit=3"},
		"tokens.txt":            {args: []string{"tokens", "list"}, call: "GET /api/v1/tokens?limit=1000"},
		"tokens.json":           {args: []string{"tokens", "list", "-o", "json"}, call: "GET /api/v1/tokens?limit=1000"},
		"tokens-create.txt":     {args: []string{"tokens", "create", "--role", "agent", "--cluster", "drone-07", "--name", "x"}, call: "POST /api/v1/tokens"},
		"tokens-create.json":    {args: []string{"tokens", "create", "--role", "agent", "-o", "json"}, call: "POST /api/v1/tokens"},
		"tokens-revoke.txt":     {args: []string{"tokens", "revoke", "7f3a9c"}, call: "DELETE /api/v1/tokens/7f3a9c"},
		"clusters-decommission": {args: []string{"clusters", "decommission", "drone-07", "--yes"}, call: "DELETE /api/v1/clusters/drone-07"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := runner{terminal: c.terminal, env: c.env, now: func() time.Time { return testNow }}
			api := newFakeAPI()
			defer r.net.serve(api)()
			got := r.run(t.Context(), c.args...)
			wantCode(t, got, exitDone)
			golden(t, name, got.out+"--- stderr\n"+got.err)
			if diff := cmp.Diff([]string{c.call}, api.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if strings.HasSuffix(name, ".txt") && strings.ContainsAny(strings.NewReplacer("\x1b[0m", "", "\x1b[3", "", "\x1b[9", "").Replace(got.out), "\x1b\u202e") {
				t.Errorf("a cluster's text steers the terminal: %q", got.out)
			}
		})
	}
}

// TestCommandsExit holds the exit codes of commands that ask once.
func TestCommandsExit(t *testing.T) {
	refuse := func(status int, code schema.Code) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { problem(w, status, code, "no"); return true }
	}
	cases := map[string]struct {
		reason string
		refuse func(http.ResponseWriter, *http.Request) bool
		want   int
	}{
		"unauthenticated": {refuse: refuse(401, schema.CodeUnauthenticated), want: exitNoAnswer},
		"forbidden":       {refuse: refuse(403, schema.CodeForbidden), want: exitNoAnswer},
		"bad input":       {refuse: refuse(400, schema.CodeInvalidParameter), want: exitUsage},
		"not found":       {refuse: refuse(404, schema.CodeNotFound), want: exitFailed},
		"gone":            {refuse: refuse(410, schema.CodeDecommissioned), want: exitFailed},
		"conflict":        {refuse: refuse(409, schema.CodeConflict), want: exitFailed},
		"unavailable":     {refuse: refuse(503, schema.CodeUnavailable), want: exitNoAnswer},
		"fault":           {refuse: refuse(500, schema.CodeInternal), want: exitNoAnswer},
		"another site":    {reason: "the hub was never reached", refuse: answer(404, "text/html", htmlPage), want: exitNoAnswer},
		"a page with 200": {reason: "a page is no success, least of all for a deletion", refuse: answer(200, "text/html", htmlPage), want: exitNoAnswer},
	}
	for name, c := range cases {
		for _, args := range [][]string{{"status"}, {"status", "--summary"}, {"history"}, {"history", "-o", "csv"}, {"compare"}, {"drift"}, {"dora"}, {"clusters"}, {"clusters", "show", "x"}, {"clusters", "decommission", "x", "--yes"}, {"tokens", "list"}, {"tokens", "create", "--role", "admin"}, {"tokens", "revoke", "x"}} {
			t.Run(name+"/"+strings.Join(args, " "), func(t *testing.T) {
				var r runner
				api := newFakeAPI()
				api.refuse = c.refuse
				defer r.net.serve(api)()
				got := r.run(t.Context(), args...)
				wantCode(t, got, c.want)
				if got.out != "" || !strings.HasPrefix(got.err, "landfall: ") {
					t.Errorf("want words on stderr alone:\n%s%s", got.out, got.err)
				}
			})
		}
	}
	var r runner
	wantCode(t, r.run(t.Context(), "status"), exitNoAnswer)
}

// TestDecommissionAsks holds the question before a decommissioning.
func TestDecommissionAsks(t *testing.T) {
	for name, c := range map[string]struct {
		in    string
		want  int
		calls int
	}{
		"y":   {in: "y\n", want: exitDone, calls: 1},
		"Yes": {in: "Yes\n", want: exitDone, calls: 1},
		"n":   {in: "n\n", want: exitFailed},
		"":    {in: "\n", want: exitFailed},
		"end": {in: "", want: exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			r := runner{terminal: true, in: strings.NewReader(c.in)}
			api := newFakeAPI()
			defer r.net.serve(api)()
			got := r.run(t.Context(), "clusters", "decommission", "drone-07")
			wantCode(t, got, c.want)
			if len(api.calls) != c.calls || !strings.Contains(got.err, "Decommission drone-07?") {
				t.Errorf("calls %v\n%s", api.calls, got.err)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		in, hold := io.Pipe()
		defer hold.Close()
		r := runner{terminal: true, in: in}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantCode(t, r.run(ctx, "clusters", "decommission", "drone-07"), exitFailed)
	})
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestUnwritableResult fails when the result could not be written.
func TestUnwritableResult(t *testing.T) {
	for name, args := range map[string][]string{"token": {"tokens", "create", "--role", "admin"}, "list": {"clusters"}, "export": {"history", "-o", "csv"}, "version": {"version"}} {
		t.Run(name, func(t *testing.T) {
			var r runner
			defer r.net.serve(newFakeAPI())()
			var errs strings.Builder
			transport := &http.Transport{DialContext: r.net.dial}
			defer transport.CloseIdleConnections()
			a := &app{
				env: func(string) string { return "" }, now: time.Now, http: &http.Client{Transport: transport},
				streams: Streams{In: strings.NewReader(""), Out: brokenWriter{}, Err: &errs},
			}
			if code := a.run(t.Context(), append(args, "--hub", "http://hub.test")); code != exitFailed {
				t.Errorf("exit code %d\n%s", code, errs.String())
			}
			if strings.Contains(errs.String(), "s3cr3t") {
				t.Errorf("stderr holds the secret:\n%s", errs.String())
			}
		})
	}
}

// TestHelpGolden holds the help of every command.
func TestHelpGolden(t *testing.T) {
	for _, words := range [][]string{{}, {"gate"}, {"status"}, {"history"}, {"compare"}, {"drift"}, {"dora"}, {"clusters"}, {"clusters", "list"}, {"clusters", "show"}, {"clusters", "decommission"}, {"schedule"}, {"explain"}, {"validate"}, {"new"}, {"new", "policy"}, {"tokens"}, {"tokens", "create"}, {"tokens", "list"}, {"tokens", "revoke"}, {"version"}} {
		t.Run(strings.Join(words, " "), func(t *testing.T) {
			var r runner
			got := r.run(t.Context(), append(words, "--help")...)
			wantCode(t, got, exitDone)
			golden(t, "help"+strings.Join(append([]string{""}, words...), "-")+".txt", got.out)
		})
	}
}

// TestCompletion asks for the scripts and for what a shell would ask.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var r runner
		got := r.run(t.Context(), "completion", shell)
		wantCode(t, got, exitDone)
		if !strings.Contains(got.out, "landfall") {
			t.Errorf("the script for %s is empty", shell)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		cmd := exec.Command(path, "-n")
		cmd.Stdin = strings.NewReader(got.out)
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s does not read its script: %v\n%s", shell, err, b)
		}
	}
	for line, want := range map[string][]string{
		"ga":                    {"gate"},
		"gate --min":            {"--min-compliant", "--min-success-time"},
		"gate --unknown ":       {"block", "exclude"},
		"gate --zero-targets ":  {"deny", "allow", "require:"},
		"tokens create --role":  {"--role"},
		"tokens create --role ": {"agent", "reader", "pipeline", "admin"},
		"status -o ":            {"table", "json", "yaml"},
		"history -o ":           {"table", "json", "yaml", "csv"},
		"history --f":           {"--from"},
		"drift --status s":      names(schema.Statuses()),
		"status --status s":     names(schema.Statuses()),
		"clusters ":             {"decommission", "list", "show"},
	} {
		var r runner
		got := r.run(t.Context(), append([]string{"__complete"}, strings.Split(line, " ")...)...)
		wantCode(t, got, exitDone)
		var words []string
		for _, l := range strings.Split(got.out, "\n") {
			if word, _, _ := strings.Cut(l, "\t"); word != "" && !strings.HasPrefix(word, ":") && !strings.HasPrefix(word, "Completion ended") {
				words = append(words, word)
			}
		}
		if diff := cmp.Diff(want, words); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}

// TestVersion prints the version of the build.
func TestVersion(t *testing.T) {
	r := runner{version: "1.2.3"}
	got := r.run(t.Context(), "version")
	wantCode(t, got, exitDone)
	if !strings.HasPrefix(got.out, "landfall 1.2.3 (") {
		t.Errorf("got %q", got.out)
	}
	var v versionInfo
	if err := json.Unmarshal([]byte(r.run(t.Context(), "version", "-o", "json").out), &v); err != nil || v.Version != "1.2.3" || v.Go == "" {
		t.Errorf("json: %v %+v", err, v)
	}
	r.version = ""
	if got := r.run(t.Context(), "version"); got.code != 0 || strings.Contains(got.out, "landfall  ") {
		t.Errorf("got %+v", got)
	}
}

// TestYAMLKeepsValues reads YAML output back and compares it with the JSON.
func TestYAMLKeepsValues(t *testing.T) {
	in := map[string]any{
		"no": "yes", "text": "12:30", "number": "007", "empty": "", "null": "null", "date": "2026-11-20", "e": "1e3",
		"big": uint64(18446744073709551615), "epoch": 7, "share": 0.5, "list": []string{}, "none": nil, "lines": "a\nb\x1b", "tilde": "~",
	}
	var y, j strings.Builder
	if err := writeYAML(&y, in); err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(&j, in); err != nil {
		t.Fatal(err)
	}
	var back, want any
	if err := yaml.Unmarshal([]byte(y.String()), &back); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	for text, into := range map[string]*any{string(b): &got, j.String(): &want} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-json +yaml):\n%s\n%s", diff, y.String())
	}
	for _, word := range []string{`"no": "yes"`, `text: "12:30"`} {
		if !strings.Contains(y.String(), word) {
			t.Errorf("older readers take %s for something else:\n%s", word, y.String())
		}
	}
}

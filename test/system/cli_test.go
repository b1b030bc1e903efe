package system

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/internal/polltest"
	"github.com/landfall-hub/landfall/schema"
)

// landfall runs the command line and returns its exit code and both outputs.
func landfall(t testing.TB, hub string, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programs.cli, args...)
	cmd.Env = append([]string{"LANDFALL_HUB=" + hub}, env...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	return exitCode(t, cmd.Run()), out.String(), said.String()
}

func TestTheCommandLineTellsPipelinesByItsExitCode(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	a.lists(t,
		at(kustomization("good", repo, "good"), commit(1), schema.StatusSuccess),
		at(kustomization("bad", repo, "bad"), commit(1), schema.StatusFailure),
		at(kustomization("slow", repo, "slow"), commit(1), schema.StatusInProgress))
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + nobody.Addr().String()
	if err := nobody.Close(); err != nil {
		t.Fatal(err)
	}
	all := func(more ...string) []string {
		return append([]string{"gate", "--repo", repo, "--ref", branch, "--commit", commit(1)}, more...)
	}
	gate := func(path string, more ...string) []string { return all(append(more, "--path", path)...) }
	for name, c := range map[string]struct {
		hub  string
		args []string
		code int
		// said is part of the output or of what is told about it.
		said string
	}{
		"passed":                  {args: gate("good"), code: 0, said: "passed"},
		"passed, by a policy":     {args: all("--min-compliant", "30%", "--max-failures", "1"), code: 0, said: "passed"},
		"failed":                  {args: gate("bad"), code: 1, said: "BuildFailed"},
		"failed, not waited for":  {args: gate("bad", "--no-wait"), code: 1, said: "failed"},
		"a short commit":          {args: []string{"gate", "--repo", repo, "--commit", "abc123"}, code: 2, said: "full commit id"},
		"a policy that is none":   {args: gate("good", "--min-compliant", "120%"), code: 2, said: "min-compliant"},
		"no command":              {args: nil, code: 2, said: "gate"},
		"still waiting":           {args: gate("slow", "--timeout", "1s"), code: 3, said: "waiting"},
		"waiting, not waited for": {args: gate("slow", "--no-wait"), code: 3, said: "waiting"},
		"nobody to follow":        {args: gate("none", "--no-wait"), code: 3, said: "waiting"},
		"no hub":                  {hub: address, args: gate("good", "--timeout", "1s"), code: 4, said: address},
		"no hub for a list":       {hub: address, args: []string{"clusters"}, code: 4, said: address},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := h.url
			if c.hub != "" {
				hub = c.hub
			}
			code, stdout, stderr := landfall(t, hub, nil, c.args...)
			if code != c.code || !strings.Contains(stdout+stderr, c.said) {
				t.Errorf("want %d and %q, got %d\n%s\n%s", c.code, c.said, code, stdout, stderr)
			}
		})
	}
}

func TestTheCommandLineFollowsAGateUntilItPasses(t *testing.T) {
	t.Parallel()
	h, repo := newHub(t), newRepo()
	a := newAgent(t, h)
	app := kustomization("app", repo, "app")
	a.lists(t, at(app, commit(1), schema.StatusInProgress))
	type end struct {
		code           int
		stdout, stderr string
	}
	ended := make(chan end, 1)
	go func() {
		code, stdout, stderr := landfall(t, h.url, nil, "gate", "--repo", repo, "--ref", branch, "--commit", commit(1), "-o", "json", "--timeout", "1m")
		ended <- end{code, stdout, stderr}
	}()
	polltest.Until(t, "the gate waits", func() bool { return gauge(t, h, "landfall_gate_watchers") == 1 })
	// It outlives a restart of the hub.
	if err := h.stop(t); err != nil {
		t.Fatal(err)
	}
	h.start(t)
	a.says(t, at(app, commit(1), schema.StatusSuccess))
	e := <-ended
	var v schema.Verdict
	if err := json.Unmarshal([]byte(e.stdout), &v); err != nil || e.code != 0 || v.State != schema.Passed || v.Commit != commit(1) {
		t.Errorf("want 0 and a verdict that passed, got %d, %v\n%s\n%s", e.code, err, e.stdout, e.stderr)
	}
}

func TestTheCommandLineShowsWhatTheHubKnows(t *testing.T) {
	t.Parallel()
	g, repo := newGuarded(t), newRepo()
	a := &agent{client: g.as(t, g.agent), cluster: g.cluster}
	a.register(t, func(r *schema.Registration) { r.Environment, r.Type = "stage", "lighthouse" })
	a.lists(t, at(kustomization("app", repo, "app"), commit(1), schema.StatusFailure))
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, g.admin+"\n")
	as := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := landfall(t, g.url, nil, append(args, "--token-file", file)...)
		if code != 0 {
			t.Errorf("%v: %d\n%s\n%s", args, code, stdout, stderr)
		}
		return stdout
	}
	for _, table := range []string{as("clusters"), as("status", "--environment", "stage", "--status", "failure"), as("clusters", "show", g.cluster), as("status", "-o", "yaml")} {
		if !strings.Contains(table, g.cluster) {
			t.Errorf("the table does not name %s:\n%s", g.cluster, table)
		}
	}
	var states struct{ Items []schema.ClusterState }
	if err := json.Unmarshal([]byte(as("status", "-o", "json")), &states); err != nil || len(states.Items) != 1 || states.Items[0].Status != schema.StatusFailure {
		t.Errorf("want one row that failed: %+v, %v", states, err)
	}
	for _, table := range []string{as("history", "--cluster", g.cluster, "--from", "1h"), as("history", "-o", "csv"), as("drift", "--all"), as("status", "--summary", "--environment", "stage")} {
		if !strings.Contains(table, g.cluster) && !strings.Contains(table, string(schema.StatusFailure)) {
			t.Errorf("the table does not tell of the failure on %s:\n%s", g.cluster, table)
		}
	}
	for _, empty := range [][]string{{"compare"}, {"dora", "--from", "7d"}} { // nobody says what the application is called
		var rows struct{ Items []any }
		if err := json.Unmarshal([]byte(as(append(empty, "-o", "json")...)), &rows); err != nil || rows.Items == nil || len(rows.Items) > 0 {
			t.Errorf("%v: want an empty list: %+v, %v", empty, rows, err)
		}
	}
	secret := strings.TrimSpace(as("tokens", "create", "--role", "reader", "--name", "screens"))
	if _, stdout, stderr := landfall(t, g.url, []string{"LANDFALL_TOKEN=" + secret}, "clusters"); !strings.Contains(stdout, g.cluster) {
		t.Errorf("a reader's token shows no clusters: %s %s", stdout, stderr)
	}
	if code, _, stderr := landfall(t, g.url, []string{"LANDFALL_TOKEN=" + secret}, "tokens", "list"); code != 4 {
		t.Errorf("want access refused to be 4, got %d: %s", code, stderr)
	}
	if code, _, stderr := landfall(t, g.url, nil, "clusters"); code != 4 || !strings.Contains(stderr, "unauthenticated") {
		t.Errorf("want a missing token to be 4, got %d: %s", code, stderr)
	}
	var tokens struct{ Items []schema.Token }
	if err := json.Unmarshal([]byte(as("tokens", "list", "-o", "json")), &tokens); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(tokens.Items, func(k schema.Token) bool { return k.Name == "screens" })
	if i < 0 {
		t.Fatalf("the new token is not listed: %+v", tokens)
	}
	as("tokens", "revoke", tokens.Items[i].ID)
	if status, _ := request(t, http.MethodGet, g.url+"/api/v1/clusters", secret, ""); status != http.StatusUnauthorized {
		t.Errorf("the revoked token is answered with %d", status)
	}
	as("clusters", "decommission", g.cluster, "--yes")
	if table := as("clusters"); strings.Contains(table, g.cluster) {
		t.Errorf("a decommissioned cluster is listed:\n%s", table)
	}
	if code, stdout, _ := landfall(t, g.url, nil, "version"); code != 0 || !strings.HasPrefix(stdout, "landfall system-test (") {
		t.Errorf("version: %d %q", code, stdout)
	}
}

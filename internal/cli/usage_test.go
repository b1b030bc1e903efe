package cli

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/landfall-hub/landfall/schema"
)

// TestGateUsage holds every complaint about flags against code 2 and a remedy.
func TestGateUsage(t *testing.T) {
	cases := map[string]struct {
		args []string
		says string
	}{
		"no repo":         {[]string{"gate", "--commit", testCommit}, "--repo is missing"},
		"no commit":       {[]string{"gate", "--repo", testRepo}, "--commit is missing"},
		"short commit":    {gateArgs("--commit", "5ce0d1a"), "git rev-parse"},
		"branch":          {gateArgs("--commit", "main"), "git rev-parse"},
		"empty ref":       {gateArgs("--ref", ""), "--ref is empty"},
		"empty path":      {gateArgs("--path", ""), "--path is empty"},
		"path climbs":     {gateArgs("--path", "../x"), "--path: the path climbs out"},
		"no repo URL":     {gateArgs("--repo", "nonsense"), "--repo: not a repository URL"},
		"zero timeout":    {gateArgs("--timeout", "0s"), "--timeout is 0s"},
		"bare timeout":    {gateArgs("--timeout", "15"), "--timeout"},
		"percent":         {gateArgs("--min-compliant", "150%"), "--min-compliant"},
		"failures":        {gateArgs("--max-failures", "-1"), "--max-failures"},
		"empty mandatory": {gateArgs("--mandatory", ""), "--mandatory is empty"},
		"zero targets":    {gateArgs("--zero-targets", "maybe"), "deny, allow or require:N"},
		"unknown":         {gateArgs("--unknown", "allow"), "block or exclude"},
		"children":        {gateArgs("--children", "no"), "require or ignore"},
		"deadline":        {gateArgs("--progress-deadline", "0s"), "--progress-deadline"},
		"unknown flag":    {gateArgs("--colour"), "unknown flag: --colour"},
		"argument":        {gateArgs("dev"), "unknown command"},
		"no command":      {nil, "say which command"},
		"unknown command": {[]string{"gates"}, "unknown command"},
		"output":          {gateArgs("-o", "xml"), "table, json or yaml"},
		"hub":             {gateArgs("--hub", "hub.example:8080"), "scheme and host"},
		"password in URL": {gateArgs("--hub", "https://me:hunter2@hub.example"), "user name"},
		"token file":      {gateArgs("--token-file", "/nonexistent/token"), "no such file"},
		"no token file":   {gateArgs("--token-file", ""), "--token-file is empty"},
		"no subcommand":   {[]string{"tokens"}, "create, list, revoke"},
		"no role":         {[]string{"tokens", "create"}, "--role is missing"},
		"bad role":        {[]string{"tokens", "create", "--role", "root"}, "agent, reader, pipeline or admin"},
		"cluster role":    {[]string{"tokens", "create", "--role", "admin", "--cluster", "x"}, "--role agent only"},
		"no token":        {[]string{"tokens", "revoke"}, "name one token"},
		"a secret":        {[]string{"tokens", "revoke", "lf_7f3a_hunter2"}, "not its id"},
		"two names":       {[]string{"clusters", "show", "a", "b"}, "name one cluster"},
		"a bad name":      {[]string{"clusters", "show", "../x"}, "a cluster's name"},
		"not asked":       {[]string{"clusters", "decommission", "a"}, "--yes"},
		"cluster status":  {[]string{"clusters", "list", "--status", "up"}, "live, silent or decommissioned"},
		"row status":      {[]string{"status", "--status", "up"}, "success, failure"},
		"limit":           {[]string{"status", "--limit", "0"}, "1 or more"},
		"history status":  {[]string{"history", "--status", "up"}, "success, failure"},
		"CSV of a state":  {[]string{"status", "-o", "csv"}, "table, json or yaml, not"},
		"history format":  {[]string{"history", "-o", "xml"}, "table, json, yaml or csv, not"},
		"from nonsense":   {[]string{"history", "--from", "yesterday"}, "--from is a time such as 2026-11-20T09:00:00Z"},
		"to nonsense":     {[]string{"dora", "--to", "7"}, "--to is a time such as"},
		"from the future": {[]string{"history", "--from", "-24h"}, "how long ago"},
		"days of nothing": {[]string{"dora", "--from", "d"}, "how long ago"},
		"too many days":   {[]string{"dora", "--from", "99999999d"}, "how long ago"},
		"backwards":       {[]string{"history", "--from", "1h", "--to", "2h"}, "which is not before --to"},
		"from tomorrow":   {[]string{"history", "--from", "9999-01-01T00:00:00Z"}, "which is not before --to"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var r runner // without a server: nothing may be asked
			got := r.run(t.Context(), c.args...)
			wantCode(t, got, exitUsage)
			if !strings.Contains(got.err, c.says) || got.out != "" {
				t.Errorf("want %q on stderr alone:\n%s%s", c.says, got.out, got.err)
			}
			if strings.Contains(got.err, "hunter2") || strings.Contains(got.err, "connection refused") {
				t.Errorf("it showed a secret or asked a hub:\n%s", got.err)
			}
		})
	}
}

// TestGateEnvironment lets flags win over the environment.
func TestGateEnvironment(t *testing.T) {
	cases := map[string]struct {
		reason string
		env    map[string]string
		args   []string
		want   int
		bearer string
		json   bool
	}{
		"token":        {env: map[string]string{"LANDFALL_TOKEN": "lf_a_b\n"}, bearer: "Bearer lf_a_b"},
		"token file":   {env: map[string]string{"LANDFALL_TOKEN_FILE": "FILE"}, bearer: "Bearer lf_file_x"},
		"flag wins":    {env: map[string]string{"LANDFALL_TOKEN": "lf_a_b"}, args: []string{"--token-file", "FILE"}, bearer: "Bearer lf_file_x"},
		"output":       {env: map[string]string{"LANDFALL_OUTPUT": "json"}, json: true},
		"output flag":  {env: map[string]string{"LANDFALL_OUTPUT": "json"}, args: []string{"-o", "table"}},
		"two tokens":   {env: map[string]string{"LANDFALL_TOKEN": "a", "LANDFALL_TOKEN_FILE": "b"}, want: exitUsage},
		"bad token":    {reason: "a header cannot hold it", env: map[string]string{"LANDFALL_TOKEN": "a\nb"}, want: exitUsage},
		"hub flag":     {env: map[string]string{"LANDFALL_HUB": "http://127.0.0.1:1"}},
		"nothing else": {reason: "only the globals have variables", env: map[string]string{"LANDFALL_COMMIT": "x", "LANDFALL_TIMEOUT": "x"}},
	}
	file := t.TempDir() + "/token"
	writeFile(t, file, "lf_file_x\n")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := runner{env: map[string]string{}}
				for k, v := range c.env {
					r.env[k] = strings.Replace(v, "FILE", file, 1)
				}
				args := gateArgs()
				for _, a := range c.args {
					args = append(args, strings.Replace(a, "FILE", file, 1))
				}
				bearer := ""
				h := newFakeHub(verdict(schema.Passed))
				h.before = func(_ http.ResponseWriter, r *http.Request) bool {
					bearer = r.Header.Get("Authorization")
					return false
				}
				defer r.net.serve(h)()
				got := r.run(t.Context(), args...)
				wantCode(t, got, c.want)
				if bearer != c.bearer || strings.HasPrefix(got.out, "{") != c.json {
					t.Errorf("bearer %q, want %q; stdout:\n%s", bearer, c.bearer, got.out)
				}
			})
		})
	}
}

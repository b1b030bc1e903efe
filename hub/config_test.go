package hub

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/control"
	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/internal/gitlink"
	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/schema"
)

func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hub.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func environment(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

// Flags override the environment, which overrides the file, setting by setting.
func TestPrecedence(t *testing.T) {
	type row struct {
		Listen, DataDir, URL, Cluster string
		Silent                        int
	}
	file := "listen: file:1\ndata_dir: file\nclickhouse: {url: 'http://file:8123', cluster: file}\ncompliance: {silent_after: 7}\n"
	cases := map[string]struct {
		reason string
		file   string
		env    map[string]string
		args   []string
		want   row
	}{
		"Defaults": {"Nothing said.", "", nil, nil, row{"127.0.0.1:8080", "./data", "", "", 5}},
		"File":     {"The file alone.", file, nil, nil, row{"file:1", "file", "http://file:8123", "file", 7}},
		"Partial":  {"What the file leaves out has its default.", "data_dir: file\n", nil, nil, row{"127.0.0.1:8080", "file", "", "", 5}},
		"Empty":    {"An empty file says nothing.", "\n# nothing\n", nil, nil, row{"127.0.0.1:8080", "./data", "", "", 5}},
		"EnvOverFile": {"The environment comes first.", file, map[string]string{"LANDFALL_LISTEN": "env:2", "LANDFALL_DATA_DIR": "env", "LANDFALL_CLICKHOUSE_URL": "http://env:8123", "LANDFALL_CLICKHOUSE_CLUSTER": "env"}, nil,
			row{"env:2", "env", "http://env:8123", "env", 7}},
		"FlagOverEnv":  {"A flag comes before it, the others stay.", file, map[string]string{"LANDFALL_LISTEN": "env:2", "LANDFALL_DATA_DIR": "env"}, []string{"--listen", "flag:3"}, row{"flag:3", "env", "http://file:8123", "file", 7}},
		"FlagOverFile": {"Also without an environment.", file, nil, []string{"--data-dir=flag", "--clickhouse-cluster", "flag"}, row{"file:1", "flag", "http://file:8123", "flag", 7}},
		"FlagAlone":    {"Or a file.", "", nil, []string{"--listen", "flag:3"}, row{"flag:3", "./data", "", "", 5}},
		"EmptyEnv":     {"An empty variable is none.", file, map[string]string{"LANDFALL_LISTEN": ""}, nil, row{"file:1", "file", "http://file:8123", "file", 7}},
		"DefaultFlag":  {"A flag may say the default against the file.", file, nil, []string{"--data-dir", "./data"}, row{"file:1", "./data", "http://file:8123", "file", 7}},
	}
	for name, tc := range cases {
		for _, byEnv := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				env, args := map[string]string{}, tc.args
				for k, v := range tc.env {
					env[k] = v
				}
				if tc.file != "" {
					path := settingsFile(t, tc.file)
					if byEnv {
						env["LANDFALL_CONFIG"] = path
					} else {
						args = append(args, "--config", path)
					}
				}
				c, err := configuration.Load("test", args, environment(env))
				if err != nil {
					t.Fatal(err)
				}
				got := row{c.Listen, c.DataDir, c.ClickHouse.URL, c.ClickHouse.Cluster, c.Compliance.SilentAfter}
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, d)
				}
			})
		}
	}
}

func TestWholeFile(t *testing.T) {
	c, err := configuration.Load("test", []string{"--config", settingsFile(t, `
listen: "[::1]:9000"
data_dir: /var/lib/landfall
clickhouse: {url: "", cluster: "", listen: "127.0.0.1:8123", reader_password_file: /run/secrets/reader}
history_days: 90
compliance:
  silent_after: 3
  age_after: 2m
repositories:
  - url: https://git.example/org/app-gitops
    aliases: [https://mirror.example/app-gitops]
    refs: [dev, stage]
    interval: 30s
    auth: {token_file: /run/secrets/git-token, username: landfall, ca_file: /run/secrets/ca.pem}
  - url: git@git.example:org/platform
    auth: {ssh_key_file: /run/secrets/key, known_hosts_file: /run/secrets/known_hosts}
webhooks: {github: {secret_file: /run/secrets/github}, gitea: {secret_file: /run/secrets/gitea}}
links: {git.example: gitea, code.example: gitlab}
control_planes:
  - url: https://git.example/org/control-plane
    main: main
    environments: {dev: dev, stage: stage}
    aliases: [https://mirror.example/control-plane]
    config_repos: [{url: https://git.example/org/configs, environments: {stage: stage-configs}, auth: {token_file: /run/secrets/configs}}]
    publish: push
    interval: 1m
    auth: {token_file: /run/secrets/plane}
`)}, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if c.HistoryDays != 90 || c.Compliance.AgeAfter != schema.Duration(2*time.Minute) || c.ClickHouse.Listen != "127.0.0.1:8123" ||
		len(c.Repositories) != 2 || c.Repositories[0].Interval != schema.Duration(30*time.Second) || c.Repositories[0].Auth.TokenFile == "" {
		t.Errorf("the settings are %+v", c)
	}
	want := []gitops.Repository{
		{
			URL: "https://git.example/org/app-gitops", Aliases: []string{"https://mirror.example/app-gitops"}, Refs: []string{"dev", "stage"}, Interval: 30 * time.Second,
			Auth: gitrepo.Auth{Username: "landfall", TokenFile: "/run/secrets/git-token", CAFile: "/run/secrets/ca.pem"},
		},
		{URL: "git@git.example:org/platform", Auth: gitrepo.Auth{SSHKeyFile: "/run/secrets/key", KnownHostsFile: "/run/secrets/known_hosts"}},
	}
	if diff := cmp.Diff(want, c.repositories()); diff != "" {
		t.Errorf("followed are (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"github": "/run/secrets/github", "gitea": "/run/secrets/gitea"}, c.Webhooks.files()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]gitlink.Provider{"git.example": gitlink.Gitea, "code.example": gitlink.GitLab}, c.Links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	planes := []control.ControlPlane{{
		URL: "https://git.example/org/control-plane", Aliases: []string{"https://mirror.example/control-plane"}, Main: "main",
		Environments: map[string]string{"dev": "dev", "stage": "stage"}, Publish: "push", Interval: time.Minute, Auth: gitrepo.Auth{TokenFile: "/run/secrets/plane"},
		ConfigRepos: []control.ConfigRepo{{
			URL: "https://git.example/org/configs", Environments: map[string]string{"stage": "stage-configs"}, Auth: gitrepo.Auth{TokenFile: "/run/secrets/configs"},
		}},
	}}
	if diff := cmp.Diff(planes, c.controlPlanes()); diff != "" {
		t.Errorf("control planes (-want +got):\n%s", diff)
	}
	known := []control.Repository{
		{URL: want[0].URL, Aliases: want[0].Aliases, Auth: want[0].Auth}, {URL: want[1].URL, Auth: want[1].Auth},
	}
	if diff := cmp.Diff(known, c.known()); diff != "" {
		t.Errorf("repositories that control planes may name (-want +got):\n%s", diff)
	}
}

func TestBadSettings(t *testing.T) {
	cases := map[string]struct {
		reason string
		file   string
		env    map[string]string
		args   []string
		want   []string // parts of the message; FILE is the file's name
	}{
		"UnknownKey":      {"An unknown key, its line and the file.", "listen: a:1\n\nlisten_on: b\n", nil, nil, []string{"FILE", "line 3", `"listen_on"`}},
		"UnknownDeep":     {"However deep.", "compliance:\n  silent_after: 3\n  silent: 4\n", nil, nil, []string{"FILE", "line 3", `"silent"`}},
		"UnknownInList":   {"In lists too.", "repositories:\n- url: https://a.example/b\n  branch: x\n", nil, nil, []string{"FILE", "line 3", `"branch"`}},
		"TwoUnknown":      {"All of them.", "a: 1\nb: 2\n", nil, nil, []string{"line 1", `"a"`, "line 2", `"b"`}},
		"Type":            {"A text is no number.", "history_days: many\n", nil, nil, []string{"FILE", "line 1", "many"}},
		"Syntax":          {"What is no YAML.", "listen: [\n", nil, nil, []string{"FILE", "line"}},
		"KeyTwice":        {"A key that stands twice.", "listen: a:1\nlisten: b:1\n", nil, nil, []string{"FILE", "line 2", "listen"}},
		"TwoDocuments":    {"More than one document.", "listen: a:1\n---\nlisten: b:1\n", nil, nil, []string{"FILE", "more than one document"}},
		"Duration":        {"A duration without its unit.", "data_dir: x\ncompliance:\n  age_after: 5\n", nil, nil, []string{"FILE", "5"}},
		"Listen":          {"An address without a port.", "listen: localhost\n", nil, nil, []string{"FILE", "listen", "localhost"}},
		"DataDir":         {"A folder without a name.", "data_dir: ''\n", nil, nil, []string{"FILE", "data_dir"}},
		"Silent":          {"Too few heartbeats.", "compliance: {silent_after: 0}\n", nil, nil, []string{"FILE", "silent_after", "0"}},
		"Age":             {"Too long an age.", "compliance: {age_after: 48h}\n", nil, nil, []string{"FILE", "age_after", "48h"}},
		"History":         {"No history.", "history_days: 0\n", nil, nil, []string{"FILE", "history_days"}},
		"Repository":      {"A repository that is none.", "repositories: [{url: nowhere}]\n", nil, nil, []string{"FILE", "repositories[0].url"}},
		"RepositoryTwice": {"Two that are one.", "repositories: [{url: 'https://a.example/b'}, {url: 'https://c.example/d', aliases: ['git@a.example:b.git']}]\n", nil, nil, []string{"FILE", "repositories[1]", "a.example/b"}},
		"Alias":           {"An alias that is none.", "repositories: [{url: 'https://a.example/b', aliases: [nowhere]}]\n", nil, nil, []string{"FILE", "repositories[0].aliases"}},
		"Interval":        {"Too short an interval.", "repositories: [{url: 'https://a.example/b', interval: 1ms}]\n", nil, nil, []string{"FILE", "repositories[0].interval", "1ms"}},
		"SSHWithoutKey":   {"SSH without a key.", "repositories: [{url: 'git@a.example:b'}]\n", nil, nil, []string{"FILE", "repositories[0].url", "private key"}},
		"TokenTwice":      {"Credentials in two places, none of them shown.", "repositories: [{url: 'https://u:s3cr3t@a.example/b', auth: {token_file: x}}]\n", nil, nil, []string{"FILE", "repositories[0].url", "credentials"}},
		"ControlPlane":    {"A control plane that is none.", "control_planes: [{url: ''}]\n", nil, nil, []string{"FILE", "control_planes[0].url"}},
		"Link":            {"A provider that nobody knows.", "data_dir: x\nlinks:\n  git.example: bitbucket\n", nil, nil, []string{"FILE", "line 3", "links", "bitbucket", "gitlab"}},
		"LinkHost":        {"A URL where a host belongs, without its password.", "links: {'https://u:s3cr3t@git.example': gitea}\n", nil, nil, []string{"FILE", "line 1", "no host name"}},
		"Webhook":         {"A provider that sends none that we know.", "webhooks:\n  bitbucket: {secret_file: x}\n", nil, nil, []string{"FILE", "line 2", `"bitbucket"`}},
		"URL":             {"A ClickHouse that is none, without its password.", "clickhouse: {url: 'postgres://u:s3cr3t@host/db'}\n", nil, nil, []string{"FILE", "clickhouse.url"}},
		"URLSlash":        {"Nor a part of it.", "clickhouse: {url: 'http://u:12/s3cr3t@host/db'}\n", nil, nil, []string{"FILE", "clickhouse.url"}},
		"Cluster":         {"A cluster without a server.", "clickhouse: {cluster: prod}\n", nil, nil, []string{"FILE", "clickhouse.cluster"}},
		"Reader":          {"A listener without a password.", "clickhouse: {listen: '127.0.0.1:1'}\n", nil, nil, []string{"FILE", "reader_password_file"}},
		"ReaderAlone":     {"A password without a listener.", "clickhouse: {reader_password_file: x}\n", nil, nil, []string{"FILE", "clickhouse.listen"}},
		"ReaderOfServer":  {"A listener beside a server.", "clickhouse: {url: 'http://h:1', listen: '127.0.0.1:1', reader_password_file: x}\n", nil, nil, []string{"FILE", "clickhouse.listen"}},
		"NoFile":          {"A file that is not there.", "", nil, []string{"--config", "/nowhere/hub.yaml"}, []string{"/nowhere/hub.yaml"}},
		"UnknownFlag":     {"A flag nobody knows.", "", nil, []string{"--port", "1"}, []string{"port"}},
		"NoFlag":          {"What is no flag.", "", nil, []string{"extra"}, []string{`"extra"`}},
		"FlagWithout":     {"A flag without its value.", "", nil, []string{"--listen"}, []string{"listen"}},
		"EnvListen":       {"The environment is checked too.", "", map[string]string{"LANDFALL_LISTEN": "x"}, nil, []string{"listen", `"x"`}},
		"EnvFileNotThere": {"So is the file that it names.", "", map[string]string{"LANDFALL_CONFIG": "/nowhere.yaml"}, nil, []string{"/nowhere.yaml"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path, args := "", tc.args
			if tc.file != "" {
				path = settingsFile(t, tc.file)
				args = append(args, "--config", path)
			}
			_, err := configuration.Load("test", args, environment(tc.env))
			if err == nil {
				t.Fatalf("%s No error.", tc.reason)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), strings.ReplaceAll(part, "FILE", path)) {
					t.Errorf("%s %q does not say %q", tc.reason, err, part)
				}
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%q holds the password", err)
			}
		})
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "127.1.2.3:80": true, "[::1]:80": true, "localhost:80": true, "[::ffff:127.0.0.1]:80": true,
		":80": false, "0.0.0.0:80": false, "[::]:80": false, "10.0.0.1:80": false, "hub.example:80": false, "localhost.example:80": false,
		"127.0.0.1.example:80": false, "127.0.0.1": false, "": false, "[fe80::1%lo]:80": false,
	} {
		if got := loopback(address); got != want {
			t.Errorf("%q is loopback: %t", address, got)
		}
	}
}

func TestCommands(t *testing.T) {
	bad := settingsFile(t, "nonsense: 1\n")
	good := settingsFile(t, "clickhouse: {url: 'clickhouse://u:s3cr3t@host:9000/db?password=s3cr3t'}\ncontrol_planes: [{url: 'https://git.example/a/b', environments: {dev: dev}}]\n")
	asked := settingsFile(t, "control_planes: [{url: 'https://git.example/a/b', environments: {dev: dev}, publish: pull_request}]\n")
	forges := "control_planes: [{url: 'https://git.example/a/b', environments: {dev: dev}, publish: pull_request}]\n" +
		"repositories: [{url: 'https://git.example/a/platform', auth: {token_file: /run/secrets/token}, forge: {%s}}]\n"
	nobody, proposing := settingsFile(t, fmt.Sprintf(forges, "")), settingsFile(t, fmt.Sprintf(forges, "provider: gitea, api: 'https://git.example/api'"))
	hooked := settingsFile(t, "webhooks: {github: {secret_file: /nowhere/github}, gitea: {secret_file: "+settingsFile(t, "")+"}}\n")
	cases := map[string]struct {
		reason         string
		args           []string
		code           int
		stdout, stderr string // parts of each
	}{
		"Nothing":      {"No command is bad usage.", nil, 2, "", "landfall-hub serve"},
		"Unknown":      {"So is one nobody knows.", []string{"start"}, 2, "", "landfall-hub serve"},
		"ConfigAlone":  {"Or half a one.", []string{"config"}, 2, "", "config check"},
		"Help":         {"Help is an answer.", []string{"--help"}, 0, "landfall-hub serve", ""},
		"ServeHelp":    {"Of a command too.", []string{"serve", "--help"}, 0, "--clickhouse-url", ""},
		"CheckHelp":    {"Of each.", []string{"config", "check", "-h"}, 0, "--listen", ""},
		"Version":      {"The version.", []string{"version"}, 0, "1.2.3\n", ""},
		"VersionFlag":  {"In the other way.", []string{"--version"}, 0, "1.2.3\n", ""},
		"Good":         {"Good settings, without the password.", []string{"config", "check", "--config", good}, 0, "clickhouse://host:9000/db\n", ""},
		"PullRequest":  {"Pull requests need somebody who takes them.", []string{"config", "check", "--config", asked}, 2, "", asked + ": control_planes[0].publish: pull_request needs to know the Git provider of the GitOps repository"},
		"Forge":        {"A provider that nobody knows.", []string{"config", "check", "--config", nobody}, 2, "", "repositories[0].forge.provider: the address git.example/a/platform does not say what it is; write github or gitea"},
		"GoodForge":    {"With all that is needed.", []string{"config", "check", "--config", proposing}, 0, "embedded ClickHouse", ""},
		"GoodDefaults": {"The defaults are good.", []string{"config", "check"}, 0, "embedded ClickHouse in ./data", ""},
		"Bad":          {"Bad settings are bad usage.", []string{"config", "check", "--config", bad}, 2, "", `landfall-hub: ` + bad + `: line 1: unknown key "nonsense"`},
		"Secret":       {"Secrets that cannot be read, all of them.", []string{"config", "check", "--config", hooked}, 2, "", "webhooks.github.secret_file: reading the password: stat /nowhere/github"},
		"SecretEmpty":  {"Or that are empty.", []string{"config", "check", "--config", hooked}, 2, "", "webhooks.gitea.secret_file: reading the password"},
		"ServeSecret":  {"The service does not start without them.", []string{"serve", "--config", hooked, "--data-dir", t.TempDir()}, 1, "", "webhooks.github.secret_file"},
		"ServeBad":     {"For the service too.", []string{"serve", "--config", bad}, 2, "", "nonsense"},
		"ServeFlag":    {"And a bad flag is told once.", []string{"serve", "--bad"}, 2, "", "landfall-hub: flag provided but not defined: -bad\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			p := Program{Args: tc.args, Env: environment(nil), Stdout: &stdout, Stderr: &stderr, Version: "1.2.3"}
			if code := p.Main(t.Context()); code != tc.code {
				t.Errorf("%s The code is %d", tc.reason, code)
			}
			if !strings.Contains(stdout.String(), tc.stdout) || !strings.Contains(stderr.String(), tc.stderr) || tc.stderr == "" && stderr.Len() > 0 {
				t.Errorf("%s It wrote %q and %q", tc.reason, stdout.String(), stderr.String())
			}
			if strings.Contains(stdout.String()+stderr.String(), "s3cr3t") {
				t.Error("it wrote the password")
			}
		})
	}
}

package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func environment(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

const least = "cluster: {name: drone-07}\nhub: {url: 'https://hub.example'}\n"

func TestDefaults(t *testing.T) {
	want := DefaultConfig()
	want.Cluster.Name, want.Hub.URL = "drone-07", "https://hub.example"
	for name, args := range map[string][]string{
		"file":  {"--config", write(t, "agent.yaml", least)},
		"flags": {"--cluster", "drone-07", "--hub", "https://hub.example"},
	} {
		got, err := configuration.Load("test", args, environment(nil))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"Application", "HelmRelease", "Kustomization"}, want.reported()); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}

// wholeFile is every key; docs/agent.md has it too.
const wholeFile = `
cluster:
  name: drone-07
  memberships:
    - {environment: dev, type: drone}
    - {environment: stage, type: drone}
  labels: {region: eu}
hub:
  url: https://hub.example/landfall
  token: ""
  token_file: /run/secrets/token
  ca_file: /etc/ssl/hub.pem
heartbeat_interval: 10s
kubernetes:
  kubeconfig: /etc/kubeconfig
  context: drone
  discovery_interval: 5s
flux: {enabled: true}
argocd:
  enabled: true
  namespace: gitops
  tracking_label: ""
  destinations:
    - {name: east, server: "https://east.example:6443", cluster: drone-08}
    - {name: self, cluster: drone-07}
listen: ":9000"
log: {level: debug, format: json}
`

func TestWholeFile(t *testing.T) {
	got, err := configuration.Load("test", []string{"--config", write(t, "agent.yaml", wholeFile)}, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Cluster: ClusterConfig{
			Name: "drone-07", Labels: map[string]string{"region": "eu"},
			Memberships: []MembershipConfig{{"dev", "drone"}, {"stage", "drone"}},
		},
		Hub:               HubConfig{URL: "https://hub.example/landfall", TokenFile: "/run/secrets/token", CAFile: "/etc/ssl/hub.pem"},
		HeartbeatInterval: schema.Duration(10 * time.Second),
		Kubernetes:        KubernetesConfig{Kubeconfig: "/etc/kubeconfig", Context: "drone", DiscoveryInterval: schema.Duration(5 * time.Second)},
		Flux:              FluxConfig{Enabled: true},
		ArgoCD: ArgoCDConfig{
			Enabled: true, Namespace: "gitops",
			Destinations: []DestinationConfig{{"east", "https://east.example:6443", "drone-08"}, {"self", "", "drone-07"}},
		},
		Listen: ":9000", Log: LogConfig{Level: -4, Format: "json"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	registered := schema.Registration{
		Memberships: []schema.Membership{{Environment: "dev", Type: "drone"}, {Environment: "stage", Type: "drone"}},
		Labels:      map[string]string{"region": "eu"}, Kind: schema.ClusterKubernetes, HeartbeatInterval: schema.Duration(10 * time.Second),
		ReportsFor: []string{"drone-08"}, Agent: schema.Agent{Version: "1.2.3"},
	}
	if diff := cmp.Diff(registered, got.registration("1.2.3")); diff != "" {
		t.Errorf("the registration (-want +got):\n%s", diff)
	}
}

// Flags override the environment, which overrides the file.
func TestOverrides(t *testing.T) {
	env := map[string]string{
		"LANDFALL_CONFIG": write(t, "agent.yaml", wholeFile), "LANDFALL_CLUSTER": "env", "LANDFALL_HUB": "http://env:1", "LANDFALL_MEMBERSHIPS": "qa/car, prod/car",
		"LANDFALL_LABELS": "a=b,c=d=e", "LANDFALL_TOKEN_FILE": "env", "LANDFALL_CA_FILE": "env", "LANDFALL_HEARTBEAT_INTERVAL": "2s", "LANDFALL_KUBECONFIG": "env",
		"LANDFALL_CONTEXT": "env", "LANDFALL_DISCOVERY_INTERVAL": "1s", "LANDFALL_FLUX": "false", "LANDFALL_ARGOCD_NAMESPACE": "env",
		"LANDFALL_LISTEN": "env:1", "LANDFALL_LOG_LEVEL": "warn", "LANDFALL_LOG_FORMAT": "text",
	}
	got, err := configuration.Load("test", []string{"--cluster", "flag", "--heartbeat-interval", "3s", "--flux=true"}, environment(env))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Cluster:           ClusterConfig{Name: "flag", Labels: map[string]string{"a": "b", "c": "d=e"}, Memberships: []MembershipConfig{{"qa", "car"}, {"prod", "car"}}},
		Hub:               HubConfig{URL: "http://env:1", TokenFile: "env", CAFile: "env"},
		HeartbeatInterval: schema.Duration(3 * time.Second),
		Kubernetes:        KubernetesConfig{Kubeconfig: "env", Context: "env", DiscoveryInterval: schema.Duration(time.Second)},
		Flux:              FluxConfig{Enabled: true},
		ArgoCD:            got.ArgoCD,
		Listen:            "env:1", Log: LogConfig{Level: 4, Format: "text"},
	}
	want.ArgoCD.Namespace = "env"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err = configuration.Load("test", nil, environment(map[string]string{"LANDFALL_CLUSTER": "a", "LANDFALL_HUB": "http://h", "LANDFALL_TOKEN": "s3cr3t"}))
	if err != nil || got.Hub.Token != "s3cr3t" {
		t.Errorf("the token of the environment: %q, %v", got.Hub.Token, err)
	}
}

func TestBadSettings(t *testing.T) {
	const h = "hub: {url: 'https://hub.example'}\n"
	for name, c := range map[string]struct {
		reason string
		file   string
		env    map[string]string
		args   []string
		want   []string // parts of the message; FILE is the file's name
	}{
		"nothing":      {"what is missing, and how to say it", "", nil, nil, []string{"cluster.name", "--cluster"}},
		"no hub":       {"the hub too", "cluster: {name: a}\n", nil, nil, []string{"FILE", "hub.url", "LANDFALL_HUB"}},
		"unknown key":  {"an unknown key, its line and the file", least + "\nkube: 1\n", nil, nil, []string{"FILE: line 4", `"kube"`}},
		"unknown deep": {"however deep", "cluster:\n  name: a\n  membership: []\n" + h, nil, nil, []string{"FILE: line 3", `"membership"`}},
		"name":         {"a name that is none, with its line", "hub: {url: 'http://h'}\ncluster:\n  name: a/b\n", nil, nil, []string{"FILE: line 3", "cluster.name", `"a/b"`}},
		"flag name":    {"a flag is blamed for its value", least, nil, []string{"--cluster", "a/b"}, []string{"--cluster: cluster.name"}},
		"env name":     {"a variable too", least, map[string]string{"LANDFALL_CLUSTER": "a/b"}, nil, []string{"LANDFALL_CLUSTER: cluster.name"}},
		"hub":          {"an address that is none, without its password", "cluster: {name: a}\nhub: {url: 'http://u:s3cr3t@h'}\n", nil, nil, []string{"FILE: line 2", "hub.url"}},
		"hub scheme":   {"nor one of something else", "cluster: {name: a}\nhub: {url: 'ftp://h'}\n", nil, nil, []string{"hub.url", "ftp://h"}},
		"two tokens":   {"one token is enough", "cluster: {name: a}\nhub:\n  url: http://h\n  token_file: x\n  token: s3cr3t\n", nil, nil, []string{"FILE: line 4", "hub.token_file", "LANDFALL_TOKEN"}},
		"membership":   {"half a membership", "cluster:\n  name: a\n  memberships:\n  - environment: dev\n" + h, nil, nil, []string{"FILE: line 4", "cluster.memberships[0].type"}},
		"membership 2": {"one that stands twice", "cluster:\n  name: a\n  memberships:\n  - {environment: dev, type: x}\n  - {environment: dev, type: x}\n" + h, nil, nil, []string{"FILE: line 5", "cluster.memberships[1]", "twice"}},
		"flag member":  {"as a flag", least, nil, []string{"--memberships", "dev"}, []string{"environment/type", `"dev"`}},
		"labels":       {"a label without a name", "cluster: {name: a, labels: {'': b}}\n" + h, nil, nil, []string{"FILE: line 1", "cluster.labels"}},
		"env labels":   {"as a variable", least, map[string]string{"LANDFALL_LABELS": "a"}, nil, []string{"LANDFALL_LABELS", "key=value"}},
		"heartbeat":    {"too often", least + "heartbeat_interval: 10ms\n", nil, nil, []string{"FILE: line 3", "heartbeat_interval", "10ms"}},
		"no heartbeat": {"never", least + "heartbeat_interval: 0s\n", nil, nil, []string{"FILE: line 3", "heartbeat_interval"}},
		"duration":     {"a duration without its unit", least + "heartbeat_interval: 5\n", nil, nil, []string{"FILE", "line 3", "5"}},
		"discovery":    {"too seldom", least + "kubernetes: {discovery_interval: 2h}\n", nil, nil, []string{"kubernetes.discovery_interval", "2h"}},
		"context":      {"a context of no file", least + "kubernetes: {context: a}\n", nil, nil, []string{"kubernetes.context", "kubeconfig"}},
		"nothing on":   {"an agent that looks at nothing", least + "flux: {enabled: false}\nargocd: {enabled: false}\n", nil, nil, []string{"FILE: line 3", "flux.enabled", "argocd.enabled"}},
		"destination":  {"a destination that nobody names", least + "argocd:\n  destinations:\n  - cluster: b\n", nil, nil, []string{"FILE: line 5", "argocd.destinations[0]", "name or server"}},
		"no cluster":   {"one that is no cluster", least + "argocd:\n  destinations:\n  - name: b\n", nil, nil, []string{"FILE: line 5", "argocd.destinations[0].cluster"}},
		"twice":        {"one with two clusters", least + "argocd:\n  destinations:\n  - {server: 'https://X/', cluster: b}\n  - {server: 'https://x', cluster: c}\n", nil, nil, []string{"FILE: line 6", "argocd.destinations[1]", "twice"}},
		"listen":       {"an address without a port", least + "listen: localhost\n", nil, nil, []string{"FILE: line 3", "listen", "localhost"}},
		"level":        {"a level nobody knows", least + "log: {level: loud}\n", nil, nil, []string{"FILE", "line 3", "loud"}},
		"format":       {"a format nobody knows", least + "log: {format: xml}\n", nil, nil, []string{"FILE: line 3", "log.format", "xml"}},
	} {
		t.Run(name, func(t *testing.T) {
			path, args := "", c.args
			if c.file != "" {
				path = write(t, "agent.yaml", c.file)
				args = append(args, "--config", path)
			}
			_, err := configuration.Load("test", args, environment(c.env))
			if err == nil {
				t.Fatalf("no error: %s", c.reason)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), strings.ReplaceAll(part, "FILE", path)) {
					t.Errorf("%q does not say %q: %s", err, part, c.reason)
				}
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%q holds a secret", err)
			}
		})
	}
}

func TestCommands(t *testing.T) {
	bad := write(t, "bad.yaml", least+"nonsense: 1\n")
	token := write(t, "token", "s3cr3t\n")
	kube := write(t, "kubeconfig", "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n")
	flags := []string{"--cluster", "drone-07", "--hub", "http://127.0.0.1:1"}
	for name, c := range map[string]struct {
		reason         string
		args           []string
		code           int
		stdout, stderr string // parts of each
	}{
		"nothing":         {"no command is bad usage", nil, 2, "", "landfall-agent run"},
		"unknown":         {"so is one nobody knows", []string{"start"}, 2, "", "landfall-agent run"},
		"config alone":    {"or half a one", []string{"config"}, 2, "", "config check"},
		"help":            {"help is an answer", []string{"--help"}, 0, "landfall-agent run", ""},
		"run help":        {"of a command too", []string{"run", "--help"}, 0, "--kubeconfig", ""},
		"version":         {"the version", []string{"version"}, 0, "1.2.3\n", ""},
		"good":            {"good settings", append([]string{"config", "check", "--token-file", token, "--kubeconfig", kube}, flags...), 0, "report Application, HelmRelease, Kustomization of the cluster drone-07 to http://127.0.0.1:1\n", ""},
		"bad":             {"bad settings are bad usage", []string{"config", "check", "--config", bad}, 2, "", "landfall-agent: " + bad + `: line 3: unknown key "nonsense"`},
		"run bad":         {"for the agent too", []string{"run", "--config", bad}, 2, "", "nonsense"},
		"no token":        {"a file that is not there", append([]string{"config", "check", "--token-file", "/nowhere"}, flags...), 2, "", "/nowhere"},
		"no CA":           {"of each kind", append([]string{"config", "check", "--ca-file", "/nowhere"}, flags...), 2, "", "hub.ca_file"},
		"CA that is none": {"or holds something else", append([]string{"config", "check", "--ca-file", token}, flags...), 2, "", "no certificate"},
		"no kubeconfig":   {"or no kubeconfig", append([]string{"config", "check", "--kubeconfig", "/nowhere"}, flags...), 2, "", "--kubeconfig"},
		"no context":      {"or not this context", append([]string{"config", "check", "--kubeconfig", kube, "--context", "b"}, flags...), 2, "", `"b"`},
		"no cluster":      {"an agent needs an API server", append([]string{"run"}, flags...), 1, "", "name a kubeconfig"},
		"port":            {"and its port", append([]string{"run", "--kubeconfig", kube, "--listen", "256.0.0.1:1"}, flags...), 1, "", "--listen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			var stdout, stderr bytes.Buffer
			p := Program{Args: c.args, Env: environment(map[string]string{"GOGC": "100"}), Stdout: &stdout, Stderr: &stderr, Version: "1.2.3"}
			if code := p.Main(t.Context()); code != c.code {
				t.Errorf("the code is %d: %s", code, c.reason)
			}
			if !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) || c.stderr == "" && stderr.Len() > 0 {
				t.Errorf("it wrote %q and %q: %s", stdout.String(), stderr.String(), c.reason)
			}
			if strings.Contains(stdout.String()+stderr.String(), "s3cr3t") {
				t.Error("it wrote the token")
			}
		})
	}
}

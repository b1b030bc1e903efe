package agent

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/landfall-hub/landfall/agent/host"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/schema"
)

// The whole agent on a host, from a repository to a hub.
func TestAgentOnAHost(t *testing.T) {
	server, err := gittest.New(t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	repo := server.NewRepo(t, "repo", "sha1")
	commit := repo.Commit(t, map[string]string{"drone/a": "1"})
	hub := &hubServer{known: map[schema.ObjectRef]schema.Reconciler{}, moved: make(chan struct{})}
	hubURL := httptest.NewServer(hub)
	defer hubURL.Close()
	// What an agent of another sort reported under this name.
	hub.known[ref("Kustomization", "flux-system", "old")] = schema.Reconciler{Kind: "Kustomization", Namespace: "flux-system", Name: "old"}

	file := write(t, "agent.yaml", `
cluster: {name: host-07, memberships: [{environment: dev, type: drone}]}
hub: {url: "`+hubURL.URL+`", token: s3cr3t}
listen: 127.0.0.1:0
host:
  state_dir: `+t.TempDir()+`
  folders:
    - name: drone
      repo: `+repo.Bare+`
      ref: main
      path: drone
      interval: 1s
      apply: {shell: "cat a; test \"$(cat a)\" != 2"}
`)
	config, err := configuration.Load("test", []string{"--config", file}, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	var log safeBuffer
	a, err := New(Options{Config: config, Version: "1.2.3", Log: slog.New(slog.NewTextHandler(&log, nil)), Env: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	drone := ref(host.Kind, host.Namespace, "drone")
	hub.until(t, "the first apply", func() bool {
		r := hub.known[drone]
		return r.Status == schema.StatusSuccess && r.AppliedCommit(0) == commit
	})
	hub.until(t, "what another agent reported is gone", func() bool { return len(hub.known) == 1 })
	hub.mu.Lock()
	if r := hub.registered; r.Kind != schema.ClusterHost || r.Memberships[0].Type != "drone" {
		t.Errorf("it registered as %+v", r)
	}
	hub.mu.Unlock()
	ready(t, a, http.StatusOK, `"status":"ready"`, "followed: success: 1", "registered under epoch 7")

	bad := repo.Commit(t, map[string]string{"drone/a": "2"})
	hub.until(t, "the commit that fails", func() bool {
		r := hub.known[drone]
		return r.Status == schema.StatusFailure && r.AttemptedCommit(0) == bad && r.AppliedCommit(0) == commit && strings.Contains(r.Message, "exit status 1\n2")
	})
	if err := os.Rename(repo.Bare, repo.Bare+".away"); err != nil {
		t.Fatal(err)
	}
	hub.until(t, "a source error", func() bool { return hub.known[drone].SourceError != "" })
	ready(t, a, http.StatusServiceUnavailable, "cannot be read: drone: ")
	body := get(t, a, "/metrics", http.StatusOK)
	documentedMetrics(t, body)
	if !strings.Contains(body, `landfall_host_folders{status="failure"} 1`) || !strings.Contains(body, `landfall_host_applies_total{result="success"} 1`) {
		t.Error("the metrics lack the folders")
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if text := log.String(); strings.Contains(text, "s3cr3t") || !strings.Contains(text, "folders=1") {
		t.Errorf("the log is\n%s", text)
	}
}

func TestHostSettings(t *testing.T) {
	const folder = "    - name: a\n      repo: /srv/git/a\n      apply: {shell: make}\n"
	const good = "cluster: {name: h}\nhub: {url: 'https://hub.example'}\nhost:\n  state_dir: /var/lib/landfall\n  folders:\n" + folder
	config, err := configuration.Load("test", []string{"--config", write(t, "agent.yaml", good)}, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"HostRunner"}, config.reported()); diff != "" {
		t.Error(diff)
	}
	cases := map[string]struct{ text, want string }{
		"two clusters": {good + "kubernetes: {kubeconfig: kc}\n", "line 4: host and an API server"},
		"no command":   {strings.Replace(good, "make", "''", 1), "line 8: host.folders[0].apply needs one of"},
		"no state":     {strings.Replace(good, "/var/lib", "var/lib", 1), "line 4: host.state_dir is an absolute folder"},
		"no key":       {good + "      when: now\n", `line 9: unknown key "when"`},
		"only a bound": {"cluster: {name: h}\nhub: {url: 'https://hub.example'}\nhost: {parallel: 2}\n", "host.state_dir is an absolute folder"},
	}
	for name, c := range cases {
		_, err := configuration.Load("test", []string{"--config", write(t, "agent.yaml", c.text)}, environment(nil))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// A second agent of the same state directory is told so, and takes no port.
func TestHostStateIsTaken(t *testing.T) {
	config := DefaultConfig()
	config.Cluster.Name, config.Hub.URL, config.Listen = "h", "http://127.0.0.1:1", "127.0.0.1:0"
	config.Host.StateDir = t.TempDir()
	opts := Options{Config: config, Log: slog.New(slog.DiscardHandler), Env: os.Getenv}
	a, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(opts); err == nil || !strings.Contains(err.Error(), "another agent's") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Run(ctx); err != nil {
		t.Error(err)
	}
	if _, err := New(opts); err != nil {
		t.Errorf("the state directory was not given back: %v", err)
	}
}

// The Ansible example: settings that the agent takes, and a playbook that is one.
func TestAnsibleExample(t *testing.T) {
	const folder = "../examples/ansible"
	config, err := configuration.Load("test", []string{"--config", folder + "/agent.yaml"}, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	apply := config.Host.Folders[0].Apply
	playbook := apply.Argv[len(apply.Argv)-1]
	if apply.Argv[0] != "ansible-playbook" || time.Duration(apply.Timeout) != 15*time.Minute {
		t.Errorf("it applies by %+v", apply)
	}
	text, err := os.Open(folder + "/playbook/" + playbook)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	var plays []struct {
		Name, Hosts string
		Tasks       []map[string]any
	}
	raw, err := io.ReadAll(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &plays); err != nil || len(plays) == 0 {
		t.Fatalf("it is no playbook: %v", err)
	}
	for _, play := range plays {
		if play.Name == "" || play.Hosts == "" || len(play.Tasks) == 0 {
			t.Errorf("a play lacks its name, hosts or tasks: %+v", play)
		}
		for _, task := range play.Tasks {
			modules := 0
			for key, arguments := range task {
				if strings.HasPrefix(key, "ansible.builtin.") {
					modules++
					if of, ok := arguments.(map[string]any); ok && of["src"] != nil {
						if _, err := os.Stat(folder + "/playbook/templates/" + of["src"].(string)); err != nil {
							t.Error(err)
						}
					}
				}
			}
			if modules != 1 || task["name"] == "" {
				t.Errorf("a task has a name and one module: %v", task)
			}
		}
	}
}

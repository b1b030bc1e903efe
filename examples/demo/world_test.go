package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// world is what a demo made and left running.
type world struct {
	client *hubclient.Client
	repos  *repos
	dir    string
}

var hubLine = regexp.MustCompile(`the hub is ready at (\S+)`)

func (s *show) world(t *testing.T) *world {
	t.Helper()
	client, err := hubclient.New(hubclient.Options{URL: hubLine.FindStringSubmatch(s.said.String())[1], UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(s.home, "landfall-demo-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the demo's folder is not where it was: %v %v", found, err)
	}
	w := &world{client: client, repos: &repos{dir: filepath.Join(found[0], "repos")}, dir: found[0]}
	return w
}

func (w *world) git(t *testing.T, repo string, args ...string) string {
	t.Helper()
	out, err := w.repos.git(t.Context(), repo, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// suggestions does all that is suggested, as if it were pasted.
func (w *world) suggestions(t *testing.T, text string) {
	var script strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  ") {
			script.WriteString(line)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-eu")
	cmd.Stdin = strings.NewReader(script.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, &script, out)
	}
	for _, part := range []string{
		"drone/hello-world-app-functional-test/platform-config.sh", // what the hub's commit has
		"DATABASE_URL=mysql://restricted-2:3306",                   // on the drones
		"DATABASE_URL=mysql://west-2:8806",                         // on the others, still
		"functional-test-policy",                                   // landfall explain
		"3 assignments, 3 would change",                            // landfall schedule
		`"deployment_target":"hello-world-app-functional-test"`,    // the API
		"ref dev, path functional-test",                            // the gate of the release
	} {
		if !strings.Contains(string(out), part) {
			t.Errorf("%q does not come of what is suggested:\n%s", part, out)
		}
	}
}

// hosts holds that each edit of a ConfigMap reached the hosts that it was for, and
// had no other apply anything.
func (w *world) hosts(t *testing.T) {
	// The suggestion's commit is the last; the story's the one before.
	commits := strings.Fields(w.git(t, platform, "rev-list", "--reverse", branch))
	if len(commits) != 3 {
		t.Fatalf("the hub made the commits %v, want three: the first plan and two edits", commits)
	}
	took := func() (behind []string) {
		count := 0
		for _, row := range collect(t, w.client.ClusterStates(t.Context(), schema.StateFilter{}, 100)) {
			if row.Path != "drone" && row.Path != "large" {
				continue
			}
			if count++; row.Commit != commits[2] {
				behind = append(behind, row.Cluster)
			}
		}
		if count != 12 {
			t.Fatalf("%d hosts follow the platform's repository, want 12", count)
		}
		return behind
	}
	for behind := took(); len(behind) > 0; { // also those whose folder is as it was
		behind = took()
	}
	for _, h := range newHosts() {
		want, database := []string{commits[0], commits[2]}, "mysql://restricted-2:3306/mysqlrty123"
		if h.kind == "large" {
			want, database = commits[:2], newWest
		}
		root := filepath.Join(w.dir, "hosts", h.name, "root")
		text, err := os.ReadFile(filepath.Join(root, "applied"))
		if err != nil {
			t.Fatal(err)
		}
		var applied []string
		for line := range strings.Lines(string(text)) {
			if commit, ok := strings.CutPrefix(line, "platform "); ok {
				applied = append(applied, strings.TrimSpace(commit))
			}
		}
		if diff := gocmp.Diff(want, applied); diff != "" {
			t.Errorf("what %s applied of the platform's repository (-want +got):\n%s", h.name, diff)
		}
		running, err := filepath.Glob(filepath.Join(root, "running", "*-hello-world-app-*"))
		if err != nil || len(running) != 1 {
			t.Fatalf("%s runs %v %v", h.name, running, err)
		}
		if text, err = os.ReadFile(running[0]); err != nil || !slices.Contains(strings.Fields(string(text)), "DATABASE_URL="+database) {
			t.Errorf("%s runs without %s: %v\n%s", h.name, database, err, text)
		}
	}
}

// clusterType is the type whose hosts have a target.
var clusterType = map[string]string{"functional-test": "drone", "performance-test": "large"}

// configuration reads from Git which configuration a host has for a target, by the
// commit that it applied last.
func (w *world) configuration(t *testing.T, host, target string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "hosts", host, "root", "applied"))
	if err != nil {
		t.Fatal(err)
	}
	commit := ""
	for line := range strings.Lines(string(text)) {
		if name, at, _ := strings.Cut(strings.TrimSpace(line), " "); name == "platform" {
			commit = at
		}
	}
	return w.git(t, platform, "rev-parse", commit+":"+clusterType[target]+"/hello-world-app-"+target)
}

// scheduled reads from Git which configuration a target should have.
func (w *world) scheduled(t *testing.T, target string) string {
	t.Helper()
	return w.git(t, platform, "rev-parse", branch+":"+clusterType[target]+"/hello-world-app-"+target)
}

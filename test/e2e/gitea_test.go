//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/internal/forge"
	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/scheduler/publish"
	"github.com/landfall-hub/landfall/schema"
)

// giteaServer is a real Gitea with one user.
type giteaServer struct {
	*process
	url       string
	tokenFile string
}

// owner is the user.
const giteaOwner = "landfall"

func startGitea(t *testing.T) *giteaServer {
	t.Helper()
	path, err := built("e2e", "gitea")
	if err != nil {
		t.Fatal(err)
	}
	static, err := built("e2e", "gitea-static")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := newFolder("gitea")
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := freeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(addresses[0], ":")
	g := &giteaServer{url: "http://" + addresses[0], tokenFile: filepath.Join(folder, "token")}
	settings := fmt.Sprintf(`APP_NAME = e2e
RUN_MODE = prod
RUN_USER = %[1]s
WORK_PATH = %[2]s
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[3]s
ROOT_URL = %[4]s/
STATIC_ROOT_PATH = %[5]s
APP_DATA_PATH = %[2]s/data
OFFLINE_MODE = true
DISABLE_SSH = true
[database]
DB_TYPE = sqlite3
PATH = %[2]s/gitea.db
[repository]
ROOT = %[2]s/repositories
[security]
INSTALL_LOCK = true
SECRET_KEY = e2e
[service]
DISABLE_REGISTRATION = true
[cron]
ENABLED = false
[log]
MODE = console
LEVEL = Info
`, me.Username, folder, port, g.url, static)
	config := filepath.Join(folder, "app.ini")
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true", "GITEA_WORK_DIR=" + folder, "USER=" + me.Username}
	admin := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), path, append(args, "--config", config)...)
		cmd.Env, cmd.Dir = append(append(gitEnv(folder), "PATH="+os.Getenv("PATH"), "HOME="+folder), env...), folder
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("gitea %s: %v: %s%s", strings.Join(args, " "), err, out, &stderr)
		}
		return strings.TrimSpace(string(out))
	}
	admin("migrate")
	admin("admin", "user", "create", "--admin", "--username", giteaOwner, "--password", "e2e-e2e-e2e", "--email", "e2e@example.invalid", "--must-change-password=false")
	said := admin("admin", "user", "generate-access-token", "--token-name", "e2e", "--username", giteaOwner, "--scopes", "all", "--raw")
	token := said[strings.LastIndex(said, "\n")+1:] // its log comes before
	if err := os.WriteFile(g.tokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if g.process, err = start(program{name: "gitea", path: path, args: []string{"web", "--config", config}, env: env}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopQuietly(t, g.process) })
	if err := await("gitea answers", func() error { return g.ask(t.Context(), http.MethodGet, "version", nil, nil) }, g.process); err != nil {
		t.Fatal(err)
	}
	return g
}

// ask calls Gitea's own API, for what Landfall does not do.
func (g *giteaServer) ask(ctx context.Context, method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, g.url+"/api/v1/"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	token, err := os.ReadFile(g.tokenFile)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "token "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, said)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(said, answer)
}

// TestAPlanGoesThroughGiteasPullRequests publishes plans by pull requests on a
// real Gitea: opened once, labelled, superseded, merged, with a commit status.
func TestAPlanGoesThroughGiteasPullRequests(t *testing.T) {
	full(t)
	t.Parallel()
	nameLogs(t)
	g := startGitea(t)
	ctx := t.Context()
	if err := g.ask(ctx, http.MethodPost, "user/repos", map[string]any{"name": "platform", "default_branch": "dev"}, nil); err != nil {
		t.Fatal(err)
	}
	url := g.url + "/" + giteaOwner + "/platform"
	repo, err := gitrepo.Open(gitrepo.Options{URL: url + ".git", Dir: filepath.Join(t.TempDir(), "mirror"), Auth: gitrepo.Auth{Username: giteaOwner, TokenFile: g.tokenFile}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := forge.New(forge.Options{Provider: forge.Gitea, Repo: url + ".git", TokenFile: g.tokenFile})
	if err != nil {
		t.Fatal(err)
	}
	o := publish.Options{Repo: repo, Branch: "dev", Name: "landfall", Email: "landfall@example.invalid", Now: time.Now(), Message: "Schedule dev\n"}
	plan := func(text, promoted string) *publish.Desired {
		return &publish.Desired{Mark: "mark", PromotedCommit: promoted, ClusterTypes: []publish.ClusterType{{
			Name: "drone", Readme: []byte("<!-- mark -->\n"), Assignments: []publish.Assignment{{Name: "hello", Files: []publish.File{{Name: "reconciler.yaml", Text: []byte(text)}}}},
		}}}
	}
	var last publish.Request
	propose := func(want *publish.Desired) publish.Proposal {
		t.Helper()
		p, err := publish.Propose(ctx, o, f, want, last)
		if err != nil {
			t.Fatal(err)
		}
		last = p.Request
		return p
	}

	first := propose(plan("1", "")) // makes the branch of an empty repository
	if !first.Changed || first.PullRequest.Number != 0 {
		t.Fatalf("the first plan: %+v", first)
	}
	eventually(t, "Gitea sees that the repository is not empty any more", func() error {
		_, err := f.PullRequests(ctx, "dev")
		return err
	})
	second := propose(plan("2", strings.Repeat("a", 40)))
	if p := second.PullRequest; p.State != forge.Open || !slices.Equal(p.Labels, []string{publish.LabelPromoted}) || p.Base != "dev" || p.URL == "" {
		t.Errorf("a change was asked for as %+v", p)
	}
	if again := propose(plan("2", strings.Repeat("a", 40))); again.PullRequest.Number != second.PullRequest.Number {
		t.Errorf("the same change again is pull request %d, and was %d", again.PullRequest.Number, second.PullRequest.Number)
	}
	third := propose(plan("3", strings.Repeat("a", 40)))
	if !slices.Equal(third.Closed, []int64{second.PullRequest.Number}) {
		t.Errorf("a newer plan closed %v, not %d", third.Closed, second.PullRequest.Number)
	}
	if old, err := f.PullRequest(ctx, second.PullRequest.Number); err != nil || old.State != forge.Closed || old.MergeCommit != "" {
		t.Errorf("the older one is %+v, %v", old, err)
	}

	head := third.PullRequest.HeadCommit
	for _, s := range []forge.Status{{Context: "landfall/dev", Verdict: forge.Pending, Description: "Deploying", URL: "https://hub.example/x"}, {Context: "landfall/dev", Verdict: forge.Success, Description: "Deployed"}} {
		if err := f.SetStatus(ctx, head, s); err != nil {
			t.Fatal(err)
		}
	}
	var combined struct {
		State    string
		Statuses []struct{ Context, Status, Description string }
	}
	if err := g.ask(ctx, http.MethodGet, "repos/"+giteaOwner+"/platform/commits/"+head+"/status", nil, &combined); err != nil {
		t.Fatal(err)
	}
	if combined.State != "success" || len(combined.Statuses) != 1 || combined.Statuses[0].Context != "landfall/dev" {
		t.Errorf("the commit's status is %+v: one context has one status, the newest", combined)
	}

	merge := func() error {
		return g.ask(ctx, http.MethodPost, fmt.Sprintf("repos/%s/platform/pulls/%d/merge", giteaOwner, third.PullRequest.Number), map[string]any{"Do": "merge"}, nil)
	}
	eventually(t, "Gitea merges the pull request", merge) // it looks for conflicts first
	merged, err := f.PullRequest(ctx, third.PullRequest.Number)
	if err != nil || merged.State != forge.Merged {
		t.Fatalf("the merged one is %+v, %v", merged, err)
	}
	if at, err := repo.Fetch(ctx, "dev"); err != nil || at != merged.MergeCommit {
		t.Errorf("dev is at %s, the merge commit is %s (%v)", at, merged.MergeCommit, err)
	}
	if last := propose(plan("3", strings.Repeat("a", 40))); last.Changed {
		t.Errorf("what was merged is asked for again: %+v", last)
	}
}

// newRepo makes a repository with one commit, and returns its address.
func (g *giteaServer) newRepo(t *testing.T, name, branch string) string {
	t.Helper()
	if err := g.ask(t.Context(), http.MethodPost, "user/repos", map[string]any{"name": name, "default_branch": branch, "auto_init": true}, nil); err != nil {
		t.Fatal(err)
	}
	return g.url + "/" + giteaOwner + "/" + name + ".git"
}

// write makes a commit of one file.
func (g *giteaServer) write(t *testing.T, repo, branch, path, text string) {
	t.Helper()
	at := "repos/" + giteaOwner + "/" + repo + "/contents/" + path
	body := map[string]any{"branch": branch, "message": "e2e", "content": base64.StdEncoding.EncodeToString([]byte(text))}
	method := http.MethodPost
	var there struct{ SHA string }
	if g.ask(t.Context(), http.MethodGet, at+"?ref="+branch, nil, &there) == nil {
		method, body["sha"] = http.MethodPut, there.SHA
	}
	if err := g.ask(t.Context(), method, at, body, nil); err != nil {
		t.Fatal(err)
	}
}

// head returns the newest commit of a branch.
func (g *giteaServer) head(t *testing.T, repo, branch string) string {
	t.Helper()
	var b struct{ Commit struct{ ID string } }
	if err := g.ask(t.Context(), http.MethodGet, "repos/"+giteaOwner+"/"+repo+"/branches/"+branch, nil, &b); err != nil {
		t.Fatal(err)
	}
	return b.Commit.ID
}

// status waits until a commit of the control plane has a status of the hub.
func (g *giteaServer) status(t *testing.T, commit, state, description string) {
	t.Helper()
	eventually(t, "the commit's status is "+state+", "+description, func() error {
		var combined struct {
			Statuses []struct{ Context, Status, Description string }
		}
		if err := g.ask(t.Context(), http.MethodGet, "repos/"+giteaOwner+"/control-plane/commits/"+commit+"/status", nil, &combined); err != nil {
			return err
		}
		for _, s := range combined.Statuses {
			if s.Context == "landfall/dev" && s.Status == state && strings.Contains(s.Description, description) {
				return nil
			}
		}
		return fmt.Errorf("it is %+v", combined.Statuses)
	})
}

// pulls waits until the platform repository's pull requests are in these states,
// by number.
func (g *giteaServer) pulls(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the pull requests are %v", want), func() error {
		var all []struct {
			State  string
			Merged bool
		}
		if err := g.ask(t.Context(), http.MethodGet, "repos/"+giteaOwner+"/platform/pulls?state=all&sort=oldest", nil, &all); err != nil {
			return err
		}
		var got []string
		for _, p := range all {
			if p.Merged {
				p.State = "merged"
			}
			got = append(got, p.State)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
}

// TestTheHubPublishesThroughGiteasPullRequests runs the hub on a control plane,
// a source and a GitOps repository of a real Gitea: what is planned waits for a
// person, and the control plane's commits say how it stands.
func TestTheHubPublishesThroughGiteasPullRequests(t *testing.T) {
	full(t)
	t.Parallel()
	nameLogs(t)
	g := startGitea(t)
	plane, platform, source := g.newRepo(t, "control-plane", "main"), g.newRepo(t, "platform", "dev"), g.newRepo(t, "app-src", "main")
	if err := g.ask(t.Context(), http.MethodPost, "repos/"+giteaOwner+"/control-plane/branches", map[string]any{"new_branch_name": "dev"}, nil); err != nil {
		t.Fatal(err)
	}
	document := func(kind, name, rest string) string {
		return "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n" + rest + "\n"
	}
	template := func(name, kind, text string) string {
		return document("Template", name, "spec:\n  type: "+kind+"\n  manifests:\n  - |\n    kind: A\n    metadata: {name: "+text+"}")
	}
	g.write(t, "app-src", "main", "app.yaml", document("Workload", "hello",
		"spec: {deploymentTargets: [{name: test, environment: dev, manifests: {repo: "+g.url+"/"+giteaOwner+"/app, branch: dev, path: ./test}}]}"))
	g.write(t, "control-plane", "main", "hello.yaml", document("WorkloadRegistration", "hello", "spec: {workspace: kaizen, workload: {repo: "+source+", branch: main}}"))
	g.write(t, "control-plane", "main", "flux.yaml", template("flux", "reconciler", "{{.DeploymentTargetName}}"))
	g.write(t, "control-plane", "main", "namespace.yaml", template("namespace", "namespace", "{{.Namespace}}"))
	g.write(t, "control-plane", "dev", "drone.yaml", document("ClusterType", "drone", "spec: {reconciler: flux, namespaceService: namespace}"))
	g.write(t, "control-plane", "dev", "policy.yaml", document("SchedulingPolicy", "all", "spec: {deploymentTargetSelector: {labelSelector: {}}, clusterTypeSelector: {labelSelector: {}}}"))
	g.write(t, "control-plane", "dev", "gitops.yaml", document("GitOpsRepo", "platform", "spec: {repo: "+platform+", branch: dev}"))

	auth := "auth: {username: " + giteaOwner + ", token_file: " + g.tokenFile + "}, forge: {provider: gitea}"
	h, err := startHub("gitea-hub", fmt.Sprintf("control_planes: [{url: %s, environments: {dev: dev}, publish: pull_request, interval: 1s, %s}]\nrepositories: [{url: %s, interval: 1s, %s}]\n", plane, auth, platform, auth))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopQuietly(t, h.process) })
	recorded := func(want string) {
		t.Helper()
		eventually(t, fmt.Sprintf("the assignment is recorded at %q", want), func() error {
			var page struct{ Items []schema.Assignment }
			if err := h.get(t.Context(), "/api/v1/assignments?environment=dev", &page); err != nil {
				return err
			}
			if len(page.Items) != 1 || page.Items[0].DeploymentTarget != "hello-test" || page.Items[0].GitOpsCommit != want {
				return fmt.Errorf("recorded is %+v", page.Items)
			}
			return nil
		})
	}
	ready := func(want string) {
		t.Helper()
		eventually(t, "/readyz says "+want, func() error {
			var said json.RawMessage
			if err := h.get(t.Context(), "/readyz", &said); err != nil {
				return err
			}
			if !strings.Contains(string(said), want) {
				return fmt.Errorf("it says %s", said)
			}
			return nil
		})
	}
	merge := func(number int) {
		t.Helper()
		eventually(t, "Gitea merges the pull request", func() error {
			return g.ask(t.Context(), http.MethodPost, fmt.Sprintf("repos/%s/platform/pulls/%d/merge", giteaOwner, number), map[string]any{"Do": "merge"}, nil)
		})
	}
	set := func(number int, state string) {
		t.Helper()
		if err := g.ask(t.Context(), http.MethodPatch, fmt.Sprintf("repos/%s/platform/pulls/%d", giteaOwner, number), map[string]any{"state": state}, nil); err != nil {
			t.Fatal(err)
		}
	}

	dev := g.head(t, "control-plane", "dev")
	g.pulls(t, "open")
	g.status(t, dev, "pending", "1 assignment, pull request 1 waits to be merged")
	recorded("")
	ready("pull request 1 (" + g.url + "/" + giteaOwner + "/platform/pulls/1) waits to be merged")
	merge(1)
	g.status(t, dev, "success", "1 assignment")
	recorded(g.head(t, "platform", "dev"))

	// What breaks is said of the environment's newest commit, and clears itself
	// there. The promoted commit is new: that is proposed all the same.
	g.write(t, "control-plane", "main", "flux.yaml", template("flux", "reconciler", "{{.Nonsense}}"))
	g.status(t, dev, "failure", "flux.yaml:")
	g.pulls(t, "merged", "open")
	g.write(t, "control-plane", "main", "flux.yaml", template("flux", "reconciler", "new-{{.DeploymentTargetName}}"))
	g.pulls(t, "merged", "closed", "open")
	g.status(t, dev, "pending", "pull request 3 waits to be merged")

	// A person says no, and thinks better of it.
	set(3, "closed")
	g.status(t, dev, "failure", "was closed without being merged")
	ready("pull request 3 (" + g.url + "/" + giteaOwner + "/platform/pulls/3) was closed without being merged")
	set(3, "open")
	g.status(t, dev, "pending", "pull request 3 waits to be merged")
	merge(3)
	g.status(t, dev, "success", "1 assignment")
	recorded(g.head(t, "platform", "dev"))
	g.pulls(t, "merged", "closed", "merged")
	var branches []struct{ Name string }
	if err := g.ask(t.Context(), http.MethodGet, "repos/"+giteaOwner+"/platform/branches", nil, &branches); err != nil {
		t.Fatal(err)
	}
	if len(branches) != 3 { // dev, and those of what was merged
		t.Errorf("the branches are %v: that of a request that was replaced is deleted", branches)
	}
}

//go:build e2e

package e2e

import (
	"bytes"
	"context"
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

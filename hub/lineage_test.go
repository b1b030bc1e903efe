package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// stage is a hub that follows real repositories, and what stands around it.
type stage struct {
	hub    *Hub
	client *hubclient.Client
	server *gittest.Server
	repos  map[string]*gittest.Repo
	// ahead is by how much the hub's clock is ahead of the real one.
	ahead atomic.Int64
}

func (s *stage) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// passes lets time pass for the hub.
func (s *stage) passes(d time.Duration) { s.ahead.Add(int64(d)) }

// newStage starts a hub that follows a repository for each name; one that is
// called sha256 has such ids, and one that is called nowhere is not there.
func newStage(t *testing.T, names ...string) *stage {
	t.Helper()
	return newStageWith(t, func(*Config) {}, names...)
}

// newStageWith is newStage with other settings.
func newStageWith(t *testing.T, change func(*Config), names ...string) *stage {
	t.Helper()
	binary, library := enginetest.Files(t)
	server, err := gittest.New(t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{server: server, repos: map[string]*gittest.Repo{}}
	config := DefaultConfig()
	config.Listen, config.DataDir = "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
	for _, name := range names {
		format := "sha1"
		if name == "sha256" {
			format = name
		}
		if name != "nowhere" {
			s.repos[name] = server.NewRepo(t, name, format)
			s.repos[name].Commit(t, map[string]string{"README": name}) // an empty one cannot be followed
		}
		config.Repositories = append(config.Repositories, RepositoryConfig{
			URL: filepath.Join(server.Root, name+".git"), Aliases: []string{"git@mirror.example:" + name + ".git"}, Interval: schema.Duration(time.Second),
		})
	}
	change(&config)
	s.hub, err = New(Options{Config: config, Version: "test", Log: slog.New(slog.NewTextHandler(t.Output(), nil)), EngineBinary: binary, EngineLibrary: library, Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.hub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the hub ended with %v", err)
		}
	})
	waitUntilReady(t, s.hub)
	s.client, err = hubclient.New(hubclient.Options{URL: s.hub.URL(), UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// agent is one cluster with one reconciler that reads the folder drone.
type agent struct {
	*stage
	t        *testing.T
	cluster  string
	repo     *gittest.Repo
	url      string
	epoch    uint64
	sequence uint64
}

// agent registers a cluster for a repository; a test has one of its own.
func (s *stage) agent(t *testing.T, repo string) *agent {
	t.Helper()
	return s.agentOf(t, repo, repo, time.Hour)
}

// agentOf is agent for a cluster of any name, with its heartbeat's interval.
func (s *stage) agentOf(t *testing.T, cluster, repo string, every time.Duration) *agent {
	t.Helper()
	a := &agent{stage: s, t: t, cluster: cluster, repo: s.repos[repo], url: "file://" + filepath.Join(s.server.Root, repo+".git")}
	epoch, err := s.client.Register(t.Context(), a.cluster, schema.Registration{
		Memberships: []schema.Membership{{Environment: "dev", Type: "drone"}}, Kind: "kubernetes", HeartbeatInterval: schema.Duration(every),
	})
	if err != nil {
		t.Fatal(err)
	}
	a.epoch = epoch
	return a
}

// says reports the reconciler at a commit.
func (a *agent) says(commit string, status schema.Status) {
	a.t.Helper()
	revision := []string{commit}
	a.reports(schema.Report{Mode: schema.ModeDelta, Reconcilers: []schema.Reconciler{{
		Kind: "Kustomization", Namespace: "flux-system", Name: "drone", Status: status, Applied: revision, Attempted: revision,
		Sources: []schema.Source{{Type: schema.SourceGit, URL: a.url, Ref: "main", Path: "./drone"}},
	}}})
}

// reports sends the next message.
func (a *agent) reports(r schema.Report) {
	a.t.Helper()
	a.sequence++
	r.Agent, r.Epoch, r.Sequence, r.ObservedAt = schema.Agent{Version: "1"}, a.epoch, a.sequence, time.Now()
	if _, err := a.client.Report(a.t.Context(), a.cluster, &r); err != nil {
		a.t.Fatal(err)
	}
}

// beats sends a heartbeat.
func (a *agent) beats() schema.HeartbeatAnswer {
	a.t.Helper()
	answer, err := a.client.Heartbeat(a.t.Context(), a.cluster, schema.Heartbeat{Epoch: a.epoch, Sequence: a.sequence})
	if err != nil {
		a.t.Fatal(err)
	}
	return answer
}

// question asks about a commit; policy fields and values stand in turn.
func (a *agent) question(commit string, policy ...string) hubclient.Question {
	q := hubclient.Question{Repo: a.url, Ref: "main", Path: "drone", Commit: commit, Policy: map[string]string{}}
	for i := 0; i < len(policy); i += 2 {
		q.Policy[policy[i]] = policy[i+1]
	}
	return q
}

// expect asks until the verdict is the wanted one: state, outcome of the one
// reconciler, and reason. What a fetch brings changes an answer within seconds.
func (a *agent) expect(when, commit, want string, policy ...string) {
	a.t.Helper()
	q := a.question(commit, policy...)
	var got string
	ctx, cancel := context.WithTimeout(a.t.Context(), time.Minute)
	defer cancel()
	for wait := time.Duration(0); ctx.Err() == nil; wait = time.Second {
		v, err := a.client.Compliance(ctx, q, wait)
		if err != nil {
			a.t.Fatal(err)
		}
		got = string(v.State)
		for _, u := range v.Unfinished {
			got += fmt.Sprintf(" %s %q", u.Verdict, u.Reason)
		}
		if v.Counts.Total != 1 {
			got += fmt.Sprintf(", %d in all", v.Counts.Total)
		}
		if got == want {
			return
		}
	}
	a.t.Errorf("%s: %s, want %s", when, got, want)
}

// commit changes files of the repository and pushes.
func (a *agent) commit(files map[string]string) string {
	a.t.Helper()
	return a.repo.Commit(a.t, files)
}

// What one commit after the other holds.
var (
	one   = map[string]string{"drone/a": "1", "large/a": "1"}
	two   = map[string]string{"drone/a": "2", "large/a": "1"}
	three = map[string]string{"drone/a": "3", "large/a": "1"}
)

const (
	passed     = "passed"
	notFetched = `waiting pending "not fetched"`
)

// What becomes of commits, on real repositories and over the API.
func TestLineage(t *testing.T) {
	s := newStage(t, "forced", "revert", "late", "alias", "merge", "sha256", "nowhere")
	t.Run("a force-push", func(t *testing.T) {
		a := s.agent(t, "forced")
		c1, c2 := a.commit(one), a.commit(two)
		a.says(c2, schema.StatusSuccess)
		a.expect("before", c2, passed)
		a.expect("the one before it", c1, passed)
		gittest.Git(t, a.repo.Tree, "reset", "--quiet", "--hard", c1)
		forced := a.commit(three)
		a.expect("forced", forced, `waiting unknown_lineage "its commit and this one are not related"`)
		a.expect("what was lost, by equality", c2, passed)
		a.expect("what both have in common", c1, passed)
		a.says(forced, schema.StatusSuccess)
		a.expect("applied", forced, passed)
		a.expect("what was lost", c2, `waiting unknown_lineage "its commit and this one are not related"`)
	})
	t.Run("a revert", func(t *testing.T) {
		a := s.agent(t, "revert")
		c1, c2 := a.commit(one), a.commit(two)
		a.says(c2, schema.StatusSuccess)
		a.expect("there", c2, passed)
		c3 := a.commit(one)
		a.says(c3, schema.StatusSuccess)
		a.expect("taken back", c2, string(schema.Failed)+` failed "reverted"`)
		a.expect("the revert itself", c3, passed)
		a.expect("what it went back to", c1, passed)
	})
	t.Run("a merge", func(t *testing.T) {
		a := s.agent(t, "merge")
		c1 := a.commit(one)
		gittest.Git(t, a.repo.Tree, "checkout", "--quiet", "-b", "side")
		a.repo.Write(t, two)
		gittest.Git(t, a.repo.Tree, "add", "--all")
		gittest.Git(t, a.repo.Tree, "commit", "--quiet", "--message", "side")
		side := strings.TrimSpace(gittest.Git(t, a.repo.Tree, "rev-parse", "HEAD"))
		gittest.Git(t, a.repo.Tree, "checkout", "--quiet", "main")
		c2 := a.commit(map[string]string{"drone/a": "1", "large/a": "2"})
		gittest.Git(t, a.repo.Tree, "merge", "--quiet", "--message", "merge", "side")
		merge := a.repo.CommitTree(t)
		a.says(c2, schema.StatusSuccess)
		a.expect("not merged", side, `waiting unknown_lineage "its commit and this one are not related"`)
		a.says(merge, schema.StatusSuccess)
		a.expect("merged", side, passed)
		a.expect("the other parent", c2, passed)
		a.expect("before both", c1, passed)
	})
	t.Run("a commit that was applied before the mirror has it", func(t *testing.T) {
		a := s.agent(t, "late")
		c1, c2 := a.commit(one), a.commit(two)
		a.says(c1, schema.StatusSuccess)
		a.expect("before", c2, notFetched)
		a.repo.Write(t, three)
		gittest.Git(t, a.repo.Tree, "add", "--all")
		gittest.Git(t, a.repo.Tree, "commit", "--quiet", "--message", "not pushed")
		c3 := strings.TrimSpace(gittest.Git(t, a.repo.Tree, "rev-parse", "HEAD"))
		a.says(c3, schema.StatusSuccess)
		a.expect("nobody knows it", c2, `waiting unknown_lineage "its commit or this one is not in the mirror"`)
		a.repo.Push(t, "HEAD:refs/heads/main")
		a.expect("it came, and whoever waited was woken", c2, passed)
	})
	t.Run("one repository under two names", func(t *testing.T) {
		a := s.agent(t, "alias")
		c1, c2 := a.commit(one), a.commit(two)
		a.says(c1, schema.StatusSuccess)
		a.expect("by its own name", c2, notFetched)
		a.url = "https://mirror.example/alias"
		a.expect("by the other one", c2, notFetched)
		a.says(c2, schema.StatusSuccess) // moves to the other name
		a.expect("reported and asked by the other name", c2, passed)
		a.expect("lineage too", c1, passed)
		a.url = a.repo.Bare
		a.expect("reported by the other name, asked by its own", c2, passed)
	})
	t.Run("a SHA-256 repository", func(t *testing.T) {
		a := s.agent(t, "sha256")
		c1, c2 := a.commit(one), a.commit(two)
		a.says(c2, schema.StatusSuccess)
		a.expect("by equality", c2, passed)
		a.expect("and by nothing else", c1, `waiting unknown_lineage "its commit or this one is not in the mirror"`)
	})
	_, metrics := get(t, s.hub.URL()+"/metrics")
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "landfall_git_fetch_seconds_") && !strings.Contains(line, "bucket") {
			t.Log(strings.TrimSpace(line))
		}
	}
	t.Run("readiness", func(t *testing.T) {
		response, body := get(t, s.hub.URL()+"/readyz")
		var ready struct {
			Checks []struct {
				Name   string `json:"name"`
				OK     bool   `json:"ok"`
				Detail string `json:"detail"`
			} `json:"checks"`
		}
		if err := json.Unmarshal([]byte(body), &ready); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %v", response.Status, body, err)
		}
		wrong := 0
		for _, c := range ready.Checks {
			bad := strings.HasSuffix(c.Name, "/nowhere") || strings.HasSuffix(c.Name, "/sha256")
			if c.OK == bad {
				t.Errorf("%+v", c)
			}
			if bad {
				wrong++
			}
		}
		if wrong != 2 || len(ready.Checks) != 8 {
			t.Errorf("%d checks, %d of them of repositories that cannot be followed", len(ready.Checks), wrong)
		}
	})
}

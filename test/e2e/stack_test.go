//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// clusterName is how the agent of the shared cluster calls it.
const clusterName = "e2e"

// shared is what most tests use: started by the first test that wants it,
// stopped after the last.
var shared struct {
	sync.Mutex
	cluster *cluster
	git     *gitServer
	hub     *hub
	agent   *agent
	flux    controllers
	argo    controllers
	// broken is why an earlier test could not start it: the next ones need not
	// wait for the same.
	broken error
}

// part starts a part of what is shared.
type part func(context.Context) error

func startGitOnce(context.Context) (err error) {
	if shared.git == nil {
		shared.git, err = startGit()
	}
	return err
}

func startClusterOnce(context.Context) (err error) {
	if shared.cluster == nil {
		shared.cluster, err = startCluster(clusterName)
	}
	return err
}

func startHubOnce(context.Context) (err error) {
	if shared.hub == nil {
		shared.hub, err = startHub("hub", "")
	}
	return err
}

func startAgentOnce(context.Context) (err error) {
	if shared.agent == nil {
		shared.agent, err = startAgent(shared.cluster, shared.hub, clusterName, "agent", quick...)
	}
	return err
}

func startFluxOnce(ctx context.Context) (err error) {
	if shared.flux == nil {
		shared.flux, err = shared.cluster.startFlux(ctx)
	}
	return err
}

func startArgoCDOnce(ctx context.Context) (err error) {
	if shared.argo == nil {
		shared.argo, err = shared.cluster.startArgoCD(ctx)
	}
	return err
}

// need starts the parts that are not there yet, in this order.
func need(t testing.TB, parts ...part) {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.broken != nil {
		t.Fatalf("an earlier test could not start what this one shares with it: %v", shared.broken)
	}
	for _, p := range parts {
		// What all share must not end with the test that came first.
		if err := p(context.Background()); err != nil {
			shared.broken = err
			t.Fatalf("starting what the tests share: %v; every program's log is in %s", err, logFolder())
		}
	}
}

// stopShared stops in the order that lets each part end well: who talks to the
// API server first, etcd last.
func stopShared() error {
	shared.Lock()
	defer shared.Unlock()
	errs := []error{shared.argo.stop(), shared.flux.stop()}
	if shared.agent != nil {
		errs = append(errs, shared.agent.stop())
	}
	if shared.hub != nil {
		errs = append(errs, shared.hub.stop())
	}
	if shared.cluster != nil {
		errs = append(errs, shared.cluster.stop())
	}
	if shared.git != nil {
		errs = append(errs, shared.git.stop())
	}
	return errors.Join(errs...)
}

// scene is a test's own namespace and repository on a cluster, with the hub
// that answers for it.
type scene struct {
	t testing.TB
	*cluster
	hub  *hub
	repo *repo
	// folder is the test's below testdata.
	folder    string
	namespace string
}

// scenes numbers them: a test that runs twice finds nothing of the first run.
var scenes struct {
	sync.Mutex
	n int
}

// newScene makes a namespace and a repository of the test's own on the shared
// cluster, with these reconcilers running on it.
func newScene(t testing.TB, folder string, reconcilers ...part) *scene {
	t.Helper()
	nameLogs(t)
	need(t, append([]part{startGitOnce, startClusterOnce, startHubOnce, startAgentOnce}, reconcilers...)...)
	return newSceneOn(t, folder, shared.cluster, shared.hub)
}

// newSceneOn is newScene on a cluster and with a hub of the test's own.
func newSceneOn(t testing.TB, folder string, c *cluster, h *hub) *scene {
	t.Helper()
	return newSceneOf(t, folder, c, h, nil)
}

// newSceneOf is newSceneOn with a repository that is there already; nil makes
// one.
func newSceneOf(t testing.TB, folder string, c *cluster, h *hub, r *repo) *scene {
	t.Helper()
	need(t, startGitOnce)
	scenes.Lock()
	scenes.n++
	s := &scene{t: t, cluster: c, hub: h, repo: r, folder: folder, namespace: fmt.Sprintf("%s-%d", folder, scenes.n)}
	scenes.Unlock()
	if s.repo == nil {
		s.repo = shared.git.newRepo(t, s.namespace)
	}
	if err := c.applyText(t.Context(), fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %q}}", s.namespace)); err != nil {
		t.Fatal(err)
	}
	return s
}

// nameLogs makes a failure say where to look.
func nameLogs(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("every program's log is in %s", logFolder())
		}
	})
}

// commit makes the repository what testdata/FOLDER/name holds, and returns the
// commit's id.
func (s *scene) commit(name string) string {
	s.t.Helper()
	return s.repo.commit(s.t, s.folder+"/"+name, s.values())
}

// values are what templates of testdata may use.
func (s *scene) values() map[string]string {
	return map[string]string{"Namespace": s.namespace, "Repo": s.repo.url, "Branch": branch}
}

// apply makes the cluster hold the objects of testdata/FOLDER/name.
func (s *scene) apply(name string) {
	s.t.Helper()
	text, err := fill(testdata(s.t, s.folder, name), s.values())
	if err != nil {
		s.t.Fatalf("filling in %s/%s: %v", s.folder, name, err)
	}
	if err := s.applyText(s.t.Context(), text); err != nil {
		s.t.Fatal(err)
	}
}

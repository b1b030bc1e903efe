//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	"github.com/landfall-hub/landfall/schema"
)

// TestAHubThatFollowsTheRepositoryKnowsWhichCommitComesFirst has a hub of its
// own: which repositories one follows stands in its settings.
func TestAHubThatFollowsTheRepositoryKnowsWhichCommitComesFirst(t *testing.T) {
	full(t)
	t.Parallel()
	nameLogs(t)
	need(t, startGitOnce, startClusterOnce, startFluxOnce)
	s := newSceneOn(t, "flux-good", shared.cluster, nil)
	first := s.commit("first")
	var err error
	s.hub, err = startHub("hub-lineage", fmt.Sprintf("repositories: [{url: %q, refs: [%s], interval: 5s}]\n", s.repo.url, branch))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopQuietly(t, s.hub.process) })
	a, err := startAgent(s.cluster, s.hub, "lineage", "agent-lineage", quick...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopQuietly(t, a.process) })
	s.apply("objects.yaml")
	s.gate(first, "app").passes()

	// While the source stands still: a commit that does not touch the folder asks
	// nothing of who reads it, one that does is waited for.
	s.set(gitRepos, "repo", map[string]any{"suspend": true})
	beside, second := s.commit("beside"), s.commit("second")
	s.gate(beside, "app").passes()
	s.gate(second, "app").waits(entry{"Kustomization/app", schema.OutcomePending, "^GitRepository/.*/repo is suspended"})

	// What was overtaken has landed too.
	s.set(gitRepos, "repo", map[string]any{"suspend": false})
	s.gate(second, "app").passes()
	s.gate(first, "app").passes()
	s.gate(beside, "app").passes()
	s.holds("app", "second")
}

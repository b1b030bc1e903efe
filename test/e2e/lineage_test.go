//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/schema"
)

// delivery is a reconciler that brings commits of a followed repository to the
// cluster by itself, and can be held.
type delivery struct {
	name   string
	folder string
	start  part
	// who is how verdicts name the reconciler, idle why it does not get on while
	// it is held.
	who  func(*scene) string
	idle string
	// hold has it look at the repository no more, release look at once.
	hold, release func(*scene)
}

var deliveries = []delivery{
	{
		name: "Flux", folder: "flux-good", start: startFluxOnce,
		who:     func(*scene) string { return "Kustomization/app" },
		idle:    "^GitRepository/.*/repo is suspended",
		hold:    func(s *scene) { s.set(gitRepos, "repo", map[string]any{"suspend": true}) },
		release: func(s *scene) { s.set(gitRepos, "repo", map[string]any{"suspend": false}) },
	},
	{
		name: "Argo CD", folder: "argo-good", start: startArgoCDOnce,
		who:  (*scene).application,
		idle: "^not fetched",
		hold: func(s *scene) { s.annotateApplication(map[string]any{skipReconcile: "true"}) },
		release: func(s *scene) {
			s.annotateApplication(map[string]any{skipReconcile: nil})
			s.refresh()
		},
	},
}

const skipReconcile = "argocd.argoproj.io/skip-reconcile"

const (
	notRelated = "^its commit and this one are not related"
	rolledBack = "^rolled back"
	reverted   = "^reverted"
)

// histories are what can become of a branch while people wait for a commit of
// it. Each begins with the first commit on the cluster.
var histories = map[string]func(*scene, delivery, string){
	// What was pushed away is judged by equality, what both have in common and
	// what came instead by lineage.
	"a force-push": func(s *scene, d delivery, first string) {
		second := s.lands(d, "second", first)
		d.hold(s)
		s.repo.goBack(s.t, first)
		third := s.commit("third")
		s.gate(third, "app").waits(entry{d.who(s), schema.OutcomeUnknownLineage, notRelated})
		s.gate(second, "app").passes()
		s.gate(first, "app").passes()

		d.release(s)
		s.gate(third, "app").passes()
		s.holds("app", "third")
		s.gate(second, "app").reopens(entry{d.who(s), schema.OutcomeUnknownLineage, notRelated})
		s.gate(first, "app").passes()
	},
	// FalseGreen 5: what was rolled back is not there any more, though it was once.
	"a rollback": func(s *scene, d delivery, first string) {
		second := s.lands(d, "second", first)
		s.repo.goBack(s.t, first)
		s.repo.push(s.t)
		d.release(s)
		s.gate(second, "app").reopens(entry{d.who(s), schema.OutcomePending, rolledBack})
		s.gate(first, "app").passes()
		s.holds("app", "first")

		s.repo.goBack(s.t, second)
		s.repo.push(s.t)
		d.release(s)
		s.gate(second, "app").passes()
		s.holds("app", "second")
	},
	// FalseGreen 4: a commit that nobody ever applied has landed with one that follows
	// it.
	"a second commit during the wait": func(s *scene, d delivery, _ string) {
		d.hold(s)
		idle := entry{d.who(s), schema.OutcomePending, d.idle}
		second := s.commit("second")
		s.gate(second, "app").waits(idle)
		third := s.commit("third")
		s.gate(third, "app").waits(idle)
		s.gate(second, "app").waits(idle)

		d.release(s)
		s.gate(second, "app").passes()
		s.gate(third, "app").exits(0)
		s.holds("app", "third")
	},
	// FalseGreen 6: a commit elsewhere asks nothing of who reads this folder; the
	// next one does.
	"a commit that does not touch the path": func(s *scene, d delivery, first string) {
		d.hold(s)
		beside, second := s.commit("beside"), s.commit("second")
		s.gate(beside, "app").passes()
		s.gate(second, "app").waits(entry{d.who(s), schema.OutcomePending, d.idle})

		d.release(s)
		for _, commit := range []string{second, beside, first} {
			s.gate(commit, "app").passes()
		}
		s.holds("app", "second")
	},
	// What was taken back has failed; what took it back has landed.
	"a revert": func(s *scene, d delivery, first string) {
		second := s.lands(d, "second", first)
		third := s.commit("first")
		d.release(s)
		s.gate(third, "app").passes()
		s.holds("app", "first")
		s.gate(second, "app").failsAfterAll(entry{d.who(s), schema.OutcomeFailed, reverted})
		s.gate(second, "app").exits(1)
		s.gate(first, "app").passes()
	},
}

// TestAHubThatFollowsTheRepositoryKnowsWhatBecameOfACommit has a hub and an
// agent of its own, which all its cases share: which repositories a hub follows
// stands in its settings.
func TestAHubThatFollowsTheRepositoryKnowsWhatBecameOfACommit(t *testing.T) {
	full(t)
	t.Parallel()
	nameLogs(t)
	need(t, startGitOnce, startClusterOnce, startFluxOnce, startArgoCDOnce)
	var settings strings.Builder
	settings.WriteString("repositories:\n")
	repos := map[string]*repo{}
	names := slices.Sorted(maps.Keys(histories))
	for i, name := range names {
		for j, d := range deliveries {
			r := shared.git.newRepo(t, fmt.Sprintf("followed-%d-%d", i, j))
			r.commitFiles(t, map[string]string{"README": name}) // an empty repository cannot be followed
			repos[name+d.name] = r
			fmt.Fprintf(&settings, "- {url: %q, refs: [%s], interval: 5s}\n", r.url, branch)
		}
	}
	h, err := startHub("hub-lineage", settings.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopQuietly(t, h.process) })
	a, err := startAgent(shared.cluster, h, "lineage", "agent-lineage", quick...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopQuietly(t, a.process) })
	for _, name := range names {
		for _, d := range deliveries {
			t.Run(name+" with "+d.name, func(t *testing.T) {
				t.Parallel()
				s := newSceneOf(t, d.folder, shared.cluster, h, repos[name+d.name])
				first := s.commit("first")
				s.apply("objects.yaml")
				s.gate(first, "app").passes()
				histories[name](s, d, first)
			})
		}
	}
}

// lands commits and waits until it has landed, and until the hub's mirror has it
// too: with it, the one before has landed by lineage. What is pushed away before
// it was fetched, nobody can know.
func (s *scene) lands(d delivery, name, before string) string {
	s.t.Helper()
	commit := s.commit(name)
	d.release(s)
	s.gate(commit, "app").passes()
	s.holds("app", name)
	s.gate(before, "app").passes()
	return commit
}

//go:build e2e

package e2e

import (
	"testing"

	"github.com/landfall-hub/landfall/schema"
)

func TestACommitThatFluxAppliesPassesTheGate(t *testing.T) {
	t.Parallel()
	s := newScene(t, "flux-good", startFluxOnce)
	first := s.commit("first")
	s.apply("objects.yaml")
	s.gate(first, "app").passes()

	// While the source stands still the second commit is known to Git alone.
	s.set(gitRepos, "repo", map[string]any{"suspend": true})
	second := s.commit("second")
	s.gate(second, "app").waits(entry{"Kustomization/app", schema.OutcomeUnknownLineage, "not in the mirror"})
	s.set(gitRepos, "repo", map[string]any{"suspend": false})
	s.gate(second, "app").exits(0)
	s.gate(second, "app").passes()
	s.holds("app", "second")
}

func TestAMissingFolderFailsTheGateAfterAWhile(t *testing.T) {
	full(t)
	t.Parallel()
	s := newScene(t, "flux-missing-path", startFluxOnce)
	first := s.commit("first")
	s.apply("objects.yaml")
	s.gate(first, "app").fails(entry{"Kustomization/app", schema.OutcomeFailed, "^ArtifactFailed: .*app"})
	s.gate(s.commit("second"), "app").passes()
}

func TestAnInvalidManifestFailsTheGate(t *testing.T) {
	t.Parallel()
	s := newScene(t, "flux-invalid", startFluxOnce)
	first := s.commit("first")
	s.apply("objects.yaml")
	s.gate(first, "app").fails(entry{"Kustomization/app", schema.OutcomeFailed, "^ReconciliationFailed: .*Not_A_Name"})
	s.gate(first, "app").exits(1)
	second := s.commit("second")
	s.gate(second, "app").passes()
	s.holds("app", "second")
}

func TestAFailingHealthCheckFailsTheGateUntilItIsWell(t *testing.T) {
	full(t)
	t.Parallel()
	s := newScene(t, "flux-health", startFluxOnce)
	first := s.commit("first")
	s.apply("objects.yaml")
	s.gate(first, "app").fails(entry{"Kustomization/app", schema.OutcomeFailed, "^HealthCheckFailed: .*Deployment"})
	s.makeAvailable("app")
	s.gate(first, "app").passes()
}

func TestADependencyThatIsNotReadyHoldsTheGate(t *testing.T) {
	full(t)
	t.Parallel()
	s := newScene(t, "flux-dependency", startFluxOnce)
	first := s.commit("first")
	s.apply("objects.yaml")
	s.gate(first, "app").waits(entry{"Kustomization/app", schema.OutcomeInProgress, "^DependencyNotReady: .*base"})
	second := s.commit("second")
	s.gate(second, "").passes()
}

func TestASuspendedKustomizationDoesNotPass(t *testing.T) {
	full(t)
	t.Parallel()
	s := newScene(t, "flux-suspended", startFluxOnce)
	first := s.commit("first")
	s.apply("objects.yaml")
	s.gate(first, "app").passes()

	s.set(kustomizations, "app", map[string]any{"suspend": true})
	second := s.commit("second")
	// Left out of the count by default, it leaves nobody to pass for.
	s.gate(second, "app").waits(entry{"Kustomization/app", schema.OutcomeSuspended, "suspended"})
	// What it runs it goes on running.
	s.gate(first, "app").passes()

	s.set(kustomizations, "app", map[string]any{"suspend": false})
	s.gate(second, "app").passes()
}

func TestASourceThatCannotFetchHoldsTheGate(t *testing.T) {
	full(t)
	t.Parallel()
	s := newScene(t, "flux-source", startFluxOnce)
	first := s.commit("first")
	s.repo.refuse(true)
	s.apply("objects.yaml")
	s.gate(first, "app").waits(entry{"Kustomization/app", schema.OutcomePending, "503|unable to|failed to"})
	s.repo.refuse(false)
	s.gate(first, "app").passes()

	// With an artifact of old, the Kustomization goes on saying Ready.
	s.repo.refuse(true)
	second := s.commit("second")
	s.waitFor(t, gitRepos, s.namespace, "repo", isNotReady)
	s.gate(second, "app").waits(entry{"Kustomization/app", schema.OutcomeUnknownLineage, "not in the mirror"})
	s.gate(first, "app").passes()
	s.repo.refuse(false)
	s.gate(second, "app").passes()
}

func TestAChildThatFailsFailsItsReadyRoot(t *testing.T) {
	t.Parallel()
	s := newScene(t, "flux-child", startFluxOnce)
	first := s.commit("first")
	s.apply("objects.yaml")
	s.waitFor(t, kustomizations, s.namespace, "root", isReady)
	s.gate(first, "root").fails(entry{"Kustomization/root", schema.OutcomeFailed, "^child Kustomization/.*/child: "})
	s.gate(first, "root", "children", "ignore").passes()
	second := s.commit("second")
	s.gate(second, "root").passes()
}

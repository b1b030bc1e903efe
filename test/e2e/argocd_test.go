//go:build e2e

package e2e

import (
	"errors"
	"testing"

	"github.com/landfall-hub/landfall/schema"
)

func TestACommitThatArgoCDSyncsPassesTheGate(t *testing.T) {
	t.Parallel()
	s := newScene(t, "argo-good", startArgoCDOnce)
	first := s.commit("first")
	s.apply("objects.yaml")
	s.gate(first, "app").passes()

	second := s.commit("second")
	s.refresh()
	s.gate(second, "app").passes()
	s.holds("app", "second")
}

func TestAnApplicationWithoutAutomatedSyncWaitsForAPerson(t *testing.T) {
	t.Parallel()
	s := newScene(t, "argo-manual", startArgoCDOnce)
	first := s.commit("first")
	s.apply("objects.yaml")
	waits := entry{s.application(), schema.OutcomePending, "^OutOfSync: "}
	s.gate(first, "app").waits(waits)
	s.sync(first)
	s.gate(first, "app").passes()

	// FalseGreen 1: the operation before still says Succeeded.
	second := s.commit("second")
	s.refresh()
	s.gate(second, "app").waits(waits)
	s.sync(second)
	s.gate(second, "app").passes()
	s.holds("app", "second")
}

func TestDriftByHandIsShownAndStillPasses(t *testing.T) {
	full(t)
	t.Parallel()
	s := newScene(t, "argo-drift", startArgoCDOnce)
	first := s.commit("first")
	s.apply("objects.yaml")
	s.gate(first, "app").passes()

	if err := s.patch(t.Context(), configMaps, s.namespace, "app", map[string]any{"data": map[string]any{"value": "by hand"}}); err != nil {
		t.Fatal(err)
	}
	s.gate(first, "app").stays(schema.Passed, "the drift is shown", func() error {
		row, err := s.row("Application", argoNamespace, s.namespace)
		if err != nil {
			return err
		}
		if !row.Drifted || row.Status != schema.StatusSuccess {
			return errors.New("it is not shown as drifted")
		}
		return nil
	})
}

func TestAFailedSyncFailsTheGate(t *testing.T) {
	full(t)
	t.Parallel()
	s := newScene(t, "argo-failed", startArgoCDOnce)
	first := s.commit("first")
	s.apply("objects.yaml")
	s.gate(first, "app").fails(entry{s.application(), schema.OutcomeFailed, "^SyncError: "})
	second := s.commit("second")
	s.refresh()
	s.gate(second, "app").passes()
}

func TestADegradedApplicationFailsTheGate(t *testing.T) {
	full(t)
	t.Parallel()
	s := newScene(t, "argo-degraded", startArgoCDOnce)
	first := s.commit("first")
	s.apply("objects.yaml")
	s.gate(first, "app").waits(entry{s.application(), schema.OutcomeInProgress, "^Progressing"})
	s.makeStuck("app")
	s.gate(first, "app").fails(entry{s.application(), schema.OutcomeFailed, "^Degraded"})
	s.makeAvailable("app")
	s.gate(first, "app").passes()
}

func TestAnApplicationThatFailsFailsItsHealthyRoot(t *testing.T) {
	full(t)
	t.Parallel()
	s := newScene(t, "argo-child", startArgoCDOnce)
	first := s.commit("first")
	s.apply("objects.yaml")
	s.gate(first, "root").fails(entry{s.application(), schema.OutcomeFailed, "^child Application/argocd/.*-child: SyncError: "})
	s.gate(first, "root", "children", "ignore").passes()
	second := s.commit("second")
	s.refresh()
	s.gate(second, "root").passes()
	s.holds("app", "second")
}

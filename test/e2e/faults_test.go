//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/schema"
)

// The tests of this file stop what all share, one after the other: Go runs them
// before any of those that are parallel.

var (
	notInMirror  = entry{"Kustomization/app", schema.OutcomeUnknownLineage, "not in the mirror"}
	noHeartbeat  = entry{"Kustomization/app", schema.OutcomeUnknown, "^no heartbeat for "}
	notListed    = entry{"Kustomization/app", schema.OutcomeUnknown, "can no longer be listed"}
	neverApplied = entry{"Kustomization/app", schema.OutcomePending, "never applied"}
)

// newFaultScene has the first commit applied, and its gate passed.
func newFaultScene(t *testing.T) (s *scene, first string) {
	t.Helper()
	s = newScene(t, "faults", startFluxOnce)
	first = s.commit("first")
	s.apply("objects.yaml")
	s.gate(first, "").passes()
	return s, first
}

func TestAnAgentThatRestartsMissesNothing(t *testing.T) {
	s, _ := newFaultScene(t)
	if err := shared.agent.stop(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shared.agent.revive(t) })
	second := s.commit("second")
	s.awaitApplied("app", second)
	if err := s.delete(t.Context(), kustomizations, s.namespace, "extra"); err != nil {
		t.Fatal(err)
	}
	s.gate(second, "app").waits(noHeartbeat)

	shared.agent.revive(t)
	s.gate(second, "app").passes()
	// What went while nobody looked is gone, not silent.
	v := s.gate(second, "").passes()
	if v.Counts.Total != 1 {
		t.Errorf("want the one Kustomization that is left: %s", show(v))
	}
}

// FalseGreen 7, with real agents.
func TestTwoAgentsOfOneClusterDoNotFight(t *testing.T) {
	full(t)
	s, first := newFaultScene(t)
	before := s.epoch()
	other, err := startAgent(s.cluster, s.hub, clusterName, "agent-other", quick...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopQuietly(t, other.process) })
	eventually(t, "the other agent has taken over", func() error {
		if s.epoch() == before {
			return errors.New("the epoch is the same")
		}
		return nil
	})
	s.gate(first, "").passes()
	now := s.epoch()
	for _, name := range []string{"second", "third"} {
		commit := s.commit(name)
		if v := s.gate(commit, "").passes(); v.Counts.Total != 2 {
			t.Errorf("want each Kustomization counted once: %s", show(v))
		}
		if got := s.epoch(); got != now {
			t.Errorf("the epoch was %d and is %d: the agents fight", now, got)
		}
	}

	// The one that was superseded comes back when the other has gone.
	if err := other.kill(); err != nil {
		t.Fatal(err)
	}
	s.gate(s.commit("first"), "").passes()
	if got := s.epoch(); got <= now {
		t.Errorf("the first agent has not registered again: the epoch is %d", got)
	}
}

func TestAHubThatWasDownHearsWhatHappenedMeanwhile(t *testing.T) {
	full(t)
	s, first := newFaultScene(t)
	if err := s.hub.stop(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.hub.revive(t) })
	second := s.commit("second")
	s.awaitApplied("app", second)
	s.awaitApplied("extra", second)
	if err := s.delete(t.Context(), kustomizations, s.namespace, "extra"); err != nil {
		t.Fatal(err)
	}

	s.hub.revive(t)
	s.awaitGone("Kustomization", s.namespace, "extra")
	if v := s.gate(second, "").passes(); v.Counts.Total != 1 {
		t.Errorf("want the one Kustomization that is left: %s", show(v))
	}
	s.gate(first, "app").waits(notInMirror)
	if gone, how := shared.agent.gone(); gone {
		t.Error(how)
	}
}

func TestAnAPIServerThatWasDownChangesNothingUntilItIsBack(t *testing.T) {
	full(t)
	s, first := newFaultScene(t)
	if err := s.apiserver.kill(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cluster.revive(t) })
	second := s.commit("second")
	// Not being able to look is no absence: what was known stays so, for as long
	// as the agent tries.
	beats := s.lastSeen()
	s.gate(first, "").stays(schema.Passed, "the agent has been heard again", func() error {
		if s.lastSeen() == beats {
			return errors.New("no heartbeat yet")
		}
		return nil
	})
	s.gate(second, "app").waits(notInMirror)

	s.cluster.revive(t)
	s.gate(second, "").passes()
	if gone, how := shared.agent.gone(); gone {
		t.Error(how)
	}
}

func TestRightsThatAreTakenAwayBlockTheGate(t *testing.T) {
	full(t)
	s, first := newFaultScene(t)
	name := shared.agent.user
	if err := s.client.Resource(roleBindings).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // also when the test ends early
		if err := s.cluster.admit(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	s.gate(first, "app").reopens(notListed)

	if err := s.cluster.admit(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	s.gate(first, "app").passes()
	s.gate(s.commit("second"), "").passes()
}

// TestCustomResourcesThatComeAfterTheAgent has a cluster of its own, without
// Flux: the test writes the statuses.
func TestCustomResourcesThatComeAfterTheAgent(t *testing.T) {
	full(t)
	nameLogs(t)
	need(t, startHubOnce)
	c, err := startCluster("late")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	late, err := startAgent(c, shared.hub, "late", "agent-late", quick...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopQuietly(t, late.process) })
	eventually(t, "the agent is registered", func() error {
		_, err := shared.hub.client.Cluster(t.Context(), "late")
		return err
	})

	if err := c.installFlux(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newSceneOn(t, "late", c, shared.hub)
	commit := strings.Repeat("a1", 20)
	s.apply("objects.yaml")
	s.gate(commit, "app").waits(neverApplied)
	s.reconciled("app", commit)
	s.gate(commit, "app").passes()

	// With its kind an object goes too, and no gate passes for nobody.
	if err := c.client.Resource(crds).Delete(t.Context(), "kustomizations.kustomize.toolkit.fluxcd.io", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if v := s.gate(commit, "app").reopens(); v.Reason != "zero_targets" {
		t.Errorf("want it to wait for somebody to judge: %s", show(v))
	}
}

// epoch is that of the shared cluster's agent.
func (s *scene) epoch() uint64 { return s.registered().Epoch }

// lastSeen is when the shared cluster was heard of.
func (s *scene) lastSeen() string { return s.registered().LastSeen.String() }

func (s *scene) registered() schema.Cluster {
	s.t.Helper()
	c, err := s.hub.client.Cluster(s.t.Context(), clusterName)
	if err != nil {
		s.t.Fatalf("asking for %s: %v", clusterName, err)
	}
	return c
}

// awaitApplied waits until Flux says that it has applied a commit.
func (s *scene) awaitApplied(name, commit string) {
	s.t.Helper()
	s.waitFor(s.t, kustomizations, s.namespace, name, func(obj *unstructured.Unstructured) string {
		if got := text(obj, "status", "lastAppliedRevision"); !strings.HasSuffix(got, commit) {
			return fmt.Sprintf("it has applied %q", got)
		}
		return isReady(obj)
	})
}

// revive starts the agent again, unless it runs.
func (a *agent) revive(t *testing.T) {
	t.Helper()
	if gone, _ := a.gone(); gone {
		if err := a.start(); err != nil {
			t.Fatal(err)
		}
	}
}

// revive starts the hub again, unless it runs.
func (h *hub) revive(t *testing.T) {
	t.Helper()
	if gone, _ := h.gone(); gone {
		if err := errors.Join(h.start(), h.awaitReady()); err != nil {
			t.Fatal(err)
		}
	}
}

// revive starts the API server again, unless it runs.
func (c *cluster) revive(t *testing.T) {
	t.Helper()
	if gone, _ := c.apiserver.gone(); gone {
		if err := errors.Join(c.apiserver.start(), c.awaitReady()); err != nil {
			t.Fatal(err)
		}
	}
}

// stopQuietly ends a process that a test may have killed already.
func stopQuietly(t *testing.T, p *process) {
	t.Helper()
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

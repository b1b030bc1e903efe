//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landfall-hub/landfall/schema"
)

const (
	// writtenChanges are statuses that the test writes, half of them a
	// Kustomization's and half an Application's; realChanges are commits that
	// Flux and Argo CD each reconcile.
	writtenChanges = 200
	realChanges    = 15
)

// TestHowLongAChangeTakesToReachTheGate measures and asserts nothing of it: the
// time from a status in the API server to the answer of a gate that somebody
// waits at. Where the test writes the status, the clock starts before the
// request; where Flux or Argo CD writes it, when a watch of the test's own
// brings it.
func TestHowLongAChangeTakesToReachTheGate(t *testing.T) {
	full(t)
	ways := map[string][]time.Duration{}
	t.Run("written by the test", func(t *testing.T) {
		s := newStage(t, "latency")
		s.apply("objects.yaml")
		s.reconciled("app", commitNumber(0))
		s.gate(commitNumber(0), "app", "min_compliant", "1%").becomes(schema.Passed, entry{s.application(), schema.OutcomePending, "never applied"})
		for n := range writtenChanges / 2 {
			commit := fmt.Sprintf("%040x", 1_000+2*n)
			ways["Kustomization, status written"] = append(ways["Kustomization, status written"],
				s.timed(commit, func() time.Time { return s.write(kustomizations, s.namespace, "app", applied, commit, "status") }))
			commit = fmt.Sprintf("%040x", 1_001+2*n)
			ways["Application, status written"] = append(ways["Application, status written"],
				s.timed(commit, func() time.Time { return s.write(applications, argoNamespace, s.namespace, synced, commit) }))
		}
	})
	t.Run("reconciled by Flux", func(t *testing.T) {
		s := newScene(t, "flux-good", startFluxOnce)
		first := s.commit("first")
		s.apply("objects.yaml")
		s.gate(first, "app").passes()
		for range realChanges {
			ways["Kustomization, reconciled by Flux"] = append(ways["Kustomization, reconciled by Flux"],
				s.reconcile(kustomizations, s.namespace, "app", func(obj *unstructured.Unstructured, commit string) bool {
					return strings.HasSuffix(text(obj, "status", "lastAppliedRevision"), commit) && isReady(obj) == ""
				}, func() {}))
		}
	})
	t.Run("synced by Argo CD", func(t *testing.T) {
		s := newScene(t, "argo-good", startArgoCDOnce)
		first := s.commit("first")
		s.apply("objects.yaml")
		s.gate(first, "app").passes()
		for range realChanges {
			ways["Application, synced by Argo CD"] = append(ways["Application, synced by Argo CD"],
				s.reconcile(applications, argoNamespace, s.namespace, func(obj *unstructured.Unstructured, commit string) bool {
					finished, reconciled := text(obj, "status", "operationState", "finishedAt"), text(obj, "status", "reconciledAt")
					return text(obj, "status", "sync", "revision") == commit && text(obj, "status", "sync", "status") == "Synced" &&
						text(obj, "status", "health", "status") == "Healthy" && reconciled >= finished
				}, s.refresh))
		}
	})
	names := make([]string, 0, len(ways))
	for name := range ways {
		names = append(names, name)
	}
	slices.Sort(names)
	var all []time.Duration
	for _, name := range names {
		t.Logf("%-34s %s", name, spread(ways[name]))
		all = append(all, ways[name]...)
	}
	t.Logf("%-34s %s", "all", spread(all))
}

// newStage is a scene on a cluster of its own, on which neither Flux nor Argo CD
// runs, with an agent that reports to the shared hub.
func newStage(t *testing.T, name string) *scene {
	t.Helper()
	nameLogs(t)
	need(t, startHubOnce)
	c, err := startCluster(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(c.installFlux(t.Context()), c.installArgoCD(t.Context())); err != nil {
		t.Fatal(err)
	}
	a, err := startAgent(c, shared.hub, name, "agent-"+name, quick...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopQuietly(t, a.process) })
	return newSceneOn(t, name, c, shared.hub)
}

// write gives an object the status of one that has reached a commit, and
// returns when it began to.
func (s *scene) write(where kubeschema.GroupVersionResource, namespace, name string,
	status func(*unstructured.Unstructured, string) map[string]any, commit string, subresources ...string,
) time.Time {
	s.t.Helper()
	obj, err := s.client.Resource(where).Namespace(namespace).Get(s.t.Context(), name, getOptions)
	if err != nil {
		s.t.Fatal(err)
	}
	change := map[string]any{"status": status(obj, commit)}
	began := time.Now()
	if err := s.patch(s.t.Context(), where, namespace, name, change, subresources...); err != nil {
		s.t.Fatal(err)
	}
	return began
}

// timed waits at the gate of a commit while something happens, and returns how
// long after it the gate passed.
func (s *scene) timed(commit string, happens func() time.Time) time.Duration {
	s.t.Helper()
	// One of the two reconcilers is at another commit; the test is about the one.
	g := s.gate(commit, "app", "min_compliant", "1%", "unknown", "exclude")
	if v := g.now(); v.State == schema.Passed {
		s.t.Fatalf("the gate of %s has passed before anything happened: %s", commit, show(v))
	}
	passed := make(chan time.Time, 1)
	go func() {
		defer close(passed)
		for s.t.Context().Err() == nil {
			v, err := g.client.Compliance(s.t.Context(), g.question, patience)
			if s.t.Context().Err() != nil {
				return
			}
			if err != nil {
				s.t.Errorf("waiting at the gate of %s: %v", commit, err)
				return
			}
			if v.State == schema.Passed {
				passed <- time.Now()
				return
			}
		}
	}()
	began := happens()
	select {
	case at, ok := <-passed:
		if !ok {
			s.t.FailNow()
		}
		return at.Sub(began)
	case <-time.After(patience):
		s.t.Fatalf("the gate of %s has not passed within %s: %s", commit, patience, show(g.now()))
		return 0
	}
}

// reconcile pushes a commit, and returns how long after the reconciler's own
// word the gate passed.
func (s *scene) reconcile(where kubeschema.GroupVersionResource, namespace, name string,
	reached func(*unstructured.Unstructured, string) bool, pushed func(),
) time.Duration {
	s.t.Helper()
	commit := s.repo.commitFiles(s.t, map[string]string{
		"app/configmap.yaml": fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {time: %q}}", time.Now()),
	})
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	watch, err := s.client.Resource(where).Namespace(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		s.t.Fatal(err)
	}
	defer watch.Stop()
	return s.timed(commit, func() time.Time {
		pushed()
		for event := range watch.ResultChan() {
			if obj, ok := event.Object.(*unstructured.Unstructured); ok && reached(obj, commit) {
				return time.Now()
			}
		}
		s.t.Fatalf("%s has not reached %s within %s", name, commit, patience)
		return time.Time{}
	})
}

// spread shows how a list of times lies.
func spread(list []time.Duration) string {
	if len(list) == 0 {
		return "nothing was measured"
	}
	sorted := slices.Sorted(slices.Values(list))
	at := func(percent int) time.Duration {
		return sorted[min(len(sorted)-1, len(sorted)*percent/100)].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("n=%d p50=%s p99=%s max=%s", len(sorted), at(50), at(99), sorted[len(sorted)-1].Round(100*time.Microsecond))
}

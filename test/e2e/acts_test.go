//go:build e2e

package e2e

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// set changes fields of an object's specification.
func (s *scene) set(where schema.GroupVersionResource, name string, spec map[string]any) {
	s.t.Helper()
	if err := s.patch(s.t.Context(), where, s.namespace, name, map[string]any{"spec": spec}); err != nil {
		s.t.Fatal(err)
	}
}

// holds waits until a ConfigMap of the namespace has this value: what a gate
// says must be so on the cluster.
func (s *scene) holds(name, value string) {
	s.t.Helper()
	obj, err := s.client.Resource(configMaps).Namespace(s.namespace).Get(s.t.Context(), name, getOptions)
	if err != nil {
		s.t.Fatalf("the gate has passed, and the cluster says: %v", err)
	}
	if got := text(obj, "data", "value"); got != value {
		s.t.Errorf("the gate has passed for %q, and the cluster has %q", value, got)
	}
}

func isReady(obj *unstructured.Unstructured) string {
	if status, reason := condition(obj, "Ready"); status != "True" {
		return fmt.Sprintf("its Ready is %q, %s", status, reason)
	}
	return ""
}

func isNotReady(obj *unstructured.Unstructured) string {
	if status, _ := condition(obj, "Ready"); status != "False" {
		return fmt.Sprintf("its Ready is %q", status)
	}
	return ""
}

// makeAvailable gives a Deployment the status that the controller manager would
// give it when its pods run.
func (s *scene) makeAvailable(name string) {
	s.t.Helper()
	s.setDeployment(name, map[string]any{
		"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "unavailableReplicas": 0,
		"conditions": []any{
			map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
		},
	})
}

// makeStuck gives a Deployment the status of one whose pods never came up.
func (s *scene) makeStuck(name string) {
	s.t.Helper()
	s.setDeployment(name, map[string]any{
		"replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1,
		"conditions": []any{
			map[string]any{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"},
			map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "it has timed out progressing"},
		},
	})
}

func (s *scene) setDeployment(name string, status map[string]any) {
	s.t.Helper()
	obj := s.waitFor(s.t, deployments, s.namespace, name, func(*unstructured.Unstructured) string { return "" })
	status["observedGeneration"] = obj.GetGeneration()
	if err := s.patch(s.t.Context(), deployments, s.namespace, name, map[string]any{"status": status}, "status"); err != nil {
		s.t.Fatal(err)
	}
}

// application is how verdicts name the scene's Application.
func (s *scene) application() string { return "Application/" + s.namespace }

// refresh makes Argo CD look at the repository now, as a webhook does.
func (s *scene) refresh() {
	s.t.Helper()
	s.annotateApplication(map[string]any{"argocd.argoproj.io/refresh": "normal"})
}

func (s *scene) annotateApplication(annotations map[string]any) {
	s.t.Helper()
	s.patchApplication(map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// sync deploys a commit, as a person does who presses the button.
func (s *scene) sync(commit string) {
	s.t.Helper()
	s.waitFor(s.t, applications, argoNamespace, s.namespace, func(obj *unstructured.Unstructured) string {
		if got := text(obj, "status", "sync", "revision"); got != commit {
			return fmt.Sprintf("it was compared with %q", got)
		}
		return ""
	})
	s.patchApplication(map[string]any{"operation": map[string]any{
		"initiatedBy": map[string]any{"username": "e2e"}, "sync": map[string]any{"revision": commit, "prune": true},
	}})
}

func (s *scene) patchApplication(change map[string]any) {
	s.t.Helper()
	if err := s.patch(s.t.Context(), applications, argoNamespace, s.namespace, change); err != nil {
		s.t.Fatal(err)
	}
}

//go:build e2e

package e2e

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reconciled writes the statuses that Flux would write after it has applied a
// commit: for clusters on which Flux does not run.
func (s *scene) reconciled(name, commit string) {
	s.t.Helper()
	for _, change := range []func() error{
		func() error {
			return s.patch(s.t.Context(), gitRepos, s.namespace, "repo", map[string]any{"status": fetched(commit)}, "status")
		},
		func() error {
			obj, err := s.client.Resource(kustomizations).Namespace(s.namespace).Get(s.t.Context(), name, getOptions)
			if err != nil {
				return err
			}
			return s.patch(s.t.Context(), kustomizations, s.namespace, name, map[string]any{"status": applied(obj, commit)}, "status")
		},
	} {
		if err := change(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// revision is how Flux writes a commit of the branch.
func revision(commit string) string { return branch + "@sha1:" + commit }

// fetched is the status of a GitRepository that holds a commit.
func fetched(commit string) map[string]any {
	now := time.Now().UTC().Format(time.RFC3339)
	return map[string]any{
		"observedGeneration": 1,
		"artifact": map[string]any{
			"revision": revision(commit), "digest": "sha256:" + fmt.Sprintf("%064x", 1), "lastUpdateTime": now,
			"path": "gitrepository/x/repo/" + commit + ".tar.gz", "url": "http://127.0.0.1/" + commit + ".tar.gz", "size": 512,
		},
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Succeeded", "observedGeneration": 1, "lastTransitionTime": now,
			"message": "stored artifact for revision '" + revision(commit) + "'",
		}},
	}
}

// applied is the status of a Kustomization that has applied a commit.
func applied(obj *unstructured.Unstructured, commit string) map[string]any {
	now := time.Now().UTC().Format(time.RFC3339)
	return map[string]any{
		"observedGeneration": obj.GetGeneration(), "lastAttemptedRevision": revision(commit), "lastAppliedRevision": revision(commit),
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "observedGeneration": obj.GetGeneration(),
			"lastTransitionTime": now, "message": "Applied revision: " + revision(commit),
		}},
	}
}

// synced is the status of an Application that has synced a commit.
func synced(obj *unstructured.Unstructured, commit string) map[string]any {
	now := time.Now().UTC().Format(time.RFC3339)
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec")
	return map[string]any{
		"reconciledAt": now, "sourceType": "Directory", "controllerNamespace": argoNamespace,
		"health": map[string]any{"status": "Healthy", "lastTransitionTime": now},
		"sync": map[string]any{
			"status": "Synced", "revision": commit,
			"comparedTo": map[string]any{"source": spec["source"], "destination": spec["destination"]},
		},
	}
}

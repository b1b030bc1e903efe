package flux

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
)

// trackingID is the annotation by which Argo CD marks what it applied: its
// reader looks for it on Flux objects too.
const trackingID = "argocd.argoproj.io/tracking-id"

// What the readers of this package, and those who look for an owner, read.
var (
	conditionShape = object.Shape{"type": nil, "status": nil, "reason": nil, "message": nil, "lastTransitionTime": nil}

	kustomizationShape = object.Shape{
		"apiVersion": nil, "kind": nil, "metadata": object.Metadata(trackingID),
		"spec": {
			"suspend": nil, "path": nil, "sourceRef": nil,
			"kubeConfig": {}, // that it is there is all
		},
		"status": {
			"observedGeneration": nil, "conditions": conditionShape,
			"lastAttemptedRevision": nil, "lastAppliedRevision": nil, "lastAppliedOriginRevision": nil,
			"inventory": {"entries": {"id": nil}},
		},
	}
	helmReleaseShape = object.Shape{
		"apiVersion": nil, "kind": nil, "metadata": object.Metadata(trackingID),
		"spec": {
			"suspend": nil, "chartRef": nil, "chart": {"spec": {"sourceRef": nil}},
			"kubeConfig": {},
		},
		"status": {
			"observedGeneration": nil, "conditions": conditionShape,
			"lastAttemptedRevision": nil, "lastAppliedRevision": nil, "helmChart": nil,
			"history":   {"version": nil, "chartVersion": nil, "ociDigest": nil, "status": nil},
			"inventory": {"entries": {"id": nil}},
		},
	}
	sourceShape = object.Shape{
		"apiVersion": nil, "kind": nil, "metadata": object.Metadata(trackingID),
		"spec": {
			"suspend": nil, "url": nil, "ref": nil, "endpoint": nil, "bucketName": nil,
			"chart": nil, "version": nil, "sourceRef": nil,
		},
		"status": {
			"conditions": conditionShape,
			"artifact":   {"revision": nil, "metadata": {originRevision: nil}},
		},
	}
)

// Trim removes from an object of a kind that this package reads everything that
// it does not look at, and leaves other kinds alone. It changes obj. Reading
// what is left gives the same facts as reading the whole; where an inventory
// holds an entry that cannot be read, it may be named by another position.
func Trim(obj *unstructured.Unstructured) {
	switch obj.GetKind() {
	case KindKustomization:
		kustomizationShape.Trim(obj)
	case KindHelmRelease:
		helmReleaseShape.Trim(obj)
	case KindGitRepository, KindOCIRepository, KindBucket, KindHelmRepository, KindHelmChart, KindExternalArtifact:
		sourceShape.Trim(obj)
		return
	default:
		return
	}
	object.DropItems(obj, isNoChild, "status", "inventory", "entries")
}

// isNoChild reports whether an inventory's entry is understood and is of no
// interest.
func isNoChild(_ int, entry object.Fields) bool {
	ref, group, err := inventoryID(entry.Text("id"))
	return err == nil && !object.IsReconciler(group, ref.Kind)
}

package argocd

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
)

// applicationShape is what the reader of this package, and those who look for
// an owner, read. Sources are kept whole: they are compared in every member.
var applicationShape = object.Shape{
	"apiVersion": nil, "kind": nil, "metadata": object.Metadata(trackingID),
	"spec": {
		"source": nil, "sources": nil, "sourceHydrator": nil,
		"destination": {"server": nil, "name": nil, "namespace": nil},
		"syncPolicy":  {"automated": {"enabled": nil}},
	},
	"status": {
		"controllerNamespace": nil, "reconciledAt": nil,
		"conditions": {"type": nil, "message": nil, "lastTransitionTime": nil},
		"health":     {"status": nil, "message": nil, "lastTransitionTime": nil},
		"sync": {
			"status": nil, "revision": nil, "revisions": nil,
			"comparedTo": {"source": nil, "sources": nil, "destination": {"server": nil, "name": nil, "namespace": nil}},
		},
		"operationState": {
			"phase": nil, "message": nil, "startedAt": nil, "finishedAt": nil,
			"operation": {"sync": {
				"source": nil, "sources": nil, "revision": nil, "revisions": nil, "dryRun": nil, "manifests": nil,
				"resources": {}, // that there are some is all
			}},
			"syncResult": {"source": nil, "sources": nil, "revision": nil, "revisions": nil},
		},
		"history":   {"source": nil, "sources": nil, "revision": nil, "revisions": nil, "deployedAt": nil},
		"resources": {"group": nil, "kind": nil, "namespace": nil, "name": nil},
		"sourceHydrator": {
			"lastSuccessfulOperation": {"drySHA": nil, "hydratedSHA": nil},
			"currentOperation":        {"drySHA": nil, "phase": nil, "message": nil},
		},
	},
}

// Trim removes from an Application everything that this package does not look
// at, and leaves other kinds alone. It changes obj. Reading what is left gives
// the same facts as reading the whole; where a list holds an entry that cannot
// be read, it may be named by another position.
func Trim(obj *unstructured.Unstructured) {
	if obj.GetKind() != KindApplication {
		return
	}
	applicationShape.Trim(obj)
	object.DropItems(obj, isNoChild, "status", "resources")
	if history, ok, err := unstructured.NestedFieldNoCopy(obj.Object, "status", "history"); ok && err == nil {
		list, _ := history.([]any)
		last := len(list) - 1
		object.DropItems(obj, func(i int, entry object.Fields) bool { return i < last && isReadable(entry) }, "status", "history")
	}
	sync, ok, err := unstructured.NestedFieldNoCopy(obj.Object, "status", "operationState", "operation", "sync")
	if m, isObject := sync.(map[string]any); ok && err == nil && isObject {
		dropManifests(m)
	}
}

// isNoChild reports whether a resource is understood and is of no interest.
func isNoChild(_ int, resource object.Fields) bool {
	group, kind := resource.Text("group"), resource.Text("kind")
	_, _ = resource.Text("namespace"), resource.Text("name")
	return resource.Err() == nil && !object.IsReconciler(group, kind)
}

// isReadable reports whether an entry of the history is understood. Of those
// before the last, this is all that is looked at.
func isReadable(entry object.Fields) bool {
	spreadOf(entry, entry)
	entry.Time("deployedAt")
	return entry.Err() == nil
}

// dropManifests empties the manifests of a sync of local files: that there are
// some is all that is looked at.
func dropManifests(sync map[string]any) {
	manifests, _ := sync["manifests"].([]any)
	for i := range manifests {
		if _, ok := manifests[i].(string); ok {
			manifests[i] = ""
		}
	}
}

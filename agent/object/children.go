package object

import (
	"slices"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// reconcilers are the kinds, by API group, that agents report.
var reconcilers = map[string]string{
	"Kustomization": "kustomize.toolkit.fluxcd.io",
	"HelmRelease":   "helm.toolkit.fluxcd.io",
	"Application":   "argoproj.io",
}

// IsReconciler reports whether objects of this group and kind are reconcilers
// themselves, and so children to be read before their parent's success counts.
func IsReconciler(group, kind string) bool {
	return group != "" && reconcilers[kind] == group
}

// Children returns the references in order, each once, without the parent:
// roots list themselves.
func Children(parent schema.ObjectRef, found []schema.ObjectRef) []schema.ObjectRef {
	found = slices.DeleteFunc(found, func(r schema.ObjectRef) bool { return r == parent || r.Namespace == "" || r.Name == "" })
	slices.SortFunc(found, schema.ObjectRef.Compare)
	return slices.Compact(found)
}

// Await returns what to send of a parent whose inventory names children: a
// success holds only once each of them was seen; until then it is in progress,
// with the first one missing named. All other statuses stay.
func Await(r schema.Reconciler, named []schema.ObjectRef, seen func(schema.ObjectRef) bool) schema.Reconciler {
	if r.Status != schema.StatusSuccess {
		return r
	}
	for _, child := range named {
		if seen(child) {
			continue
		}
		r.Status, r.Reason, r.Since = schema.StatusInProgress, ReasonChildNotSeen, time.Time{}
		r.Message = Message("its inventory names " + child.String() + ", which was not read yet")
		return r
	}
	return r
}

package contract

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landfall-hub/landfall/agent/flux"
	"github.com/landfall-hub/landfall/schema"
)

var began = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

func ready(status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{
		Type: meta.ReadyCondition, Status: status, Reason: reason, Message: "why", LastTransitionTime: metav1.NewTime(began),
	}
}

func goodKustomization() *kustomizev1.Kustomization {
	k := &kustomizev1.Kustomization{}
	k.Namespace, k.Name, k.Generation = "flux-system", "app", 7
	k.Spec.Path = "./app"
	k.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "repo", Namespace: "sources"}
	k.Status.ObservedGeneration = 7
	k.Status.Conditions = []metav1.Condition{ready(metav1.ConditionTrue, meta.ReconciliationSucceededReason)}
	k.Status.LastAppliedRevision = "main@sha1:applied"
	k.Status.LastAttemptedRevision = "main@sha1:attempted"
	k.Status.LastAppliedOriginRevision = "main@sha1:origin"
	return k
}

var git = flux.Source{
	Ref:      schema.ObjectRef{Kind: "GitRepository", Namespace: "sources", Name: "repo"},
	Endpoint: schema.Source{Type: schema.SourceGit, URL: "https://git.example.com/org/repo", Ref: "main"},
	Revision: "main@sha1:artifact",
}

func TestKustomizationFields(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*kustomizev1.Kustomization)
		want func(schema.Reconciler) bool
	}{
		"success": {
			edit: func(*kustomizev1.Kustomization) {},
			want: func(r schema.Reconciler) bool {
				return r.Status == schema.StatusSuccess && r.Reason == meta.ReconciliationSucceededReason && r.Message == "why" && r.Since.Equal(began) && observed(r)
			},
		},
		"spec.path":                        {edit: func(k *kustomizev1.Kustomization) { k.Spec.Path = "./other" }, want: func(r schema.Reconciler) bool { return r.Sources[0].Path == "./other" }},
		"spec.suspend":                     {edit: func(k *kustomizev1.Kustomization) { k.Spec.Suspend = true }, want: func(r schema.Reconciler) bool { return r.Status == schema.StatusSuspended && r.Suspended }},
		"metadata.generation":              {edit: func(k *kustomizev1.Kustomization) { k.Generation = 8 }, want: func(r schema.Reconciler) bool { return r.Status == schema.StatusInProgress && !observed(r) }},
		"status.observedGeneration":        {edit: func(k *kustomizev1.Kustomization) { k.Status.ObservedGeneration = -1 }, want: func(r schema.Reconciler) bool { return !observed(r) }},
		"status.lastAppliedRevision":       {edit: func(*kustomizev1.Kustomization) {}, want: func(r schema.Reconciler) bool { return first(r.Applied) == "main@sha1:applied" }},
		"status.lastAttemptedRevision":     {edit: func(*kustomizev1.Kustomization) {}, want: func(r schema.Reconciler) bool { return first(r.Attempted) == "main@sha1:attempted" }},
		"status.lastAppliedOriginRevision": {edit: func(*kustomizev1.Kustomization) {}, want: func(r schema.Reconciler) bool { return first(r.Origin) == "main@sha1:origin" }},
		"status.conditions: Ready": {
			edit: func(k *kustomizev1.Kustomization) {
				k.Status.Conditions[0] = ready(metav1.ConditionFalse, meta.BuildFailedReason)
			},
			want: func(r schema.Reconciler) bool {
				return r.Status == schema.StatusFailure && r.Reason == meta.BuildFailedReason
			},
		},
		"status.conditions: Stalled": {
			edit: func(k *kustomizev1.Kustomization) {
				k.Status.Conditions = append(k.Status.Conditions, metav1.Condition{Type: meta.StalledCondition, Status: metav1.ConditionTrue, Reason: meta.InvalidCELExpressionReason})
			},
			want: func(r schema.Reconciler) bool {
				return r.Status == schema.StatusFailure && first(r.Attempted) == git.Revision
			},
		},
		"status.conditions: Healthy": {
			edit: func(k *kustomizev1.Kustomization) {
				k.Status.Conditions = append(k.Status.Conditions, metav1.Condition{Type: meta.HealthyCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason})
			},
			want: func(r schema.Reconciler) bool { return r.Health == "Healthy" },
		},
		"owner labels": {
			edit: func(k *kustomizev1.Kustomization) {
				k.Labels = map[string]string{kustomizev1.GroupVersion.Group + "/name": "root", kustomizev1.GroupVersion.Group + "/namespace": "flux-system"}
			},
			want: func(r schema.Reconciler) bool {
				return r.Owner != nil && *r.Owner == schema.ObjectRef{Kind: kustomizev1.KustomizationKind, Namespace: "flux-system", Name: "root"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := goodKustomization()
			c.edit(k)
			r, err := flux.Kustomization(unstruct(t, kustomizev1.KustomizationKind, k), git)
			if err != nil {
				t.Fatal(err)
			}
			if !c.want(r) {
				t.Errorf("the field is read otherwise: %+v", r)
			}
		})
	}
}

// The reasons that the status table names are the ones that Flux writes.
func TestKustomizationReasons(t *testing.T) {
	for reason, want := range map[string]struct {
		status schema.Status
		at     string
	}{
		meta.DependencyNotReadyReason:   {schema.StatusInProgress, git.Revision},
		meta.HealthCheckCanceledReason:  {schema.StatusInProgress, git.Revision},
		meta.ProgressingReason:          {schema.StatusInProgress, git.Revision},
		meta.ArtifactFailedReason:       {schema.StatusInProgress, git.Revision},
		meta.HealthCheckFailedReason:    {schema.StatusFailure, "main@sha1:attempted"},
		meta.PruneFailedReason:          {schema.StatusFailure, "main@sha1:attempted"},
		meta.BuildFailedReason:          {schema.StatusFailure, "main@sha1:attempted"},
		meta.ReconciliationFailedReason: {schema.StatusFailure, "main@sha1:attempted"},
	} {
		k := goodKustomization()
		k.Status.Conditions[0] = ready(metav1.ConditionFalse, reason)
		r, err := flux.Kustomization(unstruct(t, kustomizev1.KustomizationKind, k), git)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != want.status || first(r.Attempted) != want.at {
			t.Errorf("%s: %s at %s, want %s at %s", reason, r.Status, first(r.Attempted), want.status, want.at)
		}
	}
	for _, reason := range []string{"AccessDenied", meta.InvalidCELExpressionReason, meta.FeatureGateDisabledReason} {
		k := goodKustomization()
		k.Status.Conditions = append(k.Status.Conditions, metav1.Condition{Type: meta.StalledCondition, Status: metav1.ConditionTrue, Reason: reason})
		r, err := flux.Kustomization(unstruct(t, kustomizev1.KustomizationKind, k), git)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != schema.StatusFailure || first(r.Attempted) != git.Revision {
			t.Errorf("stalled by %s: %s at %s", reason, r.Status, first(r.Attempted))
		}
	}
}

func TestKustomizationReferences(t *testing.T) {
	k := goodKustomization()
	k.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{
		{ID: "team_child_" + kustomizev1.GroupVersion.Group + "_" + kustomizev1.KustomizationKind, Version: "v1"},
	}}
	obj := unstruct(t, kustomizev1.KustomizationKind, k)
	if got := flux.SourceRef(obj); got != git.Ref {
		t.Errorf("spec.sourceRef is read as %s", got)
	}
	if got := flux.Inventory(obj); len(got) != 1 || got[0].Name != "child" || got[0].Namespace != "team" {
		t.Errorf("status.inventory is read as %v", got)
	}
	k.Spec.KubeConfig = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: "remote"}}
	if got := flux.Inventory(unstruct(t, kustomizev1.KustomizationKind, k)); len(got) != 0 {
		t.Errorf("spec.kubeConfig is not seen: %v", got)
	}
}

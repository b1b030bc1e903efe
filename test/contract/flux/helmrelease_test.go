package contract

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	helmv2beta1 "github.com/fluxcd/helm-controller/api/v2beta1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landfall-hub/landfall/agent/flux"
	"github.com/landfall-hub/landfall/schema"
)

func goodRelease() *helmv2.HelmRelease {
	h := &helmv2.HelmRelease{}
	h.Namespace, h.Name, h.Generation = "team", "web", 7
	h.Spec.Chart = &helmv2.HelmChartTemplate{Spec: helmv2.HelmChartTemplateSpec{
		Chart: "podinfo", SourceRef: helmv2.CrossNamespaceObjectReference{Kind: "HelmRepository", Name: "charts", Namespace: "sources"},
	}}
	h.Status.ObservedGeneration = 7
	h.Status.Conditions = []metav1.Condition{ready(metav1.ConditionTrue, helmv2.UpgradeSucceededReason)}
	h.Status.LastAttemptedRevision = "6.5.1"
	h.Status.History = helmv2.Snapshots{
		{Version: 2, Status: "deployed", ChartVersion: "6.5.0", OCIDigest: ociDigest},
		{Version: 1, Status: "superseded", ChartVersion: "6.4.0"},
	}
	return h
}

const ociDigest = "sha256:83a3c595163a6ff0333e0154c790383b5be441b9db632cb36da11db1c4ece111"

var chart = flux.Source{
	Ref:      schema.ObjectRef{Kind: "OCIRepository", Namespace: "team", Name: "chart"},
	Endpoint: schema.Source{Type: schema.SourceOCI, URL: "oci://ghcr.io/example/podinfo", Ref: "latest"},
	Revision: "6.5.0@" + ociDigest, Origin: "main@sha1:origin",
}

func TestHelmReleaseFields(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*helmv2.HelmRelease)
		want func(schema.Reconciler) bool
	}{
		"success": {edit: func(*helmv2.HelmRelease) {}, want: func(r schema.Reconciler) bool {
			return r.Status == schema.StatusSuccess && observed(r) && r.Since.Equal(began)
		}},
		"spec.suspend":             {edit: func(h *helmv2.HelmRelease) { h.Spec.Suspend = true }, want: func(r schema.Reconciler) bool { return r.Status == schema.StatusSuspended }},
		"metadata.generation":      {edit: func(h *helmv2.HelmRelease) { h.Generation = 8 }, want: func(r schema.Reconciler) bool { return r.Status == schema.StatusInProgress && !observed(r) }},
		"status.history":           {edit: func(*helmv2.HelmRelease) {}, want: func(r schema.Reconciler) bool { return first(r.Applied) == "6.5.0" }},
		"status.history.status":    {edit: func(h *helmv2.HelmRelease) { h.Status.History[0].Status = "failed" }, want: func(r schema.Reconciler) bool { return first(r.Applied) == "" }},
		"status.history.version":   {edit: func(h *helmv2.HelmRelease) { h.Status.History[1].Status, h.Status.History[1].Version = "deployed", 9 }, want: func(r schema.Reconciler) bool { return first(r.Applied) == "6.4.0" }},
		"status.history.ociDigest": {edit: func(*helmv2.HelmRelease) {}, want: func(r schema.Reconciler) bool { return first(r.Origin) == "main@sha1:origin" }},
		"status.conditions: Drifted": {
			edit: func(h *helmv2.HelmRelease) {
				h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{
					Type: helmv2.DriftedCondition, Status: metav1.ConditionTrue, Reason: helmv2.DriftDetectedReason,
				})
			},
			want: func(r schema.Reconciler) bool { return r.Status == schema.StatusSuccess && r.Drifted },
		},
		"status.lastAttemptedRevision": {edit: func(*helmv2.HelmRelease) {}, want: func(r schema.Reconciler) bool { return first(r.Attempted) == "6.5.1" }},
		"status.conditions: Reconciling": {
			edit: func(h *helmv2.HelmRelease) {
				h.Status.Conditions = []metav1.Condition{
					ready(metav1.ConditionFalse, helmv2.UpgradeFailedReason),
					{Type: meta.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: meta.ProgressingWithRetryReason},
				}
			},
			want: func(r schema.Reconciler) bool {
				return r.Status == schema.StatusInProgress && r.Reason == helmv2.UpgradeFailedReason
			},
		},
		"owner labels": {
			edit: func(h *helmv2.HelmRelease) {
				h.Labels = map[string]string{helmv2.GroupVersion.Group + "/name": "umbrella", helmv2.GroupVersion.Group + "/namespace": "team"}
			},
			want: func(r schema.Reconciler) bool {
				return r.Owner != nil && *r.Owner == schema.ObjectRef{Kind: helmv2.HelmReleaseKind, Namespace: "team", Name: "umbrella"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := goodRelease()
			c.edit(h)
			r, err := flux.HelmRelease(unstruct(t, helmv2.HelmReleaseKind, h), chart)
			if err != nil {
				t.Fatal(err)
			}
			if !c.want(r) {
				t.Errorf("the field is read otherwise: %+v", r)
			}
		})
	}
}

func TestHelmReleaseReasons(t *testing.T) {
	for reason, want := range map[string]schema.Status{
		helmv2.DependencyNotReadyReason: schema.StatusInProgress,
		helmv2.InstallFailedReason:      schema.StatusFailure,
		helmv2.UpgradeFailedReason:      schema.StatusFailure,
		helmv2.TestFailedReason:         schema.StatusFailure,
		helmv2.RollbackSucceededReason:  schema.StatusFailure,
		helmv2.UninstallSucceededReason: schema.StatusFailure,
	} {
		h := goodRelease()
		h.Status.Conditions[0] = ready(metav1.ConditionFalse, reason)
		r, err := flux.HelmRelease(unstruct(t, helmv2.HelmReleaseKind, h), chart)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != want {
			t.Errorf("%s: %s, want %s", reason, r.Status, want)
		}
	}
}

// The name of the chart object is the one that helm-controller gives it.
func TestHelmReleaseReferences(t *testing.T) {
	h := goodRelease()
	want := schema.ObjectRef{Kind: "HelmChart", Namespace: h.Spec.Chart.GetNamespace(h.Namespace), Name: h.GetHelmChartName()}
	if got := flux.SourceRef(unstruct(t, helmv2.HelmReleaseKind, h)); got != want {
		t.Errorf("spec.chart is read as %s, want %s", got, want)
	}
	h.Status.HelmChart = "elsewhere/chart"
	if got := flux.SourceRef(unstruct(t, helmv2.HelmReleaseKind, h)); got.Namespace != "elsewhere" || got.Name != "chart" {
		t.Errorf("status.helmChart is read as %s", got)
	}
	h.Spec.ChartRef = &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "chart"}
	if got := flux.SourceRef(unstruct(t, helmv2.HelmReleaseKind, h)); got != chart.Ref {
		t.Errorf("spec.chartRef is read as %s", got)
	}
	h.Status.Inventory = &helmv2.ResourceInventory{Entries: []helmv2.ResourceRef{{ID: "team_child_" + helmv2.GroupVersion.Group + "_" + helmv2.HelmReleaseKind}}}
	if got := flux.Inventory(unstruct(t, helmv2.HelmReleaseKind, h)); len(got) != 1 || got[0].Name != "child" {
		t.Errorf("status.inventory is read as %v", got)
	}
}

// A cluster may still serve a version that has no history.
func TestHelmReleaseV2beta1(t *testing.T) {
	h := &helmv2beta1.HelmRelease{}
	h.Namespace, h.Name = "team", "web"
	h.Status.LastAppliedRevision, h.Status.LastAttemptedRevision = "6.3.0", "6.4.0"
	r, err := flux.HelmRelease(unstruct(t, helmv2.HelmReleaseKind, h), chart)
	if err != nil {
		t.Fatal(err)
	}
	if first(r.Applied) != "6.3.0" || first(r.Attempted) != "6.4.0" {
		t.Errorf("applied %v, attempted %v", r.Applied, r.Attempted)
	}
}

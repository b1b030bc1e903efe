// Package contract holds the Argo CD reader against Argo CD's own types, field
// by field: what upstream writes into a field is what the reader finds there.
package contract

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
	"github.com/argoproj/gitops-engine/pkg/health"
	synccommon "github.com/argoproj/gitops-engine/pkg/sync/common"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/argocd"
	"github.com/landfall-hub/landfall/schema"
)

const (
	compared = "508a11a06f010dd22052dcca9f4ed6fe3664c747"
	deployed = "4d75591b1cd6e7c8e03e77117654c2219f3ad03b"
	operated = "9e04eced091a4b6b71e9a3bdf4e6972ad7573bd8"
)

var (
	began = metav1.NewTime(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	ended = metav1.NewTime(time.Date(2026, 11, 20, 9, 5, 0, 0, time.UTC))
	later = metav1.NewTime(time.Date(2026, 11, 20, 9, 10, 0, 0, time.UTC))
)

// good is an application as Argo CD leaves it after an automated sync.
func good() *v1alpha1.Application {
	source := v1alpha1.ApplicationSource{RepoURL: "https://git.example.com/org/repo", Path: "app", TargetRevision: "main"}
	a := &v1alpha1.Application{}
	a.Namespace, a.Name, a.Generation = "argocd", "app", 3
	a.Spec = v1alpha1.ApplicationSpec{
		Source:      &source,
		Destination: v1alpha1.ApplicationDestination{Server: v1alpha1.KubernetesInternalAPIServerAddr, Namespace: "apps"},
		SyncPolicy:  &v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{}},
	}
	a.Status = v1alpha1.ApplicationStatus{
		ReconciledAt:        &later,
		ControllerNamespace: "argocd",
		Sync: v1alpha1.SyncStatus{
			Status: v1alpha1.SyncStatusCodeSynced, Revision: compared,
			ComparedTo: v1alpha1.ComparedTo{Source: source, Destination: a.Spec.Destination},
		},
		History: v1alpha1.RevisionHistories{{ID: 1, Revision: deployed, Source: source, DeployedAt: began}},
		OperationState: &v1alpha1.OperationState{
			Operation: v1alpha1.Operation{Sync: &v1alpha1.SyncOperation{Revision: operated, Source: &source}},
			Phase:     synccommon.OperationSucceeded, StartedAt: began, FinishedAt: &ended, Message: "what it did",
			SyncResult: &v1alpha1.SyncOperationResult{Revision: operated, Source: source},
		},
	}
	a.Status.Health.Status = health.HealthStatusHealthy
	return a
}

// unstruct makes of an application what the API server would send of it.
func unstruct(t *testing.T, a *v1alpha1.Application) *unstructured.Unstructured {
	t.Helper()
	a.SetGroupVersionKind(v1alpha1.ApplicationSchemaGroupVersionKind)
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return obj
}

func outOfSync(a *v1alpha1.Application) { a.Status.Sync.Status = v1alpha1.SyncStatusCodeOutOfSync }

func has(status schema.Status, reason string) func(schema.Reconciler) bool {
	return func(r schema.Reconciler) bool { return r.Status == status && r.Reason == reason }
}

func runs(revisions ...string) func(schema.Reconciler) bool {
	return func(r schema.Reconciler) bool { return cmp.Equal(revisions, r.Applied) }
}

func source(want schema.Source) func(schema.Reconciler) bool {
	return func(r schema.Reconciler) bool { return len(r.Sources) == 1 && r.Sources[0] == want }
}

func TestApplicationFields(t *testing.T) {
	git := schema.Source{Type: schema.SourceGit, URL: "https://git.example.com/org/repo", Ref: "main", Path: "app"}
	with := func(edit func(*schema.Source)) schema.Source { s := git; edit(&s); return s }
	for name, c := range map[string]struct {
		edit func(*v1alpha1.Application)
		want func(schema.Reconciler) bool
	}{
		"success":                       {func(*v1alpha1.Application) {}, has(schema.StatusSuccess, "Synced")},
		"spec.source":                   {func(*v1alpha1.Application) {}, source(git)},
		"spec.source.repoURL":           {func(a *v1alpha1.Application) { a.Spec.Source.RepoURL = "https://x.example.com/y" }, source(with(func(s *schema.Source) { s.URL = "https://x.example.com/y" }))},
		"spec.source.path":              {func(a *v1alpha1.Application) { a.Spec.Source.Path = "other" }, source(with(func(s *schema.Source) { s.Path = "other" }))},
		"spec.source.targetRevision":    {func(a *v1alpha1.Application) { a.Spec.Source.TargetRevision = "v1.*" }, source(with(func(s *schema.Source) { s.Ref = "semver:v1.*" }))},
		"spec.source.chart":             {func(a *v1alpha1.Application) { a.Spec.Source.Path, a.Spec.Source.Chart = "", "podinfo" }, source(with(func(s *schema.Source) { s.Type, s.Path = schema.SourceHelm, "podinfo" }))},
		"status.sync.comparedTo.source": {func(a *v1alpha1.Application) { a.Status.Sync.ComparedTo.Source.TargetRevision = "before" }, has(schema.StatusInProgress, "SpecNotCompared")},
		"status.sync.comparedTo.source.helm": {func(a *v1alpha1.Application) {
			a.Spec.Source.Helm = &v1alpha1.ApplicationSourceHelm{ReleaseName: "x"}
		}, has(schema.StatusInProgress, "SpecNotCompared")},
		"status.sync.comparedTo.destination":  {func(a *v1alpha1.Application) { a.Status.Sync.ComparedTo.Destination.Namespace = "before" }, has(schema.StatusInProgress, "SpecNotCompared")},
		"status.reconciledAt":                 {func(a *v1alpha1.Application) { a.Status.ReconciledAt = nil }, has(schema.StatusInProgress, "NotReconciled")},
		"status.operationState.finishedAt":    {func(a *v1alpha1.Application) { a.Status.ReconciledAt = &began }, has(schema.StatusInProgress, "NotReconciled")},
		"status.conditions: ComparisonError":  {condition(v1alpha1.ApplicationConditionComparisonError), has(schema.StatusFailure, "ComparisonError")},
		"status.conditions: InvalidSpecError": {condition(v1alpha1.ApplicationConditionInvalidSpecError), has(schema.StatusFailure, "InvalidSpecError")},
		"status.conditions: UnknownError":     {condition(v1alpha1.ApplicationConditionUnknownError), has(schema.StatusFailure, "UnknownError")},
		"status.conditions: SyncError":        {condition(v1alpha1.ApplicationConditionSyncError), has(schema.StatusFailure, "SyncError")},
		"status.operationState.phase: Failed": {func(a *v1alpha1.Application) {
			a.Status.OperationState.Phase, a.Status.OperationState.SyncResult.Revision = synccommon.OperationFailed, compared
		}, func(r schema.Reconciler) bool {
			return has(schema.StatusFailure, "OperationFailed")(r) && r.Message == "what it did" && r.Since.Equal(ended.Time)
		}},
		"status.operationState.phase: Error": {func(a *v1alpha1.Application) {
			a.Status.OperationState.Phase, a.Status.OperationState.SyncResult = synccommon.OperationError, nil
			a.Status.OperationState.Operation.Sync.Revision = compared
		}, has(schema.StatusFailure, "OperationError")},
		"status.operationState.phase: Running":     {func(a *v1alpha1.Application) { a.Status.OperationState.Phase = synccommon.OperationRunning }, has(schema.StatusInProgress, "OperationRunning")},
		"status.operationState.phase: Terminating": {func(a *v1alpha1.Application) { a.Status.OperationState.Phase = synccommon.OperationTerminating }, has(schema.StatusInProgress, "OperationTerminating")},
		"status.health: Degraded":                  {ill(health.HealthStatusDegraded), has(schema.StatusFailure, "Degraded")},
		"status.conditions.lastTransitionTime": {func(a *v1alpha1.Application) {
			condition(v1alpha1.ApplicationConditionComparisonError)(a)
			a.Status.Conditions[0].LastTransitionTime = &later
		}, func(r schema.Reconciler) bool { return r.Since.Equal(later.Time) && r.Message != "" }},
		"status.health.lastTransitionTime": {func(a *v1alpha1.Application) {
			ill(health.HealthStatusDegraded)(a)
			a.Status.Health.LastTransitionTime = &later
		}, func(r schema.Reconciler) bool { return r.Since.Equal(later.Time) && r.Health == "Degraded" }},
		"status.operationState.startedAt": {func(a *v1alpha1.Application) { a.Status.OperationState.Phase = synccommon.OperationRunning },
			func(r schema.Reconciler) bool { return r.Since.Equal(began.Time) }},
		"status.operationState.operation":  {func(a *v1alpha1.Application) { outOfSync(a); a.Status.OperationState.Operation.Sync = nil }, runs(deployed)},
		"status.health: Missing":           {ill(health.HealthStatusMissing), has(schema.StatusFailure, "Missing")},
		"status.health: Progressing":       {ill(health.HealthStatusProgressing), has(schema.StatusInProgress, "Progressing")},
		"status.health: Suspended":         {ill(health.HealthStatusSuspended), has(schema.StatusInProgress, "Suspended")},
		"status.health: Unknown":           {ill(health.HealthStatusUnknown), has(schema.StatusUnknown, "SyncSyncedHealthUnknown")},
		"status.sync.status: Unknown":      {func(a *v1alpha1.Application) { a.Status.Sync.Status = v1alpha1.SyncStatusCodeUnknown }, has(schema.StatusUnknown, "SyncUnknownHealthHealthy")},
		"status.sync.status: OutOfSync":    {outOfSync, has(schema.StatusInProgress, "OutOfSync")},
		"spec.syncPolicy.automated":        {func(a *v1alpha1.Application) { outOfSync(a); a.Spec.SyncPolicy.Automated = nil }, has(schema.StatusPending, "OutOfSync")},
		"status.sync.revision":             {func(*v1alpha1.Application) {}, func(r schema.Reconciler) bool { return cmp.Equal([]string{compared}, r.Attempted) }},
		"status.operationState.syncResult": {outOfSync, runs(operated)},
		"status.operationState.operation.sync.resources": {func(a *v1alpha1.Application) {
			outOfSync(a)
			a.Status.OperationState.Operation.Sync.Resources = []v1alpha1.SyncOperationResource{{Kind: "ConfigMap", Name: "x"}}
		}, runs(deployed)},
		"status.operationState.operation.sync.dryRun": {func(a *v1alpha1.Application) { outOfSync(a); a.Status.OperationState.Operation.Sync.DryRun = true }, runs(deployed)},
		"status.operationState.operation.sync.manifests": {func(a *v1alpha1.Application) {
			outOfSync(a)
			a.Status.OperationState.Operation.Sync.Manifests = []string{"{}"}
		}, runs(deployed)},
		"status.history":            {func(a *v1alpha1.Application) { outOfSync(a); a.Status.OperationState = nil }, runs(deployed)},
		"status.history.deployedAt": {func(a *v1alpha1.Application) { outOfSync(a); a.Status.History[0].DeployedAt = later }, runs(deployed)},
		"status.history.source": {func(a *v1alpha1.Application) {
			outOfSync(a)
			a.Status.OperationState = nil
			a.Status.History[0].Source.Path = "elsewhere"
		}, runs()},
		"drift": {func(a *v1alpha1.Application) { outOfSync(a); a.Status.OperationState.SyncResult.Revision = compared },
			func(r schema.Reconciler) bool { return has(schema.StatusSuccess, "Drifted")(r) && r.Drifted }},
	} {
		t.Run(name, func(t *testing.T) {
			a := good()
			c.edit(a)
			r, err := argocd.Application(unstruct(t, a), argocd.Tracking{})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Applied) == 0 {
				r.Applied = nil
			}
			if !c.want(r) {
				t.Errorf("the field is read otherwise: %+v", r)
			}
		})
	}
}

func condition(kind v1alpha1.ApplicationConditionType) func(*v1alpha1.Application) {
	return func(a *v1alpha1.Application) {
		a.Status.Conditions = []v1alpha1.ApplicationCondition{{Type: kind, Message: "Failed last sync attempt to [" + compared + "]: no"}}
	}
}

func ill(h health.HealthStatusCode) func(*v1alpha1.Application) {
	return func(a *v1alpha1.Application) { a.Status.Health.Status = h }
}

func TestMultiSourceFields(t *testing.T) {
	a := good()
	sources := v1alpha1.ApplicationSources{
		{RepoURL: "https://charts.example.com", Chart: "podinfo", TargetRevision: "6.*"},
		{RepoURL: "https://git.example.com/org/values", Ref: "values", TargetRevision: "main"},
	}
	a.Spec.Source, a.Spec.Sources = nil, sources
	a.Status.Sync.ComparedTo.Source, a.Status.Sync.ComparedTo.Sources = v1alpha1.ApplicationSource{}, sources
	a.Status.Sync.Revision, a.Status.Sync.Revisions = "", []string{"6.5.1", compared}
	a.Status.OperationState = nil
	a.Status.History[0] = v1alpha1.RevisionHistory{Revisions: []string{"6.5.0", deployed}, Sources: sources, DeployedAt: began}
	r, err := argocd.Application(unstruct(t, a), argocd.Tracking{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != schema.StatusSuccess || !cmp.Equal([]string{"6.5.1", compared}, r.Applied) || len(r.Sources) != 2 {
		t.Errorf("spec.sources and status.sync.revisions are read as %+v", r)
	}
	outOfSync(a)
	if r, err = argocd.Application(unstruct(t, a), argocd.Tracking{}); err != nil || !cmp.Equal([]string{"6.5.0", deployed}, r.Applied) {
		t.Errorf("status.history.revisions are read as %v, %v", r.Applied, err)
	}
	a.Status.OperationState = good().Status.OperationState
	a.Status.OperationState.SyncResult = &v1alpha1.SyncOperationResult{Revisions: []string{"6.5.2", operated}, Sources: sources}
	if r, err = argocd.Application(unstruct(t, a), argocd.Tracking{}); err != nil || !cmp.Equal([]string{"6.5.2", operated}, r.Applied) {
		t.Errorf("status.operationState.syncResult.revisions are read as %v, %v", r.Applied, err)
	}
}

func TestHydratorFields(t *testing.T) {
	a := good()
	a.Spec.Source = nil
	a.Spec.SourceHydrator = &v1alpha1.SourceHydrator{
		DrySource:  v1alpha1.DrySource{RepoURL: "https://git.example.com/org/repo", TargetRevision: "main", Path: "dry"},
		SyncSource: v1alpha1.SyncSource{TargetBranch: "env/dev", Path: "app"},
	}
	a.Status.Sync.ComparedTo.Source = a.Spec.GetSource()
	a.Status.SourceHydrator = v1alpha1.SourceHydratorStatus{
		LastSuccessfulOperation: &v1alpha1.SuccessfulHydrateOperation{DrySHA: operated, HydratedSHA: compared},
		CurrentOperation:        &v1alpha1.HydrateOperation{Phase: v1alpha1.HydrateOperationPhaseFailed, DrySHA: deployed, Message: "no"},
	}
	r, err := argocd.Application(unstruct(t, a), argocd.Tracking{})
	if err != nil {
		t.Fatal(err)
	}
	want := []schema.Source{
		{Type: schema.SourceGit, URL: "https://git.example.com/org/repo", Ref: "env/dev", Path: "app"},
		{Type: schema.SourceGit, URL: "https://git.example.com/org/repo", Ref: "main", Path: "dry"},
	}
	if diff := cmp.Diff(want, r.Sources); diff != "" {
		t.Errorf("spec.sourceHydrator (-want +got):\n%s", diff)
	}
	if r.Status != schema.StatusSuccess || !cmp.Equal([]string{compared, operated}, r.Applied) || !cmp.Equal([]string{operated}, r.Origin) {
		t.Errorf("status.sourceHydrator is read as %+v", r)
	}
	if r.SourceError != "hydrating "+deployed+" failed: no" {
		t.Errorf("status.sourceHydrator.currentOperation is read as %q", r.SourceError)
	}
}

func TestReferenceFields(t *testing.T) {
	a := good()
	a.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "root:argoproj.io/Application:argocd/app"}
	a.Status.ControllerNamespace = "gitops"
	a.Status.Resources = []v1alpha1.ResourceStatus{{Group: "argoproj.io", Kind: "Application", Namespace: "argocd", Name: "child"}}
	obj := unstruct(t, a)
	if owner := (argocd.Tracking{}).Owner(obj); owner == nil || *owner != (schema.ObjectRef{Kind: "Application", Namespace: "gitops", Name: "root"}) {
		t.Errorf("the tracking id and status.controllerNamespace are read as %v", owner)
	}
	if got := argocd.Inventory(obj); len(got) != 1 || got[0] != (schema.ObjectRef{Kind: "Application", Namespace: "argocd", Name: "child"}) {
		t.Errorf("status.resources is read as %v", got)
	}
	if got := argocd.ReadDestination(obj); !got.Local() {
		t.Errorf("spec.destination.server is read as %+v", got)
	}
	a.Spec.Destination = v1alpha1.ApplicationDestination{Name: "drone-7"}
	if got := argocd.ReadDestination(unstruct(t, a)); got.Name != "drone-7" || got.Local() {
		t.Errorf("spec.destination.name is read as %+v", got)
	}
}

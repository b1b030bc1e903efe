package flux

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/schema"
)

func TestHelmReleaseStatus(t *testing.T) {
	const (
		plain, chart = "made/helmrelease", "made/helmchart" // the chart serves 6.5.1, the release runs 6.5.0
		failedChart  = "6.5.1"
	)
	attempting := func(conditions ...[3]string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			set(o, failedChart, "status", "lastAttemptedRevision")
			says(o, conditions...)
		}
	}
	for name, c := range map[string]statusCase{
		"suspended": {
			reason: "row 1: spec.suspend, whatever Ready says", object: plain, source: chart,
			edit:   func(o *unstructured.Unstructured) { set(o, true, "spec", "suspend") },
			status: schema.StatusSuspended, at: "6.5.0", applied: "6.5.0", observed: true,
		},
		"stalled-access-denied": {
			reason: "row 2: a chart that it may not read fails at the chart it would take", object: plain, source: chart,
			edit: func(o *unstructured.Unstructured) {
				says(o, [3]string{"Stalled", "True", "AccessDenied"}, [3]string{"Ready", "False", "AccessDenied"})
			},
			status: schema.StatusFailure, at: "6.5.1", applied: "6.5.0", observed: true,
		},
		"stalled-retries-exceeded": {
			reason: "row 2: no retry is left", object: plain, source: chart,
			edit: attempting([3]string{"Stalled", "True", "RetriesExceeded"}, [3]string{"Ready", "False", "UpgradeFailed"},
				[3]string{"Reconciling", "True", "ProgressingWithRetry"}),
			status: schema.StatusFailure, at: failedChart, applied: "6.5.0", observed: true,
		},
		"ready": {
			reason: "row 3: applied is the newest release with status deployed", object: plain, source: chart,
			status: schema.StatusSuccess, at: "6.5.0", applied: "6.5.0", observed: true,
		},
		"ready-generation-behind": {
			reason: "row 4: Ready=True speaks of an older specification", object: plain, source: chart,
			edit:   func(o *unstructured.Unstructured) { set(o, int64(5), "metadata", "generation") },
			status: schema.StatusInProgress, at: "6.5.0", applied: "6.5.0",
		},
		"ready-unknown": {
			reason: "row 5: an upgrade runs", object: plain, source: chart,
			edit:   attempting([3]string{"Ready", "Unknown", "Progressing"}, [3]string{"Reconciling", "True", "Progressing"}),
			status: schema.StatusInProgress, at: failedChart, applied: "6.5.0", observed: true,
		},
		"new": {
			reason: "row 5: it has no condition yet", object: plain, source: chart,
			edit:   func(o *unstructured.Unstructured) { unset(o, "status") },
			status: schema.StatusInProgress,
		},
		"upgrade-failed-retried": {
			reason: "row 6: UpgradeFailed with Reconciling=True is tried again", object: plain, source: chart,
			edit:   attempting([3]string{"Ready", "False", "UpgradeFailed"}, [3]string{"Reconciling", "True", "ProgressingWithRetry"}),
			status: schema.StatusInProgress, at: failedChart, applied: "6.5.0", observed: true,
		},
		"install-failed-retried": {
			reason: "row 6: so is a first install, and nothing is deployed", object: plain, source: chart,
			edit: func(o *unstructured.Unstructured) {
				unset(o, "status", "history")
				says(o, [3]string{"Ready", "False", "InstallFailed"}, [3]string{"Reconciling", "True", "ProgressingWithRetry"})
			},
			status: schema.StatusInProgress, at: "6.5.0", observed: true,
		},
		"source-not-ready": {
			reason: "row 7: it waits for the chart", object: plain, source: chart,
			edit:   ready("False", "SourceNotReady"),
			status: schema.StatusInProgress, at: "6.5.1", applied: "6.5.0", observed: true,
		},
		"dependency-not-ready": {
			reason: "row 7: it waits for another release", object: plain, source: chart,
			edit:   ready("False", "DependencyNotReady"),
			status: schema.StatusInProgress, at: "6.5.1", applied: "6.5.0", observed: true,
		},
		"install-failed": {
			reason: "row 8: no retry follows", object: plain, source: chart,
			edit:   attempting([3]string{"Ready", "False", "InstallFailed"}),
			status: schema.StatusFailure, at: failedChart, applied: "6.5.0", observed: true,
		},
		"upgrade-failed": {
			reason: "row 8", object: plain, source: chart, edit: attempting([3]string{"Ready", "False", "UpgradeFailed"}),
			status: schema.StatusFailure, at: failedChart, applied: "6.5.0", observed: true,
		},
		"test-failed": {
			reason: "row 8", object: plain, source: chart, edit: attempting([3]string{"Ready", "False", "TestFailed"}),
			status: schema.StatusFailure, at: failedChart, applied: "6.5.0", observed: true,
		},
		"rollback-succeeded": {
			reason: "row 8: back on the old release is not on the new one", object: plain, source: chart,
			edit:   attempting([3]string{"Ready", "False", "RollbackSucceeded"}),
			status: schema.StatusFailure, at: failedChart, applied: "6.5.0", observed: true,
		},
		"uninstall-succeeded": {
			reason: "row 8", object: plain, source: chart, edit: attempting([3]string{"Ready", "False", "UninstallSucceeded"}),
			status: schema.StatusFailure, at: failedChart, applied: "6.5.0", observed: true,
		},
		"any-other": {
			reason: "row 8: a reason nobody knows", object: plain, source: chart, edit: attempting([3]string{"Ready", "False", "Other"}),
			status: schema.StatusFailure, at: failedChart, applied: "6.5.0", observed: true,
		},
		"oci": {
			reason: "row 3 with a chart from an OCIRepository, its origin, and a HelmRelease as owner",
			object: "made/helmrelease-oci", source: "made/ocirepository-chart",
			status: schema.StatusSuccess, at: "6.5.0+83a3c595163a", applied: "6.5.0+83a3c595163a", observed: true,
		},
		"failed-newest-release": {
			reason: "a release that failed was not deployed, however new", object: plain, source: chart,
			edit: func(o *unstructured.Unstructured) {
				attempting([3]string{"Ready", "False", "UpgradeFailed"})(o)
				history, _, _ := unstructured.NestedSlice(o.Object, "status", "history")
				set(o, append(history, map[string]any{"chartVersion": failedChart, "status": "failed", "version": int64(4)}), "status", "history")
			},
			status: schema.StatusFailure, at: failedChart, applied: "6.5.0", observed: true,
		},
		"drifted": {
			reason: "row 3, and drift detection (mode warn) found a change", object: plain, source: chart,
			edit: func(o *unstructured.Unstructured) {
				says(o, [3]string{"Ready", "True", "UpgradeSucceeded"}, [3]string{"Drifted", "True", "DriftDetected"})
			},
			status: schema.StatusSuccess, at: "6.5.0", applied: "6.5.0", observed: true,
		},
		"v2beta1": {
			reason: "a version before v2 keeps an applied revision instead of a history", object: plain, source: chart,
			edit: func(o *unstructured.Unstructured) {
				set(o, "helm.toolkit.fluxcd.io/v2beta1", "apiVersion")
				unset(o, "status", "history")
				set(o, "6.5.0", "status", "lastAppliedRevision")
			},
			status: schema.StatusSuccess, at: "6.5.0", applied: "6.5.0", observed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, c.object)
			if c.edit != nil {
				c.edit(obj)
			}
			repository := ""
			if c.source == chart {
				repository = "made/helmrepository"
			}
			r, err := HelmRelease(obj, loadSource(t, c.source, repository))
			c.run(t, "helmrelease-"+name, r, err)
			if r.Drifted != (name == "drifted") {
				t.Errorf("drifted = %v", r.Drifted)
			}
		})
	}
}

// The artifact served now may be newer than the release.
func TestHelmReleaseOrigin(t *testing.T) {
	source := loadSource(t, "made/ocirepository-chart", "")
	for name, c := range map[string]struct {
		reason   string
		revision string
		digest   any
		want     string
	}{
		"released": {
			reason: "the artifact is the one released", revision: source.Revision,
			digest: "sha256:83a3c595163a6ff0333e0154c790383b5be441b9db632cb36da11db1c4ece111",
			want:   "508a11a06f010dd22052dcca9f4ed6fe3664c747",
		},
		"newer": {
			reason: "a false green", revision: "6.6.0@sha256:aef46d23f5bcf923e007a9b244889608130fa0af13bc23a845d7038f565d0e7f",
			digest: "sha256:83a3c595163a6ff0333e0154c790383b5be441b9db632cb36da11db1c4ece111",
		},
		"no digests": {reason: "two texts that are no digests are not one digest", revision: "6.6.0", digest: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, "made/helmrelease-oci")
			history, _, _ := unstructured.NestedSlice(obj.Object, "status", "history")
			history[0].(map[string]any)["ociDigest"] = c.digest
			set(obj, history, "status", "history")
			s := source
			s.Revision = c.revision
			r, err := HelmRelease(obj, s)
			if err != nil {
				t.Fatal(err)
			}
			if got := only(r.Origin); got != c.want {
				t.Errorf("origin = %q, want %q: %s", got, c.want, c.reason)
			}
		})
	}
}

package flux

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/schema"
)

const (
	first  = "main@sha1:9e04eced091a4b6b71e9a3bdf4e6972ad7573bd8" // what samples/gitrepository-repo serves
	second = "main@sha1:508a11a06f010dd22052dcca9f4ed6fe3664c747"
	before = "main@sha1:4d75591b1cd6e7c8e03e77117654c2219f3ad03b"
)

// statusCase is a row of a status table. What decides is written here, so that
// -update cannot bless it; the rest of the facts is in testdata/expected.
type statusCase struct {
	reason   string
	object   string
	edit     func(*unstructured.Unstructured)
	source   string // an object; empty for one never seen
	status   schema.Status
	at       string // T, as attempted
	applied  string
	observed bool
}

func (c statusCase) run(t *testing.T, name string, r schema.Reconciler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := sendable(r); err != nil {
		t.Errorf("the hub would refuse it: %v", err)
	}
	if r.Status != c.status {
		t.Errorf("status = %s (%s: %s), want %s: %s", r.Status, r.Reason, r.Message, c.status, c.reason)
	}
	if got := only(r.Attempted); got != c.at {
		t.Errorf("attempted = %q, want %q: %s", got, c.at, c.reason)
	}
	if got := only(r.Applied); got != c.applied {
		t.Errorf("applied = %q, want %q: %s", got, c.applied, c.reason)
	}
	if r.GenerationObserved == nil || *r.GenerationObserved != c.observed {
		t.Errorf("generation_observed is not %v: %s", c.observed, c.reason)
	}
	golden(t, name, r)
}

func only(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func TestKustomizationStatus(t *testing.T) {
	const repo = "samples/gitrepository-repo"
	for name, c := range map[string]statusCase{
		"suspended-never-ran": {
			reason: "row 1: spec.suspend, and no condition at all",
			object: "samples/kustomization-suspended", source: repo,
			status: schema.StatusSuspended,
		},
		"suspended-after-success": {
			reason: "row 1: the status still says Ready=True at the generation",
			object: "samples/kustomization-sus2", source: repo,
			status: schema.StatusSuspended, at: before, applied: before, observed: true,
		},
		"suspended-while-stalled": {
			reason: "row 1 is before row 2",
			object: "samples/kustomization-sus2", source: repo,
			edit:   func(o *unstructured.Unstructured) { says(o, [3]string{"Stalled", "True", "AccessDenied"}) },
			status: schema.StatusSuspended, at: before, applied: before, observed: true,
		},
		"stalled-access-denied": {
			reason: "row 2: it failed before attempted moved, so it failed at the artifact",
			object: "samples/kustomization-regress", source: repo,
			edit: func(o *unstructured.Unstructured) {
				says(o, [3]string{"Ready", "False", "AccessDenied"}, [3]string{"Stalled", "True", "AccessDenied"})
			},
			status: schema.StatusFailure, at: first, applied: before, observed: true,
		},
		"stalled-invalid-cel": {
			reason: "row 2: so does an expression that cannot be read",
			object: "samples/kustomization-regress", source: repo,
			edit: func(o *unstructured.Unstructured) {
				says(o, [3]string{"Ready", "False", "InvalidCELExpression"}, [3]string{"Stalled", "True", "InvalidCELExpression"})
			},
			status: schema.StatusFailure, at: first, applied: before, observed: true,
		},
		"stalled-feature-gate": {
			reason: "row 2: and a feature that is off",
			object: "samples/kustomization-regress", source: repo,
			edit: func(o *unstructured.Unstructured) {
				says(o, [3]string{"Ready", "False", "FeatureGateDisabled"}, [3]string{"Stalled", "True", "FeatureGateDisabled"})
			},
			status: schema.StatusFailure, at: first, applied: before, observed: true,
		},
		"stalled-source-not-seen": {
			reason: "row 2: without an artifact the failure has no revision, never an older one",
			object: "samples/kustomization-regress",
			edit:   func(o *unstructured.Unstructured) { says(o, [3]string{"Stalled", "True", "AccessDenied"}) },
			status: schema.StatusFailure, applied: before, observed: true,
		},
		"stalled-later": {
			reason: "row 2: any other reason is at what was attempted",
			object: "samples/kustomization-regress", source: repo,
			edit: func(o *unstructured.Unstructured) {
				says(o, [3]string{"Ready", "True", "ReconciliationSucceeded"}, [3]string{"Stalled", "True", "Other"})
			},
			status: schema.StatusFailure, at: second, applied: before, observed: true,
		},
		"stalled-nothing-attempted": {
			reason: "row 2: nothing was attempted, so attempted did not move",
			object: "samples/kustomization-nopath", source: repo,
			edit:   func(o *unstructured.Unstructured) { says(o, [3]string{"Stalled", "True", "Other"}) },
			status: schema.StatusFailure, at: first,
		},
		"ready": {
			reason: "row 3: Ready=True at the observed generation",
			object: "samples/kustomization-good", source: repo,
			status: schema.StatusSuccess, at: first, applied: first, observed: true,
		},
		"ready-generation-behind": {
			reason: "row 4: Ready=True speaks of an older specification",
			object: "samples/kustomization-good", source: repo,
			edit:   func(o *unstructured.Unstructured) { set(o, int64(2), "metadata", "generation") },
			status: schema.StatusInProgress, at: first, applied: first,
		},
		"ready-generation-never-observed": {
			reason: "row 4: no observed generation is not the present one",
			object: "samples/kustomization-good", source: repo,
			edit:   func(o *unstructured.Unstructured) { unset(o, "status", "observedGeneration") },
			status: schema.StatusInProgress, at: first, applied: first,
		},
		"health-checks-running": {
			reason: "row 5: Ready=Unknown while health checks run",
			object: "samples/kustomization-progressing-running", source: repo,
			status: schema.StatusInProgress, at: first,
		},
		"reconciling-again": {
			reason: "row 5: Ready is Unknown on every interval; a newer artifact is not attempted yet",
			object: "samples/kustomization-regress", source: repo,
			edit:   ready("Unknown", "Progressing"),
			status: schema.StatusInProgress, at: second, applied: before, observed: true,
		},
		"new": {
			reason: "row 5: no status at all",
			object: "samples/kustomization-good", source: repo,
			edit:   func(o *unstructured.Unstructured) { unset(o, "status") },
			status: schema.StatusInProgress,
		},
		"no-ready-condition": {
			reason: "row 5: other conditions, but no Ready yet",
			object: "samples/kustomization-good", source: repo,
			edit:   func(o *unstructured.Unstructured) { says(o, [3]string{"Reconciling", "True", "Progressing"}) },
			status: schema.StatusInProgress, at: first, applied: first, observed: true,
		},
		"dependency-not-ready": {
			reason: "row 6: it waits at the artifact that it did not attempt",
			object: "samples/kustomization-dependent", source: repo,
			status: schema.StatusInProgress, at: first,
		},
		"health-check-canceled": {
			reason: "row 6: a newer revision cancelled the checks of the attempted one",
			object: "samples/kustomization-regress", source: repo,
			edit:   ready("False", "HealthCheckCanceled"),
			status: schema.StatusInProgress, at: first, applied: before, observed: true,
		},
		"progressing-false": {
			reason: "row 6: Ready=False but Progressing",
			object: "samples/kustomization-regress", source: repo,
			edit:   ready("False", "Progressing"),
			status: schema.StatusInProgress, at: first, applied: before, observed: true,
		},
		"path-missing": {
			reason: "row 7: ArtifactFailed, and nothing was attempted",
			object: "samples/kustomization-nopath", source: repo,
			status: schema.StatusInProgress, at: first,
		},
		"path-went-missing": {
			reason: "row 7: attempted is an older revision and does not move",
			object: "samples/kustomization-regress", source: repo,
			edit:   ready("False", "ArtifactFailed"),
			status: schema.StatusInProgress, at: first, applied: before, observed: true,
		},
		"source-missing": {
			reason: "row 7: there is no source object, so no revision either",
			object: "samples/kustomization-source-missing",
			status: schema.StatusInProgress,
		},
		"source-broken": {
			reason: "row 7: the source never brought an artifact, and says why",
			object: "samples/kustomization-source-broken", source: "samples/gitrepository-repo-broken",
			status: schema.StatusInProgress,
		},
		"health-check-failed": {
			reason: "row 8: at what was attempted, which the cluster runs",
			object: "samples/kustomization-progressing-timedout", source: repo,
			status: schema.StatusFailure, at: second,
		},
		"prune-failed": {
			reason: "row 8: applied, but what is obsolete could not be removed",
			object: "samples/kustomization-regress", source: repo,
			edit:   ready("False", "PruneFailed"),
			status: schema.StatusFailure, at: second, applied: before, observed: true,
		},
		"invalid-manifest": {
			reason: "row 9: ReconciliationFailed; the generation behind is no staleness",
			object: "samples/kustomization-invalid", source: repo,
			status: schema.StatusFailure, at: first,
		},
		"regressed": {
			reason: "row 9: applied is the old commit, attempted the new one",
			object: "samples/kustomization-regress", source: repo,
			status: schema.StatusFailure, at: second, applied: before, observed: true,
		},
		"build-failed": {
			reason: "row 9: any reason, known or not",
			object: "samples/kustomization-regress", source: repo,
			edit:   ready("False", "BuildFailed"),
			status: schema.StatusFailure, at: second, applied: before, observed: true,
		},
		"oci": {
			reason: "row 3 from an OCI artifact in another namespace, with its Git origin",
			object: "made/kustomization-oci", source: "made/ocirepository",
			status:  schema.StatusSuccess,
			at:      "latest@sha256:bda7b3ad9c7ee2ee50fdc13d1ffd9ffd6a5f7c0c3b1bc6e7f1d3e8c6a20f7d11",
			applied: "latest@sha256:bda7b3ad9c7ee2ee50fdc13d1ffd9ffd6a5f7c0c3b1bc6e7f1d3e8c6a20f7d11", observed: true,
		},
		"external-artifact": {
			reason: "an ExternalArtifact has no endpoint: its revisions are kept as text",
			object: "made/kustomization-oci", source: "made/externalartifact",
			status:  schema.StatusSuccess,
			at:      "latest@sha256:bda7b3ad9c7ee2ee50fdc13d1ffd9ffd6a5f7c0c3b1bc6e7f1d3e8c6a20f7d11",
			applied: "latest@sha256:bda7b3ad9c7ee2ee50fdc13d1ffd9ffd6a5f7c0c3b1bc6e7f1d3e8c6a20f7d11", observed: true,
		},
		"bucket": {
			reason: "a bucket's revision is a digest",
			object: "samples/kustomization-nopath", source: "made/bucket",
			status: schema.StatusInProgress, at: "sha256:aef46d23f5bcf923e007a9b244889608130fa0af13bc23a845d7038f565d0e7f",
		},
		"root": {
			reason: "the root of a cluster applies itself: it owns itself nowhere",
			object: "made/kustomization-root", source: repo,
			status: schema.StatusSuccess, at: first, applied: first, observed: true,
		},
		"ready-odd": {
			reason: "a Ready condition with a word of its own is not understood",
			object: "samples/kustomization-good", source: repo,
			edit:   ready("Maybe", "Odd"),
			status: schema.StatusUnknown, at: first, applied: first, observed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, c.object)
			if c.edit != nil {
				c.edit(obj)
			}
			r, err := Kustomization(obj, loadSource(t, c.source, ""))
			c.run(t, "kustomization-"+name, r, err)
		})
	}
}

func TestKustomizationOrigin(t *testing.T) {
	const origin = "main@sha1:508a11a06f010dd22052dcca9f4ed6fe3664c747"
	newer := func(t *testing.T) Source {
		obj := load(t, "made/ocirepository")
		set(obj, "latest@sha256:aef46d23f5bcf923e007a9b244889608130fa0af13bc23a845d7038f565d0e7f", "status", "artifact", "revision")
		s, err := ReadSource(obj)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	same := func(t *testing.T) Source { return loadSource(t, "made/ocirepository", "") }
	for name, c := range map[string]struct {
		reason string
		source func(*testing.T) Source
		edit   func(*unstructured.Unstructured)
		want   string
	}{
		"stated": {reason: "the object's own word counts, also when a newer artifact is served", source: newer, want: origin},
		"by the artifact": {
			reason: "an older Flux does not state it: the artifact that is applied does", source: same,
			edit: func(o *unstructured.Unstructured) { unset(o, "status", "lastAppliedOriginRevision") }, want: origin,
		},
		"newer artifact": {
			reason: "a false green: the origin of what is not applied yet", source: newer,
			edit: func(o *unstructured.Unstructured) { unset(o, "status", "lastAppliedOriginRevision") },
		},
		"nothing applied": {
			reason: "a false green: nothing is applied", source: same,
			edit: func(o *unstructured.Unstructured) {
				unset(o, "status", "lastAppliedOriginRevision")
				unset(o, "status", "lastAppliedRevision")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, "made/kustomization-oci")
			if c.edit != nil {
				c.edit(obj)
			}
			r, err := Kustomization(obj, c.source(t))
			if err != nil {
				t.Fatal(err)
			}
			if got := only(r.Origin); got != c.want {
				t.Errorf("origin = %q, want %q: %s", got, c.want, c.reason)
			}
		})
	}
}

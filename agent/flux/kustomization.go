package flux

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

// KindKustomization is the kind that Kustomization reads.
const KindKustomization = "Kustomization"

// Kustomization reads a Kustomization of any version, with the source that its
// spec.sourceRef names (see SourceRef). The error wraps object.ErrNotNamed; an
// object that can be named but not understood has status unknown.
func Kustomization(obj *unstructured.Unstructured, source Source) (schema.Reconciler, error) {
	ref, err := object.Ref(obj, KindKustomization)
	if err != nil {
		return schema.Reconciler{}, fmt.Errorf("reading a Kustomization: %w", err)
	}
	f := object.Read(obj)
	spec, status := f.Object("spec"), f.Object("status")
	all := conditions(status)
	o := observed{
		suspended:  spec.Bool("suspend", false),
		current:    isCurrent(f, status),
		conditions: all,
		attempted:  status.Text("lastAttemptedRevision"),
		source:     source.Revision,
	}
	applied := status.Text("lastAppliedRevision")
	v := o.kustomization()
	inventory(ref, spec, status) // an inventory that cannot be read hides children

	r := schema.Reconciler{
		Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
		Sources: source.endpoints(folder(spec.Text("path"))),
		Status:  v.status, Reason: v.reason, Message: v.message, Since: v.since,
		Attempted: []string{v.at}, Applied: []string{applied},
		Origin:             []string{origin(status.Text("lastAppliedOriginRevision"), applied, source)},
		SourceRevision:     source.Revision,
		SourceError:        source.Error,
		GenerationObserved: &o.current,
		Health:             health(all["Healthy"]),
		Suspended:          o.suspended,
		Owner:              owner(f),
	}
	return object.Finish(r, f.Err()), nil
}

// origin returns the Git revision behind what is applied. The artifact's own
// origin speaks for it only while that artifact is what is applied: a newer one
// says nothing of the cluster.
func origin(stated, applied string, source Source) string {
	if stated == "" && applied != "" && applied == source.Revision {
		return source.Origin
	}
	return stated
}

// kustomization is the status table of the design, row by row.
func (o observed) kustomization() outcome {
	ready := o.conditions["Ready"]
	if v, ok := o.common(); ok {
		return v
	}
	switch ready.reason {
	case "DependencyNotReady", "HealthCheckCanceled", "Progressing":
		return told(schema.StatusInProgress, o.source, ready)
	case "ArtifactFailed": // the hub ages it
		return told(schema.StatusInProgress, o.source, ready)
	case "HealthCheckFailed", "PruneFailed": // the cluster already runs what was attempted
		return told(schema.StatusFailure, o.attempted, ready)
	}
	return told(schema.StatusFailure, o.attempted, ready)
}

// health is a Kustomization's word on what it applied, where it checks that.
func health(c condition) string {
	switch c.status {
	case "True":
		return "Healthy"
	case "False":
		return cmp.Or(c.reason, "Unhealthy")
	case "Unknown":
		return cmp.Or(c.reason, "Unknown")
	}
	return ""
}

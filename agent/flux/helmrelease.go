package flux

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

// KindHelmRelease is the kind that HelmRelease reads.
const KindHelmRelease = "HelmRelease"

// HelmRelease reads a HelmRelease of any version, with the OCIRepository or the
// HelmChart that it takes its chart from (see SourceRef; a HelmChart joined to
// its repository by Source.In). Its revisions are chart versions. The error
// wraps object.ErrNotNamed; an object that can be named but not understood has
// status unknown.
func HelmRelease(obj *unstructured.Unstructured, source Source) (schema.Reconciler, error) {
	ref, err := object.Ref(obj, KindHelmRelease)
	if err != nil {
		return schema.Reconciler{}, fmt.Errorf("reading a HelmRelease: %w", err)
	}
	f := object.Read(obj)
	spec, status := f.Object("spec"), f.Object("status")
	o := observed{
		suspended:  spec.Bool("suspend", false),
		current:    isCurrent(f, status),
		conditions: conditions(status),
		attempted:  status.Text("lastAttemptedRevision"),
		source:     source.Revision,
	}
	d := deployedRelease(status)
	v := o.helmRelease()
	inventory(ref, spec, status) // an inventory that cannot be read hides children

	r := schema.Reconciler{
		Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
		Sources: source.endpoints(""),
		Status:  v.status, Reason: v.reason, Message: v.message, Since: v.since,
		Attempted: []string{v.at}, Applied: []string{d.chart},
		Origin:             []string{d.origin(source)},
		SourceRevision:     source.Revision,
		SourceError:        source.Error,
		GenerationObserved: &o.current,
		Suspended:          o.suspended,
		Drifted:            o.conditions["Drifted"].isTrue(),
		Owner:              owner(f),
	}
	return object.Finish(r, f.Err()), nil
}

// helmRelease is the status table of the design, row by row.
func (o observed) helmRelease() outcome {
	if v, ok := o.common(); ok {
		return v
	}
	ready := o.conditions["Ready"]
	if o.conditions["Reconciling"].isTrue() { // it is retried
		return told(schema.StatusInProgress, o.attempted, ready)
	}
	switch ready.reason {
	case "SourceNotReady", "DependencyNotReady": // the hub ages them
		return told(schema.StatusInProgress, o.source, ready)
	}
	return told(schema.StatusFailure, o.attempted, ready)
}

// release is one entry of status.history.
type release struct {
	number int64
	chart  string // the chart's version
	digest string // of the OCI artifact that the chart came in
}

// deployedRelease returns the newest release with status deployed. A served
// version before v2 keeps no such history, but an applied revision.
func deployedRelease(status object.Fields) release {
	var newest release
	history := status.List("history")
	for _, f := range history {
		r := release{number: f.Number("version"), chart: f.Text("chartVersion"), digest: f.Text("ociDigest")}
		if f.Text("status") == "deployed" && (newest.chart == "" || r.number > newest.number) {
			newest = r
		}
	}
	if len(history) == 0 {
		newest.chart = status.Text("lastAppliedRevision")
	}
	return newest
}

// origin returns the Git revision behind the release, which the artifact can
// tell only while it is the one that was released.
func (r release) origin(source Source) string {
	released := schema.ParseRevision(r.digest).Hex
	if released != "" && released == schema.ParseRevision(source.Revision).Hex {
		return source.Origin
	}
	return ""
}

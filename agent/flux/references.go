package flux

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

// Labels by which Flux marks what it applied.
const (
	kustomizeGroup = "kustomize.toolkit.fluxcd.io"
	helmGroup      = "helm.toolkit.fluxcd.io"
)

// Owner returns the Kustomization or HelmRelease that applied an object, by the
// labels that Flux puts on it, or nil. An object that applies itself has none.
func Owner(obj *unstructured.Unstructured) *schema.ObjectRef {
	return owner(object.Read(obj))
}

func owner(f object.Fields) *schema.ObjectRef {
	meta := f.Object("metadata")
	labels := meta.Object("labels")
	self := schema.ObjectRef{Kind: f.Text("kind"), Namespace: meta.Text("namespace"), Name: meta.Text("name")}
	for _, by := range []struct{ kind, group string }{{KindKustomization, kustomizeGroup}, {KindHelmRelease, helmGroup}} {
		ref := schema.ObjectRef{Kind: by.kind, Namespace: labels.Text(by.group + "/namespace"), Name: labels.Text(by.group + "/name")}
		if ref.Namespace != "" && ref.Name != "" && ref != self {
			return &ref
		}
	}
	return nil
}

// SourceRef names the object that a Kustomization or HelmRelease reads from;
// the zero reference where it names none. For a HelmRelease with a chart of its
// own that is the HelmChart which the controller makes for it.
func SourceRef(obj *unstructured.Unstructured) schema.ObjectRef {
	f := object.Read(obj)
	spec, own := f.Object("spec"), f.Object("metadata").Text("namespace")
	if f.Text("kind") == KindKustomization {
		return reference(spec.Object("sourceRef"), own)
	}
	if chart := spec.Object("chartRef"); !chart.IsZero() {
		return reference(chart, own)
	}
	if namespace, name, ok := strings.Cut(f.Object("status").Text("helmChart"), "/"); ok && namespace != "" && name != "" {
		return schema.ObjectRef{Kind: KindHelmChart, Namespace: namespace, Name: name}
	}
	repository := reference(spec.Object("chart", "spec", "sourceRef"), own)
	if repository.IsZero() {
		return repository
	}
	name := own + "-" + f.Object("metadata").Text("name")
	return schema.ObjectRef{Kind: KindHelmChart, Namespace: repository.Namespace, Name: name}
}

// reference reads a reference to an object, in the namespace own by default.
func reference(f object.Fields, own string) schema.ObjectRef {
	r := schema.ObjectRef{Kind: f.Text("kind"), Namespace: cmp.Or(f.Text("namespace"), own), Name: f.Text("name")}
	if r.Kind == "" || r.Name == "" {
		return schema.ObjectRef{}
	}
	return r
}

// Inventory returns the reconcilers among what a Kustomization or HelmRelease
// applied, in order and without itself. One that applies to another cluster
// (spec.kubeConfig) has none here. Where the inventory cannot be read, neither
// can the object: its status is unknown.
func Inventory(obj *unstructured.Unstructured) []schema.ObjectRef {
	f := object.Read(obj)
	meta := f.Object("metadata")
	self := schema.ObjectRef{Kind: f.Text("kind"), Namespace: meta.Text("namespace"), Name: meta.Text("name")}
	return inventory(self, f.Object("spec"), f.Object("status"))
}

func inventory(self schema.ObjectRef, spec, status object.Fields) []schema.ObjectRef {
	var found []schema.ObjectRef
	for _, entry := range status.Object("inventory").List("entries") {
		ref, group, err := inventoryID(entry.Text("id"))
		if err != nil {
			entry.Fail("id", err)
			continue
		}
		if object.IsReconciler(group, ref.Kind) {
			found = append(found, ref)
		}
	}
	if spec.Has("kubeConfig") {
		return nil
	}
	return object.Children(self, found)
}

// inventoryID reads an entry's id, namespace_name_group_kind. A name may hold
// two underscores, which stand for a colon.
func inventoryID(id string) (ref schema.ObjectRef, group string, err error) {
	parts := strings.Split(id, "_")
	n := len(parts)
	if n < 4 || parts[n-1] == "" {
		return ref, "", fmt.Errorf("is not namespace_name_group_kind")
	}
	name := strings.ReplaceAll(strings.Join(parts[1:n-2], "_"), "__", ":")
	return schema.ObjectRef{Kind: parts[n-1], Namespace: parts[0], Name: name}, parts[n-2], nil
}

package flux

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

func TestSourceRef(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		object string
		edit   func(*unstructured.Unstructured)
		want   schema.ObjectRef
	}{
		"own namespace": {
			reason: "a reference without a namespace stays in its own", object: "samples/kustomization-good",
			want: schema.ObjectRef{Kind: KindGitRepository, Namespace: "flux-system", Name: "repo"},
		},
		"other namespace": {
			reason: "a reference may cross namespaces", object: "made/kustomization-oci",
			want: schema.ObjectRef{Kind: KindOCIRepository, Namespace: "sources", Name: "manifests"},
		},
		"chart of its own": {
			reason: "the status names the chart that the controller made", object: "made/helmrelease",
			want: schema.ObjectRef{Kind: KindHelmChart, Namespace: "sources", Name: "team-b-web"},
		},
		"chart to come": {
			reason: "before it is made its name is known", object: "made/helmrelease",
			edit: func(o *unstructured.Unstructured) { unset(o, "status") },
			want: schema.ObjectRef{Kind: KindHelmChart, Namespace: "sources", Name: "team-b-web"},
		},
		"chartRef": {
			reason: "an OCIRepository serves the chart", object: "made/helmrelease-oci",
			want: schema.ObjectRef{Kind: KindOCIRepository, Namespace: "team-b", Name: "chart"},
		},
		"none": {
			reason: "it names no source", object: "made/helmrelease",
			edit: func(o *unstructured.Unstructured) { unset(o, "spec"); unset(o, "status") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, c.object)
			if c.edit != nil {
				c.edit(obj)
			}
			if got := SourceRef(obj); got != c.want {
				t.Errorf("SourceRef = %s, want %s: %s", got, c.want, c.reason)
			}
		})
	}
}

func TestOwner(t *testing.T) {
	kustomize := func(namespace, name string) map[string]any {
		return map[string]any{"kustomize.toolkit.fluxcd.io/namespace": namespace, "kustomize.toolkit.fluxcd.io/name": name}
	}
	for name, c := range map[string]struct {
		reason string
		labels map[string]any
		want   *schema.ObjectRef
	}{
		"kustomization": {
			reason: "applied by a Kustomization", labels: kustomize("flux-system", "root"),
			want: &schema.ObjectRef{Kind: KindKustomization, Namespace: "flux-system", Name: "root"},
		},
		"helm release": {
			reason: "part of a chart",
			labels: map[string]any{"helm.toolkit.fluxcd.io/namespace": "team-b", "helm.toolkit.fluxcd.io/name": "web"},
			want:   &schema.ObjectRef{Kind: KindHelmRelease, Namespace: "team-b", Name: "web"},
		},
		"itself":         {reason: "a root owns itself nowhere", labels: kustomize("flux-system", "good")},
		"half a label":   {reason: "a name alone is no owner", labels: map[string]any{"kustomize.toolkit.fluxcd.io/name": "root"}},
		"nobody":         {reason: "it was applied by hand"},
		"another's name": {reason: "other labels say nothing", labels: map[string]any{"app.kubernetes.io/instance": "root"}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, "samples/kustomization-good")
			if c.labels != nil {
				set(obj, c.labels, "metadata", "labels")
			}
			if diff := cmp.Diff(c.want, Owner(obj)); diff != "" {
				t.Errorf("owner (-want +got): %s\n%s", c.reason, diff)
			}
			r, err := Kustomization(obj, Source{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.Owner); diff != "" {
				t.Errorf("the reader's owner (-want +got): %s\n%s", c.reason, diff)
			}
		})
	}
}

func TestInventory(t *testing.T) {
	root := load(t, "made/kustomization-root")
	want := []schema.ObjectRef{
		{Kind: "Application", Namespace: "argocd", Name: "apps"},
		{Kind: "HelmRelease", Namespace: "team-b", Name: "web"},
		{Kind: "Kustomization", Namespace: "team-a", Name: "app"},
	}
	if diff := cmp.Diff(want, Inventory(root)); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	if got := Inventory(load(t, "samples/kustomization-good")); len(got) != 0 {
		t.Errorf("a ConfigMap is no child: %v", got)
	}
	set(root, map[string]any{"secretRef": map[string]any{"name": "elsewhere"}}, "spec", "kubeConfig")
	if got := Inventory(root); len(got) != 0 {
		t.Errorf("what is applied to another cluster is not here: %v", got)
	}
}

func TestInventoryUnreadable(t *testing.T) {
	for name, id := range map[string]any{"no id": "team-a", "no kind": "team-a_app_kustomize.toolkit.fluxcd.io_", "a number": int64(4)} {
		obj := load(t, "made/kustomization-root")
		set(obj, []any{map[string]any{"id": id, "v": "v1"}}, "status", "inventory", "entries")
		r, err := Kustomization(obj, Source{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != schema.StatusUnknown || r.Reason != object.ReasonUnreadable {
			t.Errorf("%s: status = %s (%s), want unknown: children may be hidden", name, r.Status, r.Message)
		}
	}
}

// The root of a cluster that says Ready is no success before its children were read.
func TestAwaitChildren(t *testing.T) {
	obj := load(t, "made/kustomization-root")
	r, err := Kustomization(obj, loadSource(t, "samples/gitrepository-repo", ""))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[schema.ObjectRef]bool{{Kind: "Application", Namespace: "argocd", Name: "apps"}: true}
	got := object.Await(r, Inventory(obj), func(ref schema.ObjectRef) bool { return seen[ref] })
	golden(t, "kustomization-root-awaits", got)
}

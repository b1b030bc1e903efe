package argocd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

func TestDestination(t *testing.T) {
	for name, c := range map[string]struct {
		destination map[string]any
		want        Destination
		local       bool
	}{
		"server":            {map[string]any{"server": "https://kubernetes.default.svc"}, Destination{Server: "https://kubernetes.default.svc"}, true},
		"server and port":   {map[string]any{"server": "https://kubernetes.default.svc:443/"}, Destination{Server: "https://kubernetes.default.svc:443/"}, true},
		"name":              {map[string]any{"name": "in-cluster"}, Destination{Name: "in-cluster"}, true},
		"another server":    {map[string]any{"server": "https://u:p@drone-7:6443"}, Destination{Server: "https://drone-7:6443"}, false},
		"another name":      {map[string]any{"name": "drone-7"}, Destination{Name: "drone-7"}, false},
		"nothing":           {map[string]any{}, Destination{}, false},
		"not to be guessed": {map[string]any{"name": int64(7)}, Destination{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, "samples/application-good")
			set(obj, c.destination, "spec", "destination")
			got := ReadDestination(obj)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("destination (-want +got):\n%s", diff)
			}
			if got.Local() != c.local {
				t.Errorf("local = %v, want %v", got.Local(), c.local)
			}
		})
	}
}

func TestSameDestination(t *testing.T) {
	named := map[string]any{"name": "drone-7", "namespace": "web"}
	for name, c := range map[string]struct {
		reason    string
		want, had map[string]any
		current   bool
	}{
		"looked up": {
			reason: "Argo CD found the server of a named cluster", want: named,
			had: map[string]any{"name": "drone-7", "namespace": "web", "server": "https://drone-7:6443"}, current: true,
		},
		"another name":      {reason: "it moves", want: named, had: map[string]any{"name": "drone-8", "namespace": "web"}},
		"another namespace": {reason: "it moves within the cluster", want: named, had: map[string]any{"name": "drone-7", "namespace": "x"}},
		"never compared":    {reason: "nothing was compared", want: named},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, "made/multisource")
			set(obj, c.want, "spec", "destination")
			unset(obj, "status", "sync", "comparedTo", "destination")
			if c.had != nil {
				set(obj, c.had, "status", "sync", "comparedTo", "destination")
			}
			r, err := Application(obj, Tracking{})
			if err != nil {
				t.Fatal(err)
			}
			if *r.GenerationObserved != c.current {
				t.Errorf("generation_observed = %v: %s", *r.GenerationObserved, c.reason)
			}
		})
	}
}

func TestOwner(t *testing.T) {
	kustomization := func(annotations, labels map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
			"metadata": map[string]any{"namespace": "flux-system", "name": "infra", "annotations": annotations, "labels": labels},
		}}
	}
	tracked := func(id string) map[string]any { return map[string]any{"argocd.argoproj.io/tracking-id": id} }
	instance := map[string]any{"app.kubernetes.io/instance": "other"}
	for name, c := range map[string]struct {
		reason   string
		obj      *unstructured.Unstructured
		tracking Tracking
		want     *schema.ObjectRef
	}{
		"tracking id": {
			reason:   "an application named without a namespace is in Argo CD's own",
			obj:      kustomization(tracked("root:kustomize.toolkit.fluxcd.io/Kustomization:flux-system/infra"), instance),
			tracking: Tracking{Namespace: "argocd", Label: "app.kubernetes.io/instance"},
			want:     &schema.ObjectRef{Kind: "Application", Namespace: "argocd", Name: "root"},
		},
		"namespaced": {
			reason: "any namespace: namespace_name",
			obj:    kustomization(tracked("team_root:kustomize.toolkit.fluxcd.io/Kustomization:flux-system/infra"), nil),
			want:   &schema.ObjectRef{Kind: "Application", Namespace: "team", Name: "root"},
		},
		"copied": {
			reason:   "a tracking id of another object, copied with its annotations; the label is not asked instead",
			obj:      kustomization(tracked("root:kustomize.toolkit.fluxcd.io/Kustomization:flux-system/other"), instance),
			tracking: Tracking{Namespace: "argocd", Label: "app.kubernetes.io/instance"},
		},
		"label": {
			reason: "tracking by label, as configured", obj: kustomization(nil, instance),
			tracking: Tracking{Namespace: "argocd", Label: "app.kubernetes.io/instance"},
			want:     &schema.ObjectRef{Kind: "Application", Namespace: "argocd", Name: "other"},
		},
		"label not configured": {
			reason: "charts use the same label", obj: kustomization(nil, instance), tracking: Tracking{Namespace: "argocd"},
		},
		"no namespace known": {
			reason: "where Argo CD lives is not guessed",
			obj:    kustomization(tracked("root:kustomize.toolkit.fluxcd.io/Kustomization:flux-system/infra"), nil),
		},
		"application of an application": {
			reason: "an Application says itself which namespace its controller is in", obj: load(t, "made/multisource"),
			want: &schema.ObjectRef{Kind: "Application", Namespace: "team", Name: "root"},
		},
		"itself": {reason: "a root that tracks itself", obj: load(t, "made/root")},
		"nobody": {reason: "applied by hand", obj: load(t, "samples/application-good")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.tracking.Owner(c.obj)); diff != "" {
				t.Errorf("owner: %s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// An Application's own word on where its controller lives is before what is configured.
func TestOwnerControllerNamespace(t *testing.T) {
	obj := load(t, "made/root")
	set(obj, "web", "metadata", "name")
	set(obj, "root:argoproj.io/Application:argocd/web", "metadata", "annotations", trackingID)
	set(obj, "gitops", "status", "controllerNamespace")
	want := &schema.ObjectRef{Kind: "Application", Namespace: "gitops", Name: "root"}
	if diff := cmp.Diff(want, Tracking{Namespace: "argocd"}.Owner(obj)); diff != "" {
		t.Errorf("owner (-want +got):\n%s", diff)
	}
}

func TestInventory(t *testing.T) {
	root := load(t, "made/root")
	want := []schema.ObjectRef{
		{Kind: "Application", Namespace: "team", Name: "web"},
		{Kind: "Kustomization", Namespace: "flux-system", Name: "infra"},
	}
	if diff := cmp.Diff(want, Inventory(root)); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	r, err := Application(root, Tracking{})
	if err != nil {
		t.Fatal(err)
	}
	got := object.Await(r, Inventory(root), func(schema.ObjectRef) bool { return false })
	golden(t, "root-awaits", got)
	set(root, map[string]any{"name": "drone-7"}, "spec", "destination")
	if got := Inventory(root); len(got) != 0 {
		t.Errorf("what is deployed to another cluster is not here: %v", got)
	}
	if got := Inventory(load(t, "samples/application-good")); len(got) != 0 {
		t.Errorf("a ConfigMap is no child: %v", got)
	}
}

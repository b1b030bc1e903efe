package flux

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

// Every object of testdata, and copies of it with members of other types, says
// the same trimmed and packed as it says whole.
func TestTrimKeepsFacts(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d objects: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".yaml")
		for seed := range uint64(60) {
			obj := load(t, name)
			if seed > 0 {
				disturbed(obj.Object["spec"], rand.New(rand.NewPCG(seed, 1)))
				disturbed(obj.Object["status"], rand.New(rand.NewPCG(seed, 2)))
				disturbed(obj.Object["metadata"], rand.New(rand.NewPCG(seed, 3)))
			}
			if seed%2 == 1 {
				withSpec(obj, "kubeConfig", map[string]any{"secretRef": map[string]any{"name": "elsewhere"}})
			}
			obj = repacked(t, obj)
			want := everything(obj)
			trimmed := obj.DeepCopy()
			Trim(trimmed)
			if diff := cmp.Diff(want, everything(repacked(t, trimmed))); diff != "" {
				t.Fatalf("%s, seed %d (-whole +trimmed):\n%s", name, seed, diff)
			}
		}
	}
}

// facts is all that can be asked of an object of this package's kinds.
type facts struct {
	Kustomization, HelmRelease schema.Reconciler
	Source                     Source
	Errors                     string
	Owner                      *schema.ObjectRef
	SourceRef                  schema.ObjectRef
	Inventory                  []schema.ObjectRef
}

func everything(obj *unstructured.Unstructured) facts {
	k, errK := Kustomization(obj, Source{Revision: first, Origin: second, Endpoint: schema.Source{Type: schema.SourceGit, URL: "https://git.example.com/a"}})
	h, errH := HelmRelease(obj, Source{Revision: "6.5.0@sha256:83a3c595163a6ff0333e0154c790383b5be441b9db632cb36da11db1c4ece111", Origin: second})
	s, errS := ReadSource(obj)
	for _, r := range []*schema.Reconciler{&k, &h} {
		if r.Reason == object.ReasonUnreadable {
			r.Message = "" // it may name another position
		}
	}
	return facts{k, h, s, fmt.Sprint(errK, errH, errS), Owner(obj), SourceRef(obj), Inventory(obj)}
}

// withSpec sets a member of the specification, where there is one.
func withSpec(obj *unstructured.Unstructured, name string, value any) {
	if spec, ok := obj.Object["spec"].(map[string]any); ok {
		spec[name] = value
	}
}

// repacked sends an object through JSON, as keeping it does.
func repacked(t *testing.T, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	raw, err := json.Marshal(obj.Object)
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// An inventory of hundreds leaves the few reconcilers in it, and what cannot be
// read; the marks by which others find an owner stay.
func TestTrimDrops(t *testing.T) {
	obj := load(t, "made/kustomization-root")
	entries, _, _ := unstructured.NestedSlice(obj.Object, "status", "inventory", "entries")
	children := len(Inventory(obj))
	for i := range 500 {
		entries = append(entries, map[string]any{"id": fmt.Sprintf("team_web-%d_apps_Deployment", i), "v": "v1"})
	}
	entries = append(entries, map[string]any{"id": "half"})
	set(obj, entries, "status", "inventory", "entries")
	set(obj, []any{map[string]any{"manager": "x"}}, "metadata", "managedFields")
	set(obj, map[string]any{"argocd.argoproj.io/tracking-id": "a:b/C:d/e", "other": "x"}, "metadata", "annotations")
	set(obj, map[string]any{"any": "label"}, "metadata", "labels")
	Trim(obj)

	entries, _, _ = unstructured.NestedSlice(obj.Object, "status", "inventory", "entries")
	if len(entries) != children+2 { // itself, and the one that cannot be read
		t.Errorf("%d entries are left of %d children, itself and an unreadable one: %v", len(entries), children, entries)
	}
	if obj.GetManagedFields() != nil || obj.GetResourceVersion() != "" {
		t.Error("bookkeeping was kept")
	}
	if diff := cmp.Diff(map[string]string{"argocd.argoproj.io/tracking-id": "a:b/C:d/e"}, obj.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if obj.GetLabels()["any"] != "label" {
		t.Error("a label is gone")
	}
}

func TestTrimLeavesOthersAlone(t *testing.T) {
	obj := load(t, "samples/kustomization-good")
	obj.SetKind("Other")
	want := obj.DeepCopy()
	Trim(obj)
	if diff := cmp.Diff(want.Object, obj.Object); diff != "" {
		t.Errorf("an object of another kind was changed (-want +got):\n%s", diff)
	}
}

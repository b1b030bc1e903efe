package argocd

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
	if err != nil || len(files) < 12 {
		t.Fatalf("%d objects: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".yaml")
		for seed := range uint64(100) {
			obj := load(t, name)
			if seed > 0 {
				disturbed(obj.Object["spec"], rand.New(rand.NewPCG(seed, 1)))
				disturbed(obj.Object["status"], rand.New(rand.NewPCG(seed, 2)))
				disturbed(obj.Object["metadata"], rand.New(rand.NewPCG(seed, 3)))
			}
			if sync, ok, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "operationState", "operation", "sync"); ok && seed%2 == 1 {
				if sync, ok := sync.(map[string]any); ok { // what deploys nothing must not be forgotten
					sync["dryRun"] = true
					unset(obj, "status", "history")
				}
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

// facts is all that can be asked of an Application.
type facts struct {
	Application schema.Reconciler
	Error       string
	Destination Destination
	Owner       *schema.ObjectRef
	Inventory   []schema.ObjectRef
}

func everything(obj *unstructured.Unstructured) facts {
	tracking := Tracking{Namespace: "argocd", Label: "app.kubernetes.io/instance"}
	r, err := Application(obj, tracking)
	if r.Reason == object.ReasonUnreadable {
		r.Message = "" // it may name another position
	}
	return facts{r, fmt.Sprint(err), ReadDestination(obj), tracking.Owner(obj), Inventory(obj)}
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

// What an Application has hundreds of leaves the few that count, and what
// cannot be read.
func TestTrimDrops(t *testing.T) {
	obj := load(t, "made/root")
	children := len(Inventory(obj))
	resources, _, _ := unstructured.NestedSlice(obj.Object, "status", "resources")
	for i := range 500 {
		resources = append(resources, map[string]any{"group": "apps", "kind": "Deployment", "name": fmt.Sprint("web-", i), "namespace": "web", "status": "Synced"})
	}
	resources = append(resources, map[string]any{"group": int64(1)})
	set(obj, resources, "status", "resources")
	history := make([]any, 0, 11)
	for i := range 10 {
		history = append(history, map[string]any{"id": int64(i), "revision": commit508, "deployedAt": "2026-11-20T09:00:00Z", "source": map[string]any{"path": "a"}})
	}
	history = append([]any{map[string]any{"deployedAt": "yesterday"}}, history...)
	set(obj, history, "status", "history")
	set(obj, []any{"{}", strings.Repeat("x", 1<<16)}, "status", "operationState", "operation", "sync", "manifests")
	Trim(obj)

	resources, _, _ = unstructured.NestedSlice(obj.Object, "status", "resources")
	if len(resources) != children+2 { // itself, and the one that cannot be read
		t.Errorf("%d resources are left of %d children, itself and an unreadable one: %v", len(resources), children, resources)
	}
	history, _, _ = unstructured.NestedSlice(obj.Object, "status", "history")
	if len(history) != 2 { // the last, and the one that cannot be read
		t.Errorf("the history is %v", history)
	}
	manifests, _, _ := unstructured.NestedSlice(obj.Object, "status", "operationState", "operation", "sync", "manifests")
	if diff := cmp.Diff([]any{"", ""}, manifests); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}
}

func TestTrimLeavesOthersAlone(t *testing.T) {
	obj := load(t, "samples/application-good")
	obj.SetKind("Other")
	want := obj.DeepCopy()
	Trim(obj)
	if diff := cmp.Diff(want.Object, obj.Object); diff != "" {
		t.Errorf("an object of another kind was changed (-want +got):\n%s", diff)
	}
}

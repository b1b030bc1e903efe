package argocd

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/landfall-hub/landfall/schema"
)

var update = flag.Bool("update", false, "write testdata/expected anew")

// load reads an object from testdata: samples/… are real ones, made/… are not.
func load(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &obj.Object); err != nil {
		t.Fatalf("parsing %s: %v", name, err)
	}
	return obj
}

// golden compares facts with testdata/expected/<name>.json.
func golden(t *testing.T, name string, got any) {
	t.Helper()
	raw, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	raw = append(raw, '\n')
	file := filepath.Join("testdata", "expected", name+".json")
	if *update {
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run go test with -update and read what it wrote", err)
	}
	if diff := cmp.Diff(string(want), string(raw)); diff != "" {
		t.Errorf("facts differ from %s (-want +got):\n%s", file, diff)
	}
}

// set writes a member of an object that a test made its own.
func set(obj *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
		panic(err)
	}
}

func unset(obj *unstructured.Unstructured, path ...string) {
	unstructured.RemoveNestedField(obj.Object, path...)
}

// sendable says whether the hub would take the facts.
func sendable(r schema.Reconciler) error {
	report := schema.Report{
		Epoch: 1, Sequence: 1, Mode: schema.ModeSnapshot, Kinds: []string{r.Kind},
		ObservedAt: time.Unix(0, 0), Reconcilers: []schema.Reconciler{r},
	}
	return report.Validate()
}

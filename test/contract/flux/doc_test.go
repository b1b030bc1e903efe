// Package contract holds the Flux readers against Flux's own API types: what
// upstream writes into a field is what the reader finds there.
package contract

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/schema"
)

// unstruct makes of a typed object what the API server would send of it.
func unstruct(t *testing.T, kind string, typed any) *unstructured.Unstructured {
	t.Helper()
	raw, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	// Decoded as the API machinery does it: whole numbers are int64.
	var values map[string]any
	if err := json.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	values["kind"], values["apiVersion"] = kind, "example.com/v1"
	raw, err = json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	if err := obj.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return obj
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func observed(r schema.Reconciler) bool { return r.GenerationObserved != nil && *r.GenerationObserved }

package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestShapeTrim(t *testing.T) {
	shape := Shape{"whole": nil, "there": {}, "part": {"a": nil, "list": {"b": nil}}, "metadata": Metadata("kept")}
	for name, c := range map[string]struct {
		reason   string
		in, want map[string]any
	}{
		"unnamed": {"what nobody reads goes", map[string]any{"x": int64(1), "whole": map[string]any{"x": int64(1)}}, map[string]any{"whole": map[string]any{"x": int64(1)}}},
		"there": {
			"that it is there is still to be seen",
			map[string]any{"there": map[string]any{"x": int64(1)}}, map[string]any{"there": map[string]any{}},
		},
		"below": {
			"objects are cut at every depth, also in lists",
			map[string]any{"part": map[string]any{"a": "1", "x": "2", "list": []any{map[string]any{"b": "3", "x": "4"}}}},
			map[string]any{"part": map[string]any{"a": "1", "list": []any{map[string]any{"b": "3"}}}},
		},
		"wrong types": {
			"what has another type is left for the reader to refuse",
			map[string]any{"part": map[string]any{"a": int64(1), "list": []any{"text", nil}}, "there": "text", "metadata": nil},
			map[string]any{"part": map[string]any{"a": int64(1), "list": []any{"text", nil}}, "there": "text", "metadata": nil},
		},
		"metadata": {
			"labels may each name an owner, annotations are known",
			map[string]any{"metadata": map[string]any{
				"name": "n", "uid": "u", "resourceVersion": "7", "managedFields": []any{}, "labels": map[string]any{"any": "l"},
				"annotations": map[string]any{"kept": "a", "x": "b"},
			}},
			map[string]any{"metadata": map[string]any{"name": "n", "labels": map[string]any{"any": "l"}, "annotations": map[string]any{"kept": "a"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shape.Trim(&unstructured.Unstructured{Object: c.in})
			if diff := cmp.Diff(c.want, c.in); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestDropItems(t *testing.T) {
	even := func(_ int, item Fields) bool { return item.Number("n")%2 == 0 && item.Err() == nil }
	item := func(n any) any { return map[string]any{"n": n} }
	for name, c := range map[string]struct {
		reason   string
		in, want any
	}{
		"some":       {"what is not wanted goes", []any{item(int64(1)), item(int64(2)), item(int64(3))}, []any{item(int64(1)), item(int64(3))}},
		"unreadable": {"what cannot be read stays", []any{item("2"), "2", nil}, []any{item("2"), "2", nil}},
		"no list":    {"so does what is no list", "none", "none"},
		"nothing":    {"nor is one made", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"list": c.in}}}
			DropItems(obj, even, "status", "list")
			if diff := cmp.Diff(c.want, obj.Object["status"].(map[string]any)["list"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
	for _, obj := range []map[string]any{nil, {}, {"status": "text"}} {
		DropItems(&unstructured.Unstructured{Object: obj}, even, "status", "list")
	}
}

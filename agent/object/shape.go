package object

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Shape names the members of an object that a reader looks at. A member whose
// shape is nil is wanted whole.
type Shape map[string]Shape

// Metadata is the part of metadata that is read of every kind. Labels are kept
// whole, because which of them names an owner is configured; of annotations
// only those given are kept.
func Metadata(annotations ...string) Shape {
	kept := Shape{}
	for _, name := range annotations {
		kept[name] = nil
	}
	return Shape{"name": nil, "namespace": nil, "generation": nil, "labels": nil, "annotations": kept}
}

// Trim removes from obj what the shape does not name. It changes obj.
func (s Shape) Trim(obj *unstructured.Unstructured) { s.trim(obj.Object) }

// trim goes through lists item by item. What has another type than expected is
// left as it is: the reader has to see and to refuse it.
func (s Shape) trim(v any) {
	switch t := v.(type) {
	case map[string]any:
		for name, below := range t {
			shape, wanted := s[name]
			if !wanted {
				delete(t, name)
				continue
			}
			if shape != nil {
				shape.trim(below)
			}
		}
	case []any:
		for _, item := range t {
			s.trim(item)
		}
	}
}

// DropItems removes the items of the list below the given names that drop asks
// to be removed. An item that is no object stays, for the reader to refuse.
func DropItems(obj *unstructured.Unstructured, drop func(i int, item Fields) bool, names ...string) {
	at := obj.Object
	last := len(names) - 1
	for _, name := range names[:last] {
		at, _ = at[name].(map[string]any)
	}
	list, ok := at[names[last]].([]any)
	if !ok {
		return
	}
	kept := make([]any, 0, len(list))
	for i, item := range list {
		m, ok := item.(map[string]any)
		if ok && drop(i, Read(&unstructured.Unstructured{Object: m})) {
			continue
		}
		kept = append(kept, item)
	}
	at[names[last]] = slices.Clip(kept)
}

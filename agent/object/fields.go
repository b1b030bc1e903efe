package object

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Fields reads the members of one JSON object. A member that is missing or null
// is its type's zero value; one of another type is kept as an error, so that a
// shape nobody knows is never taken for a good one. Fields read from others
// share their error.
type Fields struct {
	values map[string]any
	at     string
	err    *error
}

// Read returns the fields of an object's root.
func Read(obj *unstructured.Unstructured) Fields {
	var err error
	return Fields{values: obj.Object, err: &err}
}

// Err returns the first member met that has the wrong type, or nil.
func (f Fields) Err() error { return *f.err }

// IsZero reports whether the object has no members, or is not there.
func (f Fields) IsZero() bool { return len(f.values) == 0 }

// Values returns the members as they are. They must not be changed.
func (f Fields) Values() map[string]any { return f.values }

// Has reports whether a member is there and not null.
func (f Fields) Has(name string) bool { return f.values[name] != nil }

// Object returns the fields of the object below the given names.
func (f Fields) Object(names ...string) Fields {
	for _, name := range names {
		below := Fields{at: f.path(name), err: f.err}
		if v := f.values[name]; v != nil {
			m, ok := v.(map[string]any)
			if !ok {
				f.wrong(name, "an object", v)
			}
			below.values = m
		}
		f = below
	}
	return f
}

// List returns the fields of each item in a list of objects.
func (f Fields) List(name string) []Fields {
	items := f.items(name)
	out := make([]Fields, 0, len(items))
	for i, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			f.wrong(fmt.Sprintf("%s[%d]", name, i), "an object", item)
			continue
		}
		out = append(out, Fields{values: m, at: f.path(fmt.Sprintf("%s[%d]", name, i)), err: f.err})
	}
	return out
}

// Texts returns a list of texts.
func (f Fields) Texts(name string) []string {
	items := f.items(name)
	var out []string
	for i, item := range items {
		s, ok := item.(string)
		if !ok {
			f.wrong(fmt.Sprintf("%s[%d]", name, i), "a text", item)
		}
		out = append(out, s)
	}
	return out
}

func (f Fields) items(name string) []any {
	v := f.values[name]
	if v == nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		f.wrong(name, "a list", v)
	}
	return list
}

// Text returns a text.
func (f Fields) Text(name string) string {
	v := f.values[name]
	if v == nil {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		f.wrong(name, "a text", v)
	}
	return s
}

// Bool returns a truth value, or missing where there is none.
func (f Fields) Bool(name string, missing bool) bool {
	v := f.values[name]
	if v == nil {
		return missing
	}
	b, ok := v.(bool)
	if !ok {
		f.wrong(name, "true or false", v)
	}
	return b
}

// Number returns a whole number.
func (f Fields) Number(name string) int64 {
	v := f.values[name]
	switch n := v.(type) {
	case nil:
		return 0
	case int64:
		return n
	case int:
		return int64(n)
	case float64:
		if whole := int64(n); float64(whole) == n {
			return whole
		}
	}
	f.wrong(name, "a whole number", v)
	return 0
}

// Time returns a time written as RFC 3339, in UTC; the zero time where there is
// none.
func (f Fields) Time(name string) time.Time {
	s := f.Text(name)
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		f.wrong(name, "a time such as 2026-11-20T09:00:00Z", s)
		return time.Time{}
	}
	return t.UTC()
}

func (f Fields) path(name string) string {
	if f.at == "" {
		return name
	}
	return f.at + "." + name
}

// Fail keeps a complaint about a member whose type is right and whose content
// is not: err says what it is instead.
func (f Fields) Fail(name string, err error) {
	if *f.err == nil {
		*f.err = fmt.Errorf("%s %w", f.path(name), err)
	}
}

// wrong keeps the first complaint. It shows the type, never the value: that may
// be a secret.
func (f Fields) wrong(name, want string, v any) {
	if *f.err == nil {
		*f.err = fmt.Errorf("%s is a %s, not %s", f.path(name), typeName(v), want)
	}
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "text"
	case bool:
		return "truth value"
	case map[string]any:
		return "object"
	case []any:
		return "list"
	}
	return strings.TrimRight(fmt.Sprintf("%T", v), "0123456789")
}

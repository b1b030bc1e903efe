package controlplane

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStructured(t *testing.T) {
	tests := map[string]struct {
		reason, text string
		want         any
	}{
		"map":             {"a mapping", "a: 1\nb: {c: [x, true, null, 1.5]}", map[string]any{"a": int64(1), "b": map[string]any{"c": []any{"x", true, nil, 1.5}}}},
		"list":            {"a list", "- name: a\n- b", []any{map[string]any{"name": "a"}, "b"}},
		"JSON":            {"JSON is YAML", `{"a": [18446744073709551615, "1"]}`, map[string]any{"a": []any{uint64(18446744073709551615), "1"}}},
		"empty":           {"nothing in it is something", "{}", map[string]any{}},
		"dates and such":  {"what JSON has no word for stays text", "a: 2024-01-02\nb: .inf\nc: .nan\nd: yes\n1: e", map[string]any{"a": "2024-01-02", "b": ".inf", "c": ".nan", "d": "yes", "1": "e"}},
		"scalar":          {"text is text", "mysql://host:3306/db", nil},
		"number":          {"a number is text", "42", nil},
		"template":        {"a template only looks like a mapping", "{{ .Environment }}", nil},
		"template inside": {"wherever it is", "- {{ .Environment }}", nil},
		"broken":          {"what does not parse is text", "a: [", nil},
		"two documents":   {"two documents are no value", "a: 1\n---\nb: 2\n", nil},
		"key twice":       {"it cannot be both", "a: 1\na: 2", nil},
		"bomb":            {"a bomb is text", bomb(""), nil},
		"too long":        {"so is what is too long", "a: " + strings.Repeat("x", mostBytes), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := Structured(tc.text)
			if ok != (tc.want != nil) {
				t.Fatalf("%s: ok = %t, %v", tc.reason, ok, got)
			}
			if diff := cmp.Diff(tc.want, got); ok && diff != "" {
				t.Errorf("%s: (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSniff(t *testing.T) {
	tests := map[string]struct {
		reason, text string
		want         guess
	}{
		"usual": {
			"the usual way of writing", "apiVersion: v1\nkind: ConfigMap # c\nmetadata:\n  name: \"x\"\n  labels:\n    # where\n    platform-config: \"true\"\n    region: 'west'\n  namespace: n\ndata:\n  name: other\n  A: [\n",
			guess{"v1", "ConfigMap", "x", map[string]string{"platform-config": "true", "region": "west"}, true},
		},
		"labels in flow": {
			"labels on one line are left open: it applies everywhere", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels: {platform-config: 'true', region: west}\n  name: x\ndata: [\n",
			guess{"v1", "ConfigMap", "x", nil, true},
		},
		"a label in doubt": {
			"one doubtful label makes all doubtful", "kind: ConfigMap\nmetadata:\n  labels:\n    region: [west\n    platform-config: 'true'\n",
			guess{"", "ConfigMap", "", nil, true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, sniff([]byte(tc.text)), cmp.AllowUnexported(guess{})); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

package render

import (
	"strings"
	"testing"
)

func TestPlainYAML(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"map":                      {"a: 1\nb: text with spaces\nc: \"q: #\"\nd: 'x'\ne:\nf: {}\n", true},
		"nested":                   {"a:\n  b:\n    c: 1\n  d: 2\ne: https://h.example:80/x\n", true},
		"list below its key":       {"a:\n- b: 1\n  c: 2\n- d: 3\ne: 4", true},
		"list deeper":              {"a:\n  - b: 1\n    c:\n      - x\n  - [] \nd: 1", true},
		"list":                     {"- a: 1\n  b: 2\n- a: 3\n-   c: 1\n    d: 2", true},
		"list in a list":           {"- - a\n  - b\n- - c: 1\n    d: 2", true},
		"documents":                {"a: 1\n---\na: 1\n", true},
		"literal":                  {"a: |\n  x: [\n\n    y\n  z\nb: 1", true},
		"literal at the end":       {"a:\n  b: |\n    x\n", true},
		"comments":                 {"# c\na:\n# c\n  b: 1\n    # c\nc: 1", true},
		"key twice":                {"a: 1\nb:\n  a: 1\na: 2", false},
		"key twice, deeper":        {"- a: 1\n  a: 1", false},
		"too deep":                 {"a: 1\n  b: 2", false},
		"back to nowhere":          {"a:\n    b: 1\n  c: 2", false},
		"back to nowhere, empty":   {"a:\n    b:\n  c: 2", false},
		"list in the wrong place":  {"a: 1\n- b", false},
		"list then map":            {"- a\nb: 1", false},
		"map in the wrong place":   {"a:\n  - b: 1\n  c: 2", false},
		"two values":               {"a: b: c", false},
		"comment after a value":    {"a: b # c", false},
		"flow":                     {"a: {b: 1}", false},
		"alias":                    {"a: *b", false},
		"quotes":                   {"a: \"b\" c", false},
		"scalar":                   {"a", false},
		"tab":                      {"a:\tb", false},
		"scalar over two lines":    {"a: b\n  c", false},
		"list item over two lines": {"- b\n  c", false},
		"item without a map":       {"- a\n  b: 1", false},
		"literal too short":        {"a: |\n    x\n  y\nb: 1", false},
		"nothing":                  {"", false},
		"comment":                  {"# c", false},
	} {
		if got := plainYAML(tc.text); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
		if tc.want {
			if err := parseYAML([]byte(tc.text)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// What is called plain is what the parser takes.
func FuzzPlainYAML(f *testing.F) {
	for _, seed := range []string{
		"a: 1\nb:\n  - c: 2\n    d: \"x\"\n  - e\n", "- - a\n  - b\n", "a: |\n  x\n y\n", "a:\n- b: 1\n  c: 2\nd: 'x'\n---\ne: {}\n",
		"a:\n    b:\n  c: 2", "# c\na:\n  #c\n  b: h:80\n", "a: |\n\n  x\n\n\nb: |\n c", "-  a: 1\n   b: []\n- c", "1: 2\n1.0: x/y\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.TrimRight(text, " \t\r\n") // as check gets it
		if plainYAML(text) {
			if err := parseYAML([]byte(text)); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

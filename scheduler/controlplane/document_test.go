package controlplane

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDocuments(t *testing.T) {
	type doc struct {
		Kind, Name string
		Line       int
	}
	tests := map[string]struct {
		reason   string
		text     string
		want     []doc
		problems []string
	}{
		"empty": {
			reason: "a file may hold nothing", text: "",
		},
		"comments only": {
			reason: "what has no content is no document", text: "# nothing\n---\n# nothing, either\n---\n",
		},
		"two": {
			reason: "documents are divided by ---, and lines count in the file",
			text:   "kind: A\nmetadata: {name: a}\n---\n# why\nkind: B\nmetadata:\n  name: b\n",
			want:   []doc{{"A", "a", 1}, {"B", "b", 5}},
		},
		"content behind the mark": {
			reason: "--- may carry content",
			text:   "--- {kind: A, metadata: {name: a}}\n--- # a comment\nkind: B\n",
			want:   []doc{{"A", "a", 1}, {"B", "", 3}},
		},
		"ends with dots": {
			reason: "... ends a document, and directives begin the next",
			text:   "kind: A\n...\n%YAML 1.2\n---\nkind: B\n",
			want:   []doc{{"A", "", 1}, {"B", "", 5}},
		},
		"marks within text": {
			reason: "dashes that do not begin a line, or go on, are text",
			text:   "kind: A\ntext: |\n  ---\n  ...\nother: --- no\n----: x\n",
			want:   []doc{{"A", "", 1}},
		},
		"windows": {
			reason: "a byte order mark and carriage returns are not content",
			text:   "\xef\xbb\xbfkind: A\r\n---\r\nkind: B\r\n",
			want:   []doc{{"A", "", 1}, {"B", "", 3}},
		},
		"no mapping": {
			reason: "lists and scalars are nobody's kind",
			text:   "- kind: A\n---\njust text\n---\nkind: B\n",
			want:   []doc{{"B", "", 5}},
		},
		"broken among others": {
			reason:   "one that cannot be read costs only itself, and its line is the file's",
			text:     "kind: A\n---\nkind: B\nlist: [1, 2\nmore: x\n---\nkind: C\n",
			want:     []doc{{"A", "", 1}, {"C", "", 7}},
			problems: []string{"f.yaml:4: B: not YAML: did not find expected ',' or ']'"},
		},
		"tab": {
			reason:   "a tab where spaces must be",
			text:     "kind: A\nmetadata:\n\tname: a\n",
			problems: []string{"f.yaml:3: A: not YAML: found character that cannot start any token"},
		},
		"binary": {
			reason:   "what is no text is a problem",
			text:     "kind: A\nx: \x00\x01\n",
			problems: []string{"f.yaml:1: A: not YAML: control characters are not allowed"},
		},
		"old line ends": {
			reason:   "lines that end with a carriage return alone would hide documents",
			text:     "kind: A\r---\rkind: B\r",
			problems: []string{"f.yaml:1: A: not one YAML document: its lines must end with a line feed, and documents be divided by lines of ---"},
		},
		"contains itself": {
			reason:   "an anchor that contains its own alias has no end",
			text:     "kind: A\nx: &x\n  y: *x\n",
			problems: []string{"f.yaml:3: A: alias *x stands within its own anchor: write out what is meant"},
		},
		"odd metadata": {
			reason: "whether metadata make sense is for those who know the kind",
			text:   "kind: [A]\nmetadata: text\n",
			want:   []doc{{"", "", 1}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			docs, problems := Documents(File{Path: "f.yaml", Text: []byte(tc.text)})
			var got []doc
			for _, d := range docs {
				got = append(got, doc{d.Kind, d.Name, d.Line})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: documents (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.problems, append([]string(nil), messages(problems)...)); diff != "" {
				t.Errorf("%s: problems (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDocumentHasItsText(t *testing.T) {
	docs, _ := Documents(file("f.yaml", "kind: A", "---", "kind: B", "metadata:", "  name: b", "  labels: {x: true}", "  annotations: {y: 1.10}"))
	if len(docs) != 2 {
		t.Fatalf("%d documents, want 2", len(docs))
	}
	want := Document{
		Place: Place{"f.yaml", 3}, Kind: "B", Name: "b", Labels: map[string]string{"x": "true"}, Annotations: map[string]string{"y": "1.10"},
		Text: []byte("---\nkind: B\nmetadata:\n  name: b\n  labels: {x: true}\n  annotations: {y: 1.10}\n"),
	}
	if diff := cmp.Diff(want, docs[1]); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}

// A YAML bomb: a few lines that expand to billions.
func bomb(first string) string {
	var b strings.Builder
	b.WriteString(first + "a: &a [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n")
	for c := 'b'; c <= 'k'; c++ {
		fmt.Fprintf(&b, "%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 10), ", "))
	}
	return b.String()
}

func TestBombs(t *testing.T) {
	tests := map[string]struct {
		reason, text, want string
	}{
		"aliases": {
			"aliases expand to billions", bomb(""),
			"f.yaml:6: its aliases expand to more than 1048576 bytes: write out what is meant",
		},
		"merge keys": {
			"merge keys expand, too",
			"a: &a {k: v, x: &x [" + strings.Repeat("y, ", 100_000) + "y]}\nb: {<<: *a, c: [*x, *x, *x, *x, *x, *x]}\n",
			"f.yaml:2: its aliases expand to more than 1048576 bytes: write out what is meant",
		},
		"depth": {
			"nesting has an end", "x: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "\n",
			"f.yaml:1: nested deeper than 200 levels: make it flatter",
		},
		"length": {
			"a document has an end", "x: " + strings.Repeat("y", mostBytes) + "\n",
			"f.yaml:1: the document is 1048580 bytes long, 1048576 are the most: split it",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			docs, problems := Documents(File{Path: "f.yaml", Text: []byte(tc.text + "---\nkind: Next\n")})
			if diff := cmp.Diff([]string{tc.want}, messages(problems)); diff != "" {
				t.Errorf("%s: problems (-want +got):\n%s", tc.reason, diff)
			}
			if len(docs) != 1 || docs[0].Kind != "Next" {
				t.Errorf("%s: the next document was not read: %v", tc.reason, docs)
			}
		})
	}
}

func TestAliasesAndMergeKeys(t *testing.T) {
	text := `
kind: ConfigMap
apiVersion: v1
metadata: {name: c, labels: &l {platform-config: "true", region: west}}
base: &base {A: one, B: two}
data:
  <<: [{B: zero}, *base]
  C: three
`
	m := ParseEnvironment([]File{{Path: "f.yaml", Text: []byte(text)}})
	if len(m.Problems) > 0 || len(m.ConfigMaps) != 1 {
		t.Fatalf("problems %v, %d ConfigMaps", m.Problems, len(m.ConfigMaps))
	}
	if diff := cmp.Diff(map[string]string{"A": "one", "B": "zero", "C": "three"}, m.ConfigMaps[0].Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func TestTenThousandDocuments(t *testing.T) {
	var b bytes.Buffer
	for i := range mostDocuments + 5 {
		fmt.Fprintf(&b, "---\n%s", clusterType(fmt.Sprintf("c%05d", i)))
	}
	m := ParseEnvironment([]File{{Path: "many.yaml", Text: b.Bytes()}, {Path: "one.yaml", Text: []byte(clusterType("one"))}})
	if got := len(m.ClusterTypes); got != mostDocuments+1 {
		t.Errorf("%d cluster types, want the first %d and the one of the other file", got, mostDocuments)
	}
	want := []Problem{{
		Place: Place{"many.yaml", mostDocuments*5 + 1}, Hides: true,
		Message: "the file holds more than 10000 documents, and what follows is not read: split the file",
	}}
	if diff := cmp.Diff(want, m.Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func FuzzDocuments(f *testing.F) {
	for _, text := range []string{
		"", "kind: A\n---\nkind: B\n", bomb(""), clusterType("c"), "a: &a\n  <<: *a\n", "--- |\n---\n", "? {a: b}\n: c\n", "{{ .X }}", "x: !!binary aGk=\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  labels:\n    platform-config: 'true'\ndata:\n  A: [\n",
		"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: {name: w}\nspec: {deploymentTargets: [{name: t, environment: dev, manifests: {path: ../x}}]}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in := File{Path: "f.yaml", Text: text}
		docs, problems := Documents(in)
		lines := bytes.Count(text, []byte("\n")) + bytes.Count(text, []byte("\r")) + 1
		for _, d := range docs {
			if d.Line < 1 || d.Line > lines {
				t.Errorf("a document at line %d of %d", d.Line, lines)
			}
			if !bytes.Contains(text, d.Text) {
				t.Errorf("text %q is not of the file", d.Text)
			}
			// One document alone reads as it does among others.
			_, _ = ParseWorkload(d)
			alone, bad := Documents(File{Path: "f.yaml", Text: d.Text})
			if len(alone) != 1 || len(bad) > 0 {
				t.Fatalf("document %q read alone: %v, %v", d.Text, alone, bad)
			}
			alone[0].Line = d.Line
			if diff := cmp.Diff(d, alone[0]); diff != "" {
				t.Errorf("document read alone (-among others +alone):\n%s", diff)
			}
		}
		for _, p := range problems {
			if p.File != "f.yaml" || p.Message == "" {
				t.Errorf("a problem without place or message: %+v", p)
			}
		}
		m := ParseEnvironment([]File{in})
		if diff := cmp.Diff(m, ParseEnvironment([]File{in})); diff != "" {
			t.Errorf("read twice (-first +second):\n%s", diff)
		}
		Structured(string(text))
	})
}

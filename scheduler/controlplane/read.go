package controlplane

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mostComplaints is how many complaints about one document are kept.
const mostComplaints = 20

// reader takes a document apart and notes everything that is not as it should
// be, each with its line.
type reader struct {
	part *part
	// problems are the first complaints, count is how many there were.
	problems []Problem
	count    int
}

// complainf notes what is wrong with a node of the document, once.
func (r *reader) complainf(n *yaml.Node, format string, args ...any) {
	p := Problem{Place: r.part.at(n), Message: fmt.Sprintf(format, args...)}
	if slices.Contains(r.problems, p) {
		return
	}
	if r.count++; r.count <= mostComplaints {
		r.problems = append(r.problems, p)
	}
}

// since sums up the complaints noted after the first n; "" where there are none.
func (r *reader) since(n int) string {
	if r.count == n {
		return ""
	}
	reasons := make([]string, 0, mostComplaints)
	for _, p := range r.problems[min(n, len(r.problems)):] {
		reasons = append(reasons, p.String()+": "+p.Message)
	}
	if r.count > mostComplaints {
		reasons = append(reasons, fmt.Sprintf("and more: only the first %d complaints about a document are shown", mostComplaints))
	}
	return strings.Join(reasons, "; ")
}

// object is a mapping of a document; one that is not there has no fields.
type object struct {
	r *reader
	// node is the mapping, or what stands in its place; nil where nothing does.
	node *yaml.Node
	// above is the nearest mapping that is there, for complaints about what is not.
	above *yaml.Node
	path  string
	keys  map[string]*yaml.Node
	lines map[string]int
}

func (r *reader) object(n *yaml.Node, path string) object {
	o := object{r: r, node: n, above: n, path: path, keys: map[string]*yaml.Node{}, lines: map[string]int{}}
	if n == nil {
		return o
	}
	if n.Kind != yaml.MappingNode {
		r.complainf(n, "%s must be a mapping", path)
		return o
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			r.complainf(k, "a key of %s is no plain text", path)
			continue
		}
		if _, twice := o.keys[k.Value]; twice {
			r.complainf(k, "%s stands there twice: remove one", o.key(k.Value))
			continue
		}
		o.keys[k.Value], o.lines[k.Value] = v, r.part.at(k).Line
	}
	return o
}

// key is the whole name of a field, as people write it.
func (o object) key(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// get returns the node of a field; nil where it is not there or null.
func (o object) get(name string) *yaml.Node {
	n := o.keys[name]
	if n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	return n
}

// object returns the mapping in a field.
func (o object) object(name string) object {
	sub := o.r.object(o.get(name), o.key(name))
	if sub.above == nil {
		sub.above = o.above
	}
	return sub
}

// text returns the text in a field, as it was written whatever YAML would make
// of it (true, 1.10); "" where there is none.
func (o object) text(name string) string {
	n := o.get(name)
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		o.r.complainf(n, "%s must be text", o.key(name))
		return ""
	}
	return n.Value
}

// wanted returns the text in a field and complains where there is none.
func (o object) wanted(name string) string {
	before := o.r.count
	s := o.text(name)
	if s == "" && o.r.count == before {
		o.missing(name)
	}
	return s
}

// missing complains of a field that is not there.
func (o object) missing(name string) {
	at := o.above
	if n := o.keys[name]; n != nil {
		at = n
	}
	o.r.complainf(at, "%s is missing: add it", o.key(name))
}

// texts returns a mapping of texts; nil where there is none.
func (o object) texts(name string) map[string]string {
	sub := o.object(name)
	if sub.node == nil || len(sub.keys) == 0 {
		return nil
	}
	all := make(map[string]string, len(sub.keys))
	for _, k := range slices.Sorted(maps.Keys(sub.keys)) {
		all[k] = sub.text(k)
	}
	return all
}

// list returns the items in a field.
func (o object) list(name string) []*yaml.Node {
	n := o.get(name)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		o.r.complainf(n, "%s must be a list", o.key(name))
		return nil
	}
	return n.Content
}

// only complains of fields other than those named.
func (o object) only(names ...string) {
	for i := 0; o.node != nil && i+1 < len(o.node.Content); i += 2 {
		if k := o.node.Content[i]; o.keys[k.Value] != nil && !slices.Contains(names, k.Value) {
			o.r.complainf(k, "%s is not known here, only %s: remove or correct it", o.key(k.Value), strings.Join(names, ", "))
		}
	}
}

// values returns whatever is in a field as plain Go values.
func (o object) values(name string) map[string]any {
	sub := o.object(name)
	if sub.node == nil || len(sub.keys) == 0 {
		return nil
	}
	all := make(map[string]any, len(sub.keys))
	for _, k := range slices.Sorted(maps.Keys(sub.keys)) {
		v, bad := plain(sub.keys[k])
		if bad != nil {
			o.r.complainf(bad, "%s is no plain value: keys must be text and stand there once", sub.key(k))
			continue
		}
		all[k] = v
	}
	return all
}

// plain turns a node into string, bool, int64, uint64, float64, nil, []any and
// map[string]any. Dates and infinite numbers stay text. The node at which it
// failed is returned where it did: a key that is no text, or stands there twice.
func plain(n *yaml.Node) (v any, bad *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode {
				return nil, k
			}
			if _, twice := m[k.Value]; twice {
				return nil, k
			}
			if m[k.Value], bad = plain(n.Content[i+1]); bad != nil {
				return nil, bad
			}
		}
		return m, nil
	case yaml.SequenceNode:
		l := make([]any, len(n.Content))
		for i, c := range n.Content {
			if l[i], bad = plain(c); bad != nil {
				return nil, bad
			}
		}
		return l, nil
	}
	return scalar(n), nil
}

func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool", "!!int", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			return n.Value
		}
		switch v := v.(type) {
		case int:
			return int64(v)
		case float64:
			if math.IsInf(v, 0) || math.IsNaN(v) {
				return n.Value
			}
		}
		return v
	}
	return n.Value
}

// Structured reads a text as YAML (of which JSON is a part): ok where it is one
// mapping or list, which is returned as plain values. Text that only looks like
// it, such as a template's {{ }}, is none.
func Structured(text string) (v any, ok bool) {
	if len(text) > mostBytes || !strings.ContainsAny(text, ":[{-") {
		return nil, false
	}
	root, _, err := parseYAML([]byte(text))
	if err != nil || root == nil || root.Kind == yaml.ScalarNode {
		return nil, false
	}
	v, bad := plain(root)
	return v, bad == nil
}

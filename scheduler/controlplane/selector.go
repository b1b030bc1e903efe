package controlplane

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Selector is a Kubernetes label selector. The zero Selector, like an empty
// one, selects everything.
type Selector struct {
	requirements labels.Requirements
}

// Matches says whether the selector selects what has these labels.
func (s Selector) Matches(set map[string]string) bool {
	for i := range s.requirements {
		if !s.requirements[i].Matches(labels.Set(set)) {
			return false
		}
	}
	return true
}

// String returns the selector as kubectl takes it. Equal selectors have equal
// strings; everything is "".
func (s Selector) String() string {
	parts := make([]string, len(s.requirements))
	for i := range s.requirements {
		parts[i] = s.requirements[i].String()
	}
	return strings.Join(parts, ",")
}

// Equal says whether two selectors say the same.
func (s Selector) Equal(o Selector) bool { return s.String() == o.String() }

// operators are those of matchExpressions.
var operators = map[string]selection.Operator{
	"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist,
}

// selector reads a field that holds a label selector.
func (o object) selector(name string) Selector {
	sub := o.object(name)
	sub.only("matchLabels", "matchExpressions")
	var s Selector
	equal := sub.object("matchLabels")
	for i := 0; equal.node != nil && i+1 < len(equal.node.Content); i += 2 {
		k := equal.node.Content[i]
		s.require(o.r, k, k.Value, selection.Equals, []string{equal.text(k.Value)})
	}
	for i, n := range sub.list("matchExpressions") {
		e := o.r.object(n, fmt.Sprintf("%s[%d]", sub.key("matchExpressions"), i))
		if e.node == nil || e.node.Kind != yaml.MappingNode {
			continue
		}
		e.only("key", "operator", "values")
		key, name := e.wanted("key"), e.wanted("operator")
		op, ok := operators[name]
		if !ok && name != "" {
			o.r.complainf(e.keys["operator"], "%s %q is no operator: In, NotIn, Exists and DoesNotExist are", e.key("operator"), name)
		}
		values := make([]string, 0, len(e.list("values")))
		for _, v := range e.list("values") {
			if v.Kind != yaml.ScalarNode {
				o.r.complainf(v, "%s must be texts", e.key("values"))
				continue
			}
			values = append(values, v.Value)
		}
		if ok && key != "" {
			s.require(o.r, n, key, op, values)
		}
	}
	slices.SortFunc(s.requirements, func(a, b labels.Requirement) int { return strings.Compare(a.String(), b.String()) })
	return s
}

func (s *Selector) require(r *reader, at *yaml.Node, key string, op selection.Operator, values []string) {
	q, err := labels.NewRequirement(key, op, values)
	if err != nil {
		r.complainf(at, "selector: %v", err)
		return
	}
	s.requirements = append(s.requirements, *q)
}

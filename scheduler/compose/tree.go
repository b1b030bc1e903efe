package compose

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
)

// Key joins the names that lead to a value, with dots between them: keys of
// maps, and positions in lists from 0. A name with a dot or a quote in it, or
// nothing, is quoted as in Go, so that no two values have one key.
func Key(names ...string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		if n == "" || strings.ContainsAny(n, ".\"") {
			n = strconv.Quote(n)
		}
		quoted[i] = n
	}
	return strings.Join(quoted, ".")
}

// node is a value on its way, with who gave it: a scalar, a map or a list.
type node struct {
	scalar any
	fields map[string]*node
	items  []*node
	kind   nodeKind
	// from gave the scalar, or the map or list while it is empty; before are
	// those that gave it earlier, in order.
	from   *entry
	before []*entry
}

type nodeKind byte

const (
	isScalar nodeKind = iota
	isMap
	isList
)

// newNode copies a value that an entry gives.
func newNode(v any, from *entry) *node {
	switch v := v.(type) {
	case map[string]any:
		n := &node{kind: isMap, fields: make(map[string]*node, len(v)), from: from}
		for k, sub := range v {
			n.fields[k] = newNode(sub, from)
		}
		return n
	case []any:
		n := &node{kind: isList, items: make([]*node, len(v)), from: from}
		for i, sub := range v {
			n.items[i] = newNode(sub, from)
		}
		return n
	}
	return &node{scalar: v, from: from}
}

// merge returns what old becomes when later meets it.
func merge(old, later *node, how controlplane.Merge) *node {
	if how == controlplane.MergeReplace || old.kind != later.kind || old.kind == isScalar {
		return replace(old, later)
	}
	if old.kind == isMap {
		for _, k := range slices.Sorted(maps.Keys(later.fields)) {
			if before, ok := old.fields[k]; ok {
				old.fields[k] = merge(before, later.fields[k], how)
			} else {
				old.fields[k] = later.fields[k]
			}
		}
		return old
	}
	for _, item := range later.items {
		if how == controlplane.MergeDeep {
			if i := old.namesake(item); i >= 0 {
				// Its name is what both have in common, and stays whose it was.
				delete(item.fields, nameField)
				old.items[i] = merge(old.items[i], item, how)
				continue
			}
		}
		old.items = append(old.items, item)
	}
	return old
}

const nameField = "name"

// namesake finds the item of a list that has the name of another; -1 where
// there is none.
func (n *node) namesake(of *node) int {
	name, ok := of.name()
	if !ok {
		return -1
	}
	return slices.IndexFunc(n.items, func(item *node) bool {
		other, ok := item.name()
		return ok && other == name
	})
}

// name returns the name of an item that is a map.
func (n *node) name() (name any, ok bool) {
	field := n.fields[nameField]
	if field == nil || field.kind != isScalar || field.scalar == nil {
		return nil, false
	}
	return field.scalar, true
}

// replace puts later in the place of old: whoever gave any of the old value is
// overridden in all of the new one.
func replace(old, later *node) *node {
	given := map[*entry]bool{}
	old.each(nil, func(_ []string, leaf *node) {
		given[leaf.from] = true
		for _, e := range leaf.before {
			given[e] = true
		}
	})
	before := slices.SortedFunc(maps.Keys(given), func(a, b *entry) int { return a.order - b.order })
	later.each(nil, func(_ []string, leaf *node) { leaf.before = before })
	return later
}

// each calls do for every leaf below a node: scalars, and maps and lists that
// are empty.
func (n *node) each(names []string, do func(names []string, leaf *node)) {
	if len(n.fields)+len(n.items) == 0 {
		do(names, n)
		return
	}
	for k, sub := range n.fields {
		sub.each(append(names, k), do)
	}
	for i, sub := range n.items {
		sub.each(append(names, strconv.Itoa(i)), do)
	}
}

// value returns the plain value of a node.
func (n *node) value() any {
	switch n.kind {
	case isMap:
		m := make(map[string]any, len(n.fields))
		for k, sub := range n.fields {
			m[k] = sub.value()
		}
		return m
	case isList:
		l := make([]any, len(n.items))
		for i, sub := range n.items {
			l[i] = sub.value()
		}
		return l
	}
	return n.scalar
}

// origin tells who gave a leaf.
func (n *node) origin() Origin {
	o := Origin{ConfigMap: n.from.source.Name, Place: n.from.place, Literal: n.from.literal}
	for _, e := range n.before {
		if name := e.source.Name; len(o.Overridden) == 0 || o.Overridden[len(o.Overridden)-1] != name {
			o.Overridden = append(o.Overridden, name)
		}
	}
	return o
}

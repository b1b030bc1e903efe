package controlplane

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// deepest is how deep a document may be nested.
const deepest = 200

// expand replaces the aliases of a document by what they stand for, and merge
// keys (<<) by what they bring. What stands there several times is shared, not
// copied; a document that would be longer than mostBytes with all of it
// written out is refused, and so is one that contains itself.
func expand(root *yaml.Node) (line int, err error) {
	e := expander{sizes: map[*yaml.Node]int{}}
	if _, err := e.size(root, 0); err != nil {
		return e.line, err
	}
	e.done = map[*yaml.Node]bool{}
	if err := e.flatten(root); err != nil {
		return e.line, err
	}
	return 0, nil
}

type expander struct {
	// sizes are the expanded sizes of nodes; -1 while a node is being measured.
	sizes   map[*yaml.Node]int
	done    map[*yaml.Node]bool
	aliases bool
	// line is where the error is.
	line int
}

// size returns the length of a node's text, aliases expanded, at a rough count.
func (e *expander) size(n *yaml.Node, depth int) (int, error) {
	if depth > deepest {
		e.line = n.Line
		return 0, fmt.Errorf("nested deeper than %d levels: make it flatter", deepest)
	}
	if n.Kind == yaml.AliasNode {
		e.aliases = true
		e.line = n.Line
		if e.sizes[n.Alias] < 0 {
			return 0, fmt.Errorf("alias *%s stands within its own anchor: write out what is meant", n.Value)
		}
		return e.size(n.Alias, depth+1)
	}
	if s, ok := e.sizes[n]; ok {
		return s, nil
	}
	e.sizes[n] = -1
	sum := len(n.Value) + 1
	for _, c := range n.Content {
		s, err := e.size(c, depth+1)
		if err != nil {
			return 0, err
		}
		if sum += s; e.aliases && sum > mostBytes {
			e.line = n.Line
			return 0, fmt.Errorf("its aliases expand to more than %d bytes: write out what is meant", mostBytes)
		}
	}
	e.sizes[n] = sum
	return sum, nil
}

// flatten resolves aliases and merge keys below a node, once for each node.
func (e *expander) flatten(n *yaml.Node) error {
	if e.done[n] {
		return nil
	}
	e.done[n] = true
	for i, c := range n.Content {
		if c.Kind == yaml.AliasNode {
			c = c.Alias
			n.Content[i] = c
		}
		if err := e.flatten(c); err != nil {
			return err
		}
	}
	if n.Kind == yaml.MappingNode {
		return e.merge(n)
	}
	return nil
}

// merge replaces the merge keys of a mapping by the keys that they bring and
// that the mapping does not have; of several sources, the first wins.
func (e *expander) merge(n *yaml.Node) error {
	var sources []*yaml.Node
	own := make([]*yaml.Node, 0, len(n.Content))
	has := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag != "!!merge" {
			own = append(own, k, v)
			has[k.Value] = true
			continue
		}
		from := []*yaml.Node{v}
		if v.Kind == yaml.SequenceNode {
			from = v.Content
		}
		for _, s := range from {
			if s.Kind != yaml.MappingNode {
				e.line = k.Line
				return fmt.Errorf("the merge key << wants a mapping or a list of mappings")
			}
		}
		sources = append(sources, from...)
	}
	if sources == nil {
		return nil
	}
	for _, s := range sources {
		for i := 0; i+1 < len(s.Content); i += 2 {
			if k := s.Content[i]; !has[k.Value] {
				has[k.Value] = true
				own = append(own, k, s.Content[i+1])
			}
		}
	}
	n.Content = own
	return nil
}

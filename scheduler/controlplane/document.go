package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// APIVersion is that of the documents that Landfall shares with Kalypso.
const APIVersion = "scheduler.kalypso.io/v1alpha1"

const (
	// mostBytes is how long a document may be, before and after its aliases are
	// expanded.
	mostBytes = 1 << 20
	// mostDocuments is how many documents a file may hold.
	mostDocuments = 10_000
)

// Document is a YAML document before it is typed.
type Document struct {
	// Place is where its first key stands.
	Place
	APIVersion, Kind, Name string
	Labels, Annotations    map[string]string
	// Text is the document alone.
	Text []byte
}

// Documents splits a file into its documents, of whatever kind; what is no
// mapping, and what is empty, is left out. A document that cannot be read is a
// problem, and the others go on. So is one longer than 1 MiB, one whose aliases
// would expand to more than that, and whatever follows the 10,000th.
func Documents(f File) ([]Document, []Problem) {
	var docs []Document
	var problems []Problem
	for p := range parts(f) {
		if p.problem != nil {
			problems = append(problems, *p.problem)
			continue
		}
		docs = append(docs, p.document())
	}
	return docs, problems
}

// part is a document of a file as the YAML library leaves it, or what is wrong
// with it.
type part struct {
	file string
	// first is the line of the file in which text begins.
	first int
	text  []byte
	// root is the document's mapping, without aliases.
	root    *yaml.Node
	problem *Problem
}

// at is the place of a node of the part.
func (p *part) at(n *yaml.Node) Place { return Place{p.file, p.first + n.Line - 1} }

// document reads what every kind has. It does not complain: that is for those
// who read a kind of ours.
func (p *part) document() Document {
	r := &reader{part: p}
	root := r.object(p.root, "")
	meta := root.object("metadata")
	return Document{
		Place:      p.at(p.root),
		APIVersion: root.text("apiVersion"), Kind: root.text("kind"), Name: meta.text("name"),
		Labels: meta.texts("labels"), Annotations: meta.texts("annotations"),
		Text: p.text,
	}
}

// parts yields the documents of a file in their order.
func parts(f File) func(yield func(*part) bool) {
	return func(yield func(*part) bool) {
		count := 0
		for c := range chunks(f.Text) {
			if blank(c.text) {
				continue
			}
			p := &part{file: f.Path, first: c.line, text: c.text}
			if count++; count > mostDocuments {
				p.problem = &Problem{
					Place: Place{f.Path, c.line}, Hides: true,
					Message: fmt.Sprintf("the file holds more than %d documents, and what follows is not read: split the file", mostDocuments),
				}
				yield(p)
				return
			}
			if parsePart(p); p.root == nil && p.problem == nil {
				continue
			}
			if !yield(p) {
				return
			}
		}
	}
}

// parsePart sets the root of the part, or its problem; neither where the
// document is no mapping.
func parsePart(p *part) {
	if len(p.text) > mostBytes {
		p.problem = p.broken(0, fmt.Sprintf("the document is %d bytes long, %d are the most: split it", len(p.text), mostBytes))
		return
	}
	root, line, err := parseYAML(p.text)
	if err != nil {
		p.problem = p.broken(line, err.Error())
		return
	}
	if root != nil && root.Kind == yaml.MappingNode {
		p.root = root
	}
}

// broken is the problem of a document that cannot be read, as far as one can
// tell from its text what it was meant to be. line counts within the part, 0
// is its beginning.
func (p *part) broken(line int, message string) *Problem {
	g := sniff(p.text)
	at := Place{p.file, p.first}
	if line > 0 {
		// At the end of the text, the library is on the line behind it.
		at.Line += min(line, bytes.Count(bytes.TrimRight(p.text, " \t\r\n"), []byte("\n"))+1) - 1
	}
	return &Problem{Place: at, Kind: g.kind, Name: g.name, Message: message, Hides: g.ours()}
}

var (
	yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)
	// offByOne are the errors that the library counts lines from 0 for.
	offByOne = regexp.MustCompile(`did not find expected (node content|key|'-' indicator|',' or '[\]}]'|<document start>)`)
)

// parseYAML reads one document and expands its aliases; nil where there is
// none. line says where the error is, 0 where it cannot be told.
func parseYAML(text []byte) (root *yaml.Node, line int, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, 0, nil
	case err != nil:
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1]) // digits, as the expression has it
			if offByOne.MatchString(err.Error()) {
				line++
			}
		}
		return nil, line, fmt.Errorf("not YAML: %s", strings.TrimPrefix(yamlLine.ReplaceAllString(err.Error(), ""), "yaml: "))
	}
	var next yaml.Node
	if err := dec.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, 0, errors.New("not one YAML document: its lines must end with a line feed, and documents be divided by lines of ---")
	}
	if len(doc.Content) != 1 {
		return nil, 0, nil
	}
	root = doc.Content[0]
	if line, err := expand(root); err != nil {
		return nil, line, err
	}
	return root, 0, nil
}

// chunk is a stretch of a file between two marks of documents.
type chunk struct {
	line int
	text []byte
}

// chunks divides a text at its lines of --- and ..., which can be nothing else
// in YAML. The first of them belongs to what follows it, for it may carry
// content.
func chunks(text []byte) func(yield func(chunk) bool) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	return func(yield func(chunk) bool) {
		start, startLine := 0, 1
		for pos, line := 0, 1; pos < len(text); line++ {
			end := pos + len(text[pos:])
			if i := bytes.IndexByte(text[pos:], '\n'); i >= 0 {
				end = pos + i + 1
			}
			from := -1
			switch {
			case mark(text[pos:end], "---"):
				from = pos
			case mark(text[pos:end], "..."):
				from = end
			}
			if from >= 0 {
				if !yield(chunk{startLine, text[start:pos]}) {
					return
				}
				start, startLine = from, line
				if from == end {
					startLine++
				}
			}
			pos = end
		}
		yield(chunk{startLine, text[start:]})
	}
}

// mark says whether a line is a mark of documents.
func mark(line []byte, m string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(m))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// blank says whether there is nothing in a chunk but comments and directives.
func blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if mark(line, "---") {
			line = line[len("---"):]
		}
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

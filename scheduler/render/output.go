package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
)

// output is what a template has written: the manifest at hand, and the file that
// those before it were joined to.
type output struct {
	text bytes.Buffer
	file []byte
	most int
}

// Write takes text of the manifest at hand, up to the limit.
func (o *output) Write(p []byte) (int, error) {
	if len(o.file)+o.text.Len()+len(p) > o.most {
		return 0, o.tooLarge()
	}
	return o.text.Write(p)
}

func (o *output) tooLarge() error {
	return overLimit("it writes more than %d bytes", o.most)
}

const separator = "---\n"

// join adds a manifest to the file. YAML documents are kept apart; the lines of
// an env file need nothing between them.
func (o *output) join(content controlplane.ContentType, text []byte) error {
	if content == controlplane.ContentYAML {
		text = bytes.TrimLeft(text, "\r\n")
		if rest, ok := bytes.CutPrefix(text, []byte(separator)); ok {
			text = rest
		}
		if len(o.file) > 0 {
			o.file = append(o.file, separator...)
		}
	}
	if len(o.file)+len(text)+1 > o.most {
		return o.tooLarge()
	}
	o.file = append(append(o.file, text...), '\n')
	return nil
}

// check wants output of a content type to parse, and to hold every value. It
// quotes nothing of the text, which may hold what is not for everyone's eyes.
func check(content controlplane.ContentType, text []byte) error {
	if n := bytes.Index(text, []byte("<no value>")); n >= 0 {
		return fmt.Errorf("line %d of what it renders to holds <no value>: something it asks for is not there; "+
			"give it a value where it should come from, or test for it with if or default", 1+bytes.Count(text[:n], []byte("\n")))
	}
	switch content {
	case controlplane.ContentYAML:
		return checkYAML(text)
	case controlplane.ContentJSON:
		if !json.Valid(text) {
			return errors.New("it renders to text that is not JSON: " + whyNoJSON(text))
		}
	}
	return nil
}

func checkYAML(text []byte) error {
	if plainYAML(string(text)) {
		return nil
	}
	return parseYAML(text)
}

func parseYAML(text []byte) error {
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var n yaml.Node
		if err := d.Decode(&n); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return errors.New("it renders to text that is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if key, line, twice := repeated(&n); twice {
			return fmt.Errorf("it renders to YAML with the key %q twice, in line %d the second time", key, line)
		}
	}
}

// repeated finds a key that stands twice in a map.
func repeated(n *yaml.Node) (key string, line int, twice bool) {
	if n.Kind == yaml.MappingNode {
		seen := make(map[string]bool, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
				continue
			}
			if seen[k.Value] {
				return k.Value, k.Line, true
			}
			seen[k.Value] = true
		}
	}
	for _, inner := range n.Content {
		if key, line, twice = repeated(inner); twice {
			return key, line, true
		}
	}
	return "", 0, false
}

func whyNoJSON(text []byte) string {
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(text, new(any)), &syntax) {
		at := min(int(syntax.Offset), len(text))
		return fmt.Sprintf("line %d: %s", 1+bytes.Count(text[:at], []byte("\n")), syntax)
	}
	return "it does not parse"
}

package descriptor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/schema"
)

// Parse reads a DeploymentDescriptor strictly: the claim is good where there are
// no problems.
func Parse(d controlplane.Document) (Claim, []Problem) {
	r := &reader{file: d.File, first: d.Line}
	if d.APIVersion != APIVersion {
		r.problems = append(r.problems, Problem{d.File, d.Line, fmt.Sprintf("a %s of apiVersion %q is not known: write %s", Kind, shown(d.APIVersion), APIVersion)})
		return Claim{}, r.problems
	}
	var document yaml.Node
	if err := yaml.Unmarshal(d.Text, &document); err != nil || len(document.Content) != 1 {
		return Claim{}, []Problem{{d.File, d.Line, "the document cannot be read"}} // controlplane has read it
	}
	root := resolved(document.Content[0])
	r.first = d.Line - root.Line + 1
	return r.claim(root, d.Line), r.problems
}

// claim reads the document.
func (r *reader) claim(n *yaml.Node, line int) Claim {
	root := r.object(n, "", "apiVersion", "kind", "metadata", "spec")
	meta := root.object("metadata", "name", "namespace?", "labels?", "annotations?")
	meta.text("name")
	spec := root.object("spec", "workload", "deploymentTarget", "workloadVersion")

	workload := spec.object("workload", "name", "source", "application")
	source := workload.object("source", "repo", "branch?", "path?")
	source.text("branch")
	source.text("path")
	application := workload.object("application", "name", "workspace")
	workspace := application.object("workspace", "name")

	target := spec.object("deploymentTarget", "name", "environment", "manifests")
	manifests := target.object("manifests", "repo", "branch", "path")
	c := Claim{
		Line: line,
		Target: schema.Target{
			Environment: target.text("environment"), Workspace: workspace.text("name"), Application: application.text("name"),
			Workload: workload.text("name"), DeploymentTarget: target.text("name"),
		},
	}
	c.Endpoint, c.URL = manifests.endpoint()

	version := spec.object("workloadVersion", "version", "build", "commit", "buildTime")
	c.Version = &names.Version{
		Version: version.text("version"), Build: version.text("build"), SourceRepo: schema.StripUserInfo(source.text("repo")),
		SourceCommit: version.text("commit"), BuildTime: version.time("buildTime"),
	}
	return c
}

// reader takes a document apart and notes all that is not as it should be.
type reader struct {
	file string
	// first is the line of the file in which the document's text begins.
	first    int
	problems []Problem
}

func (r *reader) complainf(n *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, Problem{r.file, r.first + n.Line - 1, fmt.Sprintf(format, args...)})
}

// resolved returns what an alias stands for.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// object is a mapping; nil where it is not there, which was complained of.
type object struct {
	r      *reader
	path   string
	fields map[string]*yaml.Node
}

// object takes a mapping apart that has the fields named; those with ? may be
// missing.
func (r *reader) object(n *yaml.Node, path string, fields ...string) *object {
	n = resolved(n)
	o := &object{r: r, path: path, fields: map[string]*yaml.Node{}}
	if n.Kind != yaml.MappingNode {
		r.complainf(n, "%s is %s: it must be a mapping of %s", o.name(""), kindOf(n), list(fields))
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolved(n.Content[i]), resolved(n.Content[i+1])
		switch name := key.Value; {
		case key.Kind != yaml.ScalarNode || !slices.Contains(fields, name) && !slices.Contains(fields, name+"?"):
			r.complainf(key, "nobody knows the field %s: remove it; there are %s", o.name(shown(name)), list(fields))
		case o.fields[name] != nil:
			r.complainf(key, "%s stands there twice: remove one", o.name(name))
		default:
			o.fields[name] = value
		}
	}
	for _, field := range fields {
		if !strings.HasSuffix(field, "?") && o.fields[field] == nil {
			r.complainf(n, "%s is missing: add it", o.name(field))
		}
	}
	return o
}

// list names fields.
func list(fields []string) string {
	return strings.ReplaceAll(strings.Join(fields, ", "), "?", "")
}

// name is the whole name of a field, as people write it.
func (o *object) name(field string) string {
	name := strings.Trim(o.path+"."+field, ".")
	if name == "" {
		return "the document"
	}
	return name
}

func (o *object) object(field string, fields ...string) *object {
	if o == nil || o.fields[field] == nil {
		return nil
	}
	return o.r.object(o.fields[field], o.name(field), fields...)
}

// longest is the most bytes that a text may have.
const longest = 1024

// text returns the text in a field.
func (o *object) text(field string) string { return o.scalar(field, "!!str") }

// scalar returns the text in a field of one of some YAML types.
func (o *object) scalar(field string, tags ...string) string {
	if o == nil || o.fields[field] == nil {
		return ""
	}
	n := o.fields[field]
	switch {
	case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null":
		o.r.complainf(n, "%s is %s: it must be a text", o.name(field), kindOf(n))
	case !slices.Contains(tags, n.ShortTag()):
		o.r.complainf(n, "%s is %s: write the text in quotes, %q", o.name(field), kindOf(n), shown(n.Value))
	case strings.TrimSpace(n.Value) == "":
		o.r.complainf(n, "%s is empty: say what it is", o.name(field))
	case len(n.Value) > longest:
		o.r.complainf(n, "%s has %d bytes: at most %d are allowed", o.name(field), len(n.Value), longest)
	case !utf8.ValidString(n.Value) || strings.ContainsFunc(n.Value, func(c rune) bool { return !unicode.IsPrint(c) }):
		o.r.complainf(n, "%s holds a character that cannot be printed: remove it", o.name(field))
	default:
		return n.Value
	}
	return ""
}

// time returns the time in a field.
func (o *object) time(field string) time.Time {
	text := o.scalar(field, "!!str", "!!timestamp")
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		o.r.complainf(o.fields[field], "%s is %q: it must be a time between the years 1970 and 2200, like \"2023-04-27T23:25:05Z\"", o.name(field), shown(text))
		return time.Time{}
	}
	return t.UTC()
}

// endpoint returns the canonical endpoint that repo, branch and path name, and
// the repository as it was written, without user info.
func (o *object) endpoint() (e schema.Endpoint, url string) {
	repo, branch, folder := o.text("repo"), o.text("branch"), o.text("path")
	if repo == "" || branch == "" || folder == "" {
		return e, "" // which was complained of
	}
	e, err := schema.NewEndpoint(repo, branch, folder)
	var field string
	switch {
	case errors.Is(err, schema.ErrInvalidRepo):
		field = "repo"
	case errors.Is(err, schema.ErrInvalidRef):
		field = "branch"
	case err != nil:
		field = "path"
	default:
		return e, schema.StripUserInfo(repo)
	}
	o.r.complainf(o.fields[field], "%s: %v", o.name(field), err)
	return schema.Endpoint{}, ""
}

// kindOf says what stands in a place.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a time"
	}
	return "a text"
}

// shown shortens somebody's text.
func shown(s string) string {
	const most = 80
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

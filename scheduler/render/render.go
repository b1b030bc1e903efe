package render

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
)

// Input is what templates see.
type Input struct {
	// DeploymentTargetName is the whole name, <workload>-<target>.
	DeploymentTargetName string
	// Namespace is <environment>-<cluster type>-<deployment target>.
	Namespace   string
	Environment string
	Workspace   string
	Workload    string
	ClusterType string
	// Labels are the deployment target's, with those of its workload.
	Labels map[string]string
	// Manifests is the manifests endpoint, as the workload gives it.
	Manifests map[string]any
	// ConfigData is the composed configuration.
	ConfigData map[string]any
}

// File is a file of an assignment.
type File struct {
	Name string
	Text []byte
}

// mostNested is how often the output of a template may be a template again.
const mostNested = 5

// mostMessage bounds what an error says, in bytes.
const mostMessage = 1000

// Template is ready to run, any number of times. It may be shared, but runs one
// execution at a time.
type Template struct {
	name     string
	place    controlplane.Place
	content  controlplane.ContentType
	file     string
	places   []controlplane.Place
	programs []*program

	mu     sync.Mutex
	engine *engine
}

// Error is a template's complaint, at the line that it is about.
type Error struct {
	controlplane.Place
	// Template is the name of the document.
	Template string
	Message  string
	limit    bool
}

// Error returns place, name and message.
func (e *Error) Error() string { return e.Problem().Error() }

// Is says whether the template went over a limit.
func (e *Error) Is(target error) bool { return e.limit && target == ErrLimit }

// Problem returns the same for a plan's list.
func (e *Error) Problem() controlplane.Problem {
	return controlplane.Problem{Place: e.Place, Kind: "Template", Name: e.Template, Message: e.Message}
}

// fileOf gives a template's file its name, without the ending.
var fileOf = map[controlplane.TemplateType]string{
	controlplane.TemplateNamespace:  "namespace",
	controlplane.TemplateConfig:     "platform-config",
	controlplane.TemplateReconciler: "reconciler",
}

// endingOf is how the names of files of a content type end.
var endingOf = map[controlplane.ContentType]string{
	controlplane.ContentYAML: ".yaml",
	controlplane.ContentEnv:  ".sh",
	controlplane.ContentJSON: ".json",
}

// Parse makes a template ready. The error is an *Error.
func Parse(t *controlplane.Template) (*Template, error) {
	p := &Template{name: t.Name, place: t.Place, content: t.ContentType, engine: newEngine()}
	if p.content == "" {
		p.content = controlplane.ContentYAML
	}
	ending, ok := endingOf[p.content]
	if t.Broken != "" {
		return nil, p.errorAt(t.Place, t.Broken)
	}
	if !ok {
		return nil, p.errorAt(t.Place, fmt.Sprintf("spec.contentType is %q; it can be yaml, env or json", p.content))
	}
	if p.file, ok = fileOf[t.Type]; !ok {
		return nil, p.errorAt(t.Place, fmt.Sprintf("spec.type is %q; it can be reconciler, namespace or config", t.Type))
	}
	p.file += ending
	for n, m := range t.Manifests {
		compiled, err := p.engine.compile(programName(n), m.Text)
		if err != nil {
			return nil, p.explain(m.Place, 0, err)
		}
		p.programs = append(p.programs, compiled)
		p.places = append(p.places, m.Place)
	}
	return p, nil
}

func programName(n int) string { return "manifest" + strconv.Itoa(n+1) }

// FileName is the name of the file that the template writes.
func (t *Template) FileName() string { return t.file }

// Execute returns the text of the template's file: what its manifests rendered
// to, without those that are white space only; nil when all are. The text has
// been parsed where it is YAML or JSON. The error is an *Error.
//
// The input is read only, whatever the template does.
func (t *Template) Execute(in Input, limits Limits) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.engine.begin(in.ConfigData, limits)
	out := output{most: t.engine.meter.limits.Output}
	files := 0
	for n, p := range t.programs {
		text, err := t.manifest(n, p, in, &out)
		if err != nil {
			return nil, err
		}
		if text == nil {
			continue
		}
		if err := check(t.content, text); err != nil {
			return nil, t.errorAt(t.places[n], err.Error())
		}
		files++
		if files > 1 && t.content == controlplane.ContentJSON {
			return nil, t.errorAt(t.places[n], "a JSON file is one value, and this is the second manifest that renders to one; "+
				"leave one of them empty, or put both into one")
		}
		if err := out.join(t.content, text); err != nil {
			return nil, t.explain(t.places[n], 0, err)
		}
	}
	return out.file, nil
}

// manifest renders one manifest, and what it renders to as long as that is a
// template again; nil for white space.
func (t *Template) manifest(n int, p *program, in Input, out *output) ([]byte, error) {
	given := in
	if p.mutates {
		given.Manifests, given.ConfigData = cloneMap(in.Manifests), cloneMap(in.ConfigData)
	}
	for depth := 0; ; depth++ {
		out.text.Reset()
		if err := p.tmpl.Execute(out, &given); err != nil {
			return nil, t.explain(t.places[n], depth, err)
		}
		text := bytes.TrimRight(out.text.Bytes(), " \t\r\n")
		if len(text) == 0 {
			return nil, nil
		}
		if !bytes.Contains(text, []byte("{{")) {
			return text, nil
		}
		if depth == mostNested {
			return nil, t.errorAt(t.places[n], fmt.Sprintf("its output still holds {{ after it was rendered %d times, "+
				"which is how deep templates may be nested", mostNested+1))
		}
		nested, err := t.nested(n, string(text))
		if err != nil {
			return nil, t.explain(t.places[n], depth+1, err)
		}
		if nested.mutates {
			given.Manifests, given.ConfigData = cloneMap(in.Manifests), cloneMap(in.ConfigData)
		}
		p = nested
	}
}

// nested makes a template of what a template rendered to.
func (t *Template) nested(n int, text string) (*program, error) {
	m := &t.engine.meter
	if m.work += product(costParse, len(text)); m.work > m.limits.Work {
		return nil, overLimit("no work is left to parse what it rendered to")
	}
	return t.engine.compile(programName(n), text)
}

func (t *Template) errorAt(at controlplane.Place, message string) *Error {
	if len(message) > mostMessage {
		message = strings.ToValidUTF8(message[:mostMessage], "") + " …"
	}
	return &Error{Place: at, Template: t.name, Message: message}
}

// position is how text/template begins an error.
var position = regexp.MustCompile(`^template: manifest\d+:(\d+):(?:\d+:)? (?:executing "[^"]*" at )?`)

// explain turns an error of text/template into ours, at its line.
func (t *Template) explain(at controlplane.Place, depth int, err error) *Error {
	message := plainly(err.Error())
	line := 0
	if found := position.FindStringSubmatch(message); found != nil {
		line, _ = strconv.Atoi(found[1])
		message = message[len(found[0]):]
	}
	var limit limitError
	var missing noValue
	switch {
	case errors.As(err, &limit):
		message = limit.Error()
	case errors.As(err, &missing):
		message = missing.Error()
	}
	switch {
	case line > 0 && depth > 0:
		message = fmt.Sprintf("in line %d of what it rendered to, which is a template again: %s", line, message)
	case line > 0 && at.Line > 0:
		at.Line += line - 1
	}
	e := t.errorAt(at, message)
	e.limit = errors.Is(err, ErrLimit)
	return e
}

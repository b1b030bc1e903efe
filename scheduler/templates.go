package scheduler

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/render"
)

// builtinConfig is the name by which complaints call the template below.
const builtinConfig = "configmap (built in)"

// builtin is the template of cluster types without a configType.
var builtin = controlplane.Template{
	Place:       controlplane.Place{File: "built in"},
	Name:        builtinConfig,
	Type:        controlplane.TemplateConfig,
	ContentType: controlplane.ContentYAML,
	Manifests: []controlplane.Manifest{{Place: controlplane.Place{File: "built in"}, Text: `apiVersion: v1
kind: ConfigMap
metadata:
  name: platform-config
  namespace: {{ .Namespace }}
data:
{{ stringify .ConfigData | indent 2 }}
`}},
}

// templates are those of the model, ready to run, and those that failed to
// become so.
type templates struct {
	ready map[string]*ready
	// changed are the names of those that are not what they were at the last plan.
	changed map[string]bool
}

type ready struct {
	source   controlplane.Template
	template *render.Template
	err      *render.Error
}

// update parses what is new.
func (t *templates) update(all []controlplane.Template) {
	before := t.ready
	t.ready = make(map[string]*ready, len(all)+1)
	t.changed = map[string]bool{}
	for _, source := range append([]controlplane.Template{builtin}, all...) {
		old := before[source.Name]
		if old != nil && reflect.DeepEqual(old.source, source) {
			t.ready[source.Name] = old
			continue
		}
		t.changed[source.Name] = true
		r := &ready{source: source}
		var err error
		if r.template, err = render.Parse(&source); err != nil && !errors.As(err, &r.err) {
			r.err = &render.Error{Place: source.Place, Template: source.Name, Message: err.Error()}
		}
		t.ready[source.Name] = r
	}
	for name := range before {
		if t.ready[name] == nil {
			t.changed[name] = true
		}
	}
}

// use is a template that a cluster type asks for.
type use struct {
	field string // of the cluster type's spec
	kind  controlplane.TemplateType
	name  string
}

// uses are the templates of a cluster type, in the order in which they are run.
func uses(c *controlplane.ClusterType) [3]use {
	config := c.ConfigType
	if config == "" {
		config = builtinConfig
	}
	return [3]use{
		{"namespaceService", controlplane.TemplateNamespace, c.NamespaceService},
		{"configType", controlplane.TemplateConfig, config},
		{"reconciler", controlplane.TemplateReconciler, c.Reconciler},
	}
}

// find returns the template that a cluster type asks for; nil when it asks for
// none. The error is the cluster type's or the template's, and holds for every
// assignment.
func (t *templates) find(c *controlplane.ClusterType, u use) (*render.Template, *controlplane.Problem) {
	if u.name == "" {
		return nil, nil
	}
	complaint := func(message string) *controlplane.Problem {
		return &controlplane.Problem{Place: c.Place, Kind: "ClusterType", Name: c.Name, Message: message}
	}
	r := t.ready[u.name]
	switch {
	case r == nil:
		return nil, complaint(fmt.Sprintf("spec.%s names the Template %q, which the control plane does not have; "+
			"add it, or name another", u.field, u.name))
	case r.source.Type != u.kind && r.source.Broken == "":
		return nil, complaint(fmt.Sprintf("spec.%s names the Template %q (%s), whose spec.type is %s; it takes one of type %s",
			u.field, u.name, r.source.Place, r.source.Type, u.kind))
	case r.err != nil:
		p := r.err.Problem()
		return nil, &p
	}
	return r.template, nil
}

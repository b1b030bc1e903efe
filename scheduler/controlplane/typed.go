package controlplane

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landfall-hub/landfall/schema"
)

// The kinds of documents.
const (
	kindRegistration = "WorkloadRegistration"
	kindWorkload     = "Workload"
	kindClusterType  = "ClusterType"
	kindPolicy       = "SchedulingPolicy"
	kindTemplate     = "Template"
	kindConfigMap    = "ConfigMap"
	kindConfigSchema = "ConfigSchema"
	kindEnvironment  = "Environment"
	kindBaseRepo     = "BaseRepo"
	kindGitOpsRepo   = "GitOpsRepo"
)

const (
	labelPlatformConfig = "platform-config"
	annotationMerge     = "landfall.dev/merge"
)

// ParseWorkload reads a document of kind Workload. The error is a Problem, or
// several joined; what could be read is returned beside it, with the targets
// that are not as they should be marked Broken.
func ParseWorkload(d Document) (Workload, error) {
	return parseOne(d, kindWorkload, readWorkload)
}

// ParseRegistration reads a document of kind WorkloadRegistration. The error is
// a Problem, or several joined.
func ParseRegistration(d Document) (Registration, error) {
	return parseOne(d, kindRegistration, readRegistration)
}

// ParseEnvironmentDocument reads a document of kind Environment. The error is a
// Problem, or several joined.
func ParseEnvironmentDocument(d Document) (Environment, error) {
	return parseOne(d, kindEnvironment, readEnvironment)
}

// parseOne reads one document by the reader of its kind.
func parseOne[T any](d Document, kind string, read func(*draft) T) (T, error) {
	var none T
	if d.APIVersion != APIVersion || d.Kind != kind {
		return none, Problem{Place: d.Place, Kind: d.Kind, Name: d.Name, Message: fmt.Sprintf("not a document of kind %s of %s", kind, APIVersion)}
	}
	// The place is where the first key stands: what is above it in the text are
	// comments and the mark of the document.
	p := &part{file: d.File, first: 1, text: d.Text}
	if parsePart(p); p.root == nil {
		return none, *cmp.Or(p.problem, &Problem{Place: d.Place, Kind: kind, Message: "not a mapping"})
	}
	p.first = d.Line - p.root.Line + 1
	dr := newDraft(p)
	v := read(dr)
	var all []error
	for _, problem := range dr.finish(kind) {
		all = append(all, problem)
	}
	return v, errors.Join(all...)
}

// draft is a document on its way to becoming a typed value.
type draft struct {
	reader
	Place
	root, meta, spec object
	apiVersion, kind string
	name             string
	labels           map[string]string
	// hides says that something the document describes was left out.
	hides bool
}

// newDraft reads what all kinds have.
func newDraft(p *part) *draft {
	d := &draft{reader: reader{part: p}, Place: p.at(p.root)}
	d.root = d.object(p.root, "")
	d.apiVersion, d.kind = d.root.text("apiVersion"), d.root.text("kind")
	d.meta = d.root.object("metadata")
	d.spec = object{r: &d.reader, above: p.root}
	d.name = d.meta.text("name")
	return d
}

// common reads and checks the name and the labels.
func (d *draft) common() {
	d.name = d.folderName(d.meta, "name")
	d.labels = d.checkedLabels(d.meta)
}

// withSpec reads the spec, which must be there.
func (d *draft) withSpec() object {
	d.common()
	d.spec = d.root.object("spec")
	if d.spec.node == nil {
		d.root.missing("spec")
	}
	return d.spec
}

// finish returns the complaints about the document.
func (d *draft) finish(kind string) []Problem {
	for i := range d.problems {
		p := &d.problems[i]
		p.Kind, p.Name, p.Hides = kind, d.name, d.hides
	}
	return d.problems
}

// folderName reads a name that becomes a folder and part of a Kubernetes name.
func (d *draft) folderName(o object, field string) string {
	name := o.wanted(field)
	if name == "" {
		return ""
	}
	if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 {
		d.complainf(o.get(field), "%s %s is no name: lower-case letters, digits, - and . are, at most 253 of them, "+
			"beginning and ending with a letter or digit", o.key(field), quoted(name))
		return ""
	}
	return name
}

// quoted shows somebody's text, shortened.
func quoted(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

// checkedLabels reads labels and leaves out those that Kubernetes would refuse.
// Where there are such, nobody knows who would select the document.
func (d *draft) checkedLabels(o object) map[string]string {
	before := d.count
	labels, field := o.texts("labels"), o.object("labels")
	for i := 0; labels != nil && i+1 < len(field.node.Content); i += 2 {
		k := field.node.Content[i]
		value, ok := labels[k.Value]
		if !ok {
			continue
		}
		if bad := validation.IsQualifiedName(k.Value); len(bad) > 0 {
			d.complainf(k, "%s is no label key: %s", quoted(k.Value), bad[0])
			delete(labels, k.Value)
		} else if bad := validation.IsValidLabelValue(value); len(bad) > 0 {
			d.complainf(k, "%s: %s is no label value: %s", field.key(k.Value), quoted(value), bad[0])
			delete(labels, k.Value)
		}
	}
	d.hides = d.hides || d.count > before
	return labels
}

// location reads repo, branch and path.
func (d *draft) location(o object) Location {
	l := Location{Repo: o.wanted("repo"), Branch: o.text("branch"), Path: o.text("path")}
	d.checkPath(o)
	return l
}

// checkPath complains of a path that climbs out of its repository.
func (d *draft) checkPath(o object) {
	n := o.get("path")
	if n == nil || n.Kind != yaml.ScalarNode {
		return
	}
	if _, err := schema.CleanPath(n.Value); err != nil {
		d.complainf(n, "%s: %v: name a folder below its root", o.key("path"), err)
	}
}

func readEnvironment(d *draft) Environment {
	spec := d.withSpec()
	return Environment{Place: d.Place, Name: d.name, Labels: d.labels, ControlPlane: d.location(spec.object("controlPlane"))}
}

func readRegistration(d *draft) Registration {
	spec := d.withSpec()
	return Registration{
		Place: d.Place, Name: d.name, Labels: d.labels,
		Workload: d.location(spec.object("workload")), Workspace: spec.wanted("workspace"),
	}
}

func readBaseRepo(d *draft) BaseRepo {
	spec := d.withSpec()
	return BaseRepo{Place: d.Place, Name: d.name, Labels: d.labels, Location: d.location(spec), Commit: spec.text("commit")}
}

func readGitOpsRepo(d *draft) GitOpsRepo {
	spec := d.withSpec()
	return GitOpsRepo{Place: d.Place, Name: d.name, Labels: d.labels, Location: d.location(spec)}
}

func readClusterType(d *draft) ClusterType {
	spec := d.withSpec()
	c := ClusterType{
		Place: d.Place, Name: d.name, Labels: d.labels,
		Reconciler: spec.wanted("reconciler"), NamespaceService: spec.wanted("namespaceService"), ConfigType: spec.text("configType"),
	}
	c.Broken = d.since(0)
	return c
}

func readPolicy(d *draft) Policy {
	spec := d.withSpec()
	targets, types := spec.object("deploymentTargetSelector"), spec.object("clusterTypeSelector")
	if targets.node == nil {
		spec.missing("deploymentTargetSelector")
	}
	if types.node == nil {
		spec.missing("clusterTypeSelector")
	}
	targets.only("workspace", "labelSelector")
	types.only("labelSelector")
	return Policy{
		Place: d.Place, Name: d.name, Labels: d.labels, Workspace: targets.text("workspace"),
		Targets: targets.selector("labelSelector"), ClusterTypes: types.selector("labelSelector"),
	}
}

func readTemplate(d *draft) Template {
	spec := d.withSpec()
	t := Template{
		Place: d.Place, Name: d.name, Labels: d.labels,
		Type:        TemplateType(spec.wanted("type")),
		ContentType: ContentType(cmp.Or(spec.text("contentType"), string(ContentYAML))),
	}
	if types := []TemplateType{TemplateReconciler, TemplateNamespace, TemplateConfig}; t.Type != "" && !slices.Contains(types, t.Type) {
		d.complainf(spec.get("type"), "spec.type %s is not known: reconciler, namespace and config are", quoted(string(t.Type)))
	}
	if types := []ContentType{ContentYAML, ContentEnv, ContentJSON}; !slices.Contains(types, t.ContentType) {
		d.complainf(spec.get("contentType"), "spec.contentType %s is not known: yaml, env and json are", quoted(string(t.ContentType)))
	}
	for i, n := range spec.list("manifests") {
		if n.Kind != yaml.ScalarNode {
			d.complainf(n, "spec.manifests[%d] must be text: begin it with |", i)
			continue
		}
		at := d.part.at(n)
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			at.Line++ // the text begins below the |
		}
		t.Manifests = append(t.Manifests, Manifest{at, n.Value})
	}
	t.Broken = d.since(0)
	return t
}

func readConfigMap(d *draft) ConfigMap {
	d.common()
	m := ConfigMap{Place: d.Place, Name: d.name, Labels: d.labels, Merge: MergeDeep}
	annotations := d.meta.object("annotations")
	if s := annotations.text(annotationMerge); s != "" {
		m.Merge = Merge(s)
		if !slices.Contains([]Merge{MergeDeep, MergeReplace, MergeAppend}, m.Merge) {
			d.complainf(annotations.get(annotationMerge), "annotation %s: %s is no strategy: deep, replace and append are", annotationMerge, quoted(s))
		}
	}
	data := d.root.object("data")
	m.Data, m.Lines = d.root.texts("data"), data.lines
	for i := 0; data.node != nil && i+1 < len(data.node.Content); i += 2 {
		k := data.node.Content[i]
		if _, ok := data.keys[k.Value]; !ok {
			continue
		}
		if bad := validation.IsConfigMapKey(k.Value); len(bad) > 0 {
			d.complainf(k, "data.%s is no key of a ConfigMap: %s", k.Value, bad[0])
		}
	}
	m.Broken = d.since(0)
	return m
}

func readConfigSchema(d *draft) ConfigSchema {
	spec := d.withSpec()
	s := ConfigSchema{Place: d.Place, Name: d.name, Labels: d.labels}
	if n := spec.get("schema"); n != nil && n.Kind == yaml.MappingNode {
		text, err := json.Marshal(spec.values("schema"))
		if err != nil {
			d.complainf(n, "spec.schema: %v", err)
		}
		s.Schema = string(text)
	} else {
		s.Schema = spec.wanted("schema")
	}
	s.Broken = d.since(0)
	return s
}

func readWorkload(d *draft) Workload {
	spec := d.withSpec()
	w := Workload{Place: d.Place, Name: d.name, Labels: d.labels, Workspace: d.labels["workspace"], ConfigSchemas: d.schemas(spec)}
	whole := d.since(0)
	targets := spec.list("deploymentTargets")
	for i, n := range targets {
		before := d.count
		o := d.object(n, fmt.Sprintf("spec.deploymentTargets[%d]", i))
		t := Target{
			Place: d.part.at(n), Name: d.folderName(o, "name"), Labels: d.checkedLabels(o), Environment: d.folderName(o, "environment"),
			Manifests: o.values("manifests"), ConfigSchemas: d.schemas(o),
		}
		d.checkPath(o.object("manifests"))
		t.Broken = strings.Trim(whole+"; "+d.since(before), "; ")
		if t.Name == "" || t.Environment == "" {
			d.hides = true // nobody knows what it was to be
			continue
		}
		w.Targets = append(w.Targets, t)
	}
	d.hides = d.hides || targets == nil && d.count > 0
	slices.SortStableFunc(w.Targets, func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Environment, b.Environment))
	})
	return w
}

// schemas reads the schemas of a workload or a target.
func (d *draft) schemas(o object) []string {
	var all []string
	for i, n := range o.list("configSchemas") {
		switch n.Kind {
		case yaml.ScalarNode:
			all = append(all, n.Value)
		case yaml.MappingNode:
			v, bad := plain(n)
			text, err := json.Marshal(v)
			if bad != nil || err != nil {
				d.complainf(n, "%s[%d] is no plain value: keys must be text and stand there once", o.key("configSchemas"), i)
				continue
			}
			all = append(all, string(text))
		default:
			d.complainf(n, "%s[%d] must be a JSON Schema or the name of a ConfigSchema", o.key("configSchemas"), i)
		}
	}
	return all
}

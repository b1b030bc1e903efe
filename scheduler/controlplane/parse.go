package controlplane

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// ParseBase reads the promoted content of a control plane: what is common to
// all environments. Whatever kinds it holds are read.
func ParseBase(files []File) Model { return parseTree(files) }

// ParseEnvironment reads an environment's own content of a control plane.
func ParseEnvironment(files []File) Model { return parseTree(files) }

// ParseWorkloads reads the Workload documents of the folder that a registration
// points to. Other kinds that belong to a control plane are problems: who writes
// applications does not write policies.
func ParseWorkloads(r Registration, files []File) ([]Workload, []Problem) {
	m := parseTree(files)
	problems := m.Problems
	refuse := func(at Place, kind, name string) {
		problems = append(problems, Problem{
			Place: at, Kind: kind, Name: name,
			Message: "only Workload documents are read from the folder of a registration: move it to the control plane",
		})
	}
	each(m.Environments, func(x Environment) { refuse(x.Place, kindEnvironment, x.Name) })
	each(m.Registrations, func(x Registration) { refuse(x.Place, kindRegistration, x.Name) })
	each(m.ClusterTypes, func(x ClusterType) { refuse(x.Place, kindClusterType, x.Name) })
	each(m.Policies, func(x Policy) { refuse(x.Place, kindPolicy, x.Name) })
	each(m.Templates, func(x Template) { refuse(x.Place, kindTemplate, x.Name) })
	each(m.ConfigMaps, func(x ConfigMap) { refuse(x.Place, kindConfigMap, x.Name) })
	each(m.Schemas, func(x ConfigSchema) { refuse(x.Place, kindConfigSchema, x.Name) })
	each(m.GitOpsRepos, func(x GitOpsRepo) { refuse(x.Place, kindGitOpsRepo, x.Name) })
	if m.BaseRepo != nil {
		refuse(m.BaseRepo.Place, kindBaseRepo, m.BaseRepo.Name)
	}
	for i := range m.Workloads {
		m.Workloads[i].Registration, m.Workloads[i].Workspace = r.Name, r.Workspace
	}
	return m.Workloads, SortProblems(problems)
}

func each[T any](all []T, do func(T)) {
	for _, x := range all {
		do(x)
	}
}

// parseTree reads every YAML document of a tree.
func parseTree(files []File) Model {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return cmp.Or(cmp.Compare(a.Path, b.Path), bytes.Compare(a.Text, b.Text)) })
	ig, problems := newIgnores(files)
	c := collector{problems: problems}
	for _, f := range files {
		if ext := path.Ext(f.Path); ext != ".yaml" && ext != ".yml" {
			continue
		}
		ignored := ig.ignored(f.Path)
		if ignored && !bytes.Contains(f.Text, []byte(kindEnvironment)) {
			continue
		}
		for p := range parts(f) {
			c.take(p, ignored)
		}
	}
	return c.model()
}

// collector gathers the documents of a tree.
type collector struct {
	m         Model
	baseRepos []BaseRepo
	problems  []Problem
}

// take adds a document. Of ignored files only Environment documents count.
func (c *collector) take(p *part, ignored bool) {
	if p.problem != nil {
		if !ignored || p.problem.Kind == kindEnvironment {
			c.unreadable(p)
		}
		return
	}
	d := newDraft(p)
	if d.kind == kindConfigMap && d.apiVersion == "v1" {
		if !ignored && d.meta.object("labels").text(labelPlatformConfig) == "true" {
			c.m.ConfigMaps = add(c, d, c.m.ConfigMaps, readConfigMap)
		}
		return
	}
	group, _, _ := strings.Cut(APIVersion, "/")
	if !strings.HasPrefix(d.apiVersion, group+"/") || ignored && d.kind != kindEnvironment {
		return
	}
	if d.apiVersion != APIVersion {
		c.problems = append(c.problems, Problem{
			Place: d.Place, Kind: d.kind, Name: d.name, Hides: true,
			Message: fmt.Sprintf("apiVersion %s is not known: write %s", quoted(d.apiVersion), APIVersion),
		})
		return
	}
	c.typed(d)
}

// typed adds a document of the scheduler's own group.
func (c *collector) typed(d *draft) {
	m := &c.m
	switch d.kind {
	case kindEnvironment:
		m.Environments = addWhole(c, d, m.Environments, readEnvironment)
	case kindRegistration:
		m.Registrations = addWhole(c, d, m.Registrations, readRegistration)
	case kindPolicy:
		m.Policies = addWhole(c, d, m.Policies, readPolicy)
	case kindBaseRepo:
		c.baseRepos = addWhole(c, d, c.baseRepos, readBaseRepo)
	case kindGitOpsRepo:
		m.GitOpsRepos = addWhole(c, d, m.GitOpsRepos, readGitOpsRepo)
	case kindWorkload:
		m.Workloads = addNamed(c, d, m.Workloads, readWorkload)
	case kindClusterType:
		m.ClusterTypes = addNamed(c, d, m.ClusterTypes, readClusterType)
	case kindTemplate:
		m.Templates = addNamed(c, d, m.Templates, readTemplate)
	case kindConfigSchema:
		m.Schemas = add(c, d, m.Schemas, readConfigSchema)
	case "Assignment", "AssignmentPackage", "DeploymentTarget":
		// Kalypso writes these itself; they say nothing that is not elsewhere.
	default:
		c.problems = append(c.problems, Problem{
			Place: d.Place, Kind: d.kind, Name: d.name, Hides: true,
			Message: fmt.Sprintf("kind %s is not known in %s: correct it", quoted(d.kind), APIVersion),
		})
	}
}

// add reads a document that stays in the model whatever is wrong with it, so
// that it hides nothing.
func add[T any](c *collector, d *draft, all []T, read func(*draft) T) []T {
	v := read(d)
	d.hides = false
	c.problems = append(c.problems, d.finish(d.kind)...)
	return append(all, v)
}

// addNamed reads a document that stays in the model if its name is known.
func addNamed[T any](c *collector, d *draft, all []T, read func(*draft) T) []T {
	v := read(d)
	if d.name != "" {
		all = append(all, v)
	}
	d.hides = d.hides || d.name == ""
	c.problems = append(c.problems, d.finish(d.kind)...)
	return all
}

// addWhole reads a document that is left out when anything is wrong with it.
func addWhole[T any](c *collector, d *draft, all []T, read func(*draft) T) []T {
	v := read(d)
	if d.count == 0 {
		return append(all, v)
	}
	d.hides = true
	c.problems = append(c.problems, d.finish(d.kind)...)
	return all
}

// unreadable notes a document that is no YAML. What may have been a container
// of configuration or a schema stays, broken: to compose without its values, or
// to publish what it would have refused, is worse than to wait.
func (c *collector) unreadable(p *part) {
	g := sniff(p.text)
	pr := *p.problem
	reason := pr.String() + ": " + pr.Message
	switch {
	case g.platformConfig():
		pr.Hides = false
		c.m.ConfigMaps = append(c.m.ConfigMaps, ConfigMap{Place: pr.Place, Name: g.name, Labels: g.labels, Merge: MergeDeep, Broken: reason})
	case g.kind == kindConfigSchema && g.ours():
		pr.Hides = false
		c.m.Schemas = append(c.m.Schemas, ConfigSchema{Place: pr.Place, Name: g.name, Labels: g.labels, Broken: reason})
	}
	c.problems = append(c.problems, pr)
}

// model sorts what was gathered.
func (c *collector) model() Model {
	m := c.m
	m.Environments = unique(c, kindEnvironment, m.Environments)
	m.Registrations = unique(c, kindRegistration, m.Registrations)
	m.Workloads = unique(c, kindWorkload, m.Workloads)
	m.ClusterTypes = unique(c, kindClusterType, m.ClusterTypes)
	m.Policies = unique(c, kindPolicy, m.Policies)
	m.Templates = unique(c, kindTemplate, m.Templates)
	m.ConfigMaps = unique(c, kindConfigMap, m.ConfigMaps)
	m.Schemas = unique(c, kindConfigSchema, m.Schemas)
	m.GitOpsRepos = unique(c, kindGitOpsRepo, m.GitOpsRepos)
	for i, b := range unique(c, kindBaseRepo, c.baseRepos) {
		if i == 0 {
			m.BaseRepo = &b
			continue
		}
		c.problems = append(c.problems, Problem{
			Place: b.Place, Kind: kindBaseRepo, Name: b.Name,
			Message: fmt.Sprintf("an environment has one BaseRepo, and %q at %s is it: remove one", m.BaseRepo.Name, m.BaseRepo.Place),
		})
	}
	m.Problems = SortProblems(c.problems)
	return m
}

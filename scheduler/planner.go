package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/match"
	"github.com/landfall-hub/landfall/scheduler/render"
)

// Planner plans one environment, again and again. It belongs to one goroutine.
type Planner struct {
	limits      render.Limits
	environment string
	templates   templates
	configs     configs
	inputs      inputs
	// entries are the assignments of the last plan, in its order.
	entries []entry
	folders map[string]ClusterTypeFolder
}

// entry is an assignment as it was planned, with what is needed to plan it again.
type entry struct {
	planned Planned
	// tried are the results of its templates, in the order of uses.
	tried [3]result
	// givenUp says that a template was not run because of what it did for others.
	givenUp bool
	// problems are those that it adds to the plan.
	problems []controlplane.Problem
}

// result is what became of a template's run for an assignment.
type result uint8

const (
	notRun result = iota
	succeeded
	failed
	wentOverLimit
)

// NewPlanner returns a planner whose templates run within limits.
func NewPlanner(limits render.Limits) *Planner {
	return &Planner{limits: limits}
}

// Plan plans an environment. Composing, validating and rendering is done only
// for assignments that a change since the last plan touches: that are new, or
// whose cluster type, deployment target, templates, or ConfigMaps and
// ConfigSchemas that apply are not what they were. Comparing costs some
// microseconds for each document and less for each assignment.
//
// The model must not change any more; the plan may share parts with it.
func (p *Planner) Plan(m controlplane.Model) Plan {
	if p.environment != m.Environment {
		*p = Planner{limits: p.limits, environment: m.Environment}
	}
	plan := Plan{Environment: m.Environment}
	if m.BaseRepo != nil {
		plan.PromotedCommit = m.BaseRepo.Commit
	}
	all := newComplaints(m.Problems)
	targets, problems := match.Targets(&m)
	all.add(problems...)
	assignments, problems := match.Assignments(&m, targets)
	all.add(problems...)
	p.templates.update(m.Templates)
	all.add(p.configs.update(m.ConfigMaps, m.Schemas)...)
	p.inputs.update(m.ClusterTypes, targets)
	for name := range p.templates.ready {
		if err := p.templates.ready[name].err; err != nil {
			all.add(err.Problem())
		}
	}

	broken := newBreaker()
	before, touched := p.entries, map[string]bool{}
	p.entries = make([]entry, 0, len(assignments))
	for i := range assignments {
		a := &assignments[i]
		for len(before) > 0 && before[0].before(a) {
			touched[before[0].planned.ClusterType] = true
			before = before[1:]
		}
		if len(before) > 0 && before[0].is(a) {
			old := before[0]
			before = before[1:]
			if !p.affected(a) && old.stillHolds(a, broken) {
				touched[a.ClusterType.Name] = touched[a.ClusterType.Name] || !slices.Equal(old.planned.Policies, a.Policies)
				old.planned.Policies = a.Policies
				p.entries = append(p.entries, old)
				continue
			}
			touched[a.ClusterType.Name] = touched[a.ClusterType.Name] || !slices.Equal(old.planned.Policies, a.Policies)
		} else {
			touched[a.ClusterType.Name] = true
		}
		p.entries = append(p.entries, p.plan(a, broken))
	}
	for i := range before {
		touched[before[i].planned.ClusterType] = true
	}

	plan.Assignments = make([]Planned, len(p.entries))
	for i := range p.entries {
		plan.Assignments[i] = p.entries[i].planned
		all.of(&p.entries[i])
	}
	plan.Folders = p.folder(m.ClusterTypes, plan.Assignments, touched)
	plan.Problems = all.sorted()
	return plan
}

func (e *entry) before(a *match.Assignment) bool { return e.compare(a) < 0 }
func (e *entry) is(a *match.Assignment) bool     { return e.compare(a) == 0 }

func (e *entry) compare(a *match.Assignment) int {
	return cmp.Or(cmp.Compare(e.planned.ClusterType, a.ClusterType.Name), cmp.Compare(e.planned.DeploymentTarget, a.Target.Name))
}

// affected says whether anything that the assignment is made of has changed.
func (p *Planner) affected(a *match.Assignment) bool {
	if p.inputs.changedTypes[a.ClusterType.Name] || p.inputs.changedTargets[a.Target.Name] {
		return true
	}
	for _, u := range uses(a.ClusterType) {
		if p.templates.changed[u.name] {
			return true
		}
	}
	return p.configs.affects(a)
}

// stillHolds says whether the templates would be run with the same results, in
// view of what they did for the assignments before; if so it notes them.
func (e *entry) stillHolds(a *match.Assignment, b *breaker) bool {
	if e.givenUp {
		return false
	}
	all := uses(a.ClusterType)
	for i, u := range all {
		if e.tried[i] != notRun && b.open(u.name, a.Target.Workload) != "" {
			return false
		}
	}
	for i, u := range all {
		e.note(i, u, a, b)
	}
	return true
}

func (e *entry) note(i int, u use, a *match.Assignment, b *breaker) {
	if e.tried[i] != notRun {
		b.note(u.name, a.Target.Workload, e.tried[i] == wentOverLimit, e.tried[i] == succeeded)
	}
}

// plan makes an assignment: its configuration, then its files.
func (p *Planner) plan(a *match.Assignment, b *breaker) entry {
	e := entry{planned: Planned{ClusterType: a.ClusterType.Name, DeploymentTarget: a.Target.Name, Policies: a.Policies}}
	var problems []controlplane.Problem
	e.planned.Config, e.planned.Violations, problems = p.configs.compose(a)
	switch broken := a.Broken(); {
	case broken != "":
		e.planned.Err = broken
	case len(problems) > 0:
		e.problems = problems
		e.planned.Err = summary(problems[0].Error(), len(problems))
	case len(e.planned.Violations) > 0:
		v := &e.planned.Violations[0]
		e.planned.Err = summary(fmt.Sprintf("%s: ConfigSchema %q objects to %s: %s", v.Place, v.Schema, cmp.Or(v.Key, "the configuration"), v.Message),
			len(e.planned.Violations))
	default:
		p.render(a, b, &e)
	}
	return e
}

// summary is the first of several complaints.
func summary(first string, count int) string {
	if count > 1 {
		return fmt.Sprintf("%s (and %d more)", first, count-1)
	}
	return first
}

// render runs the templates of an assignment's cluster type.
func (p *Planner) render(a *match.Assignment, b *breaker, e *entry) {
	in := render.Input{
		DeploymentTargetName: a.Target.Name,
		Namespace:            a.Target.Environment + "-" + a.ClusterType.Name + "-" + a.Target.Name,
		Environment:          a.Target.Environment,
		Workspace:            a.Target.Workspace,
		Workload:             a.Target.Workload,
		ClusterType:          a.ClusterType.Name,
		Labels:               a.Target.Labels,
		Manifests:            a.Target.Manifests,
		ConfigData:           e.planned.Config.Data,
	}
	var files []render.File
	for i, u := range uses(a.ClusterType) {
		t, problem := p.templates.find(a.ClusterType, u)
		if problem != nil {
			e.planned.Err, e.problems = problem.Error(), []controlplane.Problem{*problem}
			return
		}
		if t == nil {
			continue
		}
		if why := b.open(u.name, a.Target.Workload); why != "" {
			e.planned.Err, e.givenUp = why, true
			return
		}
		text, err := t.Execute(in, p.limits)
		e.tried[i] = outcome(err)
		e.note(i, u, a, b)
		if err != nil {
			e.planned.Err = err.Error()
			if r := (*render.Error)(nil); errors.As(err, &r) {
				e.problems = []controlplane.Problem{r.Problem()}
			}
			return
		}
		if text != nil {
			files = append(files, render.File{Name: t.FileName(), Text: text})
		}
	}
	slices.SortFunc(files, func(f, g render.File) int { return strings.Compare(f.Name, g.Name) })
	e.planned.Files, e.planned.Version = files, version(files)
}

func outcome(err error) result {
	switch {
	case err == nil:
		return succeeded
	case errors.Is(err, render.ErrLimit):
		return wentOverLimit
	}
	return failed
}

// folder makes the folders of the cluster types of which a list of assignments
// changed.
func (p *Planner) folder(types []controlplane.ClusterType, assignments []Planned, touched map[string]bool) []ClusterTypeFolder {
	before := p.folders
	p.folders = make(map[string]ClusterTypeFolder, len(types))
	folders := make([]ClusterTypeFolder, 0, len(types))
	for i := range types {
		name := types[i].Name
		from, _ := slices.BinarySearchFunc(assignments, name, func(a Planned, name string) int { return strings.Compare(a.ClusterType, name) })
		to := from
		for to < len(assignments) && assignments[to].ClusterType == name {
			to++
		}
		f, ok := before[name]
		if !ok || touched[name] {
			f = folder(p.environment, name, assignments[from:to])
		}
		p.folders[name] = f
		folders = append(folders, f)
	}
	return folders
}

package scheduler

import (
	"reflect"
	"slices"

	"github.com/landfall-hub/landfall/scheduler/compose"
	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/match"
)

// inputs are the cluster types and deployment targets of the last plan, and
// which of them have changed since the one before.
type inputs struct {
	types                        map[string]*controlplane.ClusterType
	targets                      map[string]*match.DeploymentTarget
	changedTypes, changedTargets map[string]bool
}

func (in *inputs) update(types []controlplane.ClusterType, targets []match.DeploymentTarget) {
	in.types, in.changedTypes = changed(in.types, types, func(c *controlplane.ClusterType) string { return c.Name })
	in.targets, in.changedTargets = changed(in.targets, targets, func(t *match.DeploymentTarget) string { return t.Name })
}

// changed compares what there was of a kind with what there is now, by name.
// What is gone is not asked about again.
func changed[T any](before map[string]*T, now []T, name func(*T) string) (after map[string]*T, names map[string]bool) {
	after, names = make(map[string]*T, len(now)), map[string]bool{}
	for i := range now {
		n := name(&now[i])
		if _, twice := after[n]; twice {
			names[n] = true
			continue
		}
		after[n] = &now[i]
		if old := before[n]; old == nil || !reflect.DeepEqual(old, &now[i]) {
			names[n] = true
		}
	}
	return after, names
}

// configs compose and check configurations, and know where a change of what
// they are made of reaches.
type configs struct {
	maps    []controlplane.ConfigMap
	schemas []controlplane.ConfigSchema
	// composer and checker remember by the documents of one model: they are made
	// anew for each plan that needs them.
	composer *compose.Composer
	checker  *compose.Checker
	// problems are those of the ConfigMaps, then of the ConfigSchemas, as a whole.
	problems [2][]controlplane.Problem

	changedMaps    []controlplane.ConfigMap
	changedSchemas []controlplane.ConfigSchema
	named          map[string]bool // names of changedSchemas
}

// update takes the ConfigMaps and ConfigSchemas of a model and returns what is
// wrong with them.
func (c *configs) update(maps []controlplane.ConfigMap, schemas []controlplane.ConfigSchema) []controlplane.Problem {
	c.composer, c.checker = nil, nil
	first := c.maps == nil && c.schemas == nil
	c.changedMaps = differing(c.maps, maps, func(m *controlplane.ConfigMap) string { return identity(m.Name, m.Place) })
	if first || len(c.changedMaps) > 0 {
		c.composer, c.problems[0] = compose.NewComposer(maps)
	}
	c.changedSchemas = differing(c.schemas, schemas, func(s *controlplane.ConfigSchema) string { return identity(s.Name, s.Place) })
	if first || len(c.changedSchemas) > 0 {
		c.checker, c.problems[1] = compose.NewChecker(schemas)
	}
	c.named = map[string]bool{}
	for i := range c.changedSchemas {
		c.named[c.changedSchemas[i].Name] = true
	}
	c.maps, c.schemas = maps, schemas
	return slices.Concat(c.problems[0], c.problems[1])
}

// compose makes the configuration of an assignment and checks it. Any problem
// means that it must not be used.
func (c *configs) compose(a *match.Assignment) (compose.Config, []compose.Violation, []controlplane.Problem) {
	if c.composer == nil {
		c.composer, _ = compose.NewComposer(c.maps)
	}
	if c.checker == nil {
		c.checker, _ = compose.NewChecker(c.schemas)
	}
	config, problems := c.composer.Compose(a)
	return config, c.checker.Validate(a, &config), problems
}

// identity tells documents of one kind apart, also those whose name could not be
// read.
func identity(name string, at controlplane.Place) string {
	if name == "" {
		return " " + at.String() // no name has a space
	}
	return name
}

// differing returns everything that was and is not any more, or is and was not:
// of what changed, both.
func differing[T any](before, now []T, name func(*T) string) []T {
	old := make(map[string]*T, len(before))
	for i := range before {
		old[name(&before[i])] = &before[i]
	}
	var all []T
	for i := range now {
		n := name(&now[i])
		was := old[n]
		delete(old, n)
		if was != nil && reflect.DeepEqual(was, &now[i]) {
			continue
		}
		all = append(all, now[i])
		if was != nil {
			all = append(all, *was)
		}
	}
	for _, gone := range old {
		all = append(all, *gone)
	}
	return all
}

// affects says whether a change reaches the configuration of an assignment, or
// what it is checked against.
func (c *configs) affects(a *match.Assignment) bool {
	for i := range c.changedMaps {
		if compose.Applies(c.changedMaps[i].Labels, a) {
			return true
		}
	}
	for i := range c.changedSchemas {
		if compose.Applies(c.changedSchemas[i].Labels, a) {
			return true
		}
	}
	return slices.ContainsFunc(a.Target.Schemas, func(s string) bool { return c.named[s] })
}

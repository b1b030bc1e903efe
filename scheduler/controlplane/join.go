package controlplane

import (
	"cmp"
	"fmt"
	"slices"
)

// named is a typed document.
type named interface {
	identity() (name string, at Place, owner string)
}

func (x Environment) identity() (string, Place, string)  { return x.Name, x.Place, "" }
func (x Registration) identity() (string, Place, string) { return x.Name, x.Place, "" }
func (x Workload) identity() (string, Place, string)     { return x.Name, x.Place, x.Registration }
func (x ClusterType) identity() (string, Place, string)  { return x.Name, x.Place, "" }
func (x Policy) identity() (string, Place, string)       { return x.Name, x.Place, "" }
func (x Template) identity() (string, Place, string)     { return x.Name, x.Place, "" }
func (x ConfigMap) identity() (string, Place, string)    { return x.Name, x.Place, "" }
func (x ConfigSchema) identity() (string, Place, string) { return x.Name, x.Place, "" }
func (x BaseRepo) identity() (string, Place, string)     { return x.Name, x.Place, "" }
func (x GitOpsRepo) identity() (string, Place, string)   { return x.Name, x.Place, "" }

// unique sorts documents of one kind by name, registration and place, and keeps
// the first of each name. Those whose name could not be read are all kept.
func unique[T named](c *collector, kind string, all []T) []T {
	slices.SortStableFunc(all, func(a, b T) int {
		an, ap, ao := a.identity()
		bn, bp, bo := b.identity()
		return cmp.Or(cmp.Compare(an, bn), cmp.Compare(ao, bo), ap.Compare(bp))
	})
	kept := all[:0]
	for _, x := range all {
		name, at, owner := x.identity()
		if len(kept) > 0 && name != "" {
			if first, where, from := kept[len(kept)-1].identity(); first == name {
				c.problems = append(c.problems, Problem{
					Place: at, Kind: kind, Name: name,
					Message: fmt.Sprintf("there is one of that name already, at %s, and that one counts: rename or remove one", seenFrom(owner, where, from)),
				})
				continue
			}
		}
		kept = append(kept, x)
	}
	return kept
}

// seenFrom names a place, and the registration in whose folder it is where that
// is another one.
func seenFrom(owner string, where Place, from string) string {
	if owner == from {
		return where.String()
	}
	return fmt.Sprintf("%s (WorkloadRegistration %q)", where, from)
}

// Join puts together the model of one environment: the promoted content, the
// environment's own content, the workloads of all registrations, and what else
// went wrong on the way. Where promoted and own content have documents of one
// kind and name, the environment's own one counts, and the other is a problem.
func Join(environment string, base, env Model, workloads []Workload, problems ...Problem) Model {
	c := collector{problems: slices.Concat(base.Problems, env.Problems, problems)}
	c.m = Model{
		Environment:   environment,
		Environments:  overlay(&c, kindEnvironment, env.Environments, base.Environments),
		Registrations: overlay(&c, kindRegistration, env.Registrations, base.Registrations),
		ClusterTypes:  overlay(&c, kindClusterType, env.ClusterTypes, base.ClusterTypes),
		Policies:      overlay(&c, kindPolicy, env.Policies, base.Policies),
		Templates:     overlay(&c, kindTemplate, env.Templates, base.Templates),
		ConfigMaps:    overlay(&c, kindConfigMap, env.ConfigMaps, base.ConfigMaps),
		Schemas:       overlay(&c, kindConfigSchema, env.Schemas, base.Schemas),
		GitOpsRepos:   overlay(&c, kindGitOpsRepo, env.GitOpsRepos, base.GitOpsRepos),
		Workloads:     slices.Concat(overlay(&c, kindWorkload, env.Workloads, base.Workloads), workloads),
	}
	for _, m := range []Model{env, base} {
		if m.BaseRepo != nil && c.m.BaseRepo == nil {
			c.m.BaseRepo = m.BaseRepo
		}
	}
	return c.model()
}

// overlay returns own documents and those others that have no namesake among
// them.
func overlay[T named](c *collector, kind string, own, others []T) []T {
	all := slices.Clone(own)
	places := make(map[string]Place, len(own))
	for _, x := range own {
		name, at, _ := x.identity()
		places[name] = at
	}
	for _, x := range others {
		name, at, _ := x.identity()
		if where, twice := places[name]; twice && name != "" {
			c.problems = append(c.problems, Problem{
				Place: at, Kind: kind, Name: name,
				Message: fmt.Sprintf("the environment has one of that name, too, at %s, and that one counts: rename or remove one", where),
			})
			continue
		}
		all = append(all, x)
	}
	return all
}

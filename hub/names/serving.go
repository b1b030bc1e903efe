package names

import (
	"slices"

	"github.com/landfall-hub/landfall/schema"
)

// Platforms returns the refs of which configurations are known, under all names
// of their repositories and with no path, sorted.
func (x *Index) Platforms() []schema.Endpoint {
	var all []schema.Endpoint
	for name, r := range x.repos {
		for i := range r.Refs {
			if r.Refs[i].Configured {
				all = append(all, r.named(name, r.Refs[i].Name)...)
			}
		}
	}
	slices.SortFunc(all, compareEndpoints)
	return all
}

// Serving returns the refs that serve an environment, under all names of their
// repositories and with no path, sorted.
func (x *Index) Serving(environment string) []schema.Endpoint {
	var all []schema.Endpoint
	for at, name := range x.environments {
		if name != environment || name == "" {
			continue
		}
		r, ok := x.repos[at.repo]
		if !ok {
			all = append(all, schema.Endpoint{Repo: at.repo, Ref: at.ref})
			continue
		}
		for _, alias := range r.Names {
			all = append(all, r.named(alias, at.ref)...)
		}
	}
	slices.SortFunc(all, compareEndpoints)
	return all
}

// named returns a ref of the repository under one of its names, as "" too where
// it is the default branch.
func (r *repo) named(name, ref string) []schema.Endpoint {
	all := []schema.Endpoint{{Repo: name, Ref: ref}}
	if ref == r.Default && ref != "" {
		all = append(all, schema.Endpoint{Repo: name})
	}
	return all
}

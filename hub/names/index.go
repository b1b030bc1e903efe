package names

import (
	"cmp"
	"maps"
	"path"
	"slices"

	"github.com/landfall-hub/landfall/schema"
)

// Index answers what commits and endpoints mean. It never changes. Repositories
// and refs that it is asked about are canonical; any alias will do, and so does
// "" for the default branch.
type Index struct {
	targets []Target
	// at are the numbers of the targets at an endpoint, in order; was has the first
	// of the former ones.
	at  map[schema.Endpoint][]int32
	was map[schema.Endpoint]Target
	// repos are under each of their names.
	repos map[string]*repo
	// environments are by repository and ref; "" where there are several.
	environments map[place]string
}

type place struct{ repo, ref string }

// repo is a repository as it is looked up.
type repo struct {
	Repo
	refs map[string]*Ref
}

// Empty returns an Index that knows nothing.
func Empty() *Index { return New(Facts{}) }

// New makes an Index.
func New(f Facts) *Index {
	x := &Index{
		targets: slices.Clone(f.Targets), at: make(map[schema.Endpoint][]int32, len(f.Targets)), was: map[schema.Endpoint]Target{},
		repos: map[string]*repo{}, environments: map[place]string{},
	}
	for _, r := range f.Repos {
		known := &repo{Repo: r, refs: make(map[string]*Ref, len(r.Refs))}
		for i := range r.Refs {
			known.refs[r.Refs[i].Name] = &r.Refs[i]
		}
		for _, name := range r.Names {
			x.repos[name] = known
		}
	}
	x.arrange(x.targets)
	for i := range x.targets {
		t := &x.targets[i]
		x.at[t.Endpoint] = append(x.at[t.Endpoint], int32(i))
		x.serves(t.Endpoint, t.Environment)
	}
	former := slices.Clone(f.Former)
	x.arrange(former)
	for _, t := range former {
		if _, taken := x.was[t.Endpoint]; !taken {
			x.was[t.Endpoint] = t
		}
	}
	for _, e := range f.Environments {
		x.serves(x.resolve(schema.Endpoint{Repo: e.Repo, Ref: e.Ref}), e.Name)
	}
	return x
}

// arrange sorts targets whose endpoints it makes the repositories' own.
func (x *Index) arrange(targets []Target) {
	for i := range targets {
		targets[i].Endpoint = x.resolve(targets[i].Endpoint)
	}
	slices.SortStableFunc(targets, func(a, b Target) int {
		return cmp.Or(Compare(a.Target, b.Target), compareEndpoints(a.Endpoint, b.Endpoint))
	})
}

// serves notes an environment; two at one place make it unknown.
func (x *Index) serves(e schema.Endpoint, environment string) {
	at := place{e.Repo, e.Ref}
	if known, ok := x.environments[at]; ok && known != environment {
		environment = ""
	}
	x.environments[at] = environment
}

// Compare puts targets in the order in which lists have them.
func Compare(a, b schema.Target) int {
	return cmp.Or(
		cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Application, b.Application),
		cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.DeploymentTarget, b.DeploymentTarget),
	)
}

func compareEndpoints(a, b schema.Endpoint) int {
	return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Ref, b.Ref), cmp.Compare(a.Path, b.Path))
}

// resolve returns an endpoint by the repository's own name and, for the default
// branch, its name.
func (x *Index) resolve(e schema.Endpoint) schema.Endpoint {
	r, ok := x.repos[e.Repo]
	if !ok {
		return e
	}
	e.Repo = r.Names[0]
	if e.Ref == "" {
		e.Ref = r.Default
	}
	return e
}

// Targets returns all targets, sorted. It must not be changed.
func (x *Index) Targets() []Target { return x.targets }

// Find returns the targets that match the filter's environment, workspace,
// application, workload and deployment target, sorted.
func (x *Index) Find(f schema.StateFilter) []Target {
	want := schema.Target{
		Environment: f.Environment, Workspace: f.Workspace, Application: f.Application, Workload: f.Workload, DeploymentTarget: f.DeploymentTarget,
	}
	if want == (schema.Target{}) {
		return x.targets
	}
	var found []Target
	for i := range x.targets {
		if matches(want, x.targets[i].Target) {
			found = append(found, x.targets[i])
		}
	}
	return found
}

// matches reports whether a target has all that is wanted; empty matches all.
func matches(want, t schema.Target) bool {
	for _, pair := range [...][2]string{
		{want.Environment, t.Environment},
		{want.Workspace, t.Workspace},
		{want.Application, t.Application},
		{want.Workload, t.Workload},
		{want.DeploymentTarget, t.DeploymentTarget},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return true
}

// At returns the target that an endpoint belongs to: the one with the longest
// path that is equal to or above the endpoint's; of several at one path, one that
// still is before one that was, then the first by name.
func (x *Index) At(e schema.Endpoint) (Target, bool) {
	e = x.resolve(e)
	for {
		if found := x.at[e]; len(found) > 0 {
			return x.targets[found[0]], true
		}
		if t, ok := x.was[e]; ok {
			return t, true
		}
		if e.Path == "" {
			return Target{}, false
		}
		if e.Path = path.Dir(e.Path); e.Path == "." {
			e.Path = ""
		}
	}
}

// Endpoints returns a target's endpoint under every name of its repository, its
// own first, and with the ref "" too where it is the default branch.
func (x *Index) Endpoints(t Target) []schema.Endpoint {
	r, ok := x.repos[t.Endpoint.Repo]
	if !ok {
		return []schema.Endpoint{t.Endpoint}
	}
	refs := []string{t.Endpoint.Ref}
	if t.Endpoint.Ref == r.Default && r.Default != "" {
		refs = append(refs, "")
	}
	all := make([]schema.Endpoint, 0, len(refs)*len(r.Names))
	for _, ref := range refs {
		for _, name := range r.Names {
			all = append(all, schema.Endpoint{Repo: name, Ref: ref, Path: t.Endpoint.Path})
		}
	}
	return all
}

// Environment returns the environment that a repository and ref serve; "" where
// that is unknown or not just one.
func (x *Index) Environment(repo, ref string) string {
	e := x.resolve(schema.Endpoint{Repo: repo, Ref: ref})
	return x.environments[place{e.Repo, e.Ref}]
}

// Environments returns every environment that a target or a repository serves,
// sorted.
func (x *Index) Environments() []string {
	found := map[string]bool{}
	for _, name := range x.environments {
		found[name] = true
	}
	for i := range x.targets {
		found[x.targets[i].Environment] = true
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

// Repo returns the address of a followed repository as it was configured,
// without user info.
func (x *Index) Repo(repo string) (written string, ok bool) {
	r, ok := x.repos[repo]
	if !ok || r.Written == "" {
		return "", false
	}
	return r.Written, true
}

// ref returns what is known of a ref, or nil.
func (x *Index) ref(repo, ref string) *Ref {
	r, ok := x.repos[repo]
	if !ok {
		return nil
	}
	if ref == "" {
		ref = r.Default
	}
	return r.refs[ref]
}

package overview

import (
	"maps"
	"slices"
	"time"

	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/schema"
)

// sight is what is known beside the store at the moment of a question.
type sight struct {
	index   *names.Index
	members map[string]fleet.Member
	// silent are the clusters that are not heard of, sorted.
	silent []string
	now    time.Time
}

func (v *View) look() *sight {
	s := &sight{index: v.opts.Names.Index(), members: map[string]fleet.Member{}, now: v.opts.Now()}
	for _, m := range v.opts.Fleet.All() {
		s.members[m.Name] = m
		if m.Silent {
			s.silent = append(s.silent, m.Name)
		}
	}
	slices.Sort(s.silent)
	return s
}

// named is an endpoint with what it is called.
type named struct {
	target names.Target
	known  bool
	// environment is what the endpoint serves, "" where that is not known.
	environment string
}

func (s *sight) name(e schema.Endpoint) named {
	if t, ok := s.index.At(e); ok {
		return named{target: t, known: true, environment: t.Environment}
	}
	return named{environment: s.index.Environment(e.Repo, e.Ref)}
}

// place returns the environment and the cluster type of what is deployed from an
// endpoint to a cluster with these memberships: those of the membership whose
// environment the endpoint serves. What serves no known environment has the
// cluster's, where it has one.
func (n *named) place(memberships []schema.Membership) (environment, clusterType string) {
	if n.environment == "" {
		return fleet.Place(memberships)
	}
	var types []string
	for _, m := range memberships {
		if m.Environment == n.environment && !slices.Contains(types, m.Type) {
			types = append(types, m.Type)
		}
	}
	switch {
	case len(types) == 1:
		return n.environment, types[0]
	case len(types) == 0 && len(memberships) == 1:
		return n.environment, memberships[0].Type
	}
	return n.environment, ""
}

// version returns the version that a target has at a commit: the commit itself
// where no descriptor says.
func (s *sight) version(n *named, commit string) string {
	if n.known {
		if v, _, ok := s.index.VersionAt(n.target, commit); ok && v.Version != "" {
			return v.Version
		}
	}
	return commit
}

// scheduled returns the newest version of a target and the commit that brought
// it; without descriptors that is the newest commit of its ref. by says that a
// descriptor names it.
func (s *sight) scheduled(t *names.Target) (version, commit string, by bool) {
	if v, at, ok := s.index.Scheduled(*t); ok {
		if v.Version != "" {
			return v.Version, at.Commit, true
		}
		return at.Commit, at.Commit, true
	}
	if head, ok := s.index.Head(t.Endpoint.Repo, t.Endpoint.Ref); ok {
		return head.Commit, head.Commit, false
	}
	return "", "", false
}

// endpoints returns where the targets' reconcilers may read, never nil.
func (s *sight) endpoints(targets []names.Target) []schema.Endpoint {
	all := []schema.Endpoint{}
	for _, t := range targets {
		all = append(all, s.index.Endpoints(t)...)
	}
	return all
}

// byName reports whether a filter asks for names that only targets have.
func byName(f *schema.StateFilter) bool {
	return f.Workspace != "" || f.Application != "" || f.Workload != "" || f.DeploymentTarget != ""
}

// matches reports whether a row has what is asked for, status aside.
func matches(f *schema.StateFilter, r *schema.ClusterState) bool {
	return (f.Environment == "" || f.Environment == r.Environment) && (f.Workspace == "" || f.Workspace == r.Workspace) &&
		(f.Application == "" || f.Application == r.Application) && (f.Workload == "" || f.Workload == r.Workload) &&
		(f.DeploymentTarget == "" || f.DeploymentTarget == r.DeploymentTarget) &&
		(f.ClusterType == "" || f.ClusterType == r.ClusterType) && (f.Cluster == "" || f.Cluster == r.Cluster)
}

// places returns the clusters that may match a filter as places that are deployed
// to: members of the environment and of the type, those that are gone too if that
// is asked for; nil where each may.
func (s *sight) places(environment, clusterType, cluster string, gone bool) map[string]bool {
	switch {
	case cluster != "":
		return map[string]bool{cluster: true} // perhaps nobody's agent; others may deploy there
	case environment == "" && clusterType == "":
		return nil
	}
	all := map[string]bool{}
	for name, m := range s.members {
		if (gone || !m.Decommissioned) && slices.ContainsFunc(m.Memberships, func(p schema.Membership) bool {
			return (environment == "" || environment == p.Environment) && (clusterType == "" || clusterType == p.Type)
		}) {
			all[name] = true
		}
	}
	return all
}

// sortedNames returns the names of a set, nil for nil.
func sortedNames(set map[string]bool) []string {
	if set == nil {
		return nil
	}
	return append([]string{}, slices.Sorted(maps.Keys(set))...)
}

// reporters returns the clusters whose agents may report for the destinations,
// and the destinations themselves, nil where each reports for itself alone.
func (s *sight) reporters(destinations map[string]bool) (reporters, to []string) {
	if destinations == nil {
		return nil, nil
	}
	reporters = []string{} // none, unlike nil, matches none
	for name, m := range s.members {
		if destinations[name] || slices.ContainsFunc(m.ReportsFor, func(to string) bool { return destinations[to] }) {
			reporters = append(reporters, name)
			if len(m.ReportsFor) > 0 {
				to = []string{}
			}
		}
	}
	slices.Sort(reporters)
	if to != nil {
		to = slices.Sorted(maps.Keys(destinations))
	}
	return reporters, to
}

package argocd

import (
	"reflect"
	"strings"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

// spread is a list of sources with the revision of each.
type spread struct {
	sources   []source
	revisions []string
}

// source is one source of an application.
type source struct {
	endpoint schema.Source
	all      map[string]any // every member, without the empty ones
}

// specified returns the sources that a specification asks Argo CD to sync: a
// hydrator's branch, the list, or the single one.
func specified(spec object.Fields) spread {
	h := spec.Object("sourceHydrator")
	if h.IsZero() {
		return spreadOf(spec, object.Fields{})
	}
	repo, sync := h.Object("drySource").Text("repoURL"), h.Object("syncSource")
	folder, branch := sync.Text("path"), sync.Text("targetBranch")
	return spread{sources: []source{{
		endpoint: endpoint(repo, branch, folder, ""),
		all:      withoutEmpty(map[string]any{"repoURL": repo, "path": folder, "targetRevision": branch}),
	}}}
}

// spreadOf reads sources (source or sources) and revisions (revision or
// revisions) from the objects that hold them.
func spreadOf(sources, revisions object.Fields) spread {
	var s spread
	list := sources.List("sources")
	if len(list) == 0 {
		if one := sources.Object("source"); !one.IsZero() {
			list = []object.Fields{one}
		}
		if rev := revisions.Text("revision"); rev != "" {
			s.revisions = []string{rev}
		}
	} else {
		s.revisions = revisions.Texts("revisions")
	}
	for _, f := range list {
		s.sources = append(s.sources, readSource(f))
	}
	return s
}

func readSource(f object.Fields) source {
	return source{
		endpoint: endpoint(f.Text("repoURL"), f.Text("targetRevision"), f.Text("path"), f.Text("chart")),
		all:      withoutEmpty(f.Values()),
	}
}

// endpoint returns a source as reports show it. A source that is only
// referenced ($ref) has no folder.
func endpoint(repo, revision, folder, chart string) schema.Source {
	s := schema.Source{Type: schema.SourceGit, URL: schema.StripUserInfo(repo), Ref: revision, Path: folder}
	switch {
	case chart != "":
		s.Type, s.Path = schema.SourceHelm, chart
	case strings.HasPrefix(strings.ToLower(repo), "oci://"):
		s.Type = schema.SourceOCI
	case isRange(revision):
		s.Ref = "semver:" + revision
	}
	return s
}

// isRange reports whether a target revision can only be a range of versions:
// it holds what no branch or tag may hold, or begins with a comparison.
func isRange(revision string) bool {
	return strings.ContainsAny(revision, "*^~") || strings.HasPrefix(revision, ">") || strings.HasPrefix(revision, "<")
}

func (s spread) endpoints() []schema.Source {
	out := make([]schema.Source, 0, len(s.sources))
	for _, src := range s.sources {
		out = append(out, src.endpoint)
	}
	return out
}

// align returns what from says the revision of each of s's sources is: empty
// where from speaks of another place.
func (s spread) align(from spread) []string {
	out := make([]string, 0, len(s.sources))
	for i, want := range s.sources {
		rev := from.at(i, want)
		if rev == "" && len(from.sources) != len(s.sources) {
			rev = from.anywhere(want)
		}
		out = append(out, rev)
	}
	return out
}

func (s spread) at(i int, want source) string {
	if i < len(s.sources) && i < len(s.revisions) && s.sources[i].samePlace(want) {
		return s.revisions[i]
	}
	return ""
}

func (s spread) anywhere(want source) string {
	for i := range s.sources {
		if rev := s.at(i, want); rev != "" {
			return rev
		}
	}
	return ""
}

// samePlace reports whether two sources read the same folder of the same
// repository, whatever revision they follow.
func (s source) samePlace(o source) bool {
	a, errA := s.endpoint.Endpoint()
	b, errB := o.endpoint.Endpoint()
	return errA == nil && errB == nil && s.endpoint.Type == o.endpoint.Type && a.Repo == b.Repo && a.Path == b.Path
}

// sameSources reports whether two lists of sources are equal in every member.
func (s spread) sameSources(o spread) bool {
	if len(s.sources) != len(o.sources) || len(s.sources) == 0 {
		return false
	}
	for i := range s.sources {
		if !reflect.DeepEqual(s.sources[i].all, o.sources[i].all) {
			return false
		}
	}
	return true
}

// withoutEmpty copies an object without the members that say nothing: what a
// person wrote and what Argo CD wrote back differ in those. Values of a chart
// are taken as they are, because there false and missing are two things.
func withoutEmpty(values map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range values {
		if name != "valuesObject" {
			v = pruned(v)
		}
		if v != nil {
			out[name] = v
		}
	}
	return out
}

// pruned returns nil for what says nothing.
func pruned(v any) any {
	switch t := v.(type) {
	case map[string]any:
		if m := withoutEmpty(t); len(m) > 0 {
			return m
		}
		return nil
	case []any:
		var list []any
		for _, item := range t {
			list = append(list, pruned(item))
		}
		if len(list) > 0 {
			return list
		}
		return nil
	}
	if v == nil || reflect.ValueOf(v).IsZero() {
		return nil
	}
	return v
}

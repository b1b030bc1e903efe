package catalog

import (
	"cmp"
	"path"
	"slices"

	"github.com/landfall-hub/landfall/hub/descriptor"
	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// sheet is what a ref contributes to the Index. It never changes.
type sheet struct {
	key   record.RefKey
	ref   names.Ref
	files []filedAs
	// past are the targets that the ref has had, with their endpoints.
	past []names.Target
	own  func(schema.Endpoint) bool
}

// filedAs is a file that says something, with its path.
type filedAs struct {
	path string
	*file
}

// sheet makes the sheet of a book as it stands.
func (b *book) sheet(h *gitops.History) *sheet {
	s := &sheet{key: b.key, own: b.own}
	s.ref = names.Ref{
		Name: b.key.Ref, Lineage: lineage{h, slices.Clone(b.chains)},
		Assignments: make(map[schema.Target][]names.Assignment, len(b.ledger)), Configured: b.tree.Configured,
	}
	for i := range b.chains {
		s.ref.Chains = append(s.ref.Chains, names.Chain{Number: b.chains[i].Number, Fork: b.chains[i].fork()})
	}
	for t, h := range b.ledger {
		if len(h.merged) > 0 {
			s.ref.Assignments[t] = slices.Clip(h.merged)
		}
	}
	for t, at := range b.tree.Past {
		s.past = append(s.past, names.Target{Target: t, Endpoint: schema.Endpoint{Repo: b.key.Repo, Ref: b.key.Ref, Path: at.Path}, URL: at.URL})
	}
	if b.gone {
		return s
	}
	for path, f := range b.tree.Files {
		s.files = append(s.files, filedAs{path, f})
	}
	slices.SortFunc(s.files, func(a, b filedAs) int { return cmp.Compare(a.path, b.path) })
	return s
}

// rank says how much a document counts that names a target's endpoint.
type rank int

const (
	byWorkload rank = iota
	byStranger
	byOwn
)

// naming is the best that is known of a target.
type naming struct {
	names.Target
	rank    rank
	changed int64
	version *names.Version
}

// gathering joins what the sheets say.
type gathering struct {
	resolve  func(schema.Endpoint) schema.Endpoint
	sheets   []*sheet
	found    map[schema.Target]*naming
	problems map[string][]problem
}

// problem is a complaint about a document of a ref.
type problem struct {
	ref string
	descriptor.Problem
}

// claims takes the targets that descriptors name, then those that Workloads name
// and no descriptor does.
func (g *gathering) claims() {
	for _, s := range g.sheets {
		for _, f := range s.files {
			for i := range f.Found.Claims {
				if c := &f.Found.Claims[i]; c.Version != nil {
					g.descriptor(s, f, c)
				}
			}
		}
	}
	g.strangers()
	g.workloads()
}

// descriptor takes what a descriptor says of a target's endpoint.
func (g *gathering) descriptor(s *sheet, f filedAs, c *descriptor.Claim) {
	n := &naming{
		Target: names.Target{Target: c.Target, Endpoint: g.resolve(c.Endpoint), URL: c.URL}, rank: byStranger, changed: f.Changed, version: c.Version,
	}
	if s.own(c.Endpoint) {
		n.rank = byOwn
	}
	g.offer(n)
}

// offer keeps the better of two namings: that of the ref that deploys it, then
// that of the file that changed last, then the newest build.
func (g *gathering) offer(n *naming) {
	old := g.found[n.Target.Target]
	if old == nil || n.rank > old.rank || n.rank == old.rank &&
		(outcome{version: n.version, changed: n.changed}).better(outcome{version: old.version, changed: old.changed}) {
		g.found[n.Target.Target] = n
	}
}

// strangers complains of descriptors that lie elsewhere than they say, unless
// the right place has one too: a branch is a copy of another.
func (g *gathering) strangers() {
	for _, s := range g.sheets {
		for _, f := range s.files {
			for i := range f.Found.Claims {
				c := &f.Found.Claims[i]
				if c.Version == nil || s.own(c.Endpoint) || g.found[c.Target].rank == byOwn {
					continue
				}
				g.complain(s, descriptor.Problem{File: f.path, Line: c.Line, Reason: strange(s.key, c)})
			}
		}
	}
}

// strange says why a descriptor's version does not count.
func strange(at record.RefKey, c *descriptor.Claim) string {
	return "its manifests are in " + c.Endpoint.Repo + ", branch " + shownRef(c.Endpoint.Ref) + ", and the descriptor lies in " + at.Repo + ", branch " + shownRef(at.Ref) +
		": its names are known, its version does not count. If both are one repository, name the other address in its aliases; else put the descriptor there, or send it by POST /api/v1/descriptors"
}

func shownRef(ref string) string {
	if ref == "" {
		return "HEAD"
	}
	return ref
}

func (g *gathering) complain(s *sheet, p descriptor.Problem) {
	g.problems[s.key.Repo] = append(g.problems[s.key.Repo], problem{s.key.Ref, p})
}

// role tells targets apart that workloads name: they know no application.
type role struct{ environment, workload, target string }

func roleOf(t schema.Target) role { return role{t.Environment, t.Workload, t.DeploymentTarget} }

// workloads takes what Workload documents say: labels of the targets that
// descriptors name, and targets that none names.
func (g *gathering) workloads() {
	registered := g.registrations()
	known := map[role][]*naming{}
	for t, n := range g.found {
		known[roleOf(t)] = append(known[roleOf(t)], n)
	}
	for _, s := range g.sheets {
		for _, f := range s.files {
			for i := range f.Found.Claims {
				c := &f.Found.Claims[i]
				if c.Version != nil {
					continue
				}
				t := c.Target
				if w := registered.workspace(s.key, path.Dir(f.path)); w != "" {
					t.Workspace = w
				}
				described := false
				for _, n := range known[roleOf(t)] {
					if t.Workspace == "" || n.Workspace == "" || t.Workspace == n.Workspace {
						n.Labels, described = c.Labels, true
					}
				}
				if !described {
					g.offer(&naming{Target: names.Target{Target: t, Labels: c.Labels, Endpoint: g.resolve(c.Endpoint), URL: c.URL}, rank: byWorkload, changed: f.Changed})
				}
			}
		}
	}
}

// registrations are those of all repositories, by the place of the workloads.
type registrations map[record.RefKey][]descriptor.Registration

func (g *gathering) registrations() registrations {
	all := registrations{}
	for _, s := range g.sheets {
		for _, f := range s.files {
			for _, r := range f.Found.Registrations {
				e := g.resolve(r.Endpoint)
				key := record.RefKey{Repo: e.Repo, Ref: e.Ref}
				all[key] = append(all[key], descriptor.Registration{Endpoint: e, Workspace: r.Workspace})
			}
		}
	}
	return all
}

// workspace returns the workspace of the workloads in a folder: that of the
// registration with the longest path.
func (all registrations) workspace(at record.RefKey, folder string) string {
	if folder == "." {
		folder = ""
	}
	best, workspace := -1, ""
	for _, r := range all[at] {
		// A path may also name the file itself.
		if (schema.PathWithin(r.Endpoint.Path, folder) || path.Dir(r.Endpoint.Path) == folder) && len(r.Endpoint.Path) > best {
			best, workspace = len(r.Endpoint.Path), r.Workspace
		}
	}
	return workspace
}

// environments are those that the platform repositories serve: a GitOpsRepo in
// an environment's branch of the control plane says which.
func (g *gathering) environments() []names.Environment {
	branches := map[record.RefKey][]descriptor.Environment{}
	for _, s := range g.sheets {
		for _, f := range s.files {
			for _, e := range f.Found.Environments {
				e.Endpoint = g.resolve(e.Endpoint)
				key := record.RefKey{Repo: e.Endpoint.Repo, Ref: e.Endpoint.Ref}
				branches[key] = append(branches[key], e)
			}
		}
	}
	var all []names.Environment
	for _, s := range g.sheets {
		for _, f := range s.files {
			for _, p := range f.Found.Platforms {
				p = g.resolve(p)
				for _, e := range branches[s.key] {
					if schema.PathWithin(e.Endpoint.Path, f.path) {
						all = append(all, names.Environment{Repo: p.Repo, Ref: p.Ref, Name: e.Name})
					}
				}
			}
		}
	}
	return all
}

// complaints takes what is wrong with the files themselves.
func (g *gathering) complaints() {
	for _, s := range g.sheets {
		for _, f := range s.files {
			for _, p := range f.Found.Problems {
				g.complain(s, p)
			}
		}
	}
}

package control

import (
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/scheduler"
	"github.com/landfall-hub/landfall/schema"
)

// branch names a ref of a repository, both canonical.
type branch struct{ repo, ref string }

// expectations are who should read which branch.
type expectations map[branch][]record.Expected

// expect makes known who should read what the environment points to: the
// clusters of a type their folder of the GitOps repository, and the manifests of
// every target that is assigned to it. What is stored and not in a plan that
// lacks something counts as well. While a pull request waits, it is what the
// branch has that should be read, and not what the plan would make of it; where
// nobody knows what the branch has, all stays as it was.
func (e *environment) expect(to spot, plan *scheduler.Plan, now *standing) {
	if now.waits && now.summary == nil {
		return
	}
	own := expectationsOf(e.kept)
	if to.source != nil {
		at := branch{to.source.name, to.ref}
		folders := now.folders
		if !now.waits {
			folders = nil
			for _, f := range plan.Folders {
				folders = append(folders, f.Name)
			}
		}
		for _, name := range folders {
			own.add(at, record.Expected{Environment: e.name, ClusterType: name, Path: name, Name: name})
		}
	}
	e.control.expect(e.name, own)
}

// expectationsOf is what stored rows say.
func expectationsOf(kept map[record.ScheduleKey]record.Scheduled) expectations {
	all := expectations{}
	for k, r := range kept {
		if r.GitOps.Repo != "" {
			all.add(branch{r.GitOps.Repo, r.GitOps.Ref}, record.Expected{Environment: k.Environment, ClusterType: k.ClusterType, Path: k.ClusterType, Name: k.ClusterType})
		}
		if r.Endpoint.Repo != "" && !strings.Contains(r.Endpoint.Repo, "://") || isLocal(r.Endpoint.Repo) {
			all.add(branch{r.Endpoint.Repo, r.Endpoint.Ref}, record.Expected{Environment: k.Environment, ClusterType: k.ClusterType, Path: r.Endpoint.Path, Name: k.DeploymentTarget})
		}
	}
	return all
}

func (all expectations) add(at branch, x record.Expected) { all[at] = append(all[at], x) }

// expect takes what an environment expects, and tells those who wait where that
// is news.
func (c *Control) expect(environment string, own expectations) {
	for at := range own {
		slices.SortFunc(own[at], compareExpected)
		own[at] = slices.Compact(own[at])
	}
	c.mu.Lock()
	old := c.expected[environment]
	c.expected[environment] = own
	same := len(old) == len(own)
	for at := range own {
		same = same && slices.Equal(old[at], own[at])
	}
	c.mu.Unlock()
	if !same && c.opts.Expecting != nil {
		c.opts.Expecting()
	}
}

func compareExpected(a, b record.Expected) int {
	for _, c := range []int{
		strings.Compare(a.Environment, b.Environment), strings.Compare(a.ClusterType, b.ClusterType), strings.Compare(a.Path, b.Path),
	} {
		if c != 0 {
			return c
		}
	}
	return strings.Compare(a.Name, b.Name)
}

// Expected returns which clusters should read an endpoint, by environment and
// type: those whose folder is the endpoint's path or below it. Names are all
// canonical names of the endpoint's repository.
func (c *Control) Expected(e schema.Endpoint, names []string) []record.Expected {
	refs := []string{e.Ref}
	if c.opts.DefaultBranch != nil {
		switch main := c.opts.DefaultBranch(names[0]); {
		case main == "":
		case e.Ref == "":
			refs = append(refs, main)
		case e.Ref == main:
			refs = append(refs, "")
		}
	}
	var all []record.Expected
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, own := range c.expected {
		for _, name := range names {
			for _, ref := range refs {
				for _, x := range own[branch{name, ref}] {
					if schema.PathWithin(e.Path, x.Path) {
						all = append(all, x)
					}
				}
			}
		}
	}
	slices.SortFunc(all, compareExpected)
	return slices.Compact(all)
}

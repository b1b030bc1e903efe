package overview

import (
	"context"
	"slices"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/schema"
)

// Discrepancies lists deployment targets side by side over environments: those
// whose scheduled versions or configurations are not the same in all of them,
// and those that run something else than what is scheduled.
func (v *View) Discrepancies(ctx context.Context, f schema.DiscrepancyFilter, p schema.Page) (rows []schema.Discrepancy, next []string, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	s := v.look()
	all, err := v.environments(ctx, s, f.StateFilter)
	if err != nil {
		return nil, nil, failed(ctx, err)
	}
	var sides []side
	byTarget := map[schema.Target]int{}
	for i := range all {
		e := &all[i]
		if e.target == nil {
			continue
		}
		t := e.target.Target
		t.Environment = ""
		n, ok := byTarget[t]
		if !ok {
			n = len(sides)
			byTarget[t] = n
			sides = append(sides, side{row: schema.Discrepancy{
				Workspace: t.Workspace, Application: t.Application, Workload: t.Workload, DeploymentTarget: t.DeploymentTarget,
			}})
		}
		sides[n].add(e, v.opts.Graph)
	}
	sortByKey(sides, (*side).key)
	found := sides[:0]
	for i := range sides {
		if f.All || sides[i].row.Discrepant {
			found = append(found, sides[i])
		}
	}
	found, next, err = cut(found, p, (*side).key)
	rows = make([]schema.Discrepancy, len(found))
	for i := range found {
		rows[i] = found[i].row
	}
	return rows, next, err
}

// side is one deployment target of several environments, in their order.
type side struct {
	row schema.Discrepancy
	// first is the first that has a scheduled version, config the first scheduled
	// configuration.
	first  *environment
	config string
}

func (d *side) key() []string {
	return []string{d.row.Workspace, d.row.Application, d.row.Workload, d.row.DeploymentTarget}
}

func (d *side) add(e *environment, graph func(repo string) compliance.Graph) {
	r := &e.row
	d.row.Environments = append(d.row.Environments, schema.EnvironmentVersion{
		Environment: r.Environment, ScheduledVersion: r.ScheduledVersion, ScheduledCommit: r.ScheduledCommit,
		ScheduledConfigVersion: r.ScheduledConfigVersion, Deployed: r.Deployed,
	})
	if r.ScheduledVersion != "" && d.first == nil {
		d.first = e
	}
	if r.ScheduledConfigVersion != "" && d.config == "" {
		d.config = r.ScheduledConfigVersion
	}
	d.row.Discrepant = d.row.Discrepant || r.ScheduledConfigVersion != "" && r.ScheduledConfigVersion != d.config ||
		r.ScheduledVersion != "" && d.first.differs(e, graph) ||
		slices.ContainsFunc(r.Deployed, func(is schema.Deployed) bool { return e.deviates(&is, graph) })
}

// differs reports whether other versions are scheduled. Of commits that no
// descriptor names, those that have the same in the target's folder are one.
func (e *environment) differs(o *environment, graph func(repo string) compliance.Graph) bool {
	if e.row.ScheduledVersion == o.row.ScheduledVersion {
		return false
	}
	alike := !e.descriptor && !o.descriptor && e.at.Repo == o.at.Repo && e.at.Path == o.at.Path
	return !alike || !sameFolder(graph, e.at, e.row.ScheduledCommit, o.row.ScheduledCommit)
}

// deviates reports whether something that is deployed is not what is scheduled.
// Without descriptors, a commit that left the target's folder as it was is what
// is deployed all the same.
func (e *environment) deviates(d *schema.Deployed, graph func(repo string) compliance.Graph) bool {
	if e.row.ScheduledConfigVersion != "" && d.ConfigVersion != "" && d.ConfigVersion != e.row.ScheduledConfigVersion {
		return true
	}
	if e.row.ScheduledVersion == "" || d.Version == e.row.ScheduledVersion {
		return false
	}
	return e.descriptor || !sameFolder(graph, e.at, d.Commit, e.row.ScheduledCommit)
}

// sameFolder reports whether a folder is known to be the same at two commits.
func sameFolder(graph func(repo string) compliance.Graph, folder schema.Endpoint, a, b string) bool {
	return a != "" && b != "" && compliance.SameFolder(graph(folder.Repo), a, b, folder.Path)
}

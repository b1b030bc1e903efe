package control

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/scheduler"
	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/match"
	"github.com/landfall-hub/landfall/schema"
)

// mostRows is how many rows are stored at once.
const mostRows = 2000

// record stores the assignments that are not as they were, and, where the plan
// holds all that is wanted, which are no more. What is published is recorded with
// the commit of the branch that holds it; standing.apply says what is recorded of
// what is not, while a pull request waits.
func (e *environment) record(ctx context.Context, in *inputs, model *controlplane.Model, plan *scheduler.Plan, now *standing) error {
	rows, err := e.rows(in, model, plan, now)
	if err != nil {
		return err
	}
	if now.summary != nil {
		last := e.proposed
		last.Places = now.places
		e.keep(last)
	}
	for part := range slices.Chunk(rows, mostRows) {
		if err := e.control.opts.Store.PutSchedules(ctx, part); err != nil {
			return err
		}
		for i := range part {
			r := &part[i]
			if r.Gone {
				delete(e.kept, r.Key())
				continue
			}
			e.kept[r.Key()] = record.Scheduled{ScheduleKey: r.Key(), Endpoint: r.Endpoint, GitOps: r.GitOps, Digest: r.Digest}
		}
	}
	return nil
}

// rows are those that differ from what is stored, sorted.
func (e *environment) rows(in *inputs, model *controlplane.Model, plan *scheduler.Plan, standing *standing) ([]record.Schedule, error) {
	found, _ := match.Targets(model)
	targets := make(map[string]*match.DeploymentTarget, len(found))
	for i := range found {
		targets[found[i].Name] = &found[i]
	}
	var to schema.Endpoint
	if in.gitops.source != nil {
		to = schema.Endpoint{Repo: in.gitops.source.name, Ref: in.gitops.ref}
	}
	now := e.control.opts.Now().UTC().Truncate(time.Millisecond)
	var rows []record.Schedule
	wanted := make(map[record.ScheduleKey]bool, len(plan.Assignments))
	for i := range plan.Assignments {
		r := rowOf(&plan.Assignments[i], targets[plan.Assignments[i].DeploymentTarget])
		r.Environment, r.ControlPlane = e.name, e.plane.name
		r.GitOps, r.GitOpsRepo, r.GitOpsRef = to, to.Repo, to.Ref
		kept, planned := e.kept[r.Key()], r.Endpoint
		published := standing.apply(&r, kept)
		standing.note(&r, planned)
		sum, err := json.Marshal(struct {
			Row       *record.Schedule
			Published bool
		}{&r, published})
		if err != nil {
			return nil, fmt.Errorf("writing down %s: %w", plan.Assignments[i].Name(), err)
		}
		r.Digest = sha256.Sum256(sum)
		wanted[r.Key()] = true
		if kept.Digest == r.Digest {
			continue
		}
		r.ControlPlaneCommit, r.BaseCommit, r.PlannedAt = in.own.commit, in.base.commit, now
		if published {
			r.GitOpsCommit = standing.commit
		}
		rows = append(rows, r)
	}
	if !plan.Complete() {
		return rows, nil
	}
	for k, r := range e.kept {
		if !wanted[k] && !standing.stays(k) {
			rows = append(rows, goneRow(k))
		} else if at, ok := standing.holds(nameOf(k)); ok && !wanted[k] {
			r.Endpoint = at
			e.kept[k] = r
		}
	}
	slices.SortFunc(rows, func(a, b record.Schedule) int { return compareKeys(a.Key(), b.Key()) })
	return rows, nil
}

func goneRow(k record.ScheduleKey) record.Schedule {
	r := record.Schedule{Gone: true}
	r.Environment, r.ClusterType, r.DeploymentTarget = k.Environment, k.ClusterType, k.DeploymentTarget
	return r
}

func compareKeys(a, b record.ScheduleKey) int {
	for _, c := range []int{strings.Compare(a.Environment, b.Environment), strings.Compare(a.ClusterType, b.ClusterType)} {
		if c != 0 {
			return c
		}
	}
	return strings.Compare(a.DeploymentTarget, b.DeploymentTarget)
}

// rowOf is what is stored of an assignment, but for the environment and where it
// comes from and goes.
func rowOf(p *scheduler.Planned, t *match.DeploymentTarget) record.Schedule {
	var r record.Schedule
	r.ClusterType, r.DeploymentTarget = p.ClusterType, p.DeploymentTarget
	r.Policies, r.ConfigVersion, r.Error = notNil(p.Policies), p.Version, p.Err
	r.Files, r.Config, r.Violations = []string{}, []schema.ConfigValue{}, []schema.ConfigProblem{}
	for _, f := range p.Files {
		r.Files = append(r.Files, f.Name)
	}
	for _, v := range p.Config.Values() {
		r.Config = append(r.Config, schema.ConfigValue{
			Key: v.Key, Value: fmt.Sprint(v.Value), ConfigMap: v.ConfigMap, Place: v.Place.String(), Overridden: notNil(v.Overridden),
		})
	}
	for _, v := range p.Violations {
		r.Violations = append(r.Violations, schema.ConfigProblem{Key: v.Key, Schema: v.Schema, ConfigMap: v.ConfigMap, Place: v.Place.String(), Message: v.Message})
	}
	if t == nil {
		return r
	}
	r.Target, r.Workspace, r.Workload = t.Short, t.Workspace, t.Workload
	repo, _ := t.Manifests["repo"].(string)
	ref, _ := t.Manifests["branch"].(string)
	folder, _ := t.Manifests["path"].(string)
	e, err := schema.NewEndpoint(repo, ref, folder)
	if err != nil {
		return r
	}
	r.Repo, r.Ref, r.Path = schema.StripUserInfo(repo), ref, folder
	r.Endpoint = e
	return r
}

func notNil(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

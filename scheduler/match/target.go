package match

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/schema"
)

// DeploymentTarget is a named role of a workload in one environment, with all
// that it inherits from its workload and registration.
type DeploymentTarget struct {
	controlplane.Place
	// Name is <workload>-<short name>, unique in its environment.
	Name string
	// Short is the name that the workload's file gives it.
	Short                            string
	Workload, Workspace, Environment string
	// Labels are the target's own, overlaid with the workload's, plus workload
	// and workspace.
	Labels map[string]string
	// Manifests is the manifests endpoint: see controlplane.Target.
	Manifests map[string]any
	// Schemas are those of the workload, then the target's own: see
	// controlplane.Workload.ConfigSchemas.
	Schemas []string
	// Broken says why nothing may be rendered for the target; "" when it may. A
	// broken target is assigned all the same, so that its last good output stays.
	Broken string
}

const kindWorkload = "Workload"

// Labels that every deployment target has.
const (
	// LabelWorkload is the name of the workload.
	LabelWorkload = "workload"
	// LabelWorkspace is the workspace of the workload's registration.
	LabelWorkspace = "workspace"
)

// Targets returns the deployment targets of the model's environment, sorted by
// name. Two of one name, and two that claim one folder of manifests, are a
// problem: the first of them, by name of workload, counts.
func Targets(m *controlplane.Model) ([]DeploymentTarget, []controlplane.Problem) {
	var targets []DeploymentTarget
	var problems []controlplane.Problem
	byName := map[string]int{}
	for _, w := range m.Workloads {
		for _, t := range w.Targets {
			if t.Environment != m.Environment {
				continue
			}
			d := newTarget(&w, &t)
			if i, twice := byName[d.Name]; twice {
				problems = append(problems, controlplane.Problem{
					Place: t.Place, Kind: kindWorkload, Name: w.Name,
					Message: fmt.Sprintf("there is a deployment target %q already, that of workload %q at %s, and that one counts: rename one",
						d.Name, targets[i].Workload, targets[i].Place),
				})
				continue
			}
			byName[d.Name] = len(targets)
			targets = append(targets, d)
		}
	}
	problems = append(problems, refuseSharedFolders(targets)...)
	slices.SortFunc(targets, func(a, b DeploymentTarget) int { return cmp.Compare(a.Name, b.Name) })
	return targets, controlplane.SortProblems(problems)
}

func newTarget(w *controlplane.Workload, t *controlplane.Target) DeploymentTarget {
	labels := make(map[string]string, len(t.Labels)+len(w.Labels)+2)
	maps.Copy(labels, t.Labels)
	maps.Copy(labels, w.Labels)
	labels[LabelWorkload] = w.Name
	labels[LabelWorkspace] = w.Workspace
	return DeploymentTarget{
		Place: t.Place, Name: w.Name + "-" + t.Name, Short: t.Name,
		Workload: w.Name, Workspace: w.Workspace, Environment: t.Environment,
		Labels: labels, Manifests: t.Manifests, Schemas: slices.Concat(w.ConfigSchemas, t.ConfigSchemas), Broken: t.Broken,
	}
}

// refuseSharedFolders marks targets whose folder of manifests an earlier one
// claims: what is deployed from it could not be told apart.
func refuseSharedFolders(targets []DeploymentTarget) []controlplane.Problem {
	var problems []controlplane.Problem
	claimed := map[string]*DeploymentTarget{}
	for i := range targets {
		t := &targets[i]
		folder, ok := folderOf(t.Manifests)
		if !ok || t.Broken != "" {
			continue
		}
		first, taken := claimed[folder]
		if !taken {
			claimed[folder] = t
			continue
		}
		t.Broken = fmt.Sprintf("deployment target %q claims the folder of manifests (repo, branch and path) that %q at %s has: give each its own",
			t.Name, first.Name, first.Place)
		problems = append(problems, controlplane.Problem{Place: t.Place, Kind: kindWorkload, Name: t.Workload, Message: t.Broken})
	}
	return problems
}

// folderOf returns one text for all ways of writing one folder of manifests. A
// chart or a package has no folder, so ok is false for it.
func folderOf(manifests map[string]any) (folder string, ok bool) {
	repo, ok := manifests["repo"].(string)
	if !ok || repo == "" {
		return "", false
	}
	parts := make([]string, 0, 8)
	for _, key := range []string{"branch", "path", "type", "ref", "tag", "semver", "commit", "revision"} {
		v, there := manifests[key]
		if s, text := v.(string); there && text {
			parts = append(parts, s)
		} else {
			parts = append(parts, fmt.Sprint(v))
		}
	}
	if manifests["branch"] == nil && manifests["path"] == nil || manifests["chart"] != nil {
		return "", false
	}
	branch, _ := manifests["branch"].(string)
	dir, _ := manifests["path"].(string)
	if e, err := schema.NewEndpoint(repo, branch, dir); err == nil {
		repo, parts[0], parts[1] = e.Repo, e.Ref, e.Path
	}
	return repo + "\x00" + strings.Join(parts, "\x00"), true
}

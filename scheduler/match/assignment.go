package match

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
)

// Assignment is a deployment target on a cluster type. It points into the model
// and the targets that it was made of, which must not change any more.
type Assignment struct {
	ClusterType *controlplane.ClusterType
	Target      *DeploymentTarget
	// Policies are the names of the policies that ask for it, sorted: its reasons.
	Policies []string
}

// Name returns <cluster type>/<deployment target>, which is the assignment's
// folder, too.
func (a *Assignment) Name() string { return a.ClusterType.Name + "/" + a.Target.Name }

// Broken says why nothing may be rendered for the assignment, by its cluster
// type or its target; "" when it may.
func (a *Assignment) Broken() string { return cmp.Or(a.Target.Broken, a.ClusterType.Broken) }

// mostAssignments is how many assignments an environment may have.
const mostAssignments = 1_000_000

// Assignments returns what the policies of the model ask for, given the targets
// of Targets: each selected deployment target on each selected cluster type,
// once, sorted by name of cluster type, then target. More than a million are a
// problem.
func Assignments(m *controlplane.Model, targets []DeploymentTarget) ([]Assignment, []controlplane.Problem) {
	// The policies that select each cluster type and each target, by index.
	byType := make([]big.Int, len(m.ClusterTypes))
	byTarget := make([]big.Int, len(targets))
	for p := range m.Policies {
		policy := &m.Policies[p]
		for i := range m.ClusterTypes {
			if policy.ClusterTypes.Matches(m.ClusterTypes[i].Labels) {
				byType[i].SetBit(&byType[i], p, 1)
			}
		}
		for i := range targets {
			if t := &targets[i]; (policy.Workspace == "" || policy.Workspace == t.Workspace) && policy.Targets.Matches(t.Labels) {
				byTarget[i].SetBit(&byTarget[i], p, 1)
			}
		}
	}
	var all []Assignment
	reasons := map[string][]string{}
	var both big.Int
	for c := range m.ClusterTypes {
		for t := range targets {
			if both.And(&byType[c], &byTarget[t]).Sign() == 0 {
				continue
			}
			if len(all) == mostAssignments {
				p := m.Policies[both.TrailingZeroBits()]
				return all, []controlplane.Problem{{
					Place: p.Place, Kind: "SchedulingPolicy", Name: p.Name, Hides: true,
					Message: fmt.Sprintf("the policies ask for more than %d assignments, and what follows is left out: select less", mostAssignments),
				}}
			}
			key := string(both.Bytes())
			if reasons[key] == nil {
				reasons[key] = policyNames(&both, m.Policies)
			}
			all = append(all, Assignment{ClusterType: &m.ClusterTypes[c], Target: &targets[t], Policies: reasons[key]})
		}
	}
	return all, nil
}

// policyNames returns the sorted names of the policies in a set of indices.
func policyNames(set *big.Int, policies []controlplane.Policy) []string {
	var names []string
	for i := range policies {
		if set.Bit(i) == 1 {
			names = append(names, policies[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

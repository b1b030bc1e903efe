package scheduler

import (
	"github.com/landfall-hub/landfall/scheduler/compose"
	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/render"
)

// Plan is what an environment's GitOps repository should hold. It shares data
// with later plans of the same Planner and is read only.
type Plan struct {
	Environment string
	// PromotedCommit is the pinned commit of the promoted content; "" when the
	// environment names none.
	PromotedCommit string
	// Folders are the cluster types of the environment, sorted by name; one without
	// an assignment is among them, for its clusters look for a folder.
	Folders []ClusterTypeFolder
	// Assignments are sorted by cluster type, then deployment target.
	Assignments []Planned
	// Problems are those of the model and of planning, sorted. What a ConfigSchema
	// objects to is not among them, but in Planned.Violations.
	Problems []controlplane.Problem
}

// Complete says whether the plan holds everything that the control plane asks
// for. As long as a document is unreadable nobody knows what is missing, and
// nothing that the plan lacks may be deleted.
func (p *Plan) Complete() bool {
	for i := range p.Problems {
		if p.Problems[i].Hides {
			return false
		}
	}
	return true
}

// ClusterTypeFolder is the folder of a cluster type.
type ClusterTypeFolder struct {
	Name string
	// Readme is the text of its README.md, with Mark in the first line.
	Readme []byte
}

// Planned is an assignment with its files.
type Planned struct {
	ClusterType, DeploymentTarget string
	// Version is a hash of the files and their names: the id that Git gives the
	// assignment's folder, in hexadecimal (SHA-1). It is "" when Err is not.
	Version string
	// Files are sorted by name.
	Files []render.File
	// Policies are the names of the policies that ask for the assignment, sorted.
	Policies []string
	Config   compose.Config
	// Violations are what schemas object to. There are files only when there are
	// no violations.
	Violations []compose.Violation
	// Err says why nothing was rendered; "" when something was. The assignment's
	// last good output stays.
	Err string
}

// Name is <cluster type>/<deployment target>.
func (p *Planned) Name() string { return p.ClusterType + "/" + p.DeploymentTarget }

// New plans from cold.
func New(m controlplane.Model) Plan {
	return NewPlanner(render.Limits{}).Plan(m)
}

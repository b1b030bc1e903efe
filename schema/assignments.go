package schema

import "time"

// Assignment is what the scheduler decided for a deployment target and a cluster
// type of an environment.
type Assignment struct {
	Environment string `json:"environment"`
	ClusterType string `json:"cluster_type"`
	// DeploymentTarget is <workload>-<target>, the name of the folder; Target is the
	// name that the workload's own file has.
	DeploymentTarget string `json:"deployment_target"`
	Target           string `json:"target"`
	Workspace        string `json:"workspace"`
	Workload         string `json:"workload"`
	// Policies are those that ask for it, sorted.
	Policies []string `json:"policies"`
	// ConfigVersion is the id of its folder in Git; empty where Error is not.
	ConfigVersion string `json:"config_version"`
	// Error says why it could not be planned, so that its last good output stays;
	// empty mostly.
	Error string `json:"error"`
	// Repo, Ref and Path are its manifests endpoint as it was written; Repo is empty
	// where it names none.
	Repo string `json:"repo"`
	Ref  string `json:"ref"`
	Path string `json:"path"`
	// ControlPlane is the repository that it comes from. The commits are those of
	// the plan in which the assignment last changed.
	ControlPlane       string `json:"control_plane"`
	ControlPlaneCommit string `json:"control_plane_commit"`
	BaseCommit         string `json:"base_commit"`
	GitOpsRepo         string `json:"gitops_repo"`
	GitOpsRef          string `json:"gitops_ref"`
	// GitOpsCommit is a commit of the branch that holds it; empty where the plan
	// could not be published, or waits in a pull request.
	GitOpsCommit string    `json:"gitops_commit"`
	PlannedAt    time.Time `json:"planned_at"`
}

// AssignmentDetail is an assignment with where all of it comes from.
type AssignmentDetail struct {
	Assignment
	Files      []string        `json:"files"`
	Config     []ConfigValue   `json:"config"`
	Violations []ConfigProblem `json:"violations"`
}

// ConfigValue is a value of an assignment's configuration.
type ConfigValue struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// ConfigMap is the one that gave it, at Place (file:line); Overridden are those
	// that gave it before, in their order.
	ConfigMap  string   `json:"config_map"`
	Place      string   `json:"place"`
	Overridden []string `json:"overridden"`
}

// ConfigProblem is what a schema objects to in an assignment's configuration.
type ConfigProblem struct {
	// Key is empty for the configuration as a whole, ConfigMap where nobody gave the
	// value.
	Key       string `json:"key"`
	Schema    string `json:"schema"`
	ConfigMap string `json:"config_map"`
	Place     string `json:"place"`
	Message   string `json:"message"`
}

// AssignmentFilter narrows GET /assignments; empty members match all. A
// DeploymentTarget is its folder's name or the one that the workload's file has.
type AssignmentFilter struct {
	Environment      string
	ClusterType      string
	DeploymentTarget string
	Workload         string
	Workspace        string
}

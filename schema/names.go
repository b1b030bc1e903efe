package schema

import "time"

// Target names a deployment target: a role of a workload in one environment.
// What is not known is empty.
type Target struct {
	Environment      string `json:"environment"`
	Workspace        string `json:"workspace"`
	Application      string `json:"application"`
	Workload         string `json:"workload"`
	DeploymentTarget string `json:"deployment_target"`
}

// Deployed is what some of a deployment target's clusters run.
type Deployed struct {
	// Version falls back to the commit where no descriptor names one.
	Version       string `json:"version"`
	ConfigVersion string `json:"config_version"`
	// Commit is the applied one.
	Commit string `json:"commit"`
	Status Status `json:"status"`
	// Clusters counts the clusters that are deployed to.
	Clusters uint64 `json:"clusters"`
}

// EnvironmentState is a row of GET /state: what should run of a deployment
// target, and what does. Repo, Ref and Path are its manifests endpoint; rows
// without names are told apart by it.
type EnvironmentState struct {
	Target
	Repo string `json:"repo"`
	Ref  string `json:"ref"`
	Path string `json:"path"`
	// ScheduledVersion is the newest in Git, ScheduledCommit the commit of the
	// GitOps repository that brought it.
	ScheduledVersion       string     `json:"scheduled_version"`
	ScheduledCommit        string     `json:"scheduled_commit"`
	ScheduledConfigVersion string     `json:"scheduled_config_version"`
	Deployed               []Deployed `json:"deployed"`
}

// Change says how a row came into the history.
type Change string

// The changes.
const (
	// ChangeReported is a reconciler's new state.
	ChangeReported Change = "reported"
	// ChangeRemoved says that the reconciler is gone.
	ChangeRemoved Change = "removed"
	// ChangeLate came from an agent that was superseded, or out of order.
	ChangeLate Change = "late"
)

// HistoryEntry is a row of GET /history: one reported change of a reconciler,
// the newest first.
type HistoryEntry struct {
	ClusterState
	Change Change `json:"change"`
	// ObservedAt is the agent's time, ReceivedAt the hub's.
	ObservedAt time.Time `json:"observed_at"`
	ReceivedAt time.Time `json:"received_at"`
	// Rollback says that the reconciler went back to a version that it had
	// deployed before, after another one.
	Rollback bool `json:"rollback"`
	// CommitURL and CompareURL lead to the commit, and to what came with it since
	// the one that was deployed before, at the Git provider; empty where there is
	// none.
	CommitURL  string `json:"commit_url"`
	CompareURL string `json:"compare_url"`
}

// EnvironmentVersion is what one environment has of a deployment target.
type EnvironmentVersion struct {
	Environment            string     `json:"environment"`
	ScheduledVersion       string     `json:"scheduled_version"`
	ScheduledCommit        string     `json:"scheduled_commit"`
	ScheduledConfigVersion string     `json:"scheduled_config_version"`
	Deployed               []Deployed `json:"deployed"`
}

// Discrepancy is a row of GET /discrepancies: one deployment target side by
// side over environments.
type Discrepancy struct {
	Workspace        string `json:"workspace"`
	Application      string `json:"application"`
	Workload         string `json:"workload"`
	DeploymentTarget string `json:"deployment_target"`
	// Discrepant is false only in rows that were asked for with all=true.
	Discrepant   bool                 `json:"discrepant"`
	Environments []EnvironmentVersion `json:"environments"`
}

// Drift is a row of GET /drift: a reconciler that does not run what is desired,
// or that was changed live.
type Drift struct {
	ClusterState
	// DesiredVersion and DesiredCommit are of the newest assignment.
	DesiredVersion string `json:"desired_version"`
	DesiredCommit  string `json:"desired_commit"`
	// BehindCommits counts the commits on the ref between what is applied and what
	// is desired, -1 where that cannot be told. BehindSeconds is how long the oldest
	// change that is not applied has been waiting.
	BehindCommits int64  `json:"behind_commits"`
	BehindSeconds int64  `json:"behind_seconds"`
	CompareURL    string `json:"compare_url"`
}

// DORA is a row of GET /dora: the four figures of a deployment target between
// From and To. Times are in seconds.
type DORA struct {
	Target
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Deployments counts the versions that landed on at least one cluster, Commits
	// those that were tried, FailedCommits those of them that failed anywhere, each
	// once; Rollbacks counts deployments of a version that was there before.
	Deployments   uint64 `json:"deployments"`
	Commits       uint64 `json:"commits"`
	FailedCommits uint64 `json:"failed_commits"`
	Rollbacks     uint64 `json:"rollbacks"`
	// DeploymentsPerDay is Deployments over the length of the time asked for.
	DeploymentsPerDay float64 `json:"deployments_per_day"`
	// LeadTimeP50 and LeadTimeP95 are from the commit that brought a version into
	// the GitOps repository to its first success; absent without any.
	LeadTimeP50 *float64 `json:"lead_time_p50_seconds"`
	LeadTimeP95 *float64 `json:"lead_time_p95_seconds"`
	// ChangeFailureRate is FailedCommits over Commits, from 0 to 1; absent without
	// any commit.
	ChangeFailureRate *float64 `json:"change_failure_rate"`
	// TimeToRestore is the median time from a reconciler's first failure to its
	// next success; absent where nothing was restored.
	TimeToRestore *float64 `json:"time_to_restore_seconds"`
	// Unrestored counts failures that had not ended at To.
	Unrestored uint64 `json:"unrestored"`
}

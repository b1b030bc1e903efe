package schema

import "time"

// State is the answer to "may this commit go on?".
type State string

// The states of a gate.
const (
	Waiting State = "waiting"
	Passed  State = "passed"
	Failed  State = "failed"
)

// Outcome is the verdict on one subscriber for one commit.
type Outcome string

// The outcomes, which are also the keys of a verdict's counts.
const (
	OutcomeCompliant      Outcome = "compliant"
	OutcomeFailed         Outcome = "failed"
	OutcomeInProgress     Outcome = "in_progress"
	OutcomePending        Outcome = "pending"
	OutcomeSuspended      Outcome = "suspended"
	OutcomeUnknown        Outcome = "unknown"
	OutcomeUnknownLineage Outcome = "unknown_lineage"
)

// Severity returns the outcome's place in a list that shows the worst first:
// failed, unknown, unknown_lineage, pending, in_progress, suspended, compliant.
func (o Outcome) Severity() int {
	switch o {
	case OutcomeFailed:
		return 0
	case OutcomeUnknown:
		return 1
	case OutcomeUnknownLineage:
		return 2
	case OutcomePending:
		return 3
	case OutcomeInProgress:
		return 4
	case OutcomeSuspended:
		return 5
	case OutcomeCompliant:
		return 6
	}
	return 1
}

// Verdict answers for one (endpoint, commit): each subscriber's outcome and all
// together, judged at EvaluatedAt.
type Verdict struct {
	// Repo, Ref, Path and Commit repeat the question as it was written.
	Repo   string `json:"repo"`
	Ref    string `json:"ref"`
	Path   string `json:"path"`
	Commit string `json:"commit"`

	State  State  `json:"state"`
	Reason string `json:"reason"`
	Policy Policy `json:"policy"`

	// Counts add up to Total over the seven outcomes.
	Counts        Counts               `json:"counts"`
	ByClusterType map[string]TypeCount `json:"by_cluster_type"`
	// Unfinished holds who is not compliant and why, worst first. It is cut at
	// MaxUnfinished rows; the counts never are.
	Unfinished []Unfinished `json:"unfinished"`
	// Currently holds the compliant ones whose status is not success now.
	Currently  []Currently `json:"currently"`
	NearMisses []NearMiss  `json:"near_misses"`

	// DeadlineAt is when the gate fails without further progress.
	DeadlineAt  time.Time `json:"deadline_at"`
	EvaluatedAt time.Time `json:"evaluated_at"`
}

// MaxUnfinished, MaxCurrently and MaxNearMisses cap the lists of a verdict.
const (
	MaxUnfinished = 1000
	MaxCurrently  = 1000
	MaxNearMisses = 100
)

// Counts counts subscribers by outcome.
type Counts struct {
	Total          int `json:"total"`
	Compliant      int `json:"compliant"`
	Failed         int `json:"failed"`
	InProgress     int `json:"in_progress"`
	Pending        int `json:"pending"`
	Suspended      int `json:"suspended"`
	Unknown        int `json:"unknown"`
	UnknownLineage int `json:"unknown_lineage"`
}

// Add counts one subscriber.
func (c *Counts) Add(o Outcome) {
	c.Total++
	switch o {
	case OutcomeCompliant:
		c.Compliant++
	case OutcomeFailed:
		c.Failed++
	case OutcomeInProgress:
		c.InProgress++
	case OutcomePending:
		c.Pending++
	case OutcomeSuspended:
		c.Suspended++
	case OutcomeUnknownLineage:
		c.UnknownLineage++
	default:
		c.Unknown++
	}
}

// TypeCount counts the subscribers of one cluster type.
type TypeCount struct {
	Total     int `json:"total"`
	Compliant int `json:"compliant"`
}

// Unfinished is a subscriber that is not compliant.
type Unfinished struct {
	Cluster    string  `json:"cluster"`
	Reconciler string  `json:"reconciler"`
	Verdict    Outcome `json:"verdict"`
	Reason     string  `json:"reason"`
	// Revision is the one that the reconciler is at, as it was reported.
	Revision string `json:"revision"`
}

// Currently is a compliant subscriber whose status is not success now.
type Currently struct {
	Cluster    string `json:"cluster"`
	Reconciler string `json:"reconciler"`
	Status     Status `json:"status"`
	Reason     string `json:"reason"`
}

// NearMiss is a reconciler that reads the same repository and is not asked for.
type NearMiss struct {
	Cluster    string     `json:"cluster"`
	Reconciler string     `json:"reconciler"`
	Ref        string     `json:"ref"`
	Path       string     `json:"path"`
	Why        NearReason `json:"why"`
}

// NearReason says why a near miss is none of the subscribers.
type NearReason string

// The reasons of a near miss.
const (
	NearOtherRef   NearReason = "other_ref"
	NearPinned     NearReason = "pinned"
	NearParentPath NearReason = "parent_path"
)

// ClusterState is a row of GET /state/clusters. Fields without a name yet are
// empty strings. Commit is the applied one.
type ClusterState struct {
	Cluster          string    `json:"cluster"`
	ClusterType      string    `json:"cluster_type"`
	Environment      string    `json:"environment"`
	Workspace        string    `json:"workspace"`
	Application      string    `json:"application"`
	Workload         string    `json:"workload"`
	DeploymentTarget string    `json:"deployment_target"`
	Reconciler       string    `json:"reconciler"`
	Repo             string    `json:"repo"`
	Ref              string    `json:"ref"`
	Path             string    `json:"path"`
	Version          string    `json:"version"`
	ConfigVersion    string    `json:"config_version"`
	Commit           string    `json:"commit"`
	AttemptedCommit  string    `json:"attempted_commit"`
	Status           Status    `json:"status"`
	Reason           string    `json:"reason"`
	Message          string    `json:"message"`
	Drifted          bool      `json:"drifted"`
	Since            time.Time `json:"since"`
	LastSeen         time.Time `json:"last_seen"`
}

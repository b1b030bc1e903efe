// Package compliance judges a commit: subscribers, commit graph, policy and
// the time in, a verdict out. It is pure: it reads no clock, no store and no
// network, and every row of its tables is a test.
package compliance

import (
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// Input is everything a verdict depends on.
type Input struct {
	// Question is what was asked, as it was written, for display.
	Question Question
	// Endpoint is the question in canonical form; Commit is a full id in lower case.
	Endpoint schema.Endpoint
	Commit   string

	Policy schema.Policy
	// Mandatory selects clusters by their labels; nil when the policy names none.
	Mandatory func(labels map[string]string) bool

	// Subscribers are the reconcilers that read the endpoint, the expected ones
	// that never reported, and, with Asked false, other reconcilers of the same
	// repository and ref that are owned by a reconciler.
	Subscribers []Subscriber
	NearMisses  []schema.NearMiss

	Graph Graph
	// Progress is what is stored of this gate; zero for the first question.
	Progress Progress
	Rules    Rules
	Now      time.Time
}

// Question is an endpoint and a commit as they were written.
type Question struct {
	Repo, Ref, Path, Commit string
}

// Rules are the hub's own settings, the same for every question.
type Rules struct {
	// SilentAfter is how many heartbeat intervals a cluster may be unheard of.
	SilentAfter int
	// AgeAfter is how long a wait for an artifact or a dependency, or a failure
	// at no known commit, counts as in progress.
	AgeAfter time.Duration
}

// DefaultRules are five heartbeats and five minutes.
func DefaultRules() Rules { return Rules{SilentAfter: 5, AgeAfter: 5 * time.Minute} }

// Cluster is what a verdict needs to know of a registered cluster.
type Cluster struct {
	Name              string
	Labels            map[string]string
	HeartbeatInterval time.Duration
	// LastSeen is when the hub last heard of its current agent; never zero (a
	// registration is a sign of life).
	LastSeen time.Time
	// UnlistedKinds are the kinds that its agent cannot list any more.
	UnlistedKinds []string
	// Blocked says which of its reconcilers own something unsettled.
	Blocked []Blocked
}

// Blocked says that an unsettled reconciler stands somewhere below Owner: one
// that has not succeeded at its current generation.
type Blocked struct {
	Owner schema.ObjectRef
	// Repo and Ref are the canonical endpoint that the unsettled child reads,
	// empty when it reads none: a child of the endpoint asked for is judged at
	// the commit instead.
	Repo, Ref string
	// Status is the worst one below Owner for that endpoint, with the child it
	// belongs to and that child's reason.
	Status schema.Status
	Child  schema.ObjectRef
	Reason string
	// Count is how many children are unsettled.
	Count int
}

// Subscriber is one reconciler as far as the question goes.
type Subscriber struct {
	Ref schema.ObjectRef
	// Reporter is the cluster whose agent reports it: its heartbeat is what
	// silence is judged by. Destination is where it deploys; the same mostly.
	// Destination is nil when that cluster is not registered.
	Reporter    *Cluster
	Destination *Cluster
	// DestinationName is shown; ClusterType is "" when it is not known.
	DestinationName string
	ClusterType     string

	// Asked is false for one that is here only as a possible child.
	Asked bool
	// Expected is true for one that never reported: only Ref, the clusters and
	// the type are set.
	Expected bool

	Owner *schema.ObjectRef
	// Sources are its sources at the endpoint asked for; one mostly.
	Sources []Source

	Status      schema.Status
	Reason      string
	Message     string
	SourceError string
	// AgingSince is when the hub first saw the present reason at the present
	// revision, for reasons that age to a failure; zero for all others.
	AgingSince time.Time
	// Revision is the text shown beside it: attempted, or applied.
	Revision string
	// OpaquePaths is true when its paths hold references that the graph cannot
	// follow, so that equal trees prove nothing.
	OpaquePaths bool
}

// Source is one source of a subscriber at the endpoint asked for.
type Source struct {
	Path string
	// Applied and Attempted are commits, "" when not known.
	Applied, Attempted string
	// Runs are the commits that it applied, oldest first, the last one being
	// Applied. At least the newest ones are here.
	Runs []Run
}

// Run is a span of time in which one commit was applied.
type Run struct {
	Commit string
	// SuccessAt is when success was first seen in it; zero for never.
	SuccessAt time.Time
	// SteadyAt is when success was first seen since the last failure at Commit;
	// zero while it fails, or before the first success.
	SteadyAt time.Time
	// Failed says that a failure at Commit was seen in it.
	Failed bool
}

// Progress is what a gate keeps between questions.
type Progress struct {
	// FirstAsked is when the question was first asked.
	FirstAsked time.Time
	// Highest is the highest number of compliant subscribers so far, RoseAt
	// when it was reached.
	Highest int
	RoseAt  time.Time
}

// Result is a verdict with what is to be kept and when to look again.
type Result struct {
	Verdict  schema.Verdict
	Progress Progress
	// NextAt is the first moment at which the verdict may change though nothing
	// new is reported (soak, deadline, silence, ageing); zero for never.
	NextAt time.Time
}

// Relation says how a commit stands to another in one repository's graph.
type Relation int

// The relations of a to b.
const (
	// Unknown means that the graph does not know one of them.
	Unknown Relation = iota
	// Same means that they are one commit.
	Same
	// Descendant means that a comes after b.
	Descendant
	// Ancestor means that a comes before b.
	Ancestor
	// Unrelated means that neither reaches the other (a force-push, a rebase).
	Unrelated
)

// Graph answers questions about the commits of the repository asked for.
// Commits are full ids in lower case.
type Graph interface {
	// Relate says how a stands to b.
	Relate(a, b string) Relation
	// SameTrees reports whether every one of the folders has the same tree at
	// both commits; ok is false when that cannot be told.
	SameTrees(a, b string, folders []string) (same, ok bool)
	// FirstParent returns a commit's first parent.
	FirstParent(commit string) (parent string, ok bool)
	// SelfContained reports whether a folder at a commit is known to depend on
	// nothing outside it: only then an unchanged folder means that nothing changed
	// for who reads it.
	SelfContained(commit, folder string) bool
	// Head returns the newest commit fetched for a ref.
	Head(ref string) (commit string, ok bool)
}

// Equality is the graph of a repository that nobody fetches: commits are the
// same or nothing is known of them.
type Equality struct{}

// Relate knows only equality.
func (Equality) Relate(a, b string) Relation {
	if a == b {
		return Same
	}
	return Unknown
}

// SameTrees knows nothing.
func (Equality) SameTrees(string, string, []string) (same, ok bool) { return false, false }

// SelfContained knows nothing.
func (Equality) SelfContained(string, string) bool { return false }

// FirstParent knows nothing.
func (Equality) FirstParent(string) (parent string, ok bool) { return "", false }

// Head knows nothing.
func (Equality) Head(string) (commit string, ok bool) { return "", false }

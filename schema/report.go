package schema

import (
	"strings"
	"time"
)

// Mode says how a report relates to what was reported before.
type Mode string

// The modes of a report.
const (
	// ModeSnapshot names kinds that were listed completely: objects of these
	// kinds that it does not hold are gone.
	ModeSnapshot Mode = "snapshot"
	// ModeDelta holds what changed, and what was removed.
	ModeDelta Mode = "delta"
)

// Report is one message of an agent: what it saw of its cluster's reconcilers.
// (Epoch, Sequence) orders the messages of a cluster; no clock does.
type Report struct {
	Agent      Agent     `json:"agent,omitzero"`
	Epoch      uint64    `json:"epoch"`
	Sequence   uint64    `json:"sequence"`
	Mode       Mode      `json:"mode"`
	ObservedAt time.Time `json:"observed_at"`

	// Kinds are the kinds that a snapshot covers.
	Kinds []string `json:"kinds,omitzero"`
	// Part and Parts number the messages of a snapshot sent in pieces, from 1.
	// Both are zero for a snapshot in one piece.
	Part  int `json:"part,omitempty"`
	Parts int `json:"parts,omitempty"`
	// UnlistedKinds are the kinds that were listed before and cannot be now.
	// Nil leaves what was said before; a snapshot takes the kinds it covers
	// off the list; an empty list clears it.
	UnlistedKinds []string `json:"unlisted_kinds,omitzero"`

	Reconcilers []Reconciler `json:"reconcilers,omitempty"`
	// Removed are the reconcilers that a delta says are gone.
	Removed []ObjectRef `json:"removed,omitempty"`
}

// Agent describes the program that reports.
type Agent struct {
	Version string `json:"version,omitempty"`
}

// ObjectRef names a reconciler on its reporting cluster.
type ObjectRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns kind/namespace/name, the form that answers and tables show.
func (r ObjectRef) String() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// ParseObjectRef reads what String writes. It returns the zero reference for
// any other text.
func ParseObjectRef(s string) ObjectRef {
	kind, rest, _ := strings.Cut(s, "/")
	namespace, name, ok := strings.Cut(rest, "/")
	if !ok {
		return ObjectRef{}
	}
	return ObjectRef{Kind: kind, Namespace: namespace, Name: name}
}

// IsZero reports whether r names nothing.
func (r ObjectRef) IsZero() bool { return r == ObjectRef{} }

// Compare orders references by kind, namespace and name.
func (r ObjectRef) Compare(o ObjectRef) int {
	if c := strings.Compare(r.Kind, o.Kind); c != 0 {
		return c
	}
	if c := strings.Compare(r.Namespace, o.Namespace); c != 0 {
		return c
	}
	return strings.Compare(r.Name, o.Name)
}

// SourceType is the storage that a reconciler reads its manifests from.
type SourceType string

// The source types.
const (
	SourceGit    SourceType = "git"
	SourceOCI    SourceType = "oci"
	SourceHelm   SourceType = "helm"
	SourceBucket SourceType = "bucket"
)

// Source is one place a reconciler reads manifests from, as it was written.
// Ref is a branch, `refs/tags/…`, `semver:…` or a full commit id; for Helm and
// OCI a version, tag or digest. Path is a folder; for Helm the chart's name.
type Source struct {
	Type SourceType `json:"type"`
	URL  string     `json:"url"`
	Ref  string     `json:"ref,omitempty"`
	Path string     `json:"path,omitempty"`
}

// Reconciler is the state of one Flux Kustomization or HelmRelease, Argo CD
// Application, Fleet BundleDeployment, Zarf package or host runner.
// Attempted, Applied and Origin hold a revision per source, in the order of
// Sources; each may be empty when nothing is known.
type Reconciler struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Cluster is the destination when it is not the reporting cluster.
	Cluster string   `json:"cluster,omitempty"`
	Sources []Source `json:"sources"`

	Status  Status `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	Attempted []string `json:"attempted,omitempty"`
	Applied   []string `json:"applied,omitempty"`
	// Origin holds Git revisions behind sources that are not Git (OCI).
	Origin []string `json:"origin,omitempty"`
	// SourceRevision is the revision of the source object's artifact.
	SourceRevision string `json:"source_revision,omitempty"`
	// SourceError says why the source cannot fetch while an old artifact serves.
	SourceError string `json:"source_error,omitempty"`
	// GenerationObserved says whether the reconciler has looked at the current
	// generation of its own specification. Nil means that its kind cannot say.
	GenerationObserved *bool `json:"generation_observed,omitempty"`

	Health    string `json:"health,omitempty"`
	Suspended bool   `json:"suspended,omitempty"`
	Drifted   bool   `json:"drifted,omitempty"`

	// Since is when the status began, by the reconciler's own word.
	Since time.Time `json:"since,omitzero"`
	// ObservedAt is when the agent saw it, when that is not the report's time.
	ObservedAt time.Time `json:"observed_at,omitzero"`

	// Owner is the reconciler on the same cluster whose manifests made this one.
	Owner *ObjectRef `json:"owner,omitempty"`
}

// Ref returns the reconciler's identity on its reporting cluster.
func (r *Reconciler) Ref() ObjectRef {
	return ObjectRef{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// Destination returns the cluster that the reconciler deploys to: the reporting
// one, unless it says another.
func (r *Reconciler) Destination(reporter string) string {
	if r.Cluster != "" {
		return r.Cluster
	}
	return reporter
}

// ReportAnswer acknowledges a report: it is stored.
type ReportAnswer struct {
	CurrentEpoch uint64 `json:"current_epoch"`
}

// Heartbeat says that an agent lives and what it believes the hub knows.
// Sequence is the last acknowledged one and Digest the state digest as of it;
// an empty digest asks for no comparison.
type Heartbeat struct {
	Agent    Agent  `json:"agent,omitzero"`
	Epoch    uint64 `json:"epoch"`
	Sequence uint64 `json:"sequence"`
	Digest   string `json:"digest,omitempty"`
}

// HeartbeatAnswer tells an agent where it stands. Resync asks the agent of the
// current epoch for a snapshot; Silent tells a superseded agent that the
// current epoch has not been heard of for longer than allowed.
type HeartbeatAnswer struct {
	CurrentEpoch uint64 `json:"current_epoch"`
	Resync       bool   `json:"resync"`
	Silent       bool   `json:"silent"`
}

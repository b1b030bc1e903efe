package record

import (
	"crypto/sha256"

	"github.com/landfall-hub/landfall/schema"
)

// ScheduleKey names an assignment of the scheduler.
type ScheduleKey struct{ Environment, ClusterType, DeploymentTarget string }

// Schedule is what the scheduler decided.
type Schedule struct {
	schema.AssignmentDetail
	// Endpoint is the manifests endpoint in canonical form, zero for none; GitOps
	// the repository and ref that it is published to.
	Endpoint, GitOps schema.Endpoint
	// Digest is a hash of all but the commits and times.
	Digest ScheduleDigest
	// Gone says that it is assigned no more.
	Gone bool
}

// Key returns its name.
func (s *Schedule) Key() ScheduleKey {
	return ScheduleKey{s.Environment, s.ClusterType, s.DeploymentTarget}
}

// ScheduleDigest tells whether an assignment is as it was.
type ScheduleDigest [sha256.Size]byte

// Scheduled is what a hub must remember of an assignment.
type Scheduled struct {
	ScheduleKey
	Endpoint, GitOps schema.Endpoint
	Digest           ScheduleDigest
}

// Expected says that the clusters of a type should read an endpoint.
type Expected struct {
	Environment, ClusterType string
	// Path is the folder that they should read, in canonical form.
	Path string
	// Name is the deployment target's; the cluster type's for its own folder.
	Name string
}

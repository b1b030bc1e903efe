// Package names says what a commit at an endpoint means: which deployment
// target it is, and which workload version and configuration it carries there.
// It is a pure function of what hub/catalog read from Git and was told.
package names

import (
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// Target is a deployment target with its manifests endpoint.
type Target struct {
	schema.Target
	Labels map[string]string
	// Endpoint is canonical: the repository's own name, not an alias, and the
	// default branch by its name where that is known.
	Endpoint schema.Endpoint
	// URL is the repository as it was written, without user info, for display and
	// links.
	URL string
}

// Version is what a descriptor says of a workload version.
type Version struct {
	Version, Build string
	// SourceRepo is as it was written, without user info.
	SourceRepo   string
	SourceCommit string
	BuildTime    time.Time
}

// Point is a commit's place on a ref. Position counts along the ref's chain of
// first parents from 0; a side commit has the one of the merge that brought it.
// A ref that was forced elsewhere has a new Chain from there on: points are
// comparable within one chain only.
type Point struct {
	Chain       uint32
	Position    int64
	Commit      string
	CommittedAt time.Time
}

// Facts are what an Index is made of. Nobody changes them afterwards.
type Facts struct {
	Repos []Repo
	// Targets are one for each name, in any order. Their endpoints need not be in
	// Repos.
	Targets []Target
	// Former are those that nothing names any more. They are known by their
	// endpoints, where no other target is, because clusters may still run them.
	Former []Target
	// Environments say which environment a repository and ref serve, beside what
	// the targets say.
	Environments []Environment
}

// Environment says that the ref of a repository, both canonical, serves one.
type Environment struct{ Repo, Ref, Name string }

// Repo is a repository whose commits have places.
type Repo struct {
	// Names are canonical, the repository's own first.
	Names []string
	// Written is its address as it was configured, without user info; empty where
	// nobody follows the repository and its commits are known from pushed
	// descriptors only.
	Written string
	// Default is the default branch; empty where that is not known.
	Default string
	Refs    []Ref
}

// Ref is a ref of a repository with what its history says.
type Ref struct {
	// Name is canonical.
	Name    string
	Lineage Lineage
	// Chains are in the order of their numbers, at least one.
	Chains []Chain
	// Assignments of a target are in the order of chain and position. Those of a
	// chain come after its fork.
	Assignments map[schema.Target][]Assignment
	// Configured says that folders of the ref hold configurations.
	Configured bool
}

// Chain is a line of first parents that a ref has followed.
type Chain struct {
	Number uint32
	// Fork is the last position that it shares with the chain before it, -1 where
	// it shares none.
	Fork int64
}

// Assignment says that a target carries a version from a position on; none where
// Version is nil.
type Assignment struct {
	Chain    uint32
	Position int64
	Version  *Version
}

// Lineage places commits on the chains of a ref, as they were at one moment.
type Lineage interface {
	// Place returns the point of a commit on the newest chain that it lies on.
	Place(commit string) (Point, bool)
	// On returns the point at a position of a chain.
	On(chain uint32, position int64) (Point, bool)
	// Head is the newest commit of the newest chain.
	Head() (Point, bool)
	// Configuration returns the version of the configuration that a folder holds
	// at a commit; empty where it holds none, or that is not known.
	Configuration(commit, folder string) string
}

package record

import (
	"time"

	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/schema"
)

// RefKey names a ref of a repository by its own canonical name.
type RefKey struct{ Repo, Ref string }

// Repository is a repository under one of its names.
type Repository struct {
	// Alias is the name, Repo the repository's own.
	Alias, Repo string
	// URL is as it was configured, without user info; empty where nobody follows
	// the repository.
	URL, Default string
}

// Chain is how far a chain of a ref is written.
type Chain struct {
	RefKey
	Number uint32
	// Fork is the last position that it shares with the one before it, or -1.
	Fork     int64
	Head     string
	Position int64
	// Basis says under which names of the repository it was read.
	Basis uint64
}

// Commit is where a commit stands on a ref.
type Commit struct {
	RefKey
	ID       string
	Chain    uint32
	Position int64
	Parents  []string
	Author   string
	// At is the committer's time.
	At      time.Time
	Subject string
}

// Assignment says that a target carries a version from a position on.
type Assignment struct {
	RefKey
	Target   schema.Target
	Chain    uint32
	Position int64
	// Commit is the one that brought it.
	Commit string
	// Version is nil where the target carries none from there on.
	Version *names.Version
	// File is where its descriptor is; empty for one that was pushed.
	File string
	// Changed is the position at which the descriptor's file changed last.
	Changed int64
}

// Configuration says that a folder holds a configuration from a position on;
// none where Version is empty.
type Configuration struct {
	RefKey
	Path     string
	Chain    uint32
	Position int64
	Version  string
}

// NamedTarget is a deployment target as the store keeps it.
type NamedTarget struct {
	names.Target
	// Source is what names it: descriptor or workload.
	Source string
	// Gone says that nothing names it any more.
	Gone bool
}

// Pushed is a descriptor that came by the API.
type Pushed struct {
	RefKey
	Commit     string
	Target     names.Target
	Version    names.Version
	ReceivedAt time.Time
}

// Names are rows that belong together.
type Names struct {
	Targets        []NamedTarget
	Assignments    []Assignment
	Configurations []Configuration
	Commits        []Commit
	Chains         []Chain
}

// Len returns the number of rows.
func (n *Names) Len() int {
	return len(n.Targets) + len(n.Assignments) + len(n.Configurations) + len(n.Commits) + len(n.Chains)
}

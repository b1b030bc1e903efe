package host

import (
	"strings"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// Identity of the reconcilers: Kind/Namespace/<name of the folder>.
const (
	Kind      = "HostRunner"
	Namespace = "host"
)

// outcome is what became of the last apply, empty before the first.
type outcome string

const (
	// running: it began. After a restart, it was cut off.
	running   outcome = "running"
	succeeded outcome = "success"
	failed    outcome = "failure"
)

// The reasons. ArtifactFailed is Flux's word for a source that was never
// fetched: the hub lets it age to a failure.
const (
	reasonStarting    = "Starting"
	reasonSource      = "ArtifactFailed"
	reasonApplying    = "Applying"
	reasonInterrupted = "Interrupted"
	reasonApplied     = "ApplySucceeded"
	reasonUnchanged   = "FolderUnchanged"
	reasonFailed      = "ApplyFailed"
	reasonTimeout     = "ApplyTimeout"
	reasonNotStarted  = "ApplyNotStarted"
	reasonLeft        = "ProcessesLeft"
	reasonPath        = "PathMissing"
	reasonNotWritten  = "FolderNotWritten"
	reasonSuspended   = "Suspended"
)

// state is what is known of a folder. It is what is on disk, but for its last
// member.
type state struct {
	// Source is the place in Git that all this is about.
	Source string `json:"source"`
	// Applied is the commit that the machine runs, as far as the agent knows.
	Applied string `json:"applied"`
	// Attempted is the commit of the last apply, Tree its folder's tree id and
	// Command the apply command's digest then.
	Attempted string  `json:"attempted"`
	Tree      string  `json:"tree"`
	Command   string  `json:"command"`
	Outcome   outcome `json:"outcome"`
	Reason    string  `json:"reason"`
	Message   string  `json:"message"`
	// Since is when the outcome came.
	Since time.Time `json:"since"`
	// Failures counts the failures in a row.
	Failures int `json:"failures"`
	// Run marks the processes of the apply that is running.
	Run string `json:"run"`

	// sourceError is why the repository could not be read just now.
	sourceError string
}

// step is what is to be done about a commit.
type step int

const (
	// stay: everything is as it should be.
	stay step = iota
	// wait: it failed, and is not to be tried again yet.
	wait
	// move: the commit changed nothing in the folder; it is applied without a
	// command.
	move
	// apply: run the command.
	apply
)

// next decides what to do about the newest commit. due says that a failed apply
// may be tried again.
func (s *state) next(commit, tree, command string, due bool) step {
	same := s.Tree == tree && s.Command == command
	switch {
	case same && s.Outcome == succeeded && s.Applied == commit:
		return stay
	case same && s.Outcome == succeeded:
		return move
	case same && s.Outcome == failed && !due:
		return wait
	}
	return apply
}

// facts makes what is reported of what is known. First matching row wins:
//
//	suspended in the settings                    suspended    at applied
//	the command runs, or was cut off             in_progress  at attempted
//	it failed, or the path is missing            failure      at attempted
//	it succeeded, or nothing changed             success      at applied
//	nothing was applied, Git cannot be read      in_progress, ArtifactFailed: ages to failure in the hub
//	nothing was applied yet                      in_progress
//
// In all of them source_error says that Git cannot be read now; what was there
// before stays.
func facts(f *FolderConfig, s *state) schema.Reconciler {
	r := schema.Reconciler{
		Kind: Kind, Namespace: Namespace, Name: f.Name,
		Sources: []schema.Source{{Type: schema.SourceGit, URL: schema.StripUserInfo(f.Repo), Ref: f.Ref, Path: f.Path}},
		Reason:  s.Reason, Message: s.Message, Since: s.Since, SourceError: s.sourceError,
		Attempted: revisions(f.Ref, s.Attempted), Applied: revisions(f.Ref, s.Applied),
	}
	switch {
	case f.Suspend:
		r.Status, r.Suspended = schema.StatusSuspended, true
		r.Reason, r.Message, r.Since = reasonSuspended, "the folder is suspended in the agent's settings", time.Time{}
	case s.Outcome == running:
		r.Status = schema.StatusInProgress
	case s.Outcome == failed:
		r.Status = schema.StatusFailure
	case s.Outcome == succeeded:
		r.Status = schema.StatusSuccess
	case s.sourceError != "":
		r.Status, r.Reason, r.Message = schema.StatusInProgress, reasonSource, "nothing was fetched yet: "+s.sourceError
	default:
		r.Status, r.Reason, r.Message = schema.StatusInProgress, reasonStarting, "nothing was fetched yet"
	}
	return r
}

// revisions writes a commit as Flux does: main@sha1:…, or sha1:… where there is
// no name.
func revisions(ref, commit string) []string {
	if commit == "" {
		return nil
	}
	ref = strings.TrimPrefix(ref, "refs/heads/")
	if ref == "" || schema.IsCommit(ref) {
		return []string{"sha1:" + commit}
	}
	return []string{ref + "@sha1:" + commit}
}

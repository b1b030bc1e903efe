// Package fold turns a cluster's reports into its state: the one before, a
// report and the time of its arrival in, what changed out. It is pure, so that
// a report that is sent again after a crash changes the same things the same
// way, whichever hub receives it.
package fold

import (
	"slices"
	"time"
	"unique"

	"github.com/landfall-hub/landfall/schema"
)

// State is what the hub knows of one cluster's reconcilers.
type State struct {
	Position Position
	Entries  map[schema.ObjectRef]*Entry

	// unsettled holds the entries that have not succeeded at their generation.
	unsettled map[schema.ObjectRef]struct{}
}

// Position is where a cluster's stream of messages stands.
type Position struct {
	Epoch, Sequence uint64
	// Digest is that of all entries together.
	Digest schema.Digest
	// UnlistedKinds are sorted.
	UnlistedKinds []string
	AgentVersion  string
	Snapshot      Snapshot
}

// Version returns the number that orders the cluster's messages.
func (p Position) Version() uint64 { return schema.Version(p.Epoch, p.Sequence) }

// Snapshot is how far a snapshot in parts has come; zero when none is open.
type Snapshot struct {
	// Start is the sequence of its first part.
	Start       uint64
	Part, Parts int
	Kinds       []string
}

// Entry is one reconciler, reduced to what the next report is compared with.
type Entry struct {
	Digest  schema.Digest
	Version uint64
	// Endpoints are the canonical endpoints that it subscribes to, each once.
	Endpoints []unique.Handle[schema.Endpoint]
	Owner     schema.ObjectRef
	Status    schema.Status
	Reason    string
	// Since is when the status began.
	Since time.Time
	// Settled says that success was seen at its current generation.
	Settled bool
	Latch   Latch
}

// NewState returns the state of a cluster that never reported.
func NewState() *State {
	return &State{Entries: map[schema.ObjectRef]*Entry{}, unsettled: map[schema.ObjectRef]struct{}{}}
}

// Put restores an entry that was stored, without telling anybody. The caller
// sets the position afterwards, but for its digest, which Put keeps.
func (s *State) Put(ref schema.ObjectRef, e *Entry) {
	if old, ok := s.Entries[ref]; ok {
		s.Position.Digest.Toggle(old.Digest)
	}
	s.Entries[ref] = e
	s.Position.Digest.Toggle(e.Digest)
	if e.Settled {
		delete(s.unsettled, ref)
		return
	}
	s.unsettled[ref] = struct{}{}
}

func (s *State) remove(ref schema.ObjectRef) {
	e := s.Entries[ref]
	s.Position.Digest.Toggle(e.Digest)
	delete(s.Entries, ref)
	delete(s.unsettled, ref)
}

// Endpoints returns the canonical endpoints of a reconciler's sources, each
// once, in the order of the sources, and for each the index of its first source.
// The report must be valid.
func Endpoints(r *schema.Reconciler) (endpoints []unique.Handle[schema.Endpoint], index []int) {
	for i := range r.Sources {
		e, err := r.Sources[i].Endpoint()
		if err != nil {
			continue // Validate refuses it; nothing to subscribe to
		}
		h := unique.Make(e)
		if slices.Contains(endpoints, h) {
			continue
		}
		endpoints, index = append(endpoints, h), append(index, i)
	}
	return endpoints, index
}

package fold

import (
	"maps"
	"slices"
	"time"
	"unique"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/schema"
)

// Changes is what one message changes in a cluster's state and history.
type Changes struct {
	Cluster    string
	ReceivedAt time.Time
	Report     *schema.Report
	// Late is true for a message of an older epoch or a lower sequence: its
	// reconcilers go to history and nothing else changes.
	Late bool

	Upserts  []Upsert
	Removals []Removal
	// Position and Blocked are the cluster's after the message.
	Position Position
	Blocked  []compliance.Blocked
}

// Upsert is a reconciler to write.
type Upsert struct {
	Reconciler *schema.Reconciler
	// Entry is its new state; it must not be changed.
	Entry Entry
	// Index holds, for each of the entry's endpoints, the source that reads it.
	Index []int
	// Changed says that it differs from what was known, and so belongs to history.
	Changed bool
	// Left are the endpoints that it no longer reads.
	Left []unique.Handle[schema.Endpoint]
}

// GateMessage is the message that a gate shows: none for a success.
func (u *Upsert) GateMessage() string {
	if u.Reconciler.Status == schema.StatusSuccess {
		return ""
	}
	return u.Reconciler.Message
}

// Removal is a reconciler that is gone.
type Removal struct {
	Ref schema.ObjectRef
	// Endpoints are those that it read.
	Endpoints []unique.Handle[schema.Endpoint]
}

// Late returns the changes of a message that came too late to be current.
func Late(cluster string, r *schema.Report, now time.Time) Changes {
	c := Changes{Cluster: cluster, ReceivedAt: now, Report: r, Late: true}
	for i := range r.Reconcilers {
		c.Upserts = append(c.Upserts, Upsert{Reconciler: &r.Reconcilers[i], Changed: true})
	}
	for _, ref := range r.Removed {
		c.Removals = append(c.Removals, Removal{Ref: ref})
	}
	return c
}

// Apply folds a message into the state and returns what changed. The message
// must be valid, normalized, and newer than the position: of a higher epoch, or
// of the same epoch with a higher sequence.
func (s *State) Apply(cluster string, r *schema.Report, now time.Time) Changes {
	now = now.UTC().Truncate(time.Millisecond)
	c := Changes{Cluster: cluster, ReceivedAt: now, Report: r}
	complete := s.advance(r)
	version := s.Position.Version()
	for i := range r.Reconcilers {
		u, write := s.upsert(&r.Reconcilers[i], r, version, now)
		if write {
			c.Upserts = append(c.Upserts, u)
		}
	}
	gone := r.Removed
	if complete {
		gone = s.missing()
		s.Position.Snapshot = Snapshot{}
	}
	for _, ref := range gone {
		e, ok := s.Entries[ref]
		if !ok {
			continue
		}
		c.Removals = append(c.Removals, Removal{Ref: ref, Endpoints: e.Endpoints})
		s.remove(ref)
	}
	c.Position = s.Position
	c.Blocked = s.blocked()
	return c
}

// advance moves the position to the message and reports whether the message
// completes a snapshot.
func (s *State) advance(r *schema.Report) (complete bool) {
	p := &s.Position
	before := *p
	p.Epoch, p.Sequence = r.Epoch, r.Sequence
	if r.Agent.Version != "" {
		p.AgentVersion = r.Agent.Version
	}
	p.Snapshot = Snapshot{}
	if r.Mode == schema.ModeSnapshot {
		complete = p.advanceSnapshot(before, r)
	}
	if r.UnlistedKinds != nil {
		p.UnlistedKinds = sorted(r.UnlistedKinds)
	}
	if complete {
		p.UnlistedKinds = without(p.UnlistedKinds, p.Snapshot.Kinds)
	}
	return complete
}

func (p *Position) advanceSnapshot(before Position, r *schema.Report) (complete bool) {
	open := Snapshot{Start: r.Sequence, Part: 1, Parts: 1, Kinds: sorted(r.Kinds)}
	if r.Parts > 1 {
		last := before.Snapshot
		follows := last.Parts == r.Parts && last.Part == r.Part-1 && before.Epoch == r.Epoch &&
			before.Sequence == r.Sequence-1 && slices.Equal(last.Kinds, open.Kinds)
		if r.Part > 1 && !follows {
			return false
		}
		open.Part, open.Parts = r.Part, r.Parts
		if r.Part > 1 {
			open.Start = last.Start
		}
	}
	p.Snapshot = open
	return open.Part == open.Parts
}

// missing returns the entries that a complete snapshot covers and does not
// hold: those that none of its messages left its mark on.
func (s *State) missing() []schema.ObjectRef {
	open := s.Position.Snapshot
	first := schema.Version(s.Position.Epoch, open.Start)
	var gone []schema.ObjectRef
	for ref, e := range s.Entries {
		if e.Version < first && slices.Contains(open.Kinds, ref.Kind) {
			gone = append(gone, ref)
		}
	}
	slices.SortFunc(gone, schema.ObjectRef.Compare)
	return gone
}

// upsert takes in what a reconciler says now. It is to be written when it
// changed, or when a snapshot in parts must leave its mark on it.
func (s *State) upsert(rec *schema.Reconciler, r *schema.Report, version uint64, now time.Time) (u Upsert, write bool) {
	ref := rec.Ref()
	digest := rec.Digest()
	old, known := s.Entries[ref]
	if known && old.Digest == digest {
		old.Version = version
		if r.Parts <= 1 {
			return u, false
		}
		rec = withLastSources(rec, old)
		_, index := Endpoints(rec)
		return Upsert{Reconciler: rec, Entry: *old, Index: index}, true
	}
	e := &Entry{Digest: digest, Version: version, Status: rec.Status, Reason: rec.Reason, Since: since(rec, r, old)}
	if rec.Owner != nil {
		e.Owner = *rec.Owner
	}
	if known {
		rec = withLastSources(rec, old)
	}
	u = Upsert{Reconciler: rec, Changed: true}
	e.Endpoints, u.Index = Endpoints(rec)
	if known {
		e.Latch, e.Settled = old.Latch, old.Settled
		for _, h := range old.Endpoints {
			if !slices.Contains(e.Endpoints, h) {
				u.Left = append(u.Left, h)
			}
		}
		if slices.Equal(old.Endpoints, e.Endpoints) {
			e.Endpoints = old.Endpoints
		} else {
			e.Latch.Runs = nil // what was applied from elsewhere proves nothing here
		}
	}
	e.Latch = e.Latch.next(rec, u.Index, now)
	e.Settled = settled(rec, e.Settled)
	s.Put(ref, e)
	u.Entry = *e
	return u, true
}

// withLastSources returns a reconciler that names no source, because the source
// object is not there, as a reader of what it read last: it must not leave the
// verdicts of commits that it will never reach now.
func withLastSources(rec *schema.Reconciler, old *Entry) *schema.Reconciler {
	if len(rec.Sources) > 0 || rec.SourceError == "" || len(old.Endpoints) == 0 {
		return rec
	}
	reader := *rec
	for _, h := range old.Endpoints {
		reader.Sources = append(reader.Sources, h.Value().Source())
	}
	return &reader
}

// settled says whether success was seen at the reconciler's current generation.
// A success that it says of an older one proves nothing.
func settled(r *schema.Reconciler, before bool) bool {
	if r.GenerationObserved != nil && !*r.GenerationObserved {
		return false
	}
	return before || r.Status == schema.StatusSuccess
}

func since(rec *schema.Reconciler, r *schema.Report, old *Entry) time.Time {
	switch {
	case !rec.Since.IsZero():
		return rec.Since.UTC().Truncate(time.Millisecond)
	case old != nil && old.Status == rec.Status:
		return old.Since
	case !rec.ObservedAt.IsZero():
		return rec.ObservedAt.UTC().Truncate(time.Millisecond)
	}
	return r.ObservedAt.UTC().Truncate(time.Millisecond)
}

func sorted(list []string) []string {
	set := map[string]struct{}{}
	for _, s := range list {
		set[s] = struct{}{}
	}
	return slices.Sorted(maps.Keys(set))
}

func without(list, gone []string) []string {
	var kept []string
	for _, s := range list {
		if !slices.Contains(gone, s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// Clear removes everything that the cluster has, as its decommission at an epoch
// does. It stands after every message of that epoch and before every one of the
// next, and is none of them. ok is false when the cluster has gone on since.
func (s *State) Clear(cluster string, epoch uint64, now time.Time) (c Changes, ok bool) {
	if s.Position.Version() > schema.Version(epoch+1, 0) {
		return c, false
	}
	s.Position.Epoch, s.Position.Sequence = epoch+1, 0
	s.Position.Snapshot, s.Position.UnlistedKinds = Snapshot{}, nil
	c = Changes{Cluster: cluster, ReceivedAt: now.UTC().Truncate(time.Millisecond)}
	for _, ref := range slices.SortedFunc(maps.Keys(s.Entries), schema.ObjectRef.Compare) {
		c.Removals = append(c.Removals, Removal{Ref: ref, Endpoints: s.Entries[ref].Endpoints})
		s.remove(ref)
	}
	c.Position = s.Position
	return c, true
}

package outbox

import (
	"slices"

	"github.com/landfall-hub/landfall/schema"
)

// ledger says of every reconciler what the hub has and what was put last, as
// digests.
type ledger struct {
	entries map[schema.ObjectRef]entry
	// digest is that of all that the hub has.
	digest schema.Digest
}

// entry is a reconciler. Where nothing waits, hub and put are equal.
type entry struct {
	hub, put schema.Digest
	// onHub says that the hub has it, there that it was put and not removed.
	onHub, there bool
}

func newLedger() *ledger { return &ledger{entries: map[schema.ObjectRef]entry{}} }

// set keeps an entry, or forgets one that is nowhere any more.
func (l *ledger) set(ref schema.ObjectRef, e entry) {
	if !e.onHub && !e.there {
		delete(l.entries, ref)
		return
	}
	l.entries[ref] = e
}

// isPut reports whether that is what was put last; nil is a removal.
func (l *ledger) isPut(ref schema.ObjectRef, f *form) bool {
	e := l.entries[ref]
	if f == nil {
		return !e.there
	}
	return e.there && e.put == f.digest
}

// note takes down what was put, or removed where f is nil.
func (l *ledger) note(ref schema.ObjectRef, f *form) {
	e := l.entries[ref]
	e.there, e.put = f != nil, schema.Digest{}
	if f != nil {
		e.put = f.digest
	}
	l.set(ref, e)
}

// acknowledge takes down what the hub has stored; nil is a removal.
func (l *ledger) acknowledge(ref schema.ObjectRef, f *form) {
	e := l.entries[ref]
	if e.onHub {
		l.digest.Toggle(e.hub)
	}
	e.onHub, e.hub = f != nil, schema.Digest{}
	if f != nil {
		e.hub = f.digest
		l.digest.Toggle(e.hub)
	}
	l.set(ref, e)
}

// of returns the reconcilers of some kinds.
func (l *ledger) of(kinds []string) []schema.ObjectRef {
	var refs []schema.ObjectRef
	for ref := range l.entries {
		if slices.Contains(kinds, ref.Kind) {
			refs = append(refs, ref)
		}
	}
	return refs
}

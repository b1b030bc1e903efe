package outbox

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// snapshot is everything there is of some kinds, read at one time.
type snapshot struct {
	kinds []string
	// items are sorted so that children come before their owners; nil until
	// they are read.
	items []*item
	seen  time.Time
	// cuts are where the parts end, nil until the first one is sent; next is the
	// index of the part that is.
	cuts []int
	next int
}

// part returns the items of the next part. Where the parts end is fixed with the
// first one, because each says how many there are.
func (s *snapshot) part(most, bytes int) []*item {
	if s.cuts == nil {
		s.cut(most, bytes)
		if len(s.cuts) > schema.MaxParts {
			s.cut(len(s.items)/schema.MaxParts+1, math.MaxInt)
		}
		s.next = 0
	}
	return s.items[s.sent():s.cuts[s.next]]
}

func (s *snapshot) cut(most, bytes int) {
	s.cuts = nil
	for end := 0; s.cuts == nil || end < len(s.items); {
		end += fitting(s.items[end:], most, bytes)
		s.cuts = append(s.cuts, end)
	}
}

// sent is how many items the hub has.
func (s *snapshot) sent() int {
	if s.next == 0 {
		return 0
	}
	return s.cuts[s.next-1]
}

// restart begins with the first part again.
func (s *snapshot) restart() { s.cuts, s.next = nil, 0 }

// holds reports whether the hub knows a reconciler's state from the snapshot
// just as well as from it.
func (s *snapshot) holds(index map[schema.ObjectRef]*item, it *item) bool {
	if !slices.Contains(s.kinds, it.ref.Kind) {
		return false
	}
	mine, ok := index[it.ref]
	if it.form == nil || !ok {
		return it.form == nil && !ok
	}
	return mine.form.digest == it.form.digest
}

// snapshot reads a snapshot of what is due and queues it. What waits from before
// stays in front of it, but for what it says itself; what is put meanwhile
// stands behind it, because it may be newer than what was read.
func (o *Outbox) snapshot() {
	s, w := o.beginSnapshot()
	// Kinds are read one after the other. What two readings in a row agree on was
	// so at one time, between them: no parent is newer than its children.
	const readings = 3
	index := o.read(s)
	for range readings - 1 {
		before := index
		if index = o.read(s); alike(before, index) {
			break
		}
	}
	o.endSnapshot(s, w, index)
}

func (o *Outbox) read(s *snapshot) map[schema.ObjectRef]*item {
	index := map[schema.ObjectRef]*item{}
	for _, kind := range s.kinds {
		for rec := range o.opts.State.Reconcilers(kind) {
			if rec.Kind != kind {
				continue // it would not be covered
			}
			if f, ok := o.opts.newForm(rec); ok {
				index[rec.Ref()] = &item{ref: rec.Ref(), form: &f, seen: s.seen}
			}
		}
	}
	return index
}

func alike(a, b map[schema.ObjectRef]*item) bool {
	return maps.EqualFunc(a, b, func(x, y *item) bool { return x.form.digest == y.form.digest })
}

func (o *Outbox) beginSnapshot() (*snapshot, *work) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &snapshot{kinds: o.due, seen: o.opts.Now().UTC()}
	w := &work{snapshot: s, busy: true}
	o.due, o.reading = nil, true
	o.queue.works = append(o.queue.works, w)
	return s, w
}

func (o *Outbox) endSnapshot(s *snapshot, w *work, index map[schema.ObjectRef]*item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reading = false
	at := slices.Index(o.queue.works, w)
	if at < 0 {
		return // the session ended meanwhile
	}
	w.busy = false
	for ref, it := range index {
		if f, ok := o.known(*it.form); ok {
			it.form = &f
			continue
		}
		delete(index, ref)
	}
	// What was put meanwhile was put together with its children, some of which
	// may have been read before.
	for _, later := range o.queue.works[at+1:] {
		for ref, it := range later.batch.items {
			if it.form == nil {
				delete(index, ref)
				continue
			}
			index[ref] = &item{ref: ref, form: it.form, seen: it.seen}
		}
	}
	for _, ref := range o.ledger.of(s.kinds) {
		if index[ref] == nil {
			o.ledger.note(ref, nil)
		}
	}
	s.items = make([]*item, 0, len(index))
	for ref, it := range index {
		s.items = append(s.items, it)
		o.ledger.note(ref, it.form)
	}
	s.items = childrenFirst(s.items)
	o.dropCovered(s, at, index)
}

// dropCovered takes out the batches before a snapshot that say nothing but what
// it says. One that says more keeps those before it, too: it may rest on them.
func (o *Outbox) dropCovered(s *snapshot, at int, index map[schema.ObjectRef]*item) {
	q := &o.queue
	for at > 0 && q.works[at-1].batch != nil {
		b := q.works[at-1].batch
		for _, it := range b.items {
			if !s.holds(index, it) {
				return
			}
		}
		at--
		q.states -= len(b.items)
		q.works = slices.Delete(q.works, at, at+1)
	}
}

// completed takes down what a snapshot that is complete says by leaving it out.
func (o *Outbox) completed(s *snapshot) {
	held := make(map[schema.ObjectRef]bool, len(s.items))
	for _, it := range s.items {
		held[it.ref] = true
	}
	for _, ref := range o.ledger.of(s.kinds) {
		if !held[ref] {
			o.ledger.acknowledge(ref, nil)
		}
	}
	for _, kind := range s.kinds {
		o.covered[kind] = true
	}
	if o.said != nil {
		o.said = without(o.said, s.kinds)
	}
}

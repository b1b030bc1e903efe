package outbox

import (
	"slices"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// item is one state of one reconciler that the hub is to be told.
type item struct {
	ref schema.ObjectRef
	// form is nil where the reconciler is gone.
	form *form
	seen time.Time
	// group is the same for items that travel together.
	group uint64
}

func (it *item) size() int {
	if it.form == nil {
		return 64 + len(it.ref.Kind) + len(it.ref.Namespace) + len(it.ref.Name)
	}
	return it.form.size
}

// loss is how much is lost when a newer state takes the item's place: what a
// verdict remembers counts more.
func (it *item) loss() int {
	if it.form != nil && (it.form.rec.Status == schema.StatusSuccess || it.form.rec.Status == schema.StatusFailure) {
		return 8
	}
	return 1
}

// batch holds states that may leave in one message: at most one of each
// reconciler.
type batch struct {
	items map[schema.ObjectRef]*item
	bytes int
}

func newBatch() *batch { return &batch{items: map[schema.ObjectRef]*item{}} }

// put takes an item in, in place of an older state.
func (b *batch) put(it *item) {
	b.drop(it.ref)
	b.items[it.ref] = it
	b.bytes += it.size()
}

func (b *batch) drop(ref schema.ObjectRef) {
	if old, ok := b.items[ref]; ok {
		b.bytes -= old.size()
		delete(b.items, ref)
	}
}

// join makes two groups one.
func (b *batch) join(group, other uint64) {
	if group == other {
		return
	}
	for _, it := range b.items {
		if it.group == other {
			it.group = group
		}
	}
}

// overlap is what is lost when a newer batch takes the states of this one in.
func (b *batch) overlap(newer *batch) (loss int) {
	for ref, it := range b.items {
		if _, twice := newer.items[ref]; twice {
			loss += it.loss()
		}
	}
	return loss
}

// absorb takes in the states of the batch before, as far as there is no newer
// one here, and returns how many were dropped. Groups that share a reconciler
// become one: whoever travelled with the older state travels with the newer.
func (b *batch) absorb(older *batch) (dropped int) {
	for ref, it := range older.items {
		if _, twice := b.items[ref]; !twice {
			b.put(it)
		}
	}
	for ref, it := range older.items {
		if mine := b.items[ref]; mine != it {
			b.join(mine.group, it.group)
			dropped++
		}
	}
	return dropped
}

// take returns the items of the next message: all of them, or as many whole
// groups as there is room for. Of a group that is too large alone the children
// go first.
func (b *batch) take(most, bytes int) []*item {
	all := make([]*item, 0, len(b.items))
	for _, it := range b.items {
		all = append(all, it)
	}
	if len(all) <= most && b.bytes <= bytes {
		return childrenFirst(all)
	}
	groups := map[uint64][]*item{}
	for _, it := range all {
		groups[it.group] = append(groups[it.group], it)
	}
	ordered := make([][]*item, 0, len(groups))
	for _, g := range groups {
		ordered = append(ordered, childrenFirst(g))
	}
	slices.SortFunc(ordered, func(x, y []*item) int { return x[0].ref.Compare(y[0].ref) })
	var taken []*item
	size := 0
	for _, g := range ordered {
		more := 0
		for _, it := range g {
			more += it.size()
		}
		if len(taken)+len(g) <= most && size+more <= bytes {
			taken, size = append(taken, g...), size+more
		}
	}
	if taken == nil {
		taken = ordered[0][:fitting(ordered[0], most, bytes)]
	}
	return childrenFirst(taken)
}

// fitting returns how many of the items fit a message, at least one.
func fitting(items []*item, most, bytes int) int {
	size := 0
	for n, it := range items {
		size += it.size()
		if n == most || n > 0 && size > bytes {
			return n
		}
	}
	return len(items)
}

// childrenFirst sorts items so that those whose owners are among them come
// before their owners, and otherwise by name.
func childrenFirst(items []*item) []*item {
	owners := make(map[schema.ObjectRef]schema.ObjectRef, len(items))
	for _, it := range items {
		owner := schema.ObjectRef{}
		if it.form != nil && it.form.rec.Owner != nil {
			owner = *it.form.rec.Owner
		}
		owners[it.ref] = owner
	}
	const deepest = 32 // owners may go round in a circle
	depth := make(map[schema.ObjectRef]int, len(items))
	for _, it := range items {
		d := 0
		for owner := owners[it.ref]; d < deepest; owner = owners[owner] {
			if _, among := owners[owner]; !among {
				break
			}
			d++
		}
		depth[it.ref] = d
	}
	slices.SortFunc(items, func(x, y *item) int {
		if d := depth[y.ref] - depth[x.ref]; d != 0 {
			return d
		}
		return x.ref.Compare(y.ref)
	})
	return items
}

// work is what one or several messages in a row are made of: a batch, or a
// snapshot.
type work struct {
	batch    *batch
	snapshot *snapshot
	// busy says that it is on its way: it must not change.
	busy bool
}

// queue holds what the hub is to be told, oldest first.
type queue struct {
	opts   *Options
	works  []*work
	states int
	groups uint64
	// fresh says that what is put next opens a batch of its own.
	fresh bool
}

// put appends states that belong together; linked are those that belong to them
// and did not change. It returns how many older states made room.
func (q *queue) put(items []*item, linked []schema.ObjectRef) (dropped int) {
	q.groups++
	tail := q.open(items)
	for _, it := range items {
		it.group = q.groups
		if old, ok := tail.items[it.ref]; ok { // the same state again
			tail.join(q.groups, old.group)
			q.states--
		}
		tail.put(it)
		q.states++
	}
	for _, ref := range linked {
		if it, ok := tail.items[ref]; ok {
			tail.join(q.groups, it.group)
		}
	}
	return q.shrink()
}

// open returns the batch that new states go into: the last one, unless it is on
// its way, full, or holds another state of one of them.
func (q *queue) open(items []*item) *batch {
	if n := len(q.works); n > 0 && !q.fresh {
		if last := q.works[n-1]; last.batch != nil && !last.busy && last.batch.admits(items, q.opts) {
			return last.batch
		}
	}
	q.fresh = false
	b := newBatch()
	q.works = append(q.works, &work{batch: b})
	return b
}

func (b *batch) admits(items []*item, opts *Options) bool {
	bytes := b.bytes
	for _, it := range items {
		bytes += it.size()
		old, ok := b.items[it.ref]
		if ok && (old.form == nil || it.form == nil || old.form.digest != it.form.digest) {
			return false
		}
	}
	return len(b.items)+len(items) <= opts.MaxReconcilers && bytes <= opts.MaxBytes
}

// shrink merges neighbours until the bounds hold or nothing can be merged: the
// pair that loses least, and of such the oldest.
func (q *queue) shrink() (dropped int) {
	for q.batches() > q.opts.MaxHistory || q.states > q.opts.MaxPending {
		best, least := -1, 0
		for i := 1; i < len(q.works); i++ {
			older, newer := q.works[i-1], q.works[i]
			if older.batch == nil || newer.batch == nil || older.busy {
				continue
			}
			if loss := older.batch.overlap(newer.batch); best < 0 || loss < least {
				best, least = i, loss
			}
		}
		if best < 0 {
			return dropped
		}
		n := q.works[best].batch.absorb(q.works[best-1].batch)
		q.works = slices.Delete(q.works, best-1, best)
		q.states -= n
		dropped += n
	}
	return dropped
}

func (q *queue) batches() (n int) {
	for _, w := range q.works {
		if w.batch != nil {
			n++
		}
	}
	return n
}

// waiting returns how many states wait, those of a snapshot too.
func (q *queue) waiting() int {
	n := q.states
	for _, w := range q.works {
		if w.snapshot != nil {
			n += len(w.snapshot.items) - w.snapshot.sent()
		}
	}
	return n
}

// clear forgets everything and returns how many states were waiting.
func (q *queue) clear() int {
	n := q.states
	q.works, q.states, q.fresh = nil, 0, false
	return n
}

// settle takes out of the oldest batch what the hub has now.
func (q *queue) settle(w *work, items []*item) {
	for _, it := range items {
		w.batch.drop(it.ref)
		q.states--
	}
	w.busy = false
	if len(w.batch.items) == 0 {
		q.finish(w)
	}
}

func (q *queue) finish(w *work) {
	q.works = slices.DeleteFunc(q.works, func(o *work) bool { return o == w })
}

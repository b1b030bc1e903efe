package agent

import (
	"context"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/agent/watch"
	"github.com/landfall-hub/landfall/schema"
)

// sink takes facts; agent/outbox has it.
type sink interface {
	// Put takes the facts of reconcilers; those of one call travel together.
	Put(...schema.Reconciler)
	// Remove takes the reconcilers that are gone.
	Remove(...schema.ObjectRef)
	// Kinds says which kinds are known completely, and which cannot be. One that
	// becomes complete is asked for as a whole.
	Kinds(listed, unlisted []string)
}

// settle is how long a parent's success waits for the last word about its
// children. Each kind has a watch of its own, and that of the parent may be the
// faster one: its success would meet the children's facts of before.
const settle = 300 * time.Millisecond

// worker turns keys of objects that changed into facts. It is level-triggered:
// a key only says where to look.
type worker struct {
	facts   *facts
	objects objects
	sink    sink // it asks back, so it is set after both are made
	queue   *queue
	log     *slog.Logger
	metrics *metrics
	// absence is how long a kind must not have been served before it counts as
	// one of which there is nothing: an API server that starts may not know yet.
	absence time.Duration

	// states are the kinds' as of this step. They belong to the goroutine of run,
	// as statuses do.
	states   map[string]watch.State
	statuses map[schema.ObjectRef]schema.Status

	mu sync.Mutex
	// opening says when a kind of which all is known for the first time counts as
	// such.
	opening map[string]time.Time
	// opened are the kinds that were known completely once. Before that, their
	// facts travel in the first snapshot and not one by one.
	opened map[string]bool
	// held are reconcilers whose source is of a kind that is still being listed;
	// blind are those whose source is of a kind that cannot be. What such a
	// source says was never seen.
	held, blind map[schema.ObjectRef]bool
	// due are the parents whose success waits, and until when.
	due map[schema.ObjectRef]time.Time
	// listed and unlisted are what the sink was told last; told is false before.
	told             bool
	listed, unlisted []string
}

func newWorker(q *queue, f *facts, absence time.Duration, log *slog.Logger, m *metrics) *worker {
	return &worker{
		facts: f, objects: f.objects, queue: q, absence: absence, log: log, metrics: m,
		opening: map[string]time.Time{}, statuses: map[schema.ObjectRef]schema.Status{}, opened: map[string]bool{},
		held: map[schema.ObjectRef]bool{}, blind: map[schema.ObjectRef]bool{}, due: map[schema.ObjectRef]time.Time{},
	}
}

// run works until ctx ends.
func (w *worker) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.queue.ready:
		case <-timer.C:
		}
		w.step(time.Now())
		if next, ok := w.next(); ok {
			timer.Reset(time.Until(next))
		}
	}
}

// next is when there is something to do though nothing changes.
func (w *worker) next() (next time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, times := range []iter.Seq[time.Time]{maps.Values(w.due), maps.Values(w.opening)} {
		for at := range times {
			if !ok || at.Before(next) {
				next, ok = at, true
			}
		}
	}
	return next, ok
}

// step looks at everything that changed until now.
func (w *worker) step(now time.Time) {
	// The states first: what is listed by them is in the store.
	states := w.objects.States()
	look := map[schema.ObjectRef]bool{}
	mark := func(keys []schema.ObjectRef) {
		for _, key := range keys {
			look[key] = true
		}
	}
	for _, key := range w.queue.take() {
		if !reconcilers[key.Kind] || states[key.Kind] != watch.Syncing { // all of them are looked at when they are listed
			mark(w.facts.changed(key))
		}
	}
	moved := map[string]bool{}
	for name, s := range states {
		if w.states[name] != s {
			moved[name] = true
			if reconcilers[name] {
				mark(w.objects.Keys(name))
			}
		}
	}
	mark(w.facts.on(moved))
	w.mu.Lock()
	maps.DeleteFunc(w.opening, func(name string, _ time.Time) bool { return moved[name] })
	w.mu.Unlock()
	w.states = states
	for _, key := range slices.SortedFunc(maps.Keys(look), schema.ObjectRef.Compare) {
		w.look(key, now)
	}
	w.putDue(now)
	w.queue.done()
	w.sayKinds(now)
}

// look reads a reconciler and hands its facts on, at once or when it is due.
func (w *worker) look(key schema.ObjectRef, now time.Time) {
	w.metrics.looked.Inc()
	r := w.facts.update(key, w.states)
	w.count(key, r)
	if w.place(key, r, now) {
		w.sink.Put(r.Reconciler)
	}
	if r.gone {
		w.sink.Remove(key)
	}
}

// place notes what becomes of a reconciler's facts, and reports whether they
// are to be put now.
func (w *worker) place(key schema.ObjectRef, r reading, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	opened := w.opened[key.Kind]
	delete(w.held, key)
	delete(w.blind, key)
	delete(w.due, key)
	switch {
	case r.gone:
		return false
	case r.lacks(w.states, watch.Syncing), !opened && r.lacksChild(w.states, watch.Syncing):
		w.held[key] = true
		return false
	case r.lacks(w.states, watch.Unlisted):
		w.blind[key] = true
		return false
	case r.leads():
		w.due[key] = now.Add(settle)
		return false
	}
	return opened
}

// leads reports whether the success of a parent hangs on its children's.
func (r *reading) leads() bool { return r.Status == schema.StatusSuccess && len(r.children) > 0 }

func (w *worker) count(key schema.ObjectRef, r reading) {
	was, counted := w.statuses[key]
	if counted {
		w.metrics.reconcilers.WithLabelValues(key.Kind, string(was)).Dec()
		delete(w.statuses, key)
	}
	if !r.gone {
		w.metrics.reconcilers.WithLabelValues(key.Kind, string(r.Status)).Inc()
		w.statuses[key] = r.Status
	}
}

// putDue hands on the parents that are due.
func (w *worker) putDue(now time.Time) {
	w.mu.Lock()
	var ready []schema.ObjectRef
	for key, at := range w.due {
		if !at.After(now) {
			ready = append(ready, key)
		}
	}
	w.mu.Unlock()
	slices.SortFunc(ready, schema.ObjectRef.Compare)
	for _, key := range ready {
		if w.isDue(key, now) { // and was not put as another one's child
			w.putTree(key, now)
		}
	}
}

func (w *worker) isDue(key schema.ObjectRef, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.due[key]
	return ok && !at.After(now)
}

// putTree hands on a parent that is due with its children, after those of them
// that are parents themselves. While one of them waits, it waits on.
func (w *worker) putTree(key schema.ObjectRef, now time.Time) {
	w.mu.Lock()
	delete(w.due, key) // first: an inventory may lead back to its owner
	opened := w.opened[key.Kind]
	w.mu.Unlock()
	r := w.facts.read(key, w.states)
	if r.gone || !opened {
		return // it is in the queue; it travels in the first snapshot
	}
	group := make([]schema.Reconciler, 0, len(r.children)+1)
	for _, child := range r.children {
		if w.isDue(child, now) {
			w.putTree(child, now)
		}
		c := w.facts.read(child, w.states)
		if until, waits := w.unsettled(child, now); waits && c.leads() {
			w.mu.Lock()
			w.due[key] = until // and no later: in a circle each would wait for the other
			w.mu.Unlock()
			return
		}
		if w.reportable(child, c) {
			group = append(group, c.Reconciler)
		}
	}
	w.sink.Put(append(group, r.Reconciler)...)
}

// reportable reports whether a child's facts may travel with its parent's.
func (w *worker) reportable(key schema.ObjectRef, r reading) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !r.gone && w.opened[key.Kind] && !w.held[key] && !w.blind[key]
}

// unsettled reports whether a parent's success is to wait, and until when:
// until now where it was not looked at yet.
func (w *worker) unsettled(key schema.ObjectRef, now time.Time) (until time.Time, waits bool) {
	w.mu.Lock()
	until, waits = w.due[key]
	w.mu.Unlock()
	if !waits {
		return now, w.queue.has(key)
	}
	return until, true
}

// Reconcilers yields the facts of all reconcilers of a kind, for a snapshot. It
// may be called while run works.
func (w *worker) Reconcilers(kind string) iter.Seq[schema.Reconciler] {
	return func(yield func(schema.Reconciler) bool) {
		states := w.objects.States()
		for _, key := range w.objects.Keys(kind) {
			r := w.facts.read(key, states)
			if r.gone || r.lacks(states, watch.Syncing) || r.lacks(states, watch.Unlisted) {
				continue
			}
			if _, waits := w.unsettled(key, time.Time{}); waits && r.leads() {
				r.Status, r.Reason, r.Since = schema.StatusInProgress, object.ReasonChildNotSeen, time.Time{}
				r.Message = "its children are being read"
			}
			if !yield(r.Reconciler) {
				return
			}
		}
	}
}

// sayKinds tells the sink which kinds are known completely, and which cannot
// be: a kind that cannot be listed, and one of which a reconciler reads from a
// source that was never seen and cannot be now. Without its endpoint it would
// count for no commit; as unknown it counts, and blocks. Of a kind that is not
// served or not watched, it is known that there is nothing to report.
func (w *worker) sayKinds(now time.Time) {
	w.mu.Lock()
	var listed, unlisted []string
	held, blind := kindsIn(w.held), kindsIn(w.blind)
	heard := false
	for _, name := range slices.Sorted(maps.Keys(reconcilers)) {
		state, watched := w.states[name]
		switch {
		case !watched:
			listed = append(listed, name)
			continue
		case state == watch.Unlisted || blind[name]:
			unlisted = append(unlisted, name)
		case state == watch.Syncing || held[name]:
			delete(w.opening, name)
			continue
		case state == watch.Listed && w.opens(name, now, settle), state == watch.Absent && w.opens(name, now, w.absence):
			listed = append(listed, name)
		default:
			continue // it is opening
		}
		delete(w.opening, name)
		heard = true
	}
	news := !w.told || !slices.Equal(w.listed, listed) || !slices.Equal(w.unlisted, unlisted)
	if !news || !w.told && !heard {
		w.mu.Unlock()
		return // the first snapshot is to have all that is there
	}
	w.told, w.listed, w.unlisted = true, listed, unlisted
	for _, name := range listed {
		w.opened[name] = true
	}
	w.mu.Unlock()
	w.log.Info("kinds of reconcilers", "listed", listed, "unlisted", unlisted)
	w.sink.Kinds(listed, unlisted)
}

// opens reports whether a kind of which all is known counts as such: at once,
// except for the first time.
func (w *worker) opens(name string, now time.Time, after time.Duration) bool {
	if w.opened[name] {
		return true
	}
	at, waits := w.opening[name]
	if !waits {
		at = now.Add(after)
		w.opening[name] = at
		for other := range w.opening { // those that are listed together open together
			if w.states[name] == watch.Listed && w.states[other] == watch.Listed {
				w.opening[other] = at
			}
		}
	}
	return !at.After(now)
}

func kindsIn(set map[schema.ObjectRef]bool) map[string]bool {
	kinds := map[string]bool{}
	for key := range set {
		kinds[key.Kind] = true
	}
	return kinds
}

// progress is what /readyz says of the worker.
type progress struct {
	told             bool
	listed, unlisted []string
	// held and blind are each the first of those held back, with how many there are.
	held, blind           schema.ObjectRef
	heldCount, blindCount int
}

func (w *worker) progress() progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return progress{
		told: w.told, listed: w.listed, unlisted: w.unlisted,
		held: first(w.held), heldCount: len(w.held), blind: first(w.blind), blindCount: len(w.blind),
	}
}

func first(set map[schema.ObjectRef]bool) schema.ObjectRef {
	var least schema.ObjectRef
	for key := range set {
		if least.IsZero() || key.Compare(least) < 0 {
			least = key
		}
	}
	return least
}

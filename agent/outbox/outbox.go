package outbox

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall-hub/landfall/schema"
)

// Mode is where an agent stands with the hub.
type Mode string

// The modes.
const (
	// Registering: it has no epoch that the hub knows, and asks for one.
	Registering Mode = "registering"
	// Current: it reports.
	Current Mode = "current"
	// Superseded: a newer agent reports for the cluster. It goes on with
	// heartbeats and registers again when the newer one is silent.
	Superseded Mode = "superseded"
	// Decommissioned: an admin took the cluster out. It asks seldom whether it is
	// back.
	Decommissioned Mode = "decommissioned"
)

// Status is where the outbox stands.
type Status struct {
	Mode Mode
	// Epoch is the session's, 0 before the first registration; Sequence the last
	// acknowledged message's.
	Epoch, Sequence uint64
	// Acknowledged is when the hub last acknowledged a report or a heartbeat.
	Acknowledged time.Time
	// Waiting counts the states that are to be sent.
	Waiting int
	// Refused counts the reconcilers that stand as unknown because the hub
	// refuses their facts.
	Refused int
	// Error is why the hub could not be told something, nil once it was.
	Error error
}

// Outbox brings facts to the hub. Its methods may be called from any goroutine.
type Outbox struct {
	opts    Options
	log     *slog.Logger
	metrics *metrics
	// wake has room for one: the sender has something to do.
	wake chan struct{}

	mu sync.Mutex
	// ended is closed, and made anew, when the mode changes.
	mode  Mode
	ended chan struct{}
	epoch uint64
	// sequence is that of the last message that the hub may have.
	sequence uint64
	// acknowledged is the sequence of the last one that it has.
	acknowledged uint64
	queue        queue
	ledger       *ledger
	refused      map[schema.ObjectRef]refusal

	// told says that Kinds was called; listed and unlisted are what it said last.
	told             bool
	listed, unlisted []string
	// said is what the hub knows of unlisted kinds, nil when that is not known.
	said []string
	// due are the kinds that a snapshot is due of, covered those that one of this
	// epoch covered. reading says that one is being read.
	due     []string
	covered map[string]bool
	reading bool

	// most and bytes bound the next message: they shrink with refusals.
	most, bytes int
	// sent is when the last message left.
	sent   time.Time
	heard  time.Time
	resync resync
	errors map[string]error
}

// refusal is what the hub said of a reconciler's facts.
type refusal struct {
	facts form
	level int
	why   string
}

// New makes an outbox.
func New(opts Options) (*Outbox, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	o := &Outbox{
		opts: opts, log: opts.Logger, wake: make(chan struct{}, 1), mode: Registering, ended: make(chan struct{}), ledger: newLedger(), covered: map[string]bool{},
		refused: map[schema.ObjectRef]refusal{}, most: opts.MaxReconcilers, bytes: opts.MaxBytes, errors: map[string]error{},
	}
	o.queue.opts = &o.opts
	o.metrics = newMetrics(opts.Registerer, o)
	return o, nil
}

// Run speaks to the hub until ctx ends.
func (o *Outbox) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { o.send(ctx); return nil })
	g.Go(func() error { o.beat(ctx); return nil })
	return g.Wait()
}

// Put takes facts as they were read now. What is equal to what was put last is
// nothing new; what is new of one call travels in one message.
func (o *Outbox) Put(recs ...schema.Reconciler) {
	forms := make(map[schema.ObjectRef]form, len(recs))
	for _, rec := range recs {
		f, ok := o.opts.newForm(rec)
		if !ok {
			o.withheld(rec.Ref())
			continue
		}
		forms[rec.Ref()] = f
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.reports() {
		o.metrics.dropped.WithLabelValues(droppedOther).Add(float64(len(forms)))
		return
	}
	now := o.opts.Now().UTC()
	var changed []*item
	var linked []schema.ObjectRef
	for _, ref := range slices.SortedFunc(maps.Keys(forms), schema.ObjectRef.Compare) {
		f, ok := o.known(forms[ref])
		switch {
		case !ok:
		case o.reading || !o.ledger.isPut(ref, &f):
			if f.why != "" {
				o.log.Warn("a reconciler's facts are not valid; it is reported as unknown", "reconciler", ref.String(), "error", f.why)
			}
			changed = append(changed, &item{ref: ref, form: &f, seen: now})
		default:
			linked = append(linked, ref)
		}
	}
	o.enqueue(changed, linked)
}

// Remove says that reconcilers are gone.
func (o *Outbox) Remove(refs ...schema.ObjectRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.reports() {
		return
	}
	now := o.opts.Now().UTC()
	var changed []*item
	for _, ref := range slices.CompactFunc(slices.SortedFunc(slices.Values(refs), schema.ObjectRef.Compare), func(a, b schema.ObjectRef) bool { return a == b }) {
		delete(o.refused, ref)
		if o.reading || !o.ledger.isPut(ref, nil) {
			changed = append(changed, &item{ref: ref, seen: now})
		}
	}
	o.enqueue(changed, nil)
}

// reports says whether changes are this agent's to report. o.mu is held.
func (o *Outbox) reports() bool { return o.mode == Current || o.mode == Registering }

// enqueue queues states that belong together. o.mu is held.
func (o *Outbox) enqueue(items []*item, linked []schema.ObjectRef) {
	if len(items) == 0 {
		return
	}
	for _, it := range items {
		o.ledger.note(it.ref, it.form)
	}
	o.metrics.dropped.WithLabelValues(droppedOvertaken).Add(float64(o.queue.put(items, linked)))
	o.poke()
}

// Kinds says which kinds are listed completely now, and which were listed once
// and cannot be now. A kind in both counts as unlisted. A kind that becomes
// listed gets a snapshot.
func (o *Outbox) Kinds(listed, unlisted []string) {
	unlisted = o.usable(unlisted)
	listed = without(o.usable(listed), unlisted)
	o.mu.Lock()
	defer o.mu.Unlock()
	fresh := without(listed, o.listed)
	o.due = union(keep(o.due, listed), fresh)
	o.told, o.listed, o.unlisted = true, listed, unlisted
	o.poke()
}

// usable returns the kinds that a hub takes, sorted.
func (o *Outbox) usable(kinds []string) []string {
	var good []string
	for _, kind := range kinds {
		r := schema.Report{Epoch: 1, Sequence: 1, Mode: schema.ModeSnapshot, ObservedAt: time.Unix(0, 0), Kinds: []string{kind}}
		if err := r.Validate(); err != nil {
			o.log.Error("a kind cannot be reported", "kind", kind, "error", err)
			continue
		}
		good = append(good, kind)
	}
	return union(good, nil)
}

// Status returns where the outbox stands.
func (o *Outbox) Status() Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := Status{
		Mode: o.mode, Epoch: o.epoch, Sequence: o.acknowledged, Acknowledged: o.heard,
		Waiting: o.queue.waiting(), Refused: len(o.refused),
	}
	for _, what := range []string{kindRegistration, kindReport, kindHeartbeat} {
		if err := o.errors[what]; err != nil && s.Error == nil {
			s.Error = err
		}
	}
	return s
}

// poke wakes the sender.
func (o *Outbox) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// known returns the form in which facts are reported, after what the hub said of
// these very facts before. ok is false where it takes none. o.mu is held.
func (o *Outbox) known(f form) (as form, ok bool) {
	ref := f.rec.Ref()
	r, found := o.refused[ref]
	if !found {
		return f, true
	}
	if r.facts.digest != f.digest {
		delete(o.refused, ref) // other facts, another chance
		return f, true
	}
	as, _, ok = o.opts.reduced(r.facts.rec, r.level, r.why)
	return as, ok
}

// union returns the members of both lists, sorted, each once; never nil.
func union(a, b []string) []string {
	all := append(append([]string{}, a...), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// without returns the members of list that are not in gone; never nil.
func without(list, gone []string) []string {
	return slices.DeleteFunc(append([]string{}, list...), func(s string) bool { return slices.Contains(gone, s) })
}

// keep returns the members of list that are in those; never nil.
func keep(list, those []string) []string {
	return slices.DeleteFunc(append([]string{}, list...), func(s string) bool { return !slices.Contains(those, s) })
}

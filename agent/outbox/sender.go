package outbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// minBytes is the least that messages are split to, in bytes.
const minBytes = 16 << 10

// message is a report on its way.
type message struct {
	report *schema.Report
	// items are its reconcilers and then its removals, in the report's order.
	items []*item
	// work is what it is a part of; nil for one that only says which kinds are
	// unlisted.
	work *work
	// unsure says that a try of it may have been stored.
	unsure bool
}

func (m *message) kind() string { return string(m.report.Mode) }

// send registers and reports until ctx ends.
func (o *Outbox) send(ctx context.Context) {
	for ctx.Err() == nil {
		switch o.where() {
		case Registering:
			o.register(ctx)
		case Decommissioned:
			r := retry{random: o.opts.Random}
			if sleep(ctx, nil, seldom/2+r.share(seldom)) {
				o.register(ctx)
			}
		case Superseded:
			select {
			case <-ctx.Done():
			case <-o.wake:
			}
		default:
			o.report(ctx)
		}
	}
}

// register asks for an epoch until the hub gives one, or says that the cluster
// is gone.
func (o *Outbox) register(ctx context.Context) {
	tries := retry{random: o.opts.Random}
	for {
		epoch, err := o.opts.Hub.Register(ctx, o.opts.Cluster, o.opts.Registration)
		if ctx.Err() != nil {
			return
		}
		result := judge(err)
		o.metrics.messages.WithLabelValues(kindRegistration, string(result)).Inc()
		o.note(kindRegistration, err)
		switch result {
		case acknowledged:
			o.begin(epoch)
			return
		case gone:
			o.leave(o.session(), Decommissioned, err.Error())
			return
		}
		if !sleep(ctx, nil, tries.after(err)) {
			return
		}
		o.metrics.retries.WithLabelValues(kindRegistration).Inc()
	}
}

// report sends the next message, or waits for one.
func (o *Outbox) report(ctx context.Context) {
	if o.snapshotDue() {
		o.snapshot()
		return
	}
	m, wait := o.next()
	if m != nil {
		o.deliver(ctx, m)
		return
	}
	var linger <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		linger = t.C
	}
	select {
	case <-ctx.Done():
	case <-o.wake:
	case <-linger:
	}
}

func (o *Outbox) snapshotDue() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.told && len(o.due) > 0 && !slices.ContainsFunc(o.queue.works, func(w *work) bool { return w.snapshot != nil })
}

// next makes the next message. With none, wait is how long there may be none, 0
// for until something is put.
func (o *Outbox) next() (m *message, wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.opts.Now().UTC()
	silent := o.said != nil && slices.Equal(o.said, o.unlisted)
	if o.mode != Current || !o.told || len(o.queue.works) == 0 && silent {
		return nil, 0
	}
	r := &schema.Report{Agent: o.opts.Agent, Epoch: o.epoch, Sequence: o.sequence + 1, Mode: schema.ModeDelta}
	if !silent {
		r.UnlistedKinds = union(o.unlisted, nil)
	}
	m = &message{report: r}
	if len(o.queue.works) > 0 {
		m.work = o.queue.works[0]
		if wait := o.sent.Add(o.opts.Window).Sub(now); m.work.batch != nil && len(o.queue.works) == 1 && wait > 0 {
			return nil, wait // it can still grow
		}
		m.work.busy = true
		o.fill(m)
	}
	r.ObservedAt = now
	if len(m.items) > 0 {
		r.ObservedAt = slices.MaxFunc(m.items, func(a, b *item) int { return a.seen.Compare(b.seen) }).seen
	}
	for _, it := range m.items {
		if it.form == nil {
			r.Removed = append(r.Removed, it.ref)
			continue
		}
		rec := it.form.rec
		if rec.ObservedAt.IsZero() && r.ObservedAt.Sub(it.seen) >= time.Second {
			rec.ObservedAt = it.seen
		}
		r.Reconcilers = append(r.Reconcilers, rec)
	}
	o.sent = now
	return m, 0
}

// fill takes the message's items out of its work. o.mu is held.
func (o *Outbox) fill(m *message) {
	r, s := m.report, m.work.snapshot
	if s == nil {
		m.items = m.work.batch.take(o.most, o.bytes)
		slices.SortStableFunc(m.items, func(a, b *item) int { return removals(a) - removals(b) })
		return
	}
	m.items = s.part(o.most, o.bytes)
	r.Mode, r.Kinds = schema.ModeSnapshot, s.kinds
	if len(s.cuts) > 1 {
		r.Part, r.Parts = s.next+1, len(s.cuts)
	}
	switch {
	case s.next > 0:
		r.UnlistedKinds = nil // the first part said it
	case r.UnlistedKinds != nil:
		r.UnlistedKinds = without(r.UnlistedKinds, s.kinds)
	}
}

func removals(it *item) int {
	if it.form == nil {
		return 1
	}
	return 0
}

// deliver sends a message, the same one again and again, until the hub has
// answered it.
func (o *Outbox) deliver(ctx context.Context, m *message) {
	tries := retry{random: o.opts.Random}
	for {
		over := o.over()
		answer, err := o.opts.Hub.Report(ctx, o.opts.Cluster, m.report)
		if ctx.Err() != nil {
			return
		}
		result := judge(err)
		if err == nil && answer.CurrentEpoch > m.report.Epoch {
			result = outdated
		}
		o.metrics.messages.WithLabelValues(m.kind(), string(result)).Inc()
		if o.answered(m, result, err) {
			return
		}
		if !sleep(ctx, over, tries.after(err)) || !o.stillSending(m) {
			return
		}
		o.metrics.retries.WithLabelValues(m.kind()).Inc()
	}
}

// answered acts on the answer to a message. It returns false where the same
// message is to be sent again.
func (o *Outbox) answered(m *message, result outcome, err error) (done bool) {
	epoch := m.report.Epoch
	switch result {
	case acknowledged:
		o.acknowledge(m)
	case outdated:
		o.leave(epoch, Superseded, "the hub has a newer agent's epoch")
	case gone:
		o.note(kindReport, err)
		o.leave(epoch, Decommissioned, err.Error())
		return true
	case unregistered:
		o.note(kindReport, err)
		o.leave(epoch, Registering, err.Error())
		return true
	case unfit, oversized:
		if o.refuse(m, result, err) {
			return true
		}
		o.note(kindReport, err)
		return false
	case failed:
		m.unsure = true
		o.note(kindReport, err)
		return false
	default:
		o.note(kindReport, err)
		return false
	}
	o.note(kindReport, nil)
	return true
}

func (o *Outbox) stillSending(m *message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mode == Current && o.epoch == m.report.Epoch
}

// acknowledge takes down that the hub has a message.
func (o *Outbox) acknowledge(m *message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.epoch != m.report.Epoch || o.mode != Current {
		return
	}
	o.sequence, o.acknowledged = m.report.Sequence, m.report.Sequence
	for _, it := range m.items {
		o.ledger.acknowledge(it.ref, it.form)
	}
	o.most = min(2*o.most, o.opts.MaxReconcilers)
	if m.report.UnlistedKinds != nil {
		o.said = m.report.UnlistedKinds
	}
	switch {
	case m.work == nil:
	case m.work.batch != nil:
		o.queue.settle(m.work, m.items)
	default:
		s := m.work.snapshot
		s.next++
		if s.next == len(s.cuts) {
			o.completed(s)
			o.queue.finish(m.work)
		}
	}
}

// codeOf returns the code of the problem in err, or "".
func codeOf(err error) schema.Code {
	if p, ok := errors.AsType[*schema.Problem](err); ok {
		return p.Code
	}
	return ""
}

var _ Hub = (*hubclient.Client)(nil)

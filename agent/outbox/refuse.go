package outbox

import (
	"errors"
	"slices"

	"github.com/landfall-hub/landfall/schema"
)

// refuse makes the rest of a message that the hub will not take fit: it blames
// the reconciler that the hub points at, or makes messages smaller until only
// one can be to blame. It returns false where that cannot help.
func (o *Outbox) refuse(m *message, result outcome, err error) (changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.epoch != m.report.Epoch || o.mode != Current {
		return true
	}
	guilty, helps := suspect(m, result, err)
	if !helps {
		return false
	}
	again := m.unsure
	if m.unsure {
		o.sequence = m.report.Sequence // it may be taken
	}
	m.work.busy = false
	size := 0
	for _, it := range m.items {
		size += it.size()
	}
	switch {
	case guilty != nil:
		again = again || len(m.items) == 1
		o.most = o.opts.MaxReconcilers
		o.blame(m, guilty, err)
	case result == oversized && size > minBytes:
		o.bytes, again = max(min(o.bytes, size)/2, minBytes), true
	default:
		o.most, again = len(m.items)/2, true
	}
	if s := m.work.snapshot; s != nil && again {
		s.restart() // parts follow one another without a gap, and know their number
	}
	return true
}

// suspect returns the item to blame, nil where several may be. helps is false
// where the hub points at something that is no reconciler.
func suspect(m *message, result outcome, err error) (guilty *item, helps bool) {
	if len(m.items) == 0 {
		return nil, false
	}
	problem, ok := errors.AsType[*schema.Problem](err)
	if result == unfit && ok && problem.Pointer != "" {
		list, i, ok := blamed(problem.Pointer)
		if list == "removed" {
			i += len(m.report.Reconcilers)
		}
		if !ok || i >= len(m.items) {
			return nil, false
		}
		return m.items[i], true
	}
	if len(m.items) == 1 {
		return m.items[0], true
	}
	return nil, true
}

// blame puts a weaker form of a reconciler in the place of one that the hub
// refuses. It must not look green: the weaker form says unknown, and why. One
// that is refused in every form is withheld.
func (o *Outbox) blame(m *message, it *item, err error) {
	if it.form == nil {
		o.strike(m, it)
		return
	}
	why := withoutIndex(err.Error())
	if p, ok := errors.AsType[*schema.Problem](err); ok {
		why = withoutIndex(p.Error())
	}
	r := refusal{facts: *it.form, level: 1, why: why}
	if before, again := o.refused[it.ref]; again {
		if as, ok := o.known(before.facts); ok && as.digest == it.form.digest {
			r = refusal{facts: before.facts, level: before.level + 1, why: before.why}
		}
	}
	last := o.ledger.isPut(it.ref, it.form)
	weaker, level, ok := o.opts.reduced(r.facts.rec, r.level, r.why)
	r.level = level
	o.refused[it.ref] = r
	if !ok {
		o.withheld(it.ref)
		if last {
			o.ledger.note(it.ref, nil)
		}
		o.strike(m, it)
		return
	}
	o.log.Warn("the hub refuses a reconciler; it is reported as unknown", "reconciler", it.ref.String(), "error", err)
	if m.work.batch != nil {
		m.work.batch.bytes += weaker.size - it.size()
	}
	it.form = &weaker
	if last {
		o.ledger.note(it.ref, it.form)
	}
}

// strike takes an item out of what is to be sent.
func (o *Outbox) strike(m *message, it *item) {
	if s := m.work.snapshot; s != nil {
		s.items = slices.DeleteFunc(s.items, func(other *item) bool { return other == it })
		s.restart()
		return
	}
	o.queue.settle(m.work, []*item{it})
}

// withheld says that a reconciler cannot be reported in any form.
func (o *Outbox) withheld(ref schema.ObjectRef) {
	o.metrics.dropped.WithLabelValues(droppedWithheld).Inc()
	o.log.Error("a reconciler cannot be reported in any form and is missing at the hub", "reconciler", ref.String())
}

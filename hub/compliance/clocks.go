package compliance

import (
	"slices"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// Every clock here is over at its boundary, not after it: what is due at a
// moment has happened at that moment, so that looking again at Result.NextAt is
// enough.
func (e *evaluation) isOver(at time.Time) bool { return !e.in.Now.Before(at) }

// silentFrom is when a cluster that is heard of no more counts as silent.
func (e *evaluation) silentFrom(c *Cluster) time.Time {
	return c.LastSeen.Add(time.Duration(e.in.Rules.SilentAfter) * c.HeartbeatInterval)
}

// agedFrom is when a reason that ages counts as a failure.
func (e *evaluation) agedFrom(s *Subscriber) time.Time { return s.AgingSince.Add(e.in.Rules.AgeAfter) }

// wakeFor notes when a subscriber's judgement changes by itself.
func (e *evaluation) wakeFor(s *Subscriber) {
	if s.Reporter != nil {
		e.wakeAt(e.silentFrom(s.Reporter))
	}
	if !s.AgingSince.IsZero() {
		e.wakeAt(e.agedFrom(s))
	}
}

// wakeAt notes a moment at which the verdict may change by itself.
func (e *evaluation) wakeAt(at time.Time) {
	if at.After(e.in.Now) {
		e.next = earliest(e.next, at)
	}
}

// after returns the progress with what this evaluation found: the count of
// compliant ones rises only above its highest so far, so that one that was lost
// and came back is no rise.
func (p Progress) after(now time.Time, t *tally) Progress {
	if p.FirstAsked.IsZero() {
		p.FirstAsked = now
	}
	if t.counts.Compliant <= p.Highest {
		return p
	}
	p.Highest = t.counts.Compliant
	rose := t.latestSince
	if rose.After(now) {
		rose = now
	}
	if rose.After(p.RoseAt) {
		p.RoseAt = rose
	}
	return p
}

// deadline is when the gate fails without further progress.
func (p Progress) deadline(policy schema.Policy) time.Time {
	from := p.FirstAsked
	if p.RoseAt.After(from) {
		from = p.RoseAt
	}
	return from.Add(time.Duration(policy.ProgressDeadline))
}

// heldSince is when the last success that the policy needed was seen, given
// that the policy's conditions hold: the needed-th of the compliant ones by
// their soak, and the last of the mandatory ones. ok is false while one that is
// needed is not steady.
func (t *tally) heldSince(needed int, firstAsked time.Time) (held time.Time, ok bool) {
	if needed == 0 {
		return firstAsked, true
	}
	if len(t.steady) < needed || t.mandatoryUnsteady {
		return time.Time{}, false
	}
	slices.SortFunc(t.steady, time.Time.Compare)
	held = t.steady[needed-1]
	if t.mandatorySteady.After(held) {
		held = t.mandatorySteady
	}
	return held, true
}

package compliance

import (
	"slices"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// judgement is what the table says of one subscriber. Its texts are made only
// for those that are listed (reason.go).
type judgement struct {
	outcome schema.Outcome
	// why leads to the reason of an outcome that is not compliant.
	why cause
	// status is the subscriber's own after ageing.
	status schema.Status
	// since is when it became compliant, steady when its soak began; steady is
	// zero while there is none. Both are zero for outcomes other than compliant.
	since, steady time.Time
	// child is what made a compliant subscriber something else, for causeChild.
	child *trouble
}

// subscriber judges one subscriber by the table. Each matching source is judged
// by itself and the worst outcome wins.
func (e *evaluation) subscriber(s *Subscriber) judgement {
	if why := e.unknown(s); why != causeNone {
		return judgement{outcome: schema.OutcomeUnknown, why: why, status: s.Status}
	}
	// An expected one on a silent cluster is unknown, by the order of the rows.
	if s.Expected {
		return judgement{outcome: schema.OutcomePending, why: causeNeverReported, status: s.Status}
	}
	if len(s.Sources) == 0 {
		return e.source(s, &Source{})
	}
	worst := e.source(s, &s.Sources[0])
	for i := 1; i < len(s.Sources); i++ {
		worst = worst.and(e.source(s, &s.Sources[i]))
	}
	return worst
}

// and joins the judgements of two sources: the worse one, or, where both are
// compliant, the later of their clocks.
func (j judgement) and(o judgement) judgement {
	if j.outcome != schema.OutcomeCompliant || o.outcome != schema.OutcomeCompliant {
		if o.outcome.Severity() < j.outcome.Severity() {
			return o
		}
		return j
	}
	if o.status == schema.StatusFailure {
		j.status = o.status
	}
	j.notBefore(o)
	return j
}

// notBefore moves the clocks of a compliant one to the success that was needed
// last: its own or the other's.
func (j *judgement) notBefore(o judgement) {
	if o.since.After(j.since) {
		j.since = o.since
	}
	if o.steady.IsZero() || j.steady.IsZero() {
		j.steady = time.Time{}
		return
	}
	if o.steady.After(j.steady) {
		j.steady = o.steady
	}
}

// unknown is the table's first row: the cluster is silent, the kind can no
// longer be listed, or the status is one that nobody knows.
func (e *evaluation) unknown(s *Subscriber) cause {
	if s.Reporter != nil {
		if e.isOver(e.silentFrom(s.Reporter)) {
			return causeSilent
		}
		if len(s.Reporter.UnlistedKinds) > 0 && slices.Contains(s.Reporter.UnlistedKinds, s.Ref.Kind) {
			return causeUnlisted
		}
	}
	if !s.Expected && (s.Status == schema.StatusUnknown || !s.Status.Valid()) {
		return causeStatus
	}
	return causeNone
}

// source judges one source by the rows after the first; the first that matches
// wins.
func (e *evaluation) source(s *Subscriber, src *Source) judgement {
	status, attempted := e.effective(s, src)
	j := judgement{status: status}
	applied := e.lineage.relation(src.Applied)
	reached := applied.reached()

	// C was reverted. Opaque paths do not stop this row: the folder itself is
	// as it was before C, and that is enough not to call C deployed.
	if applied == Descendant {
		switch back, known := e.lineage.reverted(src.Applied, src.Path); {
		case back:
			return j.as(schema.OutcomeFailed, causeReverted)
		case !known: // it may have been
			return j.as(schema.OutcomeUnknownLineage, causeUnknownCommit)
		}
	}
	if reached {
		if since, steady := e.latch(src.Runs); !since.IsZero() {
			j.since, j.steady = since, steady
			return j.as(schema.OutcomeCompliant, causeNone)
		}
	}
	if applied == Ancestor && status == schema.StatusSuccess && !s.OpaquePaths && e.lineage.sameFolder(src.Applied, src.Path) {
		if n := len(src.Runs); n > 0 {
			j.since, j.steady = src.Runs[n-1].SteadyAt, src.Runs[n-1].SteadyAt
		}
		return j.as(schema.OutcomeCompliant, causeNone)
	}
	if status == schema.StatusSuspended {
		return j.as(schema.OutcomeSuspended, causeSuspended)
	}
	if reached || e.lineage.reaches(attempted) {
		return j.asReached()
	}
	return e.notReached(s, src, j, applied, attempted)
}

// as gives the judgement its outcome.
func (j judgement) as(o schema.Outcome, why cause) judgement {
	j.outcome, j.why = o, why
	return j
}

// asReached is the rows "A or T ⊒ C" of one without a latched success.
func (j judgement) asReached() judgement {
	switch j.status {
	case schema.StatusFailure:
		return j.as(schema.OutcomeFailed, causeStatus)
	case schema.StatusPending:
		return j.as(schema.OutcomePending, causeStatus)
	case schema.StatusSuccess:
		return j.as(schema.OutcomeInProgress, causeNoSuccess)
	}
	return j.as(schema.OutcomeInProgress, causeStatus)
}

// notReached is the last two rows: pending and why, or a lineage nobody knows.
// One related commit of the two is enough to tell; only where none of the known
// ones is related, the lineage is unknown.
func (e *evaluation) notReached(s *Subscriber, src *Source, j judgement, applied Relation, attempted string) judgement {
	tried := e.lineage.relation(attempted)
	switch {
	case src.Applied == "" && attempted == "":
		if s.SourceError != "" {
			return j.as(schema.OutcomePending, causeSourceError)
		}
		return j.as(schema.OutcomePending, causeNeverApplied)
	case applied != Ancestor && tried != Ancestor:
		if applied == Unrelated || tried == Unrelated {
			return j.as(schema.OutcomeUnknownLineage, causeUnrelated)
		}
		return j.as(schema.OutcomeUnknownLineage, causeUnknownCommit)
	case s.SourceError != "":
		return j.as(schema.OutcomePending, causeSourceError)
	case e.leftCommit(src.Runs):
		return j.as(schema.OutcomePending, causeRolledBack)
	}
	return j.as(schema.OutcomePending, causeNotFetched)
}

// effective returns the status after ageing and the attempted commit that it
// counts at.
//
// A reason that ages turns in progress into a failure at T. A failure at no
// known commit counts as in progress while it is young and at the newest commit
// of the ref afterwards; where that is not known either, T stays empty.
func (e *evaluation) effective(s *Subscriber, src *Source) (status schema.Status, attempted string) {
	status, attempted = s.Status, src.Attempted
	homeless := status == schema.StatusFailure && attempted == ""
	if status != schema.StatusInProgress && !homeless {
		return status, attempted
	}
	if s.AgingSince.IsZero() || !e.isOver(e.agedFrom(s)) {
		return schema.StatusInProgress, attempted
	}
	if attempted == "" {
		attempted, _ = e.lineage.graph.Head(e.in.Endpoint.Ref)
	}
	return schema.StatusFailure, attempted
}

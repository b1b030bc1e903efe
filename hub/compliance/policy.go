package compliance

import (
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// The reasons of a verdict.
const (
	reasonMaxFailures      = "max_failures"
	reasonZeroTargets      = "zero_targets"
	reasonProgressDeadline = "progress_deadline"
	reasonMinSuccessTime   = "min_success_time"
	reasonMandatory        = "mandatory"
)

// tally adds up the subscribers that were asked for.
type tally struct {
	counts schema.Counts
	byType map[string]schema.TypeCount
	// excluded are those that the policy leaves out.
	excluded int
	// latestSince is when the last of the compliant ones became so.
	latestSince time.Time
	// steady are the soak starts of the compliant ones that have one; only
	// gathered when the policy has a soak.
	steady []time.Time

	// mandatorySelected is whether any cluster is selected, mandatoryMissing
	// whether one of the selected is not compliant, mandatoryUnsteady whether
	// one of them has no soak start; mandatorySteady is the latest of these.
	mandatorySelected, mandatoryMissing, mandatoryUnsteady bool
	mandatorySteady                                        time.Time
}

func (e *evaluation) tally() tally {
	t := tally{byType: map[string]schema.TypeCount{}}
	soak := e.in.Policy.MinSuccessTime > 0
	selected := map[*Cluster]bool{}
	for i := range e.in.Subscribers {
		s, j := &e.in.Subscribers[i], &e.judged[i]
		if !s.Asked {
			continue
		}
		t.counts.Add(j.outcome)
		kind := t.byType[s.ClusterType]
		kind.Total++
		if j.outcome == schema.OutcomeCompliant {
			kind.Compliant++
			if j.since.After(t.latestSince) {
				t.latestSince = j.since
			}
			if soak && !j.steady.IsZero() {
				t.steady = append(t.steady, j.steady)
			}
		}
		t.byType[s.ClusterType] = kind
		if e.excludes(j.outcome) {
			t.excluded++
		}
		if e.isMandatory(s.Destination, selected) {
			t.addMandatory(j)
		}
	}
	return t
}

// excludes reports whether the policy leaves an outcome out of the count.
func (e *evaluation) excludes(o schema.Outcome) bool {
	switch o {
	case schema.OutcomeUnknown:
		return e.in.Policy.Unknown == schema.Exclude
	case schema.OutcomeSuspended:
		return e.in.Policy.Suspended == schema.Exclude
	}
	return false
}

// isMandatory reports whether the policy selects a cluster. A cluster that is
// not registered has no labels to select it by.
func (e *evaluation) isMandatory(c *Cluster, selected map[*Cluster]bool) bool {
	if e.in.Mandatory == nil || c == nil {
		return false
	}
	is, known := selected[c]
	if !known {
		is = e.in.Mandatory(c.Labels)
		selected[c] = is
	}
	return is
}

// addMandatory counts a subscriber on a selected cluster. One that is excluded
// is not compliant either.
func (t *tally) addMandatory(j *judgement) {
	t.mandatorySelected = true
	switch {
	case j.outcome != schema.OutcomeCompliant:
		t.mandatoryMissing = true
	case j.steady.IsZero():
		t.mandatoryUnsteady = true
	case j.steady.After(t.mandatorySteady):
		t.mandatorySteady = j.steady
	}
}

// decide is the policy's order: too many failures, too few targets, passed,
// deadline over, waiting; the first that holds.
func (e *evaluation) decide(t *tally, progress Progress, deadline time.Time) (schema.State, string) {
	policy := e.in.Policy
	if t.counts.Failed > policy.MaxFailures {
		return schema.Failed, reasonMaxFailures
	}
	counted := t.counts.Total - t.excluded
	if counted < policy.ZeroTargets.Least() {
		if e.isOver(deadline) {
			return schema.Failed, reasonZeroTargets
		}
		return schema.Waiting, reasonZeroTargets
	}
	missing, passed := e.missing(t, counted, progress)
	switch {
	case passed:
		return schema.Passed, ""
	case e.isOver(deadline):
		return schema.Failed, reasonProgressDeadline
	}
	return schema.Waiting, missing
}

// missing says which of the conditions to pass does not hold, the coarsest
// first: enough compliant ones (which has no name), the mandatory clusters, the
// soak. passed is true when all hold.
func (e *evaluation) missing(t *tally, counted int, progress Progress) (reason string, passed bool) {
	policy := e.in.Policy
	needed := policy.MinCompliant.Of(counted) - min(t.counts.Failed, policy.MaxFailures)
	if counted > 0 {
		needed = max(needed, 1) // failures alone never pass
	}
	needed = max(needed, 0)
	if t.counts.Compliant < needed {
		return "", false
	}
	// A selector without its function selects nothing, which is not a pass.
	if (e.in.Mandatory != nil || policy.Mandatory != "") && (!t.mandatorySelected || t.mandatoryMissing) {
		return reasonMandatory, false
	}
	if policy.MinSuccessTime <= 0 {
		return "", true
	}
	held, ok := t.heldSince(needed, progress.FirstAsked)
	if !ok {
		return reasonMinSuccessTime, false
	}
	end := held.Add(time.Duration(policy.MinSuccessTime))
	if e.isOver(end) {
		return "", true
	}
	e.wakeAt(end)
	return reasonMinSuccessTime, false
}

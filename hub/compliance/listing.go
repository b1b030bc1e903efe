package compliance

import (
	"cmp"
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/schema"
)

// severities is how many places Outcome.Severity gives.
const severities = 7

// unfinished lists who is not compliant and why: worst first, then by cluster
// and reconciler.
func (e *evaluation) unfinished() []schema.Unfinished {
	rows := e.listed(schema.MaxUnfinished, func(_ *Subscriber, j *judgement) bool {
		return j.outcome != schema.OutcomeCompliant
	})
	list := make([]schema.Unfinished, len(rows))
	for k, i := range rows {
		s := &e.in.Subscribers[i]
		list[k] = schema.Unfinished{
			Cluster: s.DestinationName, Reconciler: s.Ref.String(),
			Verdict: e.judged[i].outcome, Reason: e.reason(i), Revision: s.Revision,
		}
	}
	return list
}

// currently lists the compliant ones whose status is not success now, by
// cluster and reconciler.
func (e *evaluation) currently() []schema.Currently {
	rows := e.listed(schema.MaxCurrently, func(_ *Subscriber, j *judgement) bool {
		return j.outcome == schema.OutcomeCompliant && j.status != schema.StatusSuccess
	})
	list := make([]schema.Currently, len(rows))
	for k, i := range rows {
		s := &e.in.Subscribers[i]
		list[k] = schema.Currently{
			Cluster: s.DestinationName, Reconciler: s.Ref.String(),
			Status: e.judged[i].status, Reason: ownReason(s),
		}
	}
	return list
}

// listed returns the places of the asked subscribers that belong in a list, in
// its order and no more than most. Whole severities are sorted only as far as
// the list reaches.
func (e *evaluation) listed(most int, belongs func(*Subscriber, *judgement) bool) []int {
	var bySeverity [severities][]int
	for i := range e.in.Subscribers {
		s, j := &e.in.Subscribers[i], &e.judged[i]
		if s.Asked && belongs(s, j) {
			n := j.outcome.Severity()
			bySeverity[n] = append(bySeverity[n], i)
		}
	}
	var rows []int
	for _, group := range bySeverity {
		slices.SortFunc(group, e.compare)
		rows = append(rows, group[:min(len(group), most-len(rows))]...)
		if len(rows) == most {
			break
		}
	}
	return rows
}

// compare orders subscribers of one outcome by cluster and reconciler, and, so
// that the order of the input never shows, by what else a row shows.
func (e *evaluation) compare(a, b int) int {
	s, o := &e.in.Subscribers[a], &e.in.Subscribers[b]
	if c := strings.Compare(s.DestinationName, o.DestinationName); c != 0 {
		return c
	}
	if c := compareText(s.Ref, o.Ref); c != 0 {
		return c
	}
	return cmp.Or(
		strings.Compare(s.Revision, o.Revision),
		cmp.Compare(e.judged[a].status, e.judged[b].status),
		strings.Compare(e.reason(a), e.reason(b)),
		strings.Compare(ownReason(s), ownReason(o)),
	)
}

// compareText orders references as their texts order, without making these
// where kind and namespace are the same, as they mostly are.
func compareText(a, b schema.ObjectRef) int {
	if a.Kind == b.Kind && a.Namespace == b.Namespace {
		return strings.Compare(a.Name, b.Name)
	}
	return strings.Compare(a.String(), b.String())
}

// nearMisses returns the list sorted and cut; what it was given stays as it is.
func nearMisses(given []schema.NearMiss) []schema.NearMiss {
	list := append([]schema.NearMiss{}, given...)
	slices.SortFunc(list, func(a, b schema.NearMiss) int {
		return cmp.Or(
			strings.Compare(a.Cluster, b.Cluster),
			strings.Compare(a.Reconciler, b.Reconciler),
			strings.Compare(a.Ref, b.Ref),
			strings.Compare(a.Path, b.Path),
			cmp.Compare(a.Why, b.Why),
		)
	})
	return list[:min(len(list), schema.MaxNearMisses)]
}

package compliance

import (
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// Evaluate judges a commit: each subscriber by the table (subscriber.go) and by
// what it made (children.go), then all together by the policy (policy.go). The
// same input gives the same result, whatever the order of its subscribers.
func Evaluate(in Input) Result {
	e := evaluation{in: &in, lineage: newLineage(in.Graph, in.Commit), judged: make([]judgement, len(in.Subscribers))}
	for i := range in.Subscribers {
		if s := &in.Subscribers[i]; e.involved(s) {
			e.judged[i] = e.subscriber(s)
			e.wakeFor(s)
		}
	}
	if e.childrenCount() {
		e.judgeChildren()
	}
	t := e.tally()
	progress := in.Progress.after(in.Now, &t)
	deadline := progress.deadline(in.Policy)
	state, reason := e.decide(&t, progress, deadline)
	if state == schema.Waiting {
		e.wakeAt(deadline)
	}
	return Result{
		Verdict: schema.Verdict{
			Repo: in.Question.Repo, Ref: in.Question.Ref, Path: in.Question.Path, Commit: in.Question.Commit,
			State: state, Reason: reason, Policy: in.Policy,
			Counts: t.counts, ByClusterType: t.byType,
			Unfinished: e.unfinished(), Currently: e.currently(), NearMisses: nearMisses(in.NearMisses),
			DeadlineAt: deadline.UTC(), EvaluatedAt: in.Now.UTC(),
		},
		Progress: progress,
		NextAt:   e.next,
	}
}

// evaluation is the state of one call of Evaluate.
type evaluation struct {
	in      *Input
	lineage lineage
	// judged holds a judgement per subscriber, in the order of the input.
	judged []judgement
	// next is the earliest moment after now at which something changes by itself.
	next time.Time
}

// involved reports whether a subscriber can change the verdict.
func (e *evaluation) involved(s *Subscriber) bool { return s.Asked || e.childrenCount() }

// childrenCount reports whether what a subscriber made must have succeeded too.
func (e *evaluation) childrenCount() bool { return e.in.Policy.Children != schema.ChildrenIgnore }

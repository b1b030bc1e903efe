package compliance

import (
	"strings"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// trouble is the worst unsettled child of a subscriber.
type trouble struct {
	outcome schema.Outcome
	ref     schema.ObjectRef
	reason  string
	// count is how many children are unsettled.
	count int
}

// owner names a reconciler across clusters.
type owner struct {
	cluster string
	ref     schema.ObjectRef
}

// family knows who owns whom.
//
// Two kinds of children count: those that the reporters say are blocked, which
// read other endpoints or none, and those among the subscribers, which read the
// repository and ref asked for and are judged at the commit by the table.
type family struct {
	// first and next are lists of owned subscribers, as 1 + their place.
	first map[owner]int32
	next  []int32
	// blocked are the unsettled children of other endpoints.
	blocked map[owner][]*Blocked

	// heirs is each subscriber's own first child, looked up once; -1 before.
	heirs []int32
	// seen marks, with 1 + the place of the subscriber that is asked about, who
	// was visited: owners may form a circle.
	seen  []int32
	stack []int32
}

// judgeChildren turns compliant subscribers into what their worst child is, and
// moves the clocks of the others to the success that was needed last. The
// outcomes it reads are the table's own: a subscriber sees its children's
// children itself.
func (e *evaluation) judgeChildren() {
	f := e.family()
	if f == nil {
		return
	}
	type change struct {
		at int
		trouble
	}
	var changes []change
	for i := range e.in.Subscribers {
		if !e.in.Subscribers[i].Asked || e.judged[i].outcome != schema.OutcomeCompliant {
			continue
		}
		if t := e.trouble(f, i); t.count > 0 {
			changes = append(changes, change{i, t})
		}
	}
	for i := range changes {
		c := &changes[i]
		j := &e.judged[c.at]
		j.outcome, j.why, j.child = c.outcome, causeChild, &c.trouble
		j.since, j.steady = time.Time{}, time.Time{}
	}
}

// family returns nil when nobody owns anybody.
func (e *evaluation) family() *family {
	subscribers := e.in.Subscribers
	f := &family{first: map[owner]int32{}, blocked: map[owner][]*Blocked{}}
	reporters := map[*Cluster]bool{}
	for i := range subscribers {
		s := &subscribers[i]
		if s.Reporter == nil {
			continue
		}
		if len(s.Reporter.Blocked) > 0 && !reporters[s.Reporter] {
			reporters[s.Reporter] = true
			f.addBlocked(s.Reporter, e.in.Endpoint)
		}
		if s.Owner == nil {
			continue
		}
		if f.next == nil {
			f.next = make([]int32, len(subscribers))
		}
		key := owner{s.Reporter.Name, *s.Owner}
		f.next[i] = f.first[key]
		f.first[key] = int32(i) + 1 // subscribers are far fewer than 2³¹
	}
	if len(f.first) == 0 && len(f.blocked) == 0 {
		return nil
	}
	if len(f.first) > 0 {
		f.heirs, f.seen = make([]int32, len(subscribers)), make([]int32, len(subscribers))
		for i := range f.heirs {
			f.heirs[i] = -1
		}
	}
	return f
}

// addBlocked keeps a reporter's blocked ones, but not those of the endpoint
// asked for: these are judged at the commit instead.
func (f *family) addBlocked(c *Cluster, asked schema.Endpoint) {
	for i := range c.Blocked {
		b := &c.Blocked[i]
		if b.Repo == asked.Repo && b.Ref == asked.Ref {
			continue
		}
		key := owner{c.Name, b.Owner}
		f.blocked[key] = append(f.blocked[key], b)
	}
}

// trouble returns the worst of what stands below a subscriber, at any depth,
// its count being 0 when all is well. Where all is well it moves the
// subscriber's clocks.
func (e *evaluation) trouble(f *family, i int) trouble {
	s := &e.in.Subscribers[i]
	var worst trouble
	if s.Reporter == nil {
		return worst
	}
	for _, b := range f.blocked[owner{s.Reporter.Name, s.Ref}] {
		reason := b.Reason
		if reason == "" {
			reason = string(b.Status)
		}
		worst.add(trouble{outcome: blockedOutcome(b.Status), ref: b.Child, reason: reason, count: max(b.Count, 1)})
	}
	if f.seen == nil {
		return worst
	}
	mark := int32(i) + 1 //nolint:gosec // as above
	f.seen[i] = mark
	clocks := e.judged[i]
	f.stack = append(f.stack[:0], e.heir(f, i))
	for len(f.stack) > 0 {
		child := f.stack[len(f.stack)-1] - 1
		f.stack = f.stack[:len(f.stack)-1]
		if child < 0 {
			continue
		}
		f.stack = append(f.stack, f.next[child])
		if f.seen[child] == mark {
			continue
		}
		f.seen[child] = mark
		f.stack = append(f.stack, e.heir(f, int(child)))
		c, j := &e.in.Subscribers[child], &e.judged[child]
		switch {
		case !c.Asked && !c.Expected && len(c.Sources) == 0:
			// Only a link of the chain: it reads another endpoint, and its own
			// trouble is in the reporter's blocked ones.
		case j.outcome == schema.OutcomeCompliant:
			clocks.notBefore(*j)
		default:
			worst.add(trouble{outcome: childOutcome(j.outcome), ref: c.Ref, reason: e.reason(int(child)), count: 1})
		}
	}
	e.judged[i].since, e.judged[i].steady = clocks.since, clocks.steady
	return worst
}

// heir returns 1 + the place of a subscriber's first child, 0 for none.
func (e *evaluation) heir(f *family, i int) int32 {
	if f.heirs[i] < 0 {
		f.heirs[i] = 0
		if s := &e.in.Subscribers[i]; s.Reporter != nil {
			f.heirs[i] = f.first[owner{s.Reporter.Name, s.Ref}]
		}
	}
	return f.heirs[i]
}

// add counts another unsettled child and keeps the worse of the two; of equally
// bad ones the first by name.
func (t *trouble) add(o trouble) {
	o.count += t.count
	if t.count == 0 || o.before(t) {
		*t = o
		return
	}
	t.count = o.count
}

func (t *trouble) before(o *trouble) bool {
	if a, b := t.outcome.Severity(), o.outcome.Severity(); a != b {
		return a < b
	}
	if c := t.ref.Compare(o.ref); c != 0 {
		return c < 0
	}
	return strings.Compare(t.reason, o.reason) < 0
}

// blockedOutcome is what a child's status makes of its owner.
func blockedOutcome(s schema.Status) schema.Outcome {
	switch s {
	case schema.StatusFailure:
		return schema.OutcomeFailed
	case schema.StatusUnknown:
		return schema.OutcomeUnknown
	case schema.StatusSuspended:
		return schema.OutcomeSuspended
	}
	return schema.OutcomeInProgress
}

// childOutcome is what a child's own outcome makes of its owner: failed,
// unknown or suspended where the child is that, else in progress.
func childOutcome(o schema.Outcome) schema.Outcome {
	switch o {
	case schema.OutcomeFailed, schema.OutcomeUnknown, schema.OutcomeSuspended:
		return o
	}
	return schema.OutcomeInProgress
}

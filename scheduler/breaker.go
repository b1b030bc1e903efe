package scheduler

import "fmt"

// breaker gives templates up that go over their limits time and again: each try
// takes up to a second. What it says depends on the results of the assignments
// before, in their order, and on nothing else; so a plan from memory gives up
// where a plan from cold does.
type breaker struct {
	byWorkload map[[2]string]int
	byTemplate map[string]*record
}

type record struct {
	workloads int
	success   bool
}

const (
	// mostTries is how often a template may go over its limits for one workload.
	mostTries = 3
	// mostWorkloads is for how many workloads it may do so before it has been run
	// with success for any: one workload's oddities must not stop the others.
	mostWorkloads = 5
)

func newBreaker() *breaker {
	return &breaker{byWorkload: map[[2]string]int{}, byTemplate: map[string]*record{}}
}

// open returns why a template is not to be run for a workload any more; "" when
// it is.
func (b *breaker) open(template, workload string) string {
	if r := b.byTemplate[template]; r != nil && !r.success && r.workloads >= mostWorkloads {
		return fmt.Sprintf("Template %q is given up for this plan: it went over its limits for each of %d workloads before", template, r.workloads)
	}
	if n := b.byWorkload[[2]string{template, workload}]; n >= mostTries {
		return fmt.Sprintf("Template %q is given up for workload %q in this plan: it went over its limits %d times before", template, workload, n)
	}
	return ""
}

// note takes the result of a run.
func (b *breaker) note(template, workload string, overLimit, success bool) {
	r := b.byTemplate[template]
	if r == nil {
		r = &record{}
		b.byTemplate[template] = r
	}
	r.success = r.success || success
	if !overLimit {
		return
	}
	key := [2]string{template, workload}
	if b.byWorkload[key]++; b.byWorkload[key] == 1 {
		r.workloads++
	}
}

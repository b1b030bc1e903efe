package scheduler

import (
	"fmt"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
)

// complaints gathers the problems of a plan. What many assignments complain
// about is told once.
type complaints struct {
	all    []controlplane.Problem
	shared map[controlplane.Problem]*sufferers
}

// sufferers are the assignments that complain about one thing.
type sufferers struct {
	first string
	count int
}

func newComplaints(all []controlplane.Problem) *complaints {
	c := &complaints{shared: map[controlplane.Problem]*sufferers{}}
	c.add(all...)
	return c
}

func (c *complaints) add(all ...controlplane.Problem) { c.all = append(c.all, all...) }

// of takes the complaints of an assignment.
func (c *complaints) of(e *entry) {
	for _, p := range e.problems {
		s := c.shared[p]
		if s == nil {
			s = &sufferers{first: e.planned.Name()}
			c.shared[p] = s
		}
		s.count++
	}
}

func (c *complaints) sorted() []controlplane.Problem {
	known := make(map[controlplane.Problem]bool, len(c.all))
	for _, p := range c.all {
		known[p] = true
	}
	for p, s := range c.shared {
		if known[p] {
			continue
		}
		p.Message += " (not planned because of it: " + s.first
		if s.count > 1 {
			p.Message += fmt.Sprintf(" and %d more", s.count-1)
		}
		p.Message += ")"
		c.all = append(c.all, p)
	}
	return controlplane.SortProblems(c.all)
}

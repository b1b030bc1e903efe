package control

import (
	"fmt"
	"strings"
	"time"
)

// State is how it stands with a control plane.
type State struct {
	// Repo is its canonical form.
	Repo string
	// OK says that all of its environments are published, and nothing is wrong with
	// them. Detail says more.
	OK     bool
	Detail string
}

// States returns how it stands with each control plane, in the order in which
// they are configured.
func (c *Control) States() []State {
	states := make([]State, 0, len(c.planes))
	for _, p := range c.planes {
		s := State{Repo: p.name, OK: true}
		details := make([]string, 0, len(p.environments))
		for _, e := range p.environments {
			ok, detail := e.state()
			s.OK = s.OK && ok
			details = append(details, e.name+": "+detail)
		}
		s.Detail = strings.Join(details, "; ")
		states = append(states, s)
	}
	return states
}

// mostDetail bounds what is quoted of a problem, in bytes.
const mostDetail = 300

// state says how it stands with an environment.
func (e *environment) state() (ok bool, detail string) {
	e.mu.Lock()
	o := e.outcome
	e.mu.Unlock()
	detail = "not planned yet"
	if !o.planned.IsZero() {
		detail = fmt.Sprintf("%d assignments planned at %s", o.assignments, o.planned.UTC().Format(time.RFC3339))
	}
	said, problem := about(&o.request)
	switch {
	case o.request.Number != 0 && !problem:
		detail += fmt.Sprintf(", %s into %s", said, o.commit)
	case o.request.Number == 0 && o.commit != "":
		detail += ", published as " + o.commit
	}
	if o.failed > 0 {
		detail += fmt.Sprintf(", %d of them stay as they were", o.failed)
	}
	for _, problems := range [][]string{o.problems, o.stale} {
		if len(problems) > 0 {
			detail += fmt.Sprintf(", %s: %s", counted(len(problems)), short(problems[0]))
		}
	}
	if o.err != nil {
		detail += ", not up to date: " + short(inShort(o.err))
	}
	var untold error
	if e.herald != nil {
		untold = e.herald.trouble()
	}
	if untold != nil {
		detail += ", its commit status cannot be set: " + brief(untold).Error()
	}
	return o.err == nil && untold == nil && !o.planned.IsZero() && o.request.Number == 0 && len(o.problems)+len(o.stale) == 0, detail
}

func counted(n int) string {
	if n == 1 {
		return "1 problem"
	}
	return fmt.Sprintf("%d problems, the first", n)
}

func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > mostDetail {
		s = strings.ToValidUTF8(s[:mostDetail], "") + " …"
	}
	return s
}

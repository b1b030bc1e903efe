package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/internal/forge"
	"github.com/landfall-hub/landfall/scheduler"
	"github.com/landfall-hub/landfall/scheduler/compose"
	"github.com/landfall-hub/landfall/scheduler/render"
	"github.com/landfall-hub/landfall/scheduler/source"
)

// environment plans and publishes one environment of a control plane.
type environment struct {
	control *Control
	plane   *plane
	name    string
	log     *slog.Logger
	// wake has room for one: something may have changed.
	wake chan struct{}

	// What follows belongs to its goroutine.

	planner *scheduler.Planner
	trees   trees
	// done are the marks of the last round that left nothing to do.
	done string
	// said are the problems of the last plan, saidStale what was old in the last
	// round: they were logged.
	said, saidStale map[string]bool
	// kept are the rows that are stored.
	kept map[record.ScheduleKey]record.Scheduled
	// head is the newest commit of the environment's branch.
	head string
	// proposed is the pull request of the last plan; lookAt is when to see what
	// became of it.
	proposed proposed
	lookAt   time.Time

	// herald tells the control plane's provider how it stands; nil for nobody.
	herald *herald

	mu      sync.Mutex
	outcome outcome
}

// outcome is how it stands with an environment, for people.
type outcome struct {
	// planned is when the last plan was made; zero for never.
	planned time.Time
	// assignments are how many there are, failed those that could not be planned.
	assignments, failed int
	// head is the commit of the environment's branch that was planned.
	head string
	// commit is where the GitOps repository's branch is.
	commit string
	// request is the pull request that the plan waits for; its number is 0 for none.
	request forge.PullRequest
	// problems are what the last plan complains of; stale is what is known and may
	// be old; err is why the last round did not come to its end.
	problems, stale []string
	err             error
}

func newEnvironment(c *Control, p *plane, name string) *environment {
	e := &environment{
		control: c, plane: p, name: name, log: c.opts.Log.With("environment", name, "control_plane", p.name),
		wake: make(chan struct{}, 1), planner: scheduler.NewPlanner(render.Limits{}),
		kept: map[record.ScheduleKey]record.Scheduled{},
	}
	readFile(c.fileOf("proposal", name), &e.proposed)
	if p.provider != nil {
		e.herald = newHerald(p.provider, c.fileOf("status", name), e.log, func(result string) { c.metrics.statuses.WithLabelValues(name, result).Inc() })
	}
	return e
}

// How soon a round that failed is done again.
const (
	firstRetry = 2 * time.Second
	lastRetry  = 5 * time.Minute
)

// run plans until ctx ends: at once, when something changed, and again when
// something went wrong.
func (e *environment) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		err := e.round(ctx)
		if ctx.Err() != nil {
			return
		}
		e.note(err)
		failures++
		if err == nil {
			failures = 0
		}
		rest(ctx, e.wake, e.pause(failures))
	}
}

// pause is how long is waited before the next round, should nothing change: until
// it is worth to try again, or to look at the pull request. 0 is for ever.
func (e *environment) pause(failures int) time.Duration {
	e.mu.Lock()
	waits := e.outcome.request.Number != 0
	e.mu.Unlock()
	if failures > 0 || !waits {
		return retryAfter(failures)
	}
	return max(time.Until(e.lookAt), minInterval)
}

// round brings the GitOps repository and what is stored up to date with what is
// known now. It does nothing where nothing changed since the last one.
func (e *environment) round(ctx context.Context) error {
	e.trees.turn()
	s := e.survey()
	in, err := e.gather(ctx, s)
	if err != nil || in == nil {
		return err
	}
	e.control.pool.use(e, s.uses)
	e.trouble(s.troubles)
	marks := strings.Join(s.marks, "\x00") + "\x00"
	if marks+in.gitops.commit == e.done {
		if news, err := e.follow(ctx, in.gitops); !news || err != nil {
			return err
		}
	}
	e.done = ""
	began := time.Now()
	model, err := source.Load(ctx, in.Inputs)
	if err != nil {
		return err
	}
	plan := e.planner.Plan(model)
	plan.PromotedCommit = in.base.commit
	e.control.metrics.planning.Observe(time.Since(began).Seconds())

	now, unpublished := e.publish(ctx, in, &plan)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e.tell(&plan, in.own.commit, &now)
	if err := e.record(ctx, in, &model, &plan, &now); err != nil {
		return errors.Join(unpublished, &failure{"storing what was planned", err})
	}
	e.expect(in.gitops, &plan, &now)
	if unpublished == nil {
		e.done = marks + now.commit
	}
	return unpublished
}

// The author of commits.
const (
	authorName  = "landfall"
	authorEmail = "landfall@localhost"
)

// trouble keeps what is known to be old.
func (e *environment) trouble(all []string) {
	slices.Sort(all)
	e.mu.Lock()
	e.outcome.stale = slices.Compact(all)
	e.mu.Unlock()
	e.saidStale = e.complain(all, e.saidStale)
}

// tell keeps what came of a plan, for people, and logs each problem once.
func (e *environment) tell(plan *scheduler.Plan, head string, now *standing) {
	o := outcome{planned: e.control.opts.Now(), assignments: len(plan.Assignments), head: head, commit: now.commit, request: now.request}
	for i := range plan.Problems {
		o.problems = append(o.problems, plan.Problems[i].Error())
	}
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		if a.Err != "" {
			o.failed++
		}
		for _, v := range a.Violations {
			o.problems = append(o.problems, objection(&v))
		}
	}
	if said, problem := about(&now.request); problem {
		o.problems = append(o.problems, said)
	}
	e.mu.Lock()
	o.stale = e.outcome.stale
	e.outcome = o
	e.mu.Unlock()
	m := e.control.metrics
	m.assignments.WithLabelValues(e.name).Set(float64(o.assignments))
	m.failed.WithLabelValues(e.name).Set(float64(o.failed))
	m.problems.WithLabelValues(e.name).Set(float64(len(o.problems)))
	for _, state := range []forge.State{forge.Open, forge.Closed} {
		n := 0.0
		if o.request.Number != 0 && o.request.State == state {
			n = 1
		}
		m.waiting.WithLabelValues(e.name, string(state)).Set(n)
	}
	e.said = e.complain(o.problems, e.said)
}

// objection words what a schema objects to.
func objection(v *compose.Violation) string {
	what := cmp.Or(v.Key, "the configuration")
	return fmt.Sprintf("%s: %s: %s: ConfigSchema %q objects: %s", v.Place, v.Assignment, what, v.Schema, v.Message)
}

// mostLogged is how many problems one round logs.
const mostLogged = 100

// complain logs the problems that were not there the last time, and returns all
// of them for the next one.
func (e *environment) complain(all []string, before map[string]bool) map[string]bool {
	now := make(map[string]bool, len(all))
	logged := 0
	for _, p := range all {
		if now[p] || before[p] {
			now[p] = true
			continue
		}
		now[p] = true
		if logged++; logged <= mostLogged {
			e.log.Warn("something is not as it should be; what hangs on it stays as it was", "problem", p)
		}
	}
	if logged > mostLogged {
		e.log.Warn("there are more problems than are logged", "problems", len(all))
	}
	return now
}

// note keeps what came of a round, logs it where it is news, and has the provider
// told.
func (e *environment) note(err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	e.control.metrics.rounds.WithLabelValues(e.name, result).Inc()
	e.mu.Lock()
	before := e.outcome.err
	e.outcome.err = err
	e.mu.Unlock()
	switch {
	case err == nil && before != nil:
		e.log.Info("the environment is up to date again")
	case err != nil && text(before) != err.Error():
		e.log.Warn("the environment is not up to date; it is tried again", "error", err)
	}
	e.announce(err)
}

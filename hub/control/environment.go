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
	"github.com/landfall-hub/landfall/scheduler"
	"github.com/landfall-hub/landfall/scheduler/compose"
	"github.com/landfall-hub/landfall/scheduler/publish"
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

	mu      sync.Mutex
	outcome outcome
}

// outcome is how it stands with an environment, for people.
type outcome struct {
	// planned is when the last plan was made; zero for never.
	planned time.Time
	// assignments are how many there are, failed those that could not be planned.
	assignments, failed int
	// commit is where the GitOps repository's branch is.
	commit string
	// problems are what the last plan complains of; stale is what is known and may
	// be old; err is why the last round did not come to its end.
	problems, stale []string
	err             error
}

func newEnvironment(c *Control, p *plane, name string) *environment {
	return &environment{
		control: c, plane: p, name: name, log: c.opts.Log.With("environment", name, "control_plane", p.name),
		wake: make(chan struct{}, 1), planner: scheduler.NewPlanner(render.Limits{}),
		kept: map[record.ScheduleKey]record.Scheduled{},
	}
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
		e.rest(ctx, failures)
	}
}

// rest waits until there may be something to do.
func (e *environment) rest(ctx context.Context, failures int) {
	var retry <-chan time.Time
	if failures > 0 {
		timer := time.NewTimer(min(firstRetry<<min(failures-1, 10), lastRetry))
		defer timer.Stop()
		retry = timer.C
	}
	select {
	case <-ctx.Done():
	case <-e.wake:
	case <-retry:
	}
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
		return nil
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

	commit, unpublished := e.publish(ctx, in, &plan)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e.tell(&plan, commit)
	if err := e.record(ctx, in, &model, &plan, commit); err != nil {
		return errors.Join(unpublished, &failure{"storing what was planned", err})
	}
	e.expect(in.gitops, &plan)
	if unpublished == nil {
		e.done = marks + commit
	}
	return unpublished
}

// The author of commits.
const (
	authorName  = "landfall"
	authorEmail = "landfall@localhost"
)

// publish writes the plan to the GitOps repository's branch, and returns where
// that is then: "" where it could not be written.
func (e *environment) publish(ctx context.Context, in *inputs, plan *scheduler.Plan) (commit string, err error) {
	if in.refused != nil {
		return "", in.refused
	}
	to := in.gitops
	r, err := publish.Push(ctx, publish.Options{
		Repo: to.source.git, Branch: to.ref, Name: authorName, Email: authorEmail, Now: e.control.opts.Now(),
		Message: fmt.Sprintf("Schedule %s\n\nControl plane: %s\nPromoted content: %s\n", e.name, in.own.commit, in.base.commit),
	}, publish.Of(plan))
	if err != nil {
		return "", &failure{fmt.Sprintf("publishing to the branch %s of %s", to.ref, to.source.name), err}
	}
	if r.Commit != "" {
		to.source.moved(to.ref, r.Commit)
	}
	for _, folder := range r.Summary.Foreign {
		e.log.Warn("something that is not the scheduler's is where it would write; it is left alone", "folder", folder)
	}
	if r.Changed {
		e.control.metrics.commits.WithLabelValues(e.name).Inc()
		e.log.Info("published", "commit", r.Commit, "branch", to.ref,
			"added", len(r.Summary.Added), "changed", len(r.Summary.Changed), "deleted", len(r.Summary.Deleted), "kept", len(r.Summary.Kept))
		if e.control.opts.Published != nil {
			e.control.opts.Published(to.source.name)
		}
	}
	return r.Commit, nil
}

// trouble keeps what is known to be old.
func (e *environment) trouble(all []string) {
	slices.Sort(all)
	e.mu.Lock()
	e.outcome.stale = slices.Compact(all)
	e.mu.Unlock()
	e.saidStale = e.complain(all, e.saidStale)
}

// tell keeps what came of a plan, for people, and logs each problem once.
func (e *environment) tell(plan *scheduler.Plan, commit string) {
	o := outcome{planned: e.control.opts.Now(), assignments: len(plan.Assignments), commit: commit}
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
	e.mu.Lock()
	o.stale = e.outcome.stale
	e.outcome = o
	e.mu.Unlock()
	m := e.control.metrics
	m.assignments.WithLabelValues(e.name).Set(float64(o.assignments))
	m.failed.WithLabelValues(e.name).Set(float64(o.failed))
	m.problems.WithLabelValues(e.name).Set(float64(len(o.problems)))
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

// note keeps what came of a round, and logs it where it is news.
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
}

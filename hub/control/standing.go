package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/internal/forge"
	"github.com/landfall-hub/landfall/scheduler"
	"github.com/landfall-hub/landfall/scheduler/publish"
	"github.com/landfall-hub/landfall/schema"
)

// standing is how a plan and the GitOps repository's branch stand to each other.
type standing struct {
	// commit is where the branch is; "" where that is not known, or nothing could be
	// published to it.
	commit string
	// waits says that the plan goes by pull requests, and is not in the branch yet.
	// Summary is then what differs, and folders are the cluster types that the
	// branch has; a nil summary says that nobody knows.
	waits   bool
	summary *publish.Summary
	folders []string
	// held are the versions that the branch has of what differs, and places where
	// the manifests of the versions are that were proposed.
	held   map[string]string
	places map[string][]placed
	// request is the pull request of the plan; its number is 0 for none.
	request forge.PullRequest
}

// publish brings the plan to the GitOps repository.
func (e *environment) publish(ctx context.Context, in *inputs, plan *scheduler.Plan) (standing, error) {
	byRequest := e.plane.Publish == publishPull
	if in.refused != nil {
		return standing{waits: byRequest}, in.refused
	}
	o := publish.Options{
		Repo: in.gitops.source.git, Branch: in.gitops.ref, Name: authorName, Email: authorEmail, Now: e.control.opts.Now(),
		Message: fmt.Sprintf("Schedule %s\n\nControl plane: %s\nPromoted content: %s\n", e.name, in.own.commit, in.base.commit),
	}
	if byRequest {
		return e.propose(ctx, in.gitops, o, publish.Of(plan))
	}
	r, err := publish.Push(ctx, o, publish.Of(plan))
	if err != nil {
		return standing{}, &failure{fmt.Sprintf("publishing to the branch %s of %s", in.gitops.ref, in.gitops.source.name), err}
	}
	e.arrived(in.gitops, &r)
	return standing{commit: r.Commit}, nil
}

// arrived notes what is known of the branch since it was published to.
func (e *environment) arrived(to spot, r *publish.Result) {
	if r.Commit != "" {
		to.source.moved(to.ref, r.Commit)
	}
	for _, folder := range r.Summary.Foreign {
		e.log.Warn("something that is not the scheduler's is where it would write; it is left alone", "folder", folder)
	}
	if !r.Changed {
		return
	}
	e.control.metrics.commits.WithLabelValues(e.name).Inc()
	e.log.Info("published", append([]any{"commit", r.Commit, "branch", to.ref}, amounts(&r.Summary)...)...)
	e.tellPublished(to)
}

func (e *environment) tellPublished(to spot) {
	if e.control.opts.Published != nil {
		e.control.opts.Published(to.source.name)
	}
}

func amounts(s *publish.Summary) []any {
	return []any{"added", len(s.Added), "changed", len(s.Changed), "deleted", len(s.Deleted), "kept", len(s.Kept)}
}

// proposed is what is kept of the last pull request, over restarts: one that
// somebody closes is not opened again.
type proposed struct {
	Repo, Ref string
	publish.Request
	// Places are where the manifests are of what was proposed and is not recorded as
	// published, by cluster type/deployment target; the newest is the last. They
	// tell what the branch holds where a merge and another move come before the hub
	// looks.
	Places map[string][]placed
}

// placed is where the manifests of a version of an assignment are.
type placed struct {
	Version  string
	Endpoint schema.Endpoint
}

// mostPlaces is how many are kept of each assignment.
const mostPlaces = 8

// errNoForge says what is missing for pull requests.
var errNoForge = errors.New("hub.yaml does not say what its Git provider is: name it under repositories, with forge: {provider: github or gitea}")

// propose asks for the plan to be merged into the branch.
func (e *environment) propose(ctx context.Context, to spot, o publish.Options, want *publish.Desired) (standing, error) {
	what := fmt.Sprintf("proposing a pull request to the branch %s of %s", to.ref, to.source.name)
	if to.source.provider == nil {
		return standing{waits: true}, fmt.Errorf("%s: %w", what, errNoForge)
	}
	last := e.proposed
	if last.Repo != to.source.name || last.Ref != to.ref {
		last = proposed{Repo: to.source.name, Ref: to.ref}
	}
	r, err := publish.Propose(ctx, o, to.source.provider, want, last.Request)
	s := standing{waits: true, request: r.PullRequest, places: last.Places}
	if r.Commit != "" {
		s.commit, s.summary, s.folders, s.held = r.Commit, &r.Summary, r.Folders, r.Held
		s.places = maps.Clone(last.Places)
		maps.DeleteFunc(s.places, func(name string, _ []placed) bool { return !s.differs(name) })
	}
	if err == nil || r.Request.Number != 0 {
		e.keep(proposed{last.Repo, last.Ref, r.Request, maps.Clone(s.places)}) // rows adds to its own
	}
	if err != nil {
		return s, &failure{what, err}
	}
	e.lookAt = time.Now().Add(e.plane.interval())
	if len(r.Left) > 0 {
		e.log.Warn("branches of pull requests that were closed could not be deleted; they are in nobody's way", "branches", r.Left)
	}
	if r.Request.Number == 0 {
		e.arrived(to, &r.Result)
		if last.Number != 0 {
			e.log.Info("what was proposed is in the branch, or wanted no more", "number", last.Number, "commit", r.Commit)
			e.tellPublished(to) // those who follow the branch may not know yet
		}
		return standing{commit: r.Commit}, nil
	}
	if r.Commit != to.commit {
		to.source.moved(to.ref, r.Commit)
	}
	if r.Changed {
		e.control.metrics.requests.WithLabelValues(e.name).Inc()
		e.log.Info("a pull request is open", append([]any{"number", r.Request.Number, "url", r.PullRequest.URL, "branch", to.ref, "in_place_of", r.Closed}, amounts(&r.Summary)...)...)
	}
	return s, nil
}

// keep keeps what was proposed.
func (e *environment) keep(now proposed) {
	if reflect.DeepEqual(now, e.proposed) {
		return
	}
	e.proposed = now
	if err := writeFile(e.control.fileOf("proposal", e.name), now); err != nil {
		e.log.Warn("which pull request is open is not kept; should somebody close it, a restart would open another", "error", err)
	}
}

// follow looks, from time to time, whether something became of the pull request
// that the branch does not show. It reports whether there is news.
func (e *environment) follow(ctx context.Context, to spot) (news bool, err error) {
	e.mu.Lock()
	was := e.outcome.request
	e.mu.Unlock()
	if was.Number == 0 || to.source == nil || to.source.provider == nil || time.Now().Before(e.lookAt) {
		return false, nil
	}
	now, err := to.source.provider.PullRequest(ctx, was.Number)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return true, nil
	case err != nil:
		return false, &failure{fmt.Sprintf("looking at pull request %d of %s", was.Number, to.source.name), err}
	}
	e.lookAt = time.Now().Add(e.plane.interval())
	return now.State != was.State, nil
}

// about says what is to be said of a pull request; "" for nothing. It is a
// problem where somebody closed it.
func about(r *forge.PullRequest) (text string, problem bool) {
	at := fmt.Sprintf("pull request %d", r.Number)
	if r.URL != "" {
		at += " (" + r.URL + ")"
	}
	switch {
	case r.Number == 0:
		return "", false
	case r.State == forge.Closed:
		return at + " was closed without being merged, and what is planned is not published: reopen it, or change what is planned and another is opened", true
	}
	return at + " waits to be merged", false
}

// apply makes a row say what the branch has of an assignment. While a pull
// request waits, or cannot be opened:
//
//   - what the branch holds as it is planned is recorded as published;
//   - what it lacks is recorded without a commit, and nobody is expected to read
//     it: not before it is merged can anybody;
//   - what differs is recorded as planned, without a commit; expected to be read
//     is what the branch holds: a version that was proposed, or else what was
//     recorded before;
//   - what is planned no more stays recorded, and expected, until the branch lacks
//     it.
//
// It reports whether the row is published.
func (s *standing) apply(r *record.Schedule, kept record.Scheduled) bool {
	if !s.waits {
		return s.commit != ""
	}
	name := nameOf(r.Key())
	switch {
	case s.summary == nil:
		r.Endpoint, r.GitOps = kept.Endpoint, kept.GitOps
		return false
	case has(s.summary.Added, name) || has(s.summary.Missing, name):
		r.Endpoint, r.GitOps = kept.Endpoint, kept.GitOps
		return false
	case has(s.summary.Changed, name):
		if at, ok := s.holds(name); ok {
			r.Endpoint = at
		} else if kept.GitOps != (schema.Endpoint{}) { // else it came into the branch unseen
			r.Endpoint, r.GitOps = kept.Endpoint, kept.GitOps
		}
		return false
	}
	return true
}

// holds returns where the manifests are of the version that the branch has of an
// assignment, where it is one that was proposed.
func (s *standing) holds(name string) (schema.Endpoint, bool) {
	for _, p := range s.places[name] {
		if p.Version == s.held[name] {
			return p.Endpoint, true
		}
	}
	return schema.Endpoint{}, false
}

// differs reports whether the branch does not hold an assignment as it is planned.
func (s *standing) differs(name string) bool {
	return has(s.summary.Added, name) || has(s.summary.Changed, name) || has(s.summary.Deleted, name) ||
		has(s.summary.Kept, name) || has(s.summary.Missing, name)
}

// note keeps where the manifests of what is proposed are, where the row does not
// say so.
func (s *standing) note(r *record.Schedule, planned schema.Endpoint) {
	name := nameOf(r.Key())
	if s.summary == nil || r.ConfigVersion == "" || planned == r.Endpoint && len(s.places[name]) == 0 {
		return
	}
	all := slices.DeleteFunc(slices.Clone(s.places[name]), func(p placed) bool { return p.Version == r.ConfigVersion })
	all = append(all, placed{r.ConfigVersion, planned})
	if s.places == nil {
		s.places = map[string][]placed{}
	}
	s.places[name] = all[max(0, len(all)-mostPlaces):]
}

// stays reports whether the branch may hold an assignment that is planned no
// more.
func (s *standing) stays(k record.ScheduleKey) bool {
	return s.waits && (s.summary == nil || has(s.summary.Deleted, nameOf(k)))
}

// nameOf names an assignment as the branch's folders do.
func nameOf(k record.ScheduleKey) string { return k.ClusterType + "/" + k.DeploymentTarget }

func has(sorted []string, name string) bool {
	_, found := slices.BinarySearch(sorted, name)
	return found
}

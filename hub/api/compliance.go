package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/landfall-hub/landfall/schema"
)

const (
	// maxWait is the longest long poll.
	maxWait = 5 * time.Minute
	// writeTimeout is how long a client may take to read an answer.
	writeTimeout = 30 * time.Second
)

// compliance serves GET /compliance. With wait it answers at once when the
// verdict is final, else when it changes or the time is over.
func (a *API) compliance(w http.ResponseWriter, r *http.Request) error {
	p, err := parseParameters(r, append([]string{"repo", "ref", "path", "commit", "wait"}, schema.PolicyFields()...)...)
	if err != nil {
		return err
	}
	q, err := question(p)
	if err != nil {
		return err
	}
	wait, err := p.wait()
	if err != nil {
		return err
	}
	v, err := a.gate.Ask(r.Context(), q)
	if err != nil {
		return err
	}
	if wait > 0 && !v.State.Final() {
		if v, err = a.waitFor(r, q, v, wait); err != nil {
			return err
		}
	}
	return a.answer(w, r, http.StatusOK, v)
}

func (a *API) waitFor(r *http.Request, q schema.Question, seen schema.Verdict, wait time.Duration) (schema.Verdict, error) {
	done, err := a.startWaiting()
	if err != nil {
		return schema.Verdict{}, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	return a.gate.Next(ctx, q, seen)
}

// startWaiting counts a long poll or stream; done ends it.
func (a *API) startWaiting() (done func(), err error) {
	if !a.waiting.TryAcquire(1) {
		return nil, refuse(schema.CodeOverloaded, "too many clients wait for verdicts; ask again later, or without wait")
	}
	a.metrics.waiting.Inc()
	return func() {
		a.metrics.waiting.Dec()
		a.waiting.Release(1)
	}, nil
}

// extendWriting sets the connection's deadline for writing this answer, whatever
// the server's own is; a test's recorder has none.
func extendWriting(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}

func (p parameters) wait() (time.Duration, error) {
	text, given := p["wait"]
	if !given {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxWait {
		return 0, blame(schema.CodeInvalidParameter, "wait", "wait is a duration like 30s, from 0s to %s, not %q", schema.Duration(maxWait), shorten(text, 100))
	}
	return d, nil
}

// question makes the question of a query's parameters.
func question(p parameters) (schema.Question, error) {
	q := schema.Question{Repo: p["repo"], Ref: p["ref"], Path: p["path"], Commit: p["commit"], Policy: schema.DefaultPolicy()}
	var err error
	if q.Endpoint, err = p.endpoint(); err != nil {
		return q, err
	}
	q.Repo = schema.StripUserInfo(q.Repo)
	if q.ID, err = p.commit(); err != nil {
		return q, err
	}
	for _, field := range schema.PolicyFields() {
		text, given := p[field]
		if !given {
			continue
		}
		if err := q.Policy.Set(field, text); err != nil {
			return q, blame(schema.CodeInvalidParameter, field, "%v", err)
		}
	}
	q.Mandatory, err = mandatory(q.Policy.Mandatory)
	return q, err
}

// endpoint returns the canonical endpoint that repo, ref and path name.
func (p parameters) endpoint() (schema.Endpoint, error) {
	if p["repo"] == "" {
		return schema.Endpoint{}, blame(schema.CodeInvalidParameter, "repo", "it is missing; write the repository's URL")
	}
	e, err := schema.NewEndpoint(p["repo"], p["ref"], p["path"])
	switch {
	case errors.Is(err, schema.ErrInvalidRepo):
		return e, blame(schema.CodeInvalidRepo, "repo", "%v", err)
	case errors.Is(err, schema.ErrInvalidRef):
		return e, blame(schema.CodeInvalidRef, "ref", "%v", err)
	case err != nil:
		return e, blame(schema.CodeInvalidPath, "path", "%v", err)
	}
	return e, nil
}

// commit returns the full id of a commit in lower case.
func (p parameters) commit() (string, error) {
	commit := p["commit"]
	if commit == "" {
		return "", blame(schema.CodeInvalidParameter, "commit", "it is missing; write a full commit id")
	}
	if !schema.IsCommit(commit) {
		return "", blame(schema.CodeInvalidCommit, "commit", "a commit is named by its full id of 40 or 64 hex digits, never shortened; this is %q", shorten(commit, 100))
	}
	return strings.ToLower(commit), nil
}

// mandatory parses a label selector; nil for an empty one.
func mandatory(text string) (func(map[string]string) bool, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, blame(schema.CodeInvalidParameter, "mandatory", "it is a label selector like region=eu,tier in (a,b): %v", err)
	}
	if selector.Empty() {
		return nil, nil
	}
	return func(set map[string]string) bool { return selector.Matches(labels.Set(set)) }, nil
}

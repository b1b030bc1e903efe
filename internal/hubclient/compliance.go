package hubclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// Question asks whether a commit has landed at an endpoint and may go on.
type Question struct {
	// Repo, Ref and Path are the endpoint as people write it; an empty Ref is
	// the default branch, an empty Path all folders.
	Repo, Ref, Path string
	// Commit is the full commit id.
	Commit string
	// Policy holds the policy fields to ask for, by the names of
	// schema.PolicyFields; the hub's defaults hold for the rest.
	Policy map[string]string
}

// Validate checks what can be told without the hub.
func (q Question) Validate() error {
	if !schema.IsCommit(q.Commit) {
		return fmt.Errorf("a commit is a full id of 40 or 64 hex digits, not %q", q.Commit)
	}
	if _, err := schema.NewEndpoint(q.Repo, q.Ref, q.Path); err != nil {
		return err
	}
	_, err := q.policy()
	return err
}

// policy returns the policy asked for, over the defaults.
func (q Question) policy() (schema.Policy, error) {
	p := schema.DefaultPolicy()
	for field, value := range q.Policy {
		if err := p.Set(field, value); err != nil {
			return p, err
		}
	}
	return p, nil
}

// values returns the query parameters. A user name or password in the
// repository's URL stays here.
func (q Question) values() url.Values {
	v := url.Values{"repo": {schema.StripUserInfo(q.Repo)}, "commit": {q.Commit}}
	if q.Ref != "" {
		v.Set("ref", q.Ref)
	}
	if q.Path != "" {
		v.Set("path", q.Path)
	}
	for field, value := range q.Policy {
		v.Set(field, value)
	}
	return v
}

// Compliance asks once. A wait above zero lets the hub hold the answer back for
// so long, at most five minutes, until the verdict changes or is final.
func (c *Client) Compliance(ctx context.Context, q Question, wait time.Duration) (*schema.Verdict, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	values := q.values()
	if wait > 0 {
		values.Set("wait", schema.Duration(wait).String())
	}
	k := call{method: http.MethodGet, path: apiPrefix + "/compliance", query: values, timeout: answerTimeout + wait}
	var raw json.RawMessage
	k.into = &raw
	if err := c.do(ctx, k); err != nil {
		return nil, err
	}
	v, err := q.read(raw)
	if err != nil {
		return nil, c.failed(ctx, k, "reading the verdict", err)
	}
	return v, nil
}

// verdictMembers are the members without which a verdict is not whole.
var verdictMembers = []string{"repo", "ref", "path", "commit", "state", "policy", "counts", "unfinished", "evaluated_at"}

// read returns the verdict of an answer when it is whole and answers q. A gate
// opens on what this returns, so everything that does not fit is an error.
func (q Question) read(raw []byte) (*schema.Verdict, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadAnswer, err)
	}
	for _, name := range verdictMembers {
		if _, ok := members[name]; !ok {
			return nil, fmt.Errorf("%w: the verdict has no %q", ErrBadAnswer, name)
		}
	}
	v := &schema.Verdict{}
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadAnswer, err)
	}
	if err := whole(v); err != nil {
		return nil, err
	}
	return v, q.answeredBy(v)
}

// whole reports whether a verdict is one, and does not contradict itself.
func whole(v *schema.Verdict) error {
	n := v.Counts
	switch {
	case v.State != schema.Waiting && !v.State.Final():
		return fmt.Errorf("%w: the verdict's state is %q", ErrBadAnswer, string(v.State))
	case v.EvaluatedAt.IsZero():
		return fmt.Errorf("%w: the verdict was never evaluated", ErrBadAnswer)
	case n.Compliant+n.Failed+n.InProgress+n.Pending+n.Suspended+n.Unknown+n.UnknownLineage != n.Total,
		min(n.Compliant, n.Failed, n.InProgress, n.Pending, n.Suspended, n.Unknown, n.UnknownLineage) < 0:
		return fmt.Errorf("%w: the verdict's counts do not add up", ErrBadAnswer)
	case v.State != schema.Passed:
		return nil
	case n.Failed > v.Policy.MaxFailures, n.Total < v.Policy.ZeroTargets.Least():
		return fmt.Errorf("%w: the verdict says passed against its own policy", ErrBadAnswer)
	}
	return nil
}

// answeredBy reports whether v answers q: the same commit at the same endpoint,
// judged by the policy asked for.
func (q Question) answeredBy(v *schema.Verdict) error {
	if !strings.EqualFold(v.Commit, q.Commit) {
		return fmt.Errorf("%w: it is for commit %q", ErrOtherVerdict, short(v.Commit))
	}
	asked, err := schema.NewEndpoint(q.Repo, q.Ref, q.Path)
	if err != nil {
		return err
	}
	got, err := schema.NewEndpoint(v.Repo, v.Ref, v.Path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadAnswer, err)
	}
	if asked.Ref == "" {
		got.Ref = "" // the hub may name its default branch
	}
	if asked != got {
		return fmt.Errorf("%w: it is for %s, ref %q, path %q", ErrOtherVerdict, short(v.Repo), short(v.Ref), short(v.Path))
	}
	want, err := q.policy()
	if err != nil {
		return err
	}
	for field := range q.Policy {
		if !samePolicy(field, want, v.Policy) {
			return fmt.Errorf("%w: it was not judged by the %s asked for", ErrOtherVerdict, field)
		}
	}
	return nil
}

// samePolicy compares one field. Selectors have many spellings: there it is
// enough that one was used where one was asked for.
func samePolicy(field string, a, b schema.Policy) bool {
	switch field {
	case "min_compliant":
		return a.MinCompliant == b.MinCompliant
	case "max_failures":
		return a.MaxFailures == b.MaxFailures
	case "mandatory":
		return (a.Mandatory == "") == (b.Mandatory == "")
	case "zero_targets":
		return a.ZeroTargets == b.ZeroTargets
	case "unknown":
		return a.Unknown == b.Unknown
	case "suspended":
		return a.Suspended == b.Suspended
	case "children":
		return a.Children == b.Children
	case "min_success_time":
		return a.MinSuccessTime == b.MinSuccessTime
	case "progress_deadline":
		return a.ProgressDeadline == b.ProgressDeadline
	}
	return false
}

const eventStream = "text/event-stream"

// ErrStreamEnded says that the hub ended a stream before a final verdict, as it
// does when it shuts down.
var ErrStreamEnded = errors.New("the stream ended before a final verdict")

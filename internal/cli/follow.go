package cli

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

const (
	// firstPause and longestPause bound the growing pause between failed tries;
	// longestAsked bounds the one that a hub asks for.
	firstPause   = 500 * time.Millisecond
	longestPause = 15 * time.Second
	longestAsked = time.Minute
	// pollWait is how long the hub may hold an answer back when the stream does
	// not work; pollEvery is the least time between two questions.
	pollWait  = 30 * time.Second
	pollEvery = time.Second
)

// note is one thing that happened while following: a verdict, or a try that
// failed and the pause after it.
type note struct {
	verdict *schema.Verdict
	err     error
	pause   time.Duration
}

// follower asks the hub until the question is answered.
type follower struct {
	client *hubclient.Client
	q      hubclient.Question
	tell   func(note)

	// last is the last whole verdict on the question, nil before the first.
	last *schema.Verdict
	// failures counts the tries without a verdict since the last one.
	failures int
	// answers counts verdicts.
	answers int
	// refusals counts the tries in a row that no second try would mend.
	refusals int
}

// run asks until the verdict is final, the hub refuses or ctx is over, and
// returns the last verdict, and the error that stood in the way at the end. It
// prefers the stream and changes between stream and long poll when one of them
// brings no verdict.
func (f *follower) run(ctx context.Context) (*schema.Verdict, error) {
	try, other := f.stream, f.poll
	var failure error
	for ctx.Err() == nil {
		before := f.answers
		pause, err := try(ctx)
		if f.last != nil && f.last.State.Final() {
			return f.last, nil
		}
		if ctx.Err() != nil {
			break
		}
		failure = err
		if err != nil && f.hopeless(err) {
			return f.last, err
		}
		answered := f.answers > before
		if answered {
			f.failures = 0
		} else {
			f.failures++
			try, other = other, try
		}
		if err != nil {
			pause = max(pause, f.backoff(), jitter(min(hubclient.RetryAfter(err), longestAsked)))
		}
		if answered && errors.Is(err, hubclient.ErrStreamEnded) {
			failure = nil // hubs and proxies end streams now and then
		}
		if failure != nil {
			f.tell(note{err: failure, pause: pause})
		}
		sleep(ctx, pause)
	}
	return f.last, failure
}

// hopeless reports whether asking again cannot help: the hub refused, or both
// the stream and the poll are answered by something that is no hub. What a
// gateway says while the hub restarts is forgiven once the hub has answered.
func (f *follower) hopeless(err error) bool {
	switch hubclient.Status(err) {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return true
	}
	if hubclient.Temporary(err) {
		f.refusals = 0
		return false
	}
	f.refusals++
	return f.last == nil && f.refusals > 1
}

// stream follows the stream until it ends, which is always an error, or brings
// a final verdict.
func (f *follower) stream(ctx context.Context) (time.Duration, error) {
	s, err := f.client.ComplianceStream(ctx, f.q)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for {
		v, err := s.Next()
		if err != nil {
			return jitter(min(s.Retry(), longestAsked)), err
		}
		f.take(v)
		if v.State.Final() {
			return 0, nil
		}
	}
}

// poll asks one question that the hub holds back until something changes. It
// returns how long to wait before the next.
func (f *follower) poll(ctx context.Context) (time.Duration, error) {
	next := time.NewTimer(pollEvery)
	defer next.Stop()
	wait := pollWait
	if f.failures > 0 {
		wait = 0 // first see that somebody answers
	}
	v, err := f.client.Compliance(ctx, f.q, wait)
	if err != nil {
		return 0, err
	}
	f.take(v)
	if v.State.Final() {
		return 0, nil
	}
	select {
	case <-next.C:
	case <-ctx.Done():
	}
	return 0, nil
}

func (f *follower) take(v *schema.Verdict) {
	f.last = v
	f.answers++
	f.tell(note{verdict: v})
}

// backoff returns the pause after so many failures in a row.
func (f *follower) backoff() time.Duration {
	d := longestPause
	if f.failures < 6 {
		d = min(d, firstPause<<f.failures)
	}
	return d/2 + rand.N(d/2+1) //nolint:gosec // not a secret
}

// jitter returns d and up to a fifth more, so that many gates do not ask a hub
// that comes back all at once.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d + rand.N(d/5+1) //nolint:gosec // not a secret
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

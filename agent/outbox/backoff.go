package outbox

import (
	"context"
	"net/http"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

const (
	// firstWait and longestWait bound the wait between tries; it doubles.
	firstWait   = 250 * time.Millisecond
	longestWait = 30 * time.Second
	// slowWait is the least wait where only a person, or a secret that rotates,
	// can help.
	slowWait = 15 * time.Second
	// seldom is how often a decommissioned cluster asks whether it is back.
	seldom = 10 * time.Minute
	// longestAfter bounds what a hub may ask for with Retry-After.
	longestAfter = 15 * time.Minute
)

// outcome is what an answer of the hub means for the sender.
type outcome string

const (
	acknowledged outcome = "acknowledged"
	// failed: it may be stored or not, and may succeed unchanged.
	failed outcome = "failed"
	// denied: a person or another token must help; nothing was stored.
	denied outcome = "denied"
	// unfit: the hub refuses the message's content; nothing was stored.
	unfit outcome = "unfit"
	// oversized: the same message in smaller ones may succeed.
	oversized outcome = "oversized"
	// unregistered: the hub does not know the epoch, or the cluster.
	unregistered outcome = "unregistered"
	// gone: the cluster was decommissioned.
	gone outcome = "gone"
	// outdated: it was stored as history, another epoch is current.
	outdated outcome = "outdated"
)

// judge says what an error of the hub means. What a proxy answers in its place
// says nothing about the message, except that it is too large.
func judge(err error) outcome {
	if err == nil {
		return acknowledged
	}
	if hubclient.Temporary(err) {
		return failed
	}
	status, code := hubclient.Status(err), codeOf(err)
	switch {
	case code == schema.CodeDecommissioned:
		return gone
	case code == schema.CodeNotRegistered || code == schema.CodeFutureEpoch:
		return unregistered
	case status == http.StatusRequestEntityTooLarge:
		return oversized
	case (status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) && code != hubclient.CodeForeignAnswer:
		return unfit
	}
	return denied
}

// advice says what a person can do about an error.
func advice(err error) string {
	switch hubclient.Status(err) {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "check the agent's token; a rotated token file is read at the next try"
	case 0:
		return "check that the hub is reachable"
	}
	return "see the error"
}

// retry spaces the tries of one thing.
type retry struct {
	random func() float64
	wait   time.Duration
}

// after returns how long to wait after an error: twice as long each time, half
// of it by chance, and never less than the hub asks for.
func (r *retry) after(err error) time.Duration {
	r.wait = min(max(firstWait, 2*r.wait), longestWait)
	wait := r.wait
	if judge(err) != failed {
		wait = max(wait, slowWait)
	}
	wait = wait/2 + r.share(wait/2)
	if asked := min(hubclient.RetryAfter(err), longestAfter); asked > 0 {
		wait = max(wait, asked+r.share(asked/4))
	}
	return wait
}

// share returns a part of d by chance.
func (r *retry) share(d time.Duration) time.Duration {
	return time.Duration(r.random() * float64(d))
}

// sleep waits, no longer than until something is over, and reports whether ctx
// still goes on.
func sleep(ctx context.Context, over <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-over:
		return true
	case <-t.C:
		return true
	}
}

package gitops

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// follower fetches one repository again and again.
type follower struct {
	mirror   *mirror
	interval time.Duration
	// slots bounds how many fetches begin at the same time.
	slots          chan struct{}
	fetch, restore func(context.Context) error
}

const (
	// slow is after how long a fetch gives up its slot: a server that stalls keeps
	// its own repository waiting, and no other for longer than this.
	slow = 10 * time.Second
	// gap is the least time between two fetches that are asked for, pushGap the
	// same where a server told that something was pushed.
	gap     = 5 * time.Second
	pushGap = time.Second
	// failedGap is the same where the last one failed, mostBackoff the most that
	// the interval grows to then.
	failedGap   = 30 * time.Second
	mostBackoff = 10 * time.Minute
)

// run fetches until ctx ends: at once, then on the interval, and sooner when
// somebody asks.
func (f *follower) run(ctx context.Context) {
	if err := f.restore(ctx); err != nil && ctx.Err() == nil {
		f.mirror.log.Warn("the mirror on disk cannot be read; fetching mends it", "error", err)
		f.mirror.source.BeginAnew()
	}
	failures := 0
	for ctx.Err() == nil {
		release := f.enter(ctx)
		if ctx.Err() != nil {
			return
		}
		began := time.Now()
		err := f.fetch(ctx)
		release()
		if ctx.Err() != nil {
			return
		}
		f.mirror.note(err, time.Since(began))
		failures++
		if succeeded(err) {
			failures = 0
		}
		f.rest(ctx, failures)
	}
}

// enter waits for a slot. It is given back by release, or when the fetch turns
// out to be slow.
func (f *follower) enter(ctx context.Context) (release func()) {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	var once sync.Once
	leave := func() { once.Do(func() { <-f.slots }) }
	timer := time.AfterFunc(slow, leave)
	return func() {
		timer.Stop()
		leave()
	}
}

// rest waits until the next fetch is due, or is asked for and allowed.
func (f *follower) rest(ctx context.Context, failures int) {
	wait := f.interval
	for range min(failures-1, 10) {
		wait *= 2
	}
	if failures > 0 {
		wait = max(min(wait, mostBackoff), f.interval)
	}
	// Not all at the same moment, for the servers' sake.
	wait += time.Duration((rand.Float64() - 0.5) * 0.2 * float64(wait)) //nolint:gosec // no secret hangs on it
	soon, later := pushGap, gap
	if failures > 0 {
		soon, later = failedGap, failedGap
	}
	m, gone := f.mirror, time.Duration(0)
	for _, stage := range []struct {
		until         time.Duration
		pushed, asked <-chan struct{}
	}{{soon, nil, nil}, {later, m.pushed, nil}, {wait, m.pushed, m.asked}} {
		until := max(min(stage.until, wait), gone)
		if !pause(ctx, until-gone, stage.pushed, stage.asked) {
			return
		}
		gone = until
	}
}

// pause waits for a time, and returns false when ctx ended before, or somebody
// asked for a fetch.
func pause(ctx context.Context, wait time.Duration, pushed, asked <-chan struct{}) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-pushed:
	case <-asked:
	case <-timer.C:
		return true
	}
	return false
}

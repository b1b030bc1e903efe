package control

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/landfall-hub/landfall/internal/forge"
)

// word is what is said of a commit.
type word struct {
	Commit string
	Status forge.Status
}

// herald tells a control plane's Git provider how it stands with an environment,
// as a status of its branch's newest commit. It has a goroutine of its own: a
// provider that is slow, or away, keeps no plan waiting.
type herald struct {
	to   provider
	file string
	log  *slog.Logger
	// counted counts what came of each attempt.
	counted func(result string)
	// wake has room for one: there is something to say.
	wake chan struct{}

	mu sync.Mutex
	// want is what is to be said, said what was said last.
	want, said word
	// err is what came of the last attempt.
	err error
}

// newHerald makes one that knows what it said before a restart.
func newHerald(to provider, file string, log *slog.Logger, counted func(string)) *herald {
	h := &herald{to: to, file: file, log: log, counted: counted, wake: make(chan struct{}, 1)}
	readFile(file, &h.said)
	h.want = h.said
	return h
}

// say has something said, in place of what was not said yet.
func (h *herald) say(w word) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.want != w {
		h.want = w
		raise(h.wake)
	}
}

// run says what is to be said until ctx ends.
func (h *herald) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		failures++
		if h.send(ctx) == nil {
			failures = 0
		}
		rest(ctx, h.wake, retryAfter(failures))
	}
}

// send says what was not said yet.
func (h *herald) send(ctx context.Context) error {
	h.mu.Lock()
	w, before := h.want, h.err
	news := w != h.said
	if !news {
		h.err = nil
	}
	h.mu.Unlock()
	if !news {
		return nil
	}
	err := h.to.SetStatus(ctx, w.Commit, w.Status)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	h.mu.Lock()
	if h.err = err; err == nil {
		h.said = w
	}
	h.mu.Unlock()
	switch {
	case err != nil && text(err) != text(before):
		h.log.Warn("the commit status cannot be set; it is tried again", "error", err)
	case err == nil && before != nil:
		h.log.Info("the commit status can be set again")
	}
	if err != nil {
		h.counted("failed")
		return err
	}
	h.counted("ok")
	if err := writeFile(h.file, w); err != nil {
		h.log.Warn("which commit status was set is not kept; a restart sets it again", "error", err)
	}
	return nil
}

// trouble is why the last attempt failed; nil where it did not, or nothing is to
// be said any more.
func (h *herald) trouble() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// announce has the provider told how it stands with the newest commit of the
// environment's branch, once that is known.
func (e *environment) announce(err error) {
	if e.herald == nil || e.head == "" {
		return
	}
	e.mu.Lock()
	o := e.outcome
	e.mu.Unlock()
	if err == nil && o.head != e.head {
		return // it is not planned yet
	}
	e.herald.say(word{e.head, o.status(e.name, err)})
}

// status words an outcome for a Git provider. It changes only when something
// does.
func (o *outcome) status(environment string, err error) forge.Status {
	s := forge.Status{Context: "landfall/" + environment, Verdict: forge.Success, URL: o.request.URL}
	s.Description = fmt.Sprintf("%d assignments", o.assignments)
	if o.assignments == 1 {
		s.Description = "1 assignment"
	}
	switch {
	case err != nil:
		s.Verdict, s.Description = forge.Error, "not up to date: "+short(inShort(err))
	case len(o.problems) > 0:
		s.Verdict, s.Description = forge.Failure, fmt.Sprintf("%s: %s", counted(len(o.problems)), short(o.problems[0]))
	case o.failed > 0:
		s.Verdict, s.Description = forge.Failure, fmt.Sprintf("%s, %d of them could not be planned", s.Description, o.failed)
	case o.request.Number != 0:
		s.Verdict, s.Description = forge.Pending, fmt.Sprintf("%s, pull request %d waits to be merged", s.Description, o.request.Number)
	}
	return s
}

// retryAfter is how long is waited after so many failures; 0 after none.
func retryAfter(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(firstRetry<<min(failures-1, 10), lastRetry)
}

// rest waits until there may be something to do: it is woken, or the time is
// over. A wait of 0 has no end.
func rest(ctx context.Context, wake <-chan struct{}, wait time.Duration) {
	var over <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-over:
	}
}

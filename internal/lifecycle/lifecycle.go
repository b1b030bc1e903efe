// Package lifecycle runs the named parts of a service and stops them one by one,
// the last one first, each within a time of its own.
package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"
)

// Lifecycle runs named parts and stops them one by one, the last one first. It
// belongs to one goroutine.
type Lifecycle struct {
	log *slog.Logger
	// ctx ends when the service is to stop, whatever the reason.
	ctx    context.Context //nolint:containedctx // it is the life itself that this type holds
	cancel context.CancelCauseFunc
	// parts are in the order of their start, that is, the reverse of their stop.
	parts []*part
}

// errPart is why a part that was not to stop did. Everything else that ends the
// service, a signal among it, was wanted.
type errPart struct {
	name string
	err  error
}

func (e *errPart) Error() string { return e.name + ": " + e.err.Error() }

func (e *errPart) Unwrap() error { return e.err }

type part struct {
	name  string
	grace time.Duration
	stop  context.CancelFunc
	done  chan struct{}
}

// New returns a life without parts, which ends with ctx or with the first part
// that ends without being told to.
func New(ctx context.Context, log *slog.Logger) *Lifecycle {
	l := &Lifecycle{log: log}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	return l
}

// Context ends when the service is to stop, whatever the reason. It is for what
// is done between the starts of parts; parts get contexts of their own.
func (l *Lifecycle) Context() context.Context { return l.ctx }

// Start runs a part. Its context ends when it is its turn to stop, not before.
func (l *Lifecycle) Start(name string, grace time.Duration, run func(context.Context) error) {
	l.parts = append(l.parts, l.launch(name, grace, run))
}

// StartBefore is Start for a part that is to stop after another, though it
// starts later.
func (l *Lifecycle) StartBefore(other, name string, grace time.Duration, run func(context.Context) error) {
	i := slices.IndexFunc(l.parts, func(p *part) bool { return p.name == other })
	l.parts = slices.Insert(l.parts, max(i, 0), l.launch(name, grace, run))
}

func (l *Lifecycle) launch(name string, grace time.Duration, run func(context.Context) error) *part {
	ctx, stop := context.WithCancel(context.WithoutCancel(l.ctx))
	p := &part{name: name, grace: grace, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		err := run(ctx)
		if ctx.Err() == nil {
			if err == nil {
				err = errors.New("it ended by itself")
			}
			l.cancel(&errPart{name: name, err: err})
			return
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			l.log.Warn("a part did not stop cleanly", "part", name, "error", err)
		}
	}()
	return p
}

// Failed returns the error of the part that failed, or nil.
func (l *Lifecycle) Failed() error {
	if failed, ok := errors.AsType[*errPart](context.Cause(l.ctx)); ok {
		return failed
	}
	return nil
}

// Wait blocks until the service is to stop and returns the error of the part that
// failed, or nil.
func (l *Lifecycle) Wait() error {
	<-l.ctx.Done()
	return l.Failed()
}

// Stop ends the parts, each within its grace.
func (l *Lifecycle) Stop() {
	l.cancel(nil)
	for _, p := range slices.Backward(l.parts) {
		p.stop()
		select {
		case <-p.done:
		case <-time.After(p.grace):
			l.log.Error("a part does not stop; leaving it behind", "part", p.name, "after", p.grace)
		}
	}
}

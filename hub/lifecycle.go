package hub

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"
)

// How long each part may take to stop.
const (
	engineGrace = 30 * time.Second
	httpGrace   = 15 * time.Second
	workerGrace = 15 * time.Second
)

// lifecycle runs named parts and stops them one by one, the last one first.
type lifecycle struct {
	log *slog.Logger
	// ctx ends when the hub is to stop, whatever the reason.
	ctx    context.Context //nolint:containedctx // it is the life itself that this type holds
	cancel context.CancelCauseFunc
	// parts are in the order of their start, that is, the reverse of their stop.
	parts []*part
}

// errPart is why a part that was not to stop did. Everything else that ends the
// hub, a signal among it, was wanted.
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

func newLifecycle(ctx context.Context, log *slog.Logger) *lifecycle {
	l := &lifecycle{log: log}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	return l
}

// start runs a part. Its context ends when it is its turn to stop, not before.
func (l *lifecycle) start(name string, grace time.Duration, run func(context.Context) error) {
	l.parts = append(l.parts, l.launch(name, grace, run))
}

// startBefore is start for a part that is to stop after another, though it
// starts later.
func (l *lifecycle) startBefore(other, name string, grace time.Duration, run func(context.Context) error) {
	i := slices.IndexFunc(l.parts, func(p *part) bool { return p.name == other })
	l.parts = slices.Insert(l.parts, max(i, 0), l.launch(name, grace, run))
}

func (l *lifecycle) launch(name string, grace time.Duration, run func(context.Context) error) *part {
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

// failed returns the error of the part that failed, or nil.
func (l *lifecycle) failed() error {
	if failed, ok := errors.AsType[*errPart](context.Cause(l.ctx)); ok {
		return failed
	}
	return nil
}

// wait blocks until the hub is to stop and returns the error of the part that
// failed, or nil.
func (l *lifecycle) wait() error {
	<-l.ctx.Done()
	return l.failed()
}

// stop ends the parts, each within its grace.
func (l *lifecycle) stop() {
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

package hub

import (
	"context"
	"errors"
	"fmt"
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
	parts   []*part
	closers []func()
}

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
			l.cancel(fmt.Errorf("%s: %w", name, err))
			return
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			l.log.Warn("a part did not stop cleanly", "part", name, "error", err)
		}
	}()
	return p
}

// onStop adds what is to be done after all parts but the first have stopped.
func (l *lifecycle) onStop(do func()) { l.closers = append(l.closers, do) }

// failed returns the error of the part that failed, or nil.
func (l *lifecycle) failed() error {
	if l.ctx.Err() == nil || errors.Is(context.Cause(l.ctx), context.Canceled) || errors.Is(context.Cause(l.ctx), context.DeadlineExceeded) {
		return nil
	}
	return context.Cause(l.ctx)
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
	for i, p := range slices.Backward(l.parts) {
		if i == 0 {
			for _, do := range l.closers {
				do()
			}
		}
		p.stop()
		select {
		case <-p.done:
		case <-time.After(p.grace):
			l.log.Error("a part does not stop; leaving it behind", "part", p.name, "after", p.grace)
		}
	}
}

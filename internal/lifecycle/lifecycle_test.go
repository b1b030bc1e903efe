package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// diary notes what happens, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// obeys is a part that stops when it is told, after a while.
func (d *diary) obeys(name string, while time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		d.note(name + " stops")
		time.Sleep(while)
		d.note(name + " stopped")
		return ctx.Err()
	}
}

func life(ctx context.Context) (*Lifecycle, *bytes.Buffer) {
	var log bytes.Buffer
	return New(ctx, slog.New(slog.NewTextHandler(&log, nil))), &log
}

// Each part stops when those after it have stopped, and not before.
func TestPartsStopOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l, log := life(ctx)
		var d diary
		l.Start("engine", time.Minute, d.obeys("engine", time.Second))
		l.Start("http", time.Minute, d.obeys("http", 3*time.Second))
		l.StartBefore("http", "store", time.Minute, d.obeys("store", time.Second))
		l.StartBefore("http", "ingest", time.Minute, d.obeys("ingest", 2*time.Second))
		synctest.Wait()
		if got := d.read(); got != nil {
			t.Errorf("before the end: %v", got)
		}
		cancel()
		if err := l.Wait(); err != nil {
			t.Errorf("a wanted end is an error: %v", err)
		}
		synctest.Wait()
		if got := d.read(); got != nil {
			t.Errorf("a part saw the end before it was its turn: %v", got)
		}
		l.Stop()
		want := []string{"http stops", "http stopped", "ingest stops", "ingest stopped", "store stops", "store stopped", "engine stops", "engine stopped"}
		if diff := cmp.Diff(want, d.read()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if log.Len() > 0 {
			t.Errorf("a calm end is logged: %s", log)
		}
	})
}

// Without the other part it stops first, which is what an early part may.
func TestStartBeforeNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := life(t.Context())
		var d diary
		l.Start("a", time.Minute, d.obeys("a", 0))
		l.StartBefore("nobody", "b", time.Minute, d.obeys("b", 0))
		l.Stop()
		if diff := cmp.Diff([]string{"a stops", "a stopped", "b stops", "b stopped"}, d.read()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestOnePartFails(t *testing.T) {
	broken := errors.New("broken")
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Error":     {"An error ends the service.", broken, "bad: broken"},
		"Nothing":   {"So does an end without a reason.", nil, "bad: it ended by itself"},
		"Cancelled": {"A cancellation that nobody asked for is an error.", fmt.Errorf("asking: %w", context.Canceled), "bad: asking: context canceled"},
		"Timeout":   {"So is a time-out.", context.DeadlineExceeded, "bad: context deadline exceeded"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, _ := life(t.Context())
				var d diary
				l.Start("good", time.Minute, d.obeys("good", 0))
				l.Start("bad", time.Minute, func(context.Context) error {
					time.Sleep(time.Second)
					return tc.err
				})
				if err := l.Failed(); err != nil {
					t.Errorf("before it failed: %v", err)
				}
				err := l.Wait()
				if err == nil || err.Error() != tc.want || tc.err != nil && !errors.Is(err, tc.err) {
					t.Errorf("%s The error is %v", tc.reason, err)
				}
				l.Stop()
				if diff := cmp.Diff([]string{"good stops", "good stopped"}, d.read()); diff != "" {
					t.Errorf("the others (-want +got):\n%s", diff)
				}
				if again := l.Failed(); again == nil || again.Error() != tc.want {
					t.Errorf("after the stop the error is %v", again)
				}
			})
		})
	}
}

// What ends the service from outside is no failure, whatever it calls itself:
// signal.NotifyContext gives a cause of its own.
func TestWantedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cause := range []error{nil, context.Canceled, context.DeadlineExceeded, errors.New("terminated signal received")} {
			ctx, cancel := context.WithCancelCause(t.Context())
			l, _ := life(ctx)
			var d diary
			l.Start("a", time.Minute, d.obeys("a", 0))
			cancel(cause)
			if err := l.Wait(); err != nil {
				t.Errorf("%v is reported as %v", cause, err)
			}
			l.Stop()
		}
	})
}

func TestOnePartDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, log := life(t.Context())
		var d diary
		free := make(chan struct{})
		l.Start("first", 10*time.Second, d.obeys("first", 0))
		l.Start("deaf", 5*time.Second, func(context.Context) error { <-free; return nil })
		l.Start("loud", 5*time.Second, func(ctx context.Context) error { <-ctx.Done(); return errors.New("it hurts") })
		before := time.Now()
		l.Stop()
		if waited := time.Since(before); waited != 5*time.Second {
			t.Errorf("stopping took %s", waited)
		}
		if diff := cmp.Diff([]string{"first stops", "first stopped"}, d.read()); diff != "" {
			t.Errorf("those before it (-want +got):\n%s", diff)
		}
		for _, part := range []string{"does not stop", "part=deaf", "did not stop cleanly", "part=loud", "it hurts"} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log does not say %q:\n%s", part, log)
			}
		}
		close(free)
	})
}

package watch

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// A stream is a watch that can be told to end after a while, as if the API
// server had ended it: what was missed meanwhile is asked for with the next one.
type stream struct {
	inner  watch.Interface
	failed func(error) // an error that came as an event

	out   chan watch.Event
	timer chan (<-chan time.Time) // brings the timer that ends it
	stop  func()
	done  chan struct{} // closed: it was stopped
	left  chan struct{} // closed: forward has returned
}

func newStream(inner watch.Interface, failed func(error)) *stream {
	s := &stream{
		inner: inner, failed: failed, out: make(chan watch.Event), timer: make(chan (<-chan time.Time), 1),
		done: make(chan struct{}), left: make(chan struct{}),
	}
	s.stop = sync.OnceFunc(func() { close(s.done) })
	go s.forward()
	return s
}

// ResultChan implements watch.Interface.
func (s *stream) ResultChan() <-chan watch.Event { return s.out }

// Stop implements watch.Interface. It waits for the stream's goroutine.
func (s *stream) Stop() {
	s.stop()
	<-s.left
}

// endAfter ends the stream after a while. It may be called once.
func (s *stream) endAfter(d time.Duration) { s.timer <- time.After(d) }

func (s *stream) forward() {
	defer close(s.left)
	defer close(s.out)
	defer s.inner.Stop()
	var ended <-chan time.Time
	for {
		select {
		case e, ok := <-s.inner.ResultChan():
			if !ok {
				return
			}
			if e.Type == watch.Error {
				s.failed(apierrors.FromObject(e.Object))
			}
			select {
			case s.out <- e:
			case <-s.done:
				return
			}
		case ended = <-s.timer:
		case <-ended:
			return
		case <-s.done:
			return
		}
	}
}

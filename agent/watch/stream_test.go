package watch

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// However a stream ends, its channel is closed, what it reads from is stopped,
// and nothing of it is left running: the bubble would not end.
func TestStream(t *testing.T) {
	event := watch.Event{Type: watch.Added, Object: &metav1.Status{}}
	for name, c := range map[string]struct {
		reason string
		act    func(inner *watch.FakeWatcher, s *stream)
		passed int // events that come through
		errors int
	}{
		"stopped":             {"by who reads it", func(_ *watch.FakeWatcher, s *stream) { s.Stop(); s.Stop() }, 0, 0},
		"stopped with events": {"nobody reads them any more", func(inner *watch.FakeWatcher, s *stream) { inner.Add(event.Object); s.Stop() }, 0, 0},
		"closed":              {"by the API server", func(inner *watch.FakeWatcher, _ *stream) { inner.Stop() }, 0, 0},
		"in time":             {"as it was told", func(_ *watch.FakeWatcher, s *stream) { s.endAfter(time.Minute) }, 0, 0},
		"events":              {"they come through", func(inner *watch.FakeWatcher, s *stream) { s.endAfter(time.Minute); inner.Add(event.Object) }, 1, 0},
		"error":               {"it is told and comes through", func(inner *watch.FakeWatcher, _ *stream) { inner.Error(&metav1.Status{}); inner.Stop() }, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner, errors, passed := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1}), 0, 0
				s := newStream(inner, func(error) { errors++ })
				c.act(inner, s)
				for range s.ResultChan() {
					passed++
				}
				s.Stop()
				if !inner.IsStopped() || passed != c.passed || errors != c.errors {
					t.Errorf("stopped %v, %d events, %d errors: %s", inner.IsStopped(), passed, errors, c.reason)
				}
			})
		})
	}
}

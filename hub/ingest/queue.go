package ingest

import (
	"context"
	"sync"

	"github.com/landfall-hub/landfall/schema"
)

// message is a report on its way into the store, or, with no report, the
// decommission of its cluster at an epoch. done receives its outcome; it never
// blocks the sender.
type message struct {
	cluster string
	report  *schema.Report
	epoch   uint64
	// refused is why it was not taken though its batch was stored.
	refused error
	done    chan error
}

// weight is what a message counts for in the queue: its reconcilers, and one.
func (m *message) weight() int {
	if m.report == nil {
		return 1
	}
	return 1 + len(m.report.Reconcilers) + len(m.report.Removed)
}

// queue holds messages in the order of their arrival, bounded by weight.
type queue struct {
	limit int

	mu      sync.Mutex
	waiting []*message
	weight  int
	closed  error
	// filled has room for one: something is waiting.
	filled chan struct{}
}

func newQueue(limit int) *queue { return &queue{limit: limit, filled: make(chan struct{}, 1)} }

// put appends a message. It returns false when the queue is full; one that is
// empty takes any message.
func (q *queue) put(m *message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		m.done <- q.closed
		return true
	}
	w := m.weight()
	if q.weight > 0 && q.weight+w > q.limit {
		return false
	}
	q.waiting = append(q.waiting, m)
	q.weight += w
	q.wake()
	return true
}

func (q *queue) wake() {
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// take waits for messages and returns all that are there, up to the weight,
// but at least one. It returns nil when ctx ends.
func (q *queue) take(ctx context.Context, weight int) []*message {
	for {
		if batch := q.tryTake(weight); batch != nil {
			return batch
		}
		select {
		case <-ctx.Done():
			return nil
		case <-q.filled:
		}
	}
}

func (q *queue) tryTake(weight int) []*message {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, sum := 0, 0
	for n < len(q.waiting) {
		sum += q.waiting[n].weight()
		if n > 0 && sum > weight {
			sum -= q.waiting[n].weight()
			break
		}
		n++
	}
	if n == 0 {
		return nil
	}
	batch := q.waiting[:n:n]
	q.waiting = append([]*message(nil), q.waiting[n:]...)
	q.weight -= sum
	if len(q.waiting) > 0 {
		q.wake()
	}
	return batch
}

// close answers what is waiting, and all that comes, with err.
func (q *queue) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = err
	for _, m := range q.waiting {
		m.done <- err
	}
	q.waiting, q.weight = nil, 0
}

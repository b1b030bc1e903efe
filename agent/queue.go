package agent

import (
	"sync"

	"github.com/landfall-hub/landfall/schema"
)

// queue holds the keys of objects that changed, each once, however often they
// did. It is as long as there are objects, at most.
type queue struct {
	// ready has an item when there is something to look at.
	ready chan struct{}

	mu sync.Mutex
	// waiting are the keys in the order in which they first changed; known has
	// them too. taken are those that are being looked at.
	waiting      []schema.ObjectRef
	known, taken map[schema.ObjectRef]struct{}
}

func newQueue() *queue {
	return &queue{ready: make(chan struct{}, 1), known: map[schema.ObjectRef]struct{}{}}
}

// add never blocks.
func (q *queue) add(key schema.ObjectRef) {
	q.mu.Lock()
	if _, twice := q.known[key]; !twice {
		q.known[key] = struct{}{}
		q.waiting = append(q.waiting, key)
	}
	q.mu.Unlock()
	q.wake()
}

// wake makes the worker look, also when nothing was added.
func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default: // it is to look already
	}
}

// take returns the keys that wait. What changes from now on waits again. The
// caller says done when it has looked at them.
func (q *queue) take() []schema.ObjectRef {
	q.mu.Lock()
	defer q.mu.Unlock()
	keys := q.waiting
	q.waiting, q.taken, q.known = nil, q.known, map[schema.ObjectRef]struct{}{}
	return keys
}

func (q *queue) done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken = nil
}

// has reports whether a key waits or is being looked at.
func (q *queue) has(key schema.ObjectRef) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, waits := q.known[key]
	_, taken := q.taken[key]
	return waits || taken
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

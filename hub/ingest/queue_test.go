package ingest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/landfall-hub/landfall/schema"
)

func weighing(n int) *message {
	r := &schema.Report{}
	for i := range n - 1 {
		if i%2 == 0 {
			r.Reconcilers = append(r.Reconcilers, schema.Reconciler{})
			continue
		}
		r.Removed = append(r.Removed, schema.ObjectRef{})
	}
	return &message{report: r, done: make(chan error, 1)}
}

func TestQueueIsBoundedByWeight(t *testing.T) {
	q := newQueue(10)
	for i, step := range []struct {
		weight int
		want   bool
	}{{4, true}, {6, true}, {1, false}} {
		if got := q.put(weighing(step.weight)); got != step.want {
			t.Errorf("step %d: a message of %d is taken: %t", i, step.weight, got)
		}
	}
	if n := len(q.take(t.Context(), 100)); n != 2 {
		t.Fatalf("%d messages were there", n)
	}
	if !q.put(weighing(25)) {
		t.Error("one that is larger than the queue is not taken though the queue is empty")
	}
	if q.put(weighing(1)) {
		t.Error("a message was taken beside the oversized one")
	}
	if got := q.take(t.Context(), 3); len(got) != 1 || got[0].weight() != 25 {
		t.Errorf("the oversized one is not handed out alone: %d", len(got))
	}
	if q.weight != 0 || !q.put(&message{done: make(chan error, 1)}) || q.weight != 1 {
		t.Errorf("an end of a cluster weighs %d", q.weight)
	}
}

func TestQueueTakesInOrderUpToAWeight(t *testing.T) {
	q := newQueue(100)
	var all []*message
	for _, w := range []int{3, 4, 2, 9, 1, 1} {
		m := weighing(w)
		all = append(all, m)
		q.put(m)
	}
	for i, want := range []int{2, 1, 1, 2} { // 3+4, 2, 9 alone above the weight, 1+1
		batch := q.take(t.Context(), 8)
		if len(batch) != want {
			t.Fatalf("batch %d has %d messages, want %d", i, len(batch), want)
		}
		for _, m := range batch {
			if m != all[0] {
				t.Fatal("out of order")
			}
			all = all[1:]
		}
	}
}

func TestQueueWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(10)
		got := make(chan int, 1)
		ctx, cancel := context.WithCancel(t.Context())
		take := func() { got <- len(q.take(ctx, 10)) }
		go take()
		synctest.Wait()
		select {
		case n := <-got:
			t.Fatalf("took %d of nothing", n)
		default:
		}
		q.put(weighing(1))
		if n := <-got; n != 1 {
			t.Errorf("took %d", n)
		}
		go take()
		synctest.Wait()
		cancel()
		if n := <-got; n != 0 {
			t.Errorf("took %d at the end", n)
		}
	})
}

func TestQueueCloses(t *testing.T) {
	q, over := newQueue(10), errors.New("over")
	before, after := weighing(1), weighing(1)
	q.put(before)
	q.close(over)
	if !q.put(after) {
		t.Error("a closed queue calls itself full")
	}
	for _, m := range []*message{before, after} {
		if err := <-m.done; !errors.Is(err, over) {
			t.Errorf("answered with %v", err)
		}
	}
	if q.weight != 0 {
		t.Errorf("a closed queue weighs %d", q.weight)
	}
}

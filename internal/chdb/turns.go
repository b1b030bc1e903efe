package chdb

import "context"

// turns bounds how many sessions are open at once and how many wait for that.
type turns struct {
	running chan struct{}
	// waiting holds those that run as well.
	waiting chan struct{}
}

func newTurns(running, waiting int) *turns {
	return &turns{running: make(chan struct{}, running), waiting: make(chan struct{}, running+waiting)}
}

// take waits for a turn, which the caller must release. It is refused at once
// when too many wait already.
func (t *turns) take(ctx context.Context, stopped <-chan struct{}) error {
	select {
	case t.waiting <- struct{}{}:
	default:
		return failure(codeTooManyQueries, "%d statements run or wait already", cap(t.waiting))
	}
	select {
	case t.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		<-t.waiting
		return failure(codeQueryWasStopped, "the client went away before its turn came")
	case <-stopped:
		<-t.waiting
		return ErrClosed
	}
}

func (t *turns) release() {
	<-t.running
	<-t.waiting
}

package gitrepo

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// patience bounds an exchange with a server: in all, between two bytes, and in
// how much comes.
type patience struct {
	stall time.Duration
	timer *time.Timer
	// most is how many bytes may come, left how many of them have not.
	mu         sync.Mutex
	most, left int64
	// head is how the first answer began, for what the decoder does not say.
	head []byte
}

// mostHead is enough for the first line of an answer, with all capabilities.
const mostHead = 8 << 10

// bounded returns a context that ends when the patience does, with ErrTimeout
// as its cause. stop releases it.
func bounded(ctx context.Context, all, stall time.Duration, bytes int64) (_ context.Context, p *patience, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p = &patience{stall: stall, most: bytes, left: bytes}
	p.timer = time.AfterFunc(stall, func() { cancel(fmt.Errorf("%w: nothing came for %s", ErrTimeout, stall)) })
	end := time.AfterFunc(all, func() { cancel(fmt.Errorf("%w: it was not done after %s", ErrTimeout, all)) })
	return ctx, p, func() {
		p.timer.Stop()
		end.Stop()
		cancel(nil)
	}
}

// reader watches over what comes.
func (p *patience) reader(from io.Reader) io.Reader { return patientReader{from, p} }

type patientReader struct {
	io.Reader
	p *patience
}

func (r patientReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if n > 0 {
		if bad := r.p.took(b[:n]); bad != nil {
			return 0, bad
		}
	}
	return n, err
}

// sender watches over what is sent: as long as the other end takes it, it is
// there.
func (p *patience) sender(from io.ReadCloser) io.ReadCloser { return patientSender{from, p} }

type patientSender struct {
	io.ReadCloser
	p *patience
}

func (s patientSender) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.timer.Reset(s.p.stall)
	return n, err
}

func (p *patience) took(b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Reset(p.stall)
	p.head = append(p.head, b[:min(len(b), mostHead-len(p.head))]...)
	if p.left -= int64(len(b)); p.left < 0 {
		return fmt.Errorf("%w: more than %d bytes came from the server", ErrTooLarge, p.most)
	}
	return nil
}

// done says that all has come: what follows takes the time it takes.
func (p *patience) done() { p.timer.Stop() }

// began returns how the first answer began.
func (p *patience) began() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.head
}

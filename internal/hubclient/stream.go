package hubclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

const (
	// firstVerdict bounds the time from dialling to the first verdict, which a
	// hub gives at once. A proxy that holds a stream back is found out by it.
	firstVerdict = 30 * time.Second
	// streamSilence is how long a stream may say nothing, not even a keep-alive
	// (one comes every 15 seconds).
	streamSilence = time.Minute
)

// Stream is an open stream of verdicts. One goroutine reads it.
type Stream struct {
	client *Client
	call   call
	q      Question

	ctx    context.Context //nolint:containedctx // the stream is a request that goes on
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	events *eventReader
	// watchdog ends the stream when the hub says nothing.
	watchdog *time.Timer
	// answered is true from the first verdict on, ended after a final one.
	answered bool
	ended    bool
}

// ComplianceStream opens the stream of verdicts on q. Its reader must Close it.
// It lives until ctx is over.
func (c *Client) ComplianceStream(ctx context.Context, q Question) (*Stream, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	k := call{method: http.MethodGet, path: apiPrefix + "/compliance/stream", query: q.values()}
	ctx, cancel := context.WithCancelCause(ctx)
	s := &Stream{client: c, call: k, q: q, ctx: ctx, cancel: cancel}
	s.watchdog = time.AfterFunc(firstVerdict, func() { cancel(ErrSilent) })
	resp, token, err := c.send(ctx, k, eventStream) //nolint:bodyclose // Close closes it
	if err != nil {
		s.stop()
		return nil, err
	}
	s.body = resp.Body
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || kind != eventStream {
		defer s.Close()
		const enough = 64 << 10
		body, err := io.ReadAll(io.LimitReader(resp.Body, enough))
		if err != nil {
			return nil, c.failed(ctx, k, "reading the answer", err)
		}
		return nil, c.refused(k, resp, body, token)
	}
	s.events = newEventReader(resp.Body, s.alive)
	return s, nil
}

// Next returns the next verdict. After a final one it returns io.EOF; a stream
// that ends before is ErrStreamEnded.
func (s *Stream) Next() (*schema.Verdict, error) {
	if s.ended {
		return nil, io.EOF
	}
	for {
		ev, err := s.events.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, s.client.failed(s.ctx, s.call, "", ErrStreamEnded)
		case err != nil:
			return nil, s.client.failed(s.ctx, s.call, "reading the stream", err)
		case ev.name != "verdict":
			continue
		}
		v, err := s.q.read(json.RawMessage(ev.data))
		if err != nil {
			return nil, fmt.Errorf("%s: reading a verdict: %w", s.client.request(s.call), err)
		}
		s.answered = true
		s.ended = v.State.Final()
		s.alive()
		return v, nil
	}
}

// Retry returns how long the hub asked to wait before connecting again, or zero.
func (s *Stream) Retry() time.Duration { return s.events.retry }

// Close ends the stream.
func (s *Stream) Close() error {
	s.stop()
	return s.body.Close()
}

func (s *Stream) stop() {
	s.watchdog.Stop()
	s.cancel(context.Canceled)
}

// alive puts the watchdog off. Before the first verdict keep-alives do not
// count: something that only trickles is no hub.
func (s *Stream) alive() {
	if s.answered && s.ctx.Err() == nil {
		s.watchdog.Reset(streamSilence)
	}
}

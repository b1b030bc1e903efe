package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/semaphore"

	"github.com/landfall-hub/landfall/schema"
)

const (
	// MaxBody is the longest body in bytes, as it travels and after decompression.
	MaxBody = 16 << 20
	// maxWindow is the largest zstd window in bytes; encoders use 8 MiB at most
	// unless told otherwise.
	maxWindow = 8 << 20
	// bodyTimeout is how long a body may take to arrive.
	bodyTimeout = time.Minute
	// reserveStep is the least share of the memory for bodies that is asked for.
	reserveStep = 64 << 10
	// keptBuffer is the largest buffer in bytes that is kept for another body.
	keptBuffer = 1 << 20
)

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// decode reads the request's body into v. The body's share of memory is held
// until release is called, which is never nil.
func (a *API) decode(w http.ResponseWriter, r *http.Request, v any) (release func(), err error) {
	return a.body(w, r, a.bodies, onlyJSON, func(body []byte) error { return unmarshal(body, v) })
}

// onlyJSON are the types of most bodies.
var onlyJSON = []string{"application/json"}

// body reads the request's body, which is of one of some types, and has it used,
// which must keep nothing of it. Its share of the pool's memory is held until release is called, which is
// never nil.
func (a *API) body(w http.ResponseWriter, r *http.Request, pool *semaphore.Weighted, media []string, use func([]byte) error) (release func(), err error) {
	nothing := func() {}
	if err := checkMedia(r, media); err != nil {
		return nothing, err
	}
	encoding, err := contentEncoding(w, r)
	if err != nil {
		return nothing, err
	}
	if r.ContentLength > MaxBody {
		return nothing, tooLarge()
	}
	share := &reservation{pool: pool, ctx: r.Context(), wait: a.decodeWait}
	if err := share.grow(expected(r.ContentLength, encoding)); err != nil {
		return nothing, err
	}
	buf := buffers.Get().(*bytes.Buffer)
	defer func() {
		if buf.Cap() <= keptBuffer {
			buf.Reset()
			buffers.Put(buf)
		}
	}()
	if encoding == "" && r.ContentLength > 0 {
		buf.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	err = readBody(w, r, encoding, share, buf)
	a.metrics.bodyBytes.WithLabelValues(routePattern(r)).Add(float64(buf.Len()))
	if err == nil {
		err = use(buf.Bytes())
	}
	if err != nil {
		share.release()
		return nothing, err
	}
	return share.release, nil
}

const (
	// drainBody and drainTime bound what is read of a body that was refused
	// unread.
	drainBody = 64 << 20
	drainTime = 5 * time.Second
)

// drained reads on, within bounds, what a handler has left of a body, after its
// answer is on the way: many clients send all of it before they read, and see a
// broken pipe instead of the refusal when the connection closes in between.
func drained(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 || r.ProtoMajor != 1 || r.Header.Get("Expect") != "" {
			next.ServeHTTP(w, r)
			return
		}
		body := &readBefore{ReadCloser: r.Body}
		r.Body = body
		next.ServeHTTP(w, r)
		if body.ended {
			return
		}
		control := http.NewResponseController(w)
		if control.Flush() != nil || control.SetReadDeadline(time.Now().Add(drainTime)) != nil {
			return
		}
		_, _ = io.CopyN(io.Discard, body, drainBody) // what is wrong with it was answered
		_ = control.SetReadDeadline(time.Time{})
	})
}

// readBefore knows whether a body was read to its end.
type readBefore struct {
	io.ReadCloser
	ended bool
}

func (b *readBefore) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err != nil
	return n, err
}

func checkMedia(r *http.Request, allowed []string) error {
	written := r.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(written)
	charset := strings.ToLower(params["charset"])
	if err != nil || !slices.Contains(allowed, media) || charset != "" && charset != "utf-8" {
		return refuse(schema.CodeUnsupportedMedia, "the Content-Type is %q; write %s", written, strings.Join(allowed, " or "))
	}
	return nil
}

// contentEncoding returns gzip, zstd or "".
func contentEncoding(w http.ResponseWriter, r *http.Request) (string, error) {
	written := strings.Join(r.Header.Values("Content-Encoding"), ", ")
	switch e := strings.ToLower(strings.TrimSpace(written)); e {
	case "", "identity":
		return "", nil
	case "gzip", "zstd":
		return e, nil
	}
	w.Header().Set("Accept-Encoding", "gzip, zstd")
	return "", refuse(schema.CodeUnsupportedMedia, "the Content-Encoding is %q; write gzip, zstd or nothing", written)
}

func tooLarge() error {
	return refuse(schema.CodeBodyTooLarge, "a body has at most %d bytes, also after decompression; split the report, a snapshot travels in parts", MaxBody)
}

// expected guesses how many bytes a body will have.
func expected(contentLength int64, encoding string) int64 {
	switch {
	case contentLength < 0:
		return reserveStep
	case encoding == "":
		return contentLength
	}
	return min(8*contentLength, MaxBody)
}

// readBody fills buf with the decompressed body.
func readBody(w http.ResponseWriter, r *http.Request, encoding string, share *reservation, buf *bytes.Buffer) error {
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(bodyTimeout)) == nil {
		defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	}
	raw := &arrival{r: http.MaxBytesReader(innermost(w), r.Body, MaxBody)}
	plain, done, err := decompressor(encoding, raw)
	if err == nil {
		defer done()
		_, err = buf.ReadFrom(&metered{r: plain, share: share})
	}
	var refusal *schema.Refusal
	var long *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(raw.err, &long):
		return tooLarge()
	case errors.Is(raw.err, os.ErrDeadlineExceeded):
		return refuse(schema.CodeUnavailable, "the body did not arrive within %s", bodyTimeout)
	case errors.As(err, &refusal), r.Context().Err() != nil:
		return err
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return refuse(schema.CodeBodyTooLarge, "the zstd window is larger than %d bytes", maxWindow)
	case encoding != "" && raw.err == nil:
		return refuse(schema.CodeInvalidJSON, "the body is not %s: %v", encoding, err)
	}
	return refuse(schema.CodeInvalidJSON, "the body ends before it is complete")
}

// innermost returns the server's own writer: told of a body that is too long it
// lets the client read the refusal before it closes the connection.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

// arrival remembers how reading from the connection failed, so that it can be
// told from a fault of the compression.
type arrival struct {
	r   io.Reader
	err error
}

func (a *arrival) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if err != nil && err != io.EOF {
		a.err = err
	}
	return n, err
}

var (
	gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}
	zstdReaders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(MaxBody))
		if err != nil { // the options are constants
			panic(err)
		}
		return d
	}}
)

// decompressor returns a reader of the plain body, and what to do after it.
func decompressor(encoding string, raw io.Reader) (plain io.Reader, done func(), err error) {
	switch encoding {
	case "gzip":
		z := gzipReaders.Get().(*gzip.Reader)
		if err := z.Reset(raw); err != nil {
			return nil, nil, unexpectedEnd(err)
		}
		return z, func() { gzipReaders.Put(z) }, nil
	case "zstd":
		z := zstdReaders.Get().(*zstd.Decoder)
		if err := z.Reset(raw); err != nil {
			return nil, nil, unexpectedEnd(err)
		}
		return z, func() {
			if z.Reset(nil) == nil {
				zstdReaders.Put(z)
			}
		}, nil
	}
	return raw, func() {}, nil
}

// unexpectedEnd keeps an empty compressed body from looking like a whole one.
func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// metered counts plain bytes: it stops at MaxBody and asks for memory as the
// body turns out longer than expected.
type metered struct {
	r     io.Reader
	share *reservation
	read  int64
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.read += int64(n)
	if m.read > MaxBody {
		return n, tooLarge()
	}
	if grown := m.share.grow(m.read); grown != nil {
		return n, grown
	}
	return n, err
}

// reservation is one body's share of the memory for all bodies.
type reservation struct {
	pool *semaphore.Weighted
	ctx  context.Context //nolint:containedctx // it lives as long as one request
	wait time.Duration
	held int64
}

// grow makes the share at least n bytes, waiting a bounded time for others to
// finish: bodies that wait for one another end as overloaded, never stuck.
func (s *reservation) grow(n int64) error {
	more := n - s.held
	if more <= 0 {
		return nil
	}
	if s.held > 0 { // it doubles, so that a long body asks seldom
		more = max(more, min(s.held, MaxBody-s.held))
	}
	if !s.pool.TryAcquire(more) {
		ctx, cancel := context.WithTimeout(s.ctx, s.wait)
		defer cancel()
		if err := s.pool.Acquire(ctx, more); err != nil {
			if s.ctx.Err() != nil {
				return fmt.Errorf("waiting to read the body: %w", s.ctx.Err())
			}
			return refuse(schema.CodeOverloaded, "too many bodies at once; try again")
		}
	}
	s.held += more
	return nil
}

func (s *reservation) release() {
	if s.held > 0 {
		s.pool.Release(s.held)
		s.held = 0
	}
}

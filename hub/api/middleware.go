package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/landfall-hub/landfall/schema"
)

// call is what the API remembers of a request while it is served.
type call struct {
	id     string
	caller schema.Token
}

type callKey struct{}

func requestID(ctx context.Context) string {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c.id
	}
	return ""
}

func setCaller(ctx context.Context, t schema.Token) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.caller = t
	}
}

func callerOf(ctx context.Context) schema.Token {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c.caller
	}
	return schema.Token{}
}

// observe gives the request an id, counts it and logs it.
func (a *API) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{id: newRequestID(r.Header.Get("X-Request-Id"))}
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		w.Header().Set("X-Request-Id", c.id)
		rec := &recorder{ResponseWriter: w}
		started := a.now()
		a.metrics.inFlight.Inc()
		defer func() {
			a.metrics.inFlight.Dec()
			took := a.now().Sub(started)
			pattern, method := routePattern(r), knownMethod(r.Method)
			a.metrics.requests.WithLabelValues(pattern, method, strconv.Itoa(rec.code())).Inc()
			a.metrics.duration.WithLabelValues(pattern, method).Observe(took.Seconds())
			a.logger.LogAttrs(r.Context(), slog.LevelDebug, "request",
				slog.String("request_id", c.id), slog.String("method", r.Method), slog.String("path", r.URL.Path),
				slog.Int("status", rec.code()), slog.Int64("bytes", rec.bytes), slog.Duration("took", took),
				slog.String("token", c.caller.ID), slog.String("remote", r.RemoteAddr))
		}()
		next.ServeHTTP(rec, r)
	})
}

// newRequestID keeps the client's id if it is plain, and makes one otherwise.
func newRequestID(given string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	if given != "" && len(given) <= 128 && strings.Trim(given, plain) == "" {
		return given
	}
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// routePattern is the route's pattern, or "unmatched": a bounded label.
func routePattern(r *http.Request) string {
	if p := chi.RouteContext(r.Context()).RoutePattern(); p != "" {
		return p
	}
	return "unmatched"
}

func knownMethod(m string) string {
	if slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch}, m) {
		return m
	}
	return "other"
}

// recoverPanics turns a panic into a 500, or cuts the connection where the
// answer has begun.
func (a *API) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause == http.ErrAbortHandler { //nolint:errorlint // a panic's value, compared as net/http does
				panic(cause)
			}
			a.metrics.panics.Inc()
			a.logger.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("request_id", requestID(r.Context())),
				slog.Any("cause", cause), slog.String("stack", string(debug.Stack())))
			if rec, ok := w.(*recorder); ok && rec.status != 0 {
				panic(http.ErrAbortHandler)
			}
			a.fail(w, r, fmt.Errorf("panic: %v", cause))
		}()
		next.ServeHTTP(w, r)
	})
}

// recorder remembers the status and the size of an answer.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

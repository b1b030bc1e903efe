package hub

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// server serves HTTP from the first moment on: until the hub is ready it lives
// and answers that it is not ready.
type server struct {
	log     *slog.Logger
	handler atomic.Pointer[http.Handler]
}

func newServer(log *slog.Logger) *server {
	s := &server{log: log}
	s.use(http.HandlerFunc(starting))
	return s
}

// use takes another handler from now on.
func (s *server) use(h http.Handler) { s.handler.Store(&h) }

// starting answers while the store is not there yet.
func starting(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		w.WriteHeader(http.StatusOK)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(schema.Problem{ // the caller left
		Type: "about:blank", Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable,
		Code: schema.CodeUnavailable, Detail: "the hub is starting; try again in a second",
	})
}

// drain is how long requests may go on after the hub was told to stop; long
// polls and streams end then.
const drain = 2 * time.Second

func (s *server) run(ctx context.Context, listener net.Listener) error {
	requests, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	srv := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.handler.Load()).ServeHTTP(w, r) }),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       2 * time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	calm, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := srv.Shutdown(calm)
	if errors.Is(err, context.DeadlineExceeded) {
		end()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		if err = srv.Shutdown(last); err != nil {
			err = srv.Close()
		}
	}
	<-served //nolint:errcheck // http.ErrServerClosed, after Shutdown
	return err
}

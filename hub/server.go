package hub

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/landfall-hub/landfall/internal/httpserver"
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

// run serves until ctx ends.
func (s *server) run(ctx context.Context, listener net.Listener) error {
	current := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.handler.Load()).ServeHTTP(w, r) })
	return httpserver.Serve(ctx, listener, current, s.log)
}

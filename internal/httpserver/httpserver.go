// Package httpserver serves HTTP on a listener with bounds that hold for every
// service here, and ends within seconds once it is told to.
package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// drain is how long requests may go on after the service was told to stop; long
// polls and streams end then.
const drain = 2 * time.Second

// Serve answers requests of the listener with h until ctx ends, and closes it.
// The error is nil after a calm end.
func Serve(ctx context.Context, listener net.Listener, h http.Handler, log *slog.Logger) error {
	requests, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       2 * time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
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

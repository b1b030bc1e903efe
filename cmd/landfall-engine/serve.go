package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// listeners are where the engine serves; reader is nil where there are none.
type listeners struct {
	main, reader net.Listener
}

func listen(cfg config) (listeners, error) {
	var l listeners
	var err error
	if l.main, err = net.Listen("tcp", cfg.listen); err != nil {
		return l, fmt.Errorf("%w on %s: %w", errListen, cfg.listen, err)
	}
	if cfg.readerListen == "" {
		return l, nil
	}
	if l.reader, err = net.Listen("tcp", cfg.readerListen); err != nil {
		return l, errors.Join(fmt.Errorf("%w on %s: %w", errReaderListen, cfg.readerListen, err), l.close())
	}
	return l, nil
}

func (l listeners) close() error {
	err := l.main.Close()
	if l.reader != nil {
		err = errors.Join(err, l.reader.Close())
	}
	return err
}

// addresses are what is told on standard output.
func (l listeners) addresses() map[string]string {
	addresses := map[string]string{"address": l.main.Addr().String()}
	if l.reader != nil {
		addresses["reader_address"] = l.reader.Addr().String()
	}
	return addresses
}

// server is one listener with what it serves. Timeouts of zero are none.
type server struct {
	listener                  net.Listener
	handler                   http.Handler
	readTimeout, writeTimeout time.Duration
}

// serveHTTP says where it listens and serves until the context ends.
func serveHTTP(ctx context.Context, servers []server, addresses map[string]string, stdout io.Writer, log *slog.Logger) error {
	// Statements must end with the engine, not only with their clients.
	requests, cancelRequests := context.WithCancel(context.Background())
	defer cancelRequests()
	running := make([]*http.Server, len(servers))
	failed := make(chan error, len(servers))
	for i, s := range servers {
		running[i] = &http.Server{
			Handler:           s.handler,
			ReadHeaderTimeout: headerTimeout,
			ReadTimeout:       s.readTimeout,
			WriteTimeout:      s.writeTimeout,
			IdleTimeout:       idleTimeout,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
			BaseContext:       func(net.Listener) context.Context { return requests },
		}
		go func() { failed <- running[i].Serve(s.listener) }()
	}
	err := json.NewEncoder(stdout).Encode(addresses)
	if err != nil {
		err = fmt.Errorf("telling the address: %w", err)
	} else {
		select {
		case err = <-failed:
			err = fmt.Errorf("serving HTTP: %w", err)
		case <-ctx.Done():
		}
	}
	cancelRequests()
	stopping, done := context.WithTimeout(context.Background(), stopTimeout)
	defer done()
	for _, s := range running {
		if stopErr := s.Shutdown(stopping); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("ending the last requests: %w", stopErr), s.Close())
		}
	}
	return err
}

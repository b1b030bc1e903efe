package httpserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestServerFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), listener, http.NotFoundHandler(), slog.New(slog.DiscardHandler)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the error is %v", err)
	}
}

// pipes is a listener of connections in memory, so that a bubble's clock rules.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// What is under way when the service is told to stop may finish; what waits for a
// change is told to end, with the time to write its last word; what hears
// nothing is cut off.
func TestServerDrains(t *testing.T) {
	cases := map[string]struct {
		reason string
		handle http.HandlerFunc
		body   string
		after  time.Duration
	}{
		"Short": {"A request that ends in time is answered.", func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(drain / 2)
			fmt.Fprint(w, "done ", r.Context().Err())
		}, "done <nil>", drain / 2},
		"LongPoll": {"One that waits is told, and answers.", func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			fmt.Fprint(w, "ended")
		}, "ended", drain},
		"Deaf": {"One that does not hear is cut off.", func(_ http.ResponseWriter, _ *http.Request) { time.Sleep(time.Hour) }, "", 2 * drain},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan error, 1)
				go func() { ended <- Serve(ctx, listener, tc.handle, slog.New(slog.DiscardHandler)) }()
				mine, theirs := net.Pipe()
				listener.conns <- theirs
				if _, err := io.WriteString(mine, "GET / HTTP/1.1\r\nHost: hub\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				before := time.Now()
				cancel()
				response, err := http.ReadResponse(bufio.NewReader(mine), nil)
				if tc.body == "" {
					if err == nil {
						t.Errorf("%s It answered %s", tc.reason, response.Status)
					}
				} else {
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(response.Body)
					if err != nil || string(body) != tc.body {
						t.Errorf("%s It answered %q, %v", tc.reason, body, err)
					}
				}
				if waited := time.Since(before); waited < tc.after || waited > tc.after+time.Second {
					t.Errorf("%s It took %s, want %s", tc.reason, waited, tc.after)
				}
				if err := <-ended; err != nil {
					t.Errorf("it ended with %v", err)
				}
				_ = mine.Close()          // the other end is gone
				time.Sleep(2 * time.Hour) // the deaf one ends within the bubble
			})
		})
	}
}

package hub

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// serve runs a server until the test ends, and returns its URL and what stops
// it and waits.
func serve(t *testing.T, h http.Handler) (*server, string, func() error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(slog.New(slog.DiscardHandler))
	if h != nil {
		s.use(h)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.run(ctx, listener) }()
	t.Cleanup(cancel)
	return s, "http://" + listener.Addr().String(), func() error { cancel(); return <-done }
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(body)
}

// Until the hub is ready it lives, and says that it is not ready.
func TestStartingHandler(t *testing.T) {
	s, url, stop := serve(t, nil)
	if r, _ := get(t, url+"/healthz"); r.StatusCode != http.StatusOK {
		t.Errorf("it does not live: %s", r.Status)
	}
	for _, path := range []string{"/readyz", "/api/v1/clusters", "/"} {
		r, body := get(t, url+path)
		var p schema.Problem
		if err := json.Unmarshal([]byte(body), &p); err != nil || p.Code != schema.CodeUnavailable || p.Status != http.StatusServiceUnavailable {
			t.Errorf("%s: %s (%v)", path, body, err)
		}
		if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" || r.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s %v", path, r.Status, r.Header)
		}
	}
	s.use(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ready") }))
	if _, body := get(t, url+"/readyz"); body != "ready" {
		t.Errorf("when it is ready it says %q", body)
	}
	if err := stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, err := http.Get(url + "/healthz"); err == nil {
		t.Error("it still answers")
	}
}

func TestServerFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := newServer(slog.New(slog.DiscardHandler)).run(t.Context(), listener); !errors.Is(err, net.ErrClosed) {
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

// What is under way when the hub is told to stop may finish; what waits for a
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
				s := newServer(slog.New(slog.DiscardHandler))
				s.use(tc.handle)
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan error, 1)
				go func() { ended <- s.run(ctx, listener) }()
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

package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

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

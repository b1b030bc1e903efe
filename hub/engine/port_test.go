package engine

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPortIsTaken plays a landfall-engine that refuses a port that somebody has
// taken: the next start must ask for any port.
func TestPortIsTaken(t *testing.T) {
	folder := t.TempDir()
	asked := filepath.Join(folder, "asked")
	binary := filepath.Join(folder, "landfall-engine")
	script := fmt.Sprintf(`#!/bin/sh
read password
while [ $# -gt 0 ]; do [ "$1" = --listen ] && listen=$2; shift; done
echo "$listen" >> %s
[ "$listen" = 127.0.0.1:0 ] || exit 5
echo '{"address":"127.0.0.1:4711"}'
cat >/dev/null
`, asked)
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{Path: folder, Binary: binary, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	// As after a first run on this port.
	e.address = "127.0.0.1:1234"
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	waiting, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := e.WaitReady(waiting); err != nil {
		t.Error(err)
	}
	if got := e.listen(); got != "127.0.0.1:4711" {
		t.Errorf("the next start would ask for %s", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	got, err := os.ReadFile(asked)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("127.0.0.1:1234\n127.0.0.1:0\n", string(got)); diff != "" {
		t.Errorf("addresses asked for (-want +got):\n%s", diff)
	}
}

// TestDialFollowsTheEngine connects by the address of now, whatever the pool
// believes.
func TestDialFollowsTheEngine(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	e := &Engine{address: listener.Addr().String()}
	conn, err := e.DialContext(t.Context(), "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func TestReadRecord(t *testing.T) {
	cases := map[string]struct {
		reason  string
		record  map[string]any
		level   slog.Level
		message string
		attrs   []slog.Attr
	}{
		"a record": {
			reason:  "attributes come sorted, the time is dropped",
			record:  map[string]any{"time": "2026-01-01", "level": "ERROR", "msg": "m", "b": "2", "a": 1.0},
			level:   slog.LevelError,
			message: "m",
			attrs:   []slog.Attr{slog.Float64("a", 1), slog.String("b", "2")},
		},
		"no level": {
			reason:  "JSON of somebody else is passed on all the same",
			record:  map[string]any{"msg": "m"},
			level:   slog.LevelInfo,
			message: "m",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			level, message, attrs := readRecord(tc.record)
			if level != tc.level || message != tc.message {
				t.Errorf("%s: got %s %q", tc.reason, level, message)
			}
			if diff := cmp.Diff(tc.attrs, attrs); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

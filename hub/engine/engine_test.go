package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/engine"
	"github.com/landfall-hub/landfall/hub/engine/enginetest"
)

// options are for an engine on a new folder; the test is skipped, in
// enginetest's words, where there is no libchdb.
func options(t *testing.T) engine.Options {
	t.Helper()
	binary, library := enginetest.Files(t)
	return engine.Options{
		Path: t.TempDir(), Binary: binary, Library: library, LockWait: 10 * time.Second,
		Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	}
}

// running starts an engine for the test and returns it ready.
func running(t *testing.T, opts engine.Options) *engine.Engine {
	t.Helper()
	e, err := engine.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
	waitReady(t, e)
	return e
}

func waitReady(t *testing.T, e *engine.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := e.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

// pid reads the engine's process id where it leaves it.
func pid(t *testing.T, folder string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "landfall-engine.lock"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// metric reads one number from a registry.
func metric(t *testing.T, reg prometheus.Registerer, name string) float64 {
	t.Helper()
	families, err := reg.(*prometheus.Registry).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			m := family.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func TestEngineIsRestarted(t *testing.T) {
	opts := options(t)
	e := running(t, opts)
	url := e.URL()
	enginetest.Exec(t, url, "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
	enginetest.Exec(t, url, "INSERT INTO t VALUES (1), (2)")
	if !e.Ready() || metric(t, opts.Registerer, "landfall_engine_up") != 1 {
		t.Error("the engine is not shown as up")
	}

	if err := syscall.Kill(pid(t, opts.Path), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for metric(t, opts.Registerer, "landfall_engine_restarts_total") != 1 {
		if time.Now().After(deadline) {
			t.Fatal("no restart within a minute")
		}
	}
	waitReady(t, e)
	if e.URL() != url {
		t.Errorf("the URL changed from %s to %s", url, e.URL())
	}
	if got := enginetest.Exec(t, url, "SELECT sum(n) FROM t"); got != "3\n" {
		t.Errorf("after the restart the table holds %q", got)
	}
}

func TestEngineEndsWithItsContext(t *testing.T) {
	opts := options(t)
	e, err := engine.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	if e.URL() != "" || e.Ready() {
		t.Errorf("before Run: URL %q, ready %t", e.URL(), e.Ready())
	}
	if _, err := e.DialContext(t.Context(), ""); !errors.Is(err, engine.ErrDown) {
		t.Errorf("before Run: want ErrDown, got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	waitReady(t, e)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if e.Ready() {
		t.Error("ready after the end")
	}
	// The folder is free at once: nothing of the child is left.
	opts.LockWait, opts.Registerer = time.Millisecond, nil
	running(t, opts)
}

func TestHopelessStarts(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(t *testing.T, o *engine.Options)
		want   error
	}{
		"library": {
			reason: "starting again does not bring the library",
			change: func(t *testing.T, o *engine.Options) { o.Library = filepath.Join(t.TempDir(), "none") },
			want:   engine.ErrNoLibrary,
		},
		"locked": {
			reason: "two hubs on one folder: the second must say so and end",
			change: func(t *testing.T, o *engine.Options) {
				running(t, *o)
				o.LockWait, o.Registerer = time.Millisecond, nil
			},
			want: engine.ErrLocked,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			opts := options(t)
			tc.change(t, &opts)
			e, err := engine.New(opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Run(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("%s: want %v, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestBinaryIsMissing(t *testing.T) {
	_, err := engine.New(engine.Options{Path: t.TempDir(), Binary: filepath.Join(t.TempDir(), "none"), Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, engine.ErrNoBinary) || !strings.Contains(err.Error(), "make build") {
		t.Errorf("want ErrNoBinary that says what to run, got %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	cases := map[string]engine.Options{
		"no path":   {Log: log},
		"no log":    {Path: "x"},
		"wait back": {Path: "x", Log: log, LockWait: -1},
	}
	for name, opts := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := engine.New(opts); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestPasswordIsAskedFor(t *testing.T) {
	e := running(t, options(t))
	host := e.URL()[strings.Index(e.URL(), "@")+1:]
	host = host[:strings.Index(host, "/")]
	for _, url := range []string{"http://" + host + "/?query=SELECT+1", "http://landfall:wrong@" + host + "/?query=SELECT+1", "http://default:@" + host + "/?query=SELECT+1"} {
		response, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: status %d", url, response.StatusCode)
		}
	}
}

// Package enginetest gives tests a real ClickHouse: landfall-engine, built from
// this checkout, on a folder of its own.
//
// Starting one takes about a quarter of a second. A package with many tests
// shares one, with a database for each test:
//
//	func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }
//
//	func TestStore(t *testing.T) {
//		url := enginetest.Shared(t) // a new, empty database
//		…
//	}
//
// Where libchdb is missing, tests are skipped with words; in CI they fail.
package enginetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/engine"
)

const (
	startTimeout = 2 * time.Minute
	stopTimeout  = 25 * time.Second
)

// Engine is a running landfall-engine that a test may kill and start again.
// Its methods belong to the test's goroutine.
type Engine struct {
	opts    engine.ProcessOptions
	process *engine.Process
}

// Start gives the test an engine of its own and returns its URL, which
// clickhouse-go's ParseDSN takes. It ends with the test.
func Start(t testing.TB) string {
	t.Helper()
	return StartEngine(t).URL()
}

// StartEngine is Start for tests that break the engine.
func StartEngine(t testing.TB) *Engine {
	t.Helper()
	e, err := start(t.TempDir())
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(e.stop)
	return e
}

func start(folder string) (*Engine, error) {
	binary, library, err := find()
	if err != nil {
		return nil, err
	}
	e := &Engine{opts: engine.ProcessOptions{
		Binary:   binary,
		Library:  library,
		Path:     folder,
		Listen:   "127.0.0.1:0",
		Password: rand.Text(),
		LockWait: 10 * time.Second,
		Log:      slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}}
	return e, e.run()
}

func (e *Engine) run() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	process, err := engine.StartProcess(ctx, e.opts)
	if err != nil {
		return err
	}
	e.process = process
	e.opts.Listen = process.Address()
	return nil
}

func (e *Engine) stop() { e.process.Stop(stopTimeout) }

// URL is the engine's, with user, password and the database `default`.
func (e *Engine) URL() string { return e.databaseURL("default") }

// PID is the process id, for a look at the engine's memory.
func (e *Engine) PID() int { return e.process.PID() }

// Path is the data folder.
func (e *Engine) Path() string { return e.opts.Path }

// Kill ends the engine as a crash would.
func (e *Engine) Kill() { e.process.Kill() }

// Restart starts the engine again after Kill, on the same folder, port and
// password.
func (e *Engine) Restart(t testing.TB) {
	t.Helper()
	if err := e.run(); err != nil {
		t.Fatalf("starting the engine again: %v", err)
	}
}

func (e *Engine) databaseURL(database string) string {
	u := url.URL{
		Scheme: "http", User: url.UserPassword(engine.User, e.opts.Password),
		Host: e.opts.Listen, Path: "/" + database,
	}
	return u.String()
}

// shared is the engine of this test process.
var shared struct {
	once   sync.Once
	engine *Engine
	err    error
	folder string
}

// Main runs the tests of a package that uses Shared and cleans up after them.
// It returns the exit code for os.Exit.
func Main(m *testing.M) int {
	code := m.Run()
	if shared.engine != nil && shared.engine.process != nil {
		shared.engine.stop()
	}
	if shared.folder != "" {
		if err := os.RemoveAll(shared.folder); err != nil {
			fmt.Fprintln(os.Stderr, "enginetest:", err)
		}
	}
	return code
}

// Shared returns the URL of a new, empty database on the engine that all tests
// of this package share; the database is dropped when the test ends. The
// package's TestMain must call Main.
func Shared(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() {
		shared.folder, shared.err = os.MkdirTemp("", "landfall-enginetest-")
		if shared.err == nil {
			shared.engine, shared.err = start(shared.folder)
		}
	})
	if shared.err != nil {
		missing(t, shared.err)
	}
	database := "test_" + strings.ToLower(rand.Text())
	root := shared.engine.URL()
	Exec(t, root, "CREATE DATABASE "+database)
	t.Cleanup(func() { Exec(t, root, "DROP DATABASE IF EXISTS "+database+" SYNC") })
	return shared.engine.databaseURL(database)
}

// Exec runs one statement over plain HTTP and returns what it prints. It fails
// the test when the statement fails.
func Exec(t testing.TB, target, sql string) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatalf("the engine's URL: %v", err)
	}
	u.RawQuery = url.Values{"database": {strings.TrimPrefix(u.Path, "/")}}.Encode()
	u.Path = "/"
	response, err := http.Post(u.String(), "text/plain", strings.NewReader(sql))
	if err != nil {
		t.Fatalf("running %q: %v", sql, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("running %q: %v", sql, err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("running %q: %s", sql, text)
	}
	return string(text)
}

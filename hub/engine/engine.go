// Package engine runs landfall-engine, the embedded ClickHouse, as a child
// process: it starts it, watches it, starts it again when it dies, and ends it.
//
// Where there is a ClickHouse server this package is not used. To the store
// both look the same: a URL for clickhouse-go.
package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	defaultLockWait = 30 * time.Second
	// startTimeout bounds a start beyond the wait for the lock: loading the
	// library from a cold disk, and the tables' parts.
	startTimeout = 5 * time.Minute
	// stopTimeout bounds a shutdown; landfall-engine gives itself two times 10 s.
	stopTimeout = 25 * time.Second

	minBackoff = 100 * time.Millisecond
	maxBackoff = 30 * time.Second
	// steady is how long a run must last for the backoff to begin anew.
	steady = time.Minute
)

// ErrDown says that the engine is not running, or not yet.
var ErrDown = errors.New("the embedded ClickHouse is down")

// Options configure an Engine.
type Options struct {
	// Path is the data folder. Required.
	Path string
	// Binary is landfall-engine; by default the one beside this program.
	Binary string
	// Library is the path of libchdb; by default LANDFALL_CHDB_LIB, then the one
	// beside Binary.
	Library string
	// LockWait is how long a start waits for another process to leave the data
	// folder. Default 30 s.
	LockWait time.Duration
	// Reader opens a second address for readers from outside; nil does not.
	Reader *Reader
	// Log is required.
	Log *slog.Logger
	// Registerer receives the metrics; nil registers none.
	Registerer prometheus.Registerer
}

func (o *Options) validate() error {
	if o.Path == "" {
		return errors.New("a data folder is needed")
	}
	if o.Log == nil {
		return errors.New("a logger is needed")
	}
	if o.LockWait < 0 {
		return fmt.Errorf("waiting %s for the lock: must not be negative", o.LockWait)
	}
	if o.LockWait == 0 {
		o.LockWait = defaultLockWait
	}
	if o.Reader != nil {
		if err := o.Reader.validate(); err != nil {
			return err
		}
	}
	if o.Binary != "" {
		return nil
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the folder of this program: %w", err)
	}
	o.Binary = filepath.Join(filepath.Dir(executable), "landfall-engine")
	return nil
}

// Engine keeps one landfall-engine running on one data folder. User, password
// and port stay the same over restarts, so a pool of connections heals by
// itself.
type Engine struct {
	opts     Options
	password string
	metrics  *metrics

	mu sync.Mutex
	// address is empty until the first start, and then the last one's.
	address string
	// readerAddress is the last start's, empty without readers.
	readerAddress string
	// portTaken says that another program listens there now.
	portTaken bool
	// ready is closed while the engine takes statements, and replaced when it
	// no longer does.
	ready chan struct{}
	up    bool
}

// New checks the options and that the program is there. It starts nothing.
func New(opts Options) (*Engine, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("configuring the embedded ClickHouse: %w", err)
	}
	if _, err := os.Stat(opts.Binary); err != nil {
		return nil, fmt.Errorf("%w: %w; run `make build`, or use a ClickHouse server (--clickhouse-url)", ErrNoBinary, err)
	}
	return &Engine{
		opts:     opts,
		password: rand.Text(),
		metrics:  newMetrics(opts.Registerer),
		ready:    make(chan struct{}),
	}, nil
}

// URL is what clickhouse-go's ParseDSN takes, with user and password. It is
// empty until the engine was ready once, see WaitReady. It stays valid over
// restarts for whoever sets DialContext too.
func (e *Engine) URL() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.address == "" {
		return ""
	}
	u := url.URL{Scheme: "http", User: url.UserPassword(User, e.password), Host: e.address, Path: "/default"}
	return u.String()
}

// ReaderAddress is where readers from outside are served, host:port. It is
// empty before the first start, and without readers.
func (e *Engine) ReaderAddress() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.readerAddress
}

// DialContext connects to the engine, wherever it listens now; set it in
// clickhouse.Options. The port changes only if another program took it while
// the engine was down. The error is ErrDown before the first start.
func (e *Engine) DialContext(ctx context.Context, _ string) (net.Conn, error) {
	e.mu.Lock()
	address := e.address
	e.mu.Unlock()
	if address == "" {
		return nil, ErrDown
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// Ready tells whether the engine takes statements now.
func (e *Engine) Ready() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.up
}

// WaitReady waits until the engine takes statements. The error is the
// context's, with ErrDown.
func (e *Engine) WaitReady(ctx context.Context) error {
	e.mu.Lock()
	ready := e.ready
	e.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrDown, context.Cause(ctx))
	}
}

// Run keeps the engine running until the context ends, and ends it then.
//
// It returns early when trying again cannot help: the first start failed, or
// the program or the library is gone. The error is then ErrNoBinary,
// ErrNoLibrary, ErrLocked or what landfall-engine said.
func (e *Engine) Run(ctx context.Context) error {
	backoff := minBackoff
	for first := true; ; first = false {
		if !first {
			e.metrics.restarts.Inc()
		}
		began := time.Now()
		err := e.runOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if e.hopeless(err) {
			return fmt.Errorf("running the embedded ClickHouse on %s: %w", e.opts.Path, err)
		}
		if errors.Is(err, errListen) {
			e.forgetPort()
		}
		if time.Since(began) > steady {
			backoff = minBackoff
		}
		e.opts.Log.Error("the embedded ClickHouse ended; starting it again", "err", err, "in", backoff)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// hopeless tells whether to give up after this end of the child.
func (e *Engine) hopeless(err error) bool {
	if errors.Is(err, ErrNoBinary) || errors.Is(err, ErrNoLibrary) || errors.Is(err, errUsage) {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.address == ""
}

// runOnce starts the child and waits for its end or the context's.
func (e *Engine) runOnce(ctx context.Context) error {
	starting, started := context.WithTimeout(ctx, e.opts.LockWait+startTimeout)
	process, err := StartProcess(starting, ProcessOptions{
		Binary:   e.opts.Binary,
		Library:  e.opts.Library,
		Path:     e.opts.Path,
		Listen:   e.listen(),
		Password: e.password,
		LockWait: e.opts.LockWait,
		Reader:   e.opts.Reader,
		Log:      e.opts.Log,
	})
	started()
	if err != nil {
		return err
	}
	e.setUp(process.Address(), process.ReaderAddress())
	defer e.setDown()
	select {
	case <-process.Exited():
		if err := process.Err(); err != nil {
			return err
		}
		return errors.New("landfall-engine ended without being told to")
	case <-ctx.Done():
		e.setDown()
		process.Stop(stopTimeout)
		return nil
	}
}

// listen is the address to ask for: the last one, or any free port.
func (e *Engine) listen() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.address == "" || e.portTaken {
		return "127.0.0.1:0"
	}
	return e.address
}

// forgetPort makes the next start take any free port.
func (e *Engine) forgetPort() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.portTaken = true
}

func (e *Engine) setUp(address, readerAddress string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.address, e.readerAddress, e.portTaken = address, readerAddress, false
	e.up = true
	close(e.ready)
	e.metrics.up.Set(1)
}

func (e *Engine) setDown() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.up {
		return
	}
	e.up = false
	e.ready = make(chan struct{})
	e.metrics.up.Set(0)
}

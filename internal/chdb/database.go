package chdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	defaultMaxRunning = 16
	defaultMaxWaiting = 256
	// killEvery is the pause between two tries to stop a statement: one that has
	// not reached the engine's process list yet cannot be found there.
	killEvery = 50 * time.Millisecond
)

// ErrClosed says that the database is closing or closed.
var ErrClosed = errors.New("the database is closed")

// Options configure a Database.
type Options struct {
	// Path is the data folder. It is made if it is missing.
	Path string
	// Library is the path of libchdb.so; empty for the one beside the executable.
	Library string
	// LockWait is how long Open waits for another process to let go of the
	// folder. Zero means that it does not wait.
	LockWait time.Duration
	// MaxRunning is the number of statements that run at once; more wait.
	// Default 16.
	MaxRunning int
	// MaxWaiting is the number of statements that may wait; more are refused.
	// Default 256.
	MaxWaiting int
	// Memory is the most that all statements, merges and caches may take
	// together, in bytes. Zero is half of the machine's; nine tenths of it is
	// the most that ClickHouse takes.
	Memory uint64
	// Reader is what readers from outside may see; nil where there are none.
	Reader *ReaderAccess
	// Log receives what goes wrong without a client to tell. Required.
	Log *slog.Logger
}

func (o *Options) validate() error {
	if o.Path == "" {
		return errors.New("a data folder is needed")
	}
	if o.Log == nil {
		return errors.New("a logger is needed")
	}
	if o.MaxRunning == 0 {
		o.MaxRunning = defaultMaxRunning
	}
	if o.MaxWaiting == 0 {
		o.MaxWaiting = defaultMaxWaiting
	}
	if o.MaxRunning < 1 || o.MaxWaiting < 1 {
		return fmt.Errorf("running %d and waiting %d statements at most: both must be positive", o.MaxRunning, o.MaxWaiting)
	}
	if o.Reader != nil {
		return o.Reader.validate()
	}
	return nil
}

// Database is ClickHouse on one folder, inside this process. There can be one
// per process. Its methods may be called by many goroutines at once.
type Database struct {
	api  *api
	log  *slog.Logger
	args []string
	lock *folderLock
	// reader is nil where there are no readers from outside.
	reader *ReaderAccess

	// anchor keeps the engine up: the library shuts it down with its last
	// connection, and starting it again in the same process is not safe.
	anchor *connection

	turns *turns
	space *space
	next  atomic.Uint64

	// mu guards closed, so that no session begins after Close has begun to wait.
	mu       sync.Mutex
	closed   bool
	sessions sync.WaitGroup
	watching sync.WaitGroup
	stop     context.CancelFunc
	stopped  context.Context //nolint:containedctx // it is the life of the database
}

// Open loads the library, takes the folder's lock and starts the engine on it.
// The error is ErrNoLibrary when the library is missing and ErrLocked when
// another process has the folder.
func Open(ctx context.Context, opts Options) (*Database, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("opening the engine: %w", err)
	}
	lib, err := load(opts.Library)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(opts.Path)
	if err != nil {
		return nil, fmt.Errorf("finding the data folder %s: %w", opts.Path, err)
	}
	lock, err := lockFolder(ctx, path, opts.LockWait)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(path, "clickhouse")
	if err := os.MkdirAll(data, 0o750); err != nil {
		return nil, errors.Join(fmt.Errorf("making the data folder %s: %w", data, err), lock.release())
	}

	settings, err := writeConfig(filepath.Join(path, "config"), opts)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}

	db := &Database{
		api:    lib,
		log:    opts.Log,
		args:   []string{"--path=" + data, "--config-file=" + settings},
		lock:   lock,
		reader: opts.Reader,
		turns:  newTurns(opts.MaxRunning, opts.MaxWaiting),
		space:  newSpace(data),
	}
	if err := db.space.before(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting ClickHouse: %w", err), lock.release())
	}
	db.anchor, err = connect(lib, db.args...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting ClickHouse on %s: %w", data, err), lock.release())
	}
	db.stopped, db.stop = context.WithCancel(context.Background())
	db.watching.Go(func() { db.space.run(db.stopped) })
	return db, nil
}

// Full is closed when the disk of the data folder was out of space. What is
// stored may then be broken: the process must end without Close, so that the
// next one finds the good parts and takes them back.
func (d *Database) Full() <-chan struct{} { return d.space.full }

// Version returns the library's version.
func (d *Database) Version() string { return d.api.version() }

// Close stops what still runs, closes every session and lets go of the folder.
// It gives up when the context ends; the process should then exit, which does
// the same less gently.
func (d *Database) Close(ctx context.Context) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.mu.Unlock()
	d.stop()
	d.watching.Wait()

	done := make(chan error, 1)
	go func() {
		d.sessions.Wait()
		// The last connection takes the engine down with it. What threads the
		// library keeps end with the process.
		d.anchor.close()
		done <- d.lock.release()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("closing ClickHouse: %w", context.Cause(ctx))
	}
}

// session is one client's connection for one request: its settings, current
// database and temporary tables are gone when it ends.
type session struct {
	db    *Database
	conn  *connection
	turns *turns
	// mark is in the setting log_comment of every statement of this session; by
	// it a statement is found to be stopped.
	mark string
}

// setting is one name and value for SET.
type setting struct {
	name  string
	value string
}

// session waits for its turn and opens a connection with these settings. The
// caller must end it.
func (d *Database) session(ctx context.Context, database string, settings []setting) (*session, error) {
	s, err := d.open(ctx, d.turns)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(database, settings); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// open waits for one of the turns and opens a connection as the library makes
// it: with all rights and no limits. The caller must end it.
func (d *Database) open(ctx context.Context, turns *turns) (*session, error) {
	if err := turns.take(ctx, d.stopped.Done()); err != nil {
		return nil, err
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		turns.release()
		return nil, ErrClosed
	}
	d.sessions.Add(1)
	d.mu.Unlock()

	conn, err := connect(d.api, d.args...)
	if err != nil {
		d.sessions.Done()
		turns.release()
		return nil, err
	}
	return &session{db: d, conn: conn, turns: turns, mark: "landfall-request-" + strconv.FormatUint(d.next.Add(1), 10)}, nil
}

// prepare chooses the current database and applies the settings.
func (s *session) prepare(database string, settings []setting) error {
	if database != "" && database != "default" {
		if err := s.use(database); err != nil {
			return err
		}
	}
	var set strings.Builder
	comment := s.mark
	for _, one := range settings {
		if one.name == "log_comment" {
			comment = one.value + " " + s.mark
			continue
		}
		if !isName(one.name) {
			return failure(codeBadArguments, "%q is no setting", one.name)
		}
		set.WriteString(one.name + " = " + quoteText(one.value) + ", ")
	}
	_, err := s.conn.run("SET "+set.String()+"log_comment = "+quoteText(comment), "")
	return err
}

func (s *session) use(database string) error {
	_, err := s.conn.run("USE "+quoteName(database), "")
	return err
}

// end closes the connection and lets the next one in.
func (s *session) end() {
	s.conn.close()
	s.db.sessions.Done()
	s.turns.release()
}

// watch stops whatever the session runs when the context ends or the database
// closes. The returned function ends the watch, waits for it, and must be
// called before the session ends.
func (s *session) watch(ctx context.Context) func() {
	finished := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-finished:
			return
		case <-ctx.Done():
		case <-s.db.stopped.Done():
		}
		s.kill(finished)
	})
	return func() {
		close(finished)
		watcher.Wait()
	}
}

// interrupted is an error when the session's statement was told to stop.
func (s *session) interrupted(ctx context.Context) error {
	if ctx.Err() != nil || s.db.stopped.Err() != nil {
		return failure(codeQueryWasStopped, "the client went away or the engine is stopping")
	}
	return nil
}

// kill asks the engine to stop the session's statement, over a connection of
// its own, until the statement is finished.
func (s *session) kill(finished <-chan struct{}) {
	conn, err := connect(s.db.api, s.db.args...)
	if err != nil {
		s.db.log.Error("cannot stop a statement", "mark", s.mark, "err", err)
		return
	}
	defer conn.close()
	ticker := time.NewTicker(killEvery)
	defer ticker.Stop()
	for {
		_, err := conn.run("KILL QUERY WHERE endsWith(Settings['log_comment'], "+quoteText(s.mark)+") ASYNC", "Null")
		if err != nil {
			s.db.log.Error("cannot stop a statement", "mark", s.mark, "err", err)
		}
		select {
		case <-finished:
			return
		case <-ticker.C:
		}
	}
}

// refusedToStream is in the library's answer to a statement that only its
// other entry point takes: all but SELECT.
var refusedToStream = []byte("Streaming query is not supported")

// execute runs one statement that carries no data and hands its output to emit,
// piece by piece. An error of emit stops the statement and is returned.
func (s *session) execute(sql, format string, params []Param, emit func([]byte) error) error {
	rows, err := s.conn.query(sql, format, params)
	if err != nil {
		if !bytes.Contains([]byte(err.Error()), refusedToStream) {
			return err
		}
		output, err := s.conn.runWithParams(sql, format, params)
		if err != nil {
			return err
		}
		return emit(output)
	}
	defer rows.close()
	for {
		piece, err := rows.next()
		if err != nil {
			return err
		}
		if len(piece) == 0 {
			return nil
		}
		if err := emit(piece); err != nil {
			return err
		}
	}
}

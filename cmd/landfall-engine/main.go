// Command landfall-engine serves a data folder over ClickHouse's HTTP
// interface, by libchdb.
//
// The hub runs it as a child process. It reads the password of its one user,
// `landfall`, as the first line of standard input, prints one line of JSON with
// its address on standard output when it is ready, and ends when standard input
// closes or on SIGTERM or SIGINT. Its log goes to standard error as JSON lines.
//
// With --reader-listen it serves readers from outside on a second address: the
// user `reader`, whose password is the second line of standard input, may read
// the tables --reader-tables of the database --reader-database and nothing else.
//
// Exit codes: 0 ended as told, 1 any other failure, 2 wrong usage, 3 libchdb is
// missing or cannot be loaded, 4 another process holds the data folder, 5 the
// address cannot be listened on, 6 the readers' address cannot be.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/landfall-hub/landfall/internal/chdb"
)

const (
	exitFailure = 1
	exitUsage   = 2
	exitLibrary = 3
	exitLocked  = 4
	exitListen  = 5
	exitReader  = 6
)

const (
	user   = "landfall"
	reader = "reader"
	// readerWriteTimeout ends an answer that a reader does not take. A statement
	// has its own, shorter limit.
	readerReadTimeout  = 30 * time.Second
	readerWriteTimeout = 2 * time.Minute
	// headerTimeout is for the head of a request; a statement itself may run for
	// as long as its client waits.
	headerTimeout = 10 * time.Second
	idleTimeout   = 5 * time.Minute
	// stopTimeout bounds the shutdown; the hub kills what takes longer.
	stopTimeout = 10 * time.Second
	// minMemory is what a hub with a million reconcilers was seen to run with;
	// with half of it, sorting them failed.
	minMemory = 1 << 30
)

// These mark the failures that have exit codes of their own.
var (
	errListen       = errors.New("listening")
	errReaderListen = errors.New("listening for readers")
	errFull         = errors.New("the disk was out of space; the next start checks what is stored")
)

func main() { os.Exit(run()) }

type config struct {
	path     string
	listen   string
	lockWait time.Duration
	debug    bool
	memory   uint64

	readerListen   string
	readerDatabase string
	readerTables   string
}

// access is what readers may see, or nil where there are none.
func (c config) access() *chdb.ReaderAccess {
	if c.readerListen == "" {
		return nil
	}
	return &chdb.ReaderAccess{Database: c.readerDatabase, Tables: strings.Split(c.readerTables, ",")}
}

func run() int {
	cfg, err := parseFlags(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "landfall-engine:", err)
		return exitUsage
	}
	level := slog.LevelInfo
	if cfg.debug {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := serve(ctx, cfg, os.Stdin, os.Stdout, log); err != nil {
		log.Error("the engine ends", "err", err)
		return exitCode(err)
	}
	return 0
}

func exitCode(err error) int {
	switch {
	case errors.Is(err, chdb.ErrNoLibrary):
		return exitLibrary
	case errors.Is(err, chdb.ErrLocked):
		return exitLocked
	case errors.Is(err, errListen):
		return exitListen
	case errors.Is(err, errReaderListen):
		return exitReader
	default:
		return exitFailure
	}
}

func parseFlags(args []string, output io.Writer) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("landfall-engine", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&cfg.path, "path", "", "data `folder`, made if it is missing")
	flags.StringVar(&cfg.listen, "listen", "127.0.0.1:0", "`address` to serve ClickHouse's HTTP interface on; port 0 picks a free one")
	flags.DurationVar(&cfg.lockWait, "lock-wait", 30*time.Second, "how long to wait for another process to leave the folder")
	flags.Uint64Var(&cfg.memory, "memory", 0, "most `bytes` of memory that statements, merges and caches may take together; 0 is half of the machine's")
	flags.StringVar(&cfg.readerListen, "reader-listen", "", "`address` for readers from outside; none by default")
	flags.StringVar(&cfg.readerDatabase, "reader-database", "", "`database` that readers may read")
	flags.StringVar(&cfg.readerTables, "reader-tables", "", "its `tables` and views that they may read, with commas between")
	flags.BoolVar(&cfg.debug, "debug", false, "log every failed statement")
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	if flags.NArg() > 0 {
		return cfg, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if cfg.path == "" {
		return cfg, errors.New("--path is needed")
	}
	if cfg.lockWait < 0 {
		return cfg, errors.New("--lock-wait must not be negative")
	}
	if cfg.memory != 0 && cfg.memory < minMemory {
		return cfg, fmt.Errorf("--memory is in bytes, at least %d", uint64(minMemory))
	}
	if given := cfg.readerListen != ""; given != (cfg.readerDatabase != "") || given != (cfg.readerTables != "") {
		return cfg, errors.New("--reader-listen, --reader-database and --reader-tables go together")
	}
	return cfg, nil
}

// serve runs the engine until the context ends or stdin closes.
func serve(ctx context.Context, cfg config, stdin io.Reader, stdout io.Writer, log *slog.Logger) error {
	lines := bufio.NewReader(stdin)
	password, err := readPassword(lines, "password")
	if err != nil {
		return err
	}
	readerPassword := ""
	if cfg.readerListen != "" {
		if readerPassword, err = readPassword(lines, "readers' password"); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// This goroutine ends with the process: nothing unblocks a read of standard
	// input.
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		cancel()
	}()

	listeners, err := listen(cfg)
	if err != nil {
		return err
	}
	db, err := chdb.Open(ctx, chdb.Options{Path: cfg.path, Library: os.Getenv(chdb.LibraryEnv), LockWait: cfg.lockWait, Memory: cfg.memory, Reader: cfg.access(), Log: log})
	if err != nil {
		return errors.Join(err, listeners.close())
	}
	servers := []server{{listener: listeners.main, handler: chdb.NewHandler(db, chdb.Credentials{User: user, Password: password}, log)}}
	if listeners.reader != nil {
		handler, readerErr := chdb.NewReaderHandler(ctx, db, chdb.Credentials{User: reader, Password: readerPassword}, log)
		err = readerErr
		servers = append(servers, server{
			listener: listeners.reader, handler: handler, readTimeout: readerReadTimeout, writeTimeout: readerWriteTimeout,
		})
	}
	go func() { // ends with the process, or the context
		select {
		case <-db.Full():
			cancel()
		case <-ctx.Done():
		}
	}()
	if err == nil {
		log.Info("the engine is ready", "addresses", listeners.addresses(), "path", cfg.path, "library", db.Version())
		err = serveHTTP(ctx, servers, listeners.addresses(), stdout, log)
	} else {
		err = errors.Join(err, listeners.close())
	}

	select {
	case <-db.Full():
		// Without closing, which would remove what the next start needs.
		return errors.Join(err, errFull)
	default:
	}
	stopping, done := context.WithTimeout(context.Background(), stopTimeout)
	defer done()
	return errors.Join(err, db.Close(stopping))
}

// readPassword takes one line, which must not be empty.
func readPassword(lines *bufio.Reader, what string) (string, error) {
	line, err := lines.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("reading the %s from standard input: %w", what, err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", fmt.Errorf("the %s, a line of standard input, is empty", what)
	}
	return line, nil
}

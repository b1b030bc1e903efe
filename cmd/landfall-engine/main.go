// Command landfall-engine serves a data folder over ClickHouse's HTTP
// interface, by libchdb.
//
// The hub runs it as a child process. It reads the password of its one user,
// `landfall`, as the first line of standard input, prints one line of JSON with
// its address on standard output when it is ready, and ends when standard input
// closes or on SIGTERM or SIGINT. Its log goes to standard error as JSON lines.
//
// Exit codes: 0 ended as told, 1 any other failure, 2 wrong usage, 3 libchdb is
// missing or cannot be loaded, 4 another process holds the data folder, 5 the
// address cannot be listened on.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
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
)

const (
	user = "landfall"
	// headerTimeout is for the head of a request; a statement itself may run for
	// as long as its client waits.
	headerTimeout = 10 * time.Second
	idleTimeout   = 5 * time.Minute
	// stopTimeout bounds the shutdown; the hub kills what takes longer.
	stopTimeout = 10 * time.Second
)

// errListen marks the failure that has an exit code of its own.
var errListen = errors.New("listening")

func main() { os.Exit(run()) }

type config struct {
	path     string
	listen   string
	lockWait time.Duration
	debug    bool
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
	return cfg, nil
}

// serve runs the engine until the context ends or stdin closes.
func serve(ctx context.Context, cfg config, stdin io.Reader, stdout io.Writer, log *slog.Logger) error {
	lines := bufio.NewReader(stdin)
	password, err := lines.ReadString('\n')
	if err != nil {
		return fmt.Errorf("reading the password from standard input: %w", err)
	}
	password = strings.TrimRight(password, "\r\n")
	if password == "" {
		return errors.New("the password, the first line of standard input, is empty")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// This goroutine ends with the process: nothing unblocks a read of standard
	// input.
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		cancel()
	}()

	listener, err := net.Listen("tcp", cfg.listen)
	if err != nil {
		return fmt.Errorf("%w on %s: %w", errListen, cfg.listen, err)
	}
	db, err := chdb.Open(ctx, chdb.Options{Path: cfg.path, LockWait: cfg.lockWait, Log: log})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	log.Info("the engine is ready", "address", listener.Addr().String(), "path", cfg.path, "library", db.Version())
	err = serveHTTP(ctx, listener, chdb.NewHandler(db, chdb.Credentials{User: user, Password: password}, log), stdout, log)

	stopping, done := context.WithTimeout(context.Background(), stopTimeout)
	defer done()
	return errors.Join(err, db.Close(stopping))
}

// serveHTTP says where it listens and serves until the context ends.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler, stdout io.Writer, log *slog.Logger) error {
	// Statements must end with the engine, not only with their clients.
	requests, cancelRequests := context.WithCancel(context.Background())
	defer cancelRequests()
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	if err := json.NewEncoder(stdout).Encode(map[string]string{"address": listener.Addr().String()}); err != nil {
		return errors.Join(fmt.Errorf("telling the address: %w", err), server.Close())
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serving HTTP: %w", err)
	case <-ctx.Done():
	}
	cancelRequests()
	stopping, done := context.WithTimeout(context.Background(), stopTimeout)
	defer done()
	if err := server.Shutdown(stopping); err != nil {
		return errors.Join(fmt.Errorf("ending the last requests: %w", err), server.Close())
	}
	return nil
}

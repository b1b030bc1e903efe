package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// User is the one user that the engine knows.
const User = "landfall"

// What landfall-engine ends with, as its own documentation says.
const (
	exitUsage   = 2
	exitLibrary = 3
	exitLocked  = 4
	exitListen  = 5
	exitReader  = 6
)

var (
	// ErrNoBinary says that landfall-engine is not where it should be.
	ErrNoBinary = errors.New("landfall-engine is not available")
	// ErrNoLibrary says that libchdb is missing or cannot be loaded.
	ErrNoLibrary = errors.New("libchdb is not available")
	// ErrLocked says that another process holds the data folder.
	ErrLocked = errors.New("the data folder is in use by another process")

	// ErrReaderAddress says that the readers' address cannot be listened on.
	ErrReaderAddress = errors.New("the readers' address cannot be listened on")

	errUsage  = errors.New("landfall-engine and this program are of different versions")
	errListen = errors.New("the engine's address is taken")
)

// ProcessOptions say how to run landfall-engine once.
type ProcessOptions struct {
	// Binary is the program. Required.
	Binary string
	// Library is the path of libchdb; empty leaves it to the program, which
	// looks at LANDFALL_CHDB_LIB and then beside itself.
	Library string
	// Path is the data folder. Required.
	Path string
	// Listen is the loopback address to serve on; port 0 picks a free one.
	Listen string
	// Password of User. Required.
	Password string
	// LockWait is how long to wait for another process to leave the folder.
	LockWait time.Duration
	// Reader opens a second address for readers from outside; nil does not.
	Reader *Reader
	// Log receives the program's own log. Required.
	Log *slog.Logger
}

// Process is one run of landfall-engine.
type Process struct {
	cmd                    *exec.Cmd
	stdin                  io.Closer
	address, readerAddress string
	// tail is the program's last words, for the error it ends with.
	tail   *lastLine
	exited chan struct{}
	err    error
}

// StartProcess runs landfall-engine and returns when it takes statements. The
// context bounds the start alone; the caller must Stop or Kill the process.
func StartProcess(ctx context.Context, opts ProcessOptions) (*Process, error) {
	args := []string{"--path", opts.Path, "--listen", opts.Listen, "--lock-wait", opts.LockWait.String()}
	passwords := opts.Password + "\n"
	if opts.Reader != nil {
		args = append(args, opts.Reader.args()...)
		passwords += opts.Reader.Password + "\n"
	}
	cmd := exec.Command(opts.Binary, args...) //nolint:noctx // it outlives the start; Stop and Kill end it
	// Columns without a zone, and functions such as toDate, follow the process.
	cmd.Env = append(cmd.Environ(), "TZ=UTC")
	if opts.Library != "" {
		cmd.Env = append(cmd.Env, "LANDFALL_CHDB_LIB="+opts.Library)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", opts.Binary, err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", opts.Binary, err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", opts.Binary, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoBinary, err)
	}
	p := &Process{cmd: cmd, stdin: stdin, tail: &lastLine{}, exited: make(chan struct{})}
	address := make(chan addresses, 1)
	var output sync.WaitGroup
	output.Go(func() { p.relay(stderr, opts.Log) })
	output.Go(func() { p.readAddress(stdout, address, opts.Log) })
	go func() {
		output.Wait()
		p.err = p.explain(cmd.Wait())
		close(p.exited)
	}()

	// A child that is gone already breaks the pipe; its end says why.
	_, writeErr := io.WriteString(stdin, passwords)
	if writeErr != nil && !errors.Is(writeErr, syscall.EPIPE) {
		p.Kill()
		return nil, fmt.Errorf("handing the password to %s: %w", opts.Binary, writeErr)
	}
	select {
	case a := <-address:
		p.address, p.readerAddress = a.Main, a.Reader
		return p, nil
	case <-p.exited:
		return nil, p.err
	case <-ctx.Done():
		p.Stop(stopTimeout)
		return nil, fmt.Errorf("starting %s: %w", opts.Binary, context.Cause(ctx))
	}
}

// Address is the host and port that the process serves on.
func (p *Process) Address() string { return p.address }

// ReaderAddress is where readers from outside are served; empty where they are not.
func (p *Process) ReaderAddress() string { return p.readerAddress }

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process is gone.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err says why the process is gone; it is nil while it runs, and after it ended
// as told.
func (p *Process) Err() error {
	select {
	case <-p.exited:
		return p.err
	default:
		return nil
	}
}

// Stop asks the process to end, waits that long, then kills it.
func (p *Process) Stop(timeout time.Duration) {
	// Either is enough for landfall-engine; errors mean that it is gone.
	_ = p.stdin.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		p.Kill()
	}
}

// Kill ends the process at once, as a crash would, and waits for it.
func (p *Process) Kill() {
	_ = p.cmd.Process.Signal(os.Kill)
	<-p.exited
}

// addresses are what the engine says when it is ready.
type addresses struct {
	Main   string `json:"address"`
	Reader string `json:"reader_address"`
}

// readAddress waits for the line that says where the engine listens. The
// library may print as well; whatever else comes goes to the log.
func (p *Process) readAddress(stdout io.Reader, address chan<- addresses, log *slog.Logger) {
	eachLine(stdout, func(line string) {
		var ready addresses
		if json.Unmarshal([]byte(line), &ready) == nil && ready.Main != "" {
			select {
			case address <- ready:
			default:
			}
			return
		}
		log.Info("engine output", "line", line)
	})
}

// relay passes the program's log on, record by record.
func (p *Process) relay(stderr io.Reader, log *slog.Logger) {
	eachLine(stderr, func(line string) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			p.tail.set(line)
			log.Warn("engine output", "line", line)
			return
		}
		level, message, attrs := readRecord(record)
		if level >= slog.LevelError {
			p.tail.set(fmt.Sprint(record["err"]))
		}
		log.LogAttrs(context.Background(), level, message, attrs...) //nolint:sloglint // the engine's own words
	})
}

// explain turns the way the process ended into an error that callers can
// branch on, with its last words.
func (p *Process) explain(err error) error {
	if err == nil {
		return nil
	}
	words := p.tail.get()
	if words == "" {
		words = err.Error()
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("running landfall-engine: %w", err)
	}
	switch exit.ExitCode() {
	case exitUsage:
		return fmt.Errorf("%w: %s", errUsage, words)
	case exitLibrary:
		return fmt.Errorf("%w: %s", ErrNoLibrary, words)
	case exitLocked:
		return fmt.Errorf("%w: %s", ErrLocked, words)
	case exitListen:
		return fmt.Errorf("%w: %s", errListen, words)
	case exitReader:
		return fmt.Errorf("%w: %s", ErrReaderAddress, words)
	case -1:
		return fmt.Errorf("landfall-engine was ended: %w", err)
	default:
		return fmt.Errorf("landfall-engine failed: %s", words)
	}
}

// maxLine bounds a log line; the rest of a longer one is dropped.
const maxLine = 64 << 10

// eachLine calls do with every line until the reader ends.
func eachLine(r io.Reader, do func(line string)) {
	lines := bufio.NewReaderSize(r, maxLine)
	for {
		line, more, err := lines.ReadLine()
		if text := strings.TrimSpace(string(line)); text != "" {
			do(text)
		}
		for more && err == nil {
			_, more, err = lines.ReadLine()
		}
		if err != nil {
			return
		}
	}
}

// lastLine keeps one line for another goroutine.
type lastLine struct {
	mu   sync.Mutex
	line string
}

func (l *lastLine) set(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = line
}

func (l *lastLine) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line
}

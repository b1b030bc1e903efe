package system

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/internal/polltest"
)

const (
	// patience bounds everything that a test waits for: far longer than it takes
	// on a busy machine.
	patience = 60 * time.Second
	// every is the pause between two looks of a bounded loop.
	every = 20 * time.Millisecond
)

// hub is a landfall-hub that a test may stop, kill and start again on the same
// folder and port.
type hub struct {
	folder string
	// args follow serve, --listen and --data-dir.
	args   []string
	listen string

	url    string
	cmd    *exec.Cmd
	log    *logBook
	exited chan struct{}
	// err is how the last run ended, once exited is closed.
	err error
	// engine is the process id of the last run's engine, or 0.
	engine int
}

// newHub starts a hub of the test's own, with further arguments of serve. It
// ends with the test.
func newHub(t testing.TB, args ...string) *hub {
	t.Helper()
	return newHubOn(t, filepath.Join(t.TempDir(), "data"), args...)
}

func newHubOn(t testing.TB, folder string, args ...string) *hub {
	t.Helper()
	needPrograms(t)
	h := &hub{folder: folder, args: args, listen: "127.0.0.1:0", log: &logBook{}}
	h.dumpOnFailure(t)
	t.Cleanup(func() { h.end(t) })
	h.start(t)
	return h
}

// dumpOnFailure shows what the hub logged during a test that failed.
func (h *hub) dumpOnFailure(t testing.TB) {
	t.Helper()
	from := h.log.length()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the hub's log:\n%s", h.log.since(from))
		}
	})
}

// start runs the hub and waits until it is ready.
func (h *hub) start(t testing.TB) {
	t.Helper()
	h.launch(t)
	h.awaitReady(t)
}

// launch runs the hub without waiting for it.
func (h *hub) launch(t testing.TB) {
	t.Helper()
	args := append([]string{"serve", "--listen", h.listen, "--data-dir", h.folder}, h.args...)
	cmd, ready := h.command(args...), make(chan string, 1)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting the hub: %v", err)
	}
	h.cmd, h.exited, h.engine = cmd, make(chan struct{}), 0
	go func() {
		defer close(h.exited)
		h.log.read(stderr, ready)
		h.err = cmd.Wait()
	}()
	if h.url != "" {
		return // the address is known from the first start
	}
	select {
	case h.url = <-ready:
		h.listen = strings.TrimPrefix(h.url, "http://")
	case <-h.exited:
		t.Fatalf("the hub ended before it was ready: %v\n%s", h.err, h.log.since(0))
	case <-time.After(patience):
		t.Fatalf("the hub was not ready within %s\n%s", patience, h.log.since(0))
	}
}

// command is a run of landfall-hub.
func (h *hub) command(args ...string) *exec.Cmd {
	cmd := exec.Command(programs.hub, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANDFALL_CHDB_LIB=" + programs.library}
	dieWithTest(cmd)
	return cmd
}

// awaitReady polls /readyz.
func (h *hub) awaitReady(t testing.TB) {
	t.Helper()
	polltest.Until(t, "the hub is ready", func() bool { return h.readiness() == http.StatusOK })
	h.engine = engineOf(t, h.cmd.Process.Pid)
}

// readiness is the status of /readyz, or 0 without an answer.
func (h *hub) readiness() int {
	response, err := http.Get(h.url + "/readyz")
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// kill ends the hub as a crash would, and waits for it.
func (h *hub) kill(t testing.TB) {
	t.Helper()
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatalf("killing the hub: %v", err)
	}
	<-h.exited
}

// killEngine ends the engine as a crash would.
func (h *hub) killEngine(t testing.TB) {
	t.Helper()
	pid := engineOf(t, h.cmd.Process.Pid)
	if pid == 0 {
		t.Fatal("the hub has no engine to kill")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("killing the engine: %v", err)
	}
}

// stop asks the hub to end and returns how it did.
func (h *hub) stop(t testing.TB) error {
	t.Helper()
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("stopping the hub: %v", err)
	}
	select {
	case <-h.exited:
		return h.err
	case <-time.After(patience):
		t.Fatalf("the hub did not stop within %s", patience)
		return nil
	}
}

// end stops what a test left running, the engine of a killed hub too.
func (h *hub) end(t testing.TB) {
	t.Helper()
	if h.cmd == nil {
		return
	}
	select {
	case <-h.exited:
	default:
		if err := h.stop(t); err != nil {
			t.Errorf("the hub ended with: %v", err)
		}
	}
	h.awaitEngineGone(t)
}

// awaitEngineGone waits for the engine of the last run to leave its folder.
func (h *hub) awaitEngineGone(t testing.TB) {
	t.Helper()
	if h.engine != 0 {
		polltest.Until(t, "the engine is gone with its hub", func() bool { return !alive(h.engine) })
	}
}

// client speaks to the hub without a token.
func (h *hub) client(t testing.TB) *hubclient.Client {
	t.Helper()
	return h.as(t, "")
}

// as speaks to the hub with a token.
func (h *hub) as(t testing.TB, token string) *hubclient.Client {
	t.Helper()
	c, err := hubclient.New(hubclient.Options{URL: h.url, Token: token, UserAgent: "system-test"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// logBook keeps what a hub logged.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

// read keeps every line until the hub ends, and hands the address on.
func (b *logBook) read(r io.Reader, ready chan<- string) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		b.mu.Lock()
		b.text.WriteString(line)
		b.mu.Unlock()
		if _, rest, found := strings.Cut(line, " msg=ready url="); found {
			select {
			case ready <- strings.Fields(rest)[0]:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

func (b *logBook) length() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Len()
}

// says reports whether the log holds a text, wherever that stands.
func (b *logBook) says(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(b.text.String(), text)
}

// since returns the log from an offset on, its last 4 KB.
func (b *logBook) since(offset int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.text.String()[offset:]
	return text[max(0, len(text)-4_000):]
}

// shared is the hub that most tests use. Nobody makes a token on it.
var shared struct {
	once sync.Once
	hub  *hub
	err  error
	dir  string
}

// sharedHub returns the hub that most tests use.
func sharedHub(t testing.TB) *hub {
	t.Helper()
	needPrograms(t)
	shared.once.Do(func() {
		shared.err = errors.New("the shared hub did not start; the first test that wanted it says why")
		dir, err := os.MkdirTemp("", "landfall-system-hub-") //nolint:usetesting // it outlives the test that comes first
		if err != nil {
			t.Fatal(err)
		}
		shared.dir = dir
		shared.hub = &hub{folder: filepath.Join(dir, "data"), listen: "127.0.0.1:0", log: &logBook{}}
		shared.hub.start(t)
		shared.err = nil
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	shared.hub.dumpOnFailure(t)
	return shared.hub
}

// stopShared ends the shared hub after all tests.
func stopShared() {
	h := shared.hub
	if h != nil && h.cmd != nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = h.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-h.exited:
		case <-ctx.Done():
			fmt.Fprintln(os.Stderr, "the shared hub does not stop; killing it")
			_ = h.cmd.Process.Kill()
			<-h.exited
		}
	}
	if shared.dir != "" {
		if err := os.RemoveAll(shared.dir); err != nil {
			fmt.Fprintln(os.Stderr, "removing the shared hub's folder:", err)
		}
	}
}

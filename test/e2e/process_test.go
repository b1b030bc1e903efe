//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program says what to run and how.
type program struct {
	// name is the process's in messages; its log is name.log.
	name string
	path string
	args []string
	// env is added to a small environment without the machine's settings.
	env []string
}

// process is a running program. A test may stop and start it again.
type process struct {
	program
	log string

	mu  sync.Mutex
	cmd *exec.Cmd
	// exited is closed when cmd has ended; its ProcessState says how.
	exited chan struct{}
}

// start runs a program, its output going to a file of the log folder. It dies
// with the test's process, however that ends.
func start(p program) (*process, error) {
	proc := &process{program: p, log: filepath.Join(logFolder(), p.name+".log")}
	return proc, proc.start()
}

func (p *process) start() error {
	home, err := os.MkdirTemp(scratchFolder(), p.name+"-tmp-")
	if err != nil {
		return err
	}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	fmt.Fprintf(out, "==> %s: %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), p.path, strings.Join(p.args, " "))

	cmd := exec.Command(p.path, p.args...)
	cmd.Env = append(gitEnv(home), "PATH="+os.Getenv("PATH"), "HOME="+home, "TMPDIR="+home)
	cmd.Env = append(cmd.Env, p.env...)
	cmd.Dir = home
	cmd.Stdout, cmd.Stderr = out, out
	// A group of its own keeps an interrupt of the terminal from ending it
	// before what it depends on is stopped in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	exited := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.exited = cmd, exited
	p.mu.Unlock()
	go func() {
		defer close(exited)
		_ = cmd.Wait() // the process's state says the same
	}()
	return nil
}

// pid is the process's id.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// gone tells whether the process has ended, and how.
func (p *process) gone() (bool, error) {
	p.mu.Lock()
	exited := p.exited
	p.mu.Unlock()
	select {
	case <-exited:
		p.mu.Lock()
		defer p.mu.Unlock()
		return true, fmt.Errorf("%s ended by itself, %s; its log is %s", p.name, p.cmd.ProcessState, p.log)
	default:
		return false, nil
	}
}

// grace is how long a process may take to end when asked.
const grace = 10 * time.Second

// stop asks the process to end, and kills it when it does not within grace.
func (p *process) stop() error {
	return p.end(syscall.SIGTERM, grace)
}

// kill ends the process as a crash would.
func (p *process) kill() error {
	return p.end(syscall.SIGKILL, grace)
}

func (p *process) end(signal syscall.Signal, within time.Duration) error {
	p.mu.Lock()
	cmd, exited := p.cmd, p.exited
	p.mu.Unlock()
	if err := cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending %s: %w", p.name, err)
	}
	select {
	case <-exited:
		return nil
	case <-time.After(within):
	}
	_ = cmd.Process.Kill()
	<-exited
	return fmt.Errorf("%s did not end within %s and was killed; its log is %s", p.name, within, p.log)
}

// ports hands out loopback ports that nobody listens on. They lie below those
// that the system gives to outgoing connections, so that a server which is
// stopped finds its port free when it starts again.
var ports struct {
	sync.Mutex
	next int
}

const (
	firstPort = 20_000
	lastPort  = 32_000
)

func freePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	if ports.next == 0 {
		ports.next = firstPort + os.Getpid()%(lastPort-firstPort)
	}
	for range lastPort - firstPort {
		port := ports.next
		if ports.next++; ports.next == lastPort {
			ports.next = firstPort
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no port between %d and %d of 127.0.0.1 is free", firstPort, lastPort)
}

// freeAddresses returns n loopback addresses that nobody listens on.
func freeAddresses(n int) ([]string, error) {
	list := make([]string, n)
	for i := range list {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		list[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	return list, nil
}

const (
	// patience bounds everything that a test waits for: far longer than it takes
	// on a busy machine.
	patience = 120 * time.Second
	// every is the pause between two looks of a bounded loop.
	every = 50 * time.Millisecond
)

// await looks again and again until look returns nil, and returns its last
// error when patience is over. It ends at once when one of the processes that
// it waits for has gone.
func await(what string, look func() error, on ...*process) error {
	over := time.NewTimer(patience)
	defer over.Stop()
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		err := look()
		if err == nil {
			return nil
		}
		for _, p := range on {
			if gone, how := p.gone(); gone {
				return fmt.Errorf("waiting until %s: %w", what, how)
			}
		}
		select {
		case <-over.C:
			return fmt.Errorf("not within %s: %s: %w", patience, what, err)
		case <-again.C:
		}
	}
}

// eventually is await for a test.
func eventually(t testing.TB, what string, look func() error) {
	t.Helper()
	if err := await(what, look); err != nil {
		t.Fatal(err)
	}
}

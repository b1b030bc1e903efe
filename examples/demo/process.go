package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// grace is how long a program may take to end when it is told to.
const grace = 30 * time.Second

// programs are the processes that this one started.
type programs struct {
	bin, logs string
	running   []*program
	// ended gets the program that ended by itself.
	ended chan *program
}

type program struct {
	name string
	cmd  *exec.Cmd
	// done is closed when it has ended.
	done chan struct{}
}

func newPrograms(bin, logs string) (*programs, error) {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	return &programs{bin: bin, logs: logs, ended: make(chan *program, 64)}, os.MkdirAll(logs, 0o700)
}

// start runs a program of bin/ with its output in a log of that name. It ends
// with this one, even if this one is killed. Only the first goroutine may call
// it.
func (p *programs) start(name, binary string, args ...string) (*program, error) {
	log, err := os.Create(p.log(name))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(p.bin, binary), args...) //nolint:noctx // stop ends it in peace
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = apart() // Ctrl-C is for us; we stop it
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s (run `make build` first): %w", binary, err)
	}
	one := &program{name: name, cmd: cmd, done: make(chan struct{})}
	p.running = append(p.running, one)
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(one.done)
		p.ended <- one
	}()
	return one, nil
}

func (p *programs) log(name string) string { return filepath.Join(p.logs, name+".log") }

// lastLine is the last thing that a program said.
func (p *programs) lastLine(name string) string {
	text, err := os.ReadFile(p.log(name))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// wait blocks until ctx ends, or one of the programs by itself.
func (p *programs) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case one := <-p.ended:
		return p.endOf(one)
	}
}

// endOf says of a program that ended by itself what it said last.
func (p *programs) endOf(one *program) error {
	return fmt.Errorf("%s ended: %s", one.name, p.lastLine(one.name))
}

// stop ends the programs, hosts before the hub, and waits for them.
func (p *programs) stop() {
	for _, one := range p.running[min(1, len(p.running)):] {
		one.tell(syscall.SIGTERM)
	}
	for _, one := range p.running[min(1, len(p.running)):] {
		one.end()
	}
	if len(p.running) > 0 {
		p.running[0].tell(syscall.SIGTERM)
		p.running[0].end()
	}
}

func (o *program) tell(s syscall.Signal) {
	if err := o.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		sayf("ending %s: %v", o.name, err)
	}
}

// end waits for a program that was told to end, as long as is decent.
func (o *program) end() {
	select {
	case <-o.done:
	case <-time.After(grace):
		sayf("%s does not end; killing it", o.name)
		o.tell(syscall.SIGKILL)
		<-o.done
	}
}

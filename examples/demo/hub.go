package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// hub is the landfall-hub that this program started.
type hub struct {
	cmd *exec.Cmd
	url string
	// exited is closed when it has ended.
	exited chan struct{}
}

var ready = regexp.MustCompile(`msg=ready url=(\S+)`)

// startHub starts the program and waits until it is ready.
func startHub(ctx context.Context, program, listen, dir string) (*hub, error) {
	cmd := exec.Command(program, "serve", "--listen", listen, "--data-dir", dir) //nolint:noctx // stop ends it in peace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}                        // Ctrl-C is for us; we stop it
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s (run `make build` first): %w", program, err)
	}
	h := &hub{cmd: cmd, exited: make(chan struct{})}
	url := make(chan string, 1)
	var last string
	go func() {
		defer close(h.exited)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			if m := ready.FindStringSubmatch(lines.Text()); m != nil {
				url <- m[1]
				break
			}
			last = lines.Text()
		}
		_, _ = io.Copy(io.Discard, stderr) // its log is not shown
		_ = cmd.Wait()                     // how it ended does not matter
	}()
	select {
	case h.url = <-url:
		return h, nil
	case <-h.exited:
		return nil, errors.New(strings.TrimPrefix(last, "landfall-hub: "))
	case <-ctx.Done():
		h.stop()
		return nil, ctx.Err()
	}
}

// stop ends the hub and waits for it.
func (h *hub) stop() {
	_ = h.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
	select {
	case <-h.exited:
	case <-time.After(time.Minute):
		_ = h.cmd.Process.Kill() // it may be gone already
		<-h.exited
	}
}

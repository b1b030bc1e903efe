package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// command is one run of an apply command.
type command struct {
	argv    []string
	dir     string
	env     []string
	timeout time.Duration
	// grace is how long what is told to end may take before it is made to.
	grace time.Duration
	// settle is how long processes may outlive the command that left them.
	settle time.Duration
	output *output
}

// result is what became of it. The zero value is success.
type result struct{ reason, message string }

func (c *command) failed(reason, format string, args ...any) result {
	message := fmt.Sprintf(format, args...)
	if last := c.output.last(schema.MaxMessage - len(message) - 1); last != "" {
		message += "\n" + last
	}
	return result{reason, message}
}

var errTimeout = errors.New("timeout")

// run runs the command in a process group of its own, which is gone when run
// returns. It is ended early with ctx.
func (c *command) run(ctx context.Context) result {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return signalGroup(cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = c.grace
	// A pipe of our own: exec's would keep Wait until the last grandchild that
	// has it open is gone.
	from, to, err := os.Pipe()
	if err != nil {
		return c.failed(reasonNotStarted, "making a pipe for the output: %v", err)
	}
	defer from.Close()
	cmd.Stdout, cmd.Stderr = to, to
	err = cmd.Start()
	_ = to.Close()
	if err != nil {
		return c.failed(reasonNotStarted, "starting the apply command: %v", err)
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(c.output, from)
	}()
	err = cmd.Wait()
	early := context.Cause(ctx) // and not what ends while the rest is tidied up
	left := c.endGroup(early != nil, cmd.Process.Pid)
	// Who left the group may have the pipe open still.
	_ = from.SetReadDeadline(time.Now().Add(c.settle))
	<-copied
	return c.judge(early, cmd, err, left)
}

// judge words how it ended.
func (c *command) judge(early error, cmd *exec.Cmd, err error, left bool) result {
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case errors.Is(early, errTimeout):
		return c.failed(reasonTimeout, "the apply command did not end within %s and was ended (apply.timeout)", schema.Duration(c.timeout))
	case early != nil:
		return c.failed(reasonInterrupted, "the agent ended")
	case status.Signaled():
		return c.failed(reasonFailed, "the apply command was ended by a signal: %s", status.Signal())
	case err != nil:
		return c.failed(reasonFailed, "the apply command failed: %v", err)
	case left:
		return c.failed(reasonLeft, "the apply command left processes running, which were ended; start what is to stay with a service manager")
	}
	return result{}
}

// endGroup ends what a command left of its process group, and reports whether
// there was anything that did not go by itself. now gives it no time for that.
func (c *command) endGroup(now bool, group int) (left bool) {
	if !now && gone(group, c.settle) {
		return false
	}
	if signalGroup(group, syscall.SIGTERM) != nil {
		return false
	}
	if !gone(group, c.grace) {
		_ = signalGroup(group, syscall.SIGKILL)
	}
	return true
}

// gone waits until a process group has no members, for at most so long.
func gone(group int, most time.Duration) bool {
	const look = 20 * time.Millisecond
	for end := time.Now().Add(most); ; time.Sleep(look) {
		if !alive(group) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

func signalGroup(group int, s syscall.Signal) error {
	if err := syscall.Kill(-group, s); err != nil {
		return os.ErrProcessDone // for exec: there is nobody to tell
	}
	return nil
}

package main

import (
	"fmt"
	"syscall"
)

// apart gives a program a group of its own and ties it to this one: the kernel
// kills it when the thread that started it is gone.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// endWithParent asks the kernel for a signal when the parent is gone.
func endWithParent() error {
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0)
	if errno != 0 {
		return fmt.Errorf("asking for a signal when the parent ends: %w", errno)
	}
	return nil
}

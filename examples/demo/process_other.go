//go:build !linux

package main

import "syscall"

// apart gives a program a group of its own.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// endWithParent is Linux's alone.
func endWithParent() error { return nil }

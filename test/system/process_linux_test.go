package system

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// dieWithTest makes a program end with the test's process, however that ends.
func dieWithTest(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// engineOf returns the process id of the hub's engine, or 0.
func engineOf(t testing.TB, hub int) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // gone already
		}
		// pid (name) state parent …
		_, rest, found := strings.Cut(string(text), "(landfall-engine) ")
		fields := strings.Fields(rest)
		if !found || len(fields) < 2 || fields[0] == "Z" || fields[1] != strconv.Itoa(hub) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	return 0
}

// alive tells whether a process runs, zombies aside.
func alive(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z")
}

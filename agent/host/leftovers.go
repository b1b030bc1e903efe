package host

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// runVariable marks the processes of an apply.
const runVariable = reserved + "RUN"

// endLeftovers kills what an apply left when the agent itself was killed: the
// processes that carry its mark. The apply is run again, and two at once would
// be worse than one cut off. Where there is no /proc, nothing is found.
func endLeftovers(run string) (ended int) {
	if run == "" {
		return 0
	}
	mark := []byte("\x00" + runVariable + "=" + run + "\x00")
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return 0
	}
	for _, file := range all {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), mark) {
			continue // another user's, or gone
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && pid != os.Getpid() && syscall.Kill(pid, syscall.SIGKILL) == nil {
			ended++
		}
	}
	return ended
}

// alive reports whether a process group has a member that runs. One that ended
// and was never fetched by its parent, as in a container whose first process
// does not care, does not count.
func alive(group int) bool {
	if signalGroup(group, 0) != nil {
		return false
	}
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(all) == 0 {
		return true
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// pid (name) state parent group …, and the name may hold anything.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) > 2 && string(fields[2]) == strconv.Itoa(group) && string(fields[0]) != "Z" && string(fields[0]) != "X" {
			return true
		}
	}
	return false
}

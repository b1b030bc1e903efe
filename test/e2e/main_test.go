//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// atOnce is how many tests run at once at least: most of them wait for a
// controller.
const atOnce = 6

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); runtime.GOMAXPROCS(0) < atOnce && f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := f.Value.Set(strconv.Itoa(atOnce)); err != nil {
			fmt.Fprintln(os.Stderr, "running tests at once:", err)
		}
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// An interrupt stops what runs in order; anything harder takes the processes
	// along by their death signal.
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		fmt.Fprintln(os.Stderr, "interrupted: stopping what runs")
		os.Exit(finish(1))
	}()
	return finish(m.Run())
}

var finished sync.Once

// finish stops what all tests shared, removes what it wrote, and says where the
// logs are.
func finish(code int) int {
	finished.Do(func() {
		if err := stopShared(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping:", err)
			code = max(code, 1)
		}
		if folders.scratch != "" {
			if err := os.RemoveAll(folders.scratch); err != nil {
				fmt.Fprintln(os.Stderr, "removing what the programs wrote:", err)
			}
		}
		if folders.logs != "" {
			fmt.Fprintln(os.Stderr, "every program's log is in", folders.logs)
		}
	})
	return code
}

// folders are where programs write: logs stay for people to read, the rest is
// removed at the end.
var folders struct {
	once          sync.Once
	err           error
	logs, scratch string
}

func makeFolders() {
	folders.once.Do(func() {
		root, err := filepath.Abs(filepath.Join("..", ".."))
		if err != nil {
			folders.err = err
			return
		}
		logs := os.Getenv("LANDFALL_E2E_LOGS")
		if logs == "" {
			logs = filepath.Join(root, "bin", "e2e-logs")
		}
		// What an earlier run left would mislead.
		old, err := filepath.Glob(filepath.Join(logs, "*.log"))
		if err != nil {
			folders.err = err
			return
		}
		for _, path := range old {
			if err := os.Remove(path); err != nil {
				folders.err = err
				return
			}
		}
		if folders.err = os.MkdirAll(logs, 0o700); folders.err != nil {
			return
		}
		folders.logs = logs
		removeLeftOver()
		folders.scratch, folders.err = os.MkdirTemp("", fmt.Sprintf(scratchPattern, os.Getpid()))
	})
	if folders.err != nil {
		panic(fmt.Sprintf("no folder for the programs' files: %v", folders.err))
	}
}

// scratchPattern names a run's folder after its process.
const scratchPattern = "landfall-e2e-%d-*"

// removeLeftOver removes what runs that were killed could not remove.
func removeLeftOver() {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "landfall-e2e-*"))
	if err != nil {
		return // the pattern is a constant
	}
	for _, folder := range left {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(folder), "landfall-e2e-%d-", &pid); err != nil {
			continue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			continue // it runs
		}
		if err := os.RemoveAll(folder); err != nil {
			fmt.Fprintln(os.Stderr, "removing what an earlier run left:", err)
		}
	}
}

func logFolder() string {
	makeFolders()
	return folders.logs
}

func scratchFolder() string {
	makeFolders()
	return folders.scratch
}

// newFolder makes an empty folder that is removed at the end.
func newFolder(name string) (string, error) {
	return os.MkdirTemp(scratchFolder(), name+"-")
}

// built is the path of a program that make built.
func built(elements ...string) (string, error) {
	path, err := filepath.Abs(filepath.Join(append([]string{"..", "..", "bin"}, elements...)...))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w; `make build e2e-programs` builds it", err)
	}
	return path, nil
}

// installed is the path of a program of the system.
func installed(name, remedy string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w; %s", err, remedy)
	}
	return path, nil
}

// full marks a test that `make e2e-smoke` leaves out.
func full(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("not one of the smoke tests")
	}
}

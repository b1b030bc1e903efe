package system

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
)

// programs are the binaries under test, built once per run.
var programs struct {
	once   sync.Once
	err    error
	folder string
	// hub, engine and cli are the programs; library is libchdb.
	hub, engine, cli, library string
}

// atOnce is how many tests run at once at least: most of them wait.
const atOnce = 6

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); runtime.GOMAXPROCS(0) < atOnce && f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := f.Value.Set(strconv.Itoa(atOnce)); err != nil {
			fmt.Fprintln(os.Stderr, "running tests at once:", err)
		}
	}
	code := m.Run()
	stopShared()
	if programs.folder != "" {
		if err := os.RemoveAll(programs.folder); err != nil {
			fmt.Fprintln(os.Stderr, "removing the programs:", err)
		}
	}
	os.Exit(code)
}

// needPrograms builds the programs. Where libchdb is missing the test is
// skipped, or fails in CI.
func needPrograms(t testing.TB) {
	t.Helper()
	engine, library := enginetest.Files(t)
	programs.once.Do(func() { programs.err = buildPrograms(engine, library) })
	if programs.err != nil {
		t.Fatalf("the programs cannot be built: %v", programs.err)
	}
}

func buildPrograms(engine, library string) error {
	folder, err := os.MkdirTemp("", "landfall-system-")
	if err != nil {
		return err
	}
	p := &programs
	p.folder, p.library = folder, library
	p.hub, p.cli, p.engine = filepath.Join(folder, "landfall-hub"), filepath.Join(folder, "landfall"), filepath.Join(folder, "landfall-engine")
	// The hub looks for the engine beside itself.
	if err := os.Symlink(engine, p.engine); err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags", "-X main.version=system-test", "-o", folder+"/", "./cmd/landfall-hub", "./cmd/landfall")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the hub and the command line: %w\n%s", err, output)
	}
	return nil
}

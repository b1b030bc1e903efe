package enginetest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/engine"
	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/internal/polltest"
)

// parentEnv makes this test binary play a hub that starts an engine on a folder.
const parentEnv = "LANDFALL_ENGINETEST_PARENT"

// startOn starts an engine on a folder, as hub/engine does.
func startOn(ctx context.Context, t testing.TB, folder string, change func(*engine.ProcessOptions)) (*engine.Process, error) {
	t.Helper()
	binary, library := enginetest.Files(t)
	opts := engine.ProcessOptions{
		Binary: binary, Library: library, Path: folder, Listen: "127.0.0.1:0", Password: "secret",
		Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&opts)
	}
	process, err := engine.StartProcess(ctx, opts)
	if err == nil {
		t.Cleanup(process.Kill)
	}
	return process, err
}

func TestLibraryIsMissing(t *testing.T) {
	_, err := startOn(t.Context(), t, t.TempDir(), func(o *engine.ProcessOptions) {
		o.Library = filepath.Join(t.TempDir(), "libchdb.so")
	})
	if !errors.Is(err, engine.ErrNoLibrary) || !strings.Contains(err.Error(), "LANDFALL_CHDB_LIB") {
		t.Errorf("want ErrNoLibrary that names LANDFALL_CHDB_LIB, got %v", err)
	}
}

func TestLibraryIsRubbish(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libchdb.so")
	if err := os.WriteFile(path, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := startOn(t.Context(), t, t.TempDir(), func(o *engine.ProcessOptions) { o.Library = path })
	if !errors.Is(err, engine.ErrNoLibrary) || !strings.Contains(err.Error(), "make build") {
		t.Errorf("want ErrNoLibrary that says what to run, got %v", err)
	}
}

func TestBinaryIsMissing(t *testing.T) {
	_, err := startOn(t.Context(), t, t.TempDir(), func(o *engine.ProcessOptions) {
		o.Binary = filepath.Join(t.TempDir(), "landfall-engine")
	})
	if !errors.Is(err, engine.ErrNoBinary) {
		t.Errorf("want ErrNoBinary, got %v", err)
	}
}

func TestFolderIsNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := startOn(t.Context(), t, filepath.Join(file, "data"), nil)
	if err == nil || !strings.Contains(err.Error(), "not a directory") || !strings.Contains(err.Error(), file) {
		t.Errorf("want an error that names %s, got %v", file, err)
	}
}

func TestFolderIsLocked(t *testing.T) {
	folder := t.TempDir()
	holder, err := startOn(t.Context(), t, folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = startOn(t.Context(), t, folder, nil)
	if !errors.Is(err, engine.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(holder.PID())) {
		t.Errorf("want ErrLocked that names process %d, got %v", holder.PID(), err)
	}
}

func TestStartWaitsForAKilledEngine(t *testing.T) {
	folder := t.TempDir()
	holder, err := startOn(t.Context(), t, folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(holder.Kill)
	if _, err := startOn(t.Context(), t, folder, func(o *engine.ProcessOptions) { o.LockWait = 30 * time.Second }); err != nil {
		t.Errorf("the second engine did not get the folder: %v", err)
	}
}

func TestStopIsCleanAndBounded(t *testing.T) {
	process, err := startOn(t.Context(), t, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn := open(t, "http://landfall:secret@"+process.Address()+"/default")
	sql := "SELECT count() FROM numbers(1000000000000000)"
	done := make(chan error, 1)
	go func() { done <- drain(context.Background(), conn, sql) }()
	polltest.Until(t, "the statement runs", func() bool { return running(t, conn, sql) == 1 })
	process.Stop(30 * time.Second)
	if err := process.Err(); err != nil {
		t.Errorf("the engine ended with %v", err)
	}
	if err := <-done; err == nil {
		t.Error("the statement that was running ended without an error")
	}
}

// TestParentIsKilled plays the hub in a process of its own and kills it.
func TestParentIsKilled(t *testing.T) {
	folder := t.TempDir()
	enginetest.Files(t)
	parent := exec.Command(os.Args[0], "-test.run=^TestPlayParent$", "-test.v")
	parent.Env = append(parent.Environ(), parentEnv+"="+folder)
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	started := false
	lines := bufio.NewScanner(output)
	for !started && lines.Scan() {
		started = lines.Text() == "started"
	}
	if _, err := startOn(t.Context(), t, folder, nil); !errors.Is(err, engine.ErrLocked) || !started {
		t.Errorf("the parent's engine does not hold the folder: %v, started %t", err, started)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // "killed", as it was told
	if _, err := startOn(t.Context(), t, folder, func(o *engine.ProcessOptions) { o.LockWait = 30 * time.Second }); err != nil {
		t.Errorf("the engine outlives its parent: %v", err)
	}
}

func TestPlayParent(t *testing.T) {
	folder := os.Getenv(parentEnv)
	if folder == "" {
		t.Skip("this is the other process of TestParentIsKilled")
	}
	if _, err := startOn(t.Context(), t, folder, nil); err != nil {
		t.Fatal(err)
	}
	fmt.Println("\nstarted")
	select {}
}

// TestKillDuringInserts kills the engine while four writers insert. Each writer
// sends a batch again until it is acknowledged, as the hub does: under keys that
// make a second time harmless. In the end every batch must be there, seen once.
// With deduplication tokens instead of keys a batch is lost now and then: see
// ADR 4.
func TestKillDuringInserts(t *testing.T) {
	const writers, batches, rows, kills = 4, 60, 1000, 4
	e := enginetest.StartEngine(t)
	conn := open(t, e.URL())
	run(t, conn, `CREATE TABLE t (writer UInt32, batch UInt32, n UInt32) ENGINE = ReplacingMergeTree ORDER BY (writer, batch, n)`)

	gate := newGate()
	var group sync.WaitGroup
	failures := make(chan error, writers)
	// progress carries one value per acknowledged batch; the test kills the
	// engine after every so many of them.
	progress := make(chan struct{}, writers*batches)
	for writer := range writers {
		group.Go(func() {
			for batch := range batches {
				if err := sendUntilAcknowledged(t.Context(), conn, gate, writer, batch, rows); err != nil {
					failures <- err
					return
				}
				progress <- struct{}{}
			}
		})
	}
	for range kills {
		for range writers * batches / (kills + 1) {
			select {
			case <-progress:
			case err := <-failures:
				t.Fatal(err)
			}
		}
		gate.close()
		e.Kill()
		e.Restart(t)
		gate.open()
	}
	group.Wait()
	select {
	case err := <-failures:
		t.Fatal(err)
	default:
	}

	var total, distinct, wrong uint64
	scan(t, conn, "SELECT count(), uniqExact(writer, batch, n) FROM t FINAL", &total, &distinct)
	scan(t, conn, fmt.Sprintf("SELECT count() FROM (SELECT writer, batch FROM t FINAL GROUP BY ALL HAVING count() != %d)", rows), &wrong)
	if want := uint64(writers * batches * rows); total != want || distinct != want || wrong != 0 {
		t.Errorf("%d rows, %d distinct, %d incomplete batches; want %d rows, each once", total, distinct, wrong, want)
	}
	t.Logf("%d batches of %d rows over %d kills, %d sent again", writers*batches, rows, kills, gate.retries())
}

func sendUntilAcknowledged(ctx context.Context, conn driver.Conn, gate *gate, writer, batch, rows int) error {
	for ctx.Err() == nil {
		err := sendBatch(ctx, conn, writer, batch, rows)
		if err == nil {
			return nil
		}
		if codeOf(err) != 0 {
			return fmt.Errorf("writer %d, batch %d: %w", writer, batch, err)
		}
		gate.wait()
	}
	return ctx.Err()
}

func sendBatch(ctx context.Context, conn driver.Conn, writer, batch, rows int) error {
	b, err := conn.PrepareBatch(ctx, "INSERT INTO t (writer, batch, n)")
	if err != nil {
		return err
	}
	for n := range rows {
		if err := b.Append(uint32(writer), uint32(batch), uint32(n)); err != nil {
			return err
		}
	}
	return b.Send()
}

// gate holds writers back while the engine is down.
type gate struct {
	mu     sync.Mutex
	opened chan struct{}
	waits  int
}

func newGate() *gate {
	g := &gate{opened: make(chan struct{})}
	close(g.opened)
	return g
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.opened)
}

func (g *gate) wait() {
	g.mu.Lock()
	opened := g.opened
	g.waits++
	g.mu.Unlock()
	<-opened
}

func (g *gate) retries() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waits
}

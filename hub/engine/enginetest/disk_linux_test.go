package enginetest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// smallDisk mounts a file system of this many megabytes for the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a small disk cannot be mounted here (root is needed): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmounting: %v", err)
		}
	})
	return folder
}

func TestDiskIsFullAtTheStart(t *testing.T) {
	folder := smallDisk(t, "1m")
	if err := os.WriteFile(filepath.Join(folder, "full"), bytes.Repeat([]byte("x"), 1<<20-4096), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := startOn(t.Context(), t, filepath.Join(folder, "data"), nil)
	if err == nil || !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(err.Error(), folder) {
		t.Errorf("want an error that names the folder and says why, got %v", err)
	}
}

func TestDiskFillsUp(t *testing.T) {
	folder := smallDisk(t, "64m")
	process, err := startOn(t.Context(), t, filepath.Join(folder, "data"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Stop(20 * time.Second) })
	conn := open(t, "http://landfall:secret@"+process.Address()+"/default")
	run(t, conn, "CREATE TABLE t (n UInt64, noise String CODEC(NONE)) ENGINE = MergeTree ORDER BY n")

	stored := uint64(0)
	var failure error
	for range 100 {
		failure = conn.Exec(t.Context(), "INSERT INTO t SELECT number, randomString(100) FROM numbers(50000)")
		if failure != nil {
			break
		}
		stored += 50000
	}
	if codeOf(failure) == 0 || !strings.Contains(failure.Error(), "space") {
		t.Errorf("want an exception that speaks of space, got %v", failure)
	}
	if got := count(t, conn, "t"); got != stored {
		t.Errorf("%d rows, %d were acknowledged", got, stored)
	}
	t.Logf("after %d rows: %v", stored, failure)
}

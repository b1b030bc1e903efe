package enginetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// errMissing says that what the tests need has not been fetched.
var errMissing = errors.New("libchdb is not here: run `make build` (it calls scripts/fetch-chdb), or set LANDFALL_CHDB_LIB")

// missing ends a test that cannot have an engine: it is skipped where only
// libchdb is missing, and fails in CI or for any other reason.
func missing(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errMissing) && os.Getenv("CI") != "true" {
		t.Skipf("no embedded ClickHouse: %v", err)
	}
	t.Fatalf("no embedded ClickHouse: %v", err)
}

// Files returns the paths of landfall-engine, built from this checkout, and of
// libchdb. Where libchdb is missing the test is skipped, or fails in CI.
func Files(t testing.TB) (binary, library string) {
	t.Helper()
	binary, library, err := find()
	if err != nil {
		missing(t, err)
	}
	return binary, library
}

// find looks and builds once per test process.
func find() (binary, library string, err error) {
	files.once.Do(func() {
		root, err := findRoot()
		if err != nil {
			files.err = err
			return
		}
		if files.library, files.err = findLibrary(root); files.err != nil {
			return
		}
		files.binary, files.err = build(root)
	})
	return files.binary, files.library, files.err
}

var files struct {
	once            sync.Once
	binary, library string
	err             error
}

func build(root string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a place for landfall-engine: %w", err)
	}
	// One place per checkout: the build is skipped when nothing has changed.
	sum := sha256.Sum256([]byte(root))
	binary := filepath.Join(cache, "landfall", "enginetest", fmt.Sprintf("%x", sum[:8]), "landfall-engine")
	cmd := exec.Command("go", "build", "-trimpath", "-o", binary, "./cmd/landfall-engine")
	cmd.Dir = root
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building landfall-engine: %w\n%s", err, output)
	}
	return binary, nil
}

// findRoot returns the folder of the module that the test belongs to.
func findRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "cmd", "landfall-engine")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("finding the checkout: no cmd/landfall-engine above the test's folder")
		}
		folder = parent
	}
}

// findLibrary looks where scripts/fetch-chdb puts libchdb.
func findLibrary(root string) (string, error) {
	if path := os.Getenv("LANDFALL_CHDB_LIB"); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%w: %w", errMissing, err)
		}
		return path, nil
	}
	candidates := []string{filepath.Join(root, "bin", "libchdb.so")}
	cache := os.Getenv("LANDFALL_CACHE")
	if cache == "" {
		if folder, err := os.UserCacheDir(); err == nil {
			cache = filepath.Join(folder, "landfall")
		}
	}
	cached, err := filepath.Glob(filepath.Join(cache, "chdb", "*", "libchdb.so"))
	if err != nil {
		return "", fmt.Errorf("looking for libchdb in %s: %w", cache, err)
	}
	for _, path := range append(candidates, cached...) {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", errMissing
}

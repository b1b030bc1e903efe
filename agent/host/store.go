package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Below the state directory.
const (
	mirrorsDir = "mirrors" // one per repository and user
	foldersDir = "folders" // one per folder: its state, the output of its last applies
	workDir    = "work"    // one per folder, what is in Git
	lockFile   = "lock"
	stateFile  = "state.json"
	logFile    = "apply.log"
)

// store is the state directory. It is locked while it is open.
type store struct {
	dir  string
	lock *os.File
}

func openStore(dir string) (*store, error) {
	for _, sub := range []string{mirrorsDir, foldersDir, workDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("making the state directory (host.state_dir): %w", err)
		}
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the state directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s is another agent's: give each its own host.state_dir", dir)
		}
		return nil, fmt.Errorf("locking the state directory %s: %w", dir, err)
	}
	return &store{dir: dir, lock: lock}, nil
}

func (s *store) close() error { return s.lock.Close() }

func (s *store) folder(name string) string { return filepath.Join(s.dir, foldersDir, name) }

func (s *store) work(name string) string { return filepath.Join(s.dir, workDir, name) }

func (s *store) log(name string) string { return filepath.Join(s.folder(name), logFile) }

// errDamaged: what is on disk is no state.
var errDamaged = errors.New("it is damaged")

// load reads what is known of a folder: nothing, where there is nothing. The
// error is errDamaged where it cannot be understood.
func (s *store) load(name string) (state, error) {
	var st state
	text, err := os.ReadFile(filepath.Join(s.folder(name), stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return st, fmt.Errorf("reading what is applied of %s: %w", name, err)
	}
	if err := json.Unmarshal(text, &st); err != nil {
		return state{}, fmt.Errorf("reading what is applied of %s: %w: %w", name, errDamaged, err)
	}
	return st, nil
}

// save writes it: after a crash there is the old state or the new one.
func (s *store) save(name string, st *state) error {
	text, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return fmt.Errorf("writing what is applied of %s: %w", name, err)
	}
	dir := s.folder(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("writing what is applied of %s: %w", name, err)
	}
	to := filepath.Join(dir, stateFile)
	file, err := os.OpenFile(to+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("writing what is applied of %s: %w", name, err)
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(to+".new", to)
	}
	if err != nil {
		return fmt.Errorf("writing what is applied of %s: %w", name, err)
	}
	return nil
}

// names returns the folders that something is known of, sorted.
func (s *store) names() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, foldersDir))
	if err != nil {
		return nil, fmt.Errorf("reading the state directory: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// forget removes what is known of a folder, and its work directory.
func (s *store) forget(name string) error {
	return errors.Join(os.RemoveAll(s.work(name)), os.RemoveAll(s.folder(name)))
}

// keepMirrors removes the mirrors that are not among those.
func (s *store) keepMirrors(used map[string]bool) error {
	all, err := filepath.Glob(filepath.Join(s.dir, mirrorsDir, "*"))
	for _, dir := range all {
		if !used[dir] {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

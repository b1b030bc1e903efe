package chdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrLocked says that another process has the data folder open.
var ErrLocked = errors.New("the data folder is in use by another process")

const (
	lockName = "landfall-engine.lock"
	// lockEvery is the pause between two tries for a lock that is held.
	lockEvery = 100 * time.Millisecond
	// probeSize is what is written to see that the folder takes data: more than
	// file systems keep aside in their own metadata.
	probeSize = 256 << 10
)

// folderLock is an exclusive hold on a data folder. The kernel drops it when
// the process dies, however it dies.
type folderLock struct {
	file *os.File
}

// lockFolder makes the folder if needed, takes its lock and checks that it can
// be written to. It waits as long as it is told for another holder to go away.
func lockFolder(ctx context.Context, folder string, wait time.Duration) (*folderLock, error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, fmt.Errorf("making the data folder %s: %w", folder, err)
	}
	path := filepath.Join(folder, lockName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("the data folder %s cannot be written to: %w", folder, err)
	}
	if err := waitForLock(ctx, file, wait); err != nil {
		holder, _ := os.ReadFile(path)
		if errors.Is(err, ErrLocked) {
			err = fmt.Errorf("%w: %s, held by process %s, waited %s",
				ErrLocked, folder, strings.TrimSpace(string(holder)), wait)
		}
		return nil, errors.Join(err, file.Close())
	}
	lock := &folderLock{file: file}
	if err := lock.sign(); err != nil {
		return nil, errors.Join(fmt.Errorf("the data folder %s cannot be written to: %w", folder, err), lock.release())
	}
	if err := probe(folder); err != nil {
		return nil, errors.Join(fmt.Errorf("the data folder %s cannot be written to: %w", folder, err), lock.release())
	}
	return lock, nil
}

func waitForLock(ctx context.Context, file *os.File, wait time.Duration) error {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	retry := time.NewTicker(lockEvery)
	defer retry.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("locking %s: %w", file.Name(), err)
		}
		select {
		case <-retry.C:
		case <-deadline.C:
			return ErrLocked
		case <-ctx.Done():
			return fmt.Errorf("waiting for the lock %s: %w", file.Name(), context.Cause(ctx))
		}
	}
}

// sign leaves the process id in the lock file, for whoever has to wait.
func (l *folderLock) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(fmt.Sprintln(os.Getpid())), 0)
	return err
}

func (l *folderLock) release() error { return l.file.Close() }

// probe writes, syncs and removes a file, so that a full disk or a folder of
// another user is an error at the start, in plain words.
func probe(folder string) error {
	file, err := os.CreateTemp(folder, ".probe-*")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, probeSize))
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}

package chdb

import (
	"context"
	"sync"
	"syscall"
	"time"
)

const (
	// minFree is what an INSERT wants to find free, so that what it and the
	// merges after it write finds room.
	minFree = 16 << 20
	// fullBelow is what counts as a full disk.
	fullBelow = 4 << 20
	// spaceEvery is how often the disk is looked at.
	spaceEvery = 100 * time.Millisecond
)

// space watches the free space of the data folder.
//
// On a full disk ClickHouse 26.7 commits parts whose files could not be
// written: all of them are empty, the INSERT is acknowledged, a merge takes the
// place of the good parts that it read. The good parts stay on disk for some
// minutes, and a start finds the empty part broken and takes them back; closing
// the database in peace removes them. So an INSERT that met a full disk is not
// acknowledged, and the process must end at once, without closing.
type space struct {
	folder string
	// free returns the free bytes of a folder's disk.
	free func(folder string) (uint64, error)
	once sync.Once
	// full is closed when the disk was seen full.
	full chan struct{}
}

func newSpace(folder string) *space {
	return &space{folder: folder, free: freeBytes, full: make(chan struct{})}
}

// freeBytes returns what a user that is not root may still write.
func freeBytes(folder string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(folder, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil //nolint:gosec // a size; its type differs between systems
}

// run looks at the disk until ctx ends or the disk is full.
func (s *space) run(ctx context.Context) {
	tick := time.NewTicker(spaceEvery)
	defer tick.Stop()
	for {
		s.look()
		select {
		case <-ctx.Done():
			return
		case <-s.full:
			return
		case <-tick.C:
		}
	}
}

// look returns the free bytes, and notes a full disk. A disk that cannot be
// asked counts as one with room: the statement itself will say what is wrong.
func (s *space) look() uint64 {
	free, err := s.free(s.folder)
	if err != nil {
		return minFree
	}
	if free < fullBelow {
		s.once.Do(func() { close(s.full) })
	}
	return free
}

// before says whether an INSERT may begin.
func (s *space) before() error {
	free := s.look()
	if s.wasFull() || free < minFree {
		return failure(codeNotEnoughSpace, "%d MiB of space are free on the disk of %s, and an INSERT needs %d; make room", free>>20, s.folder, minFree>>20)
	}
	return nil
}

// after says whether an INSERT that was carried out may be acknowledged.
func (s *space) after() error {
	s.look()
	if s.wasFull() {
		return failure(codeNotEnoughSpace, "the disk of %s was out of space while this was stored: it may be there or not; make room and send it again", s.folder)
	}
	return nil
}

func (s *space) wasFull() bool {
	select {
	case <-s.full:
		return true
	default:
		return false
	}
}

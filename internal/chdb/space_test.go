package chdb

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// disk is a disk that a test fills.
type disk struct {
	free atomic.Uint64
	err  error
}

func (d *disk) space() *space {
	s := newSpace("/data")
	s.free = func(string) (uint64, error) { return d.free.Load(), d.err }
	return s
}

func TestSpace(t *testing.T) {
	cases := map[string]struct {
		reason       string
		before, then uint64
		err          error
		refused      bool // before it begins
		doubted      bool // when it is done
	}{
		"Room":     {"There is room.", 1 << 30, 1 << 30, nil, false, false},
		"Little":   {"Too little to begin.", minFree - 1, minFree - 1, nil, true, false},
		"RunsOut":  {"It was out of space in between.", minFree, fullBelow - 1, nil, false, true},
		"Shrinks":  {"Little is left, but it was never out.", minFree, fullBelow, nil, false, false},
		"Full":     {"Full from the start.", 0, 0, nil, true, true},
		"Unasked":  {"A disk that cannot be asked.", 0, 0, errors.New("gone"), false, false},
		"FullOnce": {"It was full, and is not any more.", 0, 1 << 30, nil, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &disk{err: tc.err}
			d.free.Store(tc.before)
			s := d.space()
			err := s.before()
			if (err != nil) != tc.refused || err != nil && !strings.Contains(err.Error(), "NOT_ENOUGH_SPACE") {
				t.Errorf("%s Before: %v", tc.reason, err)
			}
			d.free.Store(tc.then)
			if err := s.after(); (err != nil) != tc.doubted {
				t.Errorf("%s After: %v", tc.reason, err)
			}
		})
	}
}

// A disk that is full for a moment between two INSERTs is seen.
func TestSpaceIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		d.free.Store(1 << 30)
		s := d.space()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.run(ctx)
		synctest.Wait()
		if s.wasFull() {
			t.Error("full at once")
		}
		d.free.Store(0)
		<-s.full
		d.free.Store(1 << 30)
		if err := s.before(); err == nil {
			t.Error("an INSERT begins on what may be broken")
		}
	})
}

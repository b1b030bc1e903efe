package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
	tables "github.com/landfall-hub/landfall/schema/clickhouse"
)

// dial prepares a store that is not migrated.
func dial(t *testing.T, url string, days int) *Store {
	t.Helper()
	s, err := Open(Options{URL: url, HistoryDays: days, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *Store) number(t *testing.T, sql string) (n uint64) {
	t.Helper()
	if err := s.query(t.Context(), "test", sql, scanInto(&n)); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// migrations is how many there are.
func migrations(t *testing.T) uint64 {
	t.Helper()
	all, err := tables.Load(tables.Target{Database: DefaultDatabase, HistoryDays: 400})
	if err != nil {
		t.Fatal(err)
	}
	return uint64(len(all))
}

func TestMigrateTwiceKeepsWhatIsThere(t *testing.T) {
	url := enginetest.Shared(t)
	s := dial(t, url, 0)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	state := fold.NewState()
	if err := s.Write(t.Context(), []fold.Changes{state.Apply("c1", delta(1, reconciler("a", "a", commitA, schema.StatusSuccess)), start)}); err != nil {
		t.Fatal(err)
	}
	again := dial(t, url, 0)
	for range 2 {
		if err := again.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := again.number(t, "SELECT count() FROM {db}.history"); n != 1 {
		t.Errorf("history has %d rows after another migration", n)
	}
	if n := again.number(t, "SELECT count() FROM {db}.schema_migrations"); n != migrations(t) {
		t.Errorf("%d migrations are recorded, there are %d", n, migrations(t))
	}
	if n := again.number(t, "SELECT countIf(released = 0) FROM {db}.schema_locks FINAL"); n != 0 {
		t.Errorf("%d locks are still held", n)
	}
}

// A fresh database and several hubs that start at once.
func TestMigrateAtOnce(t *testing.T) {
	url := enginetest.Shared(t)
	enginetest.Exec(t, url, "DROP DATABASE "+url[strings.LastIndexByte(url, '/')+1:])
	var group sync.WaitGroup
	stores := make([]*Store, 4)
	for i := range stores {
		stores[i] = dial(t, url, 0)
		group.Go(func() {
			if err := stores[i].Migrate(t.Context()); err != nil {
				t.Errorf("hub %d: %v", i, err)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	state := fold.NewState()
	for i, s := range stores {
		if err := s.Write(t.Context(), []fold.Changes{state.Apply("c1", delta(uint64(i)+1, reconciler("a", "a", commitA, schema.StatusSuccess)), start)}); err != nil {
			t.Errorf("hub %d cannot write: %v", i, err)
		}
	}
	if n := stores[0].number(t, "SELECT count() FROM {db}.schema_migrations FINAL"); n != migrations(t) {
		t.Errorf("%d migrations are recorded, there are %d", n, migrations(t))
	}
}

func TestMigrateRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		sql    string
		want   error
	}{
		"Newer":  {"A newer Landfall's database is not touched.", "INSERT INTO schema_migrations SELECT 99, 'future', 1, now64(3)", ErrNewerSchema},
		"Edited": {"A migration that was edited after it was applied is not believed.", "INSERT INTO schema_migrations SELECT 1, 'reports', 1, now64(3) + INTERVAL 1 HOUR", ErrEditedSchema},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url := enginetest.Shared(t)
			s := dial(t, url, 0)
			if err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			enginetest.Exec(t, url, tc.sql)
			if err := dial(t, url, 30).Migrate(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("%s The error is %v", tc.reason, err)
			}
			if ddl := enginetest.Exec(t, url, "SHOW CREATE TABLE history"); strings.Contains(ddl, "toIntervalDay(30)") {
				t.Error("a database that was refused was changed")
			}
			if n := s.number(t, "SELECT countIf(released = 0) FROM {db}.schema_locks FINAL"); n != 0 {
				t.Error("a refusal left its lock behind")
			}
		})
	}
}

func TestMigrateWaitsForAnother(t *testing.T) {
	url := enginetest.Shared(t)
	s := dial(t, url, 0)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	enginetest.Exec(t, url, "INSERT INTO schema_locks SELECT 'another', now64(3) - INTERVAL 1 SECOND, 0")
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	if err := s.Migrate(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it did not wait: %v", err)
	}
	if n := s.number(t, "SELECT countIf(released = 0) FROM {db}.schema_locks FINAL"); n != 1 {
		t.Errorf("%d locks are held, want the other one's alone", n)
	}
	// The other hub died long ago.
	enginetest.Exec(t, url, "INSERT INTO schema_locks SELECT 'another', now64(3), 1")
	enginetest.Exec(t, url, "INSERT INTO schema_locks SELECT 'dead', now64(3) - INTERVAL 5 MINUTE, 0")
	if err := s.Migrate(t.Context()); err != nil {
		t.Errorf("an expired lock holds: %v", err)
	}
}

func TestRetentionChanges(t *testing.T) {
	url := enginetest.Shared(t)
	for _, days := range []int{0, 40, 4, 400} {
		if err := dial(t, url, days).Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := map[int]string{0: "toIntervalDay(400)", 40: "toIntervalDay(40)", 4: "toIntervalDay(4)", 400: "toIntervalDay(400)"}[days]
		if ddl := enginetest.Exec(t, url, "SHOW CREATE TABLE history"); !strings.Contains(ddl, want) {
			t.Errorf("%d days: the table says\n%s", days, ddl)
		}
	}
}

func TestFsyncChanges(t *testing.T) {
	url := enginetest.Shared(t)
	tables := enginetest.Exec(t, url, "SELECT count() FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'")
	for i, on := range []bool{false, true, true, false} {
		s, err := Open(Options{URL: url, FsyncAfterInsert: on, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		write(t, s, map[string][]schema.Reconciler{fmt.Sprint("c", i): {reconciler("a", "a", commitA, schema.StatusSuccess)}})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		all := enginetest.Exec(t, url, "SELECT count() FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'")
		set := enginetest.Exec(t, url, "SELECT countIf(create_table_query LIKE '%fsync_after_insert = 1, fsync_part_directory = 1%') FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'")
		if want := map[bool]string{true: all, false: "0"}[on]; strings.TrimSpace(set) != strings.TrimSpace(want) || all == tables {
			t.Errorf("asked for %t, %s of %s tables sync each insert", on, set, all)
		}
	}
}

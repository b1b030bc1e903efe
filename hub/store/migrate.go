package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	tables "github.com/landfall-hub/landfall/schema/clickhouse"
)

// ErrNewerSchema says that a newer Landfall wrote the database: this one must
// not touch it.
var ErrNewerSchema = errors.New("the database is of a newer Landfall; start that version, or restore a backup")

// ErrEditedSchema says that a migration that was applied has another text now.
var ErrEditedSchema = errors.New("a migration was changed after it was applied")

const (
	// lockFor is how long a lock row holds when its owner never came back.
	lockFor = time.Minute
	// lockPoll is how often a hub that waits for another's migration looks.
	lockPoll = 200 * time.Millisecond
)

// Migrate brings the database to this program's schema, one hub at a time, and
// learns the tables' columns. It is idempotent.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := tables.Load(s.target)
	if err != nil {
		return err
	}
	applied, err := s.applied(ctx)
	if err != nil {
		return err
	}
	for version := range applied {
		if version > len(all) {
			return fmt.Errorf("%w (schema %d, this program knows %d)", ErrNewerSchema, version, len(all))
		}
	}
	for _, m := range all {
		if sum, ok := applied[m.Version]; ok {
			if sum != m.Checksum {
				return fmt.Errorf("%w: %04d_%s", ErrEditedSchema, m.Version, m.Name)
			}
			continue
		}
		if err := s.apply(ctx, m); err != nil {
			return err
		}
	}
	if err := s.retain(ctx); err != nil {
		return err
	}
	if err := s.persist(ctx); err != nil {
		return err
	}
	return s.learnColumns(ctx)
}

// here runs statements of the DDL, which name tables without a database.
func (s *Store) here(ctx context.Context) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"database": s.target.Database}))
}

func (s *Store) prepare(ctx context.Context) error {
	for _, ddl := range []string{
		"CREATE DATABASE IF NOT EXISTS {db}" + s.target.OnCluster(),
		"CREATE TABLE IF NOT EXISTS {db}." + tables.Migrations + s.target.OnCluster() +
			" (version UInt32, name String, checksum UInt64, applied_at DateTime64(3, 'UTC')) ENGINE = " +
			s.target.Engine("ReplacingMergeTree", "applied_at") + " ORDER BY version",
		"CREATE TABLE IF NOT EXISTS {db}." + tables.MigrationLocks + s.target.OnCluster() +
			" (nonce String, taken_at DateTime64(3, 'UTC'), released UInt8) ENGINE = " +
			s.target.Engine("ReplacingMergeTree", "released") + " ORDER BY nonce TTL toDateTime(taken_at) + INTERVAL 1 DAY",
	} {
		if err := s.exec(ctx, "preparing the database", ddl); err != nil {
			return err
		}
	}
	return nil
}

// lock waits until this hub's lock row is the oldest that is not released.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	nonce := rand.Text()
	insert := "INSERT INTO {db}." + tables.MigrationLocks + " SELECT {nonce:String}, now64(3), {released:UInt8}"
	if err := s.exec(ctx, "locking the schema", insert, named("nonce", nonce), named("released", uint8(0))); err != nil {
		return nil, err
	}
	unlock = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := s.exec(ctx, "unlocking the schema", insert, named("nonce", nonce), named("released", uint8(1))); err != nil {
			s.opts.Log.Warn("the schema's lock stays until it expires", "error", err, "expires_in", lockFor)
		}
	}
	for {
		var first string
		err := s.query(ctx, "schema_locks", "SELECT nonce FROM {db}."+tables.MigrationLocks+
			" FINAL WHERE released = 0 AND taken_at > now64(3) - INTERVAL {seconds:UInt32} SECOND ORDER BY taken_at, nonce LIMIT 1",
			func(r driver.Rows) error { return r.Scan(&first) }, named("seconds", uint32(lockFor/time.Second)))
		if err != nil {
			unlock()
			return nil, err
		}
		if first == nonce || first == "" {
			return unlock, nil
		}
		s.opts.Log.Info("another hub is changing the schema; waiting for it")
		select {
		case <-ctx.Done():
			unlock()
			return nil, fmt.Errorf("waiting for another hub's migration: %w", ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

func (s *Store) applied(ctx context.Context) (map[int]uint64, error) {
	sums := map[int]uint64{}
	err := s.query(ctx, "schema_migrations", "SELECT version, checksum FROM {db}."+tables.Migrations+" FINAL", func(r driver.Rows) error {
		var version uint32
		var sum uint64
		if err := r.Scan(&version, &sum); err != nil {
			return err
		}
		sums[int(version)] = sum
		return nil
	})
	return sums, err
}

func (s *Store) apply(ctx context.Context, m tables.Migration) error {
	for i, statement := range m.Statements {
		if err := s.conn.Exec(s.here(ctx), statement); err != nil {
			return fmt.Errorf("migration %04d_%s, statement %d: %w", m.Version, m.Name, i+1, err)
		}
	}
	err := s.exec(ctx, "recording a migration", "INSERT INTO {db}."+tables.Migrations+
		" SELECT {version:UInt32}, {name:String}, {sum:UInt64}, now64(3)",
		named("version", uint32(m.Version)), named("name", m.Name), named("sum", m.Checksum)) //nolint:gosec // a file's number
	if err != nil {
		return err
	}
	s.opts.Log.Info("schema migrated", "version", m.Version, "name", m.Name)
	return nil
}

// retain makes the history's retention what the options say.
func (s *Store) retain(ctx context.Context) error {
	want := fmt.Sprintf("toIntervalDay(%d)", s.target.HistoryDays)
	for _, table := range []string{tables.History, tables.Landed} {
		var ddl string
		local := s.target.Local(table)
		err := s.query(ctx, "system.tables", "SELECT create_table_query FROM system.tables WHERE database = {database:String} AND name = {table:String}",
			func(r driver.Rows) error { return r.Scan(&ddl) },
			named("database", s.target.Database), named("table", local))
		if err != nil {
			return err
		}
		if ddl == "" || strings.Contains(ddl, want) {
			continue
		}
		err = s.exec(ctx, "changing the history's retention", fmt.Sprintf(
			"ALTER TABLE {db}.%s%s MODIFY TTL toDateTime(received_at) + INTERVAL %d DAY", local, s.target.OnCluster(), s.target.HistoryDays))
		if err != nil {
			return err
		}
	}
	return nil
}

// persist makes the tables write inserts through to the disk, or leave that to
// the operating system, as the options say.
func (s *Store) persist(ctx context.Context) error {
	change, differs := "RESET SETTING fsync_after_insert, fsync_part_directory", "LIKE"
	if s.opts.FsyncAfterInsert {
		change, differs = "MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1", "NOT LIKE"
	}
	var names []string
	err := s.query(ctx, "system.tables", "SELECT name FROM system.tables WHERE database = {database:String} AND engine LIKE '%MergeTree' AND create_table_query "+
		differs+" '%fsync_after_insert = 1%' ORDER BY name",
		func(r driver.Rows) error {
			var name string
			err := r.Scan(&name)
			names = append(names, name)
			return err
		}, named("database", s.target.Database))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := s.exec(ctx, "changing when inserts reach the disk", fmt.Sprintf("ALTER TABLE {db}.%s%s %s", name, s.target.OnCluster(), change)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) learnColumns(ctx context.Context) error {
	columns := map[string][]clickhouse.ColumnNameAndType{}
	err := s.query(ctx, "system.columns", "SELECT table, name, type FROM system.columns WHERE database = {database:String} ORDER BY table, position",
		func(r driver.Rows) error {
			var table string
			var c clickhouse.ColumnNameAndType
			if err := r.Scan(&table, &c.Name, &c.Type); err != nil {
				return err
			}
			columns[table] = append(columns[table], c)
			return nil
		}, named("database", s.target.Database))
	if err != nil {
		return err
	}
	s.columns = columns
	return nil
}

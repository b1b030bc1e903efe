package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// columnsOf is one insert's rows, column by column, by column name. A value is
// a slice with one item per row. Columns that are left out get their default.
type columnsOf map[string]any

// insert writes rows as one block, which ClickHouse stores whole or not at all.
// No deduplication token goes with it: a MergeTree notes a token before it
// commits the part, so that a kill in between loses the rows of whoever tries
// again. Every table's key makes a second try harmless instead.
func (s *Store) insert(ctx context.Context, table string, rows int, values columnsOf) error {
	if rows == 0 {
		return nil
	}
	defer s.metrics.time("insert_" + table)()
	var columns []clickhouse.ColumnNameAndType
	names := ""
	for _, c := range s.columns[table] {
		if _, ok := values[c.Name]; !ok {
			continue
		}
		columns = append(columns, c)
		if names != "" {
			names += ", "
		}
		names += "`" + c.Name + "`"
	}
	if len(columns) != len(values) {
		return fmt.Errorf("inserting into %s: it has not all of the %d columns named", table, len(values))
	}
	// Servers may gather inserts by themselves; ours are gathered already.
	settings := clickhouse.Settings{"async_insert": 0}
	if s.target.Cluster != "" {
		settings["distributed_foreground_insert"] = 1 // acknowledged is stored, not queued for a shard
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(settings), clickhouse.WithColumnNamesAndTypes(columns))
	batch, err := s.conn.PrepareBatch(ctx, s.sql("INSERT INTO {db}."+table+" ("+names+")"))
	if err != nil {
		return fmt.Errorf("inserting into %s: %w", table, err)
	}
	defer batch.Close() // Send says what went wrong
	for i, c := range columns {
		if err := appendColumn(batch.Column(i), values[c.Name]); err != nil {
			return fmt.Errorf("inserting into %s: column %s: %w", table, c.Name, err)
		}
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("inserting %d rows into %s: %w", rows, table, err)
	}
	s.metrics.rows.WithLabelValues(table).Add(float64(rows))
	return nil
}

// pick makes a column of what each row has.
func pick[R, T any](rows []R, value func(*R) T) []T {
	out := make([]T, len(rows))
	for i := range rows {
		out[i] = value(&rows[i])
	}
	return out
}

// appendColumn appends a slice, row by row where the driver would otherwise
// look at each row by reflection.
func appendColumn(column driver.BatchColumn, values any) error {
	switch v := values.(type) {
	case [][]string:
		return appendRows(column, v)
	case []map[string]string:
		return appendRows(column, v)
	}
	return column.Append(values)
}

func appendRows[T any](column driver.BatchColumn, rows []T) error {
	for i := range rows {
		if err := column.AppendRow(rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// epoch stands in the store's time columns for "never".
var epoch = time.Unix(0, 0).UTC()

// stored returns a time as a column holds it.
func stored(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// restored is the inverse of stored.
func restored(t time.Time) time.Time {
	if t.Equal(epoch) {
		return time.Time{}
	}
	return t.UTC()
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

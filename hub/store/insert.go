package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// columnsOf is one insert's rows, column by column, by column name. A value is
// a slice with one item per row, or a made that returns it. Columns that are
// left out get their default.
type columnsOf map[string]any

// made returns a column when its turn comes: the slices of a wide table are not
// all in memory at once.
type made func() any

// insert writes rows as one block, which ClickHouse stores whole or not at all.
// No deduplication token goes with it: ClickHouse notes a token before it commits
// the rows, so that after a kill a batch that is tried again would be taken for
// stored (ADR 4). Every table's key makes a second try harmless instead.
func (s *Store) insert(ctx context.Context, table string, rows int, values columnsOf) error {
	p, err := s.prepareInsert(ctx, table, rows, values)
	if err != nil {
		return err
	}
	return p.send()
}

// pendingInsert is a block that is ready to be stored. It is sent or discarded.
type pendingInsert struct {
	s     *Store
	table string
	rows  int
	// batch is nil where there are no rows.
	batch driver.Batch
}

// prepareInsert is insert up to the point where ClickHouse is asked to store.
func (s *Store) prepareInsert(ctx context.Context, table string, rows int, values columnsOf) (*pendingInsert, error) {
	p := &pendingInsert{s: s, table: table, rows: rows}
	if rows == 0 {
		return p, nil
	}
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
		return nil, fmt.Errorf("inserting into %s: it has not all of the %d columns named", table, len(values))
	}
	// Servers may gather inserts by themselves; ours are gathered already. Nor need
	// a part be without older rows of a key: several have them until they merge, so
	// who reads takes FINAL or bears them.
	settings := clickhouse.Settings{"async_insert": 0, "optimize_on_insert": 0}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(settings), clickhouse.WithColumnNamesAndTypes(columns))
	batch, err := s.conn.PrepareBatch(ctx, s.sql("INSERT INTO {db}."+table+" ("+names+")"))
	if err != nil {
		return nil, fmt.Errorf("inserting into %s: %w", table, err)
	}
	p.batch = batch
	for i, c := range columns {
		if err := appendColumn(batch.Column(i), c.Type, values[c.Name]); err != nil {
			p.discard()
			return nil, fmt.Errorf("inserting into %s: column %s: %w", table, c.Name, err)
		}
	}
	return p, nil
}

// send has ClickHouse store the block.
func (p *pendingInsert) send() error {
	if p.batch == nil {
		return nil
	}
	defer p.s.metrics.time("insert_" + p.table)()
	defer p.discard()
	if err := p.batch.Send(); err != nil {
		return fmt.Errorf("inserting %d rows into %s: %w", p.rows, p.table, err)
	}
	p.s.metrics.rows.WithLabelValues(p.table).Add(float64(p.rows))
	return nil
}

// discard lets go of the connection.
func (p *pendingInsert) discard() {
	if p.batch != nil {
		_ = p.batch.Close() // what matters is what Send says
	}
}

// pick makes a column of what each row has.
func pick[R, T any](rows []R, value func(*R) T) []T {
	out := make([]T, len(rows))
	for i := range rows {
		out[i] = value(&rows[i])
	}
	return out
}

// later is pick at the time when the column is appended.
func later[R, T any](rows []R, value func(*R) T) made {
	return func() any { return pick(rows, value) }
}

// appendColumn appends a slice, row by row where the driver would otherwise
// look at each row by reflection.
func appendColumn(column driver.BatchColumn, columnType string, values any) error {
	switch v := values.(type) {
	case made:
		return appendColumn(column, columnType, v())
	case [][]string:
		return appendRows(column, v)
	case []map[string]string:
		return appendRows(column, v)
	case []string:
		if columnType == "LowCardinality(String)" {
			return appendTexts(column, v)
		}
	}
	return column.Append(values)
}

// appendTexts fills a LowCardinality(String). The driver looks each text up in
// the column's dictionary, as an any; nil is "" and needs no look.
func appendTexts(column driver.BatchColumn, texts []string) error {
	last, boxed := "", any(nil) // a run of one text is one allocation
	for _, text := range texts {
		if text != last {
			last, boxed = text, text
			if text == "" {
				boxed = nil
			}
		}
		if err := column.AppendRow(boxed); err != nil {
			return err
		}
	}
	return nil
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

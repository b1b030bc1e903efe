package store

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// States reads reconcilers in the order of cluster, kind, namespace and name.
func (s *Store) States(ctx context.Context, q record.StateQuery) ([]record.StateRow, error) {
	where, args := "", []any{}
	for _, in := range []struct {
		column string
		names  []string
	}{{"cluster", q.Clusters}, {"destination", q.Destinations}} {
		if in.names == nil {
			continue
		}
		if len(in.names) == 0 {
			return nil, nil
		}
		where, args = where+" AND "+in.column+" IN (?)", append(args, in.names)
	}
	if q.Status != "" {
		silent := q.Silent
		if len(silent) == 0 {
			silent = []string{""}
		}
		switch q.Status {
		case schema.StatusUnknown:
			where, args = where+" AND (status = 'unknown' OR cluster IN (?))", append(args, silent)
		default:
			where, args = where+" AND status = ? AND cluster NOT IN (?)", append(args, string(q.Status), silent)
		}
	}
	if len(q.After) > 0 {
		if len(q.After) != 4 {
			return nil, fmt.Errorf("a page after %d columns: there are 4", len(q.After))
		}
		where += " AND cluster >= ? AND (cluster, kind, namespace, name) > (?, ?, ?, ?)"
		args = append(args, q.After[0], q.After[0], q.After[1], q.After[2], q.After[3])
	}
	var rows []record.StateRow
	err := s.query(ctx, "states", `
		SELECT cluster, destination, kind, namespace, name, source_url, source_ref, source_path,
		       applied_commit, attempted_commit, status, reason, message, drifted, since
		FROM {db}.current FINAL
		WHERE row = 'reconciler' AND repo = '' AND ref = '' AND path = ''`+where+`
		ORDER BY cluster, kind, namespace, name LIMIT `+fmt.Sprint(q.Limit),
		func(r driver.Rows) error {
			var row record.StateRow
			var status string
			var drifted uint8
			err := r.Scan(&row.Cluster, &row.Destination, &row.Ref.Kind, &row.Ref.Namespace, &row.Ref.Name,
				&row.Repo, &row.GitRef, &row.Path, &row.Commit, &row.Attempted, &status, &row.Reason, &row.Message, &drifted, &row.Since)
			row.Status, row.Drifted, row.Since = schema.Status(status), drifted == 1, restored(row.Since)
			rows = append(rows, row)
			return err
		}, args...)
	return rows, err
}

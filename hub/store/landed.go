package store

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
)

// landedRows are the first successes of what reconcilers began to run: of each
// run one message says so.
func landedRows(batch []fold.Changes) []historyRow {
	var rows []historyRow
	for i := range batch {
		c := &batch[i]
		if c.Late {
			continue
		}
		for j := range c.Upserts {
			u := &c.Upserts[j]
			if !u.Changed || !u.Entry.Latch.LandedAt(c.ReceivedAt) {
				continue
			}
			row := newHistoryRow(c, u.Reconciler, "reported")
			row.endpoint = mainEndpoint(u, row.source)
			if u.Reconciler.AppliedCommit(row.source) != "" {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func landedColumns(rows []historyRow) columnsOf {
	all := historyColumns(rows)
	kept := columnsOf{}
	for _, name := range []string{"cluster", "kind", "namespace", "name", "epoch", "sequence", "repo", "ref", "path", "applied_commit", "received_at"} {
		kept[name] = all[name]
	}
	return kept
}

// Successes reads which commits reconcilers said to run with success, from any
// endpoint, each where it began, in the order of their messages.
func (s *Store) Successes(ctx context.Context, reconcilers []record.Reconciler) (map[record.Reconciler][]record.Success, error) {
	found := make(map[record.Reconciler][]record.Success, len(reconcilers))
	if len(reconcilers) == 0 {
		return found, nil
	}
	wanted := make([]clickhouse.GroupSet, len(reconcilers))
	for i, r := range reconcilers {
		wanted[i] = clickhouse.GroupSet{Value: []any{r.Cluster, r.Ref.Kind, r.Ref.Namespace, r.Ref.Name}}
	}
	err := s.query(ctx, "successes", `
		SELECT cluster, kind, namespace, name, epoch, sequence, repo, ref, path, applied_commit FROM {db}.landed
		WHERE (cluster, kind, namespace, name) IN (?)
		ORDER BY cluster, kind, namespace, name, epoch, sequence`,
		func(r driver.Rows) error {
			var who record.Reconciler
			var ran record.Success
			var epoch uint32
			e := &ran.Endpoint
			err := r.Scan(&who.Cluster, &who.Ref.Kind, &who.Ref.Namespace, &who.Ref.Name, &epoch, &ran.Sequence, &e.Repo, &e.Ref, &e.Path, &ran.Commit)
			ran.Epoch = uint64(epoch)
			// A commit that ran before as well did not begin here: what was between did
			// not succeed. A message that was stored twice is there twice.
			if all := found[who]; len(all) == 0 || all[len(all)-1].Running != ran.Running {
				found[who] = append(all, ran)
			}
			return err
		}, wanted)
	return found, err
}

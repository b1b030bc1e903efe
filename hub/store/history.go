package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

const (
	// firstSpan is how far back from its end a page of the history is looked for at
	// first; where that is not enough, spanGrowth times as far.
	firstSpan  = time.Hour
	spanGrowth = 8
)

// History reads changes of reconcilers, the newest first. A message that was
// stored twice counts as it was stored last.
func (s *Store) History(ctx context.Context, q record.HistoryQuery) ([]record.HistoryRow, error) {
	if !q.Either && none(q.Under, q.Destinations) {
		return nil, nil
	}
	from, to, err := s.historySpan(ctx, &q)
	if err != nil {
		return nil, err
	}
	if err := s.byReporter(ctx, &q); err != nil {
		return nil, err
	}
	// The table is sorted by endpoint and reconciler. What tells times apart are
	// its partitions and parts: a short span leaves most of them alone.
	var rows []record.HistoryRow
	var keys []record.HistoryKey
	for width := firstSpan; to.After(from) && len(rows) < q.Limit; width *= spanGrowth {
		begin := to.Add(-width)
		if begin.Before(from) {
			begin = from
		}
		for {
			asked := q.Limit - len(rows) - len(keys)
			found, err := s.historyKeys(ctx, &q, begin, to, asked)
			if err != nil {
				return nil, err
			}
			keys = append(keys, found...)
			if len(found) < asked && begin.After(from) {
				break // a longer span is next
			}
			whole, err := s.historyAt(ctx, keys)
			if err != nil {
				return nil, err
			}
			rows, keys = append(rows, whole...), nil
			if len(found) < asked || len(rows) == q.Limit {
				break
			}
			q.After = &found[len(found)-1] // what was stored again later is missing
		}
		to = begin
	}
	return rows, nil
}

// byReporter narrows a query of few destinations to those who have ever been
// allowed to report for them, by whom the table is sorted.
func (s *Store) byReporter(ctx context.Context, q *record.HistoryQuery) error {
	if q.Either || q.Destinations == nil || len(q.Destinations) > mostFolders {
		return nil
	}
	q.Clusters = slices.Clone(q.Destinations)
	return s.query(ctx, "reporters", "SELECT DISTINCT cluster FROM {db}.clusters WHERE hasAny(reports_for, ?) ORDER BY cluster",
		func(r driver.Rows) error {
			var name string
			err := r.Scan(&name)
			q.Clusters = append(q.Clusters, name)
			return err
		}, q.Destinations)
}

// historySpan returns when the rows that may match have arrived: not before the
// one time, and before the other.
func (s *Store) historySpan(ctx context.Context, q *record.HistoryQuery) (from, to time.Time, err error) {
	err = s.query(ctx, "history_span", "SELECT min(received_at), max(received_at) FROM {db}.history", scanInto(&from, &to))
	to = to.Add(time.Millisecond)
	if q.From.After(from) {
		from = q.From
	}
	if !q.To.IsZero() && q.To.Before(to) {
		to = q.To
	}
	if q.After != nil && q.After.ReceivedAt.Before(to) {
		to = q.After.ReceivedAt.Add(time.Millisecond)
	}
	return from, to, err
}

// milli is a time in a statement: its argument are milliseconds.
const milli = "fromUnixTimestamp64Milli(toInt64(?))"

// historyKeys finds the newest rows of a span after q.After by their keys; a
// row that was stored twice is there twice.
func (s *Store) historyKeys(ctx context.Context, q *record.HistoryQuery, from, to time.Time, limit int) ([]record.HistoryKey, error) {
	c := where("received_at >= "+milli+" AND received_at < "+milli, from.UnixMilli(), to.UnixMilli())
	if q.Either && len(q.Destinations) > 0 {
		folders, places := where("1"), where("1")
		folders.under(q.Under)
		places.in("destination", q.Destinations)
		c.and("("+folders.text+" OR "+places.text+")", append(folders.args, places.args...)...)
	} else {
		c.under(q.Under)
		if !q.Either {
			c.in("cluster", q.Clusters)
			c.in("destination", q.Destinations)
		}
	}
	c.status(q.Status, nil)
	if k := q.After; k != nil {
		ms := k.ReceivedAt.UnixMilli()
		c.and("(received_at < "+milli+" OR received_at = "+milli+
			" AND (repo, ref, path, cluster, kind, namespace, name, epoch, sequence) > (?, ?, ?, ?, ?, ?, ?, ?, ?))",
			append([]any{ms, ms}, keyValues(k)...)...)
	}
	var keys []record.HistoryKey
	err := s.query(ctx, "history_keys", `
		SELECT received_at, repo, ref, path, cluster, kind, namespace, name, epoch, sequence FROM {db}.history
		WHERE `+c.text+`
		ORDER BY received_at DESC, repo, ref, path, cluster, kind, namespace, name, epoch, sequence LIMIT `+fmt.Sprint(limit),
		func(r driver.Rows) error {
			var k record.HistoryKey
			var epoch uint32
			err := r.Scan(&k.ReceivedAt, &k.Endpoint.Repo, &k.Endpoint.Ref, &k.Endpoint.Path, &k.Cluster, &k.Ref.Kind, &k.Ref.Namespace, &k.Ref.Name, &epoch, &k.Sequence)
			k.Epoch = uint64(epoch)
			keys = append(keys, k)
			return err
		}, c.args...)
	return keys, err
}

func keyValues(k *record.HistoryKey) []any {
	return []any{k.Endpoint.Repo, k.Endpoint.Ref, k.Endpoint.Path, k.Cluster, k.Ref.Kind, k.Ref.Namespace, k.Ref.Name, k.Epoch, k.Sequence}
}

// historyAt reads the rows of some keys, in their order. One that was stored
// again later is left out: it has its place there.
func (s *Store) historyAt(ctx context.Context, keys []record.HistoryKey) ([]record.HistoryRow, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	endpoints, clusters := map[schema.Endpoint]bool{}, map[string]bool{}
	var c condition
	var places, all []clickhouse.GroupSet
	var names []string
	for i := range keys {
		k := &keys[i]
		if e := k.Endpoint; !endpoints[e] {
			endpoints[e] = true
			places = append(places, clickhouse.GroupSet{Value: []any{e.Repo, e.Ref, e.Path}})
		}
		if !clusters[k.Cluster] {
			clusters[k.Cluster] = true
			names = append(names, k.Cluster)
		}
		all = append(all, clickhouse.GroupSet{Value: keyValues(k)})
	}
	c.text = "(repo, ref, path) IN (?)"
	c.args = []any{places}
	c.and("cluster IN (?)", names)
	c.and("(repo, ref, path, cluster, kind, namespace, name, epoch, sequence) IN (?)", all)
	c.and("received_at >= "+milli, keys[len(keys)-1].ReceivedAt.UnixMilli())
	newest := map[record.HistoryKey]record.HistoryRow{} // by the key without its time
	err := s.query(ctx, "history", `
		SELECT received_at, repo, ref, path, cluster, kind, namespace, name, epoch, sequence,
		       change, observed_at, destination, source_url, source_ref, source_path, applied_commit, attempted_commit, status, reason, message, drifted
		FROM {db}.history
		WHERE `+c.text,
		func(r driver.Rows) error {
			row, err := scanHistoryRow(r)
			k := timeless(row.HistoryKey)
			if old, ok := newest[k]; !ok || row.ReceivedAt.After(old.ReceivedAt) {
				newest[k] = row
			}
			return err
		}, c.args...)
	if err != nil {
		return nil, err
	}
	rows := make([]record.HistoryRow, 0, len(keys))
	for i := range keys {
		k := timeless(keys[i])
		if row, ok := newest[k]; ok && row.ReceivedAt.Equal(keys[i].ReceivedAt) {
			rows = append(rows, row)
			delete(newest, k)
		}
	}
	return rows, nil
}

func timeless(k record.HistoryKey) record.HistoryKey {
	k.ReceivedAt = time.Time{}
	return k
}

func scanHistoryRow(r driver.Rows) (record.HistoryRow, error) {
	var h record.HistoryRow
	var epoch uint32
	var change, status string
	var drifted uint8
	err := r.Scan(&h.ReceivedAt, &h.Endpoint.Repo, &h.Endpoint.Ref, &h.Endpoint.Path, &h.Cluster, &h.HistoryKey.Ref.Kind, &h.HistoryKey.Ref.Namespace, &h.HistoryKey.Ref.Name, &epoch, &h.Sequence,
		&change, &h.ObservedAt, &h.Destination, &h.URL, &h.GitRef, &h.Path, &h.Commit, &h.Attempted, &status, &h.Reason, &h.Message, &drifted)
	h.Epoch, h.Change, h.Status, h.Drifted = uint64(epoch), schema.Change(change), schema.Status(status), drifted == 1
	h.ReceivedAt, h.ObservedAt = h.ReceivedAt.UTC(), restored(h.ObservedAt)
	return h, err
}

package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// States reads reconcilers in the order of cluster, kind, namespace and name.
func (s *Store) States(ctx context.Context, q record.StateQuery) ([]record.StateRow, error) {
	if len(q.After) != 0 && len(q.After) != 4 {
		return nil, fmt.Errorf("a page after %d columns: there are 4", len(q.After))
	}
	if none(q.Under, q.Clusters, q.Destinations) {
		return nil, nil
	}
	c := where("row = 'reconciler' AND repo = '' AND ref = '' AND path = ''")
	rowsOf(c, &q)
	switch {
	case q.Off != nil:
		changed := where("drifted = 1")
		if q.Under != nil {
			changed.readers(&q, func(sub *condition) { sub.under(q.Under) }, "")
		}
		if len(q.Off) > 0 {
			off := where("1")
			off.readers(&q, func(sub *condition) { sub.and("(repo, ref, path, applied_commit) IN (?)", running(q.Off)) }, page(&q))
			c.and("("+changed.text+" OR "+off.text+")", slices.Concat(changed.args, off.args)...)
			break
		}
		c.and(changed.text, changed.args...)
	case q.Under != nil:
		c.readers(&q, func(sub *condition) { sub.under(q.Under) }, page(&q))
	}
	var rows []record.StateRow
	err := s.query(ctx, "states", `
		SELECT cluster, destination, kind, namespace, name, source_type, source_url, source_ref, source_path, sources,
		       applied_commit, attempted_commit, status, reason, message, drifted, since
		FROM {db}.current FINAL
		WHERE `+c.text+page(&q),
		func(r driver.Rows) error {
			row, err := scanStateRow(r)
			rows = append(rows, row)
			return err
		}, c.args...)
	return rows, err
}

// rowsOf narrows rows of reconcilers and of subscriptions alike.
func rowsOf(c *condition, q *record.StateQuery) {
	c.in("cluster", q.Clusters)
	c.in("destination", q.Destinations)
	c.status(q.Status, q.Silent)
	if len(q.After) > 0 {
		c.and("cluster >= ? AND (cluster, kind, namespace, name) > (?, ?, ?, ?)", q.After[0], q.After[0], q.After[1], q.After[2], q.After[3])
	}
}

// page is the end of a statement whose rows are reconcilers.
func page(q *record.StateQuery) string {
	return "\nORDER BY cluster, kind, namespace, name LIMIT " + fmt.Sprint(q.Limit)
}

// readers narrows to the reconcilers of which a subscription matches: to the
// first of them where end says so, which saves naming all of a large fleet.
func (c *condition) readers(q *record.StateQuery, narrow func(*condition), end string) {
	sub := where("row = 'subscription'")
	narrow(sub)
	rowsOf(sub, q)
	c.and("(cluster, kind, namespace, name) IN (SELECT DISTINCT cluster, kind, namespace, name FROM {db}.current FINAL WHERE "+sub.text+end+")", sub.args...)
}

func running(all []record.Running) []clickhouse.GroupSet {
	sets := make([]clickhouse.GroupSet, len(all))
	for i, r := range all {
		sets[i] = clickhouse.GroupSet{Value: []any{r.Endpoint.Repo, r.Endpoint.Ref, r.Endpoint.Path, r.Commit}}
	}
	return sets
}

func scanStateRow(r driver.Rows) (record.StateRow, error) {
	var row record.StateRow
	var main record.StateSource
	var status, sourceType, sources string
	var drifted uint8
	err := r.Scan(&row.Cluster, &row.Destination, &row.Ref.Kind, &row.Ref.Namespace, &row.Ref.Name, &sourceType, &main.URL, &main.Ref, &main.Path, &sources,
		&main.Commit, &main.Attempted, &status, &row.Reason, &row.Message, &drifted, &row.Since)
	if err != nil {
		return row, err
	}
	row.Status, row.Drifted, row.Since = schema.Status(status), drifted == 1, restored(row.Since)
	if sources == "" {
		if sourceType != "" {
			main.Endpoint, _ = schema.Source{Type: schema.SourceType(sourceType), URL: main.URL, Ref: main.Ref, Path: main.Path}.Endpoint() // it was valid when it came in
		}
		row.Sources = []record.StateSource{main}
		return row, nil
	}
	row.Sources, err = stateSources(sources)
	if len(row.Sources) == 0 {
		row.Sources = []record.StateSource{main}
	}
	return row, err
}

// stateSources reads the sources of a reconciler that has several, the main one
// first.
func stateSources(text string) ([]record.StateSource, error) {
	var all []storedSource
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("reading stored sources: %w", err)
	}
	var r schema.Reconciler
	for _, s := range all {
		if s.Type == "" {
			continue // revisions without a source
		}
		r.Sources = append(r.Sources, s.Source)
		r.Attempted, r.Applied, r.Origin = append(r.Attempted, s.Attempted), append(r.Applied, s.Applied), append(r.Origin, s.Origin)
	}
	sources := make([]record.StateSource, len(r.Sources))
	for i, s := range r.Sources {
		sources[i] = record.StateSource{URL: s.URL, Ref: s.Ref, Path: s.Path, Commit: r.AppliedCommit(i), Attempted: r.AttemptedCommit(i)}
		sources[i].Endpoint, _ = s.Endpoint() // it was valid when it came in
	}
	if first := mainSource(&r); first > 0 {
		main := sources[first]
		copy(sources[1:first+1], sources[:first])
		sources[0] = main
	}
	return sources, nil
}

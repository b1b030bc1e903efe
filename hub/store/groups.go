package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// Groups reads who reads what at which commit, in groups of clusters and in no
// order.
func (s *Store) Groups(ctx context.Context, q record.GroupQuery) ([]record.Group, error) {
	if none(q.Under, q.Destinations) {
		return nil, nil
	}
	status, class, members := "status", "toUInt32(?)", "uniqExact(cityHash64(destination)), emptyArrayString()"
	var args []any
	if len(q.Silent) > 0 {
		status, args = "if(cluster IN (?), 'unknown', status)", append(args, q.Silent)
	}
	if len(q.Classes) > 0 {
		class = "toUInt32(transform(destination, ?, ?, toUInt32(?)))"
		names, classes := make([]string, 0, len(q.Classes)), make([]uint32, 0, len(q.Classes))
		for name, n := range q.Classes {
			names, classes = append(names, name), append(classes, n)
		}
		args = append(args, names, classes)
	}
	args = append(args, q.Others)
	if q.Named {
		members = "toUInt64(0), groupUniqArray(toString(destination))"
	}
	c := where("row = 'subscription'")
	c.under(q.Under)
	c.in("destination", q.Destinations)
	c.status(q.Status, q.Silent)
	var groups []record.Group
	// By a hash, because to group a million rows by five texts takes three times as
	// long; so for the clusters, which are counted.
	err := s.query(ctx, "groups", `
		WITH `+status+` AS said, `+class+` AS class
		SELECT any(repo), any(ref), any(path), any(applied_commit), toString(any(said)), any(class), `+members+`
		FROM {db}.current FINAL
		WHERE `+c.text+`
		GROUP BY cityHash64(repo, ref, path, applied_commit, said, class)
		LIMIT `+fmt.Sprint(q.Most+1),
		func(r driver.Rows) error {
			var g record.Group
			var said string
			err := r.Scan(&g.Endpoint.Repo, &g.Endpoint.Ref, &g.Endpoint.Path, &g.Commit, &said, &g.Class, &g.Clusters, &g.Names)
			g.Status = schema.Status(said)
			if q.Named {
				g.Clusters = uint64(len(g.Names))
			}
			groups = append(groups, g)
			return err
		}, slices.Concat(args, c.args)...)
	return atMost(groups, q.Most, "groups", err)
}

// Destinations reads which clusters something is deployed to from some refs;
// some that have left may be among them. They are sorted.
func (s *Store) Destinations(ctx context.Context, refs []schema.Endpoint) ([]string, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	var names []string
	err := s.query(ctx, "destinations", `
		SELECT DISTINCT toString(destination) AS cluster FROM {db}.current
		WHERE row = 'subscription' AND (repo, ref) IN (?) AND deleted = 0 ORDER BY cluster`,
		func(r driver.Rows) error {
			var name string
			err := r.Scan(&name)
			names = append(names, name)
			return err
		}, refsOf(refs))
	return names, err
}

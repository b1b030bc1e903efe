package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// HistoryEndpoints reads which endpoints of some refs the history knows.
func (s *Store) HistoryEndpoints(ctx context.Context, refs []schema.Endpoint) ([]schema.Endpoint, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	var all []schema.Endpoint
	err := s.query(ctx, "history_endpoints", "SELECT DISTINCT repo, ref, path FROM {db}.history WHERE (repo, ref) IN (?) ORDER BY repo, ref, path",
		func(r driver.Rows) error {
			var e schema.Endpoint
			err := r.Scan(&e.Repo, &e.Ref, &e.Path)
			all = append(all, e)
			return err
		}, refsOf(refs))
	return all, err
}

// mostDelivered bounds the rows of each part of a Delivery.
const mostDelivered = 500_000

// Delivery reads what was delivered to targets. Messages that came late are left
// out. A message that is stored twice changes nothing.
func (s *Store) Delivery(ctx context.Context, q record.DeliveryQuery) (d record.Delivery, err error) {
	var endpoints []clickhouse.GroupSet
	for n, target := range q.Targets {
		for _, e := range target {
			endpoints = append(endpoints, clickhouse.GroupSet{Value: []any{e.Repo, e.Ref, e.Path, n}})
		}
	}
	if len(endpoints) == 0 {
		return d, nil
	}
	if d.Commits, err = s.deliveredCommits(ctx, endpoints, &q); err != nil {
		return d, err
	}
	if d.Courses, err = s.courses(ctx, endpoints, &q); err != nil {
		return d, err
	}
	d.Repairs, err = s.repairs(ctx, endpoints, &q)
	return d, err
}

// delivered is history with the number of the target that each row belongs to:
// its arguments are the endpoints with their numbers, twice, and the end of time.
const delivered = `
	SELECT target, cluster, kind, namespace, name, epoch, sequence, change, status, applied_commit, attempted_commit, least(observed_at, received_at) AS at
	FROM {db}.history
	INNER JOIN (SELECT e.1 AS repo, e.2 AS ref, e.3 AS path, toUInt32(e.4) AS target FROM (SELECT arrayJoin([?]) AS e)) AS targets USING (repo, ref, path)
	WHERE (repo, ref, path) IN (SELECT e.1, e.2, e.3 FROM (SELECT arrayJoin([?]) AS e)) AND change != 'late' AND at < ` + milli

func deliveredArgs(endpoints []clickhouse.GroupSet, q *record.DeliveryQuery) []any {
	return []any{endpoints, endpoints, q.To.UnixMilli()}
}

// deliveredCommits reads which commits were tried. What a success tries is what
// it applied.
func (s *Store) deliveredCommits(ctx context.Context, endpoints []clickhouse.GroupSet, q *record.DeliveryQuery) ([]record.DeliveredCommit, error) {
	var all []record.DeliveredCommit
	err := s.query(ctx, "delivered_commits", `
		SELECT target, if(status = 'success' OR attempted_commit = '', applied_commit, attempted_commit) AS tried, min(at), minIf(at, status = 'failure'), minIf(at, status = 'success')
		FROM (`+delivered+`)
		WHERE status IN ('success', 'failure') AND tried != ''
		GROUP BY target, tried ORDER BY target, tried LIMIT `+fmt.Sprint(mostDelivered+1),
		func(r driver.Rows) error {
			var c record.DeliveredCommit
			var target uint32
			err := r.Scan(&target, &c.Commit, &c.Tried, &c.Failed, &c.Landed)
			c.Target, c.Tried, c.Failed, c.Landed = int(target), restored(c.Tried), restored(c.Failed), restored(c.Landed)
			all = append(all, c)
			return err
		}, deliveredArgs(endpoints, q)...)
	return atMost(all, mostDelivered, "delivered commits", err)
}

// courses reads which ways reconcilers went, each way once: where they went
// anywhere at From or later.
func (s *Store) courses(ctx context.Context, endpoints []clickhouse.GroupSet, q *record.DeliveryQuery) ([]record.Course, error) {
	var all []record.Course
	err := s.query(ctx, "courses", `
		SELECT DISTINCT target, steps.1, steps.2 FROM
		(
			SELECT target, arrayMap(x -> (x.3, x.4 >= `+milli+`), arrayCompact(x -> x.3, arraySort(groupArray((epoch, sequence, applied_commit, at))))) AS steps
			FROM (`+delivered+`)
			WHERE status = 'success' AND applied_commit != ''
			GROUP BY target, cluster, kind, namespace, name
		)
		WHERE length(steps) > 2 AND arrayExists(x -> x.2, steps)
		LIMIT `+fmt.Sprint(mostDelivered+1),
		func(r driver.Rows) error {
			var target uint32
			var commits []string
			var within []uint8
			err := r.Scan(&target, &commits, &within)
			c := record.Course{Target: int(target), Steps: make([]record.Step, len(commits))}
			for i := range commits {
				c.Steps[i] = record.Step{Commit: commits[i], Within: within[i] == 1}
			}
			all = append(all, c)
			return err
		}, append([]any{q.From.UnixMilli()}, deliveredArgs(endpoints, q)...)...)
	return atMost(all, mostDelivered, "courses", err)
}

// repairs reads how long failures took: of each reconciler from the first one to
// the next success. One that is removed fails no more.
func (s *Store) repairs(ctx context.Context, endpoints []clickhouse.GroupSet, q *record.DeliveryQuery) ([]record.Repair, error) {
	var all []record.Repair
	err := s.query(ctx, "repairs", `
		SELECT target, sum(length(lengths)), quantileExactInclusiveArray(0.5)(lengths), countIf(failing) FROM
		(
			SELECT target, arrayCompact(x -> x.3, arraySort(groupArray((epoch, sequence, multiIf(change = 'removed', 0, status = 'success', 1, 2), at)))) AS turns,
			       arrayMap(x -> toInt64(greatest(0, toUnixTimestamp64Milli(x.2.4) - toUnixTimestamp64Milli(x.1.4))),
			           arrayFilter(x -> x.1.3 = 2 AND x.2.3 = 1 AND x.2.4 >= `+milli+`, arrayZip(arrayPopBack(turns), arrayPopFront(turns)))) AS lengths,
			       turns[-1].3 = 2 AS failing
			FROM (`+delivered+`)
			WHERE status IN ('success', 'failure') OR change = 'removed'
			GROUP BY target, cluster, kind, namespace, name
		)
		GROUP BY target ORDER BY target`,
		func(r driver.Rows) error {
			var p record.Repair
			var target uint32
			var median float64
			err := r.Scan(&target, &p.Restored, &median, &p.Unrestored)
			p.Target = int(target)
			if !math.IsNaN(median) {
				p.Median = time.Duration(median * float64(time.Millisecond))
			}
			all = append(all, p)
			return err
		}, append([]any{q.From.UnixMilli()}, deliveredArgs(endpoints, q)...)...)
	return all, err
}

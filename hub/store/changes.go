package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
	tables "github.com/landfall-hub/landfall/schema/clickhouse"
)

// Write stores what a batch of messages changed: history, what landed and the
// record of the messages first, then the current state of all of them as one part. The state
// holds where each stream stands, so a batch that was cut off before it has not
// come: its messages, sent again, are the next ones and give the same rows. A
// second Write of the same batch stores the same rows under the same keys, and
// FINAL sees them once.
func (s *Store) Write(ctx context.Context, batch []fold.Changes) error {
	first, both := errgroup.WithContext(ctx)
	first.Go(func() error {
		h := historyRows(batch)
		return s.insert(both, tables.History, len(h), historyColumns(h))
	})
	first.Go(func() error {
		l := landedRows(batch)
		return s.insert(both, tables.Landed, len(l), landedColumns(l))
	})
	first.Go(func() error {
		r := reportRows(batch)
		return s.insert(both, tables.Reports, len(r), reportColumns(r))
	})
	c := currentRows(batch) // made ready meanwhile
	current, err := s.prepareInsert(ctx, tables.Current, len(c), currentColumns(c))
	if firstErr := first.Wait(); firstErr != nil || err != nil {
		if current != nil {
			current.discard()
		}
		return errors.Join(firstErr, err)
	}
	return current.send()
}

// ReportSeen says whether a message of the cluster is stored.
func (s *Store) ReportSeen(ctx context.Context, cluster string, epoch, sequence uint64) (bool, error) {
	var n uint64
	err := s.query(ctx, "reports",
		"SELECT count() FROM {db}.reports WHERE cluster = {cluster:String} AND epoch = {epoch:UInt32} AND sequence = {sequence:UInt64}",
		scanInto(&n), named("cluster", cluster), named("epoch", epoch), named("sequence", sequence))
	return n > 0, err
}

// historyRow is a row of the table history.
type historyRow struct {
	endpoint schema.Endpoint
	cluster  string
	r        *schema.Reconciler
	epoch    uint64
	sequence uint64
	observed time.Time
	received time.Time
	change   string
	// source is the index of the main source.
	source int
}

func historyRows(batch []fold.Changes) []historyRow {
	n := 0
	for i := range batch {
		n += len(batch[i].Upserts) + len(batch[i].Removals)
	}
	rows := make([]historyRow, 0, n)
	for i := range batch {
		c := &batch[i]
		change := "reported"
		if c.Late {
			change = "late"
		}
		for j := range c.Upserts {
			if u := &c.Upserts[j]; u.Changed {
				row := newHistoryRow(c, u.Reconciler, change)
				row.endpoint = mainEndpoint(u, row.source)
				rows = append(rows, row)
			}
		}
		for _, gone := range c.Removals {
			row := newHistoryRow(c, &schema.Reconciler{Kind: gone.Ref.Kind, Namespace: gone.Ref.Namespace, Name: gone.Ref.Name}, "removed")
			if len(gone.Endpoints) > 0 {
				row.endpoint = gone.Endpoints[0].Value()
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// mainEndpoint returns the canonical endpoint of the main source; a source
// whose endpoint an earlier one has is not in the index.
func mainEndpoint(u *fold.Upsert, source int) schema.Endpoint {
	for i, s := range u.Index {
		if s == source {
			return u.Entry.Endpoints[i].Value()
		}
	}
	if source >= len(u.Reconciler.Sources) {
		return schema.Endpoint{}
	}
	e, _ := u.Reconciler.Sources[source].Endpoint() // it was valid when it came in
	return e
}

func newHistoryRow(c *fold.Changes, r *schema.Reconciler, change string) historyRow {
	row := historyRow{
		cluster: c.Cluster, r: r, change: change, received: c.ReceivedAt, observed: c.ReceivedAt,
		epoch: c.Position.Epoch, sequence: c.Position.Sequence, source: mainSource(r),
	}
	if c.Report != nil {
		row.epoch, row.sequence, row.observed = c.Report.Epoch, c.Report.Sequence, c.Report.ObservedAt
	}
	if !r.ObservedAt.IsZero() {
		row.observed = r.ObservedAt
	}
	return row
}

func historyColumns(rows []historyRow) columnsOf {
	return columnsOf{
		"repo":             later(rows, func(h *historyRow) string { return h.endpoint.Repo }),
		"ref":              later(rows, func(h *historyRow) string { return h.endpoint.Ref }),
		"path":             later(rows, func(h *historyRow) string { return h.endpoint.Path }),
		"cluster":          later(rows, func(h *historyRow) string { return h.cluster }),
		"kind":             later(rows, func(h *historyRow) string { return h.r.Kind }),
		"namespace":        later(rows, func(h *historyRow) string { return h.r.Namespace }),
		"name":             later(rows, func(h *historyRow) string { return h.r.Name }),
		"epoch":            later(rows, func(h *historyRow) uint32 { return uint32(h.epoch) }), //nolint:gosec // at most MaxEpoch
		"sequence":         later(rows, func(h *historyRow) uint64 { return h.sequence }),
		"observed_at":      later(rows, func(h *historyRow) int64 { return stored(h.observed) }),
		"received_at":      later(rows, func(h *historyRow) int64 { return stored(h.received) }),
		"change":           later(rows, func(h *historyRow) string { return h.change }),
		"destination":      later(rows, func(h *historyRow) string { return h.r.Destination(h.cluster) }),
		"status":           later(rows, func(h *historyRow) string { return string(h.r.Status) }),
		"reason":           later(rows, func(h *historyRow) string { return h.r.Reason }),
		"message":          later(rows, func(h *historyRow) string { return h.r.Message }),
		"attempted":        later(rows, func(h *historyRow) string { return nth(h.r.Attempted, h.source) }),
		"applied":          later(rows, func(h *historyRow) string { return nth(h.r.Applied, h.source) }),
		"attempted_commit": later(rows, func(h *historyRow) string { return h.r.AttemptedCommit(h.source) }),
		"applied_commit":   later(rows, func(h *historyRow) string { return h.r.AppliedCommit(h.source) }),
		"source_type":      later(rows, func(h *historyRow) string { return string(source(h.r, h.source).Type) }),
		"source_url":       later(rows, func(h *historyRow) string { return source(h.r, h.source).URL }),
		"source_ref":       later(rows, func(h *historyRow) string { return source(h.r, h.source).Ref }),
		"source_path":      later(rows, func(h *historyRow) string { return source(h.r, h.source).Path }),
		"sources":          later(rows, func(h *historyRow) string { return severalSources(h.r) }),
		"origin":           later(rows, func(h *historyRow) string { return nth(h.r.Origin, h.source) }),
		"source_revision":  later(rows, func(h *historyRow) string { return h.r.SourceRevision }),
		"source_error":     later(rows, func(h *historyRow) string { return h.r.SourceError }),
		"health":           later(rows, func(h *historyRow) string { return h.r.Health }),
		"suspended":        later(rows, func(h *historyRow) uint8 { return flag(h.r.Suspended) }),
		"drifted":          later(rows, func(h *historyRow) uint8 { return flag(h.r.Drifted) }),
		"owner":            later(rows, func(h *historyRow) string { return owner(h.r) }),
	}
}

// source returns a source of a reconciler, or the zero one.
func source(r *schema.Reconciler, i int) schema.Source {
	if i >= len(r.Sources) {
		return schema.Source{}
	}
	return r.Sources[i]
}

// nth returns an item of a list, or "".
func nth(list []string, i int) string {
	if i >= len(list) {
		return ""
	}
	return list[i]
}

// storedSource is a source with its revisions, as the JSON column sources has
// them.
type storedSource struct {
	schema.Source
	Attempted string `json:"attempted,omitempty"`
	Applied   string `json:"applied,omitempty"`
	Origin    string `json:"origin,omitempty"`
}

// severalSources returns all sources as JSON where the columns beside it do
// not hold them all: one source fits there.
func severalSources(r *schema.Reconciler) string {
	if len(r.Sources) == 1 {
		return ""
	}
	n := max(len(r.Sources), len(r.Attempted), len(r.Applied), len(r.Origin))
	if n == 0 {
		return ""
	}
	all := make([]storedSource, n)
	for i := range all {
		all[i] = storedSource{Source: source(r, i), Attempted: nth(r.Attempted, i), Applied: nth(r.Applied, i), Origin: nth(r.Origin, i)}
	}
	return toJSON(all)
}

// toJSON writes what holds nothing but texts, numbers and lists.
func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// mainSource returns the index of the source that stands for a reconciler
// where there is room for one: the first Git one, else the first.
func mainSource(r *schema.Reconciler) int {
	for i := range r.Sources {
		if r.Sources[i].Type == schema.SourceGit {
			return i
		}
	}
	return 0
}

func owner(r *schema.Reconciler) string {
	if r.Owner == nil {
		return ""
	}
	return r.Owner.String()
}

// reportRow is a row of the table reports.
type reportRow struct {
	cluster  string
	r        *schema.Report
	received time.Time
}

func reportRows(batch []fold.Changes) []reportRow {
	var rows []reportRow
	for i := range batch {
		if c := &batch[i]; c.Report != nil {
			rows = append(rows, reportRow{cluster: c.Cluster, r: c.Report, received: c.ReceivedAt})
		}
	}
	return rows
}

func reportColumns(rows []reportRow) columnsOf {
	return columnsOf{
		"cluster":       later(rows, func(r *reportRow) string { return r.cluster }),
		"epoch":         later(rows, func(r *reportRow) uint32 { return uint32(r.r.Epoch) }), //nolint:gosec // at most MaxEpoch
		"sequence":      later(rows, func(r *reportRow) uint64 { return r.r.Sequence }),
		"received_at":   later(rows, func(r *reportRow) int64 { return stored(r.received) }),
		"observed_at":   later(rows, func(r *reportRow) int64 { return stored(r.r.ObservedAt) }),
		"mode":          later(rows, func(r *reportRow) string { return string(r.r.Mode) }),
		"reconcilers":   later(rows, func(r *reportRow) uint32 { return uint32(len(r.r.Reconcilers)) }), //nolint:gosec // bounded by the body
		"removed":       later(rows, func(r *reportRow) uint32 { return uint32(len(r.r.Removed)) }),     //nolint:gosec // bounded by the body
		"agent_version": later(rows, func(r *reportRow) string { return r.r.Agent.Version }),
	}
}

package store

import (
	"time"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
)

// The kinds of row in the table current.
const (
	rowReconciler   = "reconciler"
	rowSubscription = "subscription"
	rowCluster      = "cluster"
)

// currentRow is a row of the table current: its key, and what its kind of row
// has. A row that only deletes has no more than the key.
type currentRow struct {
	row      string
	endpoint schema.Endpoint
	ref      schema.ObjectRef
	version  uint64
	deleted  bool
	ch       *fold.Changes
	// u is set for a reconciler and a subscription. source is its source, nth
	// the place of a subscription's endpoint among the reconciler's.
	u           *fold.Upsert
	source, nth int
}

func currentRows(batch []fold.Changes) []currentRow {
	n := 0
	for i := range batch {
		n += 1 + 2*len(batch[i].Upserts) + 2*len(batch[i].Removals)
	}
	rows := make([]currentRow, 0, n)
	for i := range batch {
		if !batch[i].Late {
			rows = appendCurrent(rows, &batch[i])
		}
	}
	return rows
}

func appendCurrent(rows []currentRow, ch *fold.Changes) []currentRow {
	version := ch.Position.Version()
	subscription := func(e schema.Endpoint, ref schema.ObjectRef) currentRow {
		return currentRow{row: rowSubscription, endpoint: e, ref: ref, version: version, ch: ch}
	}
	for i := range ch.Upserts {
		u := &ch.Upserts[i]
		ref := u.Reconciler.Ref()
		rows = append(rows, currentRow{row: rowReconciler, ref: ref, version: version, ch: ch, u: u, source: mainSource(u.Reconciler)})
		for j, h := range u.Entry.Endpoints {
			row := subscription(h.Value(), ref)
			row.u, row.source, row.nth = u, u.Index[j], j
			rows = append(rows, row)
		}
		for _, left := range u.Left {
			row := subscription(left.Value(), ref)
			row.deleted = true
			rows = append(rows, row)
		}
	}
	for _, gone := range ch.Removals {
		rows = append(rows, currentRow{row: rowReconciler, ref: gone.Ref, version: version, deleted: true, ch: ch})
		for _, left := range gone.Endpoints {
			row := subscription(left.Value(), gone.Ref)
			row.deleted = true
			rows = append(rows, row)
		}
	}
	return append(rows, currentRow{row: rowCluster, version: version, ch: ch})
}

// noReconciler and noEntry stand in rows that have none.
var (
	noReconciler = &schema.Reconciler{}
	noEntry      = &fold.Entry{}
)

func (c *currentRow) reconciler() *schema.Reconciler {
	if c.u == nil {
		return noReconciler
	}
	return c.u.Reconciler
}

func (c *currentRow) entry() *fold.Entry {
	if c.u == nil {
		return noEntry
	}
	return &c.u.Entry
}

// whole is the reconciler in its own row, and nothing in others.
func (c *currentRow) whole() *schema.Reconciler {
	if c.row != rowReconciler {
		return noReconciler
	}
	return c.reconciler()
}

// wholeEntry is the entry in the reconciler's own row, and nothing in others.
func (c *currentRow) wholeEntry() *fold.Entry {
	if c.row != rowReconciler {
		return noEntry
	}
	return c.entry()
}

func (c *currentRow) observed() time.Time {
	switch {
	case c.u != nil && !c.u.Reconciler.ObservedAt.IsZero():
		return c.u.Reconciler.ObservedAt
	case c.ch.Report != nil:
		return c.ch.Report.ObservedAt
	}
	return c.ch.ReceivedAt
}

func (c *currentRow) destination() string {
	if c.u == nil {
		return ""
	}
	return c.u.Reconciler.Destination(c.ch.Cluster)
}

// message is what people read, or what a gate shows.
func (c *currentRow) message() string {
	if c.row == rowSubscription && c.u != nil {
		return c.u.GateMessage()
	}
	return c.reconciler().Message
}

func (c *currentRow) agingSince() time.Time { return c.entry().Latch.AgesSince() }

func (c *currentRow) digest() string {
	if c.row != rowReconciler || c.u == nil {
		return ""
	}
	return string(c.u.Entry.Digest[:])
}

// streamJSON is where a cluster's stream stands, beside its version.
type streamJSON struct {
	Digest   string        `json:"digest"`
	Agent    string        `json:"agent,omitempty"`
	Unlisted []string      `json:"unlisted,omitempty"`
	Snapshot *snapshotJSON `json:"snapshot,omitempty"`
}

type snapshotJSON struct {
	Start uint64   `json:"start"`
	Part  int      `json:"part"`
	Parts int      `json:"parts"`
	Kinds []string `json:"kinds"`
}

// troubleJSON is what keeps a cluster's reconcilers from being compliant
// beside what they say themselves.
type troubleJSON struct {
	Unlisted []string             `json:"unlisted,omitempty"`
	Blocked  []compliance.Blocked `json:"blocked,omitempty"`
}

func (c *currentRow) stream() string {
	if c.row != rowCluster {
		return ""
	}
	p := &c.ch.Position
	j := streamJSON{Digest: p.Digest.String(), Agent: p.AgentVersion, Unlisted: p.UnlistedKinds}
	if s := p.Snapshot; s.Parts > 0 {
		j.Snapshot = &snapshotJSON{Start: s.Start, Part: s.Part, Parts: s.Parts, Kinds: s.Kinds}
	}
	return toJSON(j)
}

func (c *currentRow) trouble() string {
	if c.row != rowCluster || len(c.ch.Position.UnlistedKinds) == 0 && len(c.ch.Blocked) == 0 {
		return ""
	}
	return toJSON(troubleJSON{Unlisted: c.ch.Position.UnlistedKinds, Blocked: c.ch.Blocked})
}

func currentColumns(rows []currentRow) columnsOf {
	return columnsOf{
		"row":              later(rows, func(c *currentRow) string { return c.row }),
		"repo":             later(rows, func(c *currentRow) string { return c.endpoint.Repo }),
		"ref":              later(rows, func(c *currentRow) string { return c.endpoint.Ref }),
		"path":             later(rows, func(c *currentRow) string { return c.endpoint.Path }),
		"cluster":          later(rows, func(c *currentRow) string { return c.ch.Cluster }),
		"kind":             later(rows, func(c *currentRow) string { return c.ref.Kind }),
		"namespace":        later(rows, func(c *currentRow) string { return c.ref.Namespace }),
		"name":             later(rows, func(c *currentRow) string { return c.ref.Name }),
		"version":          later(rows, func(c *currentRow) uint64 { return c.version }),
		"deleted":          later(rows, func(c *currentRow) uint8 { return flag(c.deleted) }),
		"received_at":      later(rows, func(c *currentRow) int64 { return stored(c.ch.ReceivedAt) }),
		"observed_at":      later(rows, func(c *currentRow) int64 { return stored(c.observed()) }),
		"destination":      later(rows, func(c *currentRow) string { return c.destination() }),
		"status":           later(rows, func(c *currentRow) string { return string(c.reconciler().Status) }),
		"reason":           later(rows, func(c *currentRow) string { return c.reconciler().Reason }),
		"message":          later(rows, func(c *currentRow) string { return c.message() }),
		"attempted":        later(rows, func(c *currentRow) string { return nth(c.reconciler().Attempted, c.source) }),
		"applied":          later(rows, func(c *currentRow) string { return nth(c.reconciler().Applied, c.source) }),
		"attempted_commit": later(rows, func(c *currentRow) string { return c.reconciler().AttemptedCommit(c.source) }),
		"applied_commit":   later(rows, func(c *currentRow) string { return c.reconciler().AppliedCommit(c.source) }),
		"source_error":     later(rows, func(c *currentRow) string { return c.reconciler().SourceError }),
		"owner":            later(rows, func(c *currentRow) string { return owner(c.reconciler()) }),
		"aging_since":      later(rows, func(c *currentRow) int64 { return stored(c.agingSince()) }),
		"latch":            later(rows, func(c *currentRow) string { return c.entry().Latch.String() }),
		"nth":              later(rows, func(c *currentRow) uint8 { return uint8(c.nth) }), //nolint:gosec // at most MaxSources
		"source_type":      later(rows, func(c *currentRow) string { return string(source(c.whole(), c.source).Type) }),
		"source_url":       later(rows, func(c *currentRow) string { return source(c.whole(), c.source).URL }),
		"source_ref":       later(rows, func(c *currentRow) string { return source(c.whole(), c.source).Ref }),
		"source_path":      later(rows, func(c *currentRow) string { return source(c.whole(), c.source).Path }),
		"sources":          later(rows, func(c *currentRow) string { return severalSources(c.whole()) }),
		"origin":           later(rows, func(c *currentRow) string { return nth(c.whole().Origin, c.source) }),
		"source_revision":  later(rows, func(c *currentRow) string { return c.whole().SourceRevision }),
		"since":            later(rows, func(c *currentRow) int64 { return stored(c.wholeEntry().Since) }),
		"health":           later(rows, func(c *currentRow) string { return c.whole().Health }),
		"suspended":        later(rows, func(c *currentRow) uint8 { return flag(c.whole().Suspended) }),
		"drifted":          later(rows, func(c *currentRow) uint8 { return flag(c.whole().Drifted) }),
		"settled":          later(rows, func(c *currentRow) uint8 { return flag(c.wholeEntry().Settled) }),
		"digest":           later(rows, func(c *currentRow) string { return c.digest() }),
		"stream":           later(rows, func(c *currentRow) string { return c.stream() }),
		"trouble":          later(rows, func(c *currentRow) string { return c.trouble() }),
	}
}

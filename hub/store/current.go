package store

import (
	"time"

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
		endpoints, index := fold.Endpoints(u.Reconciler)
		for j, h := range endpoints {
			row := subscription(h.Value(), ref)
			row.u, row.source, row.nth = u, index[j], j
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
	noPosition   = &fold.Position{}
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

func (c *currentRow) position() *fold.Position {
	if c.row != rowCluster {
		return noPosition
	}
	return &c.ch.Position
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
	return destination(c.ch.Cluster, c.u.Reconciler)
}

func (c *currentRow) agingSince() time.Time {
	if l := &c.entry().Latch; l.Aging {
		return l.AgingSince
	}
	return time.Time{}
}

func (c *currentRow) digest() string {
	if c.row != rowReconciler || c.u == nil {
		return ""
	}
	return string(c.u.Entry.Digest[:])
}

func (c *currentRow) stateDigest() string {
	if c.row != rowCluster {
		return ""
	}
	return string(c.ch.Position.Digest[:])
}

func (c *currentRow) latch() string {
	if c.row != rowReconciler {
		return ""
	}
	return c.entry().Latch.String()
}

func (c *currentRow) blocked() string {
	if c.row != rowCluster {
		return ""
	}
	return fold.FormatBlocked(c.ch.Blocked)
}

// shownRevision is the revision that people see: the attempted one, else the
// applied one.
func shownRevision(r *schema.Reconciler, i int) string {
	if i < len(r.Attempted) && r.Attempted[i] != "" {
		return r.Attempted[i]
	}
	if i < len(r.Applied) {
		return r.Applied[i]
	}
	return ""
}

// runSet is the runs of one subscription as the columns have them.
type runSet struct {
	commits         []string
	success, steady []time.Time
	failed          []uint8
}

func (c *currentRow) runs() runSet {
	var set runSet
	if c.row != rowSubscription {
		return set
	}
	for _, run := range c.entry().Latch.Runs {
		all := run.Commits()
		if c.nth >= len(all) {
			continue
		}
		set.commits, set.failed = append(set.commits, all[c.nth]), append(set.failed, flag(run.Failed))
		set.success, set.steady = append(set.success, orEpoch(run.SuccessAt)), append(set.steady, orEpoch(run.SteadyAt))
	}
	return set
}

func orEpoch(t time.Time) time.Time {
	if t.IsZero() {
		return epoch
	}
	return t
}

func currentColumns(rows []currentRow) columnsOf {
	runs := pick(rows, func(c *currentRow) runSet { return c.runs() })
	sets := pick(rows, func(c *currentRow) sourceSet { return newSourceSet(c.whole().Sources) })
	c := columnsOf{
		"row":              pick(rows, func(c *currentRow) string { return c.row }),
		"repo":             pick(rows, func(c *currentRow) string { return c.endpoint.Repo }),
		"ref":              pick(rows, func(c *currentRow) string { return c.endpoint.Ref }),
		"path":             pick(rows, func(c *currentRow) string { return c.endpoint.Path }),
		"cluster":          pick(rows, func(c *currentRow) string { return c.ch.Cluster }),
		"kind":             pick(rows, func(c *currentRow) string { return c.ref.Kind }),
		"namespace":        pick(rows, func(c *currentRow) string { return c.ref.Namespace }),
		"name":             pick(rows, func(c *currentRow) string { return c.ref.Name }),
		"version":          pick(rows, func(c *currentRow) uint64 { return c.version }),
		"deleted":          pick(rows, func(c *currentRow) uint8 { return flag(c.deleted) }),
		"received_at":      pick(rows, func(c *currentRow) int64 { return stored(c.ch.ReceivedAt) }),
		"observed_at":      pick(rows, func(c *currentRow) int64 { return stored(c.observed()) }),
		"destination":      pick(rows, func(c *currentRow) string { return c.destination() }),
		"status":           pick(rows, func(c *currentRow) string { return string(c.reconciler().Status) }),
		"reason":           pick(rows, func(c *currentRow) string { return c.reconciler().Reason }),
		"message":          pick(rows, func(c *currentRow) string { return c.reconciler().Message }),
		"since":            pick(rows, func(c *currentRow) int64 { return stored(c.entry().Since) }),
		"applied_commit":   pick(rows, func(c *currentRow) string { return c.reconciler().AppliedCommit(c.source) }),
		"attempted_commit": pick(rows, func(c *currentRow) string { return c.reconciler().AttemptedCommit(c.source) }),
		"revision":         pick(rows, func(c *currentRow) string { return shownRevision(c.reconciler(), c.source) }),
		"source_error":     pick(rows, func(c *currentRow) string { return c.reconciler().SourceError }),
		"drifted":          pick(rows, func(c *currentRow) uint8 { return flag(c.reconciler().Drifted) }),
		"owner_kind":       pick(rows, func(c *currentRow) string { return ownerOf(c.reconciler()).Kind }),
		"owner_namespace":  pick(rows, func(c *currentRow) string { return ownerOf(c.reconciler()).Namespace }),
		"owner_name":       pick(rows, func(c *currentRow) string { return ownerOf(c.reconciler()).Name }),
		"settled":          pick(rows, func(c *currentRow) uint8 { return flag(c.entry().Settled) }),
		"aging_since":      pick(rows, func(c *currentRow) int64 { return stored(c.agingSince()) }),
		"run_commits":      pick(runs, func(r *runSet) []string { return r.commits }),
		"run_success":      pick(runs, func(r *runSet) []time.Time { return r.success }),
		"run_steady":       pick(runs, func(r *runSet) []time.Time { return r.steady }),
		"run_failed":       pick(runs, func(r *runSet) []uint8 { return r.failed }),
		"attempted":        pick(rows, func(c *currentRow) []string { return c.whole().Attempted }),
		"applied":          pick(rows, func(c *currentRow) []string { return c.whole().Applied }),
		"origin":           pick(rows, func(c *currentRow) []string { return c.whole().Origin }),
		"source_revision":  pick(rows, func(c *currentRow) string { return c.whole().SourceRevision }),
		"health":           pick(rows, func(c *currentRow) string { return c.whole().Health }),
		"suspended":        pick(rows, func(c *currentRow) uint8 { return flag(c.whole().Suspended) }),
		"digest":           pick(rows, func(c *currentRow) string { return c.digest() }),
		"latch":            pick(rows, func(c *currentRow) string { return c.latch() }),
		"state_digest":     pick(rows, func(c *currentRow) string { return c.stateDigest() }),
		"unlisted_kinds":   pick(rows, func(c *currentRow) []string { return c.position().UnlistedKinds }),
		"snapshot_start":   pick(rows, func(c *currentRow) uint64 { return c.position().Snapshot.Start }),
		"snapshot_part":    pick(rows, func(c *currentRow) uint32 { return uint32(c.position().Snapshot.Part) }),  //nolint:gosec // at most MaxParts
		"snapshot_parts":   pick(rows, func(c *currentRow) uint32 { return uint32(c.position().Snapshot.Parts) }), //nolint:gosec // at most MaxParts
		"snapshot_kinds":   pick(rows, func(c *currentRow) []string { return c.position().Snapshot.Kinds }),
		"agent_version":    pick(rows, func(c *currentRow) string { return c.position().AgentVersion }),
		"blocked":          pick(rows, func(c *currentRow) string { return c.blocked() }),
	}
	sourceColumns(c, sets, func(s *sourceSet) sourceSet { return *s })
	return c
}

package overview

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// History lists reported changes, the newest first. A row has the names of its
// reconciler's main source.
func (v *View) History(ctx context.Context, f schema.HistoryFilter, p schema.Page) (rows []schema.HistoryEntry, next []string, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	q := record.HistoryQuery{Status: f.Status, From: f.From, To: f.To, Limit: p.Limit + 1}
	if len(p.After) > 0 {
		if q.After, err = historyKey(p.After); err != nil {
			return nil, nil, err
		}
	}
	s := v.look()
	s.narrowHistory(&f.StateFilter, &q)
	e := entries{View: v, sight: s, filter: &f.StateFilter}
	for range mostRounds {
		found, err := v.opts.Past.History(ctx, q)
		if err != nil {
			return nil, nil, failed(ctx, err)
		}
		for i := range found {
			e.add(&found[i])
			if len(e.rows) == p.Limit {
				if i < len(found)-1 || len(found) == q.Limit {
					next = historyCursor(&found[i].HistoryKey)
				}
				return v.historyPage(ctx, &e, next)
			}
		}
		if len(found) < q.Limit {
			return v.historyPage(ctx, &e, nil)
		}
		q.After, q.Limit = &found[len(found)-1].HistoryKey, max(q.Limit, schema.MaxPage)
	}
	return v.historyPage(ctx, &e, historyCursor(q.After))
}

// narrowHistory narrows a query so that no row is missing that matches the
// filter, and not many come that do not.
func (s *sight) narrowHistory(f *schema.StateFilter, q *record.HistoryQuery) {
	environment := ""
	switch {
	case byName(f):
		q.Under = s.endpoints(s.index.Find(*f))
	case f.Environment != "" && f.Cluster == "":
		environment = f.Environment
		if serving := s.index.Serving(f.Environment); len(serving) > 0 {
			q.Under, q.Either = serving, true
		}
	}
	q.Destinations = sortedNames(s.places(environment, f.ClusterType, f.Cluster, true))
}

// entries are rows of the history in the making.
type entries struct {
	*View
	*sight
	filter *schema.StateFilter
	rows   []entry
}

// entry is a row of the history, with what it was made of.
type entry struct {
	schema.HistoryEntry
	from  *record.HistoryRow
	named named
}

// add makes a row of what was stored, if it is asked for.
func (e *entries) add(h *record.HistoryRow) {
	n := e.name(h.Endpoint)
	made := entry{from: h, named: n}
	made.Change, made.ObservedAt, made.ReceivedAt = h.Change, h.ObservedAt, h.ReceivedAt
	row := &made.ClusterState
	*row = schema.ClusterState{
		Cluster: h.Destination, Reconciler: h.HistoryKey.Ref.String(), Repo: h.URL, Ref: h.GitRef, Path: h.Path,
		Commit: h.Commit, AttemptedCommit: h.Attempted, Status: h.Status, Reason: h.Reason, Message: h.Message, Drifted: h.Drifted,
		Since: h.ObservedAt, LastSeen: e.members[h.Cluster].LastSeen,
	}
	if h.URL == "" { // a removal names no source
		row.Repo, row.Ref, row.Path = h.Endpoint.Repo, h.Endpoint.Ref, h.Endpoint.Path
	}
	if row.Status == "" {
		row.Status = schema.StatusUnknown
	}
	row.Environment, row.ClusterType = n.place(e.members[h.Destination].Memberships)
	e.entitle(row, &n, "")
	if matches(e.filter, row) {
		e.rows = append(e.rows, made)
	}
}

// historyPage finishes the rows of a page: what they came from.
func (v *View) historyPage(ctx context.Context, e *entries, next []string) ([]schema.HistoryEntry, []string, error) {
	before, err := e.successes(ctx)
	if err != nil {
		return nil, nil, failed(ctx, err)
	}
	rows := make([]schema.HistoryEntry, len(e.rows))
	for i := range e.rows {
		made := &e.rows[i]
		made.trace(e, before[record.Reconciler{Cluster: made.from.Cluster, Ref: made.from.HistoryKey.Ref}])
		rows[i] = made.HistoryEntry
	}
	return rows, next, nil
}

// successes reads what the rows' reconcilers ran with success, ever.
func (e *entries) successes(ctx context.Context) (map[record.Reconciler][]record.Success, error) {
	who := map[record.Reconciler]bool{}
	for i := range e.rows {
		if r := &e.rows[i]; r.Change == schema.ChangeReported && r.subject() != "" {
			who[record.Reconciler{Cluster: r.from.Cluster, Ref: r.from.HistoryKey.Ref}] = true
		}
	}
	return e.opts.Past.Successes(ctx, slices.Collect(maps.Keys(who)))
}

// subject is the commit that a row is about: what was applied with success, else
// what was tried.
func (e *entry) subject() string {
	if e.Status != schema.StatusSuccess && e.AttemptedCommit != "" {
		return e.AttemptedCommit
	}
	return e.Commit
}

// trace says how a row follows from what its reconciler ran before on the same
// target, or from the same endpoint where that belongs to none.
func (e *entry) trace(s *entries, all []record.Success) {
	repo, subject := s.repo(e.from.Endpoint.Repo, e.Repo), e.subject()
	e.CommitURL = s.opts.Links.Commit(repo, subject)
	if e.Change != schema.ChangeReported || subject == "" {
		return
	}
	var versions []string // of the runs before, on this target
	previous, began := "", false
	for i := range all {
		ran := &all[i]
		if !e.sameTarget(s, ran.Endpoint) {
			continue
		}
		if !ran.Before(e.from.Epoch, e.from.Sequence) {
			began = ran.Epoch == e.from.Epoch && ran.Sequence == e.from.Sequence
			break
		}
		versions = append(versions, s.version(&e.named, ran.Commit))
		if ran.Commit != subject {
			previous = ran.Commit
		}
	}
	e.CompareURL = s.opts.Links.Compare(repo, previous, subject)
	if n := len(versions); began && e.Status == schema.StatusSuccess && n > 0 {
		e.Rollback = versions[n-1] != e.Version && slices.Contains(versions[:n-1], e.Version)
	}
}

func (e *entry) sameTarget(s *entries, at schema.Endpoint) bool {
	if at == e.from.Endpoint || !e.named.known {
		return at == e.from.Endpoint
	}
	t, ok := s.index.At(at)
	return ok && names.Compare(t.Target, e.named.target.Target) == 0
}

// repo returns a repository's address for links: as it was configured, else as
// it was reported.
func (s *sight) repo(canonical, reported string) string {
	if written, ok := s.index.Repo(canonical); ok {
		return written
	}
	return reported
}

// historyCursor writes a row's key as a page's, historyKey reads it.
func historyCursor(k *record.HistoryKey) []string {
	return []string{
		strconv.FormatInt(k.ReceivedAt.UnixMilli(), 10), k.Endpoint.Repo, k.Endpoint.Ref, k.Endpoint.Path, k.Cluster,
		k.Ref.Kind, k.Ref.Namespace, k.Ref.Name, strconv.FormatUint(k.Epoch, 10), strconv.FormatUint(k.Sequence, 10),
	}
}

func historyKey(after []string) (*record.HistoryKey, error) {
	if len(after) != 10 {
		return nil, badCursor()
	}
	k := &record.HistoryKey{
		Endpoint: schema.Endpoint{Repo: after[1], Ref: after[2], Path: after[3]}, Cluster: after[4],
		Ref: schema.ObjectRef{Kind: after[5], Namespace: after[6], Name: after[7]},
	}
	ms, err := strconv.ParseInt(after[0], 10, 64)
	var errEpoch, errSequence error
	k.Epoch, errEpoch = strconv.ParseUint(after[8], 10, 32)
	k.Sequence, errSequence = strconv.ParseUint(after[9], 10, 64)
	k.ReceivedAt = time.UnixMilli(ms).UTC()
	if err != nil || errEpoch != nil || errSequence != nil || ms < 0 || k.ReceivedAt.Year() > 9999 {
		return nil, badCursor()
	}
	return k, nil
}

package overview

import (
	"context"
	"time"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// mostOff bounds what a query names of what is behind. Where more is, nearly
// everything is, and is looked at.
const mostOff = 20_000

// Drift lists reconcilers that do not run what is desired, and those that were
// changed live.
func (v *View) Drift(ctx context.Context, f schema.DriftFilter, p schema.Page) (rows []schema.Drift, next []string, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	s := v.look()
	q, err := v.narrow(ctx, s, &f.StateFilter)
	if err != nil {
		return nil, nil, failed(ctx, err)
	}
	l := lags{View: v, sight: s, steps: mostSteps, known: map[record.Running]lag{}}
	if !f.All {
		if q.Off, err = l.off(ctx, q.Under, f.Span); err != nil {
			return nil, nil, failed(ctx, err)
		}
	}
	return pages(ctx, v, s, q, p, func(r *reading) (schema.Drift, bool) {
		row := schema.Drift{ClusterState: r.state()}
		behind := l.of(record.Running{Endpoint: r.source.Endpoint, Commit: r.source.Commit})
		row.DesiredVersion, row.DesiredCommit = behind.version, behind.commit
		switch {
		case behind.is:
			row.BehindCommits, row.BehindSeconds = behind.commits, int64(max(0, s.now.Sub(behind.since)/time.Second))
			row.CompareURL = v.opts.Links.Compare(s.repo(r.source.Endpoint.Repo, r.source.URL), row.Commit, behind.commit)
		case !f.All && !row.Drifted:
			return row, false
		}
		asked := behind.is && f.Contains(behind.since) || (row.Drifted || f.All && !behind.is) && f.Contains(row.Since)
		return row, asked && matches(&f.StateFilter, &row.ClusterState)
	})
}

// lag is how far something that runs is behind what is desired.
type lag struct {
	is bool
	// version and commit are what is desired, "" where nothing is known.
	version, commit string
	// commits is -1 where it cannot be told.
	commits int64
	// since is when the oldest change that is missing was committed.
	since time.Time
}

// lags remembers each lag of one question: a fleet runs few distinct things.
type lags struct {
	*View
	*sight
	known map[record.Running]lag
	// steps is how many commits may still be looked at.
	steps int
}

// Bounds of looking for the oldest change that is missing: beyond them, the
// newest counts.
const (
	mostSteps    = 50_000
	mostStepsFor = 1_000
)

// off returns what is behind, of what runs; nil where that is too much to name.
func (l *lags) off(ctx context.Context, under []schema.Endpoint, span schema.Span) ([]record.Running, error) {
	groups, err := l.opts.Current.Groups(ctx, record.GroupQuery{Under: under, Most: mostGroups})
	if err != nil {
		return nil, err
	}
	off := []record.Running{}
	seen := map[record.Running]bool{}
	for i := range groups {
		r := groups[i].Running
		if seen[r] {
			continue
		}
		seen[r] = true
		if behind := l.of(r); behind.is && span.Contains(behind.since) {
			off = append(off, r)
		}
	}
	if len(off) > mostOff {
		return nil, nil
	}
	return off, nil
}

func (l *lags) of(r record.Running) lag {
	found, ok := l.known[r]
	if !ok {
		found = l.find(r)
		l.known[r] = found
	}
	return found
}

func (l *lags) find(r record.Running) lag {
	if t, ok := l.index.At(r.Endpoint); ok {
		if v, at, ok := l.index.Scheduled(t); ok {
			return l.behindVersion(r, &t, v, at)
		}
	}
	head, ok := l.index.Head(r.Endpoint.Repo, r.Endpoint.Ref)
	if !ok {
		return lag{}
	}
	return l.behindHead(r, head)
}

// behindVersion compares with the newest assignment of a target.
func (l *lags) behindVersion(r record.Running, t *names.Target, desired names.Version, at names.Point) lag {
	found := lag{version: desired.Version, commit: at.Commit, commits: -1, since: at.CommittedAt}
	if found.version == "" {
		found.version = at.Commit
	}
	if runs, _, ok := l.index.VersionAt(*t, r.Commit); ok && sameVersion(&runs, &desired) {
		return found
	}
	if here, ok := l.index.Place(r.Endpoint.Repo, r.Endpoint.Ref, r.Commit); ok && here.Chain == at.Chain {
		found.commits = at.Position - here.Position
		if found.commits <= 0 {
			return found
		}
	}
	found.is = true
	if oldest, ok := l.index.Pending(*t, r.Commit); ok {
		found.since = oldest.CommittedAt
	}
	return found
}

// sameVersion leaves out when it was built: the same may be said of it twice.
func sameVersion(a, b *names.Version) bool {
	return a.Version == b.Version && a.Build == b.Build && a.SourceCommit == b.SourceCommit
}

// behindHead compares with the newest commit of a ref, where no descriptor says
// what is desired: a commit that left the folder as it was is nothing to wait for.
func (l *lags) behindHead(r record.Running, head names.Point) lag {
	found := lag{version: head.Commit, commit: head.Commit, commits: -1, since: head.CommittedAt}
	graph := l.opts.Graph(r.Endpoint.Repo)
	if r.Commit == head.Commit || r.Commit != "" && compliance.SameFolder(graph, r.Commit, head.Commit, r.Endpoint.Path) {
		return found
	}
	found.is = true
	if here, ok := l.index.Place(r.Endpoint.Repo, r.Endpoint.Ref, r.Commit); ok && here.Chain == head.Chain {
		found.commits = max(1, head.Position-here.Position)
		found.since = l.oldest(r.Endpoint, graph, here, head).CommittedAt
	}
	return found
}

// oldest returns the oldest commit between two points that changed the folder.
func (l *lags) oldest(e schema.Endpoint, graph compliance.Graph, here, head names.Point) names.Point {
	oldest, at := head, head
	for range mostStepsFor {
		parent, ok := graph.FirstParent(at.Commit)
		if !ok || l.steps <= 0 {
			break
		}
		l.steps--
		if same, known := graph.SameTrees(at.Commit, parent, []string{e.Path}); !same || !known {
			oldest = at
		}
		before, ok := l.index.Place(e.Repo, e.Ref, parent)
		if !ok || before.Position <= here.Position {
			break
		}
		at = before
	}
	return oldest
}

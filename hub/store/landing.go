package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// Landing looks up an endpoint. A reconciler of the same repository and ref
// that is outside the path is in it only if it is owned and not simply
// compliant at the commit: it may be a child.
func (s *Store) Landing(ctx context.Context, e schema.Endpoint, commit string) (record.Landing, error) {
	l := record.Landing{Clusters: map[string]*compliance.Cluster{}}
	if err := s.subscribers(ctx, e, commit, &l); err != nil {
		return l, err
	}
	if err := s.links(ctx, &l); err != nil {
		return l, err
	}
	// After the subscribers: what a child's owner said is never newer here than
	// what the child said.
	return l, s.troubles(ctx, &l)
}

func (s *Store) subscribers(ctx context.Context, e schema.Endpoint, commit string, l *record.Landing) error {
	within := ""
	if e.Path != "" {
		within = ` AND (path = {path:String} OR startsWith(path, {below:String})
			OR owner != '' AND NOT (status = 'success' AND applied_commit = {commit:String}))`
	}
	// Clusters of one rollout say the same: what they share travels once.
	var groups []group
	err := s.query(ctx, "subscribers", `
		SELECT kind, namespace, name, path, status, reason, message, source_error, applied_commit, attempted_commit,
		       if(attempted != '', attempted, applied) AS revision, owner, aging_since, nth,
		       groupArray(cluster), groupArray(destination), groupArray(latch)
		FROM {db}.current FINAL
		WHERE row = 'subscription' AND repo = {repo:String} AND ref = {ref:String}`+within+`
		GROUP BY kind, namespace, name, path, status, reason, message, source_error, applied_commit, attempted_commit, revision, owner, aging_since, nth`,
		func(r driver.Rows) error {
			var g group
			var status string
			err := r.Scan(&g.sub.Ref.Kind, &g.sub.Ref.Namespace, &g.sub.Ref.Name, &g.src.Path, &status, &g.sub.Reason, &g.sub.Message, &g.sub.SourceError,
				&g.src.Applied, &g.src.Attempted, &g.sub.Revision, &g.owner, &g.aging, &g.nth, &g.clusters, &g.destinations, &g.latches)
			g.sub.Status = schema.Status(status)
			groups = append(groups, g)
			return err
		}, named("repo", e.Repo), named("ref", e.Ref), named("path", e.Path), named("below", below(e.Path)), named("commit", commit))
	if err != nil {
		return err
	}
	return gather(l, e, groups)
}

// group is the subscriptions of several clusters that differ in nothing but
// cluster, destination and latch.
type group struct {
	sub                             compliance.Subscriber
	src                             compliance.Source
	owner                           string
	aging                           time.Time
	nth                             uint8
	clusters, destinations, latches []string
}

// gather makes subscribers of groups: several paths of one reconciler are
// sources of one.
func gather(l *record.Landing, e schema.Endpoint, groups []group) error {
	n, paths := 0, map[string]struct{}{}
	for i := range groups {
		n += len(groups[i].clusters)
		paths[groups[i].src.Path] = struct{}{}
	}
	// By path, so that the same rows always make the same subscribers.
	slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.src.Path, b.src.Path) })
	l.Subscribers = make([]compliance.Subscriber, 0, n)
	sources := make([]compliance.Source, n) // one allocation; each subscriber has its own place in it
	index := map[objectKey]int{}
	for i := range groups {
		g := &groups[i]
		asked := schema.PathWithin(e.Path, g.src.Path)
		g.sub.AgingSince, g.sub.Asked = restored(g.aging), asked
		if at := schema.ParseObjectRef(g.owner); !at.IsZero() {
			g.sub.Owner = &at
		}
		for j, cluster := range g.clusters {
			src := g.src
			var err error
			if src.Runs, err = runs(g.latches[j], int(g.nth)); err != nil {
				return err
			}
			if len(paths) > 1 {
				at := objectKey{cluster: cluster, ref: g.sub.Ref}
				if known, ok := index[at]; ok {
					merge(&l.Subscribers[known], src, asked, g.sub.Revision)
					continue
				}
				index[at] = len(l.Subscribers)
			}
			sub := g.sub
			sub.Reporter, sub.DestinationName = reporter(l, cluster), g.destinations[j]
			sources[0] = src
			sub.Sources, sources = sources[:1:1], sources[1:]
			l.Subscribers = append(l.Subscribers, sub)
		}
	}
	return nil
}

// below is what every path below p begins with.
func below(p string) string {
	if p == "" {
		return ""
	}
	return p + "/"
}

// runs returns the runs of a reconciler's nth endpoint.
func runs(latch string, nth int) ([]compliance.Run, error) {
	l, err := fold.ParseLatch(latch)
	if err != nil {
		return nil, err
	}
	found := make([]compliance.Run, 0, len(l.Runs))
	for _, r := range l.Runs {
		if commits := r.Commits(); nth < len(commits) {
			found = append(found, compliance.Run{Commit: commits[nth], SuccessAt: r.SuccessAt, SteadyAt: r.SteadyAt, Failed: r.Failed})
		}
	}
	return found, nil
}

// merge adds another path of a reconciler that is known. A path that is not
// asked for does not count beside one that is.
func merge(sub *compliance.Subscriber, src compliance.Source, asked bool, revision string) {
	switch {
	case asked == sub.Asked:
		sub.Sources = append(sub.Sources, src)
	case asked:
		sub.Asked, sub.Sources, sub.Revision = true, []compliance.Source{src}, revision
	}
}

func reporter(l *record.Landing, name string) *compliance.Cluster {
	c, ok := l.Clusters[name]
	if !ok {
		c = &compliance.Cluster{Name: name}
		l.Clusters[name] = c
	}
	return c
}

// troubles fills in what the reporting clusters cannot list and whose children
// have not settled.
func (s *Store) troubles(ctx context.Context, l *record.Landing) error {
	return s.query(ctx, "troubles", `
		SELECT cluster, trouble FROM {db}.current FINAL
		WHERE row = 'cluster' AND repo = '' AND ref = '' AND path = '' AND trouble != ''`,
		func(r driver.Rows) error {
			var name, trouble string
			if err := r.Scan(&name, &trouble); err != nil {
				return err
			}
			c, ok := l.Clusters[name]
			if !ok {
				return nil
			}
			var j troubleJSON
			if err := json.Unmarshal([]byte(trouble), &j); err != nil {
				return fmt.Errorf("reading the stored trouble of %s: %w", name, err)
			}
			c.UnlistedKinds, c.Blocked = j.Unlisted, j.Blocked
			return nil
		})
}

// NearMisses looks up who reads the endpoint's repository at another ref, or in
// a folder above its path.
func (s *Store) NearMisses(ctx context.Context, e schema.Endpoint) ([]schema.NearMiss, error) {
	var misses []schema.NearMiss
	above := []string{}
	if e.Path != "" {
		above = append(above, "")
		for i := range e.Path {
			if e.Path[i] == '/' {
				above = append(above, e.Path[:i])
			}
		}
	}
	// By path first: a reconciler above the asked folder is the likeliest miss.
	err := s.query(ctx, "near_misses", `
		SELECT cluster, kind, namespace, name, ref, path FROM
		(
			SELECT cluster, kind, namespace, name, ref, path FROM {db}.current FINAL
			WHERE row = 'subscription' AND repo = {repo:String} AND ref = {ref:String} AND path IN {above:Array(String)}
			ORDER BY path, cluster, kind, namespace, name LIMIT {limit:UInt32}
			UNION ALL
			SELECT cluster, kind, namespace, name, ref, path FROM {db}.current FINAL
			WHERE row = 'subscription' AND repo = {repo:String} AND ref != {ref:String}
			      AND (path = {path:String} OR startsWith(path, {below:String}) OR path IN {above:Array(String)})
			ORDER BY ref, path, cluster, kind, namespace, name LIMIT {limit:UInt32}
		)`,
		func(r driver.Rows) error {
			var m schema.NearMiss
			var ref schema.ObjectRef
			if err := r.Scan(&m.Cluster, &ref.Kind, &ref.Namespace, &ref.Name, &m.Ref, &m.Path); err != nil {
				return err
			}
			m.Reconciler = ref.String()
			switch {
			case m.Ref == e.Ref:
				m.Why = schema.NearParentPath
			case schema.PinnedRef(m.Ref):
				m.Why = schema.NearPinned
			default:
				m.Why = schema.NearOtherRef
			}
			misses = append(misses, m)
			return nil
		}, named("repo", e.Repo), named("ref", e.Ref), named("path", e.Path), named("below", below(e.Path)),
		named("above", above), named("limit", uint32(schema.MaxNearMisses)))
	return misses, err
}

// Progress reads what a gate keeps between questions; zero for the first one.
func (s *Store) Progress(ctx context.Context, e schema.Endpoint, commit, policy string) (compliance.Progress, error) {
	var p compliance.Progress
	var highest uint64
	err := s.query(ctx, "gates", `
		SELECT min(first_asked), max(highest), max(rose_at) FROM {db}.gates
		WHERE repo = {repo:String} AND ref = {ref:String} AND path = {path:String} AND commit = {commit:String} AND policy = {policy:String}
		GROUP BY repo`,
		scanInto(&p.FirstAsked, &highest, &p.RoseAt),
		named("repo", e.Repo), named("ref", e.Ref), named("path", e.Path), named("commit", commit), named("policy", policy))
	p.FirstAsked, p.RoseAt, p.Highest = restored(p.FirstAsked), restored(p.RoseAt), int(highest) // a number of subscribers
	return p, err
}

// PutProgress keeps what a gate needs for the next question.
func (s *Store) PutProgress(ctx context.Context, e schema.Endpoint, commit, policy string, p compliance.Progress, now time.Time) error {
	return s.insert(ctx, "gates", 1, columnsOf{
		"repo": []string{e.Repo}, "ref": []string{e.Ref}, "path": []string{e.Path}, "commit": []string{commit}, "policy": []string{policy},
		"first_asked": []int64{stored(p.FirstAsked)}, "highest": []uint64{uint64(p.Highest)}, //nolint:gosec // a number of subscribers
		"rose_at": []int64{stored(p.RoseAt)}, "touched_at": []int64{stored(now)},
	})
}

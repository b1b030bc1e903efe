package store

import (
	"context"
	"encoding/json"
	"fmt"
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
	return s.query(ctx, "subscribers", `
		SELECT cluster, kind, namespace, name, path, destination, status, reason, message, source_error,
		       applied_commit, attempted_commit, if(attempted != '', attempted, applied), owner, aging_since, latch, nth
		FROM {db}.current FINAL
		WHERE row = 'subscription' AND repo = {repo:String} AND ref = {ref:String}`+within+`
		ORDER BY path, cluster, kind, namespace, name`,
		scanSubscriber(l, e), named("repo", e.Repo), named("ref", e.Ref), named("path", e.Path), named("below", below(e.Path)), named("commit", commit))
}

// below is what every path below p begins with.
func below(p string) string {
	if p == "" {
		return ""
	}
	return p + "/"
}

// scanSubscriber gathers rows into subscribers: several paths of one
// reconciler are sources of one.
func scanSubscriber(l *record.Landing, e schema.Endpoint) func(driver.Rows) error {
	type key struct {
		cluster string
		ref     schema.ObjectRef
	}
	index := map[key]int{}
	return func(r driver.Rows) error {
		var (
			sub                           compliance.Subscriber
			src                           compliance.Source
			cluster, status, owner, latch string
			aging                         time.Time
			nth                           uint8
		)
		err := r.Scan(&cluster, &sub.Ref.Kind, &sub.Ref.Namespace, &sub.Ref.Name, &src.Path, &sub.DestinationName, &status, &sub.Reason,
			&sub.Message, &sub.SourceError, &src.Applied, &src.Attempted, &sub.Revision, &owner, &aging, &latch, &nth)
		if err != nil {
			return err
		}
		if src.Runs, err = runs(latch, int(nth)); err != nil {
			return err
		}
		asked := schema.PathWithin(e.Path, src.Path)
		at := key{cluster: cluster, ref: sub.Ref}
		if i, ok := index[at]; ok {
			merge(&l.Subscribers[i], src, asked, sub.Revision)
			return nil
		}
		sub.Reporter = reporter(l, cluster)
		sub.Status, sub.AgingSince, sub.Asked = schema.Status(status), restored(aging), asked
		sub.Sources = []compliance.Source{src}
		if at := schema.ParseObjectRef(owner); !at.IsZero() {
			sub.Owner = &at
		}
		index[at] = len(l.Subscribers)
		l.Subscribers = append(l.Subscribers, sub)
		return nil
	}
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

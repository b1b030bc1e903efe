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

// Subscriptions looks up who reads a repository and ref, as far as it may count
// for a question about the endpoint at the commit. It reads one part of each
// report or nothing.
func (s *Store) Subscriptions(ctx context.Context, e schema.Endpoint, commit string) ([]*record.Subscription, error) {
	within := ""
	if e.Path != "" {
		within = ` AND (path = {path:String} OR startsWith(path, {below:String})
			OR owner != '' AND NOT (status = 'success' AND applied_commit = {commit:String}))`
	}
	// Clusters of one rollout say the same: what they share travels once.
	var found []*record.Subscription
	var g group
	err := s.query(ctx, "subscribers", `
		SELECT kind, namespace, name, path, status, reason, message, source_error, applied_commit, attempted_commit,
		       if(attempted != '', attempted, applied) AS revision, owner, aging_since, nth,
		       groupArray(cluster), groupArray(destination), groupArray(latch)
		FROM {db}.current FINAL
		WHERE row = 'subscription' AND repo = {repo:String} AND ref = {ref:String}`+within+`
		GROUP BY kind, namespace, name, path, status, reason, message, source_error, applied_commit, attempted_commit, revision, owner, aging_since, nth`,
		func(r driver.Rows) error {
			if err := g.scan(r); err != nil {
				return err
			}
			members, err := g.members()
			found = append(found, members...)
			return err
		}, named("repo", e.Repo), named("ref", e.Ref), named("path", e.Path), named("below", below(e.Path)), named("commit", commit))
	return found, err
}

// SubscriptionsAtMost returns a number that Subscriptions to a repository and
// ref do not exceed: rows that wait for a merge count too.
func (s *Store) SubscriptionsAtMost(ctx context.Context, repo, ref string) (int, error) {
	var n uint64
	err := s.query(ctx, "subscriptions_at_most",
		"SELECT count() FROM {db}.current WHERE row = 'subscription' AND repo = {repo:String} AND ref = {ref:String}",
		scanInto(&n), named("repo", repo), named("ref", ref))
	return int(n), err
}

// group is the subscriptions of several clusters that differ in nothing but
// cluster, destination and latch.
type group struct {
	shared                          record.Subscription
	status, owner                   string
	aging                           time.Time
	nth                             uint8
	clusters, destinations, latches []string
}

func (g *group) scan(r driver.Rows) error {
	s := &g.shared
	return r.Scan(&s.Ref.Kind, &s.Ref.Namespace, &s.Ref.Name, &s.Path, &g.status, &s.Reason, &s.Message, &s.SourceError,
		&s.Applied, &s.Attempted, &s.Revision, &g.owner, &g.aging, &g.nth, &g.clusters, &g.destinations, &g.latches)
}

func (g *group) members() ([]*record.Subscription, error) {
	g.shared.Status, g.shared.Owner, g.shared.AgingSince = schema.Status(g.status), schema.ParseObjectRef(g.owner), restored(g.aging)
	all := make([]record.Subscription, len(g.clusters))
	pointers := make([]*record.Subscription, len(g.clusters))
	for i := range all {
		latch, err := fold.ParseLatch(g.latches[i])
		if err != nil {
			return nil, err
		}
		all[i] = g.shared
		all[i].Cluster, all[i].Destination, all[i].Runs = g.clusters[i], g.destinations[i], latch.RunsAt(int(g.nth))
		pointers[i] = &all[i]
	}
	return pointers, nil
}

// below is what every path below p begins with.
func below(p string) string {
	if p == "" {
		return ""
	}
	return p + "/"
}

// Troubles looks up what clusters cannot list and whose children have not
// settled, by cluster. A look at subscribers must come before: what a child's
// owner said is then never newer than what the child said.
func (s *Store) Troubles(ctx context.Context) (map[string]record.Trouble, error) {
	troubles := map[string]record.Trouble{}
	err := s.query(ctx, "troubles", `
		SELECT cluster, trouble FROM {db}.current FINAL
		WHERE row = 'cluster' AND repo = '' AND ref = '' AND path = '' AND trouble != ''`,
		func(r driver.Rows) error {
			var name, trouble string
			if err := r.Scan(&name, &trouble); err != nil {
				return err
			}
			var j troubleJSON
			if err := json.Unmarshal([]byte(trouble), &j); err != nil {
				return fmt.Errorf("reading the stored trouble of %s: %w", name, err)
			}
			troubles[name] = record.Trouble{UnlistedKinds: j.Unlisted, Blocked: j.Blocked}
			return nil
		})
	return troubles, err
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

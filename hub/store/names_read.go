package store

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// Chains reads how far the chains of all refs are written, by repository, ref
// and number.
func (s *Store) Chains(ctx context.Context) ([]record.Chain, error) {
	var all []record.Chain
	err := s.query(ctx, "chains", "SELECT repo, ref, chain, fork, head, position, basis FROM {db}.refs FINAL ORDER BY repo, ref, chain",
		func(r driver.Rows) error {
			var c record.Chain
			err := r.Scan(&c.Repo, &c.Ref, &c.Number, &c.Fork, &c.Head, &c.Position, &c.Basis)
			all = append(all, c)
			return err
		})
	return all, err
}

// Assignments calls visit with the newest assignments of each target of a ref, no
// more than some of each, by target, chain and position.
func (s *Store) Assignments(ctx context.Context, at record.RefKey, each uint64, visit func(record.Assignment)) error {
	return s.query(ctx, "assignments", `
		SELECT chain, environment, workspace, application, workload, deployment_target, position, commit,
		       workload_version, build, source_repo, source_commit, build_time, file, changed, deleted
		FROM
		(
			SELECT * FROM {db}.assignments FINAL
			WHERE repo = {repo:String} AND ref = {ref:String}
			ORDER BY chain DESC, position DESC
			LIMIT {each:UInt64} BY environment, workspace, application, workload, deployment_target
		)
		ORDER BY environment, workspace, application, workload, deployment_target, chain, position`,
		func(r driver.Rows) error {
			a := record.Assignment{RefKey: at}
			var v names.Version
			var deleted uint8
			err := r.Scan(&a.Chain, &a.Target.Environment, &a.Target.Workspace, &a.Target.Application, &a.Target.Workload, &a.Target.DeploymentTarget,
				&a.Position, &a.Commit, &v.Version, &v.Build, &v.SourceRepo, &v.SourceCommit, &v.BuildTime, &a.File, &a.Changed, &deleted)
			if v.BuildTime = restored(v.BuildTime); deleted == 0 {
				a.Version = &v
			}
			if err == nil {
				visit(a)
			}
			return err
		}, named("repo", at.Repo), named("ref", at.Ref), named("each", each))
}

// Targets reads all deployment targets, also those that are gone.
func (s *Store) Targets(ctx context.Context) ([]record.NamedTarget, error) {
	var all []record.NamedTarget
	err := s.query(ctx, "deployment_targets", `
		SELECT environment, workspace, application, workload, deployment_target, labels, repo, ref, path, url, source, deleted
		FROM {db}.deployment_targets FINAL ORDER BY environment, workspace, application, workload, deployment_target`,
		func(r driver.Rows) error {
			var t record.NamedTarget
			var deleted uint8
			err := r.Scan(&t.Environment, &t.Workspace, &t.Application, &t.Workload, &t.DeploymentTarget,
				&t.Labels, &t.Endpoint.Repo, &t.Endpoint.Ref, &t.Endpoint.Path, &t.URL, &t.Source, &deleted)
			t.Gone = deleted == 1
			all = append(all, t)
			return err
		})
	return all, err
}

// Pushed reads the newest descriptors that were pushed, no more than most, in
// the order in which they came.
func (s *Store) Pushed(ctx context.Context, most uint64) ([]record.Pushed, error) {
	var all []record.Pushed
	err := s.query(ctx, "descriptors", `
		SELECT repo, ref, commit, environment, workspace, application, workload, deployment_target, path, url,
		       workload_version, build, source_repo, source_commit, build_time, received_at
		FROM
		(
			SELECT * FROM {db}.descriptors FINAL ORDER BY received_at DESC LIMIT {most:UInt64}
		)
		ORDER BY received_at, repo, ref, commit, environment, workspace, application, workload, deployment_target`,
		func(r driver.Rows) error {
			var p record.Pushed
			var received time.Time
			t, v := &p.Target, &p.Version
			err := r.Scan(&p.Repo, &p.Ref, &p.Commit, &t.Environment, &t.Workspace, &t.Application, &t.Workload, &t.DeploymentTarget,
				&t.Endpoint.Path, &t.URL, &v.Version, &v.Build, &v.SourceRepo, &v.SourceCommit, &v.BuildTime, &received)
			t.Endpoint = schema.Endpoint{Repo: p.Repo, Ref: p.Ref, Path: t.Endpoint.Path}
			v.BuildTime, p.ReceivedAt = restored(v.BuildTime), received.UTC()
			all = append(all, p)
			return err
		}, named("most", most))
	return all, err
}

// SubscribedRefs reads which refs of which repositories reconcilers read, in
// canonical form.
func (s *Store) SubscribedRefs(ctx context.Context) ([]record.RefKey, error) {
	var all []record.RefKey
	err := s.query(ctx, "subscribed_refs", "SELECT repo, ref FROM {db}.current WHERE row = 'subscription' AND deleted = 0 GROUP BY repo, ref ORDER BY repo, ref LIMIT 100000",
		func(r driver.Rows) error {
			var k record.RefKey
			err := r.Scan(&k.Repo, &k.Ref)
			all = append(all, k)
			return err
		})
	return all, err
}

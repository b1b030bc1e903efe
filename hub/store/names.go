package store

import (
	"context"
	"time"

	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	tables "github.com/landfall-hub/landfall/schema/clickhouse"
)

// What the history of the repositories says. Every row has a key that makes a
// second writing harmless; of two writings the later one holds.

// WriteNames stores rows in an order in which no reader finds a commit without
// its assignments, or a chain that says it is written further than it is.
func (s *Store) WriteNames(ctx context.Context, n record.Names) error {
	now := uint64(time.Now().UnixMicro())
	for _, write := range []func() error{
		func() error {
			return s.insert(ctx, tables.DeploymentTargets, len(n.Targets), targetColumns(n.Targets, now))
		},
		func() error {
			return s.insert(ctx, tables.Assignments, len(n.Assignments), assignmentColumns(n.Assignments, now))
		},
		func() error {
			return s.insert(ctx, tables.Configurations, len(n.Configurations), configurationColumns(n.Configurations, now))
		},
		func() error { return s.insert(ctx, tables.Commits, len(n.Commits), commitColumns(n.Commits, now)) },
		func() error { return s.insert(ctx, tables.Refs, len(n.Chains), chainColumns(n.Chains, now)) },
	} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// PutRepositories stores the names of repositories.
func (s *Store) PutRepositories(ctx context.Context, all []record.Repository) error {
	return s.insert(ctx, tables.Repositories, len(all), columnsOf{
		"alias":          pick(all, func(r *record.Repository) string { return r.Alias }),
		"repo":           pick(all, func(r *record.Repository) string { return r.Repo }),
		"url":            pick(all, func(r *record.Repository) string { return r.URL }),
		"default_branch": pick(all, func(r *record.Repository) string { return r.Default }),
		"version":        same(len(all), uint64(time.Now().UnixMicro())),
	})
}

// PutDescriptors stores descriptors that were pushed.
func (s *Store) PutDescriptors(ctx context.Context, all []record.Pushed) error {
	target := func(of func(*names.Target) string) []string {
		return pick(all, func(p *record.Pushed) string { return of(&p.Target) })
	}
	version := func(of func(*names.Version) string) []string {
		return pick(all, func(p *record.Pushed) string { return of(&p.Version) })
	}
	return s.insert(ctx, tables.Descriptors, len(all), columnsOf{
		"repo":              pick(all, func(p *record.Pushed) string { return p.Repo }),
		"ref":               pick(all, func(p *record.Pushed) string { return p.Ref }),
		"commit":            pick(all, func(p *record.Pushed) string { return p.Commit }),
		"environment":       target(func(t *names.Target) string { return t.Environment }),
		"workspace":         target(func(t *names.Target) string { return t.Workspace }),
		"application":       target(func(t *names.Target) string { return t.Application }),
		"workload":          target(func(t *names.Target) string { return t.Workload }),
		"deployment_target": target(func(t *names.Target) string { return t.DeploymentTarget }),
		"path":              target(func(t *names.Target) string { return t.Endpoint.Path }),
		"url":               target(func(t *names.Target) string { return t.URL }),
		"workload_version":  version(func(v *names.Version) string { return v.Version }),
		"build":             version(func(v *names.Version) string { return v.Build }),
		"source_repo":       version(func(v *names.Version) string { return v.SourceRepo }),
		"source_commit":     version(func(v *names.Version) string { return v.SourceCommit }),
		"build_time":        pick(all, func(p *record.Pushed) int64 { return stored(p.Version.BuildTime) }),
		"received_at":       pick(all, func(p *record.Pushed) int64 { return p.ReceivedAt.UnixMicro() }),
		"version":           pick(all, func(p *record.Pushed) uint64 { return uint64(p.ReceivedAt.UnixMicro()) }),
	})
}

// same is a column of one value.
func same[T any](n int, value T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = value
	}
	return all
}

func targetColumns(all []record.NamedTarget, now uint64) columnsOf {
	text := func(of func(*record.NamedTarget) string) []string { return pick(all, of) }
	return columnsOf{
		"environment":       text(func(t *record.NamedTarget) string { return t.Environment }),
		"workspace":         text(func(t *record.NamedTarget) string { return t.Workspace }),
		"application":       text(func(t *record.NamedTarget) string { return t.Application }),
		"workload":          text(func(t *record.NamedTarget) string { return t.Workload }),
		"deployment_target": text(func(t *record.NamedTarget) string { return t.DeploymentTarget }),
		"labels":            pick(all, func(t *record.NamedTarget) map[string]string { return t.Labels }),
		"repo":              text(func(t *record.NamedTarget) string { return t.Endpoint.Repo }),
		"ref":               text(func(t *record.NamedTarget) string { return t.Endpoint.Ref }),
		"path":              text(func(t *record.NamedTarget) string { return t.Endpoint.Path }),
		"url":               text(func(t *record.NamedTarget) string { return t.URL }),
		"source":            text(func(t *record.NamedTarget) string { return t.Source }),
		"deleted":           pick(all, func(t *record.NamedTarget) uint8 { return flag(t.Gone) }),
		"version":           same(len(all), now),
	}
}

// noVersion stands in assignments that have none.
var noVersion = &names.Version{}

func assignmentColumns(all []record.Assignment, now uint64) columnsOf {
	text := func(of func(*record.Assignment) string) []string { return pick(all, of) }
	version := func(a *record.Assignment) *names.Version {
		if a.Version == nil {
			return noVersion
		}
		return a.Version
	}
	return columnsOf{
		"repo":              text(func(a *record.Assignment) string { return a.Repo }),
		"ref":               text(func(a *record.Assignment) string { return a.Ref }),
		"chain":             pick(all, func(a *record.Assignment) uint32 { return a.Chain }),
		"environment":       text(func(a *record.Assignment) string { return a.Target.Environment }),
		"workspace":         text(func(a *record.Assignment) string { return a.Target.Workspace }),
		"application":       text(func(a *record.Assignment) string { return a.Target.Application }),
		"workload":          text(func(a *record.Assignment) string { return a.Target.Workload }),
		"deployment_target": text(func(a *record.Assignment) string { return a.Target.DeploymentTarget }),
		"position":          pick(all, func(a *record.Assignment) int64 { return a.Position }),
		"commit":            text(func(a *record.Assignment) string { return a.Commit }),
		"workload_version":  text(func(a *record.Assignment) string { return version(a).Version }),
		"build":             text(func(a *record.Assignment) string { return version(a).Build }),
		"source_repo":       text(func(a *record.Assignment) string { return version(a).SourceRepo }),
		"source_commit":     text(func(a *record.Assignment) string { return version(a).SourceCommit }),
		"build_time":        pick(all, func(a *record.Assignment) int64 { return stored(version(a).BuildTime) }),
		"file":              text(func(a *record.Assignment) string { return a.File }),
		"changed":           pick(all, func(a *record.Assignment) int64 { return a.Changed }),
		"deleted":           pick(all, func(a *record.Assignment) uint8 { return flag(a.Version == nil) }),
		"version":           same(len(all), now),
	}
}

func configurationColumns(all []record.Configuration, now uint64) columnsOf {
	return columnsOf{
		"repo":           pick(all, func(c *record.Configuration) string { return c.Repo }),
		"ref":            pick(all, func(c *record.Configuration) string { return c.Ref }),
		"chain":          pick(all, func(c *record.Configuration) uint32 { return c.Chain }),
		"path":           pick(all, func(c *record.Configuration) string { return c.Path }),
		"position":       pick(all, func(c *record.Configuration) int64 { return c.Position }),
		"config_version": pick(all, func(c *record.Configuration) string { return c.Version }),
		"deleted":        pick(all, func(c *record.Configuration) uint8 { return flag(c.Version == "") }),
		"version":        same(len(all), now),
	}
}

func commitColumns(all []record.Commit, now uint64) columnsOf {
	return columnsOf{
		"repo":         pick(all, func(c *record.Commit) string { return c.Repo }),
		"ref":          pick(all, func(c *record.Commit) string { return c.Ref }),
		"commit":       pick(all, func(c *record.Commit) string { return c.ID }),
		"chain":        pick(all, func(c *record.Commit) uint32 { return c.Chain }),
		"position":     pick(all, func(c *record.Commit) int64 { return c.Position }),
		"parents":      pick(all, func(c *record.Commit) []string { return c.Parents }),
		"author":       pick(all, func(c *record.Commit) string { return c.Author }),
		"committed_at": pick(all, func(c *record.Commit) int64 { return stored(c.At) }),
		"subject":      pick(all, func(c *record.Commit) string { return c.Subject }),
		"version":      same(len(all), now),
	}
}

func chainColumns(all []record.Chain, now uint64) columnsOf {
	return columnsOf{
		"repo":     pick(all, func(c *record.Chain) string { return c.Repo }),
		"ref":      pick(all, func(c *record.Chain) string { return c.Ref }),
		"chain":    pick(all, func(c *record.Chain) uint32 { return c.Number }),
		"fork":     pick(all, func(c *record.Chain) int64 { return c.Fork }),
		"head":     pick(all, func(c *record.Chain) string { return c.Head }),
		"position": pick(all, func(c *record.Chain) int64 { return c.Position }),
		"basis":    pick(all, func(c *record.Chain) uint64 { return c.Basis }),
		"version":  same(len(all), now),
	}
}

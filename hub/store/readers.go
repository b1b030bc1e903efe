package store

import tables "github.com/landfall-hub/landfall/schema/clickhouse"

// ReaderTables are the tables and views that people and Grafana may read from
// outside. What is not here cannot be: the tokens, by their hash, and the lock
// of the migrations.
func ReaderTables() []string {
	return []string{
		tables.Assignments, tables.Clusters, tables.Commits, tables.Configurations, tables.Current, tables.DeploymentTargets,
		tables.Deployments, tables.Descriptors, tables.Gates, tables.Heartbeats, tables.History, tables.Landed,
		tables.Memberships, tables.Reconcilers, tables.Refs, tables.Reports, tables.Repositories, tables.Schedules, tables.Migrations,
	}
}

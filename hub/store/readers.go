package store

import tables "github.com/landfall-hub/landfall/schema/clickhouse"

// ReaderTables are the tables and views that people and Grafana may read from
// outside. What is not here cannot be: the tokens, by their hash, and the lock
// of the migrations.
func ReaderTables() []string {
	return []string{
		tables.Clusters, tables.Current, tables.Gates, tables.Heartbeats, tables.History,
		tables.Memberships, tables.Reconcilers, tables.Reports, tables.Migrations,
	}
}

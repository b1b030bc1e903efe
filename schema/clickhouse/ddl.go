// Package clickhouse holds the tables of Landfall as versioned DDL, and their
// names as constants, so that store and dashboards cannot drift apart.
package clickhouse

import (
	"embed"
	"fmt"
	"hash/fnv"
	"io/fs"
	"sort"
	"strconv"
	"strings"
	"text/template"
)

// Tables and views.
const (
	Current     = "current"
	History     = "history"
	Landed      = "landed"
	Reports     = "reports"
	Clusters    = "clusters"
	Heartbeats  = "heartbeats"
	Tokens      = "tokens"
	Gates       = "gates"
	Memberships = "memberships"
	Reconcilers = "reconcilers"
	// What the history of the repositories says (0002_names.sql).
	Repositories      = "repositories"
	Refs              = "refs"
	Commits           = "commits"
	DeploymentTargets = "deployment_targets"
	Assignments       = "assignments"
	Descriptors       = "descriptors"
	Configurations    = "configurations"
	// Schedules is what the scheduler decided (0003_schedules.sql).
	Schedules = "schedules"
	// Deployments joins current subscriptions with their names.
	Deployments = "deployments"
	// Migrations records which versions of this schema are applied.
	Migrations = "schema_migrations"
	// MigrationLocks says who is applying them.
	MigrationLocks = "schema_locks"
)

//go:embed *.sql
var files embed.FS

// Target says where the DDL is to run; it fills in the templates.
type Target struct {
	// Database holds the tables.
	Database string
	// Cluster is the name of a ClickHouse cluster, or "" for one server.
	Cluster string
	// HistoryDays is how long history rows are kept.
	HistoryDays int
}

// Migration is one version of the schema.
type Migration struct {
	Version    int
	Name       string
	Statements []string
	// Checksum changes when an applied file is edited, which must not happen.
	Checksum uint64
}

// Load returns every migration for the target, in order. It fails only when an
// embedded file is broken.
func Load(t Target) ([]Migration, error) { return load(files, t) }

func load(fsys fs.FS, t Target) ([]Migration, error) {
	names, err := fs.Glob(fsys, "*.sql")
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	all := make([]Migration, 0, len(names))
	for i, name := range names {
		number, title, ok := strings.Cut(strings.TrimSuffix(name, ".sql"), "_")
		version, err := strconv.Atoi(number)
		if !ok || err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: its number must be %04d", name, i+1)
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		statements, err := t.render(name, string(text))
		if err != nil {
			return nil, err
		}
		sum := fnv.New64a()
		sum.Write(text)
		all = append(all, Migration{Version: version, Name: title, Statements: statements, Checksum: sum.Sum64()})
	}
	return all, nil
}

func (t Target) render(name, text string) ([]string, error) {
	tmpl, err := template.New(name).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("migration %s: %w", name, err)
	}
	var out strings.Builder
	if err := tmpl.Execute(&out, t); err != nil {
		return nil, fmt.Errorf("migration %s: %w", name, err)
	}
	var statements []string
	for part := range strings.SplitSeq(out.String(), ";\n") {
		if s := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(withoutComments(part)), ";")); s != "" {
			statements = append(statements, s)
		}
	}
	return statements, nil
}

func withoutComments(sql string) string {
	var kept []string
	for line := range strings.SplitSeq(sql, "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// OnCluster is the clause that makes a statement run on every server.
func (t Target) OnCluster() string {
	if t.Cluster == "" {
		return ""
	}
	return " ON CLUSTER '" + t.Cluster + "'"
}

// Local names the table that holds the rows of one shard.
func (t Target) Local(table string) string {
	if t.Cluster == "" {
		return table
	}
	return table + "_local"
}

// Engine returns the engine clause, replicated in a cluster.
func (t Target) Engine(name, args string) string {
	if t.Cluster == "" {
		return name + "(" + args + ")"
	}
	where := "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'"
	if args != "" {
		args = ", " + args
	}
	return "Replicated" + name + "(" + where + args + ")"
}

// Distributed returns the statement that puts a Distributed table over the
// local ones, or nothing on one server.
func (t Target) Distributed(table, shardBy string) string {
	if t.Cluster == "" {
		return ""
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s AS %s\nENGINE = Distributed('%s', '%s', '%s', %s);\n",
		table, t.OnCluster(), t.Local(table), t.Cluster, t.Database, t.Local(table), shardBy)
}

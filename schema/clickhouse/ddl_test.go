package clickhouse

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func ddl(t *testing.T, target Target) string {
	t.Helper()
	all, err := Load(target)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range all {
		for _, s := range m.Statements {
			fmt.Fprintf(&b, "-- %04d_%s\n%s;\n\n", m.Version, m.Name, s)
		}
	}
	return b.String()
}

// What a cluster and a single server are told to make. Nothing else shows what
// a cluster gets: no test has one.
func TestGoldenDDL(t *testing.T) {
	for name, target := range map[string]Target{
		"cluster": {Database: "landfall", Cluster: "prod", HistoryDays: 400},
		"server":  {Database: "landfall", HistoryDays: 30},
	} {
		t.Run(name, func(t *testing.T) {
			got, path := ddl(t, target), filepath.Join("testdata", name+".sql")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("another DDL than %s (run with -update if it is meant):\n%s", path, d)
			}
		})
	}
}

// In a cluster every table is a replicated one on each shard with a Distributed
// one over it; on one server there is neither.
func TestClusterDDL(t *testing.T) {
	tables := []string{
		Current, History, Landed, Reports, Clusters, Heartbeats, Tokens, Gates,
		Repositories, Refs, Commits, DeploymentTargets, Assignments, Descriptors, Configurations, Schedules,
	}
	cluster := ddl(t, Target{Database: "db", Cluster: "prod", HistoryDays: 1})
	for _, table := range tables {
		if !strings.Contains(cluster, "CREATE TABLE IF NOT EXISTS "+table+"_local ON CLUSTER 'prod'") ||
			!strings.Contains(cluster, "CREATE TABLE IF NOT EXISTS "+table+" ON CLUSTER 'prod' AS "+table+"_local\nENGINE = Distributed('prod', 'db', '"+table+"_local'") {
			t.Errorf("%s is not both local and distributed", table)
		}
	}
	for statement := range strings.SplitSeq(cluster, ";\n") {
		if strings.Contains(statement, "ENGINE") && !strings.Contains(statement, "ENGINE = Replicated") && !strings.Contains(statement, "ENGINE = Distributed") {
			t.Errorf("neither replicated nor distributed:\n%s", statement)
		}
		if strings.Contains(statement, "CREATE") && !strings.Contains(statement, "ON CLUSTER 'prod'") {
			t.Errorf("not on every server:\n%s", statement)
		}
	}
	server := ddl(t, Target{Database: "db", HistoryDays: 1})
	for _, word := range []string{"Replicated", "Distributed", "ON CLUSTER", "_local"} {
		if strings.Contains(server, word) {
			t.Errorf("one server is told of %s", word)
		}
	}
	if !strings.Contains(server, "INTERVAL 1 DAY") {
		t.Error("the retention is not in the DDL")
	}
}

func TestChecksumIsOfTheFileAlone(t *testing.T) {
	one, err := Load(Target{Database: "a", HistoryDays: 1})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Load(Target{Database: "b", Cluster: "c", HistoryDays: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range one {
		if one[i].Checksum != other[i].Checksum {
			t.Errorf("%04d_%s has another checksum for another target: settings could not be changed", one[i].Version, one[i].Name)
		}
	}
}

func TestBrokenMigrations(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	cases := map[string]fstest.MapFS{
		"NoNumber":      {"first.sql": file("SELECT 1")},
		"NoName":        {"0001.sql": file("SELECT 1")},
		"Gap":           {"0001_a.sql": file("SELECT 1"), "0003_b.sql": file("SELECT 1")},
		"Twice":         {"0001_a.sql": file("SELECT 1"), "0001_b.sql": file("SELECT 1")},
		"NoTemplate":    {"0001_a.sql": file("SELECT {{")},
		"UnknownMember": {"0001_a.sql": file("SELECT {{.Nothing}}")},
	}
	for name, files := range cases {
		t.Run(name, func(t *testing.T) {
			if all, err := load(files, Target{}); err == nil {
				t.Errorf("loaded %+v", all)
			}
		})
	}
	all, err := load(fstest.MapFS{"0001_a.sql": file("-- a comment; with a semicolon\nSELECT 1;\n\n-- another\nSELECT 2;\n")}, Target{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"SELECT 1", "SELECT 2"}, all[0].Statements); d != "" {
		t.Errorf("statements (-want +got):\n%s", d)
	}
}

package store

import (
	"regexp"
	"slices"
	"testing"

	tables "github.com/landfall-hub/landfall/schema/clickhouse"
)

// TestReaderTables makes whoever adds a table say whether readers may see it.
func TestReaderTables(t *testing.T) {
	hidden := []string{tables.Tokens}
	migrations, err := tables.Load(tables.Target{Database: DefaultDatabase, HistoryDays: 400})
	if err != nil {
		t.Fatal(err)
	}
	created := regexp.MustCompile(`CREATE (?:TABLE|VIEW|MATERIALIZED VIEW|DICTIONARY) IF NOT EXISTS ([a-z_]+)`)
	var all []string
	for _, m := range migrations {
		for _, statement := range m.Statements {
			for _, match := range created.FindAllStringSubmatch(statement, -1) {
				all = append(all, match[1])
			}
		}
	}
	for _, name := range all {
		if slices.Contains(ReaderTables(), name) == slices.Contains(hidden, name) {
			t.Errorf("say for the table %s whether readers may see it: in ReaderTables or in this test", name)
		}
	}
	if !slices.IsSorted(ReaderTables()) || len(all) < 8 {
		t.Errorf("%v of %v", ReaderTables(), all)
	}
}

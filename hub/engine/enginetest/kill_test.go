package enginetest_test

import (
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/internal/polltest"
)

// TestKilledByAnother stops statements from outside: their clients must hear of
// it, and never take half for the whole.
func TestKilledByAnother(t *testing.T) {
	cases := map[string]string{
		"select":        "SELECT count() FROM numbers(1000000000000000)",
		"stream":        "SELECT number FROM numbers(1000000000000000)",
		"insert select": "INSERT INTO t SELECT sleepEachRow(1) FROM numbers(1000000) SETTINGS max_block_size = 1",
	}
	onEach(t, func(t *testing.T, conn driver.Conn) {
		run(t, conn, "CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a")
		for name, sql := range cases {
			t.Run(name, func(t *testing.T) {
				done := make(chan error, 1)
				go func() { done <- drain(t.Context(), conn, sql) }()
				polltest.Until(t, "the statement runs", func() bool { return running(t, conn, sql) == 1 })
				run(t, conn, "KILL QUERY WHERE query LIKE '"+sql[:30]+"%' SYNC")
				if err := <-done; codeOf(err) != 394 {
					t.Errorf("want QUERY_WAS_CANCELLED (394), got %v", err)
				}
			})
		}
	})
}

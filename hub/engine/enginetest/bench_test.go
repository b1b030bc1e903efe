package enginetest_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
)

// wideTable is as wide and as mixed as the history of reconcilers.
const wideTable = `CREATE TABLE t (
	cluster LowCardinality(String), kind LowCardinality(String), namespace LowCardinality(String), name String,
	environment LowCardinality(String), cluster_type LowCardinality(String),
	repo LowCardinality(String), ref LowCardinality(String), path String,
	applied FixedString(40), attempted FixedString(40), status Enum8('success' = 1, 'failure' = 2),
	reason LowCardinality(String), message String, labels Map(LowCardinality(String), String),
	paths Array(String), epoch UInt64, sequence UInt64,
	observed DateTime64(3, 'UTC'), received DateTime64(3, 'UTC'))
	ENGINE = MergeTree ORDER BY (repo, ref, cluster, name, observed) PARTITION BY toYYYYMM(observed)
	SETTINGS non_replicated_deduplication_window = 1000`

func appendWide(b driver.Batch, n int) error {
	commit := fmt.Sprintf("%040x", n/100)
	when := time.UnixMilli(1_790_000_000_000 + int64(n)).UTC()
	status, reason := "success", "ReconciliationSucceeded"
	if n%50 == 0 {
		status, reason = "failure", "HealthCheckFailed"
	}
	return b.Append(
		fmt.Sprintf("cluster-%04d", n%2000), "Kustomization", "flux-system", fmt.Sprintf("app-%03d", n%100),
		"prod", "drone", fmt.Sprintf("https://git.example.com/org/repo-%02d", n%40), "main", fmt.Sprintf("./clusters/app-%03d", n%100),
		commit, commit, status, reason, "Applied revision: main@sha1:"+commit, map[string]string{"region": "west", "ring": "1"},
		[]string{"apps", "infra"}, uint64(1), uint64(n), when, when)
}

// BenchmarkInsert measures rows per second of a realistic row of 20 columns,
// the driver's encoding included.
func BenchmarkInsert(b *testing.B) {
	for _, rows := range []int{1000, 10_000, 100_000} {
		b.Run(strconv.Itoa(rows), func(b *testing.B) {
			conn := open(b, enginetest.Shared(b))
			run(b, conn, wideTable)
			// Without the columns' types the driver asks for them before every batch.
			for n := 0; b.Loop(); n++ {
				ctx := clickhouse.Context(b.Context(), clickhouse.WithSettings(clickhouse.Settings{
					"insert_deduplication_token": strconv.Itoa(n),
				}))
				batch, err := conn.PrepareBatch(ctx, "INSERT INTO t")
				if err != nil {
					b.Fatal(err)
				}
				for i := range rows {
					if err := appendWide(batch, n*rows+i); err != nil {
						b.Fatal(err)
					}
				}
				if err := batch.Send(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkPointQuery measures one row by its key out of 1,000,000 rows, and
// the same from several clients at once.
func BenchmarkPointQuery(b *testing.B) {
	conn := open(b, enginetest.Shared(b))
	run(b, conn, wideTable)
	for n := range 10 {
		batch, err := conn.PrepareBatch(b.Context(), "INSERT INTO t")
		if err != nil {
			b.Fatal(err)
		}
		for i := range 100_000 {
			if err := appendWide(batch, n*100_000+i); err != nil {
				b.Fatal(err)
			}
		}
		if err := batch.Send(); err != nil {
			b.Fatal(err)
		}
	}
	const sql = "SELECT status, message FROM t WHERE repo = {repo:String} AND ref = 'main' AND cluster = {cluster:String} LIMIT 1"
	query := func() error {
		var status, message string
		return conn.QueryRow(b.Context(), sql, clickhouse.Named("repo", "https://git.example.com/org/repo-07"),
			clickhouse.Named("cluster", "cluster-0007")).Scan(&status, &message)
	}
	b.Run("one client", func(b *testing.B) {
		for b.Loop() {
			if err := query(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("many clients", func(b *testing.B) {
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := query(); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// TestMemoryStays sees that statements do not leave memory behind: each has a
// connection of its own in the engine.
func TestMemoryStays(t *testing.T) {
	e := enginetest.StartEngine(t)
	conn := open(t, e.URL())
	run(t, conn, "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
	work := func(times int) int {
		for n := range times {
			ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"max_threads": 1 + n%2}))
			if n%10 == 0 {
				send(ctx, t, conn, 100)
			}
			if err := conn.QueryRow(ctx, "SELECT count() FROM t").Scan(new(uint64)); err != nil {
				t.Fatal(err)
			}
			if err := conn.Exec(ctx, "SELECT * FROM nowhere"); err == nil {
				t.Fatal("no error")
			}
		}
		return resident(t, e.PID())
	}
	before := work(100)
	after := work(500)
	t.Logf("resident %d MB after 200 statements, %d MB after 1,200", before>>20, after>>20)
	if after > before+64<<20 {
		t.Errorf("resident memory grew from %d to %d bytes", before, after)
	}
}

// resident is a process's memory in bytes.
func resident(t testing.TB, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("no /proc to read the engine's memory from: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

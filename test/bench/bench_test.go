package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// measured holds a loaded hub and what loading it showed.
type measured struct {
	once     sync.Once
	settled  sync.Once
	dir      string
	facts    float64 // per second
	register float64 // clusters per second
	rollout  float64 // deltas per second
	now      float64 // MiB resident after loading
	most     float64 // MiB resident at most
	startup  time.Duration
	// bare are the yardsticks.
	bareInsert float64         // rows per second
	bareGate   []time.Duration // the gate's look-up as plain SQL
	bareState  []time.Duration // what runs, in groups, as plain SQL
	barePage   []time.Duration // one cluster's rows as plain SQL, off the key
}

var loaded = map[int]*measured{100_000: {}, 1_000_000: {}}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, l := range loaded {
		if l.dir != "" {
			os.RemoveAll(l.dir) // a temporary folder
		}
	}
	for _, p := range pasts {
		if p.dir != "" && *keep == "" {
			os.RemoveAll(p.dir)
		}
	}
	os.Exit(code)
}

// load brings a fleet of that size into a new hub, once.
func load(b *testing.B, size int) *measured {
	b.Helper()
	l := loaded[size]
	l.once.Do(func() {
		dir, err := os.MkdirTemp("", "landfall-bench-") //nolint:usetesting // several benchmarks share it
		if err != nil {
			b.Fatal(err)
		}
		l.dir = dir
		f := fleet{clusters: size / 100, perCluster: 100}
		s := startHub(b, dir)
		l.register = float64(f.clusters) / f.register(b, s).Seconds()
		l.facts = float64(f.size()) / f.report(b, s, 256).Seconds()
		l.now, l.most = s.memory(b)
		l.rollout = float64(f.clusters) / each(b, f.clusters, 256, func(i int) error {
			return send(http.MethodPost, s.url+"/api/v1/clusters/"+clusterName(i)+"/reports", rolloutDelta(), http.StatusAccepted)
		}).Seconds()
		s.stop(b)
		url, stop := bareEngine(b, dir)
		defer stop()
		l.yardsticks(b, url, min(size, 500_000))
	})
	if l.facts == 0 {
		b.Skip("the fleet was not loaded")
	}
	return l
}

var sizes = []int{100_000, 1_000_000}

// BenchmarkIngest: facts per second from HTTP to acknowledged, the load
// generator on the same cores, beside bare batch inserts of rows as wide.
func BenchmarkIngest(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := load(b, size)
			for b.Loop() { // what is measured is the loading
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(l.facts, "facts/s")
			b.ReportMetric(l.bareInsert, "bare-rows/s")
			b.ReportMetric(l.facts/l.bareInsert, "of-bare")
			b.ReportMetric(l.register, "registrations/s")
			b.ReportMetric(l.rollout, "small-reports/s")
			b.ReportMetric(l.now, "hub-MiB")
			b.ReportMetric(l.most, "hub-peak-MiB")
		})
	}
}

// BenchmarkGate: one verdict over HTTP, with a subscriber on every cluster,
// beside the bare look-up of the same rows.
func BenchmarkGate(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := load(b, size)
			s := startHub(b, l.dir)
			defer s.stop(b)
			l.startup = s.startup
			for name, commit := range map[string]string{"passed": commitTwo, "waiting": commitOne} {
				b.Run(name, func(b *testing.B) {
					url := s.url + "/api/v1/compliance?repo=https://git.example/org/platform-gitops&ref=dev&path=drone&commit=" + commit
					var took []time.Duration
					for b.Loop() {
						begin := time.Now()
						if err := get(url); err != nil {
							b.Fatal(err)
						}
						took = append(took, time.Since(begin))
					}
					quantiles(b, "", took)
					b.ReportMetric(s.statement(b, "subscribers"), "sql-ms")
					quantiles(b, "bare-", l.bareGate)
					b.ReportMetric(at(took, 0.95).Seconds()/at(l.bareGate, 0.95).Seconds(), "p95/bare")
					b.ReportMetric(l.startup.Seconds(), "start-s")
				})
			}
		})
	}
}

func get(url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return err
}

func at(took []time.Duration, q float64) time.Duration {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func quantiles(b *testing.B, prefix string, took []time.Duration) {
	b.Helper()
	b.ReportMetric(float64(at(took, 0.50).Microseconds())/1000, prefix+"p50-ms")
	b.ReportMetric(float64(at(took, 0.95).Microseconds())/1000, prefix+"p95-ms")
	b.ReportMetric(float64(at(took, 0.99).Microseconds())/1000, prefix+"p99-ms")
}

// yardsticks measures bare ClickHouse: batch inserts of 10,000 rows into a
// table of the same width, and a naive look-up of one endpoint's rows.
func (l *measured) yardsticks(b *testing.B, url string, rows int) {
	b.Helper()
	ctx := context.Background()
	opts, err := clickhouse.ParseDSN(url)
	if err != nil {
		b.Fatal(err)
	}
	conn, err := clickhouse.Open(opts)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close() // the engine ends anyway
	ddl := `CREATE TABLE bare (repo LowCardinality(String), ref LowCardinality(String), path LowCardinality(String), cluster String,
		kind LowCardinality(String), namespace LowCardinality(String), name String, version UInt64, received_at DateTime64(3), observed_at DateTime64(3),
		status LowCardinality(String), reason LowCardinality(String), message String, applied String, attempted String, revision String,
		health LowCardinality(String), drifted UInt8, suspended UInt8, digest String)
		ENGINE = ReplacingMergeTree(version) ORDER BY (repo, ref, path, cluster, kind, namespace, name)`
	if err := conn.Exec(ctx, ddl); err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	begin := now
	for at := 0; at < rows; at += 10_000 {
		insertBare(b, conn, at, now)
	}
	l.bareInsert = float64(rows) / time.Since(begin).Seconds()
	l.bareGate = bareQuery(b, conn, rows/100, "SELECT cluster, kind, namespace, name, status, applied, attempted FROM bare FINAL WHERE repo = 'git.example/org/platform-gitops' AND ref = 'dev' AND path = 'drone'")
	l.bareState = bareQuery(b, conn, 100, "SELECT repo, ref, path, applied, status, toString(uniqExact(cluster)), '' FROM bare FINAL GROUP BY repo, ref, path, applied, status")
	l.barePage = bareQuery(b, conn, 100, "SELECT kind, namespace, name, status, applied, reason, message FROM bare FINAL WHERE cluster = '"+clusterName(7)+"'")
	if err := conn.Exec(ctx, "DROP TABLE bare"); err != nil {
		b.Fatal(err)
	}
	settle(b, conn)
}

// bareQuery asks for rows of seven texts, a hundred times.
func bareQuery(b *testing.B, conn driver.Conn, rows int, sql string) []time.Duration {
	b.Helper()
	var took []time.Duration
	for range 100 {
		begin := time.Now()
		found := 0
		r, err := conn.Query(context.Background(), sql)
		if err != nil {
			b.Fatal(err)
		}
		for r.Next() {
			var s [7]string
			if err := r.Scan(&s[0], &s[1], &s[2], &s[3], &s[4], &s[5], &s[6]); err != nil {
				b.Fatal(err)
			}
			found++
		}
		if err := r.Err(); err != nil || found != rows {
			b.Fatalf("found %d of %d: %v", found, rows, err)
		}
		took = append(took, time.Since(begin))
	}
	return took
}

// settle waits until the merges that loading has left behind are done, as far
// as a minute goes: a gate is measured on a fleet at rest.
func settle(b *testing.B, conn driver.Conn) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		var merging uint64
		if err := conn.QueryRow(context.Background(), "SELECT count() FROM system.merges").Scan(&merging); err != nil {
			b.Fatal(err)
		}
		if merging == 0 {
			return
		}
	}
}

func insertBare(b *testing.B, conn driver.Conn, from int, now time.Time) {
	b.Helper()
	batch, err := conn.PrepareBatch(context.Background(), "INSERT INTO bare")
	if err != nil {
		b.Fatal(err)
	}
	for i := from; i < from+10_000; i++ {
		cluster, n := i/100, i%100
		repo, path := "git.example/org/platform-gitops", "drone"
		if n > 0 {
			repo, path = fmt.Sprintf("git.example/org/app-%02d-gitops", n%50), fmt.Sprintf("target-%d", n/50)
		}
		err := batch.Append(repo, "dev", path, clusterName(cluster), "Kustomization", "flux-system", fmt.Sprintf("app-%02d", n), uint64(1), now, now,
			"success", "ReconciliationSucceeded", "Applied revision: dev@sha1:"+commitOne, commitOne, commitOne, "dev@sha1:"+commitOne, "Healthy", uint8(0), uint8(0), "0123456789abcdef")
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		b.Fatal(err)
	}
}

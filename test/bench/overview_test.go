package bench

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/compliance"
	hubfleet "github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/overview"
	"github.com/landfall-hub/landfall/hub/store"
	"github.com/landfall-hub/landfall/internal/gitlink"
	"github.com/landfall-hub/landfall/schema"
)

// BenchmarkState: what runs of every endpoint in the fleet, over HTTP, beside
// the same groups in plain SQL: right after loading, and at rest, when what is
// current has become one part, as it does by itself after five minutes.
func BenchmarkState(b *testing.B) {
	overHTTP(b, "groups", "/api/v1/state?limit=1000", func(l *measured) []time.Duration { return l.bareState })
}

// BenchmarkClusterPage: all reconcilers of one cluster, over HTTP, beside the
// same rows in plain SQL from a table that is not sorted by cluster.
func BenchmarkClusterPage(b *testing.B) {
	overHTTP(b, "states", "/api/v1/state/clusters?limit=1000&cluster="+clusterName(7), func(l *measured) []time.Duration { return l.barePage })
}

func overHTTP(b *testing.B, family, path string, bare func(*measured) []time.Duration) {
	b.Helper()
	for _, size := range sizes {
		for _, when := range []string{"loaded", "rest"} {
			b.Run(fmt.Sprint(size, "/", when), func(b *testing.B) {
				l := load(b, size)
				if when == "rest" {
					l.settled.Do(func() { rest(b, l.dir) })
				}
				s := startHub(b, l.dir)
				defer s.stop(b)
				var took []time.Duration
				for b.Loop() {
					begin := time.Now()
					if err := get(s.url + path); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(begin))
				}
				report(b, took, bare(l))
				b.ReportMetric(s.statement(b, family), "sql-ms")
			})
		}
	}
}

// rest makes one part of what is current.
func rest(b *testing.B, dir string) {
	b.Helper()
	url, stop := bareEngine(b, dir)
	defer stop()
	opts, err := clickhouse.ParseDSN(url)
	if err != nil {
		b.Fatal(err)
	}
	conn, err := clickhouse.Open(opts)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close() // the engine ends anyway
	if err := conn.Exec(context.Background(), "OPTIMIZE TABLE landfall.current FINAL"); err != nil {
		b.Fatal(err)
	}
}

func report(b *testing.B, took, bare []time.Duration) {
	b.Helper()
	quantiles(b, "", took)
	quantiles(b, "bare-", bare)
	b.ReportMetric(at(took, 0.95).Seconds()/at(bare, 0.95).Seconds(), "p95/bare")
}

// past is a store with as many rows of history: of 100 reconcilers on each of
// 10,000 clusters, each of another workload, spread over 400 days.
type past struct {
	once sync.Once
	dir  string
	bare []time.Duration
}

var (
	pasts     = map[int]*past{10_000_000: {}, 100_000_000: {}}
	pastSizes = []int{10_000_000, 100_000_000}
	keep      = flag.String("keep", "", "a folder that keeps histories from run to run: the large one takes minutes to make, and goes on where it was left")
)

const (
	pastDays    = 400
	pastReaders = 1_000_000
	pastApps    = 100
)

var pastEnd = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// BenchmarkHistory: the newest hundred changes of one workload, with names,
// rollbacks and links, beside plain SQL on the same rows; then of a month half a
// year ago, of failures, of one cluster, and of the whole fleet.
func BenchmarkHistory(b *testing.B) {
	one := schema.StateFilter{Workload: "app-07"}
	failing, there := one, schema.StateFilter{Cluster: clusterName(7)}
	failing.Status = schema.StatusFailure
	questions := []struct {
		name string
		f    schema.HistoryFilter
	}{
		{"workload", schema.HistoryFilter{StateFilter: one}},
		{"month", schema.HistoryFilter{StateFilter: one, Span: schema.Span{From: pastEnd.AddDate(0, -6, 0), To: pastEnd.AddDate(0, -5, 0)}}},
		{"failures", schema.HistoryFilter{StateFilter: failing}},
		{"cluster", schema.HistoryFilter{StateFilter: there}},
		{"fleet", schema.HistoryFilter{}},
	}
	for _, size := range pastSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			p := pasts[size]
			p.once.Do(func() { p.fill(b, size) })
			if len(p.bare) == 0 {
				b.Skip("the history was not made")
			}
			url, stop := bareEngine(b, p.dir)
			defer stop()
			s, view := openView(b, url)
			defer s.Close()
			for _, q := range questions {
				b.Run(q.name, func(b *testing.B) {
					var took []time.Duration
					for b.Loop() {
						begin := time.Now()
						rows, _, err := view.History(context.Background(), q.f, schema.Page{Limit: 100})
						if err != nil || len(rows) != 100 {
							b.Fatalf("%d rows, %v", len(rows), err)
						}
						took = append(took, time.Since(begin))
					}
					report(b, took, p.bare)
				})
			}
		})
	}
}

// fill makes the rows in ClickHouse itself.
func (p *past) fill(b *testing.B, size int) {
	b.Helper()
	p.dir = filepath.Join(*keep, fmt.Sprint("history-", size))
	if *keep == "" {
		dir, err := os.MkdirTemp("", "landfall-bench-") //nolint:usetesting // several benchmarks share it
		if err != nil {
			b.Fatal(err)
		}
		p.dir = dir
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		b.Fatal(err)
	}
	url, stop := bareEngine(b, p.dir)
	defer stop()
	s, _ := openView(b, url)
	defer s.Close()
	opts, err := clickhouse.ParseDSN(url)
	if err != nil {
		b.Fatal(err)
	}
	opts.ReadTimeout = 10 * time.Minute
	conn, err := clickhouse.Open(opts)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close() // the engine ends anyway
	run := func(sql string, args ...any) {
		b.Helper()
		if err := conn.Exec(context.Background(), sql, args...); err != nil {
			b.Fatal(err)
		}
	}
	run("CREATE TABLE IF NOT EXISTS landfall.readers AS landfall.history ENGINE = MergeTree ORDER BY (repo, ref, path, cluster)")
	var readers, made uint64
	if err := conn.QueryRow(context.Background(), "SELECT (SELECT count() FROM landfall.readers), (SELECT count() FROM landfall.history)").Scan(&readers, &made); err != nil {
		b.Fatal(err)
	}
	if readers == 0 {
		run(readersOf(pastReaders))
	}
	turns := size / pastReaders
	run("SYSTEM STOP MERGES landfall.history")
	run("SYSTEM STOP MERGES landfall.landed")
	for turn := int(made / pastReaders); turn < turns; turn++ {
		change, landed := turnOf(turn, turns)
		if landed != "" { // first, so that a run that is cut off makes no half turn
			run(landed)
		}
		run(change)
	}
	run("SYSTEM START MERGES landfall.history")
	run("SYSTEM START MERGES landfall.landed")
	settle(b, conn)
	p.yardstick(b, conn)
}

// readersOf inserts the reconcilers whose changes turnOf makes.
func readersOf(n int) string {
	return fmt.Sprintf(`
		INSERT INTO landfall.readers (repo, ref, path, cluster, kind, namespace, name, epoch, change, destination, source_type, source_url, source_ref, source_path, health)
		SELECT concat('git.example/org/app-', app, '-gitops') AS repo, 'dev' AS ref, 'functional' AS path,
		       concat('drone-', leftPad(toString(intDiv(number, 100)), 5, '0')) AS cluster, 'Kustomization', 'flux-system', concat('app-', app),
		       1, 'reported', cluster, 'git', concat('https://', repo), ref, path, 'Healthy'
		FROM (SELECT number, leftPad(toString(number %% 100), 2, '0') AS app FROM numbers(%d))`, n)
}

// turnOf inserts one change of every reconciler: every fourth brings a new
// commit, of the others some fail.
func turnOf(turn, turns int) (change, landed string) {
	length := pastDays * 24 * time.Hour / time.Duration(turns)
	begin := pastEnd.Add(-pastDays * 24 * time.Hour).Add(time.Duration(turn) * length)
	commit := fmt.Sprintf("%040x", turn/4+1)
	at := fmt.Sprintf("fromUnixTimestamp64Milli(toInt64(%d + cityHash64(cluster, name, %d) %% %d))", begin.UnixMilli(), turn, length.Milliseconds())
	status := "'success'"
	if turn%4 > 0 {
		status = fmt.Sprintf("if(cityHash64(name, cluster, %d) %% 15 = 0, 'failure', 'success')", turn)
	} else {
		landed = fmt.Sprintf(`INSERT INTO landfall.landed (cluster, kind, namespace, name, epoch, sequence, repo, ref, path, applied_commit, received_at)
			SELECT cluster, kind, namespace, name, epoch, %d, repo, ref, path, '%s', %s FROM landfall.readers`, turn, commit, at)
	}
	return fmt.Sprintf(`
		INSERT INTO landfall.history
		SELECT * REPLACE(%d AS sequence, %s AS received_at, received_at AS observed_at, %s AS status, if(status = 'failure', 'HealthCheckFailed', 'ReconciliationSucceeded') AS reason,
		       'Applied revision: dev@sha1:%[4]s' AS message, 'dev@sha1:%[4]s' AS attempted, 'dev@sha1:%[4]s' AS applied, '%[4]s' AS attempted_commit, '%[4]s' AS applied_commit)
		FROM landfall.readers`, turn, at, status, commit), landed
}

// yardstick asks for the newest hundred changes of a workload the plain way.
func (p *past) yardstick(b *testing.B, conn driver.Conn) {
	b.Helper()
	for range 10 {
		begin := time.Now()
		r, err := conn.Query(context.Background(), `
			SELECT received_at, cluster, kind, namespace, name, status, reason, message, applied_commit FROM landfall.history FINAL
			WHERE repo = 'git.example/org/app-07-gitops' AND ref = 'dev' AND path = 'functional' ORDER BY received_at DESC LIMIT 100`)
		if err != nil {
			b.Fatal(err)
		}
		for r.Next() {
			var at time.Time
			var s [8]string
			if err := r.Scan(&at, &s[0], &s[1], &s[2], &s[3], &s[4], &s[5], &s[6], &s[7]); err != nil {
				b.Fatal(err)
			}
		}
		if err := r.Err(); err != nil {
			b.Fatal(err)
		}
		p.bare = append(p.bare, time.Since(begin))
	}
}

// openView opens a store with an overview that has names for all of it.
func openView(b testing.TB, url string) (*store.Store, *overview.View) {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(store.Options{URL: url, Log: log, HistoryDays: 10_000})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Migrate(context.Background()); err != nil {
		b.Fatal(err)
	}
	f, err := hubfleet.New(hubfleet.Options{Store: s, SilentAfter: 5, Now: time.Now, Log: log})
	if err != nil {
		b.Fatal(err)
	}
	v, err := overview.New(overview.Options{
		Current: s, Past: s, Fleet: f, Names: known{names.New(facts())}, Links: gitlink.Links{},
		Graph: func(string) compliance.Graph { return compliance.Equality{} }, Now: time.Now,
	})
	if err != nil {
		b.Fatal(err)
	}
	return s, v
}

type known struct{ index *names.Index }

func (k known) Index() *names.Index { return k.index }

// facts name what turnOf makes: each commit has another version, and every third
// goes back to an old one.
func facts() names.Facts {
	var f names.Facts
	for app := range pastApps {
		t := schema.Target{Environment: "dev", Workspace: "bench", Application: "bench", Workload: fmt.Sprintf("app-%02d", app), DeploymentTarget: "functional"}
		repo := "git.example/org/" + t.Workload + "-gitops"
		var assignments []names.Assignment
		for at := range 50 {
			version := at
			if at%3 == 0 {
				version = at / 2
			}
			assignments = append(assignments, names.Assignment{Chain: 1, Position: int64(at), Version: &names.Version{Version: fmt.Sprintf("1.%d", version)}})
		}
		f.Targets = append(f.Targets, names.Target{Target: t, Endpoint: schema.Endpoint{Repo: repo, Ref: "dev", Path: "functional"}, URL: "https://" + repo})
		f.Repos = append(f.Repos, names.Repo{Names: []string{repo}, Written: "https://" + repo, Default: "main", Refs: []names.Ref{{
			Name: "dev", Lineage: line{}, Chains: []names.Chain{{Number: 1, Fork: -1}}, Assignments: map[schema.Target][]names.Assignment{t: assignments},
		}}})
	}
	return f
}

// line is a history whose commits are numbers in hex.
type line struct{}

func (line) Place(commit string) (names.Point, bool) {
	n, err := strconv.ParseInt(commit, 16, 64)
	return names.Point{Chain: 1, Position: n, Commit: commit}, err == nil
}

func (line) On(_ uint32, position int64) (names.Point, bool) {
	return names.Point{Chain: 1, Position: position, Commit: fmt.Sprintf("%040x", position)}, true
}

func (l line) Head() (names.Point, bool) { return l.On(1, 200) }

func (line) Configuration(string, string) string { return "" }

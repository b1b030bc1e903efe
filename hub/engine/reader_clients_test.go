package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/engine"
	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/internal/polltest"
)

// connect opens the driver on the readers' address as Grafana's plugin does for
// HTTP: gzip, and a deadline that becomes max_execution_time.
func (r *readers) connect(t *testing.T) driver.Conn {
	t.Helper()
	conn, err := clickhouse.Open(&clickhouse.Options{
		Protocol: clickhouse.HTTP, Addr: []string{r.process.ReaderAddress()},
		Auth:        clickhouse.Auth{Database: "landfall", Username: engine.ReaderUser, Password: readerPassword},
		Compression: &clickhouse.Compression{Method: clickhouse.CompressionGZIP},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func TestReadersUseTheDriver(t *testing.T) {
	r := startReaders(t)
	conn := r.connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := conn.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	version, err := conn.ServerVersion()
	if err != nil || version.Version.Major < 26 {
		t.Errorf("version %v, %v", version, err)
	}
	// What Grafana's plugin asks to draw its query builder, and a panel of it.
	for _, sql := range []string{
		"SELECT 1", "SELECT version()", "SHOW DATABASES", "SHOW TABLES FROM landfall", "SHOW TABLES FROM \"landfall\"",
		"DESC TABLE \"landfall\".\"t\"", "SELECT name, type FROM system.columns WHERE database = 'landfall' AND table = 't'",
		"SELECT DISTINCT arrayJoin(mapKeys(\"tags\")) AS keys FROM \"landfall\".\"t\" LIMIT 1000",
		"SELECT name FROM system.databases", "SELECT name, database, engine FROM system.tables WHERE database = 'landfall'",
		"SELECT toStartOfInterval(toDateTime(\"at\"), INTERVAL 60 second) AS \"time\", count(*) AS \"count()\" FROM \"landfall\".\"t\" " +
			"WHERE ( \"time\" >= fromUnixTimestamp64Milli(0) AND \"time\" <= fromUnixTimestamp64Milli(9999999999) ) GROUP BY \"time\" ORDER BY \"time\" ASC LIMIT 1000",
	} {
		rows, err := conn.Query(ctx, sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		n := 0
		for rows.Next() {
			n++
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || n == 0 {
			t.Errorf("%s: %d rows, %v", sql, n, err)
		}
	}
	var tags map[string]string
	var at time.Time
	if err := conn.QueryRow(ctx, "SELECT tags, at FROM t WHERE n = {n:UInt64}", clickhouse.Named("n", 2)).Scan(&tags, &at); err != nil || tags["k"] != "v" || at.Unix() != 2 {
		t.Errorf("%v, %v, %v", tags, at, err)
	}
	err = conn.Exec(ctx, "INSERT INTO t (n) VALUES (1)")
	exception, ok := errors.AsType[*clickhouse.Exception](err)
	if !ok || exception.Code != 497 {
		t.Errorf("an INSERT: %v", err)
	}
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO t (n)")
	if err == nil {
		err = batch.Append(uint64(9))
		if sendErr := batch.Send(); sendErr == nil {
			t.Error("a batch can be sent")
		}
	}
	if err != nil {
		t.Error(err)
	}
}

func TestReadersStream(t *testing.T) {
	r := startReaders(t)
	rows, err := r.connect(t).Query(t.Context(), "SELECT b.n, b.text FROM big AS b CROSS JOIN numbers(3) AS x")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rows.Next() {
		n++
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || n != 3_000_000 {
		t.Errorf("%d rows over the driver, %v", n, err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.base+"?query=SELECT+n,+text+FROM+big+FORMAT+CSV", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(engine.ReaderUser, readerPassword)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	n = 0
	for lines.Scan() {
		n++
	}
	if err := lines.Err(); err != nil || n != 1_000_000 {
		t.Errorf("%d lines of CSV, %v", n, err)
	}
}

func TestReadersHaveLimits(t *testing.T) {
	r := startReaders(t)
	cases := map[string]struct {
		sql       string
		parameter string
		status    int
		text      string
	}{
		"time":             {"SELECT count() FROM numbers(1000000000000000)", "max_execution_time=1", http.StatusInternalServerError, "TIMEOUT_EXCEEDED"},
		"time in a scalar": {"SELECT (SELECT count() FROM numbers(1000000000000000))", "max_execution_time=1", http.StatusInternalServerError, "TIMEOUT_EXCEEDED"},
		"memory":           {"SELECT length(groupArray(number)) FROM numbers(10000000000)", "max_memory_usage=100000000", http.StatusInternalServerError, "MEMORY_LIMIT_EXCEEDED"},
		"memory, raised":   {"SELECT length(groupArray(number)) FROM numbers(10000000000)", "max_memory_usage=100000000000", http.StatusInternalServerError, "MEMORY_LIMIT_EXCEEDED"},
		"memory, none":     {"SELECT length(groupArray(number)) FROM numbers(10000000000)", "max_memory_usage=0", http.StatusInternalServerError, "MEMORY_LIMIT_EXCEEDED"},
		"rows":             {"SELECT number FROM numbers(10000)", "max_result_rows=100", http.StatusInternalServerError, "TOO_MANY_ROWS"},
		"rows, of its own": {"SELECT number FROM numbers(20000000) FORMAT Null", "", http.StatusInternalServerError, "TOO_MANY_ROWS"},
		"rows, raised":     {"SELECT number FROM numbers(20000000) FORMAT Null", "max_result_rows=1000000000", http.StatusInternalServerError, "TOO_MANY_ROWS"},
		"depth":            {"SELECT " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000), "", http.StatusInternalServerError, "TOO_DEEP"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var parameters []string
			if tc.parameter != "" {
				parameters = append(parameters, tc.parameter)
			}
			status, answer := r.ask(t, tc.sql, parameters...)
			// An answer that has begun already ends in a frame with the error.
			if status != tc.status && !(status == http.StatusOK && strings.Contains(answer, "__exception__")) || !strings.Contains(answer, tc.text) {
				t.Errorf("%.200s: got %d %.300q, want %d with %s", tc.sql, status, answer, tc.status, tc.text)
			}
		})
	}
}

// TestReadersDoNotStarveTheHub fills every place that readers have with
// statements that run for ever, and writes and reads as the hub meanwhile.
func TestReadersDoNotStarveTheHub(t *testing.T) {
	r := startReaders(t)
	ctx, cancel := context.WithCancel(t.Context())
	const clients = 48
	statuses := make(chan int, clients)
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base, strings.NewReader("SELECT sum(cityHash64(number)) FROM numbers(1000000000000000)"))
			if err != nil {
				return
			}
			request.SetBasicAuth(engine.ReaderUser, readerPassword)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return // ended with the context
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			statuses <- response.StatusCode
		})
	}
	// Four run and 32 wait, so a dozen are turned away.
	for range clients - 36 {
		if status := <-statuses; status != http.StatusServiceUnavailable {
			t.Errorf("a reader too many gets %d", status)
		}
	}
	polltest.Until(t, "four run", func() bool {
		return enginetest.Exec(t, r.hub, "SELECT count() FROM system.processes WHERE query LIKE 'SELECT sum(cityHash64%'") == "4\n"
	})
	for i := range 20 {
		enginetest.Exec(t, r.hub, fmt.Sprintf("INSERT INTO landfall.t (n) SELECT %d + number FROM numbers(1000)", 1000*(i+1)))
	}
	if got := enginetest.Exec(t, r.hub, "SELECT count() FROM landfall.t"); got != "20003\n" {
		t.Errorf("the hub has %q rows", got)
	}
	cancel()
	group.Wait()
	// What nobody waits for any more is stopped, and its place is free again.
	polltest.Until(t, "none runs", func() bool {
		return enginetest.Exec(t, r.hub, "SELECT count() FROM system.processes WHERE query LIKE 'SELECT sum(cityHash64%'") == "0\n"
	})
	polltest.Until(t, "a reader is let in", func() bool { status, _ := r.ask(t, "SELECT 1"); return status == http.StatusOK })
}

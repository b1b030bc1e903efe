package enginetest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
)

// serverEnv names a ClickHouse server that the suite runs against as well.
const serverEnv = "LANDFALL_TEST_CLICKHOUSE_URL"

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

// onEach runs a test on the engine and, where one is named, on a server: the
// store must not be able to tell them apart.
func onEach(t *testing.T, test func(t *testing.T, conn driver.Conn)) {
	t.Helper()
	t.Run("engine", func(t *testing.T) { test(t, open(t, enginetest.Shared(t))) })
	t.Run("server", func(t *testing.T) {
		dsn := os.Getenv(serverEnv)
		if dsn == "" {
			t.Skipf("%s names no ClickHouse server", serverEnv)
		}
		test(t, open(t, serverDatabase(t, dsn)))
	})
}

// serverDatabase makes a database for one test on a server.
func serverDatabase(t *testing.T, dsn string) string {
	t.Helper()
	root := open(t, dsn)
	database := "test_" + strings.ToLower(rand.Text())
	run(t, root, "CREATE DATABASE "+database)
	t.Cleanup(func() {
		if err := root.Exec(context.Background(), "DROP DATABASE "+database+" SYNC"); err != nil {
			t.Errorf("dropping the test's database: %v", err)
		}
	})
	head, query, _ := strings.Cut(dsn, "?")
	scheme := strings.Index(head, "://") + len("://")
	if slash := strings.Index(head[scheme:], "/"); slash >= 0 {
		head = head[:scheme+slash]
	}
	return head + "/" + database + "?" + query
}

func open(t testing.TB, dsn string) driver.Conn {
	t.Helper()
	opts, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	opts.MaxOpenConns = 40
	opts.MaxIdleConns = 40
	conn, err := clickhouse.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return conn
}

func run(t testing.TB, conn driver.Conn, sql string, args ...any) {
	t.Helper()
	if err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// scan reads one row.
func scan(t testing.TB, conn driver.Conn, sql string, into ...any) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(into...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func count(t testing.TB, conn driver.Conn, table string) uint64 {
	t.Helper()
	var n uint64
	scan(t, conn, "SELECT count() FROM "+table, &n)
	return n
}

// codeOf is ClickHouse's code for an error, 0 when it has none.
func codeOf(err error) int32 {
	var exception *clickhouse.Exception
	if errors.As(err, &exception) {
		return exception.Code
	}
	return 0
}

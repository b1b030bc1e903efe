package enginetest_test

import (
	"context"
	"os"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

func TestSmoke(t *testing.T) {
	opts, err := clickhouse.ParseDSN(enginetest.Shared(t))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := clickhouse.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := conn.Exec(ctx, "CREATE TABLE t (a UInt64, s LowCardinality(String)) ENGINE=MergeTree ORDER BY a"); err != nil {
		t.Fatal(err)
	}
	b, err := conn.PrepareBatch(ctx, "INSERT INTO t")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000000 {
		if err := b.Append(uint64(i), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Send(); err != nil {
		t.Fatal(err)
	}
	var n uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM t WHERE a < {x:UInt64}", clickhouse.Named("x", 500000)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	t.Log(n)
	v, err := conn.ServerVersion()
	t.Log(v, err)
}

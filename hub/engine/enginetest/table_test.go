package enginetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
)

func TestColumnTypes(t *testing.T) {
	when := time.Date(2026, 2, 3, 4, 5, 6, 789_123_000, time.UTC)
	text := "né \x00 'x'\n"
	cases := map[string]struct {
		kind string
		in   any
		into any
		want any
	}{
		"String":                  {"String", text, new(string), &text},
		"LowCardinality":          {"LowCardinality(String)", text, new(string), &text},
		"Array":                   {"Array(String)", []string{"", "b"}, new([]string), &[]string{"", "b"}},
		"empty Array":             {"Array(String)", []string{}, new([]string), &[]string{}},
		"Array of LowCardinality": {"Array(LowCardinality(String))", []string{"a", "a", "b"}, new([]string), &[]string{"a", "a", "b"}},
		"Map":                     {"Map(String, String)", map[string]string{"k": "v", "": ""}, new(map[string]string), &map[string]string{"k": "v", "": ""}},
		"Map of LowCardinality":   {"Map(LowCardinality(String), String)", map[string]string{"k": "v"}, new(map[string]string), &map[string]string{"k": "v"}},
		"UInt8":                   {"UInt8", uint8(255), new(uint8), ptr(uint8(255))},
		"UInt32":                  {"UInt32", uint32(1 << 31), new(uint32), ptr(uint32(1 << 31))},
		"UInt64":                  {"UInt64", uint64(1 << 63), new(uint64), ptr(uint64(1 << 63))},
		"Int64":                   {"Int64", int64(-1 << 63), new(int64), ptr(int64(-1 << 63))},
		"Float64":                 {"Float64", 0.1, new(float64), ptr(0.1)},
		"Bool":                    {"Bool", true, new(bool), ptr(true)},
		"milliseconds":            {"DateTime64(3, 'UTC')", when, new(time.Time), ptr(when.Truncate(time.Millisecond))},
		"microseconds":            {"DateTime64(6, 'UTC')", when, new(time.Time), ptr(when)},
		"no zone":                 {"DateTime64(3)", when, new(time.Time), ptr(when.Truncate(time.Millisecond))},
		"FixedString":             {"FixedString(16)", "0123456789abcdef", new(string), ptr("0123456789abcdef")},
		"Tuple":                   {"Tuple(String, String)", []any{"a", "b"}, new([]any), &[]any{"a", "b"}},
		"Array of Tuple":          {"Array(Tuple(String, String))", [][]any{{"a", "b"}, {"c", "d"}}, new([][]any), &[][]any{{"a", "b"}, {"c", "d"}}},
		"Enum8":                   {"Enum8('success' = 1, 'failure' = 2)", "failure", new(string), ptr("failure")},
		"UUID":                    {"UUID", uuid.MustParse("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), new(uuid.UUID), ptr(uuid.MustParse("6ba7b810-9dad-11d1-80b4-00c04fd430c8"))},
		"Nullable":                {"Nullable(String)", ptr("x"), new(*string), ptr(ptr("x"))},
		"null":                    {"Nullable(String)", (*string)(nil), new(*string), new(*string)},
		"SimpleAggregateFunction": {"SimpleAggregateFunction(max, UInt64)", uint64(7), new(uint64), ptr(uint64(7))},
		"Date":                    {"Date", when, new(time.Time), ptr(when.Truncate(24 * time.Hour))},
	}
	onEach(t, func(t *testing.T, conn driver.Conn) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				run(t, conn, "CREATE OR REPLACE TABLE t (v "+tc.kind+") ENGINE = MergeTree ORDER BY tuple()")
				batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO t")
				if err != nil {
					t.Fatal(err)
				}
				if err := batch.Append(tc.in); err != nil {
					t.Fatal(err)
				}
				if err := batch.Send(); err != nil {
					t.Fatal(err)
				}
				scan(t, conn, "SELECT v FROM t", tc.into)
				if diff := cmp.Diff(tc.want, tc.into); diff != "" {
					t.Errorf("%s came back changed (-want +got):\n%s", tc.kind, diff)
				}
			})
		}
	})
}

// TestPartsOfInsertsAreCompact writes more than ClickHouse's own bound for a
// compact part, 10 MiB, at once.
func TestPartsOfInsertsAreCompact(t *testing.T) {
	conn := open(t, enginetest.Shared(t))
	run(t, conn, "CREATE TABLE t (n UInt64, text String) ENGINE = MergeTree ORDER BY n")
	part := func() (kind string) {
		scan(t, conn, "SELECT part_type FROM system.parts WHERE database = currentDatabase() AND table = 't' AND active", &kind)
		return kind
	}
	run(t, conn, "INSERT INTO t SELECT number, repeat('x', 1000) FROM numbers(20000)")
	if got := part(); got != "Compact" {
		t.Errorf("an insert of 20 MB wrote a part that is %s", got)
	}
	run(t, conn, "OPTIMIZE TABLE t FINAL")
	if got := part(); got != "Wide" {
		t.Errorf("merging made a part of 20 MB that is %s", got)
	}
}

// TestMergesAreFewer asks the library whether it took the setting.
func TestMergesAreFewer(t *testing.T) {
	var base string
	scan(t, open(t, enginetest.Shared(t)), "SELECT value FROM system.merge_tree_settings WHERE name = 'merge_selector_base'", &base)
	if base != "10" {
		t.Errorf("merge_selector_base is %s", base)
	}
}

func ptr[T any](v T) *T { return &v }

func TestBatches(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		for name, rows := range map[string]int{"1": 1, "1,000": 1000, "1,000,000": 1_000_000} {
			t.Run(name, func(t *testing.T) {
				run(t, conn, "CREATE OR REPLACE TABLE t (n UInt64, text String) ENGINE = MergeTree ORDER BY n")
				batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO t (n, text)")
				if err != nil {
					t.Fatal(err)
				}
				for n := range rows {
					if err := batch.Append(uint64(n), "some text"); err != nil {
						t.Fatal(err)
					}
				}
				if err := batch.Send(); err != nil {
					t.Fatal(err)
				}
				var got, sum uint64
				scan(t, conn, "SELECT count(), sum(n) FROM t WHERE text = 'some text'", &got, &sum)
				if want := uint64(rows) * uint64(rows-1) / 2; got != uint64(rows) || sum != want {
					t.Errorf("%d rows with sum %d, want %d and %d", got, sum, rows, want)
				}
			})
		}
	})
}

func TestInsertOfTheWrongType(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		run(t, conn, "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a")
		ctx := clickhouse.Context(t.Context(), clickhouse.WithColumnNamesAndTypes([]clickhouse.ColumnNameAndType{{Name: "a", Type: "String"}}))
		batch, err := conn.PrepareBatch(ctx, "INSERT INTO t (a)")
		if err != nil {
			t.Fatal(err)
		}
		if err := batch.Append("no number"); err != nil {
			t.Fatal(err)
		}
		if err := batch.Send(); codeOf(err) == 0 {
			t.Errorf("want an exception with a code, got %v", err)
		}
		if got := count(t, conn, "t"); got != 0 {
			t.Errorf("%d rows were stored", got)
		}
	})
}

// TestInsertIntoAViewThatFails sees that an error from deep inside an INSERT
// reaches a client that still sends.
func TestInsertIntoAViewThatFails(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		run(t, conn, "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
		run(t, conn, "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY tuple() AS SELECT throwIf(n = 5) AS x FROM t")
		batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO t")
		if err != nil {
			t.Fatal(err)
		}
		for n := range 2_000_000 {
			if err := batch.Append(uint64(n)); err != nil {
				t.Fatal(err)
			}
		}
		if err := batch.Send(); codeOf(err) != 395 {
			t.Errorf("want FUNCTION_THROW_IF_VALUE_IS_NON_ZERO (395), got %v", err)
		}
	})
}

func TestDeduplicationToken(t *testing.T) {
	cases := map[string]struct {
		reason string
		rows   int
	}{
		"one block":   {"a retried batch is stored once", 100},
		"many blocks": {"a batch beyond the engine's block size is cut the same way twice", 2_500_000},
	}
	onEach(t, func(t *testing.T, conn driver.Conn) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				run(t, conn, `CREATE OR REPLACE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n
					SETTINGS non_replicated_deduplication_window = 100`)
				for _, token := range []string{"first", "first", "second"} {
					ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{
						"insert_deduplication_token": token, "insert_deduplicate": 1,
					}))
					send(ctx, t, conn, tc.rows)
				}
				if got := count(t, conn, "t"); got != uint64(2*tc.rows) {
					t.Errorf("%s: %d rows after three inserts with two tokens, want %d", tc.reason, got, 2*tc.rows)
				}
			})
		}
	})
}

func TestReplacingMergeTree(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		run(t, conn, `CREATE TABLE t (id String, version UInt64, deleted UInt8, value String)
			ENGINE = ReplacingMergeTree(version, deleted) ORDER BY id`)
		run(t, conn, "INSERT INTO t VALUES ('a', 2, 0, 'new'), ('b', 1, 0, 'here'), ('c', 1, 0, 'soon gone')")
		run(t, conn, "INSERT INTO t VALUES ('a', 1, 0, 'old'), ('c', 2, 1, '')")
		var got string
		scan(t, conn, "SELECT arrayStringConcat(arraySort(groupArray(id || '=' || value)), ',') FROM t FINAL", &got)
		if want := "a=new,b=here"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestASOFJoin(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		run(t, conn, "CREATE TABLE commits (repo String, position UInt64) ENGINE = MergeTree ORDER BY (repo, position)")
		run(t, conn, "CREATE TABLE versions (repo String, position UInt64, version String) ENGINE = MergeTree ORDER BY (repo, position)")
		run(t, conn, "INSERT INTO commits VALUES ('r', 1), ('r', 5), ('r', 9)")
		run(t, conn, "INSERT INTO versions VALUES ('r', 2, 'v1'), ('r', 8, 'v2')")
		var got []string
		scan(t, conn, `SELECT groupArray(text) FROM (
			SELECT toString(c.position) || ':' || v.version AS text
			FROM commits AS c ASOF JOIN versions AS v ON c.repo = v.repo AND c.position >= v.position
			ORDER BY c.position)`, &got)
		if diff := cmp.Diff([]string{"5:v1", "9:v2"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestDictionary(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		run(t, conn, "CREATE TABLE names (id UInt64, name String) ENGINE = MergeTree ORDER BY id")
		run(t, conn, "INSERT INTO names VALUES (7, 'seven')")
		var database string
		scan(t, conn, "SELECT currentDatabase()", &database)
		run(t, conn, `CREATE DICTIONARY lookup (id UInt64, name String) PRIMARY KEY id
			SOURCE(CLICKHOUSE(TABLE 'names' DB '`+database+`')) LAYOUT(HASHED()) LIFETIME(0)`)
		var got string
		scan(t, conn, "SELECT dictGet('"+database+".lookup', 'name', toUInt64(7))", &got)
		if got != "seven" {
			t.Errorf("got %q", got)
		}
	})
}

// send inserts the numbers below rows into the table t.
func send(ctx context.Context, t testing.TB, conn driver.Conn, rows int) {
	t.Helper()
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO t (n)")
	if err != nil {
		t.Fatal(err)
	}
	for n := range rows {
		if err := batch.Append(uint64(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
}

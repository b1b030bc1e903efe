package enginetest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/internal/polltest"
)

func TestPing(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		if err := conn.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		version, err := conn.ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if version.Version.Major < 24 {
			t.Errorf("version %s: older than anything Landfall is written for", version)
		}
	})
}

func TestParameters(t *testing.T) {
	text := "it's a \\ \"quoted\"\ttab\nline `tick` {x} %41 +&=é"
	cases := map[string]struct {
		reason string
		sql    string
		arg    any
		into   func() any
		want   any
	}{
		"string": {
			reason: "every byte of a text must arrive, however SQL or a URL would read it",
			sql:    "SELECT {x:String}", arg: text, into: func() any { return new(string) }, want: &text,
		},
		"empty string": {
			reason: "an empty value is not a missing one",
			sql:    "SELECT {x:String}", arg: "", into: func() any { return new(string) }, want: new(string),
		},
		"array of strings": {
			reason: "lists go as one parameter",
			sql:    "SELECT {x:Array(String)}", arg: []string{"a", "b'c", text}, into: func() any { return new([]string) },
			want: &[]string{"a", "b'c", text},
		},
		"empty array": {
			reason: "an empty list is a list",
			sql:    "SELECT {x:Array(String)}", arg: []string{}, into: func() any { return new([]string) }, want: &[]string{},
		},
		"number": {
			reason: "numbers beyond 2^53 keep their digits",
			sql:    "SELECT {x:UInt64}", arg: uint64(1<<63 + 1), into: func() any { return new(uint64) },
			want: ptr(uint64(1<<63 + 1)),
		},
		"time": {
			reason: "times go in the column's own precision",
			sql:    "SELECT {x:DateTime64(6, 'UTC')}", arg: time.Date(2026, 3, 4, 5, 6, 7, 891000, time.UTC).Format("2006-01-02 15:04:05.000000"),
			into: func() any { return new(time.Time) },
			want: ptr(time.Date(2026, 3, 4, 5, 6, 7, 891000, time.UTC)),
		},
		"identifier": {
			reason: "names can be parameters",
			sql:    "SELECT count() FROM system.{x:Identifier}", arg: "one", into: func() any { return new(uint64) },
			want: ptr(uint64(1)),
		},
	}
	onEach(t, func(t *testing.T, conn driver.Conn) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				got := tc.into()
				if err := conn.QueryRow(t.Context(), tc.sql, clickhouse.Named("x", tc.arg)).Scan(got); err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		}
	})
}

func TestParameterIsMissing(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		err := conn.Exec(t.Context(), "SELECT {x:String}")
		if codeOf(err) != 456 {
			t.Errorf("want UNKNOWN_QUERY_PARAMETER (456), got %v", err)
		}
	})
}

func TestSettingsStayWithTheirStatement(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		var before, during, after string
		scan(t, conn, "SELECT toString(getSetting('max_rows_to_read'))", &before)
		ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"max_rows_to_read": 4711}))
		if err := conn.QueryRow(ctx, "SELECT toString(getSetting('max_rows_to_read'))").Scan(&during); err != nil {
			t.Fatal(err)
		}
		scan(t, conn, "SELECT toString(getSetting('max_rows_to_read'))", &after)
		if during != "4711" || after != before {
			t.Errorf("before %s, during %s, after %s", before, during, after)
		}
	})
}

func TestUnknownSettingIsAnError(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"no_such_setting": 1}))
		if err := conn.Exec(ctx, "SELECT 1"); codeOf(err) != 115 {
			t.Errorf("want UNKNOWN_SETTING (115), got %v", err)
		}
	})
}

func TestErrorsHaveCodes(t *testing.T) {
	cases := map[string]struct {
		reason string
		sql    string
		code   int32
	}{
		"syntax":        {"a typo", "SELECT FROM WHERE", 62},
		"empty":         {"no statement", " ", 62},
		"unknown table": {"a migration that did not run", "SELECT * FROM nowhere", 60},
		"into nowhere":  {"the same for an INSERT", "INSERT INTO nowhere VALUES (1)", 60},
		"two at once":   {"one statement a request", "SELECT 1; SELECT 2", 62},
		"type":          {"a comparison that cannot be", "SELECT 'a' + 1", 43},
		"rubbish":       {"bytes that are no text", "\x00\xff\xfe(", 62},
		"open quote":    {"a text without an end", "SELECT 'abc", 62},
		"open comment":  {"a comment without an end", "SELECT 1 /* abc", 62},
		"deep":          {"more parentheses than any parser takes", "SELECT " + deep(20000), 306},
	}
	onEach(t, func(t *testing.T, conn driver.Conn) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				err := conn.Exec(t.Context(), tc.sql)
				if got := codeOf(err); got != tc.code {
					t.Errorf("%s: want code %d, got %d: %v", tc.reason, tc.code, got, err)
				}
			})
		}
		if err := conn.Ping(t.Context()); err != nil {
			t.Errorf("after the errors: %v", err)
		}
	})
}

func deep(n int) string {
	text := make([]byte, 0, 2*n+1)
	for range n {
		text = append(text, '(')
	}
	text = append(text, '1')
	for range n {
		text = append(text, ')')
	}
	return string(text)
}

func TestLargeResult(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		rows, err := conn.Query(t.Context(), "SELECT number, toString(number) FROM numbers(1000000)")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var n, sum uint64
		for rows.Next() {
			var number uint64
			var text string
			if err := rows.Scan(&number, &text); err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(number) != text {
				t.Fatalf("row %d: %d and %q", n, number, text)
			}
			n++
			sum += number
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if n != 1_000_000 || sum != 499_999_500_000 {
			t.Errorf("%d rows, sum %d", n, sum)
		}
	})
}

func TestFailureInTheMiddleOfAnAnswer(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		rows, err := conn.Query(t.Context(),
			"SELECT number, throwIf(number = 3000000) FROM numbers(10000000) SETTINGS max_threads = 1")
		n := 0
		if err == nil {
			defer rows.Close()
			for rows.Next() {
				n++
			}
			err = rows.Err()
		}
		if codeOf(err) != 395 {
			t.Errorf("want FUNCTION_THROW_IF_VALUE_IS_NON_ZERO (395) after some rows, got %v after %d rows", err, n)
		}
	})
}

func TestTimeLimit(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"max_execution_time": 1}))
		err := conn.Exec(ctx, "SELECT count() FROM numbers(1000000000000)")
		if codeOf(err) != 159 {
			t.Errorf("want TIMEOUT_EXCEEDED (159), got %v", err)
		}
	})
}

func TestReadonly(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"readonly": 1}))
		if err := conn.Exec(ctx, "CREATE TABLE t (a UInt8) ENGINE = Memory"); codeOf(err) != 164 {
			t.Errorf("want READONLY (164), got %v", err)
		}
		if err := conn.Exec(ctx, "SELECT 1"); err != nil {
			t.Error(err)
		}
	})
}

// TestCancellation stops statements that would run for hours, in each of the
// ways a statement is run, and sees that nothing of them goes on.
func TestCancellation(t *testing.T) {
	cases := map[string]string{
		"select":        "SELECT count() FROM numbers(1000000000000000)",
		"insert select": "INSERT INTO t SELECT sleepEachRow(1) FROM numbers(1000000) SETTINGS max_block_size = 1",
		"stream":        "SELECT number FROM numbers(1000000000000000)",
	}
	onEach(t, func(t *testing.T, conn driver.Conn) {
		run(t, conn, "CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a")
		for name, sql := range cases {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- drain(ctx, conn, sql) }()
				polltest.Until(t, "the statement runs", func() bool { return running(t, conn, sql) == 1 })
				cancel()
				if err := <-done; err == nil {
					t.Error("the statement ended without an error")
				}
				polltest.Until(t, "the statement is gone", func() bool { return running(t, conn, sql) == 0 })
				if err := conn.Ping(t.Context()); err != nil {
					t.Errorf("after the cancellation: %v", err)
				}
			})
		}
	})
}

func drain(ctx context.Context, conn driver.Conn, sql string) error {
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return rows.Close()
}

func running(t *testing.T, conn driver.Conn, sql string) uint64 {
	t.Helper()
	var n uint64
	err := conn.QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query LIKE {x:String}",
		clickhouse.Named("x", sql[:30]+"%")).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestManyClients(t *testing.T) {
	onEach(t, func(t *testing.T, conn driver.Conn) {
		run(t, conn, "CREATE TABLE t (client UInt32, n UInt32) ENGINE = MergeTree ORDER BY (client, n)")
		const clients, rounds = 32, 5
		var group sync.WaitGroup
		failures := make(chan error, clients)
		for client := range clients {
			group.Go(func() { failures <- oneClient(t.Context(), conn, client, rounds) })
		}
		group.Wait()
		for range clients {
			if err := <-failures; err != nil {
				t.Error(err)
			}
		}
		if got := count(t, conn, "t"); got != clients*rounds*10 {
			t.Errorf("%d rows, want %d", got, clients*rounds*10)
		}
	})
}

// oneClient writes and reads its own rows, and checks that nobody else's
// parameters or settings reach its statements.
func oneClient(ctx context.Context, conn driver.Conn, client, rounds int) error {
	for round := range rounds {
		batch, err := conn.PrepareBatch(ctx, "INSERT INTO t (client, n)")
		if err != nil {
			return fmt.Errorf("client %d: %w", client, err)
		}
		for i := range 10 {
			if err := batch.Append(uint32(client), uint32(round*10+i)); err != nil {
				return err
			}
		}
		if err := batch.Send(); err != nil {
			return fmt.Errorf("client %d: %w", client, err)
		}
		ctx := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_result_rows": 1000 + client}))
		var rows, setting uint64
		err = conn.QueryRow(ctx, "SELECT count(), toUInt64(getSetting('max_result_rows')) FROM t WHERE client = {c:UInt32}",
			clickhouse.Named("c", client)).Scan(&rows, &setting)
		if err != nil {
			return fmt.Errorf("client %d: %w", client, err)
		}
		if rows != uint64(round+1)*10 || setting != uint64(1000+client) {
			return fmt.Errorf("client %d, round %d: %d rows, setting %d", client, round, rows, setting)
		}
	}
	return nil
}

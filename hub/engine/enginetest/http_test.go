package enginetest_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/internal/polltest"
)

// at adds parameters to an engine's URL, as a client without a driver does.
func at(t testing.TB, dsn string, params ...string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query := url.Values{"database": {strings.TrimPrefix(u.Path, "/")}}
	for i := 0; i+1 < len(params); i += 2 {
		query.Set(params[i], params[i+1])
	}
	u.Path, u.RawQuery = "/", query.Encode()
	return u.String()
}

func do(t testing.TB, request *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func newRequest(t testing.TB, method, target string, body io.Reader) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// TestPlainHTTP is curl's view of the engine.
func TestPlainHTTP(t *testing.T) {
	dsn := enginetest.Shared(t)
	enginetest.Exec(t, dsn, "CREATE TABLE t (a UInt32, s String) ENGINE = MergeTree ORDER BY a")
	cases := map[string]struct {
		reason string
		method string
		params []string
		body   string
		status int
		want   string
	}{
		"select":           {"the default format", http.MethodPost, nil, "SELECT 1, 'x'", 200, "1\tx\n"},
		"format":           {"a format in the statement", http.MethodPost, nil, "SELECT 1 AS a FORMAT JSONEachRow", 200, `{"a":1}` + "\n"},
		"default format":   {"a format in the URL", http.MethodPost, []string{"default_format", "CSV"}, "SELECT 1, 'x'", 200, "1,\"x\"\n"},
		"link":             {"a statement in the URL", http.MethodGet, []string{"query", "SELECT 2"}, "", 200, "2\n"},
		"link that writes": {"links change no data", http.MethodGet, []string{"query", "DROP TABLE t"}, "", 500, "READONLY"},
		"parameter":        {"values apart from SQL", http.MethodPost, []string{"param_x", "a'b"}, "SELECT {x:String}", 200, "a\\'b\n"},
		"show":             {"statements other than SELECT", http.MethodPost, nil, "SHOW TABLES", 200, "t\n"},
		"database":         {"a database that is not there", http.MethodPost, []string{"database", "no`where"}, "SELECT 1", 500, "UNKNOWN_DATABASE"},
		"no data":          {"an INSERT whose client failed to encode its block", http.MethodPost, []string{"query", "INSERT INTO t FORMAT Native"}, "", 500, "CANNOT_READ_ALL_DATA"},
		"cut data":         {"a block that ends in the middle", http.MethodPost, []string{"query", "INSERT INTO t FORMAT Native"}, "\x02\x05\x01aUInt32", 500, "Code: "},
		"rubbish data":     {"bytes that are no block", http.MethodPost, []string{"query", "INSERT INTO t FORMAT Native"}, strings.Repeat("\xff\x7f rubbish", 1000), 500, "Code: "},
		"unknown format":   {"a format that is not there", http.MethodPost, []string{"query", "INSERT INTO t FORMAT Nonsense"}, "x", 500, "UNKNOWN_FORMAT"},
		"lz4":              {"ClickHouse's own compression is refused, not misread", http.MethodPost, []string{"compress", "1"}, "SELECT 1", 501, "NOT_IMPLEMENTED"},
		"setting's name":   {"no SQL in names", http.MethodPost, []string{"a = 1, b", "1"}, "SELECT 1", 500, "BAD_ARGUMENTS"},
		"setting's value":  {"no SQL in values", http.MethodPost, []string{"max_threads", "1, readonly = 0"}, "SELECT 1", 500, "Code: "},
		"another method":   {"only GET and POST", http.MethodDelete, nil, "", 405, "GET or POST"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, got := do(t, newRequest(t, tc.method, at(t, dsn, tc.params...), strings.NewReader(tc.body)))
			if status != tc.status || (status == http.StatusOK && got != tc.want) || !strings.Contains(got, tc.want) {
				t.Errorf("%s: want %d with %q, got %d: %s", tc.reason, tc.status, tc.want, status, got)
			}
		})
	}
	if got := enginetest.Exec(t, dsn, "SELECT count() FROM t"); got != "0\n" {
		t.Errorf("%s rows came from bad data", got)
	}
}

func TestGzip(t *testing.T) {
	dsn := enginetest.Shared(t)
	enginetest.Exec(t, dsn, "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a")
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write([]byte("1\n2\n3\n")); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	request := newRequest(t, http.MethodPost, at(t, dsn, "query", "INSERT INTO t FORMAT CSV"), &packed)
	request.Header.Set("Content-Encoding", "gzip")
	if status, text := do(t, request); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	opts, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	opts.Compression = &clickhouse.Compression{Method: clickhouse.CompressionGZIP, Level: 1}
	opts.Settings = clickhouse.Settings{"enable_http_compression": 1}
	conn, err := clickhouse.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	run(t, conn, "CREATE TABLE u (n UInt64) ENGINE = MergeTree ORDER BY n")
	batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO u")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 300_000 {
		if err := batch.Append(uint64(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
	var sum, large uint64
	scan(t, conn, "SELECT sum(a) FROM t", &sum)
	rows, err := conn.Query(t.Context(), "SELECT n FROM u")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		large++
	}
	if rows.Err() != nil || sum != 6 || large != 300_000 {
		t.Errorf("sum %d, %d rows, %v", sum, large, rows.Err())
	}
	// A failure in the middle of a packed answer must be seen too.
	if err := drain(t.Context(), conn, "SELECT number, throwIf(number = 1000000) FROM numbers(10000000) SETTINGS max_threads = 1"); err == nil {
		t.Error("a broken answer was taken for a whole one")
	}
}

func TestLZ4IsRefusedClearly(t *testing.T) {
	opts, err := clickhouse.ParseDSN(enginetest.Shared(t))
	if err != nil {
		t.Fatal(err)
	}
	opts.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
	conn, err := clickhouse.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Ping(t.Context()); codeOf(err) != 48 || !strings.Contains(err.Error(), "use no compression or gzip") {
		t.Errorf("want NOT_IMPLEMENTED (48) that says what to do, got %v", err)
	}
}

// TestClientGoesAwayDuringAnInsert breaks a body off: nothing of it may be
// stored, since the client will send it again.
func TestClientGoesAwayDuringAnInsert(t *testing.T) {
	dsn := enginetest.Shared(t)
	enginetest.Exec(t, dsn, "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a")
	body := io.MultiReader(strings.NewReader(strings.Repeat("1\n", 100_000)), broken{})
	request := newRequest(t, http.MethodPost, at(t, dsn, "query", "INSERT INTO t FORMAT CSV"), io.NopCloser(body))
	if _, err := http.DefaultClient.Do(request); err == nil {
		t.Fatal("the client did not break off")
	}
	conn := open(t, dsn)
	polltest.Until(t, "the INSERT is gone", func() bool { return running(t, conn, "INSERT INTO t FORMAT CSV       ") == 0 })
	if got := count(t, conn, "t"); got != 0 {
		t.Errorf("%d rows were stored", got)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the client breaks off") }

// TestSlowReader reads a little of a huge answer: the engine must wait rather
// than gather the rest.
func TestSlowReader(t *testing.T) {
	e := enginetest.StartEngine(t)
	sql := "SELECT number, repeat('x', 100) FROM numbers(1000000000)"
	response, err := http.DefaultClient.Do(newRequest(t, http.MethodPost, at(t, e.URL()), strings.NewReader(sql)))
	if err != nil {
		t.Fatal(err)
	}
	read := func(size int64) int {
		if _, err := io.CopyN(io.Discard, response.Body, size); err != nil {
			t.Fatal(err)
		}
		return resident(t, e.PID())
	}
	before, after := read(50<<20), read(300<<20)
	t.Logf("resident %d MB after 50 MB, %d MB after 350 MB of 100 GB", before>>20, after>>20)
	if after > before+100<<20 {
		t.Errorf("resident memory grew from %d to %d bytes", before, after)
	}
	conn := open(t, e.URL())
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	polltest.Until(t, "the statement is gone", func() bool { return running(t, conn, sql) == 0 })
}

// TestWrongTypesDoNotEndTheEngine sends blocks whose types are not the table's.
func TestWrongTypesDoNotEndTheEngine(t *testing.T) {
	conn := open(t, enginetest.Shared(t))
	kinds := []string{"String", "Array(String)", "Map(String, String)", "Nullable(String)", "LowCardinality(String)", "FixedString(16)", "UInt64", "Tuple(String, UInt8)"}
	var reached []string
	for _, kind := range kinds {
		run(t, conn, "CREATE OR REPLACE TABLE t (v "+kind+") ENGINE = MergeTree ORDER BY tuple()")
		for _, other := range kinds {
			ctx := clickhouse.Context(t.Context(), clickhouse.WithColumnNamesAndTypes([]clickhouse.ColumnNameAndType{{Name: "v", Type: other}}))
			if err := appendZero(conn.PrepareBatch(ctx, "INSERT INTO t (v)")); err != nil && codeOf(err) == 0 {
				t.Errorf("%s into %s: %v", other, kind, err)
			}
		}
		if err := conn.Ping(t.Context()); err != nil {
			t.Fatalf("after blocks for %s: %v", kind, err)
		}
		reached = append(reached, kind)
	}
	if diff := cmp.Diff(kinds, reached); diff != "" {
		t.Error(diff)
	}
}

func appendZero(batch driver.Batch, err error) error {
	if err != nil {
		return err
	}
	values := map[string]any{
		"String": "x", "Array(String)": []string{"x"}, "Map(String, String)": map[string]string{"x": "y"},
		"Nullable(String)": (*string)(nil), "LowCardinality(String)": "x", "FixedString(16)": "0123456789abcdef",
		"UInt64": uint64(1), "Tuple(String, UInt8)": []any{"x", uint8(1)},
	}
	if err := batch.Append(values[string(batch.Columns()[0].Type())]); err != nil {
		return err
	}
	return batch.Send()
}

package engine_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/engine"
	"github.com/landfall-hub/landfall/hub/engine/enginetest"
)

// What must never be in an answer to a reader.
const (
	fileSecret  = "PLANTED-IN-A-FILE"
	tableSecret = "PLANTED-IN-ANOTHER-DATABASE"
	tokenSecret = "PLANTED-IN-A-HIDDEN-TABLE"
)

// readers is an engine with a second address, secrets around what may be read,
// and the hub's own URL to write with.
type readers struct {
	process *engine.Process
	hub     string
	// base is the readers' address as a URL.
	base string
	// secretFile is a file of the host.
	secretFile string
}

const (
	readerPassword = "a pass&word=50%"
	// tables is what readers may see in the database landfall: a table, one
	// with a million rows, a view on it, and one that is never made.
	tables = "t,big,v,absent"
)

// startReadersOn starts an engine on a folder, with readers or without.
func startReadersOn(t testing.TB, folder string, with bool) *readers {
	t.Helper()
	binary, library := enginetest.Files(t)
	opts := engine.ProcessOptions{
		Binary: binary, Library: library, Path: folder, Listen: "127.0.0.1:0", Password: "hub", LockWait: time.Second,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if with {
		opts.Reader = &engine.Reader{Listen: "127.0.0.1:0", Password: readerPassword, Database: "landfall", Tables: strings.Split(tables, ",")}
	}
	process, err := engine.StartProcess(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Stop(30 * time.Second) })
	return &readers{
		process: process, hub: "http://landfall:hub@" + process.Address() + "/",
		base: "http://" + process.ReaderAddress() + "/",
	}
}

// startReaders starts an engine with readers and secrets.
func startReaders(t testing.TB) *readers {
	t.Helper()
	folder := t.TempDir()
	r := startReadersOn(t, filepath.Join(folder, "data"), true)
	r.secretFile = filepath.Join(folder, "secret.txt")
	if err := os.WriteFile(r.secretFile, []byte(fileSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"CREATE DATABASE landfall", "CREATE DATABASE vault",
		"CREATE TABLE landfall.t (n UInt64, text String, tags Map(String, String), at DateTime64(3, 'UTC')) ENGINE = MergeTree ORDER BY n",
		"INSERT INTO landfall.t SELECT number, toString(number), map('k', 'v'), toDateTime64(number, 3) FROM numbers(3)",
		"CREATE TABLE landfall.big (n UInt64, text String) ENGINE = MergeTree ORDER BY n",
		"INSERT INTO landfall.big SELECT number, toString(number) FROM numbers(1000000)",
		"CREATE VIEW landfall.v AS SELECT n, count() AS c FROM landfall.big GROUP BY n",
		"CREATE TABLE landfall.tokens (id String, hash String) ENGINE = MergeTree ORDER BY id",
		"INSERT INTO landfall.tokens VALUES ('a', '" + tokenSecret + "')",
		"CREATE TABLE vault.s (s String) ENGINE = MergeTree ORDER BY s",
		"INSERT INTO vault.s VALUES ('" + tableSecret + "')",
		"CREATE TABLE vault.j (k UInt64, s String) ENGINE = Join(ANY, LEFT, k)",
		"INSERT INTO vault.j VALUES (1, '" + tableSecret + "')",
		"CREATE DICTIONARY vault.d (k UInt64, s String) PRIMARY KEY k SOURCE(CLICKHOUSE(DB 'vault' TABLE 'j')) LAYOUT(HASHED()) LIFETIME(0)",
		"CREATE VIEW vault.peek AS SELECT s FROM vault.s",
	} {
		enginetest.Exec(t, r.hub, sql)
	}
	return r
}

// ask sends a statement as the reader and returns status and answer.
func (r *readers) ask(t testing.TB, sql string, parameters ...string) (int, string) {
	t.Helper()
	values := url.Values{}
	for _, parameter := range parameters {
		name, value, _ := strings.Cut(parameter, "=")
		values.Set(name, value)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.base+"?"+values.Encode(), strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(engine.ReaderUser, readerPassword)
	return send(t, request)
}

func send(t testing.TB, request *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%s: %v", request.URL, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		text = append(text, "\nbroken off: "+err.Error()...)
	}
	return response.StatusCode, string(text)
}

// leaks returns the first secret in an answer.
func leaks(answer string) string {
	for _, secret := range []string{fileSecret, tableSecret, tokenSecret, "root:x:0"} {
		if strings.Contains(answer, secret) {
			return secret
		}
	}
	return ""
}

func TestReadersSee(t *testing.T) {
	r := startReaders(t)
	cases := map[string]struct {
		sql    string
		params string
		want   string
	}{
		"table":              {"SELECT n, text FROM landfall.t ORDER BY n LIMIT 2", "", "0\t0\n1\t1\n"},
		"bare name":          {"SELECT count() FROM t", "", "3\n"},
		"quoted name":        {"SELECT count() FROM \"landfall\".\"t\"", "", "3\n"},
		"view":               {"SELECT sum(c) FROM v WHERE n < 10", "", "10\n"},
		"semicolon":          {"SELECT 1;", "", "1\n"},
		"comments":           {"/* one */ SELECT -- two\n 1 # three", "", "1\n"},
		"CTE":                {"WITH x AS (SELECT n FROM t), y AS (SELECT max(n) AS m FROM x) SELECT m FROM y", "", "2\n"},
		"recursive CTE":      {"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT sum(n) FROM r", "", "6\n"},
		"scalar":             {"SELECT (SELECT max(n) FROM t) + 1", "", "3\n"},
		"IN table":           {"SELECT count() FROM t WHERE (n, text) IN (SELECT n, text FROM big)", "", "3\n"},
		"UNION":              {"(SELECT 1 AS a) UNION ALL (SELECT 1) EXCEPT SELECT 3", "", "1\n1\n"},
		"JOIN":               {"SELECT count() FROM t AS a INNER JOIN big AS b ON a.n = b.n", "", "3\n"},
		"ASOF JOIN":          {"SELECT count() FROM t AS a ASOF LEFT JOIN big AS b ON a.text = b.text AND a.n >= b.n", "", "3\n"},
		"ARRAY JOIN":         {"SELECT x FROM t ARRAY JOIN mapKeys(tags) AS x LIMIT 1", "", "k\n"},
		"window":             {"SELECT sum(n) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t", "", "0\n1\n3\n"},
		"named window":       {"SELECT row_number() OVER w FROM t WINDOW w AS (ORDER BY n)", "", "1\n2\n3\n"},
		"combinators":        {"SELECT countIf(n > 0), sumMerge(s), uniqExactArrayIf([n], n > 1) FROM (SELECT n, sumState(n) AS s FROM t GROUP BY n)", "", "2\t3\t1\n"},
		"lambda":             {"SELECT arrayMap(x -> x * 2, [1, 2])", "", "[2,4]\n"},
		"function as value":  {"SELECT arrayMap(negate, [1, 2])", "", "[-1,-2]\n"},
		"CASE":               {"SELECT CASE WHEN n = 1 THEN 'a' ELSE 'b' END FROM t ORDER BY n", "", "b\na\nb\n"},
		"columns":            {"SELECT COLUMNS('^n$') APPLY(toString), * EXCEPT (tags, at) REPLACE (n + 1 AS n) FROM t LIMIT 1", "", "0\t1\t0\n"},
		"parameter":          {"SELECT {x:UInt8} + 1", "param_x=4", "5\n"},
		"text parameter":     {"SELECT n FROM t WHERE text = {x:String}", "param_x=2", "2\n"},
		"text with ;":        {"SELECT 'a; SET ROLE admin', ';'", "", "a; SET ROLE admin\t;\n"},
		"text with a line":   {"SELECT 'FORMAT\nJSON'", "", "FORMAT\\nJSON\n"},
		"word in an alias":   {"SELECT 1 AS settings, 2 AS \"INTO OUTFILE\", 3 AS format FORMAT TSVWithNames", "", "settings\tINTO OUTFILE\tformat\n1\t2\t3\n"},
		"alias with commas":  {"SELECT 1 AS `ready, failed: 50%` FORMAT CSVWithNames", "", "\"ready, failed: 50%\"\n1\n"},
		"numbers":            {"SELECT sum(number) FROM numbers(4)", "", "6\n"},
		"values":             {"SELECT sum(a) FROM values('a UInt8', 1, 2)", "", "3\n"},
		"generateSeries":     {"SELECT count() FROM generateSeries(1, 5)", "", "5\n"},
		"fill":               {"SELECT n FROM (SELECT 1 AS n) ORDER BY n WITH FILL TO 3 INTERPOLATE", "", "1\n2\n"},
		"grouping sets":      {"SELECT n % 2 AS m, count() FROM t GROUP BY GROUPING SETS ((m), ()) ORDER BY count() LIMIT 1", "", "1\t1\n"},
		"time zone":          {"SELECT toString(at) FROM t WHERE n = 0", "session_timezone=UTC", "1970-01-01 00:00:00.000\n"},
		"JSON":               {"SELECT 1 AS a FORMAT JSONEachRow", "", "{\"a\":1}\n"},
		"format parameter":   {"SELECT 1 AS a, 'x' AS b", "default_format=CSVWithNames", "\"a\",\"b\"\n1,\"x\"\n"},
		"SHOW TABLES":        {"SHOW TABLES", "", "big\nt\nv\n"},
		"SHOW TABLES FROM":   {"show tables from landfall like 't%'", "", "t\n"},
		"SHOW DATABASES":     {"SHOW DATABASES", "", "landfall\n"},
		"DESCRIBE":           {"DESC big", "", "n\tUInt64\t\t\t\t\t\ntext\tString\t\t\t\t\t\n"},
		"EXISTS":             {"EXISTS TABLE landfall.t", "", "1\n"},
		"SHOW CREATE":        {"SHOW CREATE TABLE landfall.t FORMAT TSVRaw", "", "CREATE TABLE landfall.t"},
		"SHOW COLUMNS":       {"SHOW COLUMNS FROM t FROM landfall", "", "at\tDateTime64(3, \\'UTC\\')"},
		"system.tables":      {"SELECT database, name FROM system.tables ORDER BY name", "", "landfall\tbig\nlandfall\tt\nlandfall\tv\n"},
		"system.columns":     {"SELECT count() FROM system.columns WHERE database != 'landfall'", "", "0\n"},
		"system.databases":   {"SELECT name FROM system.databases", "", "landfall\n"},
		"version":            {"SELECT version() != ''", "", "1\n"},
		"database parameter": {"SELECT currentDatabase()", "database=default", "landfall\n"},
		"lower limit":        {"SELECT count() FROM big", "max_execution_time=5", "1000000\n"},
		"settings of old":    {"SELECT 1", "readonly=2", "1\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var parameters []string
			if tc.params != "" {
				parameters = append(parameters, tc.params)
			}
			status, answer := r.ask(t, tc.sql, parameters...)
			if status != http.StatusOK || !strings.HasPrefix(answer, tc.want) {
				t.Errorf("%s\ngot %d %q\nwant %q", tc.sql, status, answer, tc.want)
			}
		})
	}
}

func TestReadersLogIn(t *testing.T) {
	r := startReaders(t)
	cases := map[string]struct {
		user, password string
		want           int
	}{
		"right":         {engine.ReaderUser, readerPassword, http.StatusOK},
		"wrong":         {engine.ReaderUser, "x", http.StatusUnauthorized},
		"none":          {engine.ReaderUser, "", http.StatusUnauthorized},
		"nobody":        {"", "", http.StatusUnauthorized},
		"default":       {"default", "", http.StatusUnauthorized},
		"other user":    {"landfall", readerPassword, http.StatusUnauthorized},
		"the hub's own": {"landfall", "hub", http.StatusUnauthorized},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for how, set := range map[string]func(*http.Request){
				"basic": func(q *http.Request) { q.SetBasicAuth(tc.user, tc.password) },
				"headers": func(q *http.Request) {
					q.Header.Set("X-ClickHouse-User", tc.user)
					q.Header.Set("X-ClickHouse-Key", tc.password)
				},
				"parameters": func(q *http.Request) {
					q.URL.RawQuery += "&" + url.Values{"user": {tc.user}, "password": {tc.password}}.Encode()
				},
			} {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.base+"?query=SELECT+1", nil)
				if err != nil {
					t.Fatal(err)
				}
				set(request)
				if status, answer := send(t, request); status != tc.want {
					t.Errorf("%s: status %d, want %d: %s", how, status, tc.want, answer)
				}
			}
		})
	}
	t.Run("at the hub's address", func(t *testing.T) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.process.Address()+"/?query=SELECT+1", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth(engine.ReaderUser, readerPassword)
		if status, _ := send(t, request); status != http.StatusUnauthorized {
			t.Errorf("the readers' password opens the hub's address: %d", status)
		}
	})
}

func TestReaderAddressIsTaken(t *testing.T) {
	r := startReaders(t)
	opts := options(t)
	opts.Registerer = nil
	opts.Reader = &engine.Reader{Listen: r.process.ReaderAddress(), Password: "x", Database: "landfall", Tables: []string{"t"}}
	e, err := engine.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "readers' address") {
		t.Errorf("got %v", err)
	}
}

func TestReaderOptionsAreChecked(t *testing.T) {
	good := engine.Reader{Listen: "127.0.0.1:0", Password: "x", Database: "landfall", Tables: []string{"t"}}
	cases := map[string]func(*engine.Reader){
		"address":   func(r *engine.Reader) { r.Listen = "8123" },
		"password":  func(r *engine.Reader) { r.Password = "" },
		"two lines": func(r *engine.Reader) { r.Password = "a\nb" },
		"database":  func(r *engine.Reader) { r.Database = "" },
		"tables":    func(r *engine.Reader) { r.Tables = nil },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			reader := good
			change(&reader)
			_, err := engine.New(engine.Options{Path: "x", Binary: os.Args[0], Log: slog.New(slog.DiscardHandler), Reader: &reader})
			if err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestReadPassword(t *testing.T) {
	cases := map[string]struct {
		text string
		mode os.FileMode
		want string
		open bool
		err  string
	}{
		"plain":      {"secret", 0o600, "secret", false, ""},
		"line's end": {"secret\n", 0o600, "secret", false, ""},
		"CRLF":       {"secret\r\n", 0o640, "secret", false, ""},
		"blanks":     {" a b \n", 0o600, " a b ", false, ""},
		"open":       {"secret\n", 0o644, "secret", true, ""},
		"empty":      {"", 0o600, "", false, "empty"},
		"only ends":  {"\n\n", 0o600, "", false, "empty"},
		"two lines":  {"a\nb\n", 0o600, "", false, "more than one line"},
		"long":       {strings.Repeat("x", 5000), 0o600, "", false, "4096"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "password")
			if err := os.WriteFile(path, []byte(tc.text), tc.mode); err != nil {
				t.Fatal(err)
			}
			password, open, err := engine.ReadPassword(path)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || password != tc.want || open != tc.open {
				t.Errorf("got %q, open %t, %v", password, open, err)
			}
		})
	}
	if _, _, err := engine.ReadPassword(t.TempDir()); err == nil {
		t.Error("a folder is no password")
	}
	if _, _, err := engine.ReadPassword(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no file, no error")
	}
}

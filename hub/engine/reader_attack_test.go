package engine_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
)

// attack is a statement that must be refused. FILE stands for the path of a
// file with a secret in it.
type attack struct {
	sql    string
	status int
	text   string
}

const (
	denied  = http.StatusForbidden
	invalid = http.StatusBadRequest
)

// attacks are grouped by what they are after.
var attacks = map[string][]attack{
	"files by functions": {
		{"SELECT file('FILE')", denied, "the function file"},
		{"SELECT FILE('FILE')", denied, "function"},
		{"SELECT `file`('FILE')", denied, "the function file"},
		{"SELECT arrayMap(file, ['FILE'])", denied, "the name file"},
		{"SELECT arrayMap(`file`, ['FILE'])", denied, "the name file"},
		{"SELECT arrayMap(x -> file(x), ['FILE'])", denied, "the function file"},
		{"WITH x -> file(x) AS f SELECT f('FILE')", denied, "function"},
		{"WITH x -> file(x) AS lower SELECT lower('FILE')", denied, "the function file"},
		{"WITH file AS lower SELECT arrayMap(lower, ['FILE'])", denied, "the name file"},
		{"SELECT * APPLY(file) FROM (SELECT 'FILE')", denied, "the function file"},
		{"SELECT * APPLY(x -> file(x)) FROM (SELECT 'FILE')", denied, "the function file"},
		{"SELECT * REPLACE (file(a) AS a) FROM (SELECT 'FILE' AS a)", denied, "the function file"},
		{"SELECT COLUMNS('a') APPLY file FROM (SELECT 'FILE' AS a)", denied, "the function file"},
		{"SELECT 1 WHERE file('FILE') != ''", denied, "the function file"},
		{"SELECT 1 FROM t PREWHERE file('FILE') != ''", denied, "the function file"},
		{"SELECT count() FROM t GROUP BY file('FILE')", denied, "the function file"},
		{"SELECT count() HAVING file('FILE') != ''", denied, "the function file"},
		{"SELECT n FROM t QUALIFY file('FILE') != ''", denied, "the function file"},
		{"SELECT n FROM t ORDER BY file('FILE')", denied, "the function file"},
		{"SELECT n FROM t ORDER BY n WITH FILL FROM length(file('FILE'))", denied, "the function file"},
		{"SELECT n FROM t ORDER BY n WITH FILL STEP length(file('FILE'))", denied, "the function file"},
		{"SELECT n, text FROM t ORDER BY n WITH FILL INTERPOLATE (text AS file('FILE'))", denied, "the function file"},
		{"SELECT n FROM t LIMIT length(file('FILE'))", denied, "the function file"},
		{"SELECT n FROM t LIMIT 1 OFFSET length(file('FILE'))", denied, "the function file"},
		{"SELECT n FROM t LIMIT 1 BY file('FILE')", denied, "the function file"},
		{"SELECT sum(n) OVER (PARTITION BY file('FILE')) FROM t", denied, "the function file"},
		{"SELECT sum(n) OVER w FROM t WINDOW w AS (ORDER BY file('FILE'))", denied, "the function file"},
		{"SELECT 1 FROM t AS a JOIN t AS b ON a.text = file('FILE')", denied, "the function file"},
		{"SELECT x FROM t ARRAY JOIN [file('FILE')] AS x", denied, "the function file"},
		{"SELECT (SELECT file('FILE'))", denied, "the function file"},
		{"SELECT 1 IN (SELECT file('FILE'))", denied, "the function file"},
		{"SELECT EXISTS(SELECT file('FILE'))", denied, "the function file"},
		{"WITH x AS (SELECT file('FILE') AS f) SELECT * FROM x", denied, "the function file"},
		{"WITH (SELECT file('FILE')) AS f SELECT f", denied, "the function file"},
		{"SELECT 1 UNION ALL SELECT length(file('FILE'))", denied, "the function file"},
		{"SELECT 1 EXCEPT SELECT length(file('FILE'))", denied, "the function file"},
		{"SELECT * FROM values('a String', file('FILE'))", denied, "the function file"},
		{"SELECT * FROM numbers(length(file('FILE')))", denied, "the function file"},
		{"SELECT quantile(length(file('FILE')))(1)", denied, "function"},
		{"SELECT catboostEvaluate('FILE', 1)", denied, "function"},
		{"SELECT formatRow('Template', 1)", denied, "function"},
		{"SELECT structureToProtobufSchema('a String')", denied, "function"},
		{"SELECT filesystemAvailable()", denied, "function"},
		{"SELECT showCertificate()", denied, "function"},
		{"SELECT addressToLine(1)", denied, "function"},
		{"SELECT flameGraph([1])", denied, "function"},
	},
	"files by tables": {
		{"SELECT * FROM file('FILE', 'LineAsString')", denied, "the table function file"},
		{"SELECT * FROM File('FILE', 'LineAsString')", denied, "table function"},
		{"SELECT * FROM fileCluster('default', 'FILE', 'LineAsString')", denied, "table function"},
		{"SELECT * FROM `FILE`", denied, "the table"},
		{"SELECT * FROM 'FILE'", denied, "the table"},
		{"SELECT * FROM `/etc/passwd`", http.StatusNotFound, "UNKNOWN_TABLE"},
		{"SELECT * FROM default.`FILE`", denied, "the table default"},
		{"SELECT * FROM `default`.\"FILE\"", denied, "the table default"},
		{"SELECT 1 IN default.`FILE`", denied, ""},
		{"SELECT * FROM url('file://FILE', 'LineAsString')", denied, "table function"},
		{"SELECT * FROM executable('cat FILE', 'LineAsString', 'a String')", denied, "table function"},
		{"SELECT * FROM sqlite('FILE', 't')", denied, "table function"},
		{"SELECT * FROM filesystem('FILE')", denied, "table function"},
		{"SELECT * FROM icebergLocal('FILE')", denied, "table function"},
		{"SELECT * FROM deltaLakeLocal('FILE')", denied, "table function"},
		{"SELECT * FROM input('a String')", denied, "table function"},
		{"SELECT * FROM format('LineAsString', 'x')", denied, "table function"},
		{"SELECT * FROM eval('SELECT file(''FILE'')')", denied, "table function"},
		{"SELECT * FROM view(SELECT file('FILE'))", denied, ""},
		{"SELECT * FROM viewIfPermitted(SELECT 1 ELSE null('a UInt8'))", denied, "table function"},
		{"SELECT * FROM numbers(3) AS a, file('FILE', 'LineAsString') AS b", denied, "the table function file"},
		{"SELECT (SELECT * FROM file('FILE', 'LineAsString') LIMIT 1)", denied, "the table function file"},
		{"SELECT 1 IN file('FILE', 'LineAsString')", denied, "function"},
		{"SELECT 1 INTO OUTFILE '/tmp/landfall-reader-was-here'", http.StatusNotImplemented, "INTO OUTFILE"},
		{"SELECT 1 INTO/**/OUTFILE '/tmp/landfall-reader-was-here'", http.StatusNotImplemented, "INTO OUTFILE"},
		{"SHOW TABLES INTO OUTFILE '/tmp/landfall-reader-was-here'", http.StatusNotImplemented, "INTO OUTFILE"},
		{"DESC t INTO OUTFILE '/tmp/landfall-reader-was-here'", http.StatusNotImplemented, "INTO OUTFILE"},
		{"SELECT 1 FORMAT Template", denied, "the format Template"},
		{"SELECT 1 FORMAT Template SETTINGS format_template_row='FILE'", denied, ""},
		{"SELECT 1 FORMAT Protobuf", denied, "the format Protobuf"},
		{"SELECT 1 FORMAT CapnProto", denied, "the format CapnProto"},
		{"SELECT 1 FORMAT Nonsense", denied, "the format Nonsense"},
	},
	"network": {
		{"SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')", denied, "table function"},
		{"SELECT * FROM urlCluster('default', 'http://127.0.0.1:1/', 'LineAsString')", denied, "table function"},
		{"SELECT * FROM s3('http://127.0.0.1:1/b/k', 'CSV')", denied, "table function"},
		{"SELECT * FROM gcs('http://127.0.0.1:1/b/k', 'CSV')", denied, "table function"},
		{"SELECT * FROM azureBlobStorage('x', 'y', 'z')", denied, "table function"},
		{"SELECT * FROM hdfs('hdfs://127.0.0.1:1/x', 'CSV')", denied, "table function"},
		{"SELECT * FROM remote('127.0.0.1', vault.s)", denied, "table function"},
		{"SELECT * FROM remoteSecure('127.0.0.1', vault.s)", denied, "table function"},
		{"SELECT * FROM cluster('default', vault.s)", denied, "table function"},
		{"SELECT * FROM clusterAllReplicas('default', system.processes)", denied, "table function"},
		{"SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')", denied, "table function"},
		{"SELECT * FROM postgresql('127.0.0.1:1', 'a', 'b', 'c', 'd')", denied, "table function"},
		{"SELECT * FROM mongodb('127.0.0.1:1', 'a', 'b', 'c', 'd', 'x String')", denied, "table function"},
		{"SELECT * FROM redis('127.0.0.1:1', 'k', 'k String')", denied, "table function"},
		{"SELECT * FROM odbc('DSN=x', 'a', 'b')", denied, "table function"},
		{"SELECT * FROM jdbc('x', 'a', 'b')", denied, "table function"},
		{"SELECT * FROM arrowflight('x', 'a')", denied, ""},
		{"SELECT aiGenerate('x', 'y')", denied, "function"},
		{"SELECT sleep(3)", denied, "the function sleep"},
		{"SELECT sleepEachRow(3) FROM big", denied, "function"},
		{"SELECT arrayMap(sleep, [1])", denied, "the name sleep"},
	},
	"other databases": {
		{"SELECT * FROM vault.s", denied, "the table vault.s"},
		{"SELECT * FROM `vault`.`s`", denied, "the table vault.s"},
		{"SELECT * FROM vault . s", denied, "the table vault.s"},
		{"SELECT * FROM /* x */ vault/**/./**/s", denied, "the table vault.s"},
		{"SELECT * FROM vault.peek", denied, "the table vault.peek"},
		{"SELECT count() FROM t, vault.s", denied, "the table vault.s"},
		{"SELECT * FROM t AS a LEFT JOIN vault.s AS b ON 1", denied, "the table vault.s"},
		{"SELECT * FROM (SELECT * FROM (SELECT * FROM vault.s))", denied, "the table vault.s"},
		{"WITH vault AS (SELECT * FROM vault.s) SELECT * FROM vault", denied, "the table vault.s"},
		{"SELECT 1 UNION ALL SELECT length(s) FROM vault.s", denied, "the table vault.s"},
		{"SELECT (SELECT s FROM vault.s)", denied, "the table vault.s"},
		{"SELECT '" + tableSecret[:3] + "' IN vault.s", denied, ""},
		{"SELECT n FROM t WHERE text IN (vault.s)", denied, ""},
		{"SELECT n FROM t WHERE text NOT IN vault.s", denied, ""},
		{"SELECT n FROM t WHERE text GLOBAL IN vault.s", denied, ""},
		{"SELECT in('x', vault.s)", denied, ""},
		{"SELECT n FROM t WHERE text = ANY (SELECT s FROM vault.s)", denied, "the table vault.s"},
		{"SELECT joinGet('vault.j', 's', 1)", denied, "function"},
		{"SELECT joinGet(vault.j, 's', 1)", denied, "function"},
		{"SELECT joinGetOrNull('vault.j', 's', toUInt64(1))", denied, "function"},
		{"SELECT dictGet('vault.d', 's', toUInt64(1))", denied, "function"},
		{"SELECT dictGet(vault.d, 's', 1)", denied, "function"},
		{"SELECT dictGetOrDefault('vault.d', 's', 1, '')", denied, "function"},
		{"SELECT * FROM vault.d", denied, "the table vault.d"},
		{"SELECT * FROM dictionary('vault.d')", denied, "table function"},
		{"SELECT * FROM merge('vault', '.*')", denied, "table function"},
		{"SELECT * FROM merge(REGEXP('.*'), '.*')", denied, ""},
		{"SELECT * FROM loop(vault.s)", denied, ""},
		{"SELECT * FROM loop('vault', 's')", denied, "table function"},
		{"SELECT * FROM mergeTreeIndex('vault', 's')", denied, "table function"},
		{"SELECT * FROM mergeTreeIndex(vault, s)", denied, "table function"},
		{"SELECT * FROM fuzzQuery('SELECT 1')", denied, "table function"},
		{"SELECT hasColumnInTable('vault', 's', 's')", denied, "function"},
		{"SHOW TABLES FROM vault", denied, "the database vault"},
		{"SHOW COLUMNS FROM s FROM vault", denied, "the database vault"},
		{"SHOW CREATE TABLE vault.s", denied, "the table vault.s"},
		{"SHOW CREATE DATABASE vault", denied, ""},
		{"DESCRIBE TABLE vault.s", denied, "the table vault.s"},
		{"DESCRIBE TABLE file('FILE', 'LineAsString')", denied, ""},
		{"DESCRIBE (SELECT file('FILE'))", denied, ""},
		{"DESCRIBE url('http://127.0.0.1:1/')", denied, ""},
		{"EXISTS vault.s", denied, "the table vault.s"},
		{"CHECK TABLE vault.s", denied, "only SELECT"},
		{"USE vault", denied, "only SELECT"},
	},
	"hidden tables": {
		{"SELECT * FROM tokens", denied, "SELECT"},
		{"SELECT * FROM landfall.tokens", denied, "the table landfall.tokens"},
		{"SELECT hash FROM \"tokens\"", denied, ""},
		{"SELECT 'x' IN tokens", denied, ""},
		{"SELECT ('a', 'x') IN landfall.tokens", denied, ""},
		{"SELECT n FROM t WHERE (text, text) IN tokens", denied, ""},
		{"SELECT (SELECT any(hash) FROM tokens)", denied, ""},
		{"SELECT count() FROM tokens", denied, ""},
		{"SELECT 1 FROM t SEMI JOIN tokens ON text = hash", denied, ""},
		{"SELECT * FROM merge('tok.*')", denied, "table function"},
		{"SELECT * FROM merge('landfall', 'tok.*')", denied, "table function"},
		{"DESC tokens", denied, "the table landfall.tokens"},
		{"SHOW CREATE tokens", denied, "the table landfall.tokens"},
		{"EXISTS tokens", denied, "the table landfall.tokens"},
		{"SHOW COLUMNS FROM tokens", denied, "the table landfall.tokens"},
		{"SHOW INDEX FROM tokens", denied, ""},
	},
	"the database system": {
		{"SELECT query FROM system.processes", denied, "the table system.processes"},
		{"SELECT query FROM \"system\".\"processes\"", denied, "the table system.processes"},
		{"SELECT query FROM `system.processes`", denied, ""},
		{"SELECT 'x' IN system.processes", denied, "the table system.processes"},
		{"SELECT 'x' IN (system.users)", denied, "the table system.users"},
		{"SELECT 1 WHERE 'x' NOT IN system.stack_trace", denied, "the table system.stack_trace"},
		{"SELECT * FROM system.stack_trace", denied, "the table"},
		{"SELECT * FROM system.users", denied, "the table"},
		{"SELECT * FROM system.user_directories", denied, "the table"},
		{"SELECT * FROM system.server_settings", denied, "the table"},
		{"SELECT * FROM system.settings", denied, "the table"},
		{"SELECT * FROM system.merges", denied, "the table"},
		{"SELECT * FROM system.parts", denied, "the table"},
		{"SELECT * FROM system.errors", denied, "the table"},
		{"SELECT * FROM system.query_cache", denied, "the table"},
		{"SELECT * FROM system.dictionaries", denied, "the table"},
		{"SELECT * FROM system.named_collections", denied, "the table"},
		{"SELECT * FROM system.query_log", denied, "the table"},
		{"SELECT * FROM system.disks", denied, "the table"},
		{"SELECT * FROM system.certificates", denied, "the table"},
		{"SELECT * FROM system.jemalloc_profile_text", denied, "the table"},
		{"SELECT * FROM information_schema.tables", denied, "the table"},
		{"SELECT * FROM INFORMATION_SCHEMA.COLUMNS", denied, "the table"},
		{"WITH s AS (SELECT * FROM system.processes) SELECT * FROM s", denied, "the table"},
		{"SHOW PROCESSLIST", denied, "only SELECT"},
		{"SHOW GRANTS", denied, "only SELECT"},
		{"SHOW USERS", denied, "only SELECT"},
		{"SHOW SETTINGS LIKE '%'", denied, ""},
		{"SHOW FUNCTIONS", denied, "only SELECT"},
		{"SHOW ACCESS", denied, "only SELECT"},
		{"SHOW CLUSTERS", denied, "only SELECT"},
		{"SHOW MERGES", denied, "only SELECT"},
		{"SHOW TABLES WHERE engine = 'Join'", denied, "not understood"},
		{"SHOW DATABASES LIKE 'x' FORMAT Protobuf", denied, "the format"},
		{"SELECT getServerSetting('max_server_memory_usage')", denied, "function"},
		{"SELECT getSetting('log_comment')", denied, "function"},
		{"SELECT getMacro('x')", denied, "function"},
		{"SELECT @@version", denied, "function"},
		{"SELECT hostName()", denied, "function"},
		{"SELECT __getScalar('x')", denied, "function"},
		{"SELECT logTrace('x')", denied, "function"},
	},
	"writing": {
		{"INSERT INTO t (n) VALUES (1)", denied, "INSERT"},
		{"INSERT INTO t SELECT * FROM t", denied, "only SELECT"},
		{"INSERT INTO FUNCTION file('FILE.out', 'CSV', 'a UInt8') VALUES (1)", denied, "INSERT"},
		{"INSERT INTO FUNCTION file('FILE.out', 'CSV', 'a UInt8') SELECT 1", denied, "only SELECT"},
		{"WITH 1 AS x INSERT INTO t SELECT x", denied, ""},
		{"CREATE TABLE x (a UInt8) ENGINE = Memory", denied, "only SELECT"},
		{"CREATE TEMPORARY TABLE x (a UInt8)", denied, "only SELECT"},
		{"CREATE VIEW x AS SELECT file('FILE')", denied, "only SELECT"},
		{"CREATE DATABASE x", denied, "only SELECT"},
		{"CREATE FUNCTION x AS a -> file(a)", denied, "only SELECT"},
		{"CREATE DICTIONARY x (k UInt64) PRIMARY KEY k SOURCE(FILE(path 'FILE' format 'CSV')) LAYOUT(FLAT()) LIFETIME(0)", denied, "only SELECT"},
		{"CREATE USER x", denied, "only SELECT"},
		{"CREATE NAMED COLLECTION x AS a = 1", denied, "only SELECT"},
		{"ATTACH TABLE x FROM 'FILE' (a UInt8) ENGINE = Memory", denied, "only SELECT"},
		{"DETACH TABLE t", denied, "only SELECT"},
		{"DROP TABLE t", denied, "only SELECT"},
		{"UNDROP TABLE t", denied, "only SELECT"},
		{"TRUNCATE TABLE t", denied, "only SELECT"},
		{"RENAME TABLE t TO x", denied, "only SELECT"},
		{"EXCHANGE TABLES t AND big", denied, "only SELECT"},
		{"ALTER TABLE t DELETE WHERE 1", denied, "only SELECT"},
		{"ALTER TABLE t ADD COLUMN x UInt8", denied, "only SELECT"},
		{"DELETE FROM t WHERE 1", denied, "only SELECT"},
		{"UPDATE t SET text = '' WHERE 1", denied, "only SELECT"},
		{"OPTIMIZE TABLE t FINAL", denied, "only SELECT"},
		{"GRANT ALL ON *.* TO default", denied, "only SELECT"},
		{"REVOKE ALL ON *.* FROM default", denied, "only SELECT"},
		{"BACKUP DATABASE vault TO File('FILE.zip')", denied, "only SELECT"},
		{"RESTORE DATABASE vault FROM File('FILE.zip')", denied, "only SELECT"},
		{"KILL QUERY WHERE 1", denied, "only SELECT"},
		{"SYSTEM SHUTDOWN", denied, "only SELECT"},
		{"SYSTEM STOP MERGES", denied, "only SELECT"},
		{"BEGIN TRANSACTION", denied, "only SELECT"},
		{"MOVE USER x TO y", denied, ""},
		{"EXPLAIN SELECT 1", denied, "only SELECT"},
		{"EXPLAIN AST SELECT file('FILE')", denied, "only SELECT"},
		{"SELECT * FROM (EXPLAIN SELECT 1)", denied, ""},
		{"SELECT * FROM (EXPLAIN ESTIMATE SELECT * FROM vault.s)", denied, ""},
	},
	"privileges and limits": {
		{"SET ROLE admin", denied, "only SELECT"},
		{"SET ROLE DEFAULT", denied, "only SELECT"},
		{"SET ROLE ALL", denied, "only SELECT"},
		{"SET readonly = 0", denied, "only SELECT"},
		{"SET max_execution_time = 0", denied, "only SELECT"},
		{"SET param_x = 1", denied, "only SELECT"},
		{"EXECUTE AS default SELECT 1", denied, "only SELECT"},
		{"SELECT 1 SETTINGS readonly = 0", denied, "SETTINGS"},
		{"SELECT 1 SETTINGS max_execution_time = 0", denied, "SETTINGS"},
		{"SELECT 1 SETTINGS max_memory_usage = 0, max_threads = 64", denied, "SETTINGS"},
		{"SELECT 1 FORMAT JSON SETTINGS max_threads = 64", denied, ""},
		{"SELECT 1 SETTINGS max_threads = 64 FORMAT JSON", denied, "SETTINGS"},
		{"SELECT * FROM (SELECT 1 SETTINGS max_threads = 64)", denied, "SETTINGS"},
		{"SELECT 1 UNION ALL SELECT 2 SETTINGS max_threads = 64", denied, "SETTINGS"},
		{"SELECT (SELECT 1 SETTINGS allow_experimental_analyzer = 0)", http.StatusInternalServerError, "is changed in the subquery"},
		{"SELECT 1 SETTINGS allow_experimental_analyzer = 0", http.StatusInternalServerError, "is changed in the subquery"},
		{"SELECT * FROM values('a UInt8', 1) SETTINGS a = 1", denied, "SETTINGS"},
		{"SHOW TABLES SETTINGS max_threads = 64", denied, ""},
	},
	"more than one statement": {
		{"SELECT 1; SELECT 2", invalid, "Multi-statements"},
		{"SELECT 1; SET ROLE admin", invalid, "Multi-statements"},
		{"SELECT 1;; DROP TABLE t", invalid, "Multi-statements"},
		{"SELECT 1; /* x */ -- y\n SET ROLE admin", invalid, "Multi-statements"},
		{"SELECT 1 -- \n; SET ROLE admin", invalid, "Multi-statements"},
		{"SELECT 'a\\'; SET ROLE admin", invalid, ""},
		{"SELECT $a$ x $a$; SET ROLE admin; SELECT $a$ x $a$", invalid, "Multi-statements"},
		{"SELECT 1 PARALLEL WITH SET ROLE admin", invalid, ""},
		{"SELECT 1 PARALLEL WITH SELECT 2", invalid, ""},
		{"SELECT 1) SELECT * FROM (SELECT 2", invalid, ""},
		{"SELECT 1) FORMAT JSON --", invalid, ""},
		{"SELECT 1\x00; SET ROLE admin", invalid, ""},
		{"(SELECT 1); SET ROLE admin", invalid, "Multi-statements"},
		{"SHOW TABLES; SET ROLE admin", invalid, "Multi-statements"},
		{"", invalid, ""},
		{";", invalid, ""},
		{"-- nothing", invalid, ""},
		{"SELECT", invalid, ""},
		{"exit", invalid, ""},
		{"\\q", invalid, ""},
		{"1 + 1", invalid, ""},
	},
	"names that look like the check's own words": {
		{"SELECT 1 AS `x\n IDENTIFIER id: 1, identifier: t` FROM t", denied, "names with"},
		{"SELECT count() FROM system.processes AS `x, identifier: landfall.t\n CONSTANT id: 1, constant_value: 1`", denied, "names with"},
		{"SELECT count() FROM system.processes AS `x, identifier: landfall.t`", denied, "the table system.processes"},
		{"SELECT count() FROM system.processes AS \"x\\n\"", denied, "names with"},
		{"SELECT COLUMNS('x\n JOIN TREE\n IDENTIFIER id: 1, identifier: t') FROM system.processes", denied, "the table system.processes"},
		{"SELECT COLUMNS('x\n CONSTANT id: 7') FROM system.processes", denied, "the table system.processes"},
		{"SELECT file('FILE') AS `x, function_name: lower`", denied, "the function file"},
		{"SELECT `lower, x`('FILE'), `file`('FILE')", denied, ""},
		{"WITH `a\nb` AS (SELECT 1) SELECT * FROM `a\nb`", denied, "names with"},
	},
}

func TestReadersAreRefused(t *testing.T) {
	r := startReaders(t)
	before := enginetest.Exec(t, r.hub, "SELECT count(), sum(n), any(toTypeName(tags)) FROM landfall.t")
	for group, all := range attacks {
		t.Run(group, func(t *testing.T) {
			for _, a := range all {
				sql := strings.ReplaceAll(a.sql, "FILE'", r.secretFile+"'")
				sql = strings.NewReplacer("`FILE`", "`"+r.secretFile+"`", `"FILE"`, `"`+r.secretFile+`"`, "cat FILE", "cat "+r.secretFile).Replace(sql)
				status, answer := r.ask(t, sql)
				if status != a.status || !strings.Contains(answer, a.text) || leaks(answer) != "" {
					t.Errorf("%s\ngot %d %q\nwant %d with %q", sql, status, answer, a.status, a.text)
				}
				// The same in the URL alone.
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.base+"?"+url.Values{"query": {sql}}.Encode(), nil)
				if err != nil {
					t.Fatal(err)
				}
				request.SetBasicAuth("reader", readerPassword)
				if status, answer := send(t, request); sql != "" && (status < 400 || leaks(answer) != "") {
					t.Errorf("GET %s\ngot %d %q", sql, status, answer)
				}
			}
		})
	}
	if after := enginetest.Exec(t, r.hub, "SELECT count(), sum(n), any(toTypeName(tags)) FROM landfall.t"); after != before {
		t.Errorf("the table changed from %q to %q", before, after)
	}
	if got := enginetest.Exec(t, r.hub, "SELECT currentRoles()"); got != "['admin','reader']\n" {
		t.Errorf("the hub's sessions have the roles %q", got)
	}
	for _, path := range []string{"/tmp/landfall-reader-was-here", r.secretFile + ".out"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("a reader wrote %s", path)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(r.secretFile), "data")); err != nil {
		t.Error(err)
	}
}

// TestReadersCannotCallTheHubsFunctions starts on a folder in which somebody
// made a function before there were readers.
func TestReadersCannotCallTheHubsFunctions(t *testing.T) {
	folder := t.TempDir()
	secret := filepath.Join(folder, "secret.txt")
	if err := os.WriteFile(secret, []byte(fileSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	first := startReadersOn(t, filepath.Join(folder, "data"), false)
	for _, sql := range []string{"CREATE FUNCTION peek AS (path) -> file(path)", "CREATE DATABASE landfall"} {
		enginetest.Exec(t, first.hub, sql)
	}
	first.process.Stop(30 * time.Second)

	r := startReadersOn(t, filepath.Join(folder, "data"), true)
	if got := enginetest.Exec(t, r.hub, "SELECT peek('"+secret+"')"); got != fileSecret+"\n" {
		t.Fatalf("the function is gone: %q", got)
	}
	for sql, want := range map[string]string{
		"SELECT peek('" + secret + "')":             "the function peek",
		"SELECT arrayMap(peek, ['" + secret + "'])": "the name peek",
		"SELECT arrayMap(PEEK, ['" + secret + "'])": "the name PEEK",
	} {
		if status, answer := r.ask(t, sql); status != denied || !strings.Contains(answer, want) || leaks(answer) != "" {
			t.Errorf("%s: %d %q", sql, status, answer)
		}
	}
	response, err := http.Post(r.hub+"?query="+url.QueryEscape("CREATE FUNCTION later AS (path) -> file(path)"), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.Header.Get("X-ClickHouse-Exception-Code") != "497" {
		t.Errorf("a function can be made while there are readers: %s", response.Status)
	}
}

func TestReadersParametersAreRefused(t *testing.T) {
	r := startReaders(t)
	cases := map[string]struct {
		sql       string
		parameter string
		status    int
		text      string
	}{
		"database system":  {"SELECT * FROM processes", "database=system", denied, "the database system"},
		"other database":   {"SELECT * FROM s", "database=vault", denied, "the database vault"},
		"identifier":       {"SELECT * FROM {x:Identifier}", "param_x=system.processes", denied, "Identifier"},
		"identifier, case": {"SELECT * FROM { x : Identifier }", "param_x=vault.s", denied, "Identifier"},
		"identifier, part": {"SELECT * FROM system.{x:Identifier}", "param_x=processes", denied, "Identifier"},
		"missing":          {"SELECT {x:UInt8}", "param_y=1", invalid, "not set"},
		"escape":           {"SELECT {x:String} AS a, file('x')", "param_x=')", denied, "the function file"},
		"format":           {"SELECT 1", "default_format=Template", denied, "the format Template"},
		"setting":          {"SELECT 1", "format_template_row=/etc/passwd", denied, "the setting format_template_row"},
		"schema":           {"SELECT 1", "format_schema=/etc/passwd", denied, "the setting"},
		"output schema":    {"SELECT 1", "output_format_schema=/tmp/x", denied, "the setting"},
		"analyzer":         {"SELECT 1", "allow_experimental_analyzer=0", denied, "the setting"},
		"implicit":         {"SELECT 1", "implicit_select=1", denied, "the setting"},
		"ddl":              {"SELECT 1", "allow_ddl=1", denied, "the setting"},
		"role":             {"SELECT 1", "role=admin", http.StatusNotImplemented, "role"},
		"session":          {"SELECT 1", "session_id=x", http.StatusNotImplemented, "session_id"},
		"no number":        {"SELECT 1", "max_threads=x", invalid, "number"},
		"negative":         {"SELECT 1", "max_threads=-1", invalid, "number"},
		"not a number":     {"SELECT 1", "max_execution_time=nan", invalid, "number"},
		"quoted setting":   {"SELECT 1", "session_timezone=UTC', readonly = '0", invalid, "time"},
		"two halves":       {"*/; SET ROLE admin", "query=SELECT 1 /*", invalid, "Multi-statements"},
		"two statements":   {"; SET ROLE admin", "query=SELECT 1", invalid, "Multi-statements"},
		"long":             {"SELECT '" + strings.Repeat("x", 300<<10) + "'", "x=1", invalid, "longer"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, answer := r.ask(t, tc.sql, tc.parameter)
			if status != tc.status || !strings.Contains(answer, tc.text) || leaks(answer) != "" {
				t.Errorf("got %d %q, want %d with %q", status, answer, tc.status, tc.text)
			}
		})
	}
	t.Run("external table", func(t *testing.T) {
		body := "--x\r\nContent-Disposition: form-data; name=\"e\"\r\n\r\n1\r\n--x--\r\n"
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.base+"?query=SELECT+1+FROM+e&e_structure=a+UInt8", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		request.SetBasicAuth("reader", readerPassword)
		if status, answer := send(t, request); status != http.StatusNotImplemented {
			t.Errorf("got %d %q", status, answer)
		}
	})
	t.Run("other methods", func(t *testing.T) {
		for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions} {
			request, err := http.NewRequestWithContext(t.Context(), method, r.base+"?query=SELECT+1", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.SetBasicAuth("reader", readerPassword)
			if status, _ := send(t, request); status != http.StatusMethodNotAllowed {
				t.Errorf("%s: %d", method, status)
			}
		}
	})
}

// TestReadersCannotReadAnyOtherTable asks for every table of the engine.
func TestReadersCannotReadAnyOtherTable(t *testing.T) {
	r := startReaders(t)
	allowed := map[string]bool{"landfall.t": true, "landfall.big": true, "landfall.v": true}
	for _, name := range strings.Fields("one numbers databases tables columns functions data_type_families time_zones") {
		allowed["system."+name] = true
	}
	names := strings.Fields(enginetest.Exec(t, r.hub, "SELECT database || '.' || name FROM system.tables"))
	if len(names) < 100 {
		t.Fatalf("only %d tables", len(names))
	}
	for _, name := range names {
		for _, sql := range []string{"SELECT * FROM " + name + " LIMIT 1", "SELECT count() FROM " + name, "SELECT n FROM t WHERE n IN (SELECT 1 FROM " + name + ")"} {
			if name == "system.numbers" {
				continue
			}
			if status, answer := r.ask(t, sql); status == http.StatusOK && !allowed[name] || leaks(answer) != "" {
				t.Errorf("%s: %d %q", sql, status, answer)
			}
		}
	}
	functions := strings.Fields(enginetest.Exec(t, r.hub, "SELECT name FROM system.table_functions WHERE name NOT IN ('numbers', 'values', 'generateSeries', 'generate_series', 'SQLStandardValues', 'view', 'viewIfPermitted')"))
	for _, name := range functions {
		if status, answer := r.ask(t, "SELECT * FROM "+name+"('x', 'y', 'z') LIMIT 1"); status != http.StatusForbidden {
			t.Errorf("the table function %s: %d %q", name, status, answer)
		}
	}
}

package engine_test

import (
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
)

// FuzzReaders sends statements made of pieces, and raw text, to the readers'
// address and looks for planted secrets in the answers. Half of what the
// pieces make is aimed at them.
func FuzzReaders(f *testing.F) {
	r := startReaders(f)
	before := enginetest.Exec(f, r.hub, "SELECT count(), sum(n) FROM landfall.t")
	for seed := range uint64(20) {
		f.Add(seed, "")
	}
	for _, all := range attacks {
		for _, a := range all {
			f.Add(uint64(0), a.sql)
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, raw string) {
		sql := raw
		if raw == "" || seed%2 == 1 {
			w := writer{random: rand.New(rand.NewPCG(seed, 1)), file: r.secretFile, raw: raw}
			sql = w.statement(3)
		}
		status, answer := r.ask(t, sql, "max_execution_time=2", "max_memory_usage=100000000", "max_result_rows=1000", "param_x=1", "param_s="+r.secretFile)
		if secret := leaks(answer); secret != "" {
			t.Fatalf("%s\nanswers %d with the secret %s: %s", sql, status, secret, answer)
		}
		if status == http.StatusUnauthorized || strings.Contains(answer, "LOGICAL_ERROR") && status == http.StatusOK {
			t.Errorf("%s\nanswers %d: %s", sql, status, answer)
		}
		if seed%64 == 0 {
			if after := enginetest.Exec(t, r.hub, "SELECT count(), sum(n) FROM landfall.t"); after != before {
				t.Fatalf("%s\nchanged the table from %q to %q", sql, before, after)
			}
			if _, err := os.Stat(r.secretFile + ".out"); err == nil {
				t.Fatalf("%s\nwrote a file", sql)
			}
		}
	})
}

// writer writes statements at random.
type writer struct {
	random *rand.Rand
	file   string
	// raw is a piece of the fuzzer's own.
	raw string
}

func (w *writer) pick(pieces ...string) string { return pieces[w.random.IntN(len(pieces))] }

func (w *writer) statement(depth int) string {
	query := w.query(depth)
	switch w.random.IntN(12) {
	case 0:
		return query + w.pick("; ", ";--\n", " PARALLEL WITH ") + w.pick("SET ROLE admin", w.query(1), "DROP TABLE t", "SET readonly = 0")
	case 1:
		return w.pick("SHOW TABLES FROM ", "DESC ", "SHOW CREATE TABLE ", "EXISTS ", "EXPLAIN ", "SHOW COLUMNS FROM ", "DESCRIBE TABLE ") + w.source(1)
	case 2:
		return w.pick("INSERT INTO t (n) ", "CREATE VIEW x AS ", "EXECUTE AS default ", "EXPLAIN ", "INSERT INTO FUNCTION file('"+w.file+".out') ") + query
	case 3:
		return query + w.pick(" INTO OUTFILE '"+w.file+".out'", " SETTINGS readonly = 0", " FORMAT Template", " FORMAT JSON SETTINGS max_threads = 9")
	default:
		return query + w.pick("", "", " FORMAT JSON", " FORMAT Native", ";")
	}
}

func (w *writer) query(depth int) string {
	var s strings.Builder
	if depth <= 0 {
		return "SELECT " + w.value(0) + " FROM " + w.source(0)
	}
	if w.random.IntN(4) == 0 {
		s.WriteString("WITH " + w.pick("x AS ("+w.query(depth-2)+")", w.value(depth-1)+" AS y", "(a -> "+w.value(depth-1)+") AS f", "file AS lower", "RECURSIVE x AS ("+w.query(depth-2)+")") + " ")
	}
	s.WriteString("SELECT " + w.pick("", "", "DISTINCT ") + w.value(depth) + w.pick("", " AS a", " AS `x, identifier: landfall.t`", ", *", ", * APPLY("+w.pick("file", "lower", "x -> file(x)")+")"))
	if w.random.IntN(6) != 0 {
		s.WriteString(" FROM " + w.source(depth))
		if w.random.IntN(3) == 0 {
			s.WriteString(w.pick(", ", " CROSS JOIN ", " LEFT JOIN ", " PASTE JOIN ", " ANY JOIN ") + w.source(depth-1) + w.pick("", " ON 1", " USING (s)", " ON "+w.value(1)))
		}
	}
	for _, clause := range []string{" ARRAY JOIN [%] AS q", " PREWHERE %", " WHERE %", " GROUP BY %", " HAVING %", " WINDOW w AS (ORDER BY %)", " QUALIFY %", " ORDER BY % WITH FILL INTERPOLATE (a AS %)", " ORDER BY %", " LIMIT 1 BY %", " LIMIT length(%)"} {
		if w.random.IntN(9) == 0 {
			for strings.Contains(clause, "%") {
				clause = strings.Replace(clause, "%", strings.ReplaceAll(w.value(depth-1), "%", ""), 1)
			}
			s.WriteString(clause)
		}
	}
	if depth > 0 && w.random.IntN(5) == 0 {
		s.WriteString(w.pick(" UNION ALL ", " EXCEPT ", " INTERSECT ", " UNION DISTINCT ") + w.query(depth-1))
	}
	return s.String()
}

func (w *writer) source(depth int) string {
	if depth > 0 {
		switch w.random.IntN(8) {
		case 0, 1:
			return "(" + w.query(depth-1) + ")" + w.pick("", " AS a", " AS t")
		case 2:
			return "view(" + w.query(depth-2) + ")"
		case 3:
			return "viewExplain('EXPLAIN', '', (" + w.query(depth-2) + "))"
		case 4:
			return "values('s String', " + w.value(depth-1) + ")"
		}
	}
	return w.pick("t", "landfall.t", "big", "v", "x", "system.one", "numbers(3)",
		"vault.s", "`vault`.`s`", "vault.peek", "vault.j", "vault.d", "tokens", "landfall.tokens", "\"tokens\"", "{s:Identifier}",
		"system.processes", "system.tables", "system.columns", "information_schema.tables", "system.query_cache", "system.stack_trace",
		"file('"+w.file+"', 'LineAsString')", "`"+w.file+"`", "default.`"+w.file+"`", "'"+w.file+"'", "url('file://"+w.file+"', 'LineAsString')",
		"merge('vault', '.*')", "merge(REGEXP('.*'), 's')", "merge('.*')", "remote('127.0.0.1', vault.s)", "cluster('default', vault.s)",
		"loop(vault.s)", "dictionary('vault.d')",
		"format('LineAsString', file('"+w.file+"'))", "executable('cat "+w.file+"', 'LineAsString', 's String')", "mergeTreeIndex('vault', 's')",
		"eval('SELECT * FROM vault.s')", "fileCluster('default', '"+w.file+"', 'LineAsString')", "input('s String')", "generateSeries(1, 2)",
		"sqlite('"+w.file+"', 's')", "t AS `x\n IDENTIFIER id: 1, identifier: t`", "t FINAL", "t SAMPLE 1", w.raw)
}

func (w *writer) value(depth int) string {
	if depth <= 0 {
		return w.pick("1", "'a'", "n", "s", "a", "text", "hash", "*", "'"+w.file+"'", "NULL", "{x:UInt8}", "{s:String}", "x.s", "vault.s.s", "file", "q", w.raw)
	}
	v := func() string { return w.value(depth - 1) }
	switch w.random.IntN(22) {
	case 0:
		return w.pick("file", "FILE", "`file`", "f", "lower", "fileIf") + "(" + w.pick("'"+w.file+"'", "{s:String}", v()) + ")"
	case 1:
		return w.pick("arrayMap", "arrayFilter", "arraySort", "arrayFold", "mapApply", "arrayExists") + "(" + w.pick("file", "`file`", "x -> file(x)", "lower", "f", "(x) -> "+v()) + ", ['" + w.file + "'])"
	case 2:
		return "(" + w.query(depth-2) + ")"
	case 3:
		return v() + w.pick(" IN ", " NOT IN ", " GLOBAL IN ") + w.pick("vault.s", "tokens", "landfall.tokens", "(vault.s)", "system.processes", "("+w.query(depth-2)+")", w.source(depth-1))
	case 4:
		return w.pick("joinGet('vault.j', 's', 1)", "joinGet(vault.j, 's', toUInt64(1))", "joinGetOrNull(concat('vault', '.j'), 's', 1)")
	case 5:
		return w.pick("dictGet('vault.d', 's', 1)", "dictGet(vault.d, 's', toUInt64(1))", "dictGetOrDefault('vault.d', 's', 1, '')", "dictGetString('vault.d', 's', 1)")
	case 6:
		return "CASE WHEN " + v() + " THEN " + v() + " ELSE " + v() + " END"
	case 7:
		return w.pick("max", "any", "groupArray", "count", "sumIf", "argMax", "uniqExact") + "(" + v() + w.pick("", ", 1") + ")" + w.pick("", "", " OVER (PARTITION BY "+v()+")", " OVER w")
	case 8:
		return w.pick("EXISTS", "NOT EXISTS", "tuple", "array", "toString", "length", "materialize", "identity", "toTypeName", "throwIf") + "(" + v() + ")"
	case 9:
		return "CAST(" + v() + " AS " + w.pick("String", "UInt8", "Array(String)", "LowCardinality(String)") + ")"
	case 10:
		return v() + w.pick(" + ", " = ", " || ", " AND ", " LIKE ", " BETWEEN 1 AND ") + v()
	case 11:
		return w.pick("COLUMNS('.*')", "* EXCEPT (n)", "* REPLACE (file('"+w.file+"') AS n)", "COLUMNS('x\n IDENTIFIER id: 1')", "t.*", "COLUMNS(n) APPLY file")
	case 12:
		return "concat(" + v() + ", " + v() + ")"
	case 13:
		return w.pick("getSetting('x')", "hostName()", "currentUser()", "getMacro('x')", "version()", "@@version", "currentDatabase()", "getServerSetting('x')")
	default:
		return w.value(0)
	}
}

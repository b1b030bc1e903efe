package chdb

import (
	"strings"
	"testing"
)

func TestReaderStatement(t *testing.T) {
	cases := map[string]struct {
		reason         string
		in             string
		text, format   string
		refused, query bool
	}{
		"select":           {"nothing to cut", "SELECT 1", "SELECT 1", "", false, true},
		"format":           {"the clause goes", "SELECT 1\nFORMAT JSON", "SELECT 1", "JSON", false, true},
		"quoted format":    {"a keyword as a format", "SELECT 1\nFORMAT `Null`", "SELECT 1", "Null", false, true},
		"format as name":   {"a column", "SELECT format\nFROM t", "SELECT format\nFROM t", "", false, true},
		"template":         {"it reads files", "SELECT 1\nFORMAT Template", "", "", true, false},
		"settings behind":  {"not even behind the format", "SELECT 1\nFORMAT JSON\nSETTINGS max_threads = 1", "", "", true, false},
		"semicolon":        {"one statement", "SELECT 1; SELECT 2", "", "", true, false},
		"quoted semicolon": {"text is text", "SELECT ';'", "SELECT ';'", "", false, true},
		"brackets":         {"they must not close what they did not open", "SELECT 1) UNION ALL (SELECT 2", "", "", true, false},
		"open bracket":     {"nor leave it open", "SELECT (1", "", "", true, false},
		"nothing":          {"no statement", "", "", "", true, false},
		"escaped name":     {"the tree is read by lines", "SELECT 1 AS `a\\nb`", "", "", true, false},
		"name with a line": {"the same", "SELECT 1 AS `a\nb`", "", "", true, false},
		"identifier":       {"a parameter can hold any name", "SELECT * FROM {x:Identifier}", "", "", true, false},
		"parameter":        {"others hold values", "SELECT {x:UInt8}", "SELECT {x:UInt8}", "", false, true},
		"set":              {"no query", "SET ROLE admin", "SET ROLE admin", "", false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newReaderStatement(tc.in)
			if (err != nil) != tc.refused {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err == nil && (got.text != tc.text || got.format != tc.format || got.isSelect() != tc.query) {
				t.Errorf("%s: %q, format %q, query %t", tc.reason, got.text, got.format, got.isSelect())
			}
		})
	}
}

func TestShowStatements(t *testing.T) {
	rules := treeRules{database: "landfall", tables: []string{"t"}}
	cases := map[string]bool{
		"SHOW DATABASES": true, "SHOW DATABASES LIKE 'a'": true, "SHOW DATABASES NOT ILIKE 'a'": true,
		"SHOW TABLES": true, "SHOW TABLES FROM landfall": true, "SHOW TABLES FROM `landfall` LIKE 'x'": true,
		"SHOW TABLES FROM vault": false, "SHOW TABLES FROM": false, "SHOW TABLES LIKE": false, "SHOW TABLES WHERE 1": false,
		"SHOW TABLES FROM landfall.t": false, "SHOW COLUMNS FROM t": true, "SHOW FULL COLUMNS FROM t FROM landfall": true,
		"SHOW COLUMNS FROM t FROM vault": false, "SHOW COLUMNS FROM tokens": false, "SHOW CREATE TABLE landfall.t": true,
		"SHOW CREATE TABLE tokens": false, "SHOW CREATE DATABASE landfall": false, "DESCRIBE TABLE t": true,
		"DESCRIBE TABLE system.tables": true, "DESCRIBE TABLE system.users": false, "DESCRIBE TABLE file('x')": false,
		"DESCRIBE TABLE\n(\n    SELECT 1\n)": false, "EXISTS TABLE t": true, "EXISTS DATABASE vault": false,
		"DESCRIBE TABLE t SETTINGS a = 1": false, "SET ROLE admin": false, "SHOW": false, "DESCRIBE TABLE": false,
		"DESCRIBE TABLE landfall.": false, "SHOW GRANTS": false,
	}
	for sql, allowed := range cases {
		s, err := newReaderStatement(sql)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.checkShow(rules); (err == nil) != allowed {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestCallable(t *testing.T) {
	for name, want := range map[string]bool{
		"lower": true, "LOWER": true, "sum": true, "sumIf": true, "sumArrayIf": true, "uniqExactMergeState": true,
		"countOrDefault": true, "anyLast_respect_nulls": true, "file": false, "FILE": false, "fileIf": false, "if": true,
		"sleep": false, "sleepIf": false, "dictGet": false, "joinGet": false, "": false, "IfIf": true, "map": true,
		"mapIf": true, "notAFunction": false, "aiGenerate": false, "getSetting": false, "formatRow": false,
	} {
		if got := callable(name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}

// TestTree checks lines that ClickHouse printed; hub/engine has the statements
// themselves.
func TestTree(t *testing.T) {
	rules := treeRules{database: "landfall", tables: []string{"t"}, forbidden: map[string]bool{"file": true}}
	cases := map[string]struct {
		reason, tree, refused string
	}{
		"good":                 {"one of all", "QUERY id: 0\n  PROJECTION\n    LIST id: 1, nodes: 1\n      FUNCTION id: 2, function_name: count, function_type: ordinary\n  JOIN TREE\n    IDENTIFIER id: 3, identifier: landfall.t\n", ""},
		"alias first":          {"the name comes last", "JOIN TREE\n IDENTIFIER id: 3, alias: s, identifier: vault.s, final: 1", "vault.s"},
		"two names":            {"an alias that plays a name", "JOIN TREE\n IDENTIFIER id: 3, alias: s, identifier: landfall.t, identifier: system.users", "system.users"},
		"column":               {"a qualified column is no table", "WHERE\n IDENTIFIER id: 3, identifier: a.b", ""},
		"system as column":     {"it could be the right side of IN", "WHERE\n IDENTIFIER id: 3, identifier: System.users", "System.users"},
		"function as value":    {"arrayMap(file, …)", "LIST id: 1\n IDENTIFIER id: 3, identifier: File", "name File"},
		"column of that name":  {"with its table it is a column", "LIST id: 1\n IDENTIFIER id: 3, identifier: t.file", ""},
		"table of that name":   {"and in FROM a table", "JOIN TREE\n IDENTIFIER id: 3, identifier: file", ""},
		"no name":              {"nothing to check is not good", "FUNCTION id: 3, function_type: ordinary", "without a name"},
		"no table function":    {"the same", "TABLE_FUNCTION id: 3", "without a name"},
		"no identifier":        {"the same", "IDENTIFIER id: 3, alias: x", "without a name"},
		"table function":       {"only those that make rows of nothing", "TABLE_FUNCTION id: 3, table_function_name: file", "file"},
		"unknown node":         {"what is not known is refused", "TELEPORT id: 3", "not understood"},
		"unknown heading":      {"the same", "TELEPORT", "not understood"},
		"settings":             {"limits stay", "SETTINGS max_threads=1", "SETTINGS"},
		"table under new join": {"a heading that is not known is refused", "THIRD TABLE EXPRESSION\n IDENTIFIER id: 1, identifier: vault.s", "not understood"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := rules.check(tc.tree)
			if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestReaderSettings(t *testing.T) {
	h := &readerHandler{limits: map[string]uint64{"max_execution_time": 30, "max_threads": 2}}
	cases := map[string]struct {
		name, value, want string
		refused           bool
	}{
		"lower":    {"max_execution_time", "5", "5", false},
		"higher":   {"max_execution_time", "500", "30", false},
		"none":     {"max_execution_time", "0", "30", false},
		"fraction": {"max_execution_time", "1.5", "1", false},
		"tiny":     {"max_execution_time", "0.1", "30", false},
		"huge":     {"max_threads", "1e300", "2", false},
		"infinite": {"max_threads", "inf", "2", false},
		"text":     {"max_threads", "x", "", true},
		"negative": {"max_threads", "-1", "", true},
		"passed":   {"extremes", "1", "1", false},
		"unknown":  {"format_schema", "x", "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			settings, err := h.settings([]setting{{tc.name, tc.value}})
			if (err != nil) != tc.refused {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			got := ""
			for _, one := range settings {
				if one.name == tc.name {
					got += one.value
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// FuzzReaderStatement looks for panics, and for text that is cut where it must
// not be.
func FuzzReaderStatement(f *testing.F) {
	for _, seed := range []string{"SELECT 1\nFORMAT JSON", "SHOW TABLES FROM `x` LIKE 'y'", "FORMAT x", "{x:Identifier}", "((", "`", "$a$"} {
		f.Add(seed)
	}
	rules := treeRules{database: "landfall", tables: []string{"t"}}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := newReaderStatement(text)
		if err != nil {
			return
		}
		if !strings.HasPrefix(strings.TrimSpace(text), s.text) {
			t.Errorf("%q became %q", text, s.text)
		}
		if !s.isSelect() {
			_ = s.checkShow(rules)
		}
		_ = rules.check(text)
	})
}

package chdb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStatement(t *testing.T) {
	type want struct {
		head, format, data string
		insert, files      bool
	}
	cases := map[string]struct {
		reason string
		text   string
		want   want
	}{
		"select": {"no data", "SELECT 1", want{head: "SELECT 1"}},
		"what the driver sends": {
			"data comes in the body", "INSERT INTO t (a, `b`) FORMAT Native",
			want{head: "INSERT INTO t (a, `b`)", format: "Native", insert: true},
		},
		"values": {
			"data begins after the word", "insert into db.t (a) values (1), (';')",
			want{head: "insert into db.t (a)", format: "Values", data: " (1), (';')", insert: true},
		},
		"lines": {
			"one line end belongs to the statement", "INSERT INTO t FORMAT JSONEachRow \r\n\n{\"a\":1}",
			want{head: "INSERT INTO t", format: "JSONEachRow", data: "\n{\"a\":1}", insert: true},
		},
		"settings": {
			"settings belong to the statement", "INSERT INTO t SETTINGS a = 'FORMAT x', b = 1 FORMAT CSV\n1",
			want{head: "INSERT INTO t SETTINGS a = 'FORMAT x', b = 1", format: "CSV", data: "1", insert: true},
		},
		"names like keywords": {
			"a table called values, a column called format", "INSERT INTO values.format (values, format) VALUES (1, 2)",
			want{head: "INSERT INTO values.format (values, format)", format: "Values", data: " (1, 2)", insert: true},
		},
		"quoted names": {
			"quotes hide everything", "INSERT INTO \"a b\".`FORMAT ``x` VALUES (1)",
			want{head: "INSERT INTO \"a b\".`FORMAT ``x`", format: "Values", data: " (1)", insert: true},
		},
		"comments": {
			"comments hide everything", "-- INSERT\n/* VALUES */ INSERT /* x */ INTO t -- FORMAT y\n VALUES (1)",
			want{head: "-- INSERT\n/* VALUES */ INSERT /* x */ INTO t -- FORMAT y", format: "Values", data: " (1)", insert: true},
		},
		"table function": {
			"its arguments are no data", "INSERT INTO FUNCTION null('a String') (a) VALUES ('x')",
			want{head: "INSERT INTO FUNCTION null('a String') (a)", format: "Values", data: " ('x')", insert: true},
		},
		"insert select": {
			"there is no data, whatever FORMAT says", "INSERT INTO t SELECT * FROM u FORMAT Null",
			want{head: "INSERT INTO t SELECT * FROM u FORMAT Null"},
		},
		"insert with":    {"the same with WITH", "INSERT INTO t WITH 1 AS x SELECT x", want{head: "INSERT INTO t WITH 1 AS x SELECT x"}},
		"infile":         {"a file of this host", "INSERT INTO t FROM INFILE '/etc/passwd' FORMAT CSV", want{head: "INSERT INTO t FROM INFILE '/etc/passwd' FORMAT CSV", files: true}},
		"outfile":        {"a file of this host", "SELECT 1 INTO OUTFILE '/tmp/x'", want{head: "SELECT 1 INTO OUTFILE '/tmp/x'", files: true}},
		"outfile quoted": {"only a text", "SELECT 'INTO OUTFILE'", want{head: "SELECT 'INTO OUTFILE'"}},
		"heredoc":        {"a text without escapes", "SELECT $x$ INTO OUTFILE $x$", want{head: "SELECT $x$ INTO OUTFILE $x$"}},
		"cut off":        {"an unclosed quote ends with the text", "INSERT INTO t VALUES", want{head: "INSERT INTO t", format: "Values", insert: true}},
		"no format name": {"left to the engine", "INSERT INTO t FORMAT", want{head: "INSERT INTO t FORMAT"}},
		"open quote":     {"left to the engine", "INSERT INTO `t", want{head: "INSERT INTO `t"}},
		"empty":          {"left to the engine", "", want{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := parseStatement(tc.text)
			got := want{head: s.head, format: s.format, insert: s.insert, files: s.files}
			if s.insert {
				got.data = tc.text[s.data:]
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func FuzzParseStatement(f *testing.F) {
	for _, seed := range []string{"INSERT INTO t VALUES (1)", "SELECT $a$ x $a$ -- y", "insert into `a``b\\`.c format x\n", "/*", "'\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := parseStatement(text)
		if s.data < 0 || s.data > len(text) {
			t.Fatalf("data begins at %d of %d", s.data, len(text))
		}
		if !s.insert && s.head != text {
			t.Fatalf("the text was changed to %q", s.head)
		}
	})
}

func TestQuotes(t *testing.T) {
	if got, want := quoteText("it's \\ \x00"), `'it\'s \\ \0'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := quoteName("a`b"), "`a\\`b`"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for name, want := range map[string]bool{"max_threads": true, "": false, "1a": false, "a b": false, "a=1,b": false, "é": false} {
		if isName(name) != want {
			t.Errorf("isName(%q) = %t", name, !want)
		}
	}
}

package arch

import (
	"go/token"
	"strings"
	"testing"
)

// code is a synthetic folder: file name to source.
type code map[string]string

// parse builds folders from sources, keyed by path.
func parse(t *testing.T, sources code) []*folder {
	t.Helper()
	byPath := map[string]*folder{}
	var all []*folder
	fset := token.NewFileSet()
	for name, src := range sources {
		f, err := parseFile(fset, name, src)
		if err != nil {
			t.Fatal(err)
		}
		dir := name[:strings.LastIndex(name, "/")]
		if byPath[dir] == nil {
			byPath[dir] = &folder{path: dir}
			all = append(all, byPath[dir])
		}
		byPath[dir].files = append(byPath[dir].files, f)
	}
	return all
}

func one(t *testing.T, name, src string) *folder {
	t.Helper()
	return parse(t, code{name: src})[0]
}

// wantComplaint wants exactly one complaint with the words, or none for "".
func wantComplaint(t *testing.T, reason string, got []string, words string) {
	t.Helper()
	switch {
	case words == "" && len(got) > 0:
		t.Errorf("%s: wanted no complaint, got %q", reason, got)
	case words != "" && (len(got) != 1 || !strings.Contains(got[0], words)):
		t.Errorf("%s: wanted one complaint with %q, got %q", reason, words, got)
	}
}

const here = `"` + module + `/`

// Each case breaks one rule of the real table, or stays just inside it.
func TestRulesOnTheRealTable(t *testing.T) {
	cases := map[string]struct {
		reason string
		file   string
		src    string
		check  func(r row, d *folder) []string
		want   string
	}{
		"no row": {
			reason: "a folder that nobody described must not slip in",
			file:   "newthing/a.go", src: `package newthing`,
			check: func(_ row, d *folder) []string { return checkRow(rows, d) },
			want:  "give it a row",
		},
		"row by wildcard": {
			reason: "test/... speaks for what lies below",
			file:   "test/bench/a.go", src: `package bench`,
			check: func(_ row, d *folder) []string { return checkRow(rows, d) },
		},
		"api takes the store": {
			reason: "routes must be testable without a database",
			file:   "hub/api/a.go", src: `package api; import _ ` + here + `hub/store"`,
			check: imports, want: "hub/api may not import hub/store",
		},
		"api's tests take the store": {
			reason: "tests use real collaborators",
			file:   "hub/api/a_test.go", src: `package api; import _ ` + here + `hub/store"`,
			check: imports,
		},
		"an unlisted library": {
			reason: "a new dependency is a decision",
			file:   "hub/ingest/a.go", src: `package ingest; import _ "github.com/google/uuid"`,
			check: imports, want: "hub/ingest may not import github.com/google/uuid",
		},
		"a part of a listed library": {
			reason: "a module path covers its packages",
			file:   "hub/store/a.go", src: `package store; import _ "github.com/ClickHouse/clickhouse-go/v2/lib/driver"`,
			check: imports,
		},
		"a library whose path begins alike": {
			reason: "v2 is not v20",
			file:   "hub/store/a.go", src: `package store; import _ "github.com/ClickHouse/clickhouse-go/v20"`,
			check: imports, want: "may not import",
		},
		"schema takes a library": {
			reason: "the vocabulary depends on nothing",
			file:   "schema/a.go", src: `package schema; import _ "github.com/google/go-cmp/cmp"`,
			check: imports, want: "schema may not import",
		},
		"schema's tests take go-cmp": {
			reason: "go-cmp is open to tests",
			file:   "schema/a_test.go", src: `package schema; import _ "github.com/google/go-cmp/cmp"`,
			check: imports,
		},
		"metrics outside pure packages": {
			reason: "prometheus is open outside pure packages",
			file:   "hub/auth/a.go", src: `package auth; import _ "github.com/prometheus/client_golang/prometheus"`,
			check: imports,
		},
		"metrics in a pure package": {
			reason: "a verdict counts nothing",
			file:   "hub/compliance/a.go", src: `package compliance; import _ "github.com/prometheus/client_golang/prometheus"`,
			check: imports, want: "hub/compliance may not import",
		},
		"cgo": {
			reason: "programs are built without cgo",
			file:   "hub/engine/a.go", src: `package engine; import "C"`,
			check: imports, want: "may not import C",
		},
		"test support in code": {
			reason: "the conformance suite is linked into no program",
			file:   "hub/a.go", src: `package hub; import _ ` + here + `hub/engine/enginetest"`,
			check: imports, want: "outside a test",
		},
		"test support in a test": {
			reason: "that is what it is for",
			file:   "hub/a_test.go", src: `package hub; import _ ` + here + `hub/engine/enginetest"`,
			check: imports,
		},
		"driver outside the store": {
			reason: "SQL in one place",
			file:   "hub/a.go", src: `package hub; import _ "github.com/ClickHouse/clickhouse-go/v2"`,
			check: inFences, want: "is fenced off from hub",
		},
		"driver in a test of the hub": {
			reason: "counting rows behind the store's back is a test's business",
			file:   "hub/a_test.go", src: `package hub; import _ "github.com/ClickHouse/clickhouse-go/v2"`,
			check: inFences,
		},
		"purego outside chdb": {
			reason: "static binaries stay static",
			file:   "hub/engine/a.go", src: `package engine; import _ "github.com/ebitengine/purego"`,
			check: inFences, want: "is fenced off from hub/engine",
		},
		"libchdb in the hub": {
			reason: "its crash must stay the engine's",
			file:   "hub/engine/a.go", src: `package engine; import _ ` + here + `internal/chdb"`,
			check: inFences, want: "internal/chdb is fenced off",
		},
		"libchdb in the engine": {
			reason: "the one place for it",
			file:   "cmd/landfall-engine/a.go", src: `package main; import _ ` + here + `internal/chdb"`,
			check: inFences,
		},
		"the hub in the command line": {
			reason: "the command line is a client",
			file:   "internal/cli/a.go", src: `package cli; import _ ` + here + `hub"`,
			check: inFences, want: "hub is fenced off from internal/cli",
		},
		"context in a pure package": {
			reason: "what takes a context can wait, and a verdict does not",
			file:   "hub/compliance/a.go", src: `package compliance; import _ "context"`,
			check: checkPure, want: "may not import context",
		},
		"files in a pure package": {
			reason: "what is on the disk is not an argument",
			file:   "hub/compliance/a.go", src: `package compliance; import _ "io/fs"`,
			check: checkPure, want: "may not import io/fs",
		},
		"files that a row allows": {
			reason: "what is embedded is fixed when it is built",
			file:   "schema/clickhouse/a.go", src: `package clickhouse; import _ "io/fs"`,
			check: checkPure,
		},
		"context in a pure package's test": {
			reason: "purity is about the code",
			file:   "hub/compliance/a_test.go", src: `package compliance; import _ "context"`,
			check: checkPure,
		},
		"the clock in a pure package": {
			reason: "time only as a value, under whatever name",
			file:   "schema/a.go", src: `package schema; import tick "time"; var a = tick.Now()`,
			check: checkPure, want: "may not call time.Now",
		},
		"the clock as a value": {
			reason: "not calling it is no excuse",
			file:   "schema/a.go", src: `package schema; import "time"; var now = time.Now`,
			check: checkPure, want: "may not call time.Now",
		},
		"time as a value": {
			reason: "durations and instants are fine",
			file:   "schema/a.go", src: `package schema; import "time"; func Late(now time.Time) bool { return now.IsZero() }`,
			check: checkPure,
		},
		"a goroutine in a pure package": {
			reason: "the answer must not depend on a schedule",
			file:   "schema/a.go", src: `package schema; func F() { go func() {}() }`,
			check: checkPure, want: "may not start a goroutine",
		},
		"the clock elsewhere": {
			reason: "only pure packages are held to it",
			file:   "hub/ingest/a.go", src: `package ingest; import "time"; var a = time.Now()`,
			check: checkPure,
		},
		"environment in the hub": {
			reason: "only cmd reads it",
			file:   "hub/a.go", src: `package hub; import "os"; var a = os.Getenv("X")`,
			check: checkProcess, want: "may not use os.Getenv",
		},
		"arguments under another name": {
			reason: "renaming the import hides nothing",
			file:   "hub/a.go", src: `package hub; import sys "os"; var a = sys.Args`,
			check: checkProcess, want: "may not use os.Args",
		},
		"signals in the hub": {
			reason: "signals end programs; parts end with their context",
			file:   "hub/a.go", src: `package hub; import "os/signal"; func F() { signal.Notify(nil) }`,
			check: checkProcess, want: "may not use os/signal.Notify",
		},
		"arguments by way of flag": {
			reason: "flag.Parse reads os.Args",
			file:   "hub/a.go", src: `package hub; import "flag"; func F() { flag.Parse() }`,
			check: checkProcess, want: "may not use flag.Parse",
		},
		"environment in a program": {
			reason: "that is its job",
			file:   "cmd/landfall-hub/a.go", src: `package main; import "os"; var a = os.Args`,
			check: checkProcess,
		},
		"environment in a test": {
			reason: "tests find their server there",
			file:   "hub/a_test.go", src: `package hub; import "os"; var a = os.Getenv("CI")`,
			check: checkProcess,
		},
		"dot import": {
			reason: "it hides from every check by name",
			file:   "hub/a.go", src: `package hub; import . "os"; var a = Args`,
			check: func(_ row, d *folder) []string { return checkDotImports(d) }, want: "with a dot",
		},
		"six methods": {
			reason: "one is too many",
			file:   "hub/a.go", src: `package hub; type x interface { A(); B(); C(); D(); E(); F() }`,
			check: interfaces, want: "has 6 methods",
		},
		"five methods": {
			reason: "the limit itself is fine",
			file:   "hub/a.go", src: `package hub; type x interface { A(); B(); C(); D(); E() }`,
			check: interfaces,
		},
		"six by embedding": {
			reason: "embedding must not get around it",
			file:   "hub/a.go", src: `package hub; import "io"; type y interface { A(); B(); C(); D(); E() }; type x interface { y; io.Closer }`,
			check: interfaces, want: "has 6 methods",
		},
		"six without a name": {
			reason: "neither must an unnamed one",
			file:   "hub/a.go", src: `package hub; func F(x interface { A(); B(); C(); D(); E(); F() }) {}`,
			check: interfaces, want: "has 6 methods",
		},
		"a constraint": {
			reason: "a union of types has no methods",
			file:   "hub/a.go", src: `package hub; type x interface { ~int | ~string }`,
			check: interfaces,
		},
		"a vague name": {
			reason: "util says nothing",
			file:   "hub/util/a.go", src: `package util`,
			check: names, want: "name it after what it holds",
		},
		"a vague folder": {
			reason: "nor does its folder",
			file:   "hub/helpers/a.go", src: `package fine`,
			check: names, want: "name it after what it holds",
		},
		"a standard name": {
			reason: "two packages called http",
			file:   "hub/http/a.go", src: `package http`,
			check: names, want: "has the name of a standard one",
		},
		"no package comment": {
			reason: "a comment on something else is none",
			file:   "hub/a.go", src: "// Package hub.\n\npackage hub",
			check: comment, want: "has no comment",
		},
		"a comment about another package": {
			reason: "copied and not read",
			file:   "hub/a.go", src: "// Package api serves.\npackage hub",
			check: comment, want: "has no comment",
		},
		"a package comment": {
			reason: "the form that godoc shows",
			file:   "hub/a.go", src: "// Package hub wires.\npackage hub",
			check: comment,
		},
		"a comment in a folder of tests": {
			reason: "there is nowhere else to put it",
			file:   "hub/a_test.go", src: "// Package hub wires.\npackage hub",
			check: comment,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := one(t, c.file, c.src)
			r, _ := rowOf(rows, d.path)
			wantComplaint(t, c.reason, c.check(r, d), c.want)
		})
	}
}

func imports(r row, d *folder) []string    { return checkImports(rows, r, d) }
func inFences(_ row, d *folder) []string   { return checkFences(fences, d) }
func interfaces(_ row, d *folder) []string { return checkInterfaces(d) }
func comment(_ row, d *folder) []string    { return checkComment(d) }
func names(_ row, d *folder) []string      { return checkName([]string{"http"}, d) }

func TestACommentInATestIsNone(t *testing.T) {
	d := parse(t, code{
		"hub/a.go":      "package hub",
		"hub/a_test.go": "// Package hub wires.\npackage hub",
	})[0]
	wantComplaint(t, "godoc does not read tests", checkComment(d), "has no comment")
}

func TestWallsAreSeenToFall(t *testing.T) {
	cases := map[string]struct {
		reason  string
		sources code
		want    string
	}{
		"directly": {
			reason:  "the plainest way",
			sources: code{"agent/a.go": `package agent; import _ ` + here + `hub/api"`, "hub/api/a.go": `package api`},
			want:    "agent → hub/api",
		},
		"through a third": {
			reason: "a wall with a door is no wall",
			sources: code{
				"scheduler/a.go":       `package scheduler; import _ ` + here + `internal/bridge"`,
				"internal/bridge/a.go": `package bridge; import _ ` + here + `dashboards"`,
				"dashboards/a.go":      `package dashboards`,
			},
			want: "scheduler → internal/bridge → dashboards",
		},
		"in a test": {
			reason:  "tests of both sides stand in test/",
			sources: code{"agent/outbox/a_test.go": `package outbox; import _ ` + here + `hub"`},
			want:    "agent/outbox → hub",
		},
		"through the test of a third": {
			reason: "the tests of what is imported are not linked",
			sources: code{
				"agent/a.go":                   `package agent; import _ ` + here + `internal/hubclient"`,
				"internal/hubclient/a_test.go": `package hubclient; import _ ` + here + `hub"`,
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wantComplaint(t, c.reason, checkWalls(walls, parse(t, c.sources)), c.want)
		})
	}
}

func TestAnUnsoundTableIsSeen(t *testing.T) {
	cases := map[string]struct {
		reason string
		table  []row
		want   string
	}{
		"twice":      {"the second would never be read", []row{{folder: "a", why: "w"}, {folder: "a", why: "w"}}, "two rows"},
		"no reason":  {"a rule without a reason is not kept", []row{{folder: "a"}}, "gives no reason"},
		"to nowhere": {"an arrow to nowhere", []row{{folder: "a", imports: []string{"b"}, why: "w"}}, "has no row"},
		"sound":      {"nothing to say", []row{{folder: "a", imports: []string{"b", "x.org/y"}, why: "w"}, {folder: "b", why: "w"}}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wantComplaint(t, c.reason, checkTable(c.table), c.want)
		})
	}
}

func TestAFalseMapIsSeen(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"complete":    {"wildcards and lists count", "| `a`, `b` | |\n| `c/...` | |\n", ""},
		"one missing": {"a folder nobody drew", "| `a` | |\n| `c/...` | |\n", "does not name b"},
		"one gone":    {"a folder that was removed", "| `a`, `b`, `old` | |\n| `c/...` | |\n", "names old"},
		"in prose":    {"prose is not the map", "`a`\n| x | `a` |\n| `b` | |\n| `c/...` | |\n", "does not name a"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wantComplaint(t, c.reason, checkMap(c.text, []string{"a", "b", "c/d"}), c.want)
		})
	}
}

package chdb

import (
	_ "embed"
	"slices"
	"strings"
)

// functionList holds the functions that readers may call, in lower case, one
// per line: those of ClickHouse 26.7 that compute something from their
// arguments. What reads files, settings, other tables, the host or the network
// is not in it, nor is anything that a later version adds.
//
//go:embed functions.txt
var functionList string

var readerFunctions = func() map[string]bool {
	set := map[string]bool{}
	for name := range strings.Lines(functionList) {
		set[strings.TrimSpace(name)] = true
	}
	return set
}()

// combinators may follow the name of an aggregate function, any number of
// them. The longer ones stand first.
var combinators = []string{
	"mergestate", "simplestate", "ordefault", "resample", "distinct", "foreach", "argmin", "argmax",
	"ornull", "state", "merge", "array", "map", "if",
}

// callable tells whether readers may call this function.
func callable(name string) bool {
	name = strings.ToLower(name)
	for {
		if readerFunctions[name] {
			return true
		}
		cut := name
		for _, suffix := range combinators {
			if rest, ok := strings.CutSuffix(name, suffix); ok && rest != "" {
				cut = rest
				break
			}
		}
		if cut == name {
			return false
		}
		name = cut
	}
}

// readerTableFunctions make rows of nothing but their arguments.
var readerTableFunctions = map[string]bool{
	"numbers": true, "values": true, "sqlstandardvalues": true, "generateseries": true, "generate_series": true,
}

// readerSystemTables are those tables of the database system that may be read:
// what tools ask to draw a list of tables and columns, and the source of a
// SELECT without FROM. ClickHouse shows in them what the reader may read.
var readerSystemTables = map[string]bool{
	"system.one": true, "system.numbers": true, "system.databases": true, "system.tables": true, "system.columns": true,
	"system.functions": true, "system.data_type_families": true, "system.time_zones": true,
}

// What a line of a query tree may begin with. A node that is not here, such as
// an EXPLAIN or something a later version brings, is refused.
var (
	treeNodes = []string{
		"QUERY", "UNION", "LIST", "CONSTANT", "FUNCTION", "LAMBDA", "IDENTIFIER", "MATCHER", "TABLE_FUNCTION",
		"JOIN", "CROSS JOIN", "ARRAY_JOIN", "SORT", "INTERPOLATE", "WINDOW",
		"APPLY COLUMN TRANSFORMER", "EXCEPT COLUMN TRANSFORMER", "REPLACE COLUMN TRANSFORMER",
	}
	treeHeadings = []string{
		"WITH", "PROJECTION", "JOIN TREE", "PREWHERE", "WHERE", "GROUP BY", "HAVING", "WINDOW", "QUALIFY", "ORDER BY",
		"INTERPOLATE", "LIMIT BY", "LIMIT BY LIMIT", "LIMIT BY OFFSET", "LIMIT", "OFFSET", "QUERIES", "PARAMETERS",
		"ARGUMENTS", "EXPRESSION", "PARTITION BY", "FRAME BEGIN OFFSET", "FRAME END OFFSET", "FRAME BEGIN", "FRAME END",
		"FILL FROM", "FILL TO", "FILL STEP", "FILL STALENESS", "INTERPOLATE_EXPRESSION",
		"JOIN EXPRESSION", "JOIN EXPRESSIONS",
	}
	// A table is named right below these.
	treeTables = []string{"JOIN TREE", "TABLE EXPRESSION", "LEFT TABLE EXPRESSION", "RIGHT TABLE EXPRESSION"}
	// These are followed by a name or a number of the statement.
	treeNamed = []string{"EXPRESSION ", "REPLACEMENTS ", "REPLACEMENT NAME "}
)

// treeRules are what a query tree is checked against.
type treeRules struct {
	// database is where bare names of tables are looked up.
	database string
	tables   []string
	// forbidden are the functions of the running engine that readers may not
	// call, in lower case. A function can be named without being called:
	// arrayMap(file, …).
	forbidden map[string]bool
}

// check reads what EXPLAIN QUERY TREE run_passes = 0 prints: what a statement
// says, parsed by ClickHouse, before any name is looked up or anything run. It
// returns why the statement is refused, or nil.
//
// Names in the statement can put lines into the text, and words into lines. They
// can never take any away, and every line has to pass, so that only makes for
// more to be refused; see also plainNames.
func (r treeRules) check(tree string) error {
	source := false
	for line := range strings.Lines(tree) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		isSource := source
		source = slices.Contains(treeTables, line)
		if source || slices.Contains(treeHeadings, line) {
			continue
		}
		if strings.HasPrefix(line, "SETTINGS ") {
			return refusal("SETTINGS cannot be given here")
		}
		kind, rest, isNode := strings.Cut(line, " id: ")
		if isNode && slices.Contains(treeNodes, kind) {
			if err := r.checkNode(kind, rest, isSource); err != nil {
				return err
			}
			continue
		}
		if slices.ContainsFunc(treeNamed, func(prefix string) bool { return strings.HasPrefix(line, prefix) }) {
			continue
		}
		return refusal("%q is not understood", cut(line))
	}
	return nil
}

func (r treeRules) checkNode(kind, attributes string, isSource bool) error {
	switch kind {
	case "FUNCTION":
		names := values(attributes, "function_name")
		for _, name := range names {
			if !callable(name) {
				return refusal("the function %s cannot be called here", cut(name))
			}
		}
		if len(names) == 0 {
			return refusal("a function without a name")
		}
	case "TABLE_FUNCTION":
		names := values(attributes, "table_function_name")
		for _, name := range names {
			if !readerTableFunctions[strings.ToLower(name)] {
				return refusal("the table function %s cannot be used here", cut(name))
			}
		}
		if len(names) == 0 {
			return refusal("a table function without a name")
		}
	case "IDENTIFIER":
		names := values(attributes, "identifier")
		for _, name := range names {
			if err := r.checkName(name, isSource); err != nil {
				return err
			}
		}
		if len(names) == 0 {
			return refusal("an identifier without a name")
		}
	}
	return nil
}

// checkName checks a name that may be a table's, a column's or a function's.
// What a bare name is, and whether it may be read, ClickHouse decides.
func (r treeRules) checkName(name string, isSource bool) error {
	database, _, qualified := strings.Cut(name, ".")
	if !qualified {
		if !isSource && r.forbidden[strings.ToLower(name)] {
			return refusal("the name %s is a function's that cannot be called here; write it with the name of its table", cut(name))
		}
		return nil
	}
	if readerSystemTables[name] {
		return nil
	}
	system := strings.EqualFold(database, "system") || strings.EqualFold(database, "information_schema")
	if system || isSource && !r.readable(name) {
		return refusal("the table %s cannot be read here; SHOW TABLES lists what can", cut(name))
	}
	return nil
}

// readable tells whether a qualified name is one of the readers' tables.
func (r treeRules) readable(name string) bool {
	table, ok := strings.CutPrefix(name, r.database+".")
	return ok && slices.Contains(r.tables, table)
}

// values returns every value of an attribute of a node. There is one, unless an
// alias contains what looks like another.
func values(attributes, name string) []string {
	var found []string
	for i, part := range strings.Split(", "+strings.TrimLeft(attributes, "0123456789, "), ", "+name+": ") {
		if i == 0 {
			continue
		}
		value, _, _ := strings.Cut(part, ", ")
		found = append(found, value)
	}
	return found
}

// cut shortens a piece of a statement for an error.
func cut(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// refusal is the error for what readers may not do.
func refusal(format string, args ...any) *Exception {
	return failure(codeAccessDenied, format, args...)
}

package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// local turns an import path of this module into a folder; "" for others.
func local(path string) string {
	if path == module {
		return "."
	}
	if rest, ok := strings.CutPrefix(path, module+"/"); ok {
		return rest
	}
	return ""
}

// standard says whether an import path belongs to the standard library.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && first != "C"
}

// covers says whether a pattern of the table holds for a folder of this module
// or for an import path of a library.
func covers(pattern, path string) bool {
	if pattern == "any" {
		return true
	}
	if root, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == root || strings.HasPrefix(path, root+"/")
	}
	first, _, _ := strings.Cut(pattern, "/")
	library := strings.Contains(first, ".")
	return path == pattern || library && strings.HasPrefix(path, pattern+"/")
}

func anyCovers(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return covers(p, path) })
}

// rowOf finds the row of a folder: its own first, else the nearest /... above.
func rowOf(table []row, path string) (row, bool) {
	var best row
	found := false
	for _, r := range table {
		if r.folder == path {
			return r, true
		}
		if strings.HasSuffix(r.folder, "/...") && covers(r.folder, path) && len(r.folder) > len(best.folder) {
			best, found = r, true
		}
	}
	return best, found
}

// checkRow wants a row for the folder.
func checkRow(table []row, d *folder) []string {
	if _, ok := rowOf(table, d.path); ok {
		return nil
	}
	return []string{d.path + ": no rule says what this folder may import; give it a row in test/arch/table_test.go " +
		"and in ARCHITECTURE.md"}
}

// checkImports holds a folder's imports against its row.
func checkImports(table []row, r row, d *folder) []string {
	var bad []string
	for _, f := range d.files {
		for _, imp := range f.imports() {
			target := imp.path
			if l := local(target); l != "" {
				target = l
			} else if standard(target) {
				continue
			}
			if target == d.path || allowed(r, f.test, target) {
				if why, ok := supportOnly(table, r, f.test, target); ok {
					bad = append(bad, fmt.Sprintf("%s: %s imports %s outside a test: %s", f.at(imp.spec), d.path, target, why))
				}
				continue
			}
			bad = append(bad, fmt.Sprintf("%s: %s may not import %s: %s", f.at(imp.spec), d.path, target, r.why))
		}
	}
	return bad
}

func allowed(r row, test bool, target string) bool {
	if anyCovers(r.imports, target) || anyCovers(openToAll, target) {
		return true
	}
	if test && (anyCovers(r.tests, target) || anyCovers(openToTests, target)) {
		return true
	}
	return !r.pure && anyCovers(openOutsidePure, target)
}

// supportOnly finds an import of a test-support package from code that is
// linked into a program.
func supportOnly(table []row, from row, test bool, target string) (why string, broken bool) {
	if test || from.testSupport {
		return "", false
	}
	to, ok := rowOf(table, target)
	return to.why, ok && to.testSupport
}

// checkFences holds a folder's imports against the fences.
func checkFences(fences []fence, d *folder) []string {
	var bad []string
	for _, f := range d.files {
		for _, imp := range f.imports() {
			target := imp.path
			if l := local(target); l != "" {
				target = l
			}
			for _, fe := range fences {
				if !covers(fe.path, target) || anyCovers(fe.only, d.path) || f.test && anyCovers(fe.tests, d.path) || target == d.path {
					continue
				}
				bad = append(bad, fmt.Sprintf("%s: %s is fenced off from %s: %s", f.at(imp.spec), target, d.path, fe.why))
			}
		}
	}
	return bad
}

// checkWalls finds every way from one side of a wall to the other: through the
// imports of a folder's code and tests, then through the code of what these
// import.
func checkWalls(walls []wall, all []*folder) []string {
	code, tests := map[string][]string{}, map[string][]string{}
	for _, d := range all {
		for _, f := range d.files {
			graph := code
			if f.test {
				graph = tests
			}
			for _, imp := range f.imports() {
				if l := local(imp.path); l != "" && l != d.path && !slices.Contains(graph[d.path], l) {
					graph[d.path] = append(graph[d.path], l)
				}
			}
		}
	}
	var bad []string
	for _, w := range walls {
		for _, d := range all {
			if !covers(w.from, d.path) {
				continue
			}
			first := append(slices.Clone(code[d.path]), tests[d.path]...)
			if way := wayTo(code, d.path, first, w.to); way != nil {
				bad = append(bad, fmt.Sprintf("%s reaches %s (%s): %s", w.from, w.to, strings.Join(way, " → "), w.why))
			}
		}
	}
	return bad
}

// wayTo returns the shortest way from a folder, over one of the first steps, to
// any folder that the pattern covers, or nil.
func wayTo(graph map[string][]string, from string, first []string, pattern string) []string {
	seen := map[string]bool{from: true}
	for queue := [][]string{{from}}; len(queue) > 0; queue = queue[1:] {
		way := queue[0]
		steps := graph[way[len(way)-1]]
		if len(way) == 1 {
			steps = first
		}
		for _, next := range steps {
			if seen[next] {
				continue
			}
			seen[next] = true
			longer := append(slices.Clone(way), next)
			if covers(pattern, next) {
				return longer
			}
			queue = append(queue, longer)
		}
	}
	return nil
}

// impure are imports by which code depends on more than its arguments.
var impure = []string{
	"context", "log", "log/slog", "os", "os/exec", "os/signal", "io/fs", "io/ioutil", "path/filepath",
	"net", "net/http", "net/rpc", "syscall", "math/rand", "math/rand/v2", "crypto/rand",
}

// clock are the functions of package time that look at the clock or wait for it.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}

// checkPure wants the code of pure folders to be functions of their arguments.
func checkPure(r row, d *folder) []string {
	if !r.pure {
		return nil
	}
	var bad []string
	for _, f := range d.files {
		if f.test {
			continue
		}
		for _, imp := range f.imports() {
			if slices.Contains(impure, imp.path) && !slices.Contains(r.imports, imp.path) {
				bad = append(bad, fmt.Sprintf("%s: %s is pure and may not import %s: no context, logger, file system, "+
					"network or chance; take what you need as a value (%s)", f.at(imp.spec), d.path, imp.path, r.why))
			}
		}
		for _, u := range uses(f, "time", clock) {
			bad = append(bad, fmt.Sprintf("%s: %s is pure and may not call time.%s: take the time as a value (%s)",
				f.at(u), d.path, u.Sel.Name, r.why))
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				bad = append(bad, fmt.Sprintf("%s: %s is pure and may not start a goroutine (%s)", f.at(g), d.path, r.why))
			}
			return true
		})
	}
	return bad
}

// processState are the functions and variables that belong to the process.
var processState = map[string][]string{
	"os": {
		"Args", "Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv", "Clearenv", "Exit",
	},
	"os/signal": {"Notify", "NotifyContext", "Ignore", "Ignored", "Reset", "Stop"},
	"flag":      {"Parse", "CommandLine", "Args", "Arg", "NArg"},
	"syscall":   {"Getenv", "Environ", "Setenv", "Exit"},
}

// checkProcess lets only programs read arguments, environment and signals and
// end the process. Tests may.
func checkProcess(r row, d *folder) []string {
	if r.process {
		return nil
	}
	var bad []string
	for _, f := range d.files {
		if f.test {
			continue
		}
		for _, pkg := range []string{"flag", "os", "os/signal", "syscall"} {
			for _, u := range uses(f, pkg, processState[pkg]) {
				bad = append(bad, fmt.Sprintf("%s: %s may not use %s.%s: only cmd reads arguments, environment and signals "+
					"and ends the process; pass the value in (a child's environment starts from (*exec.Cmd).Environ)",
					f.at(u), d.path, pkg, u.Sel.Name))
			}
		}
	}
	return bad
}

// uses finds selectors on an imported package, under whatever name it has.
func uses(f *file, pkg string, names []string) []*ast.SelectorExpr {
	as := ""
	for _, imp := range f.imports() {
		if imp.path == pkg {
			as = pkg[strings.LastIndex(pkg, "/")+1:]
			if imp.spec.Name != nil {
				as = imp.spec.Name.Name
			}
		}
	}
	var found []*ast.SelectorExpr
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && as != "" && x.Name == as && slices.Contains(names, sel.Sel.Name) {
				found = append(found, sel)
			}
		}
		return true
	})
	return found
}

// checkDotImports forbids dot imports, which would hide what a file uses from
// every check above.
func checkDotImports(d *folder) []string {
	var bad []string
	for _, f := range d.files {
		for _, imp := range f.imports() {
			if imp.spec.Name != nil && imp.spec.Name.Name == "." {
				bad = append(bad, fmt.Sprintf("%s: %s imports %s with a dot: name what you use", f.at(imp.spec), d.path, imp.path))
			}
		}
	}
	return bad
}

const mostMethods = 5

// checkInterfaces wants interfaces of at most five methods. Embedded ones of
// the same package count with their methods, foreign ones as one.
func checkInterfaces(d *folder) []string {
	declared := map[string]*ast.InterfaceType{}
	for _, f := range d.files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if it, ok := spec.Type.(*ast.InterfaceType); ok {
					declared[spec.Name.Name] = it
				}
			}
			return true
		})
	}
	var bad []string
	for _, f := range d.files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			it, ok := n.(*ast.InterfaceType)
			if !ok {
				return true
			}
			if count := methods(it, declared); count > mostMethods {
				bad = append(bad, fmt.Sprintf("%s: an interface in %s has %d methods, %d is the most: declare at the user's "+
					"side what that user needs", f.at(it), d.path, count, mostMethods))
			}
			return true
		})
	}
	return bad
}

func methods(it *ast.InterfaceType, declared map[string]*ast.InterfaceType) int {
	count := 0
	for _, field := range it.Methods.List {
		switch t := field.Type.(type) {
		case *ast.FuncType:
			count += len(field.Names)
		case *ast.Ident:
			if inner := declared[t.Name]; inner != nil && inner != it {
				count += methods(inner, declared)
			}
		case *ast.SelectorExpr:
			count++
		}
	}
	return count
}

// vague are names that say nothing about what a package holds.
var vague = []string{
	"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "lib", "types", "models", "interfaces",
}

// checkName wants a noun of the domain. taken are the standard library's names.
func checkName(taken []string, d *folder) []string {
	name := d.name()
	if slices.Contains(vague, name) || slices.Contains(vague, d.path[strings.LastIndex(d.path, "/")+1:]) {
		return []string{fmt.Sprintf("%s: package %s: name it after what it holds or wraps", d.path, name)}
	}
	if name != "main" && slices.Contains(taken, name) {
		return []string{fmt.Sprintf("%s: package %s has the name of a standard one: every importer would have to rename one", d.path, name)}
	}
	return nil
}

// checkComment wants one package comment, of the form that godoc shows.
func checkComment(d *folder) []string {
	name := d.name()
	onlyTests := !slices.ContainsFunc(d.files, func(f *file) bool { return !f.test })
	for _, f := range d.files {
		if f.syntax.Doc == nil || f.test && !onlyTests {
			continue
		}
		text := f.syntax.Doc.Text()
		if name == "main" && text != "" || strings.HasPrefix(text, "Package "+name+" ") {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: package %s has no comment that begins \"Package %s …\": say what it is for", d.path, name, name)}
}

// checkTable wants the table itself to be sound: no row twice, none without a
// reason, and none that names a folder that no row describes.
func checkTable(table []row) []string {
	var bad []string
	seen := map[string]bool{}
	for _, r := range table {
		if seen[r.folder] {
			bad = append(bad, r.folder+": has two rows")
		}
		seen[r.folder] = true
		if r.why == "" {
			bad = append(bad, r.folder+": its row gives no reason")
		}
		for _, p := range append(slices.Clone(r.imports), r.tests...) {
			folder := strings.TrimSuffix(p, "/...")
			first, _, _ := strings.Cut(folder, "/")
			if p == "any" || strings.Contains(first, ".") || slices.Contains(impure, p) {
				continue
			}
			if _, ok := rowOf(table, folder); !ok {
				bad = append(bad, fmt.Sprintf("%s: its row lets it import %s, which has no row", r.folder, p))
			}
		}
	}
	return bad
}

// checkMap holds the package map of ARCHITECTURE.md, the rows of its table that
// begin with a folder in backquotes, against the folders that hold Go code.
func checkMap(text string, there []string) []string {
	var named []string
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for i, part := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				named = append(named, part)
			}
		}
	}
	var bad []string
	for _, folder := range there {
		if !anyCovers(named, folder) {
			bad = append(bad, "ARCHITECTURE.md: its package map does not name "+folder)
		}
	}
	for _, n := range named {
		if !slices.ContainsFunc(there, func(folder string) bool { return covers(n, folder) }) {
			bad = append(bad, "ARCHITECTURE.md: its package map names "+n+", which holds no Go code")
		}
	}
	return bad
}

// Package arch holds the architecture of Landfall as a test: what each folder
// may import and why, and the habits that keep packages small and pure. The
// table is in table_test.go, the rules over it in check_test.go, and
// broken_test.go sees each rule fail.
package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is where go test runs this package, seen from the repository.
const root = "../.."

func TestTheTableIsSound(t *testing.T) {
	report(t, checkTable(rows))
}

func TestEveryFolderKeepsItsRules(t *testing.T) {
	taken := standardNames(t)
	for _, d := range loadAll(t) {
		t.Run(d.path, func(t *testing.T) {
			report(t, checkRow(rows, d))
			report(t, checkFences(fences, d))
			report(t, checkDotImports(d))
			report(t, checkInterfaces(d))
			report(t, checkName(taken, d))
			report(t, checkComment(d))
			if r, ok := rowOf(rows, d.path); ok {
				report(t, checkImports(rows, r, d))
				report(t, checkPure(r, d))
				report(t, checkProcess(r, d))
			}
		})
	}
}

func TestWallsStand(t *testing.T) {
	report(t, checkWalls(walls, loadAll(t)))
}

// The rules above see direct imports; a library of a library shows only in
// what a program links.
func TestProgramsStayStatic(t *testing.T) {
	for _, s := range static {
		if code, err := filepath.Glob(filepath.Join(root, s.program, "*.go")); err != nil || len(code) == 0 {
			continue // comes with a later issue
		}
		t.Run(s.program+" without "+s.mustNotLink, func(t *testing.T) {
			linked := list(t, "-deps", "./"+s.program)
			for _, dep := range linked {
				if covers(s.mustNotLink, dep) {
					t.Errorf("%s links %s: %s (go mod why %s)", s.program, dep, s.why, dep)
				}
			}
		})
	}
}

// ARCHITECTURE.md shows the package map to people; it must name what exists
// and nothing else.
func TestTheMapIsTrue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, d := range loadAll(t) {
		there = append(there, d.path)
	}
	report(t, checkMap(string(text), there))
}

func loadAll(t *testing.T) []*folder {
	t.Helper()
	all, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no Go code found: the rules would hold for nothing")
	}
	return all
}

func report(t *testing.T, bad []string) {
	t.Helper()
	for _, b := range bad {
		t.Error(b)
	}
}

// standardNames are the package names that importers expect to be standard.
func standardNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, path := range list(t, "std") {
		elements := strings.Split(path, "/")
		if !slices.Contains(elements, "internal") && !slices.Contains(elements, "vendor") {
			names = append(names, elements[len(elements)-1])
		}
	}
	return names
}

// list runs go list in the root and returns its lines.
func list(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.Fields(string(out))
}

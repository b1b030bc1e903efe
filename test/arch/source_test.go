package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// A file is one parsed Go file.
type file struct {
	test   bool
	syntax *ast.File
	fset   *token.FileSet
}

// at says where a node stands, as path:line.
func (f *file) at(n ast.Node) string {
	p := f.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", filepath.ToSlash(p.Filename), p.Line)
}

// imports returns path and position of every import.
func (f *file) imports() []imported {
	var list []imported
	for _, spec := range f.syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has refused it already
		}
		list = append(list, imported{path: p, spec: spec})
	}
	return list
}

// An imported is one import of a file.
type imported struct {
	path string
	spec *ast.ImportSpec
}

// A folder is every Go file of one directory, whatever its build constraints
// say: a rule that holds on one platform only is not a rule.
type folder struct {
	path  string // relative to the root, with slashes
	files []*file
}

// name is the package name that the folder's importers see.
func (d *folder) name() string {
	for _, f := range d.files {
		if !f.test {
			return f.syntax.Name.Name
		}
	}
	return strings.TrimSuffix(d.files[0].syntax.Name.Name, "_test")
}

// parseFile parses one file; its name decides which folder and tier it is.
func parseFile(fset *token.FileSet, name string, src any) (*file, error) {
	syntax, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &file{test: strings.HasSuffix(name, "_test.go"), syntax: syntax, fset: fset}, nil
}

// load parses the whole module below root, nested modules excepted.
func load(root string) ([]*folder, error) {
	found := map[string]*folder{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipDir(p, rel, entry.Name())
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f, err := parseFile(fset, filepath.ToSlash(rel), src)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(rel))
		if found[dir] == nil {
			found[dir] = &folder{path: dir}
		}
		found[dir].files = append(found[dir].files, f)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("parsing the module at %s: %w", root, err)
	}
	var all []*folder
	for _, d := range found {
		all = append(all, d)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].path < all[j].path })
	return all, nil
}

// skipDir passes over what the go command passes over, and over nested modules.
func skipDir(p, rel, name string) error {
	if rel == "." {
		return nil
	}
	if name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

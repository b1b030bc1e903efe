package scheduler

import (
	"flag"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
)

var update = flag.Bool("update", false, "write golden files anew")

// tree is a folder of a control plane, by path.
type tree map[string]string

// readTree reads a folder on disk.
func readTree(t testing.TB, dir string) tree {
	t.Helper()
	files := tree{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// sub is what lies below a folder, with paths from there.
func (f tree) sub(dir string) tree {
	below := tree{}
	for name, text := range f {
		if rest, ok := strings.CutPrefix(name, path.Clean(dir)+"/"); ok {
			below[rest] = text
		} else if path.Clean(dir) == "." {
			below[name] = text
		}
	}
	return below
}

// files are in no order: a map's.
func (f tree) files() []controlplane.File {
	var all []controlplane.File
	for name, text := range f {
		all = append(all, controlplane.File{Path: name, Text: []byte(text)})
	}
	return all
}

// plane is a control plane with the repositories that its registrations name.
type plane struct {
	main, env tree
	// sources are by the repository's address.
	sources map[string]tree
}

func (p *plane) model(environment string) controlplane.Model {
	base, own := controlplane.ParseBase(p.main.files()), controlplane.ParseEnvironment(p.env.files())
	var workloads []controlplane.Workload
	var problems []controlplane.Problem
	for _, r := range append(slices.Clone(base.Registrations), own.Registrations...) {
		w, bad := controlplane.ParseWorkloads(r, p.sources[r.Workload.Repo].sub(r.Workload.Path).files())
		workloads = append(workloads, w...)
		problems = append(problems, bad...)
	}
	return controlplane.Join(environment, base, own, workloads, problems...)
}

// written is a plan as a tree of files, as it would be published.
func written(p *Plan) tree {
	files := tree{}
	for _, f := range p.Folders {
		files[f.Name+"/README.md"] = string(f.Readme)
	}
	for _, a := range p.Assignments {
		for _, f := range a.Files {
			files[a.Name()+"/"+f.Name] = string(f.Text)
		}
	}
	return files
}

// golden compares a tree with a folder below testdata, or writes it.
func golden(t *testing.T, dir string, got tree) {
	t.Helper()
	dir = filepath.Join("testdata", dir)
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		for name, text := range got {
			at := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(readTree(t, dir), got); diff != "" {
		t.Errorf("not what %s holds (-want +got); if it should be, go test -update:\n%s", dir, diff)
	}
}

// noComplaints wants a plan without a problem in which everything is rendered.
func noComplaints(t *testing.T, p *Plan) {
	t.Helper()
	for _, problem := range p.Problems {
		t.Errorf("%v", problem)
	}
	for _, a := range p.Assignments {
		if a.Err != "" {
			t.Errorf("%s: %s", a.Name(), a.Err)
		}
	}
}

func names(p *Plan) []string {
	var all []string
	for i := range p.Assignments {
		all = append(all, p.Assignments[i].Name())
	}
	return all
}

func find(t *testing.T, p *Plan, name string) *Planned {
	t.Helper()
	for i := range p.Assignments {
		if p.Assignments[i].Name() == name {
			return &p.Assignments[i]
		}
	}
	t.Fatalf("the plan has no %s, only %v", name, names(p))
	return nil
}

func text(t *testing.T, a *Planned, file string) string {
	t.Helper()
	for _, f := range a.Files {
		if f.Name == file {
			return string(f.Text)
		}
	}
	t.Fatalf("%s has no %s; its error: %s", a.Name(), file, a.Err)
	return ""
}

func lines(all ...string) string { return strings.Join(all, "\n") + "\n" }

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

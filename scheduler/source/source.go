// Package source reads what a plan is made of: the promoted content, an
// environment's part of the control plane, and the workloads that its
// registrations point to, each from a folder on disk or from a Git repository.
package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/scheduler/controlplane"
)

// Tree is what was read of one place.
type Tree struct {
	Files []controlplane.File
	// Commit is the commit that was read; "" of a folder on disk.
	Commit string
	// Problems are files that could not be read.
	Problems []controlplane.Problem
}

// What one tree may hold; beyond it nothing of it is used.
const (
	mostEntries   = 200_000
	mostBytes     = 512 << 20
	mostFileBytes = 16 << 20
)

// wanted chooses files by their paths: YAML, and what says which to pass over.
func wanted(name string) bool {
	base := path.Base(name)
	return strings.HasSuffix(base, ".yaml") || strings.HasSuffix(base, ".yml") || base == ".sourceignore"
}

func tooLarge(name string) controlplane.Problem {
	return controlplane.Problem{
		Place:   controlplane.Place{File: name},
		Message: fmt.Sprintf("the file has more than %d MiB and is not read; split it", mostFileBytes>>20), Hides: true,
	}
}

// Folder reads a folder on disk.
func Folder(dir string) (Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Tree{}, fmt.Errorf("reading the folder %s: %w", dir, err)
	}
	defer root.Close()
	var t Tree
	entries, bytes := 0, int64(0)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if entries++; entries > mostEntries {
			return fmt.Errorf("it has more than %d files and folders", mostEntries)
		}
		if !d.Type().IsRegular() || !wanted(name) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Size() > mostFileBytes {
			t.Problems = append(t.Problems, tooLarge(name))
			return nil
		}
		if bytes += info.Size(); bytes > mostBytes {
			return fmt.Errorf("its YAML has more than %d MiB", mostBytes>>20)
		}
		text, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		t.Files = append(t.Files, controlplane.File{Path: name, Text: text})
		return nil
	})
	if err != nil {
		return Tree{}, fmt.Errorf("reading the folder %s: %w", dir, err)
	}
	return t, nil
}

// Repository fetches a ref and reads a folder of it. The paths of the files
// begin at the folder.
func Repository(ctx context.Context, repo *gitrepo.Repo, ref, folder string) (Tree, error) {
	commit, err := repo.Fetch(ctx, ref)
	if err != nil {
		return Tree{}, err
	}
	return Commit(ctx, repo.Reader(), commit, folder)
}

// Commit reads a folder of a commit that a mirror has.
func Commit(ctx context.Context, reader *gitrepo.Reader, commit, folder string) (Tree, error) {
	id, ok := gitrepo.ParseID(commit)
	if !ok {
		return Tree{}, fmt.Errorf("%q is no full commit id", commit)
	}
	texts, large, err := reader.ReadFiles(ctx, id, folder, wanted, gitrepo.Bounds{Entries: mostEntries, Bytes: mostBytes, FileBytes: mostFileBytes})
	if err != nil {
		return Tree{}, err
	}
	t := Tree{Commit: commit}
	for _, f := range texts {
		t.Files = append(t.Files, controlplane.File{Path: f.Path, Text: f.Text})
	}
	for _, name := range large {
		t.Problems = append(t.Problems, tooLarge(name))
	}
	return t, nil
}

// Inputs say where a plan's parts are.
type Inputs struct {
	Environment string
	// Base is the promoted content, ControlPlane the environment's.
	Base, ControlPlane Tree
	// Further are config repositories that join the environment.
	Further []Tree
	// Workloads reads what a registration points to.
	Workloads func(context.Context, controlplane.Registration) (Tree, error)
}

// Load reads and joins everything. A registration whose source cannot be read
// is a problem of the model that hides what it holds; only the end of ctx is an
// error.
func Load(ctx context.Context, in Inputs) (controlplane.Model, error) {
	base := controlplane.ParseBase(in.Base.Files)
	files := in.ControlPlane.Files
	problems := append(append([]controlplane.Problem(nil), in.Base.Problems...), in.ControlPlane.Problems...)
	for _, t := range in.Further {
		files, problems = append(files[:len(files):len(files)], t.Files...), append(problems, t.Problems...)
	}
	environment := controlplane.ParseEnvironment(files)
	var workloads []controlplane.Workload
	for _, r := range base.Registrations {
		t, err := in.Workloads(ctx, r)
		if ctx.Err() != nil {
			return controlplane.Model{}, context.Cause(ctx)
		}
		if err != nil {
			problems = append(problems, unread(r, err))
			continue
		}
		found, bad := controlplane.ParseWorkloads(r, t.Files)
		workloads, problems = append(workloads, found...), append(append(problems, t.Problems...), bad...)
	}
	return controlplane.Join(in.Environment, base, environment, workloads, problems...), nil
}

// unread says that nobody knows what a registration holds.
func unread(r controlplane.Registration, err error) controlplane.Problem {
	remedy := "mend it, or map it to a folder"
	if errors.Is(err, gitrepo.ErrRefMissing) || errors.Is(err, gitrepo.ErrPathMissing) {
		remedy = "correct spec.workload, or add what it names"
	}
	return controlplane.Problem{
		Place: r.Place, Kind: "WorkloadRegistration", Name: r.Name, Hides: true,
		Message: fmt.Sprintf("the source of its workloads cannot be read (%s): %v", remedy, err),
	}
}

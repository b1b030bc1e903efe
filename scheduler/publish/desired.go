package publish

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Desired is what a branch of a GitOps repository should hold.
type Desired struct {
	// Mark begins the first line of the README.md of every folder that is the
	// scheduler's.
	Mark string
	// PromotedCommit is noted in PromotedFile; empty leaves that file as it is.
	PromotedCommit string
	ClusterTypes   []ClusterType
	// KeepAll says that the plan may lack assignments that are wanted, because
	// something that it is made of could not be read: nothing is deleted.
	KeepAll bool
}

// ClusterType is a folder at the root.
type ClusterType struct {
	Name string
	// Readme is its README.md, the mark in its first line.
	Readme      []byte
	Assignments []Assignment
}

// Assignment is a folder of a cluster type.
type Assignment struct {
	Name  string
	Files []File
	// Version is the id that Git gives a folder of the files, in hexadecimal; ""
	// where nobody knows it yet. It spares work where nothing changed.
	Version string
	// Keep says that it could not be planned: what the branch has of it stays.
	Keep bool
}

// File is a file of an assignment.
type File struct {
	Name string
	Text []byte
}

// Names of files that the scheduler writes beside assignments.
const (
	readmeFile = "README.md"
	// PromotedFile holds the commit of the promoted content.
	PromotedFile = ".github/tracking/Promoted_Commit_Id"
)

// check says what is wrong with the names, and sorts everything.
func (w *Desired) check() error {
	if w.Mark == "" {
		return fmt.Errorf("a plan needs a mark by which its folders are known")
	}
	slices.SortFunc(w.ClusterTypes, func(a, b ClusterType) int { return cmp.Compare(a.Name, b.Name) })
	for i := range w.ClusterTypes {
		t := &w.ClusterTypes[i]
		if i > 0 && w.ClusterTypes[i-1].Name == t.Name {
			return fmt.Errorf("the cluster type %q is planned twice", t.Name)
		}
		if err := checkFolder("cluster type", t.Name); err != nil {
			return err
		}
		if !marked(t.Readme, w.Mark) {
			return fmt.Errorf("the README.md of cluster type %q lacks the mark in its first line", t.Name)
		}
		slices.SortFunc(t.Assignments, func(a, b Assignment) int { return cmp.Compare(a.Name, b.Name) })
		for j := range t.Assignments {
			a := &t.Assignments[j]
			if j > 0 && t.Assignments[j-1].Name == a.Name {
				return fmt.Errorf("%s/%s is planned twice", t.Name, a.Name)
			}
			if err := checkFolder("deployment target", a.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFolder refuses names that would be a hidden folder, or several.
func checkFolder(what, name string) error {
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\\\x00") || name == readmeFile {
		return fmt.Errorf("the %s %q is no name for a folder", what, name)
	}
	return nil
}

// marked reports whether a README's first line has the mark.
func marked(readme []byte, mark string) bool {
	line, _, _ := bytes.Cut(readme, []byte("\n"))
	return bytes.Contains(line, []byte(mark))
}

package controlplane

import (
	"cmp"
	"fmt"
	"slices"
)

// File is one file of a tree.
type File struct {
	// Path is the file's path below the tree's root, with slashes.
	Path string
	Text []byte
}

// Place is where something begins: a document, or the part of one that a
// complaint is about.
type Place struct {
	// File is the path as it was given in File.Path.
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
}

// String returns file:line.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Compare orders places by file, then line.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line))
}

// Problem is a complaint about one input; everything else goes on.
type Problem struct {
	Place
	// Kind and Name are those of the document complained about; "" when they
	// are not known.
	Kind, Name string
	// Message says what is wrong and what to do about it.
	Message string
	// Hides says that whatever the document describes is missing from the
	// model, for nobody can know what it is: as long as there is such a problem,
	// the absence of an assignment from a plan is no reason to delete it.
	Hides bool
}

// Error returns the whole complaint: place, kind and name, message.
func (p Problem) Error() string {
	at := ""
	if p.File != "" {
		at = p.String() + ": "
	}
	switch {
	case p.Kind != "" && p.Name != "":
		return fmt.Sprintf("%s%s %q: %s", at, p.Kind, p.Name, p.Message)
	case p.Kind != "":
		return at + p.Kind + ": " + p.Message
	}
	return at + p.Message
}

// SortProblems sorts by place, kind, name and message, and drops those that
// stand there twice.
func SortProblems(all []Problem) []Problem {
	slices.SortFunc(all, func(a, b Problem) int {
		return cmp.Or(a.Place.Compare(b.Place), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(all)
}

package gitops

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// Spot is what a path holds at a commit.
type Spot struct {
	// There is false where it holds nothing.
	There bool
	Kind  gitrepo.Kind
	ID    ID
	// Entries are those of a folder, sorted by name.
	Entries []gitrepo.Entry
}

// Change is a path that holds something else at another commit. A folder comes
// before what changed in it.
type Change struct {
	Path          string
	Before, After Spot
}

// mostNested is how deep folders are looked into.
const mostNested = 100

// Comparer finds what changed between commits. What two commits share is not
// read. Its methods are called by one goroutine.
type Comparer struct {
	reader *gitrepo.Reader
	trees  *trees
}

// NewComparer makes a Comparer.
func NewComparer(r *gitrepo.Reader) *Comparer { return &Comparer{reader: r, trees: newTrees()} }

// Compare calls visit with every path that differs between two commits; a zero
// id is a commit without files.
func (c *Comparer) Compare(ctx context.Context, old, next ID, visit func(Change) error) error {
	before, err := c.root(old)
	if err != nil {
		return err
	}
	after, err := c.root(next)
	if err != nil {
		return err
	}
	return c.compare(ctx, "", before, after, 0, visit)
}

func (c *Comparer) root(commit ID) (Spot, error) {
	if commit == (ID{}) {
		return Spot{}, nil
	}
	id, ok := c.trees.root(c.reader, commit)
	if !ok {
		return Spot{}, fmt.Errorf("comparing commits: %w: %s", gitrepo.ErrNoCommit, commit)
	}
	return Spot{There: true, Kind: gitrepo.Folder, ID: id}, nil
}

// compare visits a path that may differ, and what is below it.
func (c *Comparer) compare(ctx context.Context, at string, before, after Spot, depth int, visit func(Change) error) error {
	if before.There == after.There && before.Kind == after.Kind && before.ID == after.ID {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, s := range []*Spot{&before, &after} {
		if !s.There || s.Kind != gitrepo.Folder {
			continue
		}
		entries, ok := c.trees.folder(c.reader, s.ID)
		if !ok {
			return fmt.Errorf("comparing commits: the folder %q (%s) cannot be read", at, s.ID)
		}
		s.Entries = entries
	}
	if err := visit(Change{Path: at, Before: before, After: after}); err != nil {
		return err
	}
	if depth >= mostNested {
		return nil
	}
	return merge(before.Entries, after.Entries, func(name string, old, next Spot) error {
		if at != "" {
			name = at + "/" + name // a stranger's name is not made clean: two must not become one
		}
		return c.compare(ctx, name, old, next, depth+1, visit)
	})
}

// merge calls visit with each name of two sorted lists.
func merge(before, after []gitrepo.Entry, visit func(name string, old, next Spot) error) error {
	for len(before) > 0 || len(after) > 0 {
		var name string
		var old, next Spot
		var order int
		switch {
		case len(before) == 0:
			order = 1
		case len(after) == 0:
			order = -1
		default:
			order = strings.Compare(before[0].Name, after[0].Name)
		}
		if order <= 0 {
			name, old = before[0].Name, Spot{There: true, Kind: before[0].Kind, ID: before[0].ID}
			before = before[1:]
		}
		if order >= 0 {
			name, next = after[0].Name, Spot{There: true, Kind: after[0].Kind, ID: after[0].ID}
			after = after[1:]
		}
		if err := visit(name, old, next); err != nil {
			return err
		}
	}
	return nil
}

// IsConfiguration reports whether the entries are those of a folder in which the
// scheduler has put a configuration: it holds a file "reconciler", whatever its
// ending.
func IsConfiguration(entries []gitrepo.Entry) bool {
	for _, e := range entries {
		if (e.Kind == gitrepo.File || e.Kind == gitrepo.Executable) && strings.TrimSuffix(e.Name, path.Ext(e.Name)) == "reconciler" {
			return true
		}
	}
	return false
}

// Configuration returns the version of the configuration that a clean path holds
// at a commit, the id of its folder; false where it holds none or that cannot be
// told.
func (h *History) Configuration(commit ID, folder string) (version ID, ok bool) {
	s, ok := h.mirror.trees.at(h.reader, commit, folder)
	if !ok || !s.there || s.kind != gitrepo.Folder || !h.Knows(commit) {
		return ID{}, false
	}
	entries, ok := h.mirror.trees.folder(h.reader, s.id)
	return s.id, ok && IsConfiguration(entries)
}

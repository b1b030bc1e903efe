package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// Tree reads a folder of the draft, as Reader.Tree does.
func (d *Draft) Tree(id ID) ([]Entry, error) {
	t, err := object.GetTree(d.objects, plumbing.Hash(id))
	if err != nil {
		return nil, fmt.Errorf("reading folder %s of a draft: %w", id, err)
	}
	return entriesOf(t), nil
}

// ReadFile reads a file of the draft, as Reader.File does.
func (d *Draft) ReadFile(id ID, most int64) ([]byte, error) {
	o, err := d.objects.EncodedObject(plumbing.BlobObject, plumbing.Hash(id))
	if err != nil {
		return nil, fmt.Errorf("reading file %s of a draft: %w", id, err)
	}
	if o.Size() > most {
		return nil, fmt.Errorf("reading file %s of a draft: %w: it has more than %d bytes", id, ErrTooLarge, most)
	}
	from, err := o.Reader()
	if err != nil {
		return nil, fmt.Errorf("reading file %s of a draft: %w", id, err)
	}
	defer from.Close()
	return io.ReadAll(from)
}

// Diff writes what tells two root folders apart as a unified diff. What the draft
// does not hold is read from a mirror, which may be nil where there is none. The
// zero ID is an empty folder.
func (d *Draft) Diff(ctx context.Context, from *Reader, old, next ID, w io.Writer) error {
	both := &layered{EncodedObjectStorer: d.objects}
	if from != nil {
		defer from.begin()()
		both.below = from.s
	}
	a, err := both.root(old)
	if err != nil {
		return fmt.Errorf("comparing two folders: %w", err)
	}
	b, err := both.root(next)
	if err != nil {
		return fmt.Errorf("comparing two folders: %w", err)
	}
	changes, err := object.DiffTreeContext(ctx, a, b)
	if err != nil {
		return fmt.Errorf("comparing two folders: %w", err)
	}
	patch, err := changes.PatchContext(ctx)
	if err != nil {
		return fmt.Errorf("comparing two folders: %w", err)
	}
	return patch.Encode(w)
}

// layered reads a draft's objects, and those of a mirror below it.
type layered struct {
	storer.EncodedObjectStorer
	below storer.EncodedObjectStorer
}

func (l *layered) EncodedObject(kind plumbing.ObjectType, id plumbing.Hash) (plumbing.EncodedObject, error) {
	o, err := l.EncodedObjectStorer.EncodedObject(kind, id)
	if errors.Is(err, plumbing.ErrObjectNotFound) && l.below != nil {
		return l.below.EncodedObject(kind, id)
	}
	return o, err
}

func (l *layered) root(id ID) (*object.Tree, error) {
	if id == (ID{}) {
		return &object.Tree{}, nil
	}
	return object.GetTree(l, plumbing.Hash(id))
}

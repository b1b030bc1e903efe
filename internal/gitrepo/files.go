package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Text is a file of a commit that was read.
type Text struct {
	// Path is relative to the folder that was asked for.
	Path string
	Text []byte
}

// Bounds limit what one ReadFiles reads.
type Bounds struct {
	// Entries is how many files and folders are looked at, Bytes how much is read
	// in all, and FileBytes the most that one file may have.
	Entries          int
	Bytes, FileBytes int64
}

// ReadFiles reads the files below a folder of a commit that want chooses by
// their paths, in the order of the paths. Links and submodules are passed over.
// Files over their bound are named in large and not read; what goes over a bound
// of all files is an error that wraps ErrTooLarge. A folder that is not there is
// ErrPathMissing.
func (r *Reader) ReadFiles(ctx context.Context, commit ID, folder string, want func(path string) bool, b Bounds) (texts []Text, large []string, err error) {
	c, err := r.Commit(commit)
	if err != nil {
		return nil, nil, err
	}
	at := c.Tree
	for name := range strings.SplitSeq(strings.Trim(folder, "/"), "/") {
		if name == "" || name == "." {
			continue
		}
		entries, err := r.Tree(at)
		if err != nil {
			return nil, nil, err
		}
		n := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name && e.Kind == Folder })
		if n < 0 {
			return nil, nil, fmt.Errorf("reading %s at %s of %s: %w", folder, commit, r.name, ErrPathMissing)
		}
		at = entries[n].ID
	}
	w := fileWalk{reader: r, want: want, left: b}
	if err := w.folder(ctx, at, ""); err != nil {
		return nil, nil, fmt.Errorf("reading %s of %s: %w", commit, r.name, err)
	}
	slices.SortFunc(w.texts, func(a, b Text) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(w.large)
	return w.texts, w.large, nil
}

type fileWalk struct {
	reader *Reader
	want   func(path string) bool
	left   Bounds
	texts  []Text
	large  []string
}

func (w *fileWalk) folder(ctx context.Context, id ID, below string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := w.reader.Tree(id)
	if err != nil {
		return err
	}
	if w.left.Entries -= len(entries); w.left.Entries < 0 {
		return fmt.Errorf("%w: it has too many files and folders", ErrTooLarge)
	}
	for _, e := range entries {
		name := path.Join(below, e.Name)
		switch {
		case e.Kind == Folder:
			if err := w.folder(ctx, e.ID, name); err != nil {
				return err
			}
		case e.Kind != File && e.Kind != Executable || !w.want(name):
		default:
			if err := w.file(e.ID, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *fileWalk) file(id ID, name string) error {
	text, err := w.reader.File(id, w.left.FileBytes)
	if errors.Is(err, ErrTooLarge) {
		w.large = append(w.large, name)
		return nil
	}
	if err != nil {
		return err
	}
	if w.left.Bytes -= int64(len(text)); w.left.Bytes < 0 {
		return fmt.Errorf("%w: the files to read have too many bytes", ErrTooLarge)
	}
	w.texts = append(w.texts, Text{Path: name, Text: text})
	return nil
}

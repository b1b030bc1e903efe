package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// Folder is a folder on disk that a plan is compared with and written to, by the
// rules that hold for a branch.
type Folder struct {
	dir   string
	draft *gitrepo.Draft
	root  gitrepo.ID
	// bytes and files are how much more may be read.
	bytes int64
	files int
}

// What a folder may hold: all of it is read.
const (
	mostFolderBytes = 1 << 30
	mostFolderFiles = 1_000_000
)

// OpenFolder reads a folder, without its .git. One that is not there is an
// empty one.
func OpenFolder(dir string) (*Folder, error) {
	f := &Folder{dir: dir, draft: gitrepo.NewDraft(), bytes: mostFolderBytes, files: mostFolderFiles}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the folder of the plan: %w", err)
	}
	defer root.Close()
	if f.root, err = f.read(root, "."); err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	return f, nil
}

// read adds a folder to the draft; the zero ID where there is nothing in it.
func (f *Folder) read(root *os.Root, at string) (gitrepo.ID, error) {
	listed, err := fs.ReadDir(root.FS(), at)
	if err != nil {
		return gitrepo.ID{}, err
	}
	var entries []gitrepo.Entry
	for _, e := range listed {
		name := path.Join(at, e.Name())
		if at == "." && e.Name() == ".git" {
			continue
		}
		if f.files--; f.files < 0 {
			return gitrepo.ID{}, fmt.Errorf("it has more than %d files; plan to a repository (URL@REF)", mostFolderFiles)
		}
		entry := gitrepo.Entry{Name: e.Name()}
		switch {
		case e.IsDir():
			entry.Kind = gitrepo.Folder
			if entry.ID, err = f.read(root, name); err != nil {
				return gitrepo.ID{}, err
			}
			if entry.ID == (gitrepo.ID{}) {
				continue // Git knows no empty folders
			}
		case e.Type()&fs.ModeSymlink != 0:
			entry.Kind = gitrepo.Link
			target, err := root.Readlink(name)
			if err != nil {
				return gitrepo.ID{}, err
			}
			if entry.ID, err = f.draft.File([]byte(target)); err != nil {
				return gitrepo.ID{}, err
			}
		case e.Type().IsRegular():
			if entry.ID, err = f.file(root, name, e, &entry); err != nil {
				return gitrepo.ID{}, err
			}
		default:
			continue // a socket or a pipe is nothing that Git would hold
		}
		entries = append(entries, entry)
	}
	if len(entries) == 0 {
		return gitrepo.ID{}, nil
	}
	return f.draft.Folder(entries)
}

func (f *Folder) file(root *os.Root, name string, e fs.DirEntry, entry *gitrepo.Entry) (gitrepo.ID, error) {
	info, err := e.Info()
	if err != nil {
		return gitrepo.ID{}, err
	}
	if f.bytes -= info.Size(); f.bytes < 0 {
		return gitrepo.ID{}, fmt.Errorf("it has more than %d bytes; plan to a repository (URL@REF)", mostFolderBytes)
	}
	if info.Mode()&0o111 != 0 {
		entry.Kind = gitrepo.Executable
	}
	text, err := root.ReadFile(name)
	if err != nil {
		return gitrepo.ID{}, err
	}
	return f.draft.File(text)
}

// Tree reads a folder by its id.
func (f *Folder) Tree(id gitrepo.ID) ([]gitrepo.Entry, error) { return f.draft.Tree(id) }

// File reads a file by its id; at most so many bytes.
func (f *Folder) File(id gitrepo.ID, most int64) ([]byte, error) { return f.draft.ReadFile(id, most) }

// Change is what a plan would make of a folder.
type Change struct {
	Summary Summary
	folder  *Folder
	next    gitrepo.ID
}

// Compare says what a plan changes in the folder, and writes nothing.
func (f *Folder) Compare(want *Desired) (*Change, error) {
	next, summary, err := Build(f.draft, f, f.root, want)
	if err != nil {
		return nil, err
	}
	return &Change{Summary: summary, folder: f, next: next}, nil
}

// Empty reports whether there is nothing to write.
func (c *Change) Empty() bool { return c.next == c.folder.root }

// Diff writes the change as a unified diff.
func (c *Change) Diff(ctx context.Context, w io.Writer) error {
	return c.folder.draft.Diff(ctx, nil, c.folder.root, c.next, w)
}

// Write makes the folder what was planned: only files that change are touched,
// and each is replaced whole. One that is interrupted is finished by doing it
// again.
func (c *Change) Write() error {
	if c.Empty() {
		return nil
	}
	if err := os.MkdirAll(c.folder.dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of the plan: %w", err)
	}
	root, err := os.OpenRoot(c.folder.dir)
	if err != nil {
		return fmt.Errorf("opening the folder of the plan: %w", err)
	}
	defer root.Close()
	if err := c.apply(root, ".", c.folder.root, c.next); err != nil {
		return fmt.Errorf("writing to %s: %w", c.folder.dir, err)
	}
	return nil
}

// apply turns one folder into the other.
func (c *Change) apply(root *os.Root, at string, from, to gitrepo.ID) error {
	old, err := c.entries(from)
	if err != nil {
		return err
	}
	next, err := c.entries(to)
	if err != nil {
		return err
	}
	for _, e := range next {
		name := path.Join(at, e.Name)
		n := find(old, e.Name)
		switch {
		case n >= 0 && old[n] == e:
		case e.Kind == gitrepo.Folder:
			before := gitrepo.ID{}
			if n >= 0 && old[n].Kind == gitrepo.Folder {
				before = old[n].ID
			}
			if err := root.MkdirAll(name, 0o755); err != nil {
				return err
			}
			if err := c.apply(root, name, before, e.ID); err != nil {
				return err
			}
		default:
			if err := c.write(root, name, e.ID); err != nil {
				return err
			}
		}
	}
	for _, e := range old {
		if find(next, e.Name) >= 0 {
			continue
		}
		name := path.Join(at, e.Name)
		if e.Kind == gitrepo.Folder {
			// File by file: what Git does not know, such as an empty folder, stays.
			if err := c.apply(root, name, e.ID, gitrepo.ID{}); err != nil {
				return err
			}
			if left, err := fs.ReadDir(root.FS(), name); err != nil || len(left) > 0 {
				continue
			}
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (c *Change) entries(id gitrepo.ID) ([]gitrepo.Entry, error) {
	if id == (gitrepo.ID{}) {
		return nil, nil
	}
	return c.folder.draft.Tree(id)
}

// write replaces a file.
func (c *Change) write(root *os.Root, name string, id gitrepo.ID) error {
	text, err := c.folder.draft.ReadFile(id, mostFolderBytes)
	if err != nil {
		return err
	}
	if had, err := root.ReadFile(name); err == nil && bytes.Equal(had, text) {
		return nil
	}
	beside := path.Join(path.Dir(name), ".landfall-"+path.Base(name))
	if err := root.WriteFile(beside, text, 0o644); err != nil {
		return err
	}
	return root.Rename(beside, name)
}

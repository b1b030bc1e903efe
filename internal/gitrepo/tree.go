package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/landfall-hub/landfall/schema"
)

// Bounds of one folder.
const (
	mostFiles = 200_000
	// mostTarget is the longest target of a symbolic link, in bytes.
	mostTarget = 4096
)

// Tree returns the id of a folder's tree at a commit: two commits with the same
// one have the same files there. The path is relative to the repository's root;
// empty is the root.
func (r *Repo) Tree(commit, folder string) (id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hash, err := r.tree(r.storage(), commit, folder)
	if err != nil {
		return "", fmt.Errorf("looking for the folder %q at %s of %s: %w", folder, commit, r.name, err)
	}
	return hash.String(), nil
}

func (r *Repo) tree(s *filesystem.Storage, commit, folder string) (plumbing.Hash, error) {
	none := plumbing.ZeroHash
	folder, err := schema.CleanPath(folder)
	if err != nil {
		return none, err
	}
	c, err := object.GetCommit(s, plumbing.NewHash(commit))
	if err != nil {
		return none, ErrNoCommit
	}
	at := c.TreeHash
	if folder == "" {
		return at, nil
	}
	for name := range strings.SplitSeq(folder, "/") {
		t, err := object.GetTree(s, at)
		if err != nil {
			return none, r.lacks(err)
		}
		found := false
		for _, e := range t.Entries {
			if e.Name == name && e.Mode == filemode.Dir {
				at, found = e.Hash, true
			}
		}
		if !found {
			return none, ErrPathMissing
		}
	}
	return at, nil
}

// lacks notes that the mirror has a commit and not all of it.
func (r *Repo) lacks(err error) error {
	r.broken = true
	return fmt.Errorf("%w, not all of it; the mirror begins anew with the next fetch: %w", ErrNoCommit, err)
}

// Materialize makes dir what a folder is at a commit. What was in dir goes; it
// is replaced as a whole, and stays as it was when there is an error. Nobody
// else may write to dir, nor to its neighbours of the same name with a leading
// dot.
//
// A file keeps whether it is executable. Symbolic links are kept where they
// stay inside the folder, and make the whole ErrUnsafe where they do not.
// Submodules are left out, Git LFS pointers stay pointers.
func (r *Repo) Materialize(ctx context.Context, commit, folder, dir string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.materialize(ctx, commit, folder, dir); err != nil {
		return fmt.Errorf("writing the folder %q at %s of %s: %w", folder, commit, r.name, err)
	}
	return nil
}

func (r *Repo) materialize(ctx context.Context, commit, folder, dir string) (err error) {
	s := r.storage()
	hash, err := r.tree(s, commit, folder)
	if err != nil {
		return err
	}
	parent, base := filepath.Split(filepath.Clean(dir))
	fresh, old := filepath.Join(parent, "."+base+".new"), filepath.Join(parent, "."+base+".old")
	if err := errors.Join(os.RemoveAll(fresh), os.RemoveAll(old), os.MkdirAll(fresh, 0o700)); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(fresh))
		}
	}()
	// Nothing that is written through a root can leave it, whatever its name.
	root, err := os.OpenRoot(fresh)
	if err != nil {
		return err
	}
	defer root.Close()
	w := &writer{repo: r, storage: s, root: root, bytes: r.opts.MaxBytes}
	if err := w.folder(ctx, hash, "."); err != nil {
		return err
	}
	if err := w.checkLinks(); err != nil {
		return err
	}
	// Two renames: between them dir is missing, and the next call makes it.
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// writer writes a tree below a root.
type writer struct {
	repo    *Repo
	storage *filesystem.Storage
	root    *os.Root
	files   int
	bytes   int64
	links   []string
}

func (w *writer) folder(ctx context.Context, id plumbing.Hash, at string) error {
	t, err := object.GetTree(w.storage, id)
	if err != nil {
		return w.repo.lacks(err)
	}
	for _, e := range t.Entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.files++; w.files > mostFiles {
			return fmt.Errorf("%w: more than %d files and folders", ErrTooLarge, mostFiles)
		}
		if e.Name == "" || e.Name == "." || e.Name == ".." || strings.EqualFold(e.Name, ".git") || strings.ContainsAny(e.Name, "/\x00") {
			return fmt.Errorf("%w: it has an entry named %q", ErrUnsafe, path.Join(at, e.Name))
		}
		if err := w.entry(ctx, e, path.Join(at, e.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) entry(ctx context.Context, e object.TreeEntry, name string) error {
	switch e.Mode {
	case filemode.Dir:
		if err := w.root.Mkdir(name, 0o755); err != nil {
			return err
		}
		return w.folder(ctx, e.Hash, name)
	case filemode.Submodule:
		return nil
	case filemode.Symlink:
		return w.link(e.Hash, name)
	case filemode.Executable:
		return w.file(e.Hash, name, 0o755)
	}
	return w.file(e.Hash, name, 0o644)
}

// open returns a blob's content.
func (w *writer) open(id plumbing.Hash, name string, most int64) (io.ReadCloser, error) {
	blob, err := object.GetBlob(w.storage, id)
	if err != nil {
		return nil, w.repo.lacks(err)
	}
	if blob.Size > most {
		return nil, fmt.Errorf("%w: %q brings it over its bound", ErrTooLarge, name)
	}
	return blob.Reader()
}

func (w *writer) file(id plumbing.Hash, name string, mode os.FileMode) error {
	from, err := w.open(id, name, w.bytes)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(from, w.bytes))
	w.bytes -= n
	return errors.Join(err, to.Close())
}

func (w *writer) link(id plumbing.Hash, name string) error {
	from, err := w.open(id, name, mostTarget)
	if err != nil {
		return err
	}
	defer from.Close()
	target, err := io.ReadAll(io.LimitReader(from, mostTarget))
	if err != nil {
		return err
	}
	w.links = append(w.links, name)
	return w.root.Symlink(string(target), name)
}

// checkLinks follows every link when all are there: by itself `a -> b/..` looks
// harmless. One that leads nowhere inside is no harm.
func (w *writer) checkLinks() error {
	for _, name := range w.links {
		if _, err := w.root.Stat(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w, or in a circle: the symbolic link %q", ErrUnsafe, name)
		}
	}
	return nil
}

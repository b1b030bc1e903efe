package gitrepo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Reader reads objects of a mirror, also while something is fetched into it: it
// sees what was there when it was made, and more where packs were joined since.
// Its methods may be called from any goroutine; they work one at a time.
type Reader struct {
	repo *Repo
	name string
	// keepOpen has files stay open between two reads.
	keepOpen bool

	mu sync.Mutex
	s  *filesystem.Storage
	// removals is the mirror's at the time when s was made.
	removals int
}

// Reader makes a Reader of what is in the mirror now. It keeps the indexes of
// the mirror in memory, about 30 bytes an object, and no file open.
func (r *Repo) Reader() *Reader { return r.newReader(false) }

func (r *Repo) newReader(keepOpen bool) *Reader {
	reader := &Reader{repo: r, name: r.name, keepOpen: keepOpen}
	r.shelf.RLock()
	defer r.shelf.RUnlock()
	reader.look()
	return reader
}

// look opens the mirror as it is now.
func (r *Reader) look() {
	r.removals = r.repo.removals
	r.s = filesystem.NewStorageWithOptions(
		osfs.New(r.repo.opts.Dir, osfs.WithBoundOS()), cache.NewObjectLRU(4*cache.MiByte),
		filesystem.Options{LargeObjectThreshold: largeObject, KeepDescriptors: r.keepOpen},
	)
}

// begin takes the Reader, and the mirror's packs as they are, until end.
func (r *Reader) begin() (end func()) {
	r.mu.Lock()
	r.repo.shelf.RLock()
	if r.removals != r.repo.removals {
		_ = r.s.Close() // it knows packs that are gone
		r.look()
	}
	return func() {
		r.repo.shelf.RUnlock()
		r.mu.Unlock()
	}
}

// Commit is what lineage needs to know of a commit.
type Commit struct {
	ID ID
	// Parents are in their order, the first one being the branch's own.
	Parents []ID
	// Tree is the root folder.
	Tree ID
	// CommittedAt is the committer's time in seconds since 1970; 0 where the commit
	// has none that can be read.
	CommittedAt int64
}

// mostHeader bounds the part of a commit that names its tree and its parents.
const mostHeader = 1 << 20

// Commit reads a commit. The error is ErrNoCommit where it is not there.
func (r *Reader) Commit(id ID) (Commit, error) {
	defer r.begin()()
	c := Commit{ID: id}
	o, err := r.s.EncodedObject(plumbing.CommitObject, plumbing.Hash(id))
	if err == nil {
		c, err = decodeCommit(o)
	}
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound), errors.Is(err, os.ErrNotExist):
		return c, fmt.Errorf("reading commit %s of %s: %w", id, r.name, ErrNoCommit)
	case err != nil:
		return c, fmt.Errorf("reading commit %s of %s: %w", id, r.name, err)
	}
	return c, nil
}

func decodeCommit(o plumbing.EncodedObject) (Commit, error) {
	c := Commit{ID: ID(o.Hash())}
	from, err := o.Reader()
	if err != nil {
		return c, err
	}
	defer from.Close()
	hasTree, hasAuthor := false, false
	lines := bufio.NewScanner(io.LimitReader(from, mostHeader))
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		id, ok := ParseID(rest)
		switch {
		case word == "tree" && ok && !hasTree:
			c.Tree, hasTree = id, true
			continue
		case word == "parent" && ok && hasTree:
			c.Parents = append(c.Parents, id)
			continue
		case word == "author" && hasTree:
			hasAuthor = true
			continue
		case word == "committer" && hasAuthor:
			_, c.CommittedAt = signature(rest)
		}
		break
	}
	if hasAuthor {
		return c, nil
	}
	return c, errors.Join(lines.Err(), errors.New("it is no commit"))
}

// Kind is what an entry of a folder is.
type Kind uint8

// The kinds.
const (
	File Kind = iota
	Executable
	Folder
	Link
	Submodule
)

// Entry is an entry of a folder.
type Entry struct {
	Name string
	Kind Kind
	ID   ID
}

// mostTree bounds the size of one folder's list, in bytes.
const mostTree = 32 << 20

// Tree reads a folder by its id, in Git's order.
func (r *Reader) Tree(id ID) ([]Entry, error) {
	defer r.begin()()
	entries, err := r.tree(plumbing.Hash(id))
	if err != nil {
		return nil, fmt.Errorf("reading folder %s of %s: %w", id, r.name, err)
	}
	return entries, nil
}

func (r *Reader) tree(id plumbing.Hash) ([]Entry, error) {
	o, err := r.s.EncodedObject(plumbing.TreeObject, id)
	if err != nil {
		return nil, err
	}
	if o.Size() > mostTree {
		return nil, fmt.Errorf("%w: its list has more than %d bytes", ErrTooLarge, mostTree)
	}
	t, err := object.DecodeTree(r.s, o)
	if err != nil {
		return nil, err
	}
	return entriesOf(t), nil
}

func entriesOf(t *object.Tree) []Entry {
	entries := make([]Entry, 0, len(t.Entries))
	for i := range t.Entries {
		e := &t.Entries[i]
		kind := File
		switch e.Mode {
		case filemode.Dir:
			kind = Folder
		case filemode.Executable:
			kind = Executable
		case filemode.Symlink:
			kind = Link
		case filemode.Submodule:
			kind = Submodule
		}
		entries = append(entries, Entry{Name: e.Name, Kind: kind, ID: ID(e.Hash)})
	}
	return entries
}

// File reads a file by its id. The error is ErrTooLarge where it has more than
// most bytes.
func (r *Reader) File(id ID, most int64) ([]byte, error) {
	defer r.begin()()
	text, err := r.file(plumbing.Hash(id), most)
	if err != nil {
		return nil, fmt.Errorf("reading file %s of %s: %w", id, r.name, err)
	}
	return text, nil
}

func (r *Reader) file(id plumbing.Hash, most int64) ([]byte, error) {
	o, err := r.s.EncodedObject(plumbing.BlobObject, id)
	if err != nil {
		return nil, err
	}
	if o.Size() > most {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, most)
	}
	from, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer from.Close()
	return io.ReadAll(io.LimitReader(from, most))
}

// Tips returns the commits that the refs of the mirror are at, without asking
// the server.
func (r *Repo) Tips() ([]ID, error) {
	iter, err := r.storage().IterReferences()
	if err != nil {
		return nil, fmt.Errorf("reading the mirror of %s: %w", r.name, err)
	}
	defer iter.Close()
	var tips []ID
	err = iter.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() == plumbing.HashReference {
			tips = append(tips, ID(ref.Hash()))
		}
		return nil
	})
	return tips, err
}

// Commits returns every commit in the mirror, also those that no ref leads to,
// in no order.
func (r *Repo) Commits(ctx context.Context) ([]ID, error) {
	reader := r.newReader(true)
	defer reader.begin()()
	defer reader.s.Close()
	iter, err := reader.s.IterEncodedObjects(plumbing.CommitObject)
	if err != nil {
		return nil, fmt.Errorf("reading the mirror of %s: %w", r.name, err)
	}
	defer iter.Close()
	var found []ID
	err = iter.ForEach(func(o plumbing.EncodedObject) error {
		found = append(found, ID(o.Hash()))
		return ctx.Err()
	})
	return found, err
}

// Walk calls visit with each commit that leads to the tips, parents before
// children, once each. It does not go beyond those that known reports. A commit
// that is not in the mirror is left out: whoever has it as a parent is visited.
func (r *Repo) Walk(ctx context.Context, tips []ID, known func(ID) bool, visit func(Commit)) error {
	reader := r.newReader(true)
	defer func() { _ = reader.s.Close() }() // it may be another one by then
	done := map[ID]bool{}
	type step struct {
		commit Commit
		next   int
	}
	var way []step
	enter := func(id ID) error {
		if done[id] || known(id) {
			return nil
		}
		done[id] = true
		c, err := reader.Commit(id)
		if errors.Is(err, ErrNoCommit) {
			return nil
		}
		if err != nil {
			return err
		}
		way = append(way, step{commit: c})
		return ctx.Err()
	}
	for _, id := range tips {
		if err := enter(id); err != nil {
			return err
		}
		for len(way) > 0 {
			at := &way[len(way)-1]
			if at.next < len(at.commit.Parents) {
				at.next++
				if err := enter(at.commit.Parents[at.next-1]); err != nil {
					return err
				}
				continue
			}
			visit(at.commit)
			way = way[:len(way)-1]
		}
	}
	return nil
}

// Dir returns the mirror's folder.
func (r *Repo) Dir() string { return r.opts.Dir }

// Name returns the repository's address without user info.
func (r *Repo) Name() string { return r.name }

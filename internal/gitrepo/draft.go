package gitrepo

import (
	"crypto/sha1" //nolint:gosec // Git's own hash
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
)

// Draft holds new files, folders and commits that no repository has yet, until
// Push sends them. What it refers to beside them must be where it is pushed to.
// It is made by NewDraft and used by one goroutine.
type Draft struct {
	objects *memory.ObjectStorage
	// order lists what is new: a pack holds each once.
	order []plumbing.Hash
}

// NewDraft makes an empty draft.
func NewDraft() *Draft { return &Draft{objects: &memory.NewStorage().ObjectStorage} }

// Len is how many objects the draft holds.
func (d *Draft) Len() int { return len(d.order) }

func (d *Draft) add(o plumbing.EncodedObject) (ID, error) {
	id := o.Hash()
	if d.objects.HasEncodedObject(id) == nil {
		return ID(id), nil
	}
	if _, err := d.objects.SetEncodedObject(o); err != nil {
		return ID{}, fmt.Errorf("keeping an object of a draft: %w", err)
	}
	d.order = append(d.order, id)
	return ID(id), nil
}

// File adds a file's content.
func (d *Draft) File(text []byte) (ID, error) {
	o := &plumbing.MemoryObject{}
	o.SetType(plumbing.BlobObject)
	if _, err := o.Write(text); err != nil {
		return ID{}, fmt.Errorf("writing a file of a draft: %w", err)
	}
	return d.add(o)
}

// FileID returns the id that a file's content has.
func FileID(text []byte) ID { return objectID(plumbing.BlobObject, text) }

// objectID is Git's id of an object, without go-git's search for collisions:
// that costs several times as much, and what is hashed here is our own.
func objectID(kind plumbing.ObjectType, text []byte) ID {
	h := sha1.New() //nolint:gosec // Git's own hash
	fmt.Fprintf(h, "%s %d\x00", kind, len(text))
	h.Write(text)
	return ID(h.Sum(nil))
}

// Folder adds a folder. The order of the entries does not matter; a name that no
// folder can have, or that stands twice, is an error.
func (d *Draft) Folder(entries []Entry) (ID, error) {
	o, err := encodeFolder(entries)
	if err != nil {
		return ID{}, err
	}
	return d.add(o)
}

// FolderID returns the id that Folder would.
func FolderID(entries []Entry) (ID, error) {
	o, err := encodeFolder(entries)
	if err != nil {
		return ID{}, err
	}
	from, err := o.Reader()
	if err != nil {
		return ID{}, fmt.Errorf("writing a folder: %w", err)
	}
	text, err := io.ReadAll(from)
	if err != nil {
		return ID{}, fmt.Errorf("writing a folder: %w", err)
	}
	return objectID(plumbing.TreeObject, text), nil
}

func encodeFolder(entries []Entry) (*plumbing.MemoryObject, error) {
	t := object.Tree{Entries: make([]object.TreeEntry, 0, len(entries))}
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		if err := checkName(e.Name); err != nil {
			return nil, err
		}
		if seen[e.Name] {
			return nil, fmt.Errorf("a folder has the entry %q twice", e.Name)
		}
		seen[e.Name] = true
		t.Entries = append(t.Entries, object.TreeEntry{Name: e.Name, Mode: e.Kind.mode(), Hash: plumbing.Hash(e.ID)})
	}
	sort.Sort(object.TreeEntrySorter(t.Entries))
	o := &plumbing.MemoryObject{}
	if err := t.Encode(o); err != nil {
		return nil, fmt.Errorf("writing a folder: %w", err)
	}
	return o, nil
}

// checkName refuses what Git or a work tree would take for something else.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.EqualFold(name, ".git") || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("%w: a folder cannot have an entry named %q", ErrUnsafe, name)
	}
	return nil
}

func (k Kind) mode() filemode.FileMode {
	switch k {
	case Executable:
		return filemode.Executable
	case Folder:
		return filemode.Dir
	case Link:
		return filemode.Symlink
	case Submodule:
		return filemode.Submodule
	}
	return filemode.Regular
}

// Signature says who made a commit, and when.
type Signature struct {
	Name, Email string
	When        time.Time
}

// CommitText is what a new commit says.
type CommitText struct {
	Tree    ID
	Parents []ID
	// By is both author and committer.
	By      Signature
	Message string
}

// Commit adds a commit.
func (d *Draft) Commit(c CommitText) (ID, error) {
	by := object.Signature{Name: c.By.Name, Email: c.By.Email, When: c.By.When.UTC()}
	commit := object.Commit{Author: by, Committer: by, Message: c.Message, TreeHash: plumbing.Hash(c.Tree)}
	for _, p := range c.Parents {
		commit.ParentHashes = append(commit.ParentHashes, plumbing.Hash(p))
	}
	o := &plumbing.MemoryObject{}
	if err := commit.Encode(o); err != nil {
		return ID{}, fmt.Errorf("writing a commit of a draft: %w", err)
	}
	return d.add(o)
}

package publish

import (
	"fmt"
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// Reader reads what a branch has. Folders and files are named by their ids.
type Reader interface {
	Tree(id gitrepo.ID) ([]gitrepo.Entry, error)
	File(id gitrepo.ID, most int64) ([]byte, error)
}

// Summary says what a commit changes: paths of folders, sorted.
type Summary struct {
	// Added, Changed and Deleted are assignments, as cluster type/deployment target.
	Added, Changed, Deleted []string
	// Kept are assignments that could not be planned and stay as they are, Missing
	// those of them that the branch has never had.
	Kept, Missing []string
	// Adopted are cluster types whose folder was there without the mark.
	Adopted []string
	// Foreign are folders that have a cluster type's mark no more, or files where a
	// folder is wanted: they are left alone.
	Foreign []string
	// Promoted says that the promoted commit changed.
	Promoted bool
}

// mostReadme bounds a README.md that is looked into for the mark, in bytes.
const mostReadme = 1 << 20

// Build adds to a draft what a branch should hold, on top of its present root
// folder, and returns the new one: the same where nothing changes. A zero root
// is an empty branch.
//
// A folder is the scheduler's when its README.md has the mark; there,
// assignments that are not wanted any more are deleted. A folder without the
// mark is adopted when a cluster type of its name is wanted: then its
// assignments are written and nothing in it is deleted. All else stays.
func Build(d *gitrepo.Draft, from Reader, root gitrepo.ID, want *Desired) (gitrepo.ID, Summary, error) {
	b := builder{draft: d, from: from, want: want}
	if err := want.check(); err != nil {
		return root, b.sum, err
	}
	old, err := b.folder(root)
	if err != nil {
		return root, b.sum, err
	}
	entries := slices.Clone(old)
	for i := range want.ClusterTypes {
		t := &want.ClusterTypes[i]
		if entries, err = b.clusterType(entries, t); err != nil {
			return root, b.sum, fmt.Errorf("writing the folder of cluster type %s: %w", t.Name, err)
		}
	}
	if entries, err = b.dropTypes(entries); err != nil {
		return root, b.sum, err
	}
	if entries, err = b.promoted(entries); err != nil {
		return root, b.sum, fmt.Errorf("writing %s: %w", PromotedFile, err)
	}
	b.sum.sort()
	if slices.Equal(old, entries) {
		return root, b.sum, nil
	}
	next, err := d.Folder(entries)
	return next, b.sum, err
}

type builder struct {
	draft *gitrepo.Draft
	from  Reader
	want  *Desired
	sum   Summary
}

// folder returns the entries of a folder; none for the zero id.
func (b *builder) folder(id gitrepo.ID) ([]gitrepo.Entry, error) {
	if id == (gitrepo.ID{}) {
		return nil, nil
	}
	return b.from.Tree(id)
}

// find returns where an entry is, or -1.
func find(entries []gitrepo.Entry, name string) int {
	return slices.IndexFunc(entries, func(e gitrepo.Entry) bool { return e.Name == name })
}

// put replaces an entry, or adds it.
func put(entries []gitrepo.Entry, e gitrepo.Entry) []gitrepo.Entry {
	if n := find(entries, e.Name); n >= 0 {
		entries[n] = e
		return entries
	}
	return append(entries, e)
}

// isOurs reports whether a folder has the mark.
func (b *builder) isOurs(entries []gitrepo.Entry) (bool, error) {
	n := find(entries, readmeFile)
	if n < 0 || entries[n].Kind != gitrepo.File && entries[n].Kind != gitrepo.Executable {
		return false, nil
	}
	text, err := b.from.File(entries[n].ID, mostReadme)
	if err != nil {
		return false, err
	}
	return marked(text, b.want.Mark), nil
}

// clusterType brings the folder of a cluster type up to date.
func (b *builder) clusterType(root []gitrepo.Entry, t *ClusterType) ([]gitrepo.Entry, error) {
	var old []gitrepo.Entry
	at := find(root, t.Name)
	if at >= 0 {
		if root[at].Kind != gitrepo.Folder {
			b.sum.Foreign = append(b.sum.Foreign, t.Name)
			return root, nil
		}
		var err error
		if old, err = b.from.Tree(root[at].ID); err != nil {
			return root, err
		}
	}
	ours, err := b.isOurs(old)
	if err != nil {
		return root, err
	}
	adopted := len(old) > 0 && !ours
	if adopted {
		b.sum.Adopted = append(b.sum.Adopted, t.Name)
	}
	places := make(map[string]int, len(old))
	for i, e := range old {
		places[e.Name] = i
	}
	entries := make([]gitrepo.Entry, 0, len(old)+len(t.Assignments))
	wanted := make(map[string]bool, len(t.Assignments))
	for i := range t.Assignments {
		a := &t.Assignments[i]
		wanted[a.Name] = true
		var before *gitrepo.Entry
		if n, ok := places[a.Name]; ok {
			before = &old[n]
		}
		e, err := b.assignment(t.Name, a, before, adopted)
		if err != nil {
			return root, fmt.Errorf("%s: %w", a.Name, err)
		}
		if e != nil {
			entries = append(entries, *e)
		}
	}
	for _, e := range old {
		switch {
		case wanted[e.Name], e.Name == readmeFile:
		case e.Kind == gitrepo.Folder && !adopted && !strings.HasPrefix(e.Name, ".") && !b.want.KeepAll:
			b.sum.Deleted = append(b.sum.Deleted, t.Name+"/"+e.Name)
		default:
			entries = append(entries, e)
		}
	}
	readme := gitrepo.Entry{Name: readmeFile, ID: gitrepo.FileID(t.Readme)}
	id, err := gitrepo.FolderID(append(entries, readme))
	if err != nil {
		return root, err
	}
	if at >= 0 && root[at].ID == id {
		return root, nil
	}
	if _, err := b.draft.File(t.Readme); err != nil {
		return root, err
	}
	if _, err := b.draft.Folder(append(entries, readme)); err != nil {
		return root, err
	}
	return put(root, gitrepo.Entry{Name: t.Name, Kind: gitrepo.Folder, ID: id}), nil
}

// assignment returns the entry that an assignment is to have; nil for none.
func (b *builder) assignment(clusterType string, a *Assignment, before *gitrepo.Entry, adopted bool) (*gitrepo.Entry, error) {
	name := clusterType + "/" + a.Name
	if a.Keep {
		if before == nil {
			b.sum.Missing = append(b.sum.Missing, name)
			return nil, nil
		}
		b.sum.Kept = append(b.sum.Kept, name)
		return before, nil
	}
	if before != nil && before.Kind != gitrepo.Folder {
		b.sum.Foreign = append(b.sum.Foreign, name)
		return before, nil
	}
	if known, ok := gitrepo.ParseID(a.Version); ok && before != nil && before.ID == known {
		return before, nil
	}
	entries := make([]gitrepo.Entry, 0, len(a.Files))
	for _, f := range a.Files {
		entries = append(entries, gitrepo.Entry{Name: f.Name, ID: gitrepo.FileID(f.Text)})
	}
	if adopted && before != nil {
		had, err := b.from.Tree(before.ID)
		if err != nil {
			return nil, err
		}
		for _, e := range had {
			if find(entries, e.Name) < 0 {
				entries = append(entries, e)
			}
		}
	}
	// What is there is not sent again: most of a plan is.
	id, err := gitrepo.FolderID(entries)
	if err != nil {
		return nil, err
	}
	switch {
	case before == nil:
		b.sum.Added = append(b.sum.Added, name)
	case before.ID == id:
		return before, nil
	default:
		b.sum.Changed = append(b.sum.Changed, name)
	}
	for _, f := range a.Files {
		if _, err := b.draft.File(f.Text); err != nil {
			return nil, err
		}
	}
	if _, err := b.draft.Folder(entries); err != nil {
		return nil, err
	}
	return &gitrepo.Entry{Name: a.Name, Kind: gitrepo.Folder, ID: id}, nil
}

// dropTypes empties the scheduler's folders of cluster types that are not wanted
// any more.
func (b *builder) dropTypes(root []gitrepo.Entry) ([]gitrepo.Entry, error) {
	if b.want.KeepAll {
		return root, nil
	}
	wanted := make(map[string]bool, len(b.want.ClusterTypes))
	for i := range b.want.ClusterTypes {
		wanted[b.want.ClusterTypes[i].Name] = true
	}
	kept := make([]gitrepo.Entry, 0, len(root))
	for _, e := range root {
		if e.Kind != gitrepo.Folder || wanted[e.Name] || strings.HasPrefix(e.Name, ".") {
			kept = append(kept, e)
			continue
		}
		entries, err := b.from.Tree(e.ID)
		if err != nil {
			return nil, err
		}
		ours, err := b.isOurs(entries)
		if err != nil {
			return nil, err
		}
		if !ours {
			kept = append(kept, e)
			continue
		}
		left := slices.Clone(entries)
		left = slices.DeleteFunc(left, func(f gitrepo.Entry) bool {
			gone := f.Kind == gitrepo.Folder && !strings.HasPrefix(f.Name, ".")
			if gone {
				b.sum.Deleted = append(b.sum.Deleted, e.Name+"/"+f.Name)
			}
			return gone || f.Name == readmeFile
		})
		if len(left) == 0 {
			continue
		}
		id, err := b.draft.Folder(left)
		if err != nil {
			return nil, err
		}
		kept = append(kept, gitrepo.Entry{Name: e.Name, Kind: gitrepo.Folder, ID: id})
	}
	return kept, nil
}

// promoted notes the promoted commit.
func (b *builder) promoted(root []gitrepo.Entry) ([]gitrepo.Entry, error) {
	if b.want.PromotedCommit == "" {
		return root, nil
	}
	next, err := b.note(root, strings.Split(PromotedFile, "/"), []byte(b.want.PromotedCommit+"\n"))
	if err != nil {
		return nil, err
	}
	b.sum.Promoted = !slices.Equal(root, next)
	return next, nil
}

// note writes one file at a path, and all else on the way stays.
func (b *builder) note(entries []gitrepo.Entry, path []string, text []byte) ([]gitrepo.Entry, error) {
	entries = slices.Clone(entries)
	at := find(entries, path[0])
	if len(path) == 1 {
		note := gitrepo.Entry{Name: path[0], ID: gitrepo.FileID(text)}
		if at >= 0 && entries[at] == note {
			return entries, nil
		}
		if _, err := b.draft.File(text); err != nil {
			return nil, err
		}
		return put(entries, note), nil
	}
	var inner []gitrepo.Entry
	if at >= 0 {
		if entries[at].Kind != gitrepo.Folder {
			return nil, fmt.Errorf("%q is there and is no folder; move it away", path[0])
		}
		var err error
		if inner, err = b.from.Tree(entries[at].ID); err != nil {
			return nil, err
		}
	}
	next, err := b.note(inner, path[1:], text)
	if err != nil {
		return nil, err
	}
	if at >= 0 && slices.Equal(inner, next) {
		return entries, nil
	}
	id, err := b.draft.Folder(next)
	if err != nil {
		return nil, err
	}
	return put(entries, gitrepo.Entry{Name: path[0], Kind: gitrepo.Folder, ID: id}), nil
}

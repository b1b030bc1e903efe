package gitops

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"sync"

	yaml "go.yaml.in/yaml/v3"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// trees answers what is in folders, and keeps what it read: folders are known by
// their content, so nothing that is kept is ever wrong. What cannot be read is
// asked for again.
type trees struct {
	mu sync.Mutex
	// roots are the root folders of commits.
	roots map[gitrepo.ID]gitrepo.ID
	// folders are lists of entries sorted by name; entries counts them all.
	folders map[gitrepo.ID][]gitrepo.Entry
	entries int
	// closed says of a folder whether nothing in it leads out.
	closed map[gitrepo.ID]bool
}

// The most that is kept; beyond it everything is read anew.
const (
	mostRoots   = 10_000
	mostEntries = 200_000
	mostClosed  = 10_000
)

func newTrees() *trees {
	return &trees{roots: map[gitrepo.ID]gitrepo.ID{}, folders: map[gitrepo.ID][]gitrepo.Entry{}, closed: map[gitrepo.ID]bool{}}
}

// spot is what a path of a repository holds at a commit.
type spot struct {
	// there is false where the commit has nothing at the path.
	there bool
	kind  gitrepo.Kind
	id    gitrepo.ID
}

// at returns what a clean path holds at a commit: of one that leads over a link
// or into a submodule, that one. ok is false where it cannot be told: something
// is not in the mirror.
func (t *trees) at(r *gitrepo.Reader, commit gitrepo.ID, folder string) (s spot, ok bool) {
	root, ok := t.root(r, commit)
	if !ok {
		return spot{}, false
	}
	s = spot{there: true, kind: gitrepo.Folder, id: root}
	if folder == "" {
		return s, true
	}
	for name := range strings.SplitSeq(folder, "/") {
		if s.kind != gitrepo.Folder {
			return spot{}, true // below a file there is nothing
		}
		entries, ok := t.folder(r, s.id)
		if !ok {
			return spot{}, false
		}
		n, found := slices.BinarySearchFunc(entries, name, func(e gitrepo.Entry, name string) int { return strings.Compare(e.Name, name) })
		if !found {
			return spot{}, true
		}
		s.kind, s.id = entries[n].Kind, entries[n].ID
		if s.kind == gitrepo.Link || s.kind == gitrepo.Submodule {
			return s, true
		}
	}
	return s, true
}

func (t *trees) root(r *gitrepo.Reader, commit gitrepo.ID) (gitrepo.ID, bool) {
	t.mu.Lock()
	root, ok := t.roots[commit]
	t.mu.Unlock()
	if ok {
		return root, true
	}
	c, err := r.Commit(commit)
	if err != nil {
		return root, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.roots) >= mostRoots {
		clear(t.roots)
	}
	t.roots[commit] = c.Tree
	return c.Tree, true
}

// folder returns the entries of a folder, sorted by name: Git's own order counts
// a folder's name with a slash.
func (t *trees) folder(r *gitrepo.Reader, id gitrepo.ID) ([]gitrepo.Entry, bool) {
	t.mu.Lock()
	entries, ok := t.folders[id]
	t.mu.Unlock()
	if ok {
		return entries, true
	}
	entries, err := r.Tree(id)
	if err != nil {
		return nil, false
	}
	slices.SortStableFunc(entries, func(a, b gitrepo.Entry) int { return strings.Compare(a.Name, b.Name) })
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries+len(entries) > mostEntries {
		clear(t.folders)
		t.entries = 0
	}
	if _, ok := t.folders[id]; !ok {
		t.folders[id] = entries
		t.entries += len(entries)
	}
	return entries, true
}

// mostInspected bounds how many entries are looked at to find out whether a
// folder leads out of itself; a larger one may.
const mostInspected = 20_000

// selfContained reports whether a folder at a commit is known to lead nowhere
// else.
func (t *trees) selfContained(r *gitrepo.Reader, commit gitrepo.ID, folder string) bool {
	s, ok := t.at(r, commit, folder)
	if !ok || !s.there || s.kind != gitrepo.Folder {
		return false
	}
	t.mu.Lock()
	closed, ok := t.closed[s.id]
	t.mu.Unlock()
	if ok {
		return closed
	}
	i := inspection{trees: t, reader: r, left: mostInspected}
	closed = i.folder(s.id, "")
	if i.unsure {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.closed) >= mostClosed {
		clear(t.closed)
	}
	t.closed[s.id] = closed
	return closed
}

// inspection looks for what leads out of a folder.
type inspection struct {
	trees  *trees
	reader *gitrepo.Reader
	// left is how many more entries may be looked at.
	left int
	// unsure says that something could not be read: the answer is for now.
	unsure bool
}

// folder reports whether nothing in the folder at a path below the one that is
// inspected leads out.
func (i *inspection) folder(id gitrepo.ID, below string) bool {
	entries, ok := i.trees.folder(i.reader, id)
	if !ok {
		i.unsure = true
		return false
	}
	if i.left -= len(entries); i.left < 0 {
		return false
	}
	for _, e := range entries {
		switch {
		case e.Kind == gitrepo.Link, e.Kind == gitrepo.Submodule:
			return false
		case e.Kind == gitrepo.Folder:
			if !i.folder(e.ID, path.Join(below, e.Name)) {
				return false
			}
		case below == "" && e.Name == "Chart.yaml":
			// A chart is given values by whoever installs it, from anywhere.
			return false
		case strings.HasSuffix(e.Name, ".jsonnet"), strings.HasSuffix(e.Name, ".libsonnet"):
			return false // it may import anything
		case isKustomization(e.Name):
			if !i.kustomization(e.ID, below) {
				return false
			}
		}
	}
	return true
}

func isKustomization(name string) bool {
	return name == "kustomization.yaml" || name == "kustomization.yml" || name == "Kustomization"
}

// mostKustomization bounds a kustomization file, in bytes.
const mostKustomization = 1 << 20

// kustomization reports whether no text in a kustomization file could name
// something outside the inspected folder: whichever field it stands in, and
// whatever fields later versions bring.
func (i *inspection) kustomization(id gitrepo.ID, folder string) bool {
	text, err := i.reader.File(id, mostKustomization)
	if err != nil {
		i.unsure = true
		return false
	}
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var n yaml.Node
		err := documents.Decode(&n)
		if err != nil {
			return isEnd(err)
		}
		if !staysIn(&n, folder) {
			return false
		}
	}
}

// staysIn looks at every text of a document once: an alias is a text that stands
// elsewhere.
func staysIn(n *yaml.Node, folder string) bool {
	if n.Kind == yaml.ScalarNode && leadsOut(n.Value, folder) {
		return false
	}
	return !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !staysIn(c, folder) })
}

// leadsOut reports whether a text of a kustomization file in a folder could be
// read as a place outside the root: a path that climbs out, or a remote base. An
// absolute path cannot be one: nobody knows where a repository will lie, and the
// paths of JSON patches look like it. A text of several words is taken word by
// word: a patch may hold what it patches with.
func leadsOut(text, folder string) bool {
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(" \t\r\n\"'=,;()[]{}", c) }) {
		if clean := path.Join(folder, word); clean == ".." || strings.HasPrefix(clean, "../") || leadsAway(strings.ToLower(word)) {
			return true
		}
	}
	return false
}

// away are signs of a remote base, in one of the spellings that kustomize knows.
var away = []string{"//", "github.com", "gitlab.com", "bitbucket.org", "git@", "git::", "gh:", "_git/", "git-codecommit.", ".git/", ".git?", "?ref=", "?version="}

// others name files that may name anything.
var others = []string{"generators", "transformers", "validators"}

// leadsAway reports whether a word in lower case may be a remote base, or names
// files that are not looked into.
func leadsAway(word string) bool {
	return strings.HasSuffix(word, ".git") || slices.Contains(others, word) ||
		slices.ContainsFunc(away, func(sign string) bool { return strings.Contains(word, sign) })
}

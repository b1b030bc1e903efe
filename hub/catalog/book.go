package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/landfall-hub/landfall/hub/descriptor"
	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/schema"
)

// book is what the history of a ref says, read up to a commit. One goroutine
// writes it.
type book struct {
	key record.RefKey
	// own tells the ref's endpoints from those of others.
	own func(schema.Endpoint) bool
	// basis says under which names of the repository it was read.
	basis uint64
	// chains are those that are remembered, the last being the current one.
	chains []chain
	tree   tree
	ledger map[schema.Target]*history
	// now is what is true of each target at the commit that was read last.
	now map[schema.Target]*present
	// pushed are the ref's descriptors that came by the API.
	pushed map[schema.Target][]*push
	undo   []undo
	// undoing is how much undo holds.
	undoing int
	// pending are rows that are not written yet.
	pending record.Names
	// gone says that the ref is not there any more: its past is kept.
	gone bool
	// unsaved says that the copy on disk is older.
	unsaved bool
}

// chain is a line of first parents that the ref has followed, as far as it was
// read.
type chain struct {
	names.Chain
	Head     gitops.ID
	Position int64
	// whole says that the chains before it are not remembered, and that what they
	// said below its fork is its own now.
	whole bool
}

// fork is the last position of which the chain before it speaks.
func (c *chain) fork() int64 {
	if c.whole {
		return -1
	}
	return c.Fork
}

// limits are, by the numbers of the chains before the nth one, how far they are
// shared with it.
func limits(chains []chain, n int) map[uint32]int64 {
	all := map[uint32]int64{}
	limit := chains[n].Fork
	for n--; n >= 0; n-- {
		all[chains[n].Number] = limit
		limit = min(limit, chains[n].fork())
	}
	return all
}

// tree is what a commit's files say.
type tree struct {
	// Files are those that say something, Configs the folders that hold a
	// configuration, with their versions.
	Files   map[string]*file
	Configs map[string]gitops.ID
	// Past are the endpoints that the ref's own targets have had, Configured says
	// that there were configurations.
	Past       map[schema.Target]place
	Configured bool
	// claims are the files that say something of the ref's own targets.
	claims map[schema.Target]map[string]bool
}

// place is where a target's manifests are.
type place struct {
	Path, URL string
}

// file is a file that says something. It is never changed.
type file struct {
	ID gitops.ID
	// Changed is the position at which it changed last.
	Changed int64
	Found   descriptor.Found
}

func newTree() tree {
	return tree{
		Files: map[string]*file{}, Configs: map[string]gitops.ID{}, Past: map[schema.Target]place{}, claims: map[schema.Target]map[string]bool{},
	}
}

// present is what is true of a target.
type present struct {
	// files is what the files alone say, shown what counts.
	files outcome
	shown *names.Version
}

// outcome is the version that a target carries, and why.
type outcome struct {
	// version is nil where it carries none.
	version *names.Version
	// changed is the position at which its descriptor changed last.
	changed int64
	file    string
}

// better reports whether a descriptor counts rather than another one.
func (o outcome) better(than outcome) bool {
	switch {
	case o.version == nil || than.version == nil:
		return o.version != nil
	case o.changed != than.changed:
		return o.changed > than.changed
	}
	return o.version.BuildTime.After(than.version.BuildTime)
}

// same reports whether two versions say the same; nil is none.
func same(a, b *names.Version) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Version == b.Version && a.Build == b.Build && a.SourceRepo == b.SourceRepo && a.SourceCommit == b.SourceCommit && a.BuildTime.Equal(b.BuildTime)
}

// undo is what a commit changed of a tree, as it was before.
type undo struct {
	position int64
	files    map[string]*file
	configs  map[string]gitops.ID
}

// The most that is remembered to go back by.
const (
	mostUndo     = 1000
	mostUndoRows = 20_000
)

// change is what one commit changed.
type change struct {
	undo
	// targets are the own ones of which something is said anew, sorted; configs the
	// folders.
	targets []schema.Target
	configs []string
}

// apply makes a tree that of the next commit.
func (t *tree) apply(ctx context.Context, r *gitrepo.Reader, c *gitops.Comparer, from, to gitops.ID, position int64, own func(schema.Endpoint) bool) (change, error) {
	ch := change{undo: undo{position: position, files: map[string]*file{}, configs: map[string]gitops.ID{}}}
	fresh := map[string]*file{}
	configs := map[string]gitops.ID{}
	err := c.Compare(ctx, from, to, func(at gitops.Change) error {
		was, is := configuration(at.Before), configuration(at.After)
		if was != is {
			configs[at.Path] = is
		}
		if !mayHold(at.Path, at.Before) && !mayHold(at.Path, at.After) {
			return nil
		}
		f := &file{Changed: position}
		if mayHold(at.Path, at.After) {
			var err error
			if f.ID = at.After.ID; t.Files[at.Path] != nil && t.Files[at.Path].ID == f.ID {
				return nil // its mode changed
			}
			if f.Found, err = read(r, at.Path, f.ID); err != nil {
				return err
			}
		}
		fresh[at.Path] = f
		return nil
	})
	if err != nil {
		return ch, err
	}
	touched := map[schema.Target]bool{}
	for path, f := range fresh {
		if f.Found.IsEmpty() {
			f = nil
		}
		old := t.Files[path]
		if old == nil && f == nil {
			continue
		}
		ch.files[path] = old
		t.put(path, f, own, touched)
	}
	for path, id := range configs {
		ch.undo.configs[path] = t.Configs[path]
		ch.configs = append(ch.configs, path)
		t.setConfig(path, id)
	}
	for target := range touched {
		ch.targets = append(ch.targets, target)
	}
	slices.SortFunc(ch.targets, names.Compare)
	slices.Sort(ch.configs)
	return ch, nil
}

func (t *tree) setConfig(path string, id gitops.ID) {
	if id == (gitops.ID{}) {
		delete(t.Configs, path)
		return
	}
	t.Configs[path], t.Configured = id, true
}

// put makes a file another one, or removes it where that is nil, and notes whose
// version it may change.
func (t *tree) put(path string, f *file, own func(schema.Endpoint) bool, touched map[schema.Target]bool) {
	if old := t.Files[path]; old != nil {
		for i := range old.Found.Claims {
			c := &old.Found.Claims[i]
			if c.Version == nil || !own(c.Endpoint) {
				continue
			}
			touched[c.Target] = true
			if files := t.claims[c.Target]; files != nil {
				if delete(files, path); len(files) == 0 {
					delete(t.claims, c.Target)
				}
			}
		}
		delete(t.Files, path)
	}
	if f == nil {
		return
	}
	t.Files[path] = f
	for i := range f.Found.Claims {
		c := &f.Found.Claims[i]
		if c.Version == nil || !own(c.Endpoint) {
			continue
		}
		touched[c.Target] = true
		t.Past[c.Target] = place{c.Endpoint.Path, c.URL}
		if t.claims[c.Target] == nil {
			t.claims[c.Target] = map[string]bool{}
		}
		t.claims[c.Target][path] = true
	}
}

// outcome says which version the files give a target: that of the file that
// changed last, then the newest build.
func (t *tree) outcome(target schema.Target, own func(schema.Endpoint) bool) outcome {
	var best outcome
	for path := range t.claims[target] {
		f := t.Files[path]
		for i := range f.Found.Claims {
			c := &f.Found.Claims[i]
			if c.Target != target || c.Version == nil || !own(c.Endpoint) {
				continue
			}
			o := outcome{version: c.Version, changed: f.Changed, file: path}
			// Of two that are as good, the first by name, so that it is always the same.
			if o.better(best) || !best.better(o) && cmp.Compare(path, best.file) < 0 {
				best = o
			}
		}
	}
	return best
}

// configuration returns the version of the configuration that a spot holds; zero
// where it holds none.
func configuration(s gitops.Spot) gitops.ID {
	if s.There && s.Kind == gitrepo.Folder && gitops.IsConfiguration(s.Entries) {
		return s.ID
	}
	return gitops.ID{}
}

// mayHold reports whether a spot is a file that may hold documents. A link is
// none, wherever it leads.
func mayHold(path string, s gitops.Spot) bool {
	return s.There && (s.Kind == gitrepo.File || s.Kind == gitrepo.Executable) && descriptor.MayHold(path)
}

// read reads a file. Of one that is too long only the beginning is looked at, to
// see whether somebody would miss it.
func read(r *gitrepo.Reader, path string, id gitops.ID) (descriptor.Found, error) {
	text, size, err := r.Beginning(id, descriptor.MostBytes)
	if err != nil {
		return descriptor.Found{}, fmt.Errorf("reading %q: %w", path, err)
	}
	if size <= descriptor.MostBytes {
		return descriptor.Read(path, text), nil
	}
	if !descriptor.Mentions(text) {
		return descriptor.Found{}, nil
	}
	return descriptor.Found{Problems: []descriptor.Problem{{
		File: path, Reason: fmt.Sprintf("the file has %d bytes and is not read, %d are the most: split it", size, descriptor.MostBytes),
	}}}, nil
}

// errNoHead says that a ref is at a commit that the mirror does not know.
var errNoHead = errors.New("the ref is at a commit that is not in the mirror")

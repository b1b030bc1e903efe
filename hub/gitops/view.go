package gitops

import (
	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/schema"
)

// snapshot is what a mirror held at one moment.
type snapshot struct {
	graph *graph
	// heads are the commits of the refs, all of them in the graph.
	heads map[string]gitrepo.ID
	// defaultBranch is the name of the one that "" stands for, where it is known.
	defaultBranch string
	reader        *gitrepo.Reader
}

// view is the graph of a repository at one moment, as a verdict reads it.
type view struct {
	*snapshot
	trees *trees
	// want is told of commits that are not known.
	want func(gitrepo.ID)
}

var _ compliance.Graph = view{}

// find returns a commit's number. One that looks like a commit and is not known
// is asked for.
func (v view) find(commit string) int32 {
	id, ok := gitrepo.ParseID(commit)
	if !ok {
		return absent
	}
	number := v.graph.find(id)
	if number == absent {
		v.want(id)
	}
	return number
}

// Relate says how a stands to b. Commits that no ref leads to any more are known
// as long as the mirror has them. Where the mirror lacks a part of the history,
// no way between two commits may only mean that it is not seen.
func (v view) Relate(a, b string) compliance.Relation {
	from, to := v.find(a), v.find(b)
	switch {
	case from == absent || to == absent:
		if a == b {
			return compliance.Same
		}
		return compliance.Unknown
	case from == to:
		return compliance.Same
	case v.graph.reaches(to, from):
		return compliance.Descendant
	case v.graph.reaches(from, to):
		return compliance.Ancestor
	case v.graph.partial[from] || v.graph.partial[to]:
		return compliance.Unknown
	}
	return compliance.Unrelated
}

// SameTrees compares what the paths hold at two commits; nothing at both is the
// same.
func (v view) SameTrees(a, b string, folders []string) (same, ok bool) {
	first, known := gitrepo.ParseID(a)
	second, knownToo := gitrepo.ParseID(b)
	if !known || !knownToo {
		return false, false
	}
	same = true
	for _, folder := range folders {
		clean, err := schema.CleanPath(folder)
		if err != nil {
			return false, false
		}
		x, ok := v.trees.at(v.reader, first, clean)
		if !ok {
			return false, false
		}
		y, ok := v.trees.at(v.reader, second, clean)
		if !ok {
			return false, false
		}
		same = same && x == y
	}
	return same, true
}

// SelfContained reports whether a folder at a commit is known to lead nowhere
// else.
func (v view) SelfContained(commit, folder string) bool {
	id, known := gitrepo.ParseID(commit)
	clean, err := schema.CleanPath(folder)
	return known && err == nil && v.trees.selfContained(v.reader, id, clean)
}

// FirstParent returns a commit's first parent, if the mirror has both.
func (v view) FirstParent(commit string) (parent string, ok bool) {
	number := v.find(commit)
	if number == absent {
		return "", false
	}
	number = v.graph.firstParent(number)
	if number == absent {
		return "", false
	}
	return v.graph.ids[number].String(), true
}

// Head returns the newest commit fetched for a canonical ref.
func (v view) Head(ref string) (commit string, ok bool) {
	id, ok := v.heads[ref]
	if !ok {
		return "", false
	}
	return id.String(), true
}

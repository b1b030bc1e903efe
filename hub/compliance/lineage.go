package compliance

import "strings"

// lineage answers questions about the commit that is judged. It remembers each
// answer, because a fleet stands at few distinct commits and the graph may be
// slow.
type lineage struct {
	graph  Graph
	commit string

	relations map[string]Relation
	reversals map[place]reversal
	untouched map[place]bool

	parent      string
	hasParent   bool
	parentAsked bool
}

// place is a folder at a commit.
type place struct{ commit, folder string }

func newLineage(g Graph, commit string) lineage {
	return lineage{
		graph: g, commit: commit,
		relations: map[string]Relation{}, reversals: map[place]reversal{}, untouched: map[place]bool{},
	}
}

// relation says how a commit stands to the one that is judged. A commit that
// the graph does not know is still the same as itself.
func (l *lineage) relation(commit string) Relation {
	if commit == l.commit {
		return Same
	}
	if commit == "" {
		return Unknown
	}
	r, ok := l.relations[commit]
	if !ok {
		r = l.graph.Relate(commit, l.commit)
		l.relations[commit] = r
	}
	return r
}

// reaches reports whether a commit is the one that is judged or comes after it.
func (l *lineage) reaches(commit string) bool { return l.relation(commit).reached() }

func (r Relation) reached() bool { return r == Same || r == Descendant }

// reverted reports whether the folder at a later commit is again as it was
// before the judged commit changed it; known is false where that cannot be told.
func (l *lineage) reverted(commit, folder string) (back, known bool) {
	at := place{commit, folder}
	r, ok := l.reversals[at]
	if !ok {
		r.back, r.known = l.isReversal(commit, []string{folder})
		l.reversals[at] = r
	}
	return r.back, r.known
}

// reversal is whether a commit was taken back, and whether that can be told.
type reversal struct{ back, known bool }

func (l *lineage) isReversal(commit string, folders []string) (back, known bool) {
	if !l.parentAsked {
		l.parent, l.hasParent = l.graph.FirstParent(l.commit)
		l.parentAsked = true
	}
	if !l.hasParent {
		return false, true
	}
	if same, ok := l.graph.SameTrees(l.commit, l.parent, folders); !ok || same {
		return false, ok // the commit did not touch the folder: nothing to undo
	}
	return l.graph.SameTrees(commit, l.parent, folders)
}

// sameFolder reports whether the folder is known to be the same at a commit
// and at the judged one, and to be all that its reader depends on.
func (l *lineage) sameFolder(commit, folder string) bool {
	at := place{commit, folder}
	same, ok := l.untouched[at]
	if !ok {
		same = SameFolder(l.graph, commit, l.commit, folder)
		l.untouched[at] = same
	}
	return same
}

// SameFolder reports whether a folder is known to be the same at two commits,
// and to be all that its reader depends on.
func SameFolder(g Graph, a, b, folder string) bool {
	same, known := g.SameTrees(a, b, append(ignoreFiles(folder), folder))
	return same && known && g.SelfContained(b, folder)
}

// ignoreFiles returns the files above a folder by which a reader may leave out
// some of what is in it: a change of one changes the folder for that reader.
func ignoreFiles(folder string) []string {
	var files []string
	for folder != "" {
		above := strings.LastIndexByte(folder, '/') + 1
		files = append(files, folder[:above]+".sourceignore")
		folder = strings.TrimSuffix(folder[:above], "/")
	}
	return files
}

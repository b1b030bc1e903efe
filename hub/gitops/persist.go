package gitops

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// A graph is kept beside its mirror, so that a restart does not read all commits
// again, and so that those that no ref leads to stay known. It is only a copy:
// whatever is wrong with it, it is made anew from the mirror.

// graphFile is its name in the mirror's folder. It begins with a hash of the
// rest; the number is that of its form.
const graphFile = "landfall-graph-2"

// isEnd reports whether a reader is at the regular end.
func isEnd(err error) bool { return errors.Is(err, io.EOF) }

// kept is what the file holds.
type kept struct {
	// IDs are joined. Parents and Start are the graph's.
	IDs            []byte
	Parents, Start []int32
	When           []int64
	Heads          map[string]gitrepo.ID
	// Default is the default branch's name.
	Default string
}

// save writes a graph and the heads beside the mirror in dir.
func save(dir string, s *snapshot) error {
	k := kept{IDs: make([]byte, 0, len(s.graph.ids)*len(gitrepo.ID{})), Parents: s.graph.parents, Start: s.graph.start, When: s.graph.when, Heads: s.heads, Default: s.defaultBranch}
	for _, id := range s.graph.ids {
		k.IDs = append(k.IDs, id[:]...)
	}
	var text bytes.Buffer
	text.Write(make([]byte, sha256.Size))
	if err := gob.NewEncoder(&text).Encode(k); err != nil {
		return fmt.Errorf("writing the commit graph down: %w", err)
	}
	sum := sha256.Sum256(text.Bytes()[sha256.Size:])
	copy(text.Bytes(), sum[:])
	file := filepath.Join(dir, graphFile)
	if err := os.WriteFile(file+".new", text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing the commit graph: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("writing the commit graph: %w", err)
	}
	return nil
}

// load reads what save wrote.
func load(dir string) (*snapshot, error) {
	text, err := os.ReadFile(filepath.Join(dir, graphFile))
	if err != nil {
		return nil, fmt.Errorf("reading the commit graph: %w", err)
	}
	if len(text) < sha256.Size || sha256.Sum256(text[sha256.Size:]) != [sha256.Size]byte(text[:sha256.Size]) {
		return nil, errors.New("the file of the commit graph is damaged")
	}
	var k kept
	if err := gob.NewDecoder(bytes.NewReader(text[sha256.Size:])).Decode(&k); err != nil {
		return nil, fmt.Errorf("reading the commit graph: %w", err)
	}
	const size = len(gitrepo.ID{})
	g := &graph{ids: make([]gitrepo.ID, len(k.IDs)/size), parents: k.Parents, start: k.Start, when: k.When}
	for i := range g.ids {
		g.ids[i] = gitrepo.ID(k.IDs[i*size:])
	}
	g.sorted = g.mergeSorted(nil)
	g.index()
	return &snapshot{graph: g, heads: k.Heads, defaultBranch: k.Default}, nil
}

package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// A ref is restored from what ClickHouse has of it, and from a copy on disk of
// what its files said at the commit that was written last. Without the copy, or
// with one that does not fit, the tree is made anew by reading the history,
// without writing it again.

// restore fills a book that was just made.
func (c *Catalog) restore(ctx context.Context, h *gitops.History, b *book, written []record.Chain) error {
	if len(written) == 0 {
		return nil
	}
	all := make([]chain, len(written))
	for i, ch := range written {
		id, _ := gitops.ParseID(ch.Head)
		all[i] = chain{Chain: names.Chain{Number: ch.Number, Fork: ch.Fork}, Head: id, Position: ch.Position}
	}
	// Of a chain that is not in the mirror any more nothing can be placed.
	from := len(all)
	for from > 0 && len(all)-from < mostChains {
		if at, known := h.Position(all[from-1].Head); !known || at != all[from-1].Position {
			break
		}
		from--
	}
	newest := written[len(written)-1]
	if from == len(all) || newest.Basis != b.basis {
		b.chains = []chain{{Chain: names.Chain{Number: newest.Number + 1, Fork: -1}, Position: -1}}
		return nil
	}
	shared := limits(all, from)
	b.chains = all[from:]
	b.chains[0].whole = true
	if err := c.recall(ctx, b, shared); err != nil {
		return err
	}
	copied, err := load(c.copyOf(b.key))
	if err != nil || copied.Basis != b.basis || copied.Chain != b.current().Number || copied.Head != b.current().Head {
		return nil //nolint:nilerr // it is only a copy
	}
	b.tree = newTree()
	b.tree.Configs, b.tree.Past, b.tree.Configured = copied.Tree.Configs, copied.Tree.Past, copied.Tree.Configured
	for path, f := range copied.Tree.Files {
		b.tree.put(path, f, b.own, map[schema.Target]bool{})
	}
	b.look()
	return nil
}

// recall reads a book's ledger. What was written beyond the chains' ends, before
// a crash, is read from Git again; what chains that are not remembered share with
// the first one is its own.
func (c *Catalog) recall(ctx context.Context, b *book, shared map[uint32]int64) error {
	known := map[uint32]int{}
	for n := range b.chains {
		known[b.chains[n].Number] = n
	}
	return c.opts.Reader.Assignments(ctx, b.key, mostSteps, func(a record.Assignment) {
		n, ok := known[a.Chain]
		ch := &b.chains[n]
		switch limit, before := shared[a.Chain]; {
		case before && a.Position <= limit:
			a.Chain = ch.Number
		case !ok || a.Position <= ch.Fork || a.Position > ch.Position:
			return
		}
		h := b.ledger[a.Target]
		if h == nil {
			h = &history{}
			b.ledger[a.Target] = h
		}
		h.files = append(h.files, filed{a.Chain, a.Position, outcome{a.Version, a.Changed, a.File}})
		if last := b.at(h.merged, n, a.Position); last == nil && a.Version == nil || last != nil && same(last.Version, a.Version) {
			return
		}
		h.merged = append(h.merged, names.Assignment{Chain: a.Chain, Position: a.Position, Version: a.Version})
	})
}

// kept is what a copy holds.
type kept struct {
	Basis uint64
	Chain uint32
	Head  gitops.ID
	Tree  tree
}

// copyOf names the file of a ref's copy. The number is that of its form.
func (c *Catalog) copyOf(key record.RefKey) string {
	sum := sha256.Sum256([]byte(key.Repo + "\x00" + key.Ref))
	return filepath.Join(c.opts.Dir, "names-1-"+hex.EncodeToString(sum[:12]))
}

// save writes a ref's copy. The file begins with a hash of the rest.
func (c *Catalog) save(b *book) error {
	if b.tree.Files == nil {
		return nil
	}
	k := kept{Basis: b.basis, Chain: b.current().Number, Head: b.current().Head, Tree: b.tree}
	var text bytes.Buffer
	text.Write(make([]byte, sha256.Size))
	if err := gob.NewEncoder(&text).Encode(k); err != nil {
		return fmt.Errorf("writing down what the files of %s say: %w", b.key.Repo, err)
	}
	sum := sha256.Sum256(text.Bytes()[sha256.Size:])
	copy(text.Bytes(), sum[:])
	if err := os.MkdirAll(c.opts.Dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of names: %w", err)
	}
	name := c.copyOf(b.key)
	if err := os.WriteFile(name+".new", text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing down what the files of %s say: %w", b.key.Repo, err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("writing down what the files of %s say: %w", b.key.Repo, err)
	}
	b.unsaved = false
	return nil
}

// load reads a copy.
func load(name string) (kept, error) {
	k := kept{Tree: newTree()}
	text, err := os.ReadFile(name)
	if err != nil {
		return k, fmt.Errorf("reading a copy: %w", err)
	}
	if len(text) < sha256.Size || sha256.Sum256(text[sha256.Size:]) != [sha256.Size]byte(text[:sha256.Size]) {
		return k, errors.New("the copy is damaged")
	}
	if err := gob.NewDecoder(bytes.NewReader(text[sha256.Size:])).Decode(&k); err != nil {
		return k, fmt.Errorf("reading a copy: %w", err)
	}
	return k, nil
}

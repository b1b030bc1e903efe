package catalog

import (
	"context"
	"maps"
	"slices"

	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/schema"
)

// mostChains is how many chains of a ref are remembered.
const mostChains = 8

// none is where a chain stands of which nothing is read.
var none = gitops.ID{}

// current is the chain that is being followed.
func (b *book) current() *chain { return &b.chains[len(b.chains)-1] }

// read is the position that the book has been read to, -1 for nowhere.
func (b *book) read() int64 {
	if len(b.chains) == 0 {
		return -1
	}
	return b.current().Position
}

// follow reads a ref's history up to its head, and hands what it says to write
// in batches of about as many rows. When it fails, the book is as far as it came; whatever was not
// written is in pending.
func (b *book) follow(ctx context.Context, h *gitops.History, head gitops.ID, batch int, write func(context.Context, record.Names) error) error {
	if err := b.flush(ctx, write); err != nil {
		return err
	}
	w := &walk{book: b, history: h, batch: batch, write: write}
	if len(b.chains) == 0 || b.current().Head != head || b.tree.Files == nil {
		if err := w.reach(ctx, head); err != nil {
			return err
		}
	}
	b.count(w)
	return b.flush(ctx, write)
}

// reach reads up to a head that the book is not at.
func (w *walk) reach(ctx context.Context, head gitops.ID) error {
	if !w.history.Knows(head) {
		return errNoHead
	}
	w.reader = w.history.Open()
	defer w.reader.Close()
	w.comparer = gitops.NewComparer(w.reader)
	if err := w.begin(ctx); err != nil {
		return err
	}
	if err := w.turn(ctx, head); err != nil {
		return err
	}
	return w.to(ctx, head)
}

// begin makes the tree of a book that was restored without one.
func (w *walk) begin(ctx context.Context) error {
	b := w.book
	if b.tree.Files != nil {
		return nil
	}
	if len(b.chains) == 0 || b.current().Head == none {
		b.tree = newTree()
		return nil
	}
	if err := w.replay(ctx, b.current().Head); err != nil {
		return err
	}
	b.look()
	b.unsaved = true
	return nil
}

// flush writes what is pending.
func (b *book) flush(ctx context.Context, write func(context.Context, record.Names) error) error {
	if b.pending.Len() == 0 {
		return nil
	}
	if err := write(ctx, b.pending); err != nil {
		return err
	}
	b.pending = record.Names{}
	return nil
}

// walk follows a chain.
type walk struct {
	book     *book
	history  *gitops.History
	reader   *gitrepo.Reader
	comparer *gitops.Comparer
	batch    int
	write    func(context.Context, record.Names) error
}

// turn makes the current chain one that leads to a head: where it does not, the
// ref was forced elsewhere, and a new chain begins at the fork.
func (w *walk) turn(ctx context.Context, head gitops.ID) error {
	b := w.book
	if len(b.chains) == 0 {
		b.chains = []chain{{Chain: names.Chain{Number: 0, Fork: -1}, Position: -1}}
		return nil
	}
	old := b.current()
	if old.Head == none {
		return nil
	}
	fork := w.history.Fork(old.Head, head)
	if fork == old.Position {
		return nil
	}
	at, ok := w.history.At(head, fork)
	if !ok {
		fork = -1
	}
	if err := w.back(ctx, at, fork); err != nil {
		return err
	}
	b.chains = append(b.chains, chain{Chain: names.Chain{Number: old.Number + 1, Fork: fork}, Head: at, Position: fork})
	if drop := len(b.chains) - mostChains; drop > 0 {
		b.forget(drop)
	}
	w.renew()
	return nil
}

// back makes the tree that of an earlier commit of the current chain; -1 is
// before the first.
func (w *walk) back(ctx context.Context, at gitops.ID, position int64) error {
	b := w.book
	if position < 0 {
		b.tree = newTree()
		b.undo, b.undoing = nil, 0
		return nil
	}
	reached := b.current().Position
	for len(b.undo) > 0 && b.undo[len(b.undo)-1].position > position {
		u := b.undo[len(b.undo)-1]
		b.undo = b.undo[:len(b.undo)-1]
		b.undoing -= len(u.files) + len(u.configs)
		for path, f := range u.files {
			b.tree.put(path, f, b.own, map[schema.Target]bool{})
		}
		for path, id := range u.configs {
			b.tree.setConfig(path, id)
		}
		reached = u.position - 1
	}
	if reached <= position {
		return nil
	}
	return w.replay(ctx, at)
}

// replay makes the tree that of a commit by reading all that leads to it. It
// writes nothing.
func (w *walk) replay(ctx context.Context, to gitops.ID) error {
	t, from := newTree(), none
	err := w.history.Walk(ctx, to, -1, func(s gitops.Step) error {
		_, err := t.apply(ctx, w.reader, w.comparer, from, s.Commit.ID, s.Position, w.book.own)
		from = s.Commit.ID
		return err
	})
	if err != nil {
		return err
	}
	w.book.tree = t
	w.book.undo, w.book.undoing = nil, 0
	return nil
}

// renew notes what is true at the fork of a new chain, and has all of it written
// as the chain's beginning.
func (w *walk) renew() {
	b, c := w.book, w.book.current()
	b.look()
	if c.Fork < 0 {
		return
	}
	for _, t := range slices.SortedFunc(maps.Keys(b.now), names.Compare) {
		if v := b.now[t].shown; v != nil {
			b.pending.Assignments = append(b.pending.Assignments, w.assignment(t, c, c.Fork, b.now[t].files))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(b.tree.Configs)) {
		b.pending.Configurations = append(b.pending.Configurations, record.Configuration{
			RefKey: b.key, Path: path, Chain: c.Number, Position: c.Fork, Version: b.tree.Configs[path].String(),
		})
	}
}

// look finds out what is true of each target where the book stands.
func (b *book) look() {
	c := b.current()
	b.now = map[schema.Target]*present{}
	for t := range b.tree.claims {
		b.now[t] = &present{files: b.tree.outcome(t, b.own)}
	}
	for t, h := range b.ledger {
		v := b.at(h.merged, len(b.chains)-1, c.Position)
		if v == nil {
			continue
		}
		if b.now[t] == nil {
			b.now[t] = &present{}
		}
		b.now[t].shown = v.Version
	}
}

// assignment is the row that says what a target carries from a position of a
// chain on.
func (w *walk) assignment(t schema.Target, c *chain, position int64, files outcome) record.Assignment {
	b := w.book
	a := record.Assignment{RefKey: b.key, Target: t, Chain: c.Number, Position: position, Version: b.now[t].shown, Changed: files.changed}
	if same(files.version, a.Version) {
		a.File = files.file
	}
	since := position
	if at := b.at(b.ledger[t].merged, len(b.chains)-1, position); at != nil {
		since = at.Position
	}
	a.Commit = w.commitAt(c, since)
	return a
}

// commitAt returns the commit at a position of a chain that is being read.
func (w *walk) commitAt(c *chain, position int64) string {
	id, _ := w.history.At(c.Head, position)
	return id.String()
}

// to reads the commits up to a head.
func (w *walk) to(ctx context.Context, head gitops.ID) error {
	b := w.book
	err := w.history.Walk(ctx, head, b.current().Position, func(s gitops.Step) error {
		if err := w.step(ctx, s); err != nil {
			return err
		}
		if b.pending.Len() >= w.batch {
			return w.settle(ctx)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.settle(ctx)
}

// settle writes what was read, with how far that is.
func (w *walk) settle(ctx context.Context) error {
	b, c := w.book, w.book.current()
	b.pending.Chains = []record.Chain{{
		RefKey: b.key, Number: c.Number, Fork: c.Fork, Head: c.Head.String(), Position: c.Position, Basis: b.basis,
	}}
	return b.flush(ctx, w.write)
}

// step reads one commit of the chain.
func (w *walk) step(ctx context.Context, s gitops.Step) error {
	b, c := w.book, w.book.current()
	commits, err := w.commits(c, s)
	if err != nil {
		return err
	}
	ch, err := b.tree.apply(ctx, w.reader, w.comparer, c.Head, s.Commit.ID, s.Position, b.own)
	if err != nil {
		return err
	}
	c.Head, c.Position = s.Commit.ID, s.Position
	b.unsaved = true
	b.remember(ch.undo)
	for _, t := range ch.targets {
		b.state(w, t)
	}
	for _, path := range ch.configs {
		row := record.Configuration{RefKey: b.key, Path: path, Chain: c.Number, Position: s.Position}
		if id, ok := b.tree.Configs[path]; ok {
			row.Version = id.String()
		}
		b.pending.Configurations = append(b.pending.Configurations, row)
	}
	b.pending.Commits = append(b.pending.Commits, commits...)
	return nil
}

// commits are the rows of a commit of the chain and of those that it brought.
func (w *walk) commits(c *chain, s gitops.Step) ([]record.Commit, error) {
	rows := make([]record.Commit, 0, 1+len(s.Brought))
	for _, n := range append(s.Brought, s.Commit) {
		d, err := w.reader.Details(n.ID)
		if err != nil {
			return nil, err
		}
		row := record.Commit{
			RefKey: w.book.key, ID: n.ID.String(), Chain: c.Number, Position: s.Position, Author: d.Author, At: d.CommittedAt, Subject: d.Subject,
		}
		for _, p := range n.Parents {
			row.Parents = append(row.Parents, p.String())
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// remember keeps what a commit changed, as long as there is room.
func (b *book) remember(u undo) {
	b.undo = append(b.undo, u)
	b.undoing += len(u.files) + len(u.configs)
	drop := 0
	for len(b.undo)-drop > mostUndo || b.undoing > mostUndoRows {
		b.undoing -= len(b.undo[drop].files) + len(b.undo[drop].configs)
		drop++
	}
	b.undo = slices.Delete(b.undo, 0, drop)
}

package catalog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// history is what happened to a target on a ref, by chain and position.
type history struct {
	// files is what the files alone said; merged is what counts, and says nothing
	// twice. An Index may hold merged: it grows at its end or is made anew.
	files  []filed
	merged []names.Assignment
}

// filed is what the files say from a position of a chain on.
type filed struct {
	chain    uint32
	position int64
	outcome
}

// push is a descriptor that came by the API.
type push struct {
	record.Pushed
	id gitops.ID
	// places are where its commit came to the chains, by their numbers.
	places map[uint32]int64
	// counted are the chains for which it is in the ledger.
	counted map[uint32]bool
}

// place returns where the push's commit came to a chain.
func (p *push) place(h *gitops.History, c *chain) (int64, bool) {
	if at, ok := p.places[c.Number]; ok {
		return at, true
	}
	at, ok := h.Place(c.Head, p.id)
	if ok {
		p.places[c.Number] = at
	}
	return at, ok
}

// outcome is what a push says from its place on.
func (p *push) outcome(at int64) outcome { return outcome{version: &p.Version, changed: at} }

// at returns the newest assignment at or before a position of the nth chain.
func (b *book) at(all []names.Assignment, n int, position int64) *names.Assignment {
	for ; n >= 0; n-- {
		c := b.chains[n]
		i, _ := slices.BinarySearchFunc(all, position+1, func(a names.Assignment, position int64) int {
			return cmp.Or(cmp.Compare(a.Chain, c.Number), cmp.Compare(a.Position, position))
		})
		if i--; i >= 0 && all[i].Chain == c.Number {
			return &all[i]
		}
		position = min(position, c.fork())
	}
	return nil
}

// state notes what is true of a target now that something was said anew.
func (b *book) state(w *walk, t schema.Target) {
	c, n := b.current(), b.now[t]
	if n == nil {
		n = &present{}
		b.now[t] = n
	}
	h := b.ledger[t]
	if h == nil {
		h = &history{}
		b.ledger[t] = h
	}
	n.files = b.tree.outcome(t, b.own)
	h.files = append(h.files, filed{c.Number, c.Position, n.files})
	if len(h.files) >= 2*mostSteps {
		h.files = slices.Clone(h.files[len(h.files)-mostSteps:])
		h.merged = slices.Clone(h.merged[max(len(h.merged)-mostSteps, 0):])
	}
	counts := n.files
	if p := b.newestPush(w.history, t, c, c.Position); p != nil && !counts.better(*p) {
		counts = *p
	}
	if same(counts.version, n.shown) {
		return
	}
	n.shown = counts.version
	h.merged = append(h.merged, names.Assignment{Chain: c.Number, Position: c.Position, Version: counts.version})
	b.pending.Assignments = append(b.pending.Assignments, w.assignment(t, c, c.Position, counts))
}

// newestPush is what the pushed descriptors of a target say at a position of a
// chain; nil where they say nothing.
func (b *book) newestPush(h *gitops.History, t schema.Target, c *chain, position int64) *outcome {
	var best *outcome
	for _, p := range b.pushed[t] {
		at, ok := p.place(h, c)
		if !ok || at > position {
			continue
		}
		if o := p.outcome(at); best == nil || !best.better(o) { // of two that are as good, the later one
			best = &o
		}
	}
	return best
}

// forget drops the first chains. What they said of commits that the next one has,
// too, is its own then.
func (b *book) forget(drop int) {
	first, shared := &b.chains[drop], limits(b.chains, drop)
	for t, h := range b.ledger {
		var files []filed
		for _, f := range h.files {
			if f.chain < first.Number {
				if f.position > shared[f.chain] {
					continue
				}
				f.chain = first.Number
			}
			files = append(files, f)
		}
		var merged []names.Assignment
		for _, a := range h.merged {
			if a.Chain < first.Number {
				if a.Position > shared[a.Chain] {
					continue
				}
				a.Chain = first.Number
			}
			merged = append(merged, a)
		}
		if h.files, h.merged = files, merged; len(files)+len(merged) == 0 {
			delete(b.ledger, t)
		}
	}
	first.whole = true
	b.chains = slices.Delete(b.chains, 0, drop)
}

// merge makes a target's history anew with what was pushed for it, and has all
// of it written: rows of before may be others now.
func (b *book) merge(w *walk, t schema.Target) {
	h := b.ledger[t]
	if h == nil {
		h = &history{}
		b.ledger[t] = h
	}
	h.merged = nil
	for n := range b.chains {
		c := &b.chains[n]
		pushes := b.placed(w.history, t, c)
		var pushed outcome
		for _, at := range b.moments(h, c, pushes) {
			for ; len(pushes) > 0 && pushes[0].changed <= at; pushes = pushes[1:] {
				if !pushed.better(pushes[0]) {
					pushed = pushes[0]
				}
			}
			counts := pushed
			if f := b.filedAt(h.files, n, at); f != nil && f.better(pushed) {
				counts = f.outcome
			}
			b.say(w, t, n, at, counts)
		}
	}
	if b.now[t] == nil {
		b.now[t] = &present{}
	}
	b.now[t].shown = nil
	if last := b.at(h.merged, len(b.chains)-1, b.current().Position); last != nil {
		b.now[t].shown = last.Version
	}
}

// say puts into a history what counts from a position of the nth chain on, in
// their order, and has it written.
func (b *book) say(w *walk, t schema.Target, n int, at int64, counts outcome) {
	h, c := b.ledger[t], &b.chains[n]
	var before *names.Version
	if last := b.at(h.merged, n, at-1); last != nil {
		before = last.Version
	}
	if at > c.fork() && !same(before, counts.version) {
		h.merged = append(h.merged, names.Assignment{Chain: c.Number, Position: at, Version: counts.version})
	}
	since := at
	if last := b.at(h.merged, n, at); last != nil {
		since = last.Position
	}
	b.pending.Assignments = append(b.pending.Assignments, record.Assignment{
		RefKey: b.key, Target: t, Chain: c.Number, Position: at, Version: counts.version, File: counts.file, Changed: counts.changed,
		Commit: w.commitAt(c, since),
	})
}

// placed returns what was pushed for a target along a chain, in the order of the
// places.
func (b *book) placed(h *gitops.History, t schema.Target, c *chain) []outcome {
	var all []outcome
	for _, p := range b.pushed[t] {
		if at, ok := p.place(h, c); ok {
			all = append(all, p.outcome(at))
		}
	}
	slices.SortStableFunc(all, func(a, b outcome) int { return cmp.Compare(a.changed, b.changed) })
	return all
}

// moments are the positions of a chain at which something was said of a target,
// and its fork.
func (b *book) moments(h *history, c *chain, pushes []outcome) []int64 {
	var all []int64
	if c.Fork >= 0 {
		all = append(all, c.Fork)
	}
	for _, f := range h.files {
		if f.chain == c.Number {
			all = append(all, f.position)
		}
	}
	for _, p := range pushes {
		if p.changed > c.fork() {
			all = append(all, p.changed)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// counted notes which pushes a ledger that was restored has.
func (b *book) counted(h *gitops.History) {
	for t, all := range b.pushed {
		l := b.ledger[t]
		if l == nil {
			continue
		}
		for _, p := range all {
			for n := range b.chains {
				at, ok := p.place(h, &b.chains[n])
				if f := b.filedAt(l.files, n, at); ok && f != nil && f.position == at {
					p.counted[b.chains[n].Number] = true
				}
			}
		}
	}
}

// count has the pushes counted whose commits have come to a chain.
func (b *book) count(w *walk) {
	for _, t := range slices.SortedFunc(maps.Keys(b.pushed), names.Compare) {
		fresh := false
		for _, p := range b.pushed[t] {
			for n := range b.chains {
				c := &b.chains[n]
				if _, ok := p.place(w.history, c); ok && !p.counted[c.Number] {
					p.counted[c.Number], fresh = true, true
				}
			}
		}
		if fresh {
			b.merge(w, t)
		}
	}
}

// filedAt returns what the files said at a position of the nth chain.
func (b *book) filedAt(all []filed, n int, position int64) *filed {
	for ; n >= 0; n-- {
		c := b.chains[n]
		i, _ := slices.BinarySearchFunc(all, position+1, func(f filed, position int64) int {
			return cmp.Or(cmp.Compare(f.chain, c.Number), cmp.Compare(f.position, position))
		})
		if i--; i >= 0 && all[i].chain == c.Number {
			return &all[i]
		}
		position = min(position, c.fork())
	}
	return nil
}

// lineage places commits on a book's chains, as they were at one moment.
type lineage struct {
	history *gitops.History
	chains  []chain
}

func (l lineage) point(c *chain, position int64, id gitops.ID) names.Point {
	return names.Point{Chain: c.Number, Position: position, Commit: id.String(), CommittedAt: l.history.CommittedAt(id)}
}

// Place returns the point of a commit on the newest chain that it lies on.
func (l lineage) Place(commit string) (names.Point, bool) {
	id, ok := gitops.ParseID(commit)
	if !ok {
		return names.Point{}, false
	}
	for i := len(l.chains) - 1; i >= 0; i-- {
		if at, ok := l.history.Place(l.chains[i].Head, id); ok {
			return l.point(&l.chains[i], at, id), true
		}
	}
	return names.Point{}, false
}

// On returns the point at a position of a chain.
func (l lineage) On(number uint32, position int64) (names.Point, bool) {
	for i := range l.chains {
		if c := &l.chains[i]; c.Number == number {
			id, ok := l.history.At(c.Head, position)
			return l.point(c, position, id), ok
		}
	}
	return names.Point{}, false
}

// Head returns the newest commit that was read.
func (l lineage) Head() (names.Point, bool) {
	c := &l.chains[len(l.chains)-1]
	return l.point(c, c.Position, c.Head), c.Position >= 0
}

// Configuration returns the version of the configuration that a folder holds at
// a commit.
func (l lineage) Configuration(commit, folder string) string {
	id, ok := gitops.ParseID(commit)
	if !ok {
		return ""
	}
	version, ok := l.history.Configuration(id, folder)
	if !ok {
		return ""
	}
	return version.String()
}

package gitops

// The first parents of a commit are a chain: the commit at each position of it
// is found, and so is where on it something begins to hold, by jumps that get
// shorter. (Myers: an applicative random-access stack.)

// deepen computes depth and jump of a commit whose parents have them.
func (g *graph) deepen(i int32) {
	p := g.firstParent(i)
	if p == absent {
		g.jump[i] = i
		return
	}
	g.depth[i] = g.depth[p] + 1
	g.jump[i] = p
	if far := g.jump[p]; g.depth[p]-g.depth[far] == g.depth[far]-g.depth[g.jump[far]] {
		g.jump[i] = g.jump[far]
	}
}

// onChain returns the commit at a position of the chain below a head; absent
// where there is none.
func (g *graph) onChain(head int32, position int64) int32 {
	if position < 0 || position > int64(g.depth[head]) {
		return absent
	}
	at := head
	for int64(g.depth[at]) > position {
		if far := g.jump[at]; int64(g.depth[far]) >= position {
			at = far
		} else {
			at = g.firstParent(at)
		}
	}
	return at
}

// lowest returns the commit nearest to the root of the chain below a head for
// which something holds that holds for the head, and for all above one for which
// it does.
func (g *graph) lowest(head int32, holds func(int32) bool) int32 {
	at := head
	for {
		p := g.firstParent(at)
		if p == absent || !holds(p) {
			return at
		}
		at = p
		for far := g.jump[at]; far != at && holds(far); far = g.jump[at] {
			at = far
		}
	}
}

// highest returns the commit nearest to the head of the chain below it for which
// something holds that holds for all below one for which it does; absent where
// it holds for none.
func (g *graph) highest(head int32, holds func(int32) bool) int32 {
	at := head
	for at != absent && !holds(at) {
		if far := g.jump[at]; far != at && !holds(far) {
			at = far
			continue
		}
		at = g.firstParent(at)
	}
	return at
}

// brought returns the commit of the chain below a head that brought a commit:
// the commit itself, or the lowest merge that leads to it. It is absent where
// the head does not lead to it.
func (g *graph) brought(head, commit int32) int32 {
	switch {
	case g.leads(commit, head):
		return commit
	case !g.reaches(commit, head):
		return absent
	}
	return g.lowest(head, func(at int32) bool { return g.reaches(commit, at) })
}

// fork returns the last commit that the chains below two heads share; absent
// where they share none.
func (g *graph) fork(a, b int32) int32 {
	return g.highest(b, func(at int32) bool { return g.leads(at, a) })
}

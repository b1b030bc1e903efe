package landing

import (
	"maps"

	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// Storing says that a batch is about to be written. Stored or Unsure must
// follow before the next one.
func (k *Landings) Storing() { k.memory.storing() }

// Stored says that the batch that was announced is stored.
func (k *Landings) Stored(batch []fold.Changes) { k.memory.stored(batch) }

// Unsure says that nobody knows whether the batch that was announced is stored:
// what is kept is forgotten.
func (k *Landings) Unsure() { k.memory.unsure() }

func (m *memory) storing() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writing = make(chan struct{})
}

// over says that nothing is being written any more.
func (m *memory) over() {
	if m.writing != nil {
		close(m.writing)
		m.writing = nil
	}
}

func (m *memory) unsure() {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.over()
	clear(m.refs)
	m.rows, m.troubles = 0, nil
	for _, l := range m.loads {
		l.lose()
	}
	m.shrink()
}

func (m *memory) stored(batch []fold.Changes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.over()
	if len(m.refs) == 0 && len(m.loads) == 0 {
		return
	}
	troubles := map[string]record.Trouble{}
	for i := range batch {
		c := &batch[i]
		if c.Late {
			continue
		}
		m.change(c)
		troubles[c.Cluster] = record.Trouble{UnlistedKinds: c.Position.UnlistedKinds, Blocked: c.Blocked}
	}
	m.trouble(troubles)
	m.shrink()
}

// change applies what one message changed to the refs that are kept or loaded.
func (m *memory) change(c *fold.Changes) {
	for i := range c.Upserts {
		u := &c.Upserts[i]
		key := readerKey{c.Cluster, u.Reconciler.Ref()}
		for nth, h := range u.Entry.Endpoints {
			m.edit(h.Value(), key, func() *record.Subscription { return record.SubscriptionOf(c.Cluster, u, nth) })
		}
		for _, left := range u.Left {
			m.edit(left.Value(), key, nil)
		}
	}
	for i := range c.Removals {
		for _, left := range c.Removals[i].Endpoints {
			m.edit(left.Value(), readerKey{c.Cluster, c.Removals[i].Ref}, nil)
		}
	}
}

// edit sets what a reconciler says of an endpoint; a nil one takes it out.
func (m *memory) edit(endpoint schema.Endpoint, key readerKey, to func() *record.Subscription) {
	at := refKey{endpoint.Repo, endpoint.Ref}
	r, l := m.refs[at], m.loads[at]
	if r == nil && l == nil {
		return
	}
	e := edit{path: endpoint.Path, key: key}
	if to != nil {
		e.to = to()
	}
	if r != nil {
		m.rows += r.set(e)
	}
	if l == nil || l.lost {
		return
	}
	if len(l.edits) >= m.max {
		l.lose()
		return
	}
	l.edits = append(l.edits, e)
}

// trouble takes over what is in the way on the clusters of a batch.
func (m *memory) trouble(of map[string]record.Trouble) {
	if len(m.refs) > 0 {
		kept := maps.Clone(m.troubles)
		for name, t := range of {
			if t.IsZero() {
				delete(kept, name)
				continue
			}
			kept[name] = t
		}
		m.troubles = kept
	}
	for _, l := range m.loads {
		if !l.lost {
			maps.Copy(l.troubles, of)
		}
	}
}

// lose gives up on what was stored while the load went on.
func (l *load) lose() { l.lost, l.edits, l.troubles = true, nil, nil }

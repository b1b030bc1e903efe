package landing

import (
	"context"
	"maps"
	"sync"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// memory holds the subscriptions of some refs, and the troubles of all
// clusters, as they are stored. Each batch changes both at once, so that
// nothing is ever seen of half a report.
//
// While a ref is loaded, batches go on being stored: what they change is
// gathered and applied to what was read. A batch that was being written when
// the reading ended may be in it or not; it is waited for, and applied like the
// others, so that subscriptions and troubles are of one moment.
type memory struct {
	max     int
	metrics *metrics

	mu sync.Mutex
	// writing is closed when the batch that is being written is over; nil while
	// none is.
	writing chan struct{}
	refs    map[refKey]*ref
	// rows is how many subscriptions all refs hold; clock counts the uses.
	rows  int
	clock uint64
	// troubles are known when there are refs. The map is replaced, never
	// changed, so that it can be read without the lock.
	troubles map[string]record.Trouble
	loads    map[refKey]*load
}

type refKey struct{ repo, ref string }

// ref holds the subscriptions of one repository and ref by path. They are
// replaced, never changed.
type ref struct {
	paths map[string]map[readerKey]*record.Subscription
	rows  int
	used  uint64
}

// readerKey names a reconciler across clusters.
type readerKey struct {
	cluster string
	ref     schema.ObjectRef
}

// load is a ref on its way into memory.
type load struct {
	at   refKey
	done chan struct{}
	// edits and troubles are what was stored since it began.
	edits    []edit
	troubles map[string]record.Trouble
	// lost says that what was stored since is not known.
	lost bool
}

// edit sets the subscription of a reconciler at a path; nil takes it out.
type edit struct {
	path string
	key  readerKey
	to   *record.Subscription
}

func newMemory(most int, m *metrics) *memory {
	return &memory{max: most, metrics: m, refs: map[refKey]*ref{}, loads: map[refKey]*load{}}
}

// find returns what may count for a question, and the troubles of the moment.
func (m *memory) find(at refKey, path, commit string) (found []*record.Subscription, troubles map[string]record.Trouble, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.refs[at]
	if !ok {
		m.metrics.misses.Inc()
		return nil, nil, false
	}
	m.metrics.hits.Inc()
	m.clock++
	r.used = m.clock
	found = make([]*record.Subscription, 0, r.within(path))
	for _, rows := range r.paths {
		for _, s := range rows {
			if s.MayCount(path, commit) {
				found = append(found, s)
			}
		}
	}
	return found, m.troubles, true
}

// begin registers a load, or returns the one that is going on.
func (m *memory) begin(at refKey) (l *load, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l, ok := m.loads[at]; ok {
		return l, false
	}
	l = &load{at: at, done: make(chan struct{}), troubles: map[string]record.Trouble{}}
	m.loads[at] = l
	return l, true
}

// abandon ends a load, whatever came of it.
func (m *memory) abandon(l *load) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.loads, l.at)
	close(l.done)
}

// keep takes in what was read, once the batch that is being written is over.
func (m *memory) keep(ctx context.Context, l *load, found []*record.Subscription, troubles map[string]record.Trouble) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if writing := m.writing; writing != nil {
		m.mu.Unlock()
		select {
		case <-writing:
		case <-ctx.Done():
		}
		m.mu.Lock()
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if l.lost {
		return nil
	}
	r := &ref{paths: map[string]map[readerKey]*record.Subscription{}}
	for _, s := range found {
		r.set(edit{s.Path, readerKey{s.Cluster, s.Ref}, s})
	}
	for _, e := range l.edits {
		r.set(e)
	}
	if r.rows > m.max {
		return nil
	}
	if len(m.refs) == 0 {
		maps.Copy(troubles, l.troubles)
		maps.DeleteFunc(troubles, func(_ string, t record.Trouble) bool { return t.IsZero() })
		m.troubles = troubles
	}
	m.refs[l.at] = r
	m.rows += r.rows
	m.clock++
	r.used = m.clock
	m.shrink()
	return nil
}

// shrink forgets the refs that were asked about longest ago until the rest
// fits. A ref that nobody reads takes room too: questions may name any.
func (m *memory) shrink() {
	for m.rows+len(m.refs) > m.max {
		var oldest refKey
		for at, r := range m.refs {
			if old := m.refs[oldest]; old == nil || r.used < old.used {
				oldest = at
			}
		}
		m.rows -= m.refs[oldest].rows
		delete(m.refs, oldest)
	}
	m.metrics.rows.Set(float64(m.rows))
}

// within returns how many subscriptions are at the path or below it.
func (r *ref) within(path string) (n int) {
	for p, rows := range r.paths {
		if schema.PathWithin(path, p) {
			n += len(rows)
		}
	}
	return n
}

// set applies an edit and returns how many rows more there are.
func (r *ref) set(e edit) (more int) {
	rows := r.paths[e.path]
	before := len(rows)
	switch {
	case e.to == nil:
		delete(rows, e.key)
	case rows == nil:
		rows = map[readerKey]*record.Subscription{e.key: e.to}
		r.paths[e.path] = rows
	default:
		rows[e.key] = e.to
	}
	if len(rows) == 0 {
		delete(r.paths, e.path)
	}
	more = len(rows) - before
	r.rows += more
	return more
}

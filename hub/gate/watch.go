package gate

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
)

// watchers are those who wait for a verdict to change.
type watchers struct {
	gauge prometheus.Gauge

	mu  sync.Mutex
	all map[*watcher]struct{}
}

// watcher waits for one endpoint. woken has room for one wake-up, so that none
// that comes between two looks is lost.
type watcher struct {
	endpoint schema.Endpoint
	// names are those of the endpoint's repository.
	names []string
	woken chan struct{}

	mu       sync.Mutex
	clusters map[string]*compliance.Cluster
}

func newWatchers(gauge prometheus.Gauge) *watchers {
	return &watchers{gauge: gauge, all: map[*watcher]struct{}{}}
}

func (ws *watchers) add(e schema.Endpoint, names []string) *watcher {
	w := &watcher{endpoint: e, names: names, woken: make(chan struct{}, 1)}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all[w] = struct{}{}
	ws.gauge.Set(float64(len(ws.all)))
	return w
}

func (ws *watchers) remove(w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.all, w)
	ws.gauge.Set(float64(len(ws.all)))
}

// watch sets the clusters that the verdict depends on: a child of a subscriber
// reads another endpoint on the same cluster. Nil is all of them.
func (w *watcher) watch(clusters map[string]*compliance.Cluster) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clusters = clusters
}

func (w *watcher) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// concerns reports whether a cluster's message may change the verdict.
func (w *watcher) concerns(c *fold.Changes) bool {
	w.mu.Lock()
	_, ours := w.clusters[c.Cluster]
	ours = ours || w.clusters == nil
	w.mu.Unlock()
	if ours {
		return true
	}
	for i := range c.Upserts {
		for _, h := range c.Upserts[i].Entry.Endpoints {
			if e := h.Value(); e.Ref == w.endpoint.Ref && slices.Contains(w.names, e.Repo) {
				return true
			}
		}
	}
	return false
}

// Stored wakes those whom stored messages concern.
func (g *Gate) Stored(batch []fold.Changes) {
	g.recall.stored(batch)
	g.watchers.mu.Lock()
	defer g.watchers.mu.Unlock()
	for w := range g.watchers.all {
		for i := range batch {
			if !batch[i].Late && w.concerns(&batch[i]) {
				w.wake()
				break
			}
		}
	}
}

// ClusterChanged wakes those who may care about a cluster: all of them, since
// a registration or a return from silence is rare.
func (g *Gate) ClusterChanged(string) { g.wakeAll() }

// ExpectationsChanged wakes everybody: who should read what has changed.
func (g *Gate) ExpectationsChanged() { g.wakeAll() }

func (g *Gate) wakeAll() {
	g.watchers.mu.Lock()
	defer g.watchers.mu.Unlock()
	for w := range g.watchers.all {
		w.wake()
	}
}

// RepositoryChanged wakes those who wait for a verdict on a repository, in
// canonical form: what is known of its commits has changed.
func (g *Gate) RepositoryChanged(repo string) {
	g.watchers.mu.Lock()
	defer g.watchers.mu.Unlock()
	for w := range g.watchers.all {
		if slices.Contains(w.names, repo) {
			w.wake()
		}
	}
}

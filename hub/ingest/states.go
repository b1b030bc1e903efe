package ingest

import (
	"container/list"
	"sync"

	"github.com/landfall-hub/landfall/hub/fold"
)

// states keeps the clusters' states in memory, those used longest ago leaving
// first. Only the goroutine of Run uses the states themselves; the positions
// are read by others too.
type states struct {
	limit   int
	entries int
	held    map[string]*list.Element
	// recent has the state used last in front.
	recent *list.List
	// uncertain are the clusters whose last batch may be stored or not.
	uncertain map[string]struct{}

	mu        sync.RWMutex
	positions map[string]fold.Position
}

// held is a state in memory. size is its number of entries when last counted.
type heldState struct {
	cluster string
	state   *fold.State
	size    int
}

func newStates(limit int) *states {
	return &states{limit: limit, held: map[string]*list.Element{}, recent: list.New(), uncertain: map[string]struct{}{}, positions: map[string]fold.Position{}}
}

func (s *states) position(cluster string) fold.Position {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.positions[cluster]
}

func (s *states) setPositions(positions map[string]fold.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.positions = positions
}

// get returns a state that is held; it panics for one that was not loaded.
func (s *states) get(cluster string) *fold.State {
	e := s.held[cluster]
	s.recent.MoveToFront(e)
	return e.Value.(*heldState).state
}

// missing returns the names of those to be loaded. A cluster of which nothing
// was ever stored begins here.
func (s *states) missing(names []string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var missing []string
	for _, name := range names {
		if _, ok := s.held[name]; ok {
			continue
		}
		_, stored := s.positions[name]
		_, uncertain := s.uncertain[name]
		if stored || uncertain {
			missing = append(missing, name)
			continue
		}
		s.hold(name, fold.NewState())
	}
	return missing
}

func (s *states) hold(name string, state *fold.State) {
	s.held[name] = s.recent.PushFront(&heldState{cluster: name, state: state})
}

func (s *states) put(loaded map[string]*fold.State) {
	for name, state := range loaded {
		s.hold(name, state)
	}
}

func (s *states) drop(name string) {
	if e, ok := s.held[name]; ok {
		s.entries -= e.Value.(*heldState).size
		s.recent.Remove(e)
		delete(s.held, name)
	}
}

// forget drops the states that a batch has touched and that may not be stored.
func (s *states) forget(batch []*message) {
	for _, m := range batch {
		s.drop(m.cluster)
		s.uncertain[m.cluster] = struct{}{}
	}
}

// compare takes over where the streams stand in a store that other hubs write
// to, and drops the states that have moved on there.
func (s *states) compare(names []string, stored map[string]fold.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		p, ok := stored[name]
		if ok {
			s.positions[name] = p
		}
		if e, held := s.held[name]; held && e.Value.(*heldState).state.Position.Version() != p.Version() {
			s.drop(name)
		}
	}
}

// settle takes over what a batch has changed and stored: the positions, and
// the room that the states take. The states used longest ago make room.
func (s *states) settle(batch []*message) {
	s.mu.Lock()
	for _, m := range batch {
		h := s.held[m.cluster].Value.(*heldState)
		s.positions[m.cluster] = h.state.Position
		delete(s.uncertain, m.cluster)
		s.entries += len(h.state.Entries) - h.size
		h.size = len(h.state.Entries)
	}
	s.mu.Unlock()
	for s.entries > s.limit && s.recent.Len() > 1 {
		s.drop(s.recent.Back().Value.(*heldState).cluster)
	}
}

package gate

import (
	"sync"
	"unique"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
)

// recall keeps what a gate would otherwise ask the store each time, as long as
// nothing that is stored can change it: near misses until a report touches
// their repository, and the progress of gates, which only this hub writes. It
// keeps nothing where other hubs write to the same store.
type recall struct {
	on bool

	mu       sync.Mutex
	repos    map[string]*repoRecall
	progress map[gateKey]compliance.Progress
}

// repoRecall holds the near misses of one repository's endpoints. stored counts
// the changes, so that an answer from before one is not kept after it.
type repoRecall struct {
	stored uint64
	near   map[schema.Endpoint][]schema.NearMiss
}

// gateKey names a gate.
type gateKey struct {
	endpoint       schema.Endpoint
	commit, policy string
}

// The most that is kept; beyond it everything is asked for anew.
const (
	maxRepos    = 1000
	maxNear     = 1000
	maxProgress = 10_000
)

func newRecall(on bool) *recall {
	return &recall{on: on, repos: map[string]*repoRecall{}, progress: map[gateKey]compliance.Progress{}}
}

// nearMisses returns what is kept, or what look finds.
func (r *recall) nearMisses(e schema.Endpoint, look func() ([]schema.NearMiss, error)) ([]schema.NearMiss, error) {
	if !r.on {
		return look()
	}
	r.mu.Lock()
	repo, ok := r.repos[e.Repo]
	if !ok {
		if len(r.repos) >= maxRepos {
			clear(r.repos)
		}
		repo = &repoRecall{near: map[schema.Endpoint][]schema.NearMiss{}}
		r.repos[e.Repo] = repo
	}
	kept, ok := repo.near[e]
	before := repo.stored
	r.mu.Unlock()
	if ok {
		return kept, nil
	}
	found, err := look()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if repo.stored == before {
		if len(repo.near) >= maxNear {
			clear(repo.near)
		}
		repo.near[e] = found
	}
	return found, nil
}

// stored forgets what a batch may have changed.
func (r *recall) stored(batch []fold.Changes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.repos) == 0 {
		return
	}
	touch := func(endpoints []unique.Handle[schema.Endpoint]) {
		for _, h := range endpoints {
			if repo, ok := r.repos[h.Value().Repo]; ok {
				repo.stored++
				clear(repo.near)
			}
		}
	}
	for i := range batch {
		for j := range batch[i].Upserts {
			touch(batch[i].Upserts[j].Entry.Endpoints)
			touch(batch[i].Upserts[j].Left)
		}
		for j := range batch[i].Removals {
			touch(batch[i].Removals[j].Endpoints)
		}
	}
}

// progressOf returns what is kept, or what look finds.
func (r *recall) progressOf(gate gateKey, look func() (compliance.Progress, error)) (compliance.Progress, error) {
	if !r.on {
		return look()
	}
	r.mu.Lock()
	kept, ok := r.progress[gate]
	r.mu.Unlock()
	if ok {
		return kept, nil
	}
	return look()
}

// keepProgress keeps what was stored: the earliest question and the highest
// count, as the store does.
func (r *recall) keepProgress(gate gateKey, p compliance.Progress) {
	if !r.on {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if kept, ok := r.progress[gate]; ok {
		if kept.FirstAsked.Before(p.FirstAsked) {
			p.FirstAsked = kept.FirstAsked
		}
		p.Highest = max(p.Highest, kept.Highest)
		if kept.RoseAt.After(p.RoseAt) {
			p.RoseAt = kept.RoseAt
		}
	}
	if len(r.progress) >= maxProgress {
		clear(r.progress)
	}
	r.progress[gate] = p
}

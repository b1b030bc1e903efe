package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// pool has the repositories that environments read, each once.
type pool struct {
	addresses addresses
	dir       string
	git       gitrepo.Options
	slots     chan struct{}
	log       *slog.Logger
	changed   func()
	// fresh has room for one: there are sources that do not run yet.
	fresh chan struct{}

	mu      sync.Mutex
	all     map[key]*followed
	waiting []*followed
	// uses are what each environment reads, once it knows.
	uses map[*environment]map[use]bool
}

// use is a ref of a source that is read.
type use struct {
	key
	ref string
}

// key names a source: a repository may be followed with its history and, before
// that was wanted, without.
type key struct {
	name string
	deep bool
}

// get returns the source of a repository. Local says that it may be a folder of
// this machine.
func (p *pool) get(address string, local, deep bool, interval time.Duration) (*followed, key, error) {
	at, err := p.addresses.find(address, local)
	if err != nil {
		return nil, key{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := key{at.name, true}
	if _, there := p.all[k]; !there {
		k.deep = deep
	}
	if s, there := p.all[k]; there {
		return s, k, nil
	}
	o := p.git
	o.Dir = filepath.Join(p.dir, folderOf(k))
	s, err := newFollowed(at, k.deep, o, interval)
	if err != nil {
		return nil, k, err
	}
	s.slots, s.changed, s.log = p.slots, p.changed, p.log.With("repository", at.name)
	p.all[k] = s
	p.waiting = append(p.waiting, s)
	raise(p.fresh)
	return s, k, nil
}

// folderOf returns the folder of a repository's mirror: the end of its name for
// people, a hash for certainty.
func folderOf(k key) string {
	plain := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			return c
		}
		return '_'
	}, path.Base(k.name))
	sum := sha256.Sum256([]byte(k.name))
	folder := plain[:min(len(plain), 40)] + "-" + hex.EncodeToString(sum[:8])
	if k.deep {
		return folder
	}
	return folder + "-heads"
}

// run has every source fetched until ctx ends.
func (p *pool) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		p.mu.Lock()
		fresh := p.waiting
		p.waiting = nil
		for _, s := range fresh {
			own, cancel := context.WithCancel(ctx)
			s.cancel = cancel
			group.Go(func() {
				defer cancel()
				s.run(own)
				p.drop(ctx, s)
			})
		}
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-p.fresh:
		}
	}
}

// drop removes the mirror of a source that nobody reads any more.
func (p *pool) drop(ctx context.Context, s *followed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil || p.all[key{s.name, s.deep}] != nil {
		return // the hub ends, or somebody reads it again
	}
	if err := os.RemoveAll(s.git.Dir()); err != nil {
		s.log.Warn("the mirror of a repository that nobody reads any more is still there", "error", err)
	}
	s.log.Info("the repository is read no more")
}

// use notes what an environment reads, and ends what no environment does. Until
// all know what they read, nothing ends.
func (p *pool) use(e *environment, own map[use]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uses[e] = own
	refs := map[key]map[string]bool{}
	for _, used := range p.uses {
		if used == nil {
			return
		}
		for u := range used {
			if refs[u.key] == nil {
				refs[u.key] = map[string]bool{}
			}
			refs[u.key][u.ref] = true
		}
	}
	for k, s := range p.all {
		if s.cancel == nil {
			continue
		}
		if refs[k] != nil {
			s.only(refs[k])
			continue
		}
		delete(p.all, k)
		s.cancel()
	}
}

// fetch has a repository, by any of its names, fetched because something was
// pushed to it; false where nobody reads it.
func (p *pool) fetch(repo string) bool {
	if at, ok := p.addresses[repo]; ok {
		repo = at.name
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found := false
	for _, deep := range []bool{true, false} {
		if s, ok := p.all[key{repo, deep}]; ok {
			raise(s.pushed)
			found = true
		}
	}
	return found
}

// counts returns how many sources can be fetched, and how many cannot.
func (p *pool) counts() (ok, failed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.all {
		if _, err := s.stale(); err != nil {
			failed++
			continue
		}
		ok++
	}
	return ok, failed
}

package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// followed is a repository of which some refs are followed.
type followed struct {
	place
	git *gitrepo.Repo
	// deep says that the mirror holds the whole history, and not the newest commit
	// of each ref alone.
	deep     bool
	interval time.Duration
	slots    chan struct{}
	log      *slog.Logger
	// changed is called when something else is known of a ref.
	changed func()
	// pushed and wanted have room for one: something was pushed; a ref is wanted
	// that was never asked for.
	pushed, wanted chan struct{}
	// cancel ends it; nil before it runs.
	cancel context.CancelFunc

	mu   sync.Mutex
	refs map[string]*head
	// kept are the commits of refs that were known when the hub ran before.
	kept map[string]string
	// trouble is why the last fetch failed, since when that is so; nil where it
	// did not.
	trouble error
	since   time.Time
}

// head is where a ref is.
type head struct {
	// commit is the last that is known; "" for none.
	commit string
	// asked says that the server was asked, err what came of it the last time.
	asked bool
	err   error
}

// headsFile holds the commits of the refs, in the mirror's folder.
const headsFile = "landfall-heads.json"

func newFollowed(p place, deep bool, o gitrepo.Options, interval time.Duration) (*followed, error) {
	o.URL, o.Auth = p.url, p.auth
	if !deep {
		o.Depth = 1
	}
	git, err := gitrepo.Open(o)
	if err != nil {
		return nil, err
	}
	s := &followed{
		place: p, git: git, deep: deep, interval: interval, refs: map[string]*head{},
		pushed: make(chan struct{}, 1), wanted: make(chan struct{}, 1),
	}
	s.restore()
	return s, nil
}

// restore reads where the refs were. What is wrong with it is no matter: the
// server knows.
func (s *followed) restore() {
	text, err := os.ReadFile(filepath.Join(s.git.Dir(), headsFile))
	if err != nil || json.Unmarshal(text, &s.kept) != nil {
		return
	}
	reader := s.git.Reader()
	maps.DeleteFunc(s.kept, func(_, commit string) bool {
		id, ok := gitrepo.ParseID(commit)
		if !ok {
			return true
		}
		_, err := reader.Commit(id)
		return err != nil
	})
}

// keep writes down where the refs are.
func (s *followed) keep() error {
	s.mu.Lock()
	heads := map[string]string{}
	for ref, h := range s.refs {
		if h.commit != "" {
			heads[ref] = h.commit
		}
	}
	s.mu.Unlock()
	return writeFile(filepath.Join(s.git.Dir(), headsFile), heads)
}

// at returns where a ref is, and has it followed from now on.
func (s *followed) at(ref string) head {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.refs[ref]
	if !ok {
		h = &head{commit: s.kept[ref]}
		s.refs[ref] = h
		raise(s.wanted)
	}
	return *h
}

// only has no other refs followed.
func (s *followed) only(refs map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.refs, func(ref string, _ *head) bool { return !refs[ref] })
}

// stale returns why what is known may be old, and since when; nil where it is
// not.
func (s *followed) stale() (since time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.trouble
}

// moved notes that a ref is at a commit that was pushed.
func (s *followed) moved(ref, commit string) {
	s.mu.Lock()
	if h := s.refs[ref]; h != nil {
		h.commit, h.asked, h.err = commit, true, nil
	}
	s.mu.Unlock()
	if err := s.keep(); err != nil {
		s.log.Warn("where the branches are is not kept; a restart has to ask", "error", err)
	}
}

// How often is fetched.
const (
	// pushGap is the least time between two fetches.
	pushGap = time.Second
	// mostBackoff is the most that the interval grows to while fetching fails.
	mostBackoff = 10 * time.Minute
	// slow is after how long a fetch gives up its slot: a server that stalls keeps
	// its own repository waiting, and no other for longer than this.
	slow = 10 * time.Second
)

// run fetches until ctx ends.
func (s *followed) run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		release := s.enter(ctx)
		if ctx.Err() != nil {
			return
		}
		news, err := s.fetch(ctx)
		release()
		if ctx.Err() != nil {
			return
		}
		failures++
		if err == nil {
			failures = 0
		}
		if s.note(err) || news {
			s.changed()
		}
		s.rest(ctx, failures)
	}
}

// enter waits for a slot. It is given back by release, or when the fetch turns
// out to be slow.
func (s *followed) enter(ctx context.Context) (release func()) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	leave := sync.OnceFunc(func() { <-s.slots })
	timer := time.AfterFunc(slow, leave)
	return func() {
		timer.Stop()
		leave()
	}
}

// rest waits until the next fetch is due, or somebody wants it and it is
// allowed.
func (s *followed) rest(ctx context.Context, failures int) {
	wait := s.interval
	for range min(failures-1, 10) {
		wait *= 2
	}
	wait = max(min(wait, mostBackoff), s.interval)
	// Not all at the same moment, for the servers' sake.
	wait += time.Duration((rand.Float64() - 0.5) * 0.2 * float64(wait)) //nolint:gosec // no secret hangs on it
	began := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
		return
	case <-s.wanted:
		return
	case <-s.pushed:
	}
	gap := time.NewTimer(pushGap - time.Since(began))
	defer gap.Stop()
	select {
	case <-ctx.Done():
	case <-gap.C:
	}
}

// fetch asks where the refs are, and reports whether something else is known of
// one of them. The error is what went wrong with the repository: a ref that is
// not there is its user's trouble.
func (s *followed) fetch(ctx context.Context) (news bool, err error) {
	s.mu.Lock()
	refs := slices.Sorted(maps.Keys(s.refs))
	s.mu.Unlock()
	if len(refs) == 0 {
		return false, nil
	}
	found, problems, err := s.ask(ctx, refs)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	s.mu.Lock()
	moved := false
	for _, ref := range refs {
		h := s.refs[ref]
		if h == nil {
			continue // nobody reads it any more
		}
		was := *h
		h.asked, h.err = true, err
		if err == nil {
			h.err = problems[ref]
		}
		if commit := found[ref]; commit != "" {
			h.commit = commit
		}
		moved = moved || h.commit != was.commit
		news = news || h.commit != was.commit || !was.asked || text(h.err) != text(was.err)
	}
	s.mu.Unlock()
	// A mirror that began anew has lost what was written down.
	if _, lost := os.Stat(filepath.Join(s.git.Dir(), headsFile)); moved || lost != nil {
		if kept := s.keep(); kept != nil {
			s.log.Warn("where the branches are is not kept; a restart has to ask", "error", kept)
		}
	}
	return news, err
}

// ask asks the server where refs are, and brings them. The error is about all of
// them, problems are about one.
func (s *followed) ask(ctx context.Context, refs []string) (found map[string]string, problems map[string]error, err error) {
	found, problems = map[string]string{}, map[string]error{}
	if s.deep {
		heads, err := s.git.FetchHeads(ctx, refs, len(refs))
		if err != nil {
			return nil, nil, err
		}
		for _, ref := range refs {
			if id, ok := heads.Refs[ref]; ok {
				found[ref] = id.String()
				continue
			}
			problems[ref] = fmt.Errorf("following %s of %s: %w", shownRef(ref), s.git.Name(), gitrepo.ErrRefMissing)
		}
		if _, err := s.git.Join(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("the packs of the mirror stay as many as they are; looking something up takes longer", "error", err)
		}
		return found, problems, nil
	}
	for _, ref := range refs {
		commit, err := s.git.Fetch(ctx, ref)
		switch {
		case err == nil:
			found[ref] = commit
		case errors.Is(err, gitrepo.ErrRefMissing):
			problems[ref] = err
		default:
			return found, nil, err // it is the same for the others
		}
	}
	return found, problems, nil
}

// note keeps what came of a fetch, logs it where it is news, and reports that.
func (s *followed) note(err error) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.trouble
	s.trouble = err
	switch {
	case err == nil:
		s.since = time.Time{}
		if before != nil {
			s.log.Info("the repository can be fetched again")
		}
	case before == nil:
		s.since = time.Now()
	}
	if err != nil && text(before) != err.Error() {
		s.log.Warn("the repository cannot be fetched; what is known of it stays", "error", err)
	}
	return text(before) != text(err)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func shownRef(ref string) string {
	if ref == "" {
		return "the default branch"
	}
	return "the branch " + ref
}

// raise puts a token where there is room for one.
func raise(room chan<- struct{}) {
	select {
	case room <- struct{}{}:
	default:
	}
}

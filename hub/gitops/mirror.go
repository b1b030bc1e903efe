package gitops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// mostBranches is how many branches are followed where no refs are named.
const mostBranches = 1000

// mirror is one repository that is followed.
type mirror struct {
	// repo is its canonical form.
	repo    string
	refs    []string
	source  *gitrepo.Repo
	trees   *trees
	log     *slog.Logger
	metrics *metrics

	current atomic.Pointer[snapshot]
	// asked and pushed have room for one: somebody wants a fetch now, because of a
	// commit that is not known or because something was pushed.
	asked, pushed chan struct{}

	mu sync.Mutex
	// wanted are commits that a fetch was asked for, and when.
	wanted map[gitrepo.ID]time.Time
	// trouble is why the last fetch did not bring all, since when that is so; nil
	// where it did. fetched is when the last one that did was over.
	trouble        error
	since, fetched time.Time
}

// newMirror makes a mirror of what is on disk, as far as that can be had quickly.
func newMirror(repo string, refs []string, source *gitrepo.Repo, log *slog.Logger, m *metrics) *mirror {
	n := &mirror{
		repo: repo, refs: refs, source: source, trees: newTrees(), log: log.With("repository", repo), metrics: m,
		asked: make(chan struct{}, 1), pushed: make(chan struct{}, 1), wanted: map[gitrepo.ID]time.Time{},
	}
	s := &snapshot{graph: (&graph{}).with(nil), reader: source.Reader()}
	if kept, err := load(source.Dir()); err == nil {
		s.graph = kept.graph
		if present(s.reader, kept.heads) {
			s.heads, s.defaultBranch = kept.heads, kept.defaultBranch
		}
	}
	n.use(s)
	return n
}

// present reports whether a mirror has the commits that its refs are at. Where it
// lost them, the copy of the graph still says how commits stand to one another;
// where the refs are, the next fetch tells.
func present(r *gitrepo.Reader, heads map[string]gitrepo.ID) bool {
	for _, id := range heads {
		if _, err := r.Commit(id); err != nil {
			return false
		}
	}
	return len(heads) > 0
}

func (m *mirror) use(s *snapshot) {
	m.current.Store(s)
	m.metrics.commits.WithLabelValues(m.repo).Set(float64(len(s.graph.ids)))
}

// restore reads from the mirror what its graph lacks: all of it where there was
// no copy, else what was fetched after the copy was written.
func (m *mirror) restore(ctx context.Context) (changed bool, err error) {
	s := m.current.Load()
	from := m.source.Tips
	if len(s.graph.ids) == 0 {
		from = func() ([]gitrepo.ID, error) { return m.source.Commits(ctx) }
	}
	tips, err := from()
	if err != nil {
		return false, err
	}
	return m.absorb(ctx, s.graph, tips, &gitrepo.Heads{Refs: s.heads, Default: s.defaultBranch})
}

// fetch brings the mirror up to date, and with it the graph.
func (m *mirror) fetch(ctx context.Context) (changed bool, err error) {
	heads, err := m.source.FetchHeads(ctx, m.refs, mostBranches)
	if err != nil {
		return false, err
	}
	base := m.current.Load().graph
	tips := slices.Collect(maps.Values(heads.Refs))
	if base.cut > 0 && heads.Downloaded {
		// What was missing may have come: nothing that was built on its absence holds.
		base = (&graph{}).with(nil)
		if tips, err = m.source.Commits(ctx); err != nil {
			return false, err
		}
	}
	changed, err = m.absorb(ctx, base, tips, &heads)
	if err != nil {
		return changed, err
	}
	m.tidy(ctx)
	return changed, m.complaint(&heads)
}

// tidy keeps looking something up as quick as it was. What cannot be tidied up is
// no worse than before.
func (m *mirror) tidy(ctx context.Context) {
	began := time.Now()
	switch joined, err := m.source.Join(ctx); {
	case err != nil && ctx.Err() == nil:
		m.log.Warn("the packs of the mirror stay as many as they are; looking something up takes longer", "error", err)
	case joined:
		m.log.Debug("the packs of the mirror were joined", "took", time.Since(began))
	}
}

// absorb adds to a graph what leads to the tips, and has the result used.
func (m *mirror) absorb(ctx context.Context, base *graph, tips []gitrepo.ID, heads *gitrepo.Heads) (changed bool, err error) {
	slices.SortFunc(tips, func(a, b gitrepo.ID) int { return strings.Compare(string(a[:]), string(b[:])) })
	var fresh []gitrepo.Commit
	known := func(id gitrepo.ID) bool { return base.find(id) != absent }
	if err := m.source.Walk(ctx, tips, known, func(c gitrepo.Commit) { fresh = append(fresh, c) }); err != nil {
		return false, err
	}
	old := m.current.Load()
	next := &snapshot{graph: base, heads: heads.Refs, defaultBranch: heads.Default, reader: old.reader}
	if len(fresh) > 0 {
		next.graph = base.with(fresh)
	}
	if len(fresh) > 0 || heads.Downloaded {
		next.reader = m.source.Reader()
	}
	for _, id := range next.heads {
		if next.graph.find(id) == absent {
			m.source.BeginAnew()
			return false, fmt.Errorf("the mirror of %s lacks the commit %s, which was fetched; it begins anew", m.source.Name(), id)
		}
	}
	if next.graph == old.graph && next.reader == old.reader && next.defaultBranch == old.defaultBranch && maps.Equal(next.heads, old.heads) {
		return false, nil
	}
	m.use(next)
	if err := save(m.source.Dir(), next); err != nil && len(next.graph.ids) > 0 {
		m.log.Warn("the commit graph is not kept; the next start reads all commits again", "error", err)
	}
	return true, nil
}

// complaint says what a fetch that succeeded did not bring.
func (m *mirror) complaint(heads *gitrepo.Heads) error {
	if cut := m.current.Load().graph.cut; cut > 0 && !heads.Shallow {
		m.source.BeginAnew()
		return fmt.Errorf("the mirror of %s lacks the parents of %d commits; it begins anew", m.source.Name(), cut)
	}
	var problems []error
	if heads.Shallow {
		problems = append(problems, errShallow)
	}
	if len(heads.Missing) > 0 {
		problems = append(problems, fmt.Errorf("%w: %s", gitrepo.ErrRefMissing, strings.Join(heads.Missing, ", ")))
	}
	if heads.Left > 0 {
		problems = append(problems, fmt.Errorf("%w: %d are not followed", errTooMany, heads.Left))
	}
	if len(problems) == 0 {
		return nil
	}
	return partlyError{fmt.Errorf("following %s: %w", m.source.Name(), errors.Join(problems...))}
}

// partlyError says what a fetch that succeeded did not bring: it is no reason to
// fetch less often.
type partlyError struct{ error }

func (e partlyError) Unwrap() error { return e.error }

// succeeded reports whether a fetch brought what could be had.
func succeeded(err error) bool {
	_, partly := errors.AsType[partlyError](err)
	return err == nil || partly
}

// What is wrong with a repository that can be fetched.
var (
	errShallow = errors.New("the server has only a part of the history: commits beyond it are unknown")
	errTooMany = fmt.Errorf("it has more than %d branches; name those that matter in refs", mostBranches)
)

// forget is after how long an unknown commit is asked for again, mostWanted how
// many are remembered.
const (
	forget     = time.Minute
	mostWanted = 1000
)

// want asks for a fetch because a commit is not known; it waits for nothing.
// One that is asked for and does not come is not asked for again at once.
func (m *mirror) want(id gitrepo.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if at, ok := m.wanted[id]; ok && now.Sub(at) < forget {
		return
	}
	if len(m.wanted) >= mostWanted {
		clear(m.wanted)
	}
	m.wanted[id] = now
	raise(m.asked)
}

// raise puts a token where there is room for one.
func raise(room chan<- struct{}) {
	select {
	case room <- struct{}{}:
	default:
	}
}

// note keeps what came of a fetch, and logs it where it is news.
func (m *mirror) note(err error, took time.Duration) {
	m.metrics.duration.Observe(took.Seconds())
	result, up := "ok", 1.0
	if err != nil {
		result, up = "failed", 0
	}
	m.metrics.fetches.WithLabelValues(m.repo, result).Inc()
	m.metrics.up.WithLabelValues(m.repo).Set(up)
	m.mu.Lock()
	defer m.mu.Unlock()
	before, now := m.trouble, time.Now()
	m.trouble = err
	if succeeded(err) {
		m.fetched = now
		m.metrics.fetched.WithLabelValues(m.repo).SetToCurrentTime()
	}
	if err == nil {
		m.since = time.Time{}
		if before != nil {
			m.log.Info("the repository can be followed again")
		}
		return
	}
	if before == nil {
		m.since = now
	}
	if before == nil || before.Error() != err.Error() {
		m.log.Warn("the repository cannot be followed as asked; its commits are judged by what is known", "error", err)
	}
}

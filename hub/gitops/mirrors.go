package gitops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/schema"
)

// Repository is one to follow.
type Repository struct {
	// URL is where it is fetched from: https, http, ssh, file or a folder.
	URL string
	// Aliases are other addresses that name the same repository.
	Aliases []string
	// Refs are the branches and tags (refs/tags/x) to follow; none is every
	// branch, but no more than 1,000.
	Refs []string
	// Interval is the time between two fetches. Default 30 seconds.
	Interval time.Duration
	Auth     gitrepo.Auth
}

// Bounds of an interval.
const (
	DefaultInterval = 30 * time.Second
	minInterval     = time.Second
	maxInterval     = 24 * time.Hour
)

// Options configure Mirrors.
type Options struct {
	Repositories []Repository
	// Dir is the folder of the mirrors. Nobody else may write to it.
	Dir string
	// Parallel is how many fetches begin at the same time; one that takes long
	// makes room for the others. Default 4.
	Parallel int
	// Timeout and Stall bound a fetch, MaxBytes what it may bring: see
	// gitrepo.Options.
	Timeout, Stall time.Duration
	MaxBytes       int64
	// Changed is called when what is known of a repository, in canonical form, has
	// changed. It must return soon. Nil for nobody.
	Changed    func(repo string)
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Mirrors are the repositories that are followed.
type Mirrors struct {
	opts  Options
	slots chan struct{}
	// all are sorted by repository; byName has them under every name.
	all    []follower
	byName map[string]*named
}

// named is a repository with its names, its own first.
type named struct {
	mirror *mirror
	names  []string
}

// Check says what is wrong with repositories, naming the first that is, without
// asking anybody.
func Check(repositories []Repository) error {
	_, err := identify(repositories)
	return err
}

// identify returns the canonical names of each repository, its own first.
func identify(repositories []Repository) ([][]string, error) {
	taken := map[string]bool{}
	all := make([][]string, len(repositories))
	for i := range repositories {
		r := &repositories[i]
		names, err := r.check()
		if err != nil {
			return nil, fmt.Errorf("repositories[%d].%w", i, err)
		}
		for _, name := range names {
			if taken[name] {
				return nil, fmt.Errorf("repositories[%d]: %s is named twice", i, name)
			}
			taken[name] = true
		}
		all[i] = names
	}
	return all, nil
}

// check returns the canonical names; its error begins with the setting's name.
func (r *Repository) check() ([]string, error) {
	own, err := schema.CanonicalRepo(r.URL)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	if _, err := gitrepo.Open(gitrepo.Options{URL: r.URL, Dir: "unused", Auth: r.Auth}); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	names := []string{own}
	for _, alias := range r.Aliases {
		name, err := schema.CanonicalRepo(alias)
		if err != nil {
			return nil, fmt.Errorf("aliases: %w", err)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, ref := range r.Refs {
		if _, err := schema.CanonicalRef(ref); err != nil {
			return nil, fmt.Errorf("refs: %w", err)
		}
	}
	if r.Interval != 0 && (r.Interval < minInterval || r.Interval > maxInterval) {
		return nil, fmt.Errorf("interval: it is from %s to %s, not %s", minInterval, maxInterval, r.Interval)
	}
	return names, nil
}

// New makes Mirrors of what is on disk, and asks no server anything.
func New(o Options) (*Mirrors, error) {
	if o.Log == nil || o.Dir == "" {
		return nil, errors.New("mirrors need a folder and a logger")
	}
	if o.Parallel == 0 {
		o.Parallel = 4
	}
	names, err := identify(o.Repositories)
	if err != nil {
		return nil, err
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, fmt.Errorf("looking for the folder of the mirrors: %w", err)
	}
	all := &Mirrors{opts: o, slots: make(chan struct{}, o.Parallel), byName: map[string]*named{}}
	metrics := newMetrics(o.Registerer)
	for i, r := range o.Repositories {
		own := names[i][0]
		source, err := gitrepo.Open(gitrepo.Options{
			URL: r.URL, Dir: filepath.Join(o.Dir, folderOf(own)), Auth: r.Auth, Timeout: o.Timeout, Stall: o.Stall, MaxBytes: o.MaxBytes,
		})
		if err != nil {
			return nil, err
		}
		m := newMirror(own, r.Refs, source, o.Log, metrics)
		interval := r.Interval
		if interval == 0 {
			interval = DefaultInterval
		}
		all.all = append(all.all, follower{mirror: m, interval: interval, slots: all.slots, fetch: all.telling(m, m.fetch), restore: all.telling(m, m.restore)})
		for _, name := range names[i] {
			all.byName[name] = &named{m, names[i]}
		}
	}
	slices.SortFunc(all.all, func(a, b follower) int { return strings.Compare(a.mirror.repo, b.mirror.repo) })
	return all, nil
}

// folderOf returns the folder of a repository's mirror: the end of its name for
// people, a hash for certainty.
func folderOf(repo string) string {
	plain := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			return c
		}
		return '_'
	}, path.Base(repo))
	sum := sha256.Sum256([]byte(repo))
	return plain[:min(len(plain), 40)] + "-" + hex.EncodeToString(sum[:8])
}

// telling calls Changed after work that changed something.
func (all *Mirrors) telling(m *mirror, work func(context.Context) (bool, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		changed, err := work(ctx)
		if changed && all.opts.Changed != nil {
			all.opts.Changed(m.repo)
		}
		return err
	}
}

// Run fetches until ctx ends.
func (all *Mirrors) Run(ctx context.Context) error {
	var group sync.WaitGroup
	for i := range all.all {
		group.Go(func() { all.all[i].run(ctx) })
	}
	group.Wait()
	<-ctx.Done() // where there is no repository
	return nil
}

// Graph returns the graph of a repository in canonical form, as it is now: one
// that knows only equality where nobody named the repository.
func (all *Mirrors) Graph(repo string) compliance.Graph {
	n, ok := all.byName[repo]
	if !ok {
		return compliance.Equality{}
	}
	return view{snapshot: n.mirror.current.Load(), trees: n.mirror.trees, want: n.mirror.want}
}

// Fetch has a repository, in canonical form or by an alias, fetched because
// something was pushed to it: within a second after the fetch before, where that
// succeeded. It waits for nothing, and returns false where nobody follows the
// repository.
func (all *Mirrors) Fetch(repo string) bool {
	n, ok := all.byName[repo]
	if ok {
		raise(n.mirror.pushed)
	}
	return ok
}

// Names returns the names of the repository that one of them names, its own
// first; the name itself where nobody named the repository.
func (all *Mirrors) Names(repo string) []string {
	if n, ok := all.byName[repo]; ok {
		return n.names
	}
	return []string{repo}
}

// State is how it stands with a repository.
type State struct {
	// Repo is its canonical form.
	Repo string
	// OK says that all is followed that was asked for. Detail says more, and holds
	// nothing that a server said.
	OK     bool
	Detail string
}

// States returns how it stands with each repository, sorted.
func (all *Mirrors) States() []State {
	states := make([]State, len(all.all))
	for i := range all.all {
		m := all.all[i].mirror
		s := m.current.Load()
		known := fmt.Sprintf("%d commits known", len(s.graph.ids))
		m.mu.Lock()
		trouble, since, fetched := m.trouble, m.since, m.fetched
		m.mu.Unlock()
		states[i] = State{Repo: m.repo, OK: trouble == nil && !fetched.IsZero()}
		switch {
		case trouble != nil:
			states[i].Detail = fmt.Sprintf("%s, since %s; %s", inShort(trouble), since.UTC().Format(time.RFC3339), known)
		case fetched.IsZero():
			states[i].Detail = "not fetched yet; " + known
		default:
			states[i].Detail = fmt.Sprintf("fetched at %s; %s", fetched.UTC().Format(time.RFC3339), known)
		}
	}
	return states
}

// inShort words a trouble for those who may not see the log.
func inShort(err error) string {
	if errors.Is(err, gitrepo.ErrTooLarge) {
		return "it is larger than a mirror may be; the hub's log says which bound that is"
	}
	for _, known := range []error{
		gitrepo.ErrNotFound, gitrepo.ErrAuth, gitrepo.ErrRefMissing, gitrepo.ErrSHA256, gitrepo.ErrTimeout, errShallow, errTooMany,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "it cannot be fetched; the hub's log says why"
}

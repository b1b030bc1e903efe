package catalog

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// Mirrors are the repositories that are followed.
type Mirrors interface {
	Repositories() []string
	History(repo string) (*gitops.History, bool)
	Names(repo string) []string
}

// Reader reads what was written before.
type Reader interface {
	Chains(ctx context.Context) ([]record.Chain, error)
	// Assignments visits the newest of each target of a ref, by target, chain and
	// position.
	Assignments(ctx context.Context, at record.RefKey, each uint64, visit func(record.Assignment)) error
	Targets(ctx context.Context) ([]record.NamedTarget, error)
	Pushed(ctx context.Context, most uint64) ([]record.Pushed, error)
	// SubscribedRefs are those that reconcilers read.
	SubscribedRefs(ctx context.Context) ([]record.RefKey, error)
}

// Writer stores rows. What is stored twice is there once.
type Writer interface {
	WriteNames(ctx context.Context, n record.Names) error
	PutRepositories(ctx context.Context, all []record.Repository) error
	PutDescriptors(ctx context.Context, all []record.Pushed) error
}

// Options configure a Catalog.
type Options struct {
	Mirrors Mirrors
	Reader  Reader
	Writer  Writer
	// Dir is the folder of copies that make a restart fast.
	Dir        string
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// Now is the clock of pushed descriptors; nil is time.Now.
	Now func() time.Time
	// batch is how many rows are written at once, about.
	batch int
}

func (o *Options) validate() error {
	if o.Mirrors == nil || o.Reader == nil || o.Writer == nil || o.Dir == "" || o.Log == nil {
		return errors.New("a catalog needs mirrors, a store, a folder and a logger")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.batch == 0 {
		o.batch = 10_000
	}
	return nil
}

// Bounds of what is kept in memory.
const (
	// mostSteps is how many assignments of a target on a ref are kept, about 250
	// bytes each; those before the newest ones are in ClickHouse only.
	mostSteps = 10_000
	// mostPushed is how many pushed descriptors are kept.
	mostPushed = 100_000
	// mostRefs is how many refs of a repository are followed where none are named.
	mostRefs = 100
)

const (
	// look is how often the refs that somebody reads are looked up, and what went
	// wrong is tried again.
	look = 30 * time.Second
	// slots is how many repositories are read at the same time.
	slots = 2
)

// Catalog knows what commits mean.
type Catalog struct {
	opts    Options
	metrics *metrics
	index   atomic.Pointer[names.Index]
	// reading bounds how many repositories are read at once.
	reading   *semaphore.Weighted
	followers []*follower
	// writing is held by whoever writes deployment targets.
	writing *semaphore.Weighted

	mu sync.Mutex
	// sheets are what the refs contribute, by repository.
	sheets map[string]map[string]*sheet
	// repos are the followed repositories as they are looked up.
	repos map[string]names.Repo
	// subscribed are the refs that reconcilers read.
	subscribed map[record.RefKey]bool
	// pushed are the descriptors that came by the API, in the order in which they
	// came.
	pushed map[record.RefKey][]*push
	// stored are the deployment targets that ClickHouse has, live those that are
	// named now, former those that were.
	stored, live, former map[schema.Target]record.NamedTarget
	problems             map[string][]problem
	// chains are those that ClickHouse had at the start.
	chains map[record.RefKey][]record.Chain
}

// New makes a Catalog that knows nothing.
func New(o Options) (*Catalog, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	c := &Catalog{
		opts: o, metrics: newMetrics(o.Registerer), reading: semaphore.NewWeighted(slots), writing: semaphore.NewWeighted(1),
		sheets: map[string]map[string]*sheet{}, repos: map[string]names.Repo{}, subscribed: map[record.RefKey]bool{},
		pushed: map[record.RefKey][]*push{}, stored: map[schema.Target]record.NamedTarget{}, live: map[schema.Target]record.NamedTarget{},
		problems: map[string][]problem{}, chains: map[record.RefKey][]record.Chain{},
	}
	c.index.Store(names.Empty())
	for _, repo := range o.Mirrors.Repositories() {
		f := &follower{
			catalog: c, repo: repo, wake: make(chan struct{}, 1), books: map[string]*book{}, holding: map[gitops.ID]bool{}, said: map[problem]bool{},
			log: o.Log.With("repository", repo), lock: semaphore.NewWeighted(1),
		}
		c.followers = append(c.followers, f)
	}
	return c, nil
}

// Index returns what is known now.
func (c *Catalog) Index() *names.Index { return c.index.Load() }

// Load reads what was written before. It is called before Run.
func (c *Catalog) Load(ctx context.Context) error {
	chains, err := c.opts.Reader.Chains(ctx)
	if err != nil {
		return err
	}
	targets, err := c.opts.Reader.Targets(ctx)
	if err != nil {
		return err
	}
	pushed, err := c.opts.Reader.Pushed(ctx, mostPushed)
	if err != nil {
		return err
	}
	refs, err := c.opts.Reader.SubscribedRefs(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range chains {
		c.chains[ch.RefKey] = append(c.chains[ch.RefKey], ch)
	}
	for _, t := range targets {
		c.stored[t.Target.Target] = t
	}
	for _, repo := range c.opts.Mirrors.Repositories() {
		c.know(repo)
	}
	for _, p := range pushed {
		c.keep(p)
	}
	for _, key := range refs {
		c.subscribed[key] = true
	}
	c.publish()
	return nil
}

// know makes a repository known by its names.
func (c *Catalog) know(repo string) {
	h, ok := c.opts.Mirrors.History(repo)
	if !ok {
		return
	}
	c.repos[repo] = names.Repo{Names: c.opts.Mirrors.Names(repo), Written: h.Written(), Default: h.Default()}
}

// own returns the repository that a name means, by its own name, and the default
// branch by its own.
func (c *Catalog) own(e schema.Endpoint) schema.Endpoint {
	e.Repo = c.opts.Mirrors.Names(e.Repo)[0]
	if e.Ref == "" {
		e.Ref = c.repos[e.Repo].Default
	}
	return e
}

// Run follows the repositories until ctx ends.
func (c *Catalog) Run(ctx context.Context) error {
	var group sync.WaitGroup
	for _, f := range c.followers {
		group.Go(func() { f.run(ctx) })
	}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			c.subscriptions(ctx)
		}
	}
	group.Wait()
	return nil
}

// Changed says that more is known of a repository, by its own name. It waits for
// nothing.
func (c *Catalog) Changed(repo string) {
	for _, f := range c.followers {
		if f.repo == repo {
			f.nudge()
		}
	}
}

// subscriptions looks up which refs reconcilers read.
func (c *Catalog) subscriptions(ctx context.Context) {
	refs, err := c.opts.Reader.SubscribedRefs(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.opts.Log.Warn("nobody can tell which refs are read; those of before are followed", "error", err)
		}
		return
	}
	now := make(map[record.RefKey]bool, len(refs))
	for _, key := range refs {
		now[key] = true
	}
	c.mu.Lock()
	changed := !maps.Equal(now, c.subscribed)
	c.subscribed = now
	c.mu.Unlock()
	if !changed {
		return
	}
	for _, f := range c.followers {
		f.nudge()
	}
}

// basisOf says under which names a repository is read.
func basisOf(r names.Repo) uint64 {
	sum := fnv.New64a()
	for _, name := range append(slices.Clone(r.Names), r.Default) {
		fmt.Fprintf(sum, "%q ", name)
	}
	return sum.Sum64()
}

// Problems returns how many documents of a repository are not as they should be,
// and what is wrong with the first.
func (c *Catalog) Problems(repo string) (count int, first string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.problems[repo]
	if len(all) == 0 {
		return 0, ""
	}
	return len(all), all[0].String()
}

// String names the ref, the place and the reason.
func (p problem) String() string { return shownRef(p.ref) + ": " + p.Error() }

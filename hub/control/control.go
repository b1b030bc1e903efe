package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/schema"
)

// Store keeps what was decided.
type Store interface {
	// Scheduled reads all assignments that there are.
	Scheduled(ctx context.Context) ([]record.Scheduled, error)
	// PutSchedules stores assignments. What is stored twice is there once.
	PutSchedules(ctx context.Context, rows []record.Schedule) error
	// ScheduledPage reads assignments in the order of environment, cluster type and
	// deployment target, after the one that these three name.
	ScheduledPage(ctx context.Context, f schema.AssignmentFilter, after []string, limit int) ([]schema.Assignment, error)
	ScheduledDetail(ctx context.Context, k record.ScheduleKey) (d schema.AssignmentDetail, ok bool, err error)
}

// Options configure a Control.
type Options struct {
	ControlPlanes []ControlPlane
	// Known are further repositories that the operator named.
	Known []Repository
	// Dir is the folder of the mirrors. Nobody else may write to it.
	Dir   string
	Store Store
	// Shared says that other hubs write to the same store: environments that this
	// one does not know may be theirs.
	Shared bool
	// Published is called after a commit was pushed to a repository, by its own
	// canonical name. It must return soon. Nil for nobody.
	Published func(repo string)
	// Expecting is called after it changed who should read what. It must return
	// soon. Nil for nobody.
	Expecting func()
	// DefaultBranch returns a repository's default branch, "" where that is not
	// known. Nil where it never is.
	DefaultBranch func(repo string) string
	// Parallel is how many fetches begin at the same time. Default 4.
	Parallel int
	// Timeout and Stall bound a fetch and a push: see gitrepo.Options.
	Timeout, Stall time.Duration
	// Now is the clock of commits; nil is time.Now.
	Now        func() time.Time
	Log        *slog.Logger
	Registerer prometheus.Registerer

	// open makes the client of a repository's provider; nil is (*Forge).open.
	open opener
}

func (o *Options) validate() error {
	if o.Dir == "" || o.Store == nil || o.Log == nil {
		return errors.New("the control of the scheduler needs a folder, a store and a logger")
	}
	if o.Parallel == 0 {
		o.Parallel = 4
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.open == nil {
		o.open = (*Forge).open
	}
	return check(o.ControlPlanes, o.Known, o.open)
}

// Control runs the scheduler.
type Control struct {
	opts    Options
	planes  []*plane
	pool    *pool
	metrics *metrics

	mu sync.Mutex
	// claims are the environments that publish to a branch.
	claims map[branch]*environment
	// expected is who should read what, by environment.
	expected map[string]expectations
}

// plane is a control plane with its environments.
type plane struct {
	ControlPlane
	// name is its canonical form; local says that it is a folder of this machine.
	name         string
	local        bool
	environments []*environment
	// provider is its Git provider; nil for none.
	provider provider
}

// New makes a Control that knows nothing, and asks nobody.
func New(o Options) (*Control, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	known, err := newAddresses(o.ControlPlanes, o.Known, o.open)
	if err != nil {
		return nil, err
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, fmt.Errorf("looking for the folder of the control planes' mirrors: %w", err)
	}
	c := &Control{opts: o, claims: map[branch]*environment{}, expected: map[string]expectations{}}
	c.pool = &pool{
		addresses: known, dir: o.Dir, git: gitrepo.Options{Timeout: o.Timeout, Stall: o.Stall}, slots: make(chan struct{}, o.Parallel),
		log: o.Log, changed: c.nudge, fresh: make(chan struct{}, 1), all: map[key]*followed{}, uses: map[*environment]map[use]bool{},
	}
	c.metrics = newMetrics(o.Registerer, c.pool.counts)
	for _, p := range o.ControlPlanes {
		at, err := known.find(p.URL, true)
		if err != nil {
			return nil, err
		}
		own := &plane{ControlPlane: p, name: at.name, local: isLocal(at.name), provider: at.provider}
		for _, name := range sortedKeys(p.Environments) {
			e := newEnvironment(c, own, name)
			own.environments = append(own.environments, e)
			c.pool.uses[e] = nil
		}
		c.planes = append(c.planes, own)
	}
	return c, nil
}

// Load reads what was stored before. It is called before Run.
func (c *Control) Load(ctx context.Context) error {
	rows, err := c.opts.Store.Scheduled(ctx)
	if err != nil {
		return fmt.Errorf("reading what was scheduled: %w", err)
	}
	var gone []record.Schedule
	for name, kept := range byEnvironment(rows) {
		if e := c.environment(name); e != nil {
			e.kept = kept
		} else if !c.opts.Shared {
			for k := range kept {
				gone = append(gone, goneRow(k))
			}
			continue
		}
		c.expect(name, expectationsOf(kept))
	}
	slices.SortFunc(gone, func(a, b record.Schedule) int { return compareKeys(a.Key(), b.Key()) })
	for part := range slices.Chunk(gone, mostRows) {
		if err := c.opts.Store.PutSchedules(ctx, part); err != nil {
			return fmt.Errorf("forgetting environments that no control plane has: %w", err)
		}
	}
	return nil
}

func byEnvironment(rows []record.Scheduled) map[string]map[record.ScheduleKey]record.Scheduled {
	all := map[string]map[record.ScheduleKey]record.Scheduled{}
	for _, r := range rows {
		if all[r.Environment] == nil {
			all[r.Environment] = map[record.ScheduleKey]record.Scheduled{}
		}
		all[r.Environment][r.ScheduleKey] = r
	}
	return all
}

// environment returns the one of a name; nil for none.
func (c *Control) environment(name string) *environment {
	for _, p := range c.planes {
		for _, e := range p.environments {
			if e.name == name {
				return e
			}
		}
	}
	return nil
}

// refresh is how often is looked at what other hubs decided.
const refresh = 30 * time.Second

// Run follows the control planes until ctx ends.
func (c *Control) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { c.pool.run(ctx) })
	for _, p := range c.planes {
		for _, e := range p.environments {
			group.Go(func() { e.run(ctx) })
			if e.herald != nil {
				group.Go(func() { e.herald.run(ctx) })
			}
		}
	}
	if c.opts.Shared {
		group.Go(func() { c.others(ctx) })
	}
	group.Wait()
	return nil
}

// others looks at what other hubs decided.
func (c *Control) others(ctx context.Context) {
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := c.learn(ctx); err != nil && ctx.Err() == nil {
			c.opts.Log.Warn("what other hubs scheduled is not known; what was before counts", "error", err)
		}
	}
}

// learn takes what is stored of environments that are not this hub's.
func (c *Control) learn(ctx context.Context) error {
	rows, err := c.opts.Store.Scheduled(ctx)
	if err != nil {
		return err
	}
	all := byEnvironment(rows)
	c.mu.Lock()
	for name := range c.expected {
		if _, there := all[name]; !there {
			all[name] = nil // it has no rows any more
		}
	}
	c.mu.Unlock()
	for name, kept := range all {
		if c.environment(name) == nil {
			c.expect(name, expectationsOf(kept))
		}
	}
	return nil
}

// nudge has every environment look whether something changed for it.
func (c *Control) nudge() {
	for _, p := range c.planes {
		for _, e := range p.environments {
			raise(e.wake)
		}
	}
}

// Fetch has a repository, in canonical form or by an alias, fetched because
// something was pushed to it: within a second after the fetch before. It waits
// for nothing, and returns false where no plan is made of the repository.
func (c *Control) Fetch(repo string) bool { return c.pool.fetch(repo) }

// claim has an environment publish to a branch alone, and returns "", or the
// name of the one that has it.
func (c *Control) claim(e *environment, at spot) (other string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to := branch{at.source.name, at.ref}
	if has := c.claims[to]; has != nil && has != e {
		return has.name
	}
	maps.DeleteFunc(c.claims, func(_ branch, has *environment) bool { return has == e })
	c.claims[to] = e
	return ""
}

// release has an environment publish nowhere.
func (c *Control) release(e *environment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.claims, func(_ branch, has *environment) bool { return has == e })
}

// reads reports whether a branch is a part of a control plane.
func (c *Control) reads(repo, ref string) bool {
	for _, p := range c.planes {
		if p.name == repo && (ref == p.main() || slices.Contains(valuesOf(p.Environments), ref)) {
			return true
		}
		for _, r := range p.ConfigRepos {
			if at, err := c.pool.addresses.find(r.URL, true); err == nil && at.name == repo && slices.Contains(valuesOf(r.Environments), ref) {
				return true
			}
		}
	}
	return false
}

func valuesOf(m map[string]string) []string {
	all := make([]string, 0, len(m))
	for _, k := range sortedKeys(m) {
		all = append(all, m[k])
	}
	return all
}

package host

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/schema"
)

// Sink takes what is known; agent/outbox has it.
type Sink interface {
	// Put takes the facts of reconcilers as they are now.
	Put(...schema.Reconciler)
	// Remove takes the reconcilers that are gone.
	Remove(...schema.ObjectRef)
	// Kinds says which kinds are known completely, and which cannot be.
	Kinds(listed, unlisted []string)
}

// Options configure a Runner.
type Options struct {
	Config Config
	// Cluster is the host's name, for the command's environment.
	Cluster string
	// Env reads a variable of the agent's environment.
	Env        func(string) string
	Logger     *slog.Logger
	Registerer prometheus.Registerer

	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// After is the alarm clock; nil is time.After.
	After func(time.Duration) <-chan time.Time
	// Random returns a number in [0, 1) that spreads the work of many hosts;
	// several goroutines call it. Nil is math/rand/v2's.
	Random func() float64
	// Grace is how long a command that is told to end may take. Default 10 s.
	Grace time.Duration
	// Settle is how long processes may outlive the command that left them.
	// Default 1 s.
	Settle time.Duration
}

func (o *Options) validate() error {
	if err := o.Config.Validate(); err != nil {
		return fmt.Errorf("a host's settings: %w", err)
	}
	if o.Env == nil || o.Registerer == nil {
		return errors.New("a host needs its environment and a place for metrics")
	}
	if o.Grace < 0 || o.Settle < 0 {
		return fmt.Errorf("a grace of %s and %s to settle: both positive", o.Grace, o.Settle)
	}
	o.Config = o.Config.withDefaults()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	if o.Settle == 0 {
		o.Settle = time.Second
	}
	return nil
}

// Runner follows the folders. Reconcilers and Status may be called from any
// goroutine, at any time.
type Runner struct {
	opts    Options
	metrics *metrics
	store   *store
	// folders are sorted by name.
	folders []*folder
	// turns bounds how many folders work at the same time.
	turns chan struct{}
	// removed are those that are configured no more.
	removed []schema.ObjectRef
}

// New takes the state directory and reads what is applied. Run, or Close, gives
// it back.
func New(opts Options) (*Runner, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	s, err := openStore(opts.Config.StateDir)
	if err != nil {
		return nil, err
	}
	r := &Runner{opts: opts, store: s, turns: make(chan struct{}, opts.Config.Parallel)}
	if err := r.build(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	r.metrics = newMetrics(opts.Registerer, r)
	return r, nil
}

// build makes the folders, and tidies up after those that are gone.
func (r *Runner) build() error {
	mirrors, configured := map[string]*gitrepo.Repo{}, map[string]bool{}
	used := map[string]bool{}
	for _, c := range r.opts.Config.Folders {
		o := c.repo(r.store.dir)
		if mirrors[o.Dir] == nil {
			repo, err := gitrepo.Open(o)
			if err != nil {
				return fmt.Errorf("the folder %s: %w", c.Name, err)
			}
			mirrors[o.Dir], used[o.Dir] = repo, true
		}
		f, err := newFolder(r, c, mirrors[o.Dir])
		if err != nil {
			return err
		}
		r.folders, configured[c.Name] = append(r.folders, f), true
	}
	slices.SortFunc(r.folders, func(a, b *folder) int { return strings.Compare(a.config.Name, b.config.Name) })
	known, err := r.store.names()
	if err != nil {
		return err
	}
	for _, name := range known {
		if !configured[name] {
			r.removed = append(r.removed, schema.ObjectRef{Kind: Kind, Namespace: Namespace, Name: name})
		}
	}
	if err := r.store.keepMirrors(used); err != nil {
		return fmt.Errorf("removing mirrors that nobody reads: %w", err)
	}
	return nil
}

// Close gives the state directory back, where Run was never called.
func (r *Runner) Close() error { return r.store.close() }

// Run follows the folders until ctx ends, and tells to what it sees. A command
// that runs then is ended, and run again by the next Run.
func (r *Runner) Run(ctx context.Context, to Sink) error {
	to.Kinds([]string{Kind}, []string{})
	r.forget(to)
	var all sync.WaitGroup
	for _, f := range r.folders {
		all.Go(func() { f.follow(ctx, to) })
	}
	<-ctx.Done()
	all.Wait()
	return r.store.close()
}

// forget takes leave of the folders that are configured no more.
func (r *Runner) forget(to Sink) {
	if len(r.removed) == 0 {
		return
	}
	to.Remove(r.removed...)
	for _, ref := range r.removed {
		if err := r.store.forget(ref.Name); err != nil {
			r.opts.Logger.Warn("a folder that is configured no more cannot be removed", "folder", ref.Name, "error", err)
		}
	}
}

// Reconcilers yields the facts of every folder, for a snapshot.
func (r *Runner) Reconcilers(kind string) iter.Seq[schema.Reconciler] {
	return func(yield func(schema.Reconciler) bool) {
		if kind != Kind {
			return
		}
		for _, f := range r.folders {
			if !yield(f.facts()) {
				return
			}
		}
	}
}

// Status is where the folders stand.
type Status struct {
	// Folders counts them, by status.
	Folders map[schema.Status]int
	// Unread are the folders whose repository could not be read just now, each
	// with why, sorted.
	Unread []string
}

// Status returns where the folders stand.
func (r *Runner) Status() Status {
	s := Status{Folders: map[schema.Status]int{}}
	for rec := range r.Reconcilers(Kind) {
		s.Folders[rec.Status]++
		if rec.SourceError != "" {
			s.Unread = append(s.Unread, rec.Name+": "+rec.SourceError)
		}
	}
	return s
}

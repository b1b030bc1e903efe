package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
)

// Defaults of Options.
const (
	DefaultDiscovery = 30 * time.Second
	DefaultStale     = 5 * time.Minute
)

// Options are what a Watcher is made of.
type Options struct {
	// Config says how to reach the API server. A rate and a user agent that it
	// leaves open are filled in. Watches are long: it must have no Timeout.
	Config *rest.Config
	// Kinds to watch, each under a name (Kind.Kind) of its own.
	Kinds []Kind
	// Trim removes what no reader looks at before an object is kept. It may
	// change obj, and must give the same for the same.
	Trim func(obj *unstructured.Unstructured)
	// OnObject is told that a key appeared, changed or went. It is called from
	// one goroutine, and must not block for long.
	OnObject func(Key)
	// OnKinds is told that States gives another answer. It is called from one
	// goroutine, and must not block for long.
	OnKinds func()
	// Discovery is how often to look for kinds that came, went or changed their
	// version. Watches are opened anew after once to twice that, which shows
	// whether they are allowed still. Default 30 s.
	Discovery time.Duration
	// Stale is how long a kind may go with neither list nor watch granted
	// before it is Unlisted; it is noticed at the next Discovery. Default 5 min.
	Stale time.Duration
	// Logger gets the lines of client-go's reflectors too. Default: none.
	Logger *slog.Logger
	// Registerer gets the metrics. Default: none.
	Registerer prometheus.Registerer
}

func (o *Options) validate() error {
	switch {
	case o.Config == nil:
		return errors.New("watching the API server needs a configuration of how to reach it")
	case o.Config.Timeout != 0:
		return errors.New("the configuration of the API server has a timeout, which would cut every watch: remove it")
	case len(o.Kinds) == 0:
		return errors.New("watching the API server needs kinds to watch")
	case o.OnObject == nil || o.OnKinds == nil:
		return errors.New("watching the API server needs someone to tell: OnObject and OnKinds")
	case o.Discovery < 0 || o.Stale < 0:
		return errors.New("the times of watching the API server must not be negative")
	}
	names := map[string]bool{}
	for _, k := range o.Kinds {
		if k.Group == "" || k.Resource == "" || k.Kind == "" {
			return fmt.Errorf("the kind to watch %+v lacks its group, resource or kind", k)
		}
		if names[k.Kind] {
			return fmt.Errorf("there are two kinds to watch with the name %s", k.Kind)
		}
		names[k.Kind] = true
	}
	return nil
}

// A Watcher knows what the API server holds of its kinds.
type Watcher struct {
	opts      Options
	client    *client
	informers []*informer // by name
	queue     workqueue.TypedInterface[Key]
	metrics   *metrics
	look      chan struct{} // what is served may have changed
	kinds     chan struct{} // a state has changed
}

// New makes a Watcher; it asks the API server for nothing before Run.
func New(opts Options) (*Watcher, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if opts.Discovery == 0 {
		opts.Discovery = DefaultDiscovery
	}
	if opts.Stale == 0 {
		opts.Stale = DefaultStale
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := newClient(opts.Config)
	if err != nil {
		return nil, err
	}
	w := &Watcher{
		opts: opts, client: c,
		queue: workqueue.NewTyped[Key](), metrics: newMetrics(opts.Registerer),
		look: make(chan struct{}, 1), kinds: make(chan struct{}, 1),
	}
	for _, k := range opts.Kinds {
		s := newStanding(opts.Logger.With("kind", k.Kind), func() { signal(w.kinds) })
		i := &informer{
			Kind: k, client: c, stale: opts.Stale, renew: opts.Discovery, metrics: w.metrics, look: func() { signal(w.look) }, standing: s,
		}
		i.store = &store{kind: k.Kind, trim: opts.Trim, changed: w.queue.Add, replaced: i.listed, objects: map[Key]*packed{}}
		w.informers = append(w.informers, i)
	}
	slices.SortFunc(w.informers, func(a, b *informer) int {
		return Key{Kind: a.Kind.Kind}.Compare(Key{Kind: b.Kind.Kind})
	})
	if opts.Registerer != nil {
		if err := opts.Registerer.Register(collector{w}); err != nil {
			return nil, fmt.Errorf("registering the metrics of watching the API server: %w", err)
		}
	}
	return w, nil
}

// signal leaves a word for who waits for one, unless there is one already.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run watches until ctx ends, and waits for what it started. It may be called
// once.
func (w *Watcher) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(logr.NewContextWithSlogLogger(ctx, w.opts.Logger))
	g.Go(func() error { w.discover(ctx); return nil })
	g.Go(func() error { w.tellKinds(ctx); return nil })
	g.Go(func() error { w.tellObjects(ctx); return nil })
	g.Go(func() error { <-ctx.Done(); w.queue.ShutDown(); return nil })
	err := g.Wait()
	w.client.http.CloseIdleConnections()
	return err
}

// discover follows what the API server serves, and owns the reflectors.
func (w *Watcher) discover(ctx context.Context) {
	defer func() {
		for _, k := range w.informers {
			k.stop()
		}
	}()
	groups := map[string][]*informer{}
	for _, k := range w.informers {
		groups[k.Group] = append(groups[k.Group], k)
	}
	failing := map[string]bool{}
	tick := time.NewTicker(w.opts.Discovery)
	defer tick.Stop()
	for {
		for _, group := range slices.Sorted(maps.Keys(groups)) {
			err := w.discoverGroup(ctx, group, groups[group])
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				w.metrics.discovery.Inc()
				if !failing[group] {
					w.opts.Logger.Warn("discovery fails, it is tried again", "group", group, "err", err)
				}
			}
			failing[group] = err != nil
		}
		for _, k := range w.informers {
			k.expire(ctx)
		}
		select {
		case <-tick.C:
		case <-w.look:
		case <-ctx.Done():
			return
		}
	}
}

// discoverGroup makes a group's informers follow what is served of it. Where
// that cannot be told, all stays as it is.
func (w *Watcher) discoverGroup(ctx context.Context, group string, informers []*informer) error {
	kinds := make([]Kind, 0, len(informers))
	for _, k := range informers {
		kinds = append(kinds, k.Kind)
	}
	served, err := w.client.served(ctx, group, kinds)
	if err != nil {
		return err
	}
	for _, k := range informers {
		version, ok := served[k.Resource]
		if !ok {
			k.gone()
			continue
		}
		k.serve(ctx, version)
	}
	return nil
}

func (w *Watcher) tellKinds(ctx context.Context) {
	for {
		select {
		case <-w.kinds:
			w.opts.OnKinds()
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watcher) tellObjects(ctx context.Context) {
	for {
		key, shutdown := w.queue.Get()
		if shutdown || ctx.Err() != nil {
			return
		}
		w.opts.OnObject(key)
		w.queue.Done(key)
	}
}

// Get returns a copy of an object as it was seen last, trimmed.
func (w *Watcher) Get(key Key) (*unstructured.Unstructured, bool) {
	k := w.informer(key.Kind)
	if k == nil {
		return nil, false
	}
	p := k.store.get(key)
	if p == nil {
		return nil, false
	}
	obj, err := p.unpack()
	if err != nil { // what was packed here can be unpacked
		w.opts.Logger.Error("an object kept is broken", "err", err)
		return nil, false
	}
	return obj, true
}

// Keys returns what is known of a kind, sorted; see States for whether that is
// what the API server has.
func (w *Watcher) Keys(kind string) []Key {
	k := w.informer(kind)
	if k == nil {
		return nil
	}
	return k.store.keys()
}

// States returns the state of each kind, by its name.
func (w *Watcher) States() map[string]State {
	all := make(map[string]State, len(w.informers))
	for _, k := range w.informers {
		all[k.Kind.Kind] = k.standing.now()
	}
	return all
}

func (w *Watcher) informer(kind string) *informer {
	i, ok := slices.BinarySearchFunc(w.informers, kind, func(k *informer, kind string) int {
		return Key{Kind: k.Kind.Kind}.Compare(Key{Kind: kind})
	})
	if !ok {
		return nil
	}
	return w.informers[i]
}

// Package fleet knows the registered clusters and when each was last heard of.
// What it knows is also in the store: several hubs on one store refresh it,
// and a restarted hub reads it back.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// Store keeps registrations and heartbeats.
type Store interface {
	// Registered reads the newest registration of some clusters, of all for nil.
	Registered(ctx context.Context, names []string) ([]record.Registered, error)
	// Register stores registrations and decommissions.
	Register(ctx context.Context, all []record.Registered) error
	// Contested returns those of the registrations whose epoch another hub has
	// issued too.
	Contested(ctx context.Context, all []record.Registered) (names []string, err error)
	Heartbeats(ctx context.Context) ([]record.Heartbeat, error)
	PutHeartbeats(ctx context.Context, beats []record.Heartbeat) error
}

// Options configure a Fleet.
type Options struct {
	Store Store
	// SilentAfter is how many heartbeat intervals a cluster may be unheard of.
	SilentAfter int
	// Shared says that other hubs write to the same store.
	Shared bool
	// Now is the clock; time.Now mostly.
	Now func() time.Time
	Log *slog.Logger
	// Changed is called after a cluster registered, left, or came back from
	// silence; it must not block. Nil is allowed.
	Changed    func(cluster string)
	Registerer prometheus.Registerer
}

func (o *Options) validate() error {
	if o.Store == nil || o.Log == nil || o.Now == nil {
		return errors.New("a fleet needs a store, a logger and a clock")
	}
	if o.SilentAfter < 1 {
		return fmt.Errorf("silent after %d heartbeats: at least one", o.SilentAfter)
	}
	if o.Changed == nil {
		o.Changed = func(string) {}
	}
	return nil
}

const (
	// flushInterval is how often heartbeats are stored: losing that much of
	// them is nothing beside the silence that is allowed.
	flushInterval = time.Second
	// refreshInterval is how often a hub looks at what others wrote.
	refreshInterval = 2 * time.Second
)

// Fleet holds the registered clusters.
type Fleet struct {
	opts      Options
	started   time.Time
	registrar registrar

	mu       sync.RWMutex
	clusters map[string]*member
	dirty    map[string]struct{}
}

type member struct {
	record.Registered
	// lastSeen is of the current epoch's agent.
	lastSeen time.Time
}

// Member is a registered cluster with the time it was last heard of.
type Member struct {
	record.Registered
	// LastSeen is never before RegisteredAt: a registration is a sign of life.
	LastSeen time.Time
	Silent   bool
}

// New makes an empty fleet; Load fills it.
func New(opts Options) (*Fleet, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	f := &Fleet{opts: opts, started: opts.Now(), registrar: registrar{turn: make(chan struct{}, 1)}, clusters: map[string]*member{}, dirty: map[string]struct{}{}}
	f.register(opts.Registerer)
	return f, nil
}

func (f *Fleet) register(reg prometheus.Registerer) {
	if reg == nil {
		return
	}
	for _, status := range []schema.ClusterStatus{schema.ClusterLive, schema.ClusterSilent} {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "landfall", Name: "clusters", Help: "Registered clusters by whether they are heard of.",
			ConstLabels: prometheus.Labels{"status": string(status)},
		}, func() float64 { return float64(f.count(status)) }))
	}
}

func (f *Fleet) count(status schema.ClusterStatus) int {
	n := 0
	for _, m := range f.All() {
		if !m.Decommissioned && m.Silent == (status == schema.ClusterSilent) {
			n++
		}
	}
	return n
}

// Load reads what is stored. What is known here and newer stays.
func (f *Fleet) Load(ctx context.Context) error {
	registered, err := f.opts.Store.Registered(ctx, nil)
	if err != nil {
		return fmt.Errorf("loading the fleet: %w", err)
	}
	beats, err := f.opts.Store.Heartbeats(ctx)
	if err != nil {
		return fmt.Errorf("loading heartbeats: %w", err)
	}
	var changed []string
	now := f.opts.Now()
	f.mu.Lock()
	for _, r := range registered {
		if f.take(r) {
			changed = append(changed, r.Name)
		}
	}
	for _, b := range beats {
		if m, ok := f.clusters[b.Cluster]; ok && m.Epoch == b.Epoch && b.ReceivedAt.After(m.lastSeen) {
			back := f.silent(m, now)
			m.lastSeen = b.ReceivedAt
			if back && !f.silent(m, now) {
				changed = append(changed, b.Cluster)
			}
		}
	}
	f.mu.Unlock()
	for _, name := range changed {
		f.opts.Changed(name)
	}
	return nil
}

// take puts a registration in if it is newer than the one known. f.mu is held.
func (f *Fleet) take(r record.Registered) bool {
	old, ok := f.clusters[r.Name]
	if ok && (old.Epoch > r.Epoch || old.Epoch == r.Epoch && (old.Decommissioned || !r.Decommissioned)) {
		return false
	}
	m := &member{Registered: r, lastSeen: r.RegisteredAt}
	if ok && old.Epoch == r.Epoch {
		m.lastSeen = old.lastSeen
	}
	f.clusters[r.Name] = m
	return true
}

// Run stores heartbeats, and looks at what other hubs wrote, until ctx ends.
func (f *Fleet) Run(ctx context.Context) error {
	flush, refresh := time.NewTicker(flushInterval), time.NewTicker(refreshInterval)
	defer flush.Stop()
	defer refresh.Stop()
	for {
		select {
		case <-ctx.Done():
			f.flushLast(ctx)
			return nil
		case <-flush.C:
			f.flush(ctx)
		case <-refresh.C:
			if !f.opts.Shared {
				continue
			}
			if err := f.Load(ctx); err != nil && ctx.Err() == nil {
				f.opts.Log.Warn("the fleet may be out of date", "error", err)
			}
		}
	}
}

// flushLast stores what is left after ctx has ended.
func (f *Fleet) flushLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	f.flush(ctx)
}

func (f *Fleet) flush(ctx context.Context) {
	f.mu.Lock()
	dirty := f.dirty
	f.dirty = map[string]struct{}{}
	beats := make([]record.Heartbeat, 0, len(dirty))
	for _, name := range slices.Sorted(maps.Keys(dirty)) {
		m := f.clusters[name]
		beats = append(beats, record.Heartbeat{Cluster: name, Epoch: m.Epoch, ReceivedAt: m.lastSeen})
	}
	f.mu.Unlock()
	if len(beats) == 0 {
		return
	}
	if err := f.opts.Store.PutHeartbeats(ctx, beats); err != nil {
		f.opts.Log.Warn("heartbeats are not stored; they will be with the next ones", "error", err, "clusters", len(beats))
		f.mu.Lock()
		for name := range dirty {
			f.dirty[name] = struct{}{}
		}
		f.mu.Unlock()
	}
}

// Current returns the registration that an agent's message is judged by. The
// error is a *schema.Refusal for a cluster that is not there, or not any more,
// and for an epoch that was never issued.
func (f *Fleet) Current(ctx context.Context, name string, epoch uint64) (Member, error) {
	m, ok := f.Get(name)
	if !ok || m.Epoch < epoch {
		if err := f.Refresh(ctx, []string{name}); err != nil {
			return Member{}, err
		}
		m, ok = f.Get(name)
	}
	switch {
	case !ok:
		return m, NotRegistered(name)
	case m.Decommissioned:
		return m, Decommissioned(name)
	case epoch > m.Epoch:
		return m, &schema.Refusal{Code: schema.CodeFutureEpoch, Detail: fmt.Sprintf("epoch %d was never issued for %s, whose current one is %d; register again", epoch, name, m.Epoch)}
	}
	return m, nil
}

// NotRegistered is the refusal of a cluster that nobody registered.
func NotRegistered(name string) error {
	return &schema.Refusal{Code: schema.CodeNotRegistered, Detail: "no cluster " + name + " is registered; PUT /api/v1/clusters/" + name + " first"}
}

// Decommissioned is the refusal of a cluster that an admin took out.
func Decommissioned(name string) error {
	return &schema.Refusal{Code: schema.CodeDecommissioned, Detail: "the cluster " + name + " was decommissioned; an admin may register it again"}
}

func unavailable(err error) error {
	return &schema.Refusal{Code: schema.CodeUnavailable, Detail: "ClickHouse does not take it now; try again", Err: err}
}

// Seen notes that the current agent of a cluster was heard of.
func (f *Fleet) Seen(name string, epoch uint64) {
	now := f.opts.Now().UTC()
	f.mu.Lock()
	m, ok := f.clusters[name]
	if !ok || m.Epoch != epoch || !now.After(m.lastSeen) {
		f.mu.Unlock()
		return
	}
	back := f.silent(m, now)
	m.lastSeen = now
	f.dirty[name] = struct{}{}
	f.mu.Unlock()
	if back {
		f.opts.Changed(name)
	}
}

func (f *Fleet) silent(m *member, now time.Time) bool {
	return now.Sub(m.lastSeen) > time.Duration(f.opts.SilentAfter)*m.HeartbeatInterval
}

// SilentEpoch reports whether the cluster's current agent has been unheard of
// for too long, as far as this hub listened: one that has just started has not.
func (f *Fleet) SilentEpoch(name string) bool {
	now := f.opts.Now()
	f.mu.RLock()
	defer f.mu.RUnlock()
	m, ok := f.clusters[name]
	if !ok || !f.silent(m, now) {
		return false
	}
	return now.Sub(f.started) > time.Duration(f.opts.SilentAfter)*m.HeartbeatInterval
}

// Get returns a cluster.
func (f *Fleet) Get(name string) (Member, bool) {
	now := f.opts.Now()
	f.mu.RLock()
	defer f.mu.RUnlock()
	m, ok := f.clusters[name]
	if !ok {
		return Member{}, false
	}
	return f.export(m, now), true
}

func (f *Fleet) export(m *member, now time.Time) Member {
	return Member{Registered: m.Registered, LastSeen: m.lastSeen, Silent: f.silent(m, now)}
}

// All returns every cluster, decommissioned ones too, in no order.
func (f *Fleet) All() []Member {
	now := f.opts.Now()
	f.mu.RLock()
	defer f.mu.RUnlock()
	all := make([]Member, 0, len(f.clusters))
	for _, m := range f.clusters {
		all = append(all, f.export(m, now))
	}
	return all
}

// Package landing knows who reads an endpoint. Where this hub alone writes to
// the store, it keeps the rows of the repositories and refs that are asked
// about in memory and changes them with each batch that is stored, so that a
// gate costs no query; elsewhere, and for refs with very many readers, it asks
// the store.
package landing

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// Store is where the rows are.
type Store interface {
	Subscriptions(ctx context.Context, e schema.Endpoint, commit string) ([]*record.Subscription, error)
	SubscriptionsAtMost(ctx context.Context, repo, ref string) (int, error)
	Links(ctx context.Context, l *record.Landing) error
	Troubles(ctx context.Context) (map[string]record.Trouble, error)
}

// Options configure Landings.
type Options struct {
	Store Store
	// Shared says that other hubs write to the same store: nothing is kept.
	Shared bool
	// MaxRows is how many subscriptions are kept in memory, about 500 bytes
	// each. Default 100,000.
	MaxRows    int
	Registerer prometheus.Registerer
}

func (o *Options) validate() error {
	if o.Store == nil {
		return errors.New("landings need a store")
	}
	if o.MaxRows == 0 {
		o.MaxRows = 100_000
	}
	if o.MaxRows < 1 {
		return errors.New("the number of rows to keep must be positive")
	}
	return nil
}

// Landings answers who reads an endpoint.
type Landings struct {
	opts   Options
	memory *memory
}

// New makes Landings.
func New(opts Options) (*Landings, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	return &Landings{opts: opts, memory: newMemory(opts.MaxRows, newMetrics(opts.Registerer))}, nil
}

// Landing looks up an endpoint. A reconciler of the same repository and ref
// that is outside the path is in it only if it is owned and not simply
// compliant at the commit: it may be a child. What is acknowledged is in it;
// of each report it has all or nothing.
func (k *Landings) Landing(ctx context.Context, e schema.Endpoint, commit string) (record.Landing, error) {
	found, troubles, ok, err := k.recall(ctx, e, commit)
	if err != nil {
		return record.Landing{}, err
	}
	if ok {
		l := record.NewLanding(e.Path, found)
		l.SetTroubles(troubles)
		return l, k.opts.Store.Links(ctx, &l)
	}
	return k.look(ctx, e, commit)
}

// look asks the store.
func (k *Landings) look(ctx context.Context, e schema.Endpoint, commit string) (record.Landing, error) {
	found, err := k.opts.Store.Subscriptions(ctx, e, commit)
	if err != nil {
		return record.Landing{}, err
	}
	l := record.NewLanding(e.Path, found)
	if err := k.opts.Store.Links(ctx, &l); err != nil {
		return l, err
	}
	// After the subscribers: what a child's owner said is never newer here than
	// what the child said.
	troubles, err := k.opts.Store.Troubles(ctx)
	l.SetTroubles(troubles)
	return l, err
}

// recall returns what is kept of the endpoint's repository and ref, loading it
// first where it is not; ok is false where the store must be asked.
func (k *Landings) recall(ctx context.Context, e schema.Endpoint, commit string) (found []*record.Subscription, troubles map[string]record.Trouble, ok bool, err error) {
	if k.opts.Shared {
		return nil, nil, false, nil
	}
	at := refKey{e.Repo, e.Ref}
	if found, troubles, ok = k.memory.find(at, e.Path, commit); ok {
		return found, troubles, true, nil
	}
	if err := k.load(ctx, at); err != nil {
		return nil, nil, false, err
	}
	found, troubles, ok = k.memory.find(at, e.Path, commit)
	return found, troubles, ok, nil
}

// load brings a ref into memory, unless it is too large. Of those who want the
// same one at the same time, one loads and the others wait.
func (k *Landings) load(ctx context.Context, at refKey) error {
	l, mine := k.memory.begin(at)
	if !mine {
		select {
		case <-l.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer k.memory.abandon(l)
	most, err := k.opts.Store.SubscriptionsAtMost(ctx, at.repo, at.ref)
	if err != nil || most > k.opts.MaxRows {
		return err
	}
	found, err := k.opts.Store.Subscriptions(ctx, schema.Endpoint{Repo: at.repo, Ref: at.ref}, "")
	if err != nil {
		return err
	}
	troubles, err := k.opts.Store.Troubles(ctx)
	if err != nil {
		return err
	}
	return k.memory.keep(ctx, l, found, troubles)
}

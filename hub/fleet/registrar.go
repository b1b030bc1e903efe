package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

const (
	// registerTries bounds the tries to find an epoch that no other hub issued.
	registerTries = 8
	// registerTimeout bounds storing a batch, whoever still waits for it.
	registerTimeout = 30 * time.Second
	// maxRegistering bounds those who wait.
	maxRegistering = 20_000
)

// registrar gathers registrations: ten thousand agents that start at once are
// stored in a few inserts. Whoever holds turn stores for all who wait.
type registrar struct {
	turn chan struct{}

	mu      sync.Mutex
	waiting []*application
}

// application is a registration or decommission on its way into the store.
type application struct {
	name string
	// r is nil for a decommission.
	r      *schema.Registration
	result record.Registered
	err    error
	done   chan struct{}
}

// Register stores a registration and issues the cluster's next epoch.
func (f *Fleet) Register(ctx context.Context, name string, r schema.Registration) (epoch uint64, err error) {
	stored, err := f.apply(ctx, &application{name: name, r: &r})
	return stored.Epoch, err
}

// Decommission takes a cluster out of verdicts.
func (f *Fleet) Decommission(ctx context.Context, name string) (record.Registered, error) {
	return f.apply(ctx, &application{name: name})
}

// apply stores an application, with all others that wait.
func (f *Fleet) apply(ctx context.Context, a *application) (record.Registered, error) {
	a.done = make(chan struct{})
	g := &f.registrar
	g.mu.Lock()
	if len(g.waiting) >= maxRegistering {
		g.mu.Unlock()
		return record.Registered{}, &schema.Refusal{Code: schema.CodeOverloaded, Detail: "many clusters are registering; try again later"}
	}
	g.waiting = append(g.waiting, a)
	g.mu.Unlock()
	for {
		select {
		case <-a.done:
			return a.result, a.err
		case <-ctx.Done():
			return record.Registered{}, &schema.Refusal{Code: schema.CodeUnavailable, Detail: "it could not be stored in time; register again", Err: context.Cause(ctx)}
		case g.turn <- struct{}{}:
			f.serve(ctx)
			<-g.turn
		}
	}
}

// serve stores all that waits. It outlives its caller's request, which may be
// the one of many that was broken off.
func (f *Fleet) serve(ctx context.Context) {
	g := &f.registrar
	g.mu.Lock()
	batch := g.waiting
	g.waiting = nil
	g.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), registerTimeout)
	defer cancel()
	for len(batch) > 0 {
		// One cluster twice is two epochs, one after the other.
		var now, later []*application
		seen := map[string]bool{}
		for _, a := range batch {
			if seen[a.name] {
				later = append(later, a)
				continue
			}
			seen[a.name] = true
			now = append(now, a)
		}
		f.storeAll(ctx, now)
		batch = later
	}
}

// storeAll stores applications of different clusters and answers them.
func (f *Fleet) storeAll(ctx context.Context, batch []*application) {
	open := batch
	names := make([]string, len(batch))
	for i, a := range batch {
		names[i] = a.name
	}
	err := f.Refresh(ctx, names)
	for try := 0; err == nil && len(open) > 0 && try < registerTries; try++ {
		open, err = f.try(ctx, open, try > 0)
	}
	if err == nil && len(open) > 0 {
		err = &schema.Refusal{Code: schema.CodeOverloaded, Detail: "many hubs are registering this cluster at once; try again"}
	}
	for _, a := range open {
		a.err = err
		close(a.done)
	}
}

// try stores a batch once and answers those that stand alone at their epoch.
// It returns the others; again says that they were contested before.
func (f *Fleet) try(ctx context.Context, batch []*application, again bool) (open []*application, err error) {
	now := f.opts.Now().UTC().Truncate(time.Millisecond)
	var rows []record.Registered
	var stored []*application
	for _, a := range batch {
		if f.prepare(a, now, again) {
			rows, stored = append(rows, a.result), append(stored, a)
			continue
		}
		close(a.done)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	if err := f.opts.Store.Register(ctx, rows); err != nil {
		return stored, unavailable(err)
	}
	var contested []string
	if f.opts.Shared {
		if contested, err = f.opts.Store.Contested(ctx, rows); err != nil {
			return stored, unavailable(err)
		}
	}
	for _, a := range stored {
		if a.r != nil && slices.Contains(contested, a.name) {
			open = append(open, a)
			continue
		}
		f.put(a.result)
		close(a.done)
	}
	return open, nil
}

// nonce tells two hubs apart; it guards nothing.
func nonce() uint64 { return rand.Uint64() } //nolint:gosec // see above

// prepare makes the row of an application. It returns false, with the error
// set, for one that cannot be stored.
func (f *Fleet) prepare(a *application, now time.Time, again bool) bool {
	old, known := f.Get(a.name)
	if a.r == nil {
		if !known {
			a.err = NotRegistered(a.name)
			return false
		}
		a.result = old.Registered
		a.result.Decommissioned, a.result.Nonce = true, nonce()
		return true
	}
	epoch := max(old.Epoch, a.result.Epoch) + 1
	if again {
		epoch += nonce() % registerTries // another hub issued the same: part ways
	}
	if epoch > schema.MaxEpoch {
		a.err = &schema.Refusal{Code: schema.CodeConflict, Detail: fmt.Sprintf("%s used up its epochs; register it under another name", a.name)}
		return false
	}
	a.result = record.Registered{
		Name: a.name, Epoch: epoch, Kind: a.r.Kind, Labels: a.r.Labels, Memberships: a.r.Memberships, ReportsFor: a.r.ReportsFor,
		HeartbeatInterval: time.Duration(a.r.HeartbeatInterval), AgentVersion: a.r.Agent.Version, RegisteredAt: now, Nonce: nonce(),
	}
	return true
}

// Refresh reads registrations that another hub may have changed.
func (f *Fleet) Refresh(ctx context.Context, names []string) error {
	if !f.opts.Shared {
		return nil
	}
	found, err := f.opts.Store.Registered(ctx, names)
	if err != nil {
		return unavailable(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range found {
		f.take(r)
	}
	return nil
}

func (f *Fleet) put(r record.Registered) {
	f.mu.Lock()
	f.take(r)
	f.mu.Unlock()
	f.opts.Changed(r.Name)
}

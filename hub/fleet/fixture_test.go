package fleet

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

var start = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// clock is the time that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: start} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

var errDown = errors.New("the store is down")

// memory is a store that keeps rows as the real one does, and fails when told.
type memory struct {
	mu       sync.Mutex
	rows     []record.Registered
	beats    map[string]record.Heartbeat
	down     bool
	beatsPut int
}

func newMemory() *memory { return &memory{beats: map[string]record.Heartbeat{}} }

func (m *memory) fail(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

func (m *memory) check() error {
	if m.down {
		return errDown
	}
	return nil
}

func version(r record.Registered) uint64 {
	if r.Decommissioned {
		return r.Epoch<<1 | 1
	}
	return r.Epoch << 1
}

func (m *memory) Registered(_ context.Context, names []string) ([]record.Registered, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	newest := map[string]record.Registered{}
	for _, r := range m.rows {
		if old, ok := newest[r.Name]; (names == nil || slices.Contains(names, r.Name)) && (!ok || version(r) > version(old)) {
			newest[r.Name] = r
		}
	}
	var all []record.Registered
	for _, r := range newest {
		all = append(all, r)
	}
	return all, m.check()
}

func (m *memory) Register(_ context.Context, all []record.Registered) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(); err != nil {
		return err
	}
	m.rows = append(m.rows, all...)
	return nil
}

func (m *memory) Contested(_ context.Context, all []record.Registered) (names []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mine := range all {
		for _, r := range m.rows {
			if r.Name == mine.Name && r.Epoch == mine.Epoch && !r.Decommissioned && r.Nonce != mine.Nonce && !slices.Contains(names, r.Name) {
				names = append(names, r.Name)
			}
		}
	}
	return names, m.check()
}

func (m *memory) Heartbeats(context.Context) ([]record.Heartbeat, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []record.Heartbeat
	for _, b := range m.beats {
		all = append(all, b)
	}
	return all, m.check()
}

func (m *memory) PutHeartbeats(_ context.Context, beats []record.Heartbeat) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(); err != nil {
		return err
	}
	m.beatsPut++
	for _, b := range beats {
		m.beats[b.Cluster] = b
	}
	return nil
}

func (m *memory) beat(name string) record.Heartbeat {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beats[name]
}

// changes gathers what Changed is told.
type changes struct {
	mu    sync.Mutex
	names []string
}

func (c *changes) note(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, name)
}

// take returns what came since it was asked last.
func (c *changes) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := strings.Join(c.names, " ")
	c.names = nil
	return all
}

// option changes the options of a fleet.
type option func(*Options)

func shared(o *Options) { o.Shared = true }

func changed(c *changes) option { return func(o *Options) { o.Changed = c.note } }

func newFleet(t *testing.T, s Store, c *clock, options ...option) *Fleet {
	t.Helper()
	o := Options{Store: s, SilentAfter: 5, Now: c.Now, Log: slog.New(slog.DiscardHandler)}
	for _, option := range options {
		option(&o)
	}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

func registration() schema.Registration {
	return schema.Registration{
		Kind: schema.ClusterKubernetes, HeartbeatInterval: schema.Duration(30 * time.Second),
		Memberships: []schema.Membership{{Environment: "dev", Type: "drone"}}, Labels: map[string]string{"a": "b"},
	}
}

func register(t *testing.T, f *Fleet, name string, edits ...func(*schema.Registration)) uint64 {
	t.Helper()
	r := registration()
	for _, edit := range edits {
		edit(&r)
	}
	epoch, err := f.Register(t.Context(), name, r)
	if err != nil {
		t.Fatalf("registering %s: %v", name, err)
	}
	return epoch
}

// code returns the code of a refusal.
func code(t *testing.T, err error) schema.Code {
	t.Helper()
	if err == nil {
		return ""
	}
	refusal, ok := errors.AsType[*schema.Refusal](err)
	if !ok {
		t.Fatalf("%v is no refusal", err)
	}
	return refusal.Code
}

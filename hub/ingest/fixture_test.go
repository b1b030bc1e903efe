package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

const (
	commitA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	commitB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

var (
	errDown      = errors.New("the store is down")
	errPermanent = errors.New("the store refuses the rows")
)

// memory is a store that keeps what it is told, and fails when a test says so.
type memory struct {
	mu sync.Mutex
	// fail is asked before each call, by its name; nil is no failure.
	fail func(call string) error
	// gate, when set, holds Write until it can be received from.
	gate   chan struct{}
	states map[string]*fold.State
	seen   map[messageKey]bool
	// history has a line per changed reconciler, late ones marked.
	history []string
	batches []string
	loads   int
}

func newMemory() *memory {
	return &memory{states: map[string]*fold.State{}, seen: map[messageKey]bool{}}
}

func (m *memory) check(call string) error {
	if m.fail == nil {
		return nil
	}
	return m.fail(call)
}

func (m *memory) failing(fail func(call string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = fail
}

// copied is what a store hands out: nothing that the caller changes is its own.
func copied(s *fold.State) *fold.State {
	c := fold.NewState()
	if s == nil {
		return c
	}
	for ref, e := range s.Entries {
		entry := *e
		c.Put(ref, &entry)
	}
	c.Position = s.Position
	return c
}

func (m *memory) Load(_ context.Context, clusters []string) (map[string]*fold.State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check("load"); err != nil {
		return nil, err
	}
	m.loads += len(clusters)
	all := map[string]*fold.State{}
	for _, name := range clusters {
		all[name] = copied(m.states[name])
	}
	return all, nil
}

func (m *memory) Positions(_ context.Context, clusters []string) (map[string]fold.Position, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check("positions"); err != nil {
		return nil, err
	}
	all := map[string]fold.Position{}
	for name, s := range m.states {
		if clusters == nil || slices.Contains(clusters, name) {
			all[name] = s.Position
		}
	}
	return all, nil
}

func (m *memory) ReportSeen(_ context.Context, cluster string, epoch, sequence uint64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[messageKey{cluster, schema.Version(epoch, sequence)}], m.check("seen")
}

// describe is a batch in a line, for comparison.
func describe(batch []fold.Changes) string {
	var b strings.Builder
	for i := range batch {
		c := &batch[i]
		fmt.Fprintf(&b, "%s %d/%d late=%t at %s:", c.Cluster, c.Position.Epoch, c.Position.Sequence, c.Late, c.ReceivedAt)
		for _, u := range c.Upserts {
			fmt.Fprintf(&b, " %s(%s %s)", u.Reconciler.Name, u.Entry.Digest, u.Entry.Latch)
		}
		fmt.Fprintf(&b, " -%d\n", len(c.Removals))
	}
	return b.String()
}

func (m *memory) Write(ctx context.Context, batch []fold.Changes) error {
	m.mu.Lock()
	gate := m.gate
	m.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.batches = append(m.batches, describe(batch))
	if err := m.check("write"); err != nil {
		return err
	}
	for i := range batch {
		m.store(&batch[i])
	}
	return nil
}

func (m *memory) store(c *fold.Changes) {
	mark := ""
	if c.Late {
		mark = " late"
	}
	if c.Report != nil {
		m.seen[messageKey{c.Cluster, schema.Version(c.Report.Epoch, c.Report.Sequence)}] = true
	}
	for _, u := range c.Upserts {
		if u.Changed {
			m.history = append(m.history, fmt.Sprintf("%s %d/%d %s%s", c.Cluster, c.Report.Epoch, c.Report.Sequence, u.Reconciler.Name, mark))
		}
	}
	for _, r := range c.Removals {
		m.history = append(m.history, fmt.Sprintf("%s gone %s%s", c.Cluster, r.Ref.Name, mark))
	}
	if c.Late {
		return
	}
	// A state is replaced, never changed: others may hold the one before.
	next := copied(m.states[c.Cluster])
	for _, u := range c.Upserts {
		e := u.Entry
		next.Put(u.Reconciler.Ref(), &e)
	}
	kept := fold.NewState()
	for ref, e := range next.Entries {
		if !slices.ContainsFunc(c.Removals, func(r fold.Removal) bool { return r.Ref == ref }) {
			kept.Put(ref, e)
		}
	}
	kept.Position = c.Position
	m.states[c.Cluster] = kept
}

func (m *memory) lines() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.history)
}

// registry is the least store that a fleet needs.
type registry struct {
	mu   sync.Mutex
	rows []record.Registered
}

func (r *registry) Registered(context.Context, []string) ([]record.Registered, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.rows), nil
}

func (r *registry) Register(_ context.Context, all []record.Registered) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, all...)
	return nil
}

func (r *registry) Contested(context.Context, []record.Registered) ([]string, error) { return nil, nil }
func (r *registry) Heartbeats(context.Context) ([]record.Heartbeat, error)           { return nil, nil }
func (r *registry) PutHeartbeats(context.Context, []record.Heartbeat) error          { return nil }

// rig is an ingester that runs inside a synctest bubble.
type rig struct {
	t        *testing.T
	store    *memory
	fleet    *fleet.Fleet
	ingester *Ingester
	stop     func()
}

// inBubble runs a test with an ingester on a memory store. The clock is the
// bubble's.
func inBubble(t *testing.T, edit func(*Options), test func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, store: newMemory()}
		log := slog.New(slog.DiscardHandler)
		f, err := fleet.New(fleet.Options{Store: &registry{}, SilentAfter: 5, Now: time.Now, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Store: r.store, Fleet: f, Now: time.Now, Log: log, Permanent: func(err error) bool { return errors.Is(err, errPermanent) }}
		if edit != nil {
			edit(&o)
		}
		r.fleet = f
		if r.ingester, err = New(o); err != nil {
			t.Fatal(err)
		}
		if err := r.ingester.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.run()
		test(t, r)
		r.stop()
	})
}

// run starts Run; stop ends it and waits.
func (r *rig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.ingester.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("Run ended with %v", err)
		}
	})
}

func (r *rig) register(name string, edits ...func(*schema.Registration)) uint64 {
	r.t.Helper()
	registration := schema.Registration{Kind: schema.ClusterKubernetes, HeartbeatInterval: schema.Duration(10 * time.Second)}
	for _, edit := range edits {
		edit(&registration)
	}
	epoch, err := r.ingester.Register(r.t.Context(), name, registration)
	if err != nil {
		r.t.Fatal(err)
	}
	return epoch
}

// send reports and expects success.
func (r *rig) send(cluster string, report *schema.Report) (currentEpoch uint64) {
	r.t.Helper()
	epoch, err := r.ingester.Report(r.t.Context(), cluster, report)
	if err != nil {
		r.t.Fatalf("report %d/%d of %s: %v", report.Epoch, report.Sequence, cluster, err)
	}
	return epoch
}

// answer is what a report in the background came to.
type answer struct {
	epoch uint64
	err   error
}

// begin sends a report in the background and waits until it is queued, or done.
func (r *rig) begin(cluster string, report *schema.Report) <-chan answer {
	out := make(chan answer, 1)
	go func() {
		epoch, err := r.ingester.Report(context.Background(), cluster, report)
		out <- answer{epoch, err}
	}()
	synctest.Wait()
	return out
}

// hold makes the store keep the next batch until the function it returns is called.
func (r *rig) hold() (release func()) {
	gate := make(chan struct{})
	r.store.mu.Lock()
	r.store.gate = gate
	r.store.mu.Unlock()
	return sync.OnceFunc(func() {
		r.store.mu.Lock()
		r.store.gate = nil
		r.store.mu.Unlock()
		close(gate)
	})
}

func reconciler(name, commit string, status schema.Status) schema.Reconciler {
	return schema.Reconciler{
		Kind: "Kustomization", Namespace: "flux-system", Name: name,
		Sources: []schema.Source{{Type: schema.SourceGit, URL: "https://git.example/org/apps", Ref: "dev", Path: name}},
		Status:  status, Attempted: []string{"dev@sha1:" + commit}, Applied: []string{"dev@sha1:" + commit},
	}
}

func delta(epoch, sequence uint64, rs ...schema.Reconciler) *schema.Report {
	return &schema.Report{Epoch: epoch, Sequence: sequence, Mode: schema.ModeDelta, ObservedAt: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), Reconcilers: rs}
}

// saying is a report of one reconciler named a, at a commit that follows from n.
func saying(epoch, sequence uint64, n int) *schema.Report {
	return delta(epoch, sequence, reconciler("a", fmt.Sprintf("%040x", n), schema.StatusSuccess))
}

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

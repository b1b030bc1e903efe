package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/ingest"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

const (
	cluster  = "drone"
	interval = 10 * time.Second
	// bad is the health that this hub refuses, as an older one would a value it
	// does not know.
	bad = "refuse-me"
)

// memory is what the hub keeps over restarts.
type memory struct {
	mu     sync.Mutex
	states map[string]*fold.State
	seen   map[uint64]bool
	rows   []record.Registered
}

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
	all := map[string]*fold.State{}
	for _, name := range clusters {
		all[name] = copied(m.states[name])
	}
	return all, nil
}

func (m *memory) Positions(context.Context, []string) (map[string]fold.Position, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]fold.Position{}
	for name, s := range m.states {
		all[name] = s.Position
	}
	return all, nil
}

func (m *memory) ReportSeen(_ context.Context, _ string, epoch, sequence uint64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[schema.Version(epoch, sequence)], nil
}

func (m *memory) Write(_ context.Context, batch []fold.Changes) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range batch {
		c := &batch[i]
		m.seen[schema.Version(c.Report.Epoch, c.Report.Sequence)] = true
		if c.Late {
			continue
		}
		gone := map[schema.ObjectRef]bool{}
		for _, r := range c.Removals {
			gone[r.Ref] = true
		}
		next := fold.NewState()
		if old := m.states[c.Cluster]; old != nil {
			for ref, e := range old.Entries {
				if !gone[ref] {
					next.Put(ref, e)
				}
			}
		}
		for _, u := range c.Upserts {
			if ref := u.Reconciler.Ref(); !gone[ref] {
				e := u.Entry
				next.Put(ref, &e)
			}
		}
		next.Position = c.Position
		m.states[c.Cluster] = next
	}
	return nil
}

func (m *memory) Registered(context.Context, []string) ([]record.Registered, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.rows), nil
}

func (m *memory) Register(_ context.Context, all []record.Registered) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows = append(m.rows, all...)
	return nil
}

func (m *memory) Contested(context.Context, []record.Registered) ([]string, error) { return nil, nil }
func (m *memory) Heartbeats(context.Context) ([]record.Heartbeat, error)           { return nil, nil }
func (m *memory) PutHeartbeats(context.Context, []record.Heartbeat) error          { return nil }

// hub is the hub's side behind a bad line.
type hub struct {
	t      *testing.T
	memory *memory
	random *rand.Rand

	mu       sync.Mutex
	ingester *ingest.Ingester
	stop     func()
	// trouble is the share of requests that fail, blunt says that refusals do not
	// say whom they blame, narrow is how many reconcilers a body may have.
	trouble float64
	blunt   bool
	narrow  int
	// stored has every state that ever arrived, check is asked about each report.
	stored map[state]bool
	check  func(r *schema.Report, before map[schema.ObjectRef]*fold.Entry, unlisted []string)
	// last heartbeat with a digest, and its answer.
	beat   schema.Heartbeat
	answer schema.HeartbeatAnswer
	counts map[string]int
}

// state is a state of a reconciler.
type state struct {
	ref    schema.ObjectRef
	digest schema.Digest
}

func newHub(t *testing.T, random *rand.Rand) *hub {
	t.Helper()
	h := &hub{
		t: t, random: random, stored: map[state]bool{}, counts: map[string]int{}, narrow: 1 << 30,
		memory: &memory{states: map[string]*fold.State{}, seen: map[uint64]bool{}},
	}
	h.start()
	return h
}

// start runs the hub on what the store holds.
func (h *hub) start() {
	h.t.Helper()
	log := slog.New(slog.DiscardHandler)
	f, err := fleet.New(fleet.Options{Store: h.memory, SilentAfter: 5, Now: time.Now, Log: log})
	if err != nil {
		h.t.Fatal(err)
	}
	in, err := ingest.New(ingest.Options{Store: h.memory, Fleet: f, Now: time.Now, Log: log})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := errors.Join(f.Load(h.t.Context()), in.Load(h.t.Context())); err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx) }()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ingester = in
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
}

func (h *hub) restart() {
	h.stop()
	h.start()
}

// lose takes a random half of what is stored, as a bad backup would.
func (h *hub) lose() {
	h.stop()
	h.memory.mu.Lock()
	if s := h.memory.states[cluster]; s != nil {
		half := fold.NewState()
		for _, ref := range slices.SortedFunc(maps.Keys(s.Entries), schema.ObjectRef.Compare) {
			if h.coin() {
				half.Put(ref, s.Entries[ref])
			}
		}
		digest := half.Position.Digest
		half.Position = s.Position
		half.Position.Digest = digest
		h.memory.states[cluster] = half
	}
	h.memory.mu.Unlock()
	h.start()
}

// set changes how bad the hub is.
func (h *hub) set(trouble float64, narrow int, blunt bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble, h.narrow, h.blunt = trouble, narrow, blunt
}

func (h *hub) coin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.random.IntN(2) == 0
}

func (h *hub) entries() map[schema.ObjectRef]*fold.Entry {
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	if s := h.memory.states[cluster]; s != nil {
		return s.Entries
	}
	return nil
}

// unlisted are the kinds that the hub takes for unknown.
func (h *hub) unlisted() []string {
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	if s := h.memory.states[cluster]; s != nil {
		return s.Position.UnlistedKinds
	}
	return nil
}

func problem(status int, code schema.Code, pointer string, after time.Duration) error {
	return &hubclient.Refused{Problem: &schema.Problem{Status: status, Code: code, Pointer: pointer, Detail: "made up"}, RetryAfter: after}
}

// refused is what the API makes of an error of the ingester.
func refused(err error) error {
	refusal, ok := errors.AsType[*schema.Refusal](err)
	if !ok {
		return err
	}
	status := map[schema.Code]int{
		schema.CodeNotRegistered: http.StatusNotFound, schema.CodeFutureEpoch: http.StatusConflict, schema.CodeDecommissioned: http.StatusGone,
		schema.CodeUnavailable: http.StatusServiceUnavailable, schema.CodeOverloaded: http.StatusTooManyRequests,
	}[refusal.Code]
	return problem(status, refusal.Code, "", 0)
}

var errNetwork = errors.New("connection reset by peer")

// weather says what befalls a request: before the hub has it, and after.
func (h *hub) weather(kind string) (before, after error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.random.Float64() >= h.trouble {
		return nil, nil
	}
	n := h.random.IntN(4)
	h.counts[fmt.Sprint(kind, " trouble ", n)]++
	switch n {
	case 0:
		return errNetwork, nil
	case 1:
		return nil, errNetwork
	case 2:
		return problem(http.StatusServiceUnavailable, schema.CodeUnavailable, "", 5*time.Second), nil
	}
	return problem(http.StatusTooManyRequests, schema.CodeOverloaded, "", time.Second), nil
}

func (h *hub) Register(ctx context.Context, name string, r schema.Registration) (uint64, error) {
	before, after := h.weather("registration")
	if before != nil {
		return 0, before
	}
	r.Normalize()
	epoch, err := h.in().Register(ctx, name, r)
	return epoch, errors.Join(refused(err), after)
}

func (h *hub) in() *ingest.Ingester {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ingester
}

func (h *hub) Heartbeat(ctx context.Context, name string, beat schema.Heartbeat) (schema.HeartbeatAnswer, error) {
	before, after := h.weather("heartbeat")
	if before != nil {
		return schema.HeartbeatAnswer{}, before
	}
	answer, err := h.in().Heartbeat(ctx, name, beat)
	if err == nil && beat.Digest != "" {
		h.beat, h.answer = beat, answer
	}
	if answer.Resync {
		h.count("resync asked")
	}
	return answer, errors.Join(refused(err), after)
}

func (h *hub) count(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[what]++
}

func (h *hub) Report(ctx context.Context, name string, r *schema.Report) (schema.ReportAnswer, error) {
	before, after := h.weather("report")
	if before != nil {
		return schema.ReportAnswer{}, before
	}
	if err := h.judge(r); err != nil {
		return schema.ReportAnswer{}, err
	}
	wire, err := json.Marshal(r)
	if err != nil {
		h.t.Errorf("a report cannot be written: %v", err)
	}
	got := new(schema.Report)
	if err := json.Unmarshal(wire, got); err != nil {
		h.t.Errorf("a report cannot be read: %v", err)
	}
	if err := got.Validate(); err != nil {
		h.t.Errorf("a report is not valid: %v", err)
	}
	got.Normalize()
	entries := h.entries()
	epoch, err := h.in().Report(ctx, name, got)
	if err == nil {
		h.count(string(got.Mode) + " stored")
		if got.Parts > 1 {
			h.count("part stored")
		}
		for i := range got.Reconcilers {
			h.stored[state{got.Reconcilers[i].Ref(), got.Reconcilers[i].Digest()}] = true
		}
		if h.check != nil {
			h.check(got, entries, h.unlisted())
		}
	}
	return schema.ReportAnswer{CurrentEpoch: epoch}, errors.Join(refused(err), after)
}

// judge is what this hub refuses.
func (h *hub) judge(r *schema.Report) error {
	h.mu.Lock()
	narrow, blunt := h.narrow, h.blunt
	h.mu.Unlock()
	if len(r.Reconcilers)+len(r.Removed) > narrow {
		h.count("413")
		return problem(http.StatusRequestEntityTooLarge, schema.CodeBodyTooLarge, "", 0)
	}
	for i := range r.Reconcilers {
		if !strings.Contains(r.Reconcilers[i].Health, bad) {
			continue
		}
		h.count("400")
		if blunt {
			return problem(http.StatusBadRequest, schema.CodeInvalidJSON, "", 0)
		}
		return problem(http.StatusBadRequest, schema.CodeInvalidField, fmt.Sprintf("/reconcilers/%d/health", i), 0)
	}
	return nil
}

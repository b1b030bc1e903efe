package outbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

const interval = 10 * time.Second

// fake is a hub that does what a test says, and keeps what it took. The real
// one is met in test/outbox and test/system.
type fake struct {
	mu sync.Mutex
	// what the hub answers; nil takes everything.
	onRegister  func() error
	onReport    func(r *schema.Report) error
	onHeartbeat func(h schema.Heartbeat) (schema.HeartbeatAnswer, error)
	// epoch is the current one.
	epoch         uint64
	registrations int
	tried, taken  []*schema.Report
	beats         []schema.Heartbeat
}

func (f *fake) Register(context.Context, string, schema.Registration) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.registrations++
	if f.onRegister != nil {
		if err := f.onRegister(); err != nil {
			return 0, err
		}
	}
	f.epoch++
	return f.epoch, nil
}

func (f *fake) Report(_ context.Context, _ string, r *schema.Report) (schema.ReportAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tried = append(f.tried, r)
	if f.onReport != nil {
		if err := f.onReport(r); err != nil {
			return schema.ReportAnswer{}, err
		}
	}
	if err := r.Validate(); err != nil {
		return schema.ReportAnswer{}, err
	}
	f.taken = append(f.taken, r)
	return schema.ReportAnswer{CurrentEpoch: f.epoch}, nil
}

func (f *fake) Heartbeat(_ context.Context, _ string, h schema.Heartbeat) (schema.HeartbeatAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.beats = append(f.beats, h)
	if f.onHeartbeat != nil {
		return f.onHeartbeat(h)
	}
	return schema.HeartbeatAnswer{CurrentEpoch: f.epoch}, nil
}

// set changes what the hub answers.
func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// facts is the agent's current state.
type facts struct {
	mu  sync.Mutex
	all map[schema.ObjectRef]schema.Reconciler
	// reading is called while a kind is being read.
	reading func(kind string)
}

func (s *facts) Reconcilers(kind string) iter.Seq[schema.Reconciler] {
	return func(yield func(schema.Reconciler) bool) {
		s.mu.Lock()
		all, reading := maps.Clone(s.all), s.reading
		s.mu.Unlock()
		for _, ref := range slices.SortedFunc(maps.Keys(all), schema.ObjectRef.Compare) {
			if ref.Kind == kind && !yield(all[ref]) {
				return
			}
		}
		if reading != nil {
			reading(kind)
		}
	}
}

// rig is an outbox with its hub and its state.
type rig struct {
	*Outbox
	t     *testing.T
	hub   *fake
	facts *facts
	reg   *prometheus.Registry
}

// inBubble runs a test on an outbox that starts with start, which may be called
// late; it is stopped in the end.
func inBubble(t *testing.T, edit func(*Options), test func(t *testing.T, r *rig, start func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, hub: &fake{}, facts: &facts{all: map[schema.ObjectRef]schema.Reconciler{}}, reg: prometheus.NewRegistry()}
		opts := Options{
			Cluster: "drone", Registration: schema.Registration{HeartbeatInterval: schema.Duration(interval)}, Agent: schema.Agent{Version: "test"},
			Hub: r.hub, State: r.facts, Random: func() float64 { return 0.5 }, Registerer: r.reg,
		}
		if edit != nil {
			edit(&opts)
		}
		var err error
		if r.Outbox, err = New(opts); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		stop := func() {}
		test(t, r, func() {
			go func() { done <- r.Run(ctx) }()
			stop = func() {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
		})
		cancel()
		stop()
	})
}

// has changes the agent's state and puts it.
func (r *rig) has(recs ...schema.Reconciler) {
	r.facts.mu.Lock()
	for _, rec := range recs {
		r.facts.all[rec.Ref()] = rec
	}
	r.facts.mu.Unlock()
	r.Put(recs...)
}

// tries is how often the hub was sent a report.
func (r *rig) tries() int {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	return len(r.hub.tried)
}

// rest lets time pass until every retry and window is over.
func (r *rig) rest() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

// told returns what the hub took since the last call, each message in a line:
// mode, kinds, then name=status, and -name for what was removed.
func (r *rig) told() []string {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	lines := make([]string, 0, len(r.hub.taken))
	for _, m := range r.hub.taken {
		lines = append(lines, line(m))
	}
	r.hub.taken = nil
	return lines
}

func line(m *schema.Report) string {
	s := fmt.Sprintf("%d/%d %s", m.Epoch, m.Sequence, m.Mode)
	if m.Kinds != nil {
		s += fmt.Sprint(" ", m.Kinds)
	}
	if m.Parts > 0 {
		s += fmt.Sprintf(" %d of %d", m.Part, m.Parts)
	}
	if m.UnlistedKinds != nil {
		s += fmt.Sprint(" unlisted ", m.UnlistedKinds)
	}
	s += ":"
	for _, rec := range m.Reconcilers {
		s += fmt.Sprintf(" %s=%s", rec.Name, rec.Status)
	}
	for _, ref := range m.Removed {
		s += " -" + ref.Name
	}
	return s
}

func refused(status int, code schema.Code, pointer string, after time.Duration) error {
	return &hubclient.Refused{Problem: &schema.Problem{Status: status, Code: code, Pointer: pointer, Detail: "made up"}, RetryAfter: after}
}

var (
	errNetwork  = errors.New("connection refused")
	errTooLarge = refused(http.StatusRequestEntityTooLarge, schema.CodeBodyTooLarge, "", 0)
)

type edit func(*schema.Reconciler)

func kustomization(name string, status schema.Status, edits ...edit) schema.Reconciler {
	rec := schema.Reconciler{
		Kind: "Kustomization", Namespace: "flux-system", Name: name, Status: status,
		Sources: []schema.Source{{Type: schema.SourceGit, URL: "https://git.example/org/apps", Path: name}},
	}
	for _, e := range edits {
		e(&rec)
	}
	return rec
}

func ownedBy(owner string) edit {
	return func(r *schema.Reconciler) {
		r.Owner = &schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: owner}
	}
}

func healthy(health string) edit { return func(r *schema.Reconciler) { r.Health = health } }

func (r *rig) counted(name string, labels ...string) float64 {
	r.t.Helper()
	families, err := r.reg.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != "landfall_outbox_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			has := map[string]bool{}
			for _, l := range m.GetLabel() {
				has[l.GetValue()] = true
			}
			if !slices.ContainsFunc(labels, func(l string) bool { return !has[l] }) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func ref(name string) schema.ObjectRef {
	return schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: name}
}

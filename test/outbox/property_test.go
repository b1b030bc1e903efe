package outbox

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/landfall-hub/landfall/agent/outbox"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
)

var kinds = []string{"Application", "HelmRelease", "Kustomization"}

// world is what runs on the cluster, and what the wiring has said of it.
type world struct {
	*rand.Rand
	mu   sync.Mutex
	objs map[schema.ObjectRef]schema.Reconciler
	// version counts states; versions has the number of each.
	version  int
	versions map[state]int
	// groups are, of a parent's state, the children that it was put with.
	groups map[state][]state
	// successes are the successes that were put.
	successes map[state]bool
	last      map[schema.ObjectRef]schema.Digest
	// delay is how long it takes to read a kind.
	delay time.Duration
}

func (w *world) Reconcilers(kind string) iter.Seq[schema.Reconciler] {
	return func(yield func(schema.Reconciler) bool) {
		w.mu.Lock()
		var all []schema.Reconciler
		for _, ref := range slices.SortedFunc(maps.Keys(w.objs), schema.ObjectRef.Compare) {
			if ref.Kind == kind {
				all = append(all, w.objs[ref])
			}
		}
		w.mu.Unlock()
		for _, rec := range all {
			if !yield(rec) {
				return
			}
		}
		time.Sleep(w.delay) // changes come while a snapshot is read
	}
}

// change gives a reconciler a new state. w.mu is held.
func (w *world) change(ref schema.ObjectRef, owner *schema.ObjectRef, sick bool) schema.Reconciler {
	w.version++
	statuses := schema.Statuses()
	rec := schema.Reconciler{
		Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Status: statuses[w.IntN(len(statuses))], Owner: owner,
		Sources: []schema.Source{{Type: schema.SourceGit, URL: "https://me:secret@git.example/org/apps", Path: ref.Name}},
		Applied: []string{fmt.Sprintf("dev@sha1:%040x", w.version)},
	}
	if w.IntN(3) == 0 {
		rec.Status = schema.StatusSuccess
	}
	if sick {
		rec.Health = bad
	}
	w.objs[ref] = rec
	w.versions[stateOf(rec)] = w.version
	return rec
}

// stateOf returns the state as a hub stores it.
func stateOf(rec schema.Reconciler) state {
	rec.Sources = slices.Clone(rec.Sources)
	r := schema.Report{Reconcilers: []schema.Reconciler{rec}}
	r.Normalize()
	return state{rec.Ref(), r.Reconcilers[0].Digest()}
}

func named(kind string, n int) schema.ObjectRef {
	return schema.ObjectRef{Kind: kind, Namespace: "flux-system", Name: fmt.Sprintf("r%d", n)}
}

// group changes a parent and some children and returns them in any order.
func (w *world) group() []schema.Reconciler {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.IntN(4)
	parent := named("Kustomization", n)
	var all []schema.Reconciler
	var children []state
	for child := range 5 {
		ref := named(kinds[w.IntN(3)], 10*(n+1)+child)
		rec, there := w.objs[ref]
		switch w.IntN(4) {
		case 0:
			rec = w.change(ref, &parent, w.IntN(12) == 0)
		case 1:
			if !there {
				continue
			}
		default:
			continue
		}
		all = append(all, rec)
		children = append(children, stateOf(rec))
	}
	rec := w.change(parent, nil, false)
	all = append(all, rec)
	w.groups[stateOf(rec)] = children
	w.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, rec := range all {
		w.put(rec)
	}
	return all
}

// put takes down what is put. w.mu is held.
func (w *world) put(rec schema.Reconciler) {
	s := stateOf(rec)
	if w.last[s.ref] != s.digest && rec.Status == schema.StatusSuccess && rec.Health != bad {
		w.successes[s] = true
	}
	w.last[s.ref] = s.digest
}

// remove takes a reconciler out, and out of the groups that it was in.
func (w *world) remove() schema.ObjectRef {
	w.mu.Lock()
	defer w.mu.Unlock()
	refs := slices.SortedFunc(maps.Keys(w.objs), schema.ObjectRef.Compare)
	if len(refs) == 0 {
		return named("Kustomization", 0)
	}
	ref := refs[w.IntN(len(refs))]
	delete(w.objs, ref)
	delete(w.last, ref)
	for parent, children := range w.groups {
		w.groups[parent] = slices.DeleteFunc(children, func(c state) bool { return c.ref == ref })
	}
	return ref
}

// complete checks that no parent comes before the children it was put with.
func (w *world) complete(t *testing.T, r *schema.Report, entries map[schema.ObjectRef]*fold.Entry, unlisted []string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	here := map[schema.ObjectRef]schema.Reconciler{}
	for _, rec := range r.Reconcilers {
		here[rec.Ref()] = rec
	}
	for _, rec := range r.Reconcilers {
		for _, child := range w.groups[stateOf(rec)] {
			if slices.Contains(unlisted, child.ref.Kind) {
				continue // the hub takes it for unknown
			}
			want := w.versions[child]
			if c, ok := here[child.ref]; ok && (c.Reason == "NotReportable" || w.versions[stateOf(c)] >= want) {
				continue
			}
			if e, ok := entries[child.ref]; ok && (e.Reason == "NotReportable" || w.versions[state{child.ref, e.Digest}] >= want) {
				continue
			}
			t.Errorf("%s of %d/%d holds %s without its child %s", r.Mode, r.Epoch, r.Sequence, rec.Ref(), child.ref)
		}
	}
}

// tell says which kinds are listed; the others are not any more.
func tell(o *outbox.Outbox, listed ...string) {
	var unlisted []string
	for _, kind := range kinds {
		if !slices.Contains(listed, kind) {
			unlisted = append(unlisted, kind)
		}
	}
	o.Kinds(listed, unlisted)
}

func counter(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += value(m)
		}
	}
	return sum
}

func value(m *dto.Metric) float64 { return m.GetCounter().GetValue() + m.GetGauge().GetValue() }

// run is a life of a cluster, its agent and a bad hub.
func run(t *testing.T, seed uint64, seen map[string]int) {
	random := rand.New(rand.NewPCG(seed, 7))
	h := newHub(t, rand.New(rand.NewPCG(seed, 8)))
	w := &world{
		Rand: random, objs: map[schema.ObjectRef]schema.Reconciler{}, versions: map[state]int{}, groups: map[state][]state{},
		successes: map[state]bool{}, last: map[schema.ObjectRef]schema.Digest{}, delay: time.Duration(random.IntN(50)) * time.Millisecond,
	}
	loses := seed%2 == 1
	h.check = func(r *schema.Report, entries map[schema.ObjectRef]*fold.Entry, unlisted []string) {
		if !loses {
			w.complete(t, r, entries, unlisted)
		}
	}
	reg := prometheus.NewRegistry()
	o, err := outbox.New(outbox.Options{
		Cluster: cluster, Registration: schema.Registration{HeartbeatInterval: schema.Duration(interval)}, Hub: h, State: w, Registerer: reg,
		MaxReconcilers: 4, MaxHistory: 3 + random.IntN(4), MaxPending: 40, Random: chance(seed),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	if random.IntN(2) == 0 {
		h.set(1, h.narrow, false)
	}
	for range 60 {
		step(t, w, h, o, loses)
	}
	h.set(0, 1<<30, false)
	tell(o, kinds...)
	time.Sleep(3 * time.Hour)
	synctest.Wait()
	compare(t, w, h, o)
	missing := 0
	for s := range w.successes {
		if !h.stored[s] {
			missing++
		}
	}
	dropped := counter(t, reg, "landfall_outbox_dropped_states_total")
	if float64(missing) > dropped {
		t.Errorf("%d successes never reached the hub, and only %v states are counted as dropped", missing, dropped)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	h.stop()
	maps.Copy(seen, add(seen, h.counts))
	seen["successes"] += len(w.successes)
	seen["successes missing"] += missing
	seen["epochs"] += int(o.Status().Epoch)
}

// chance is a source of numbers for several goroutines.
func chance(seed uint64) func() float64 {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 9))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64()
	}
}

func add(a, b map[string]int) map[string]int {
	sum := maps.Clone(a)
	for k, n := range b {
		sum[k] += n
	}
	return sum
}

// step is one thing that happens.
func step(t *testing.T, w *world, h *hub, o *outbox.Outbox, loses bool) {
	t.Helper()
	switch n := w.IntN(40); {
	case n < 20:
		o.Put(w.group()...)
	case n < 24:
		o.Remove(w.remove())
	case n < 27:
		tell(o, kinds[w.IntN(3):]...)
	case n < 29:
		tell(o, kinds...)
	case n < 32:
		h.set([]float64{0, 0, 0.3, 1}[w.IntN(4)], h.narrow, h.blunt)
	case n < 33:
		h.set(h.trouble, 1+w.IntN(6), w.IntN(2) == 0)
	case n < 35:
		h.restart()
	case n < 36 && loses:
		h.lose()
	case n < 37:
		supersede(t, w, h)
	}
	// The clock goes on by milliseconds, seconds or minutes.
	time.Sleep(time.Duration(1+w.IntN(100)) * []time.Duration{time.Millisecond, time.Millisecond, 30 * time.Millisecond, time.Second}[w.IntN(4)])
}

// supersede is a second agent that reports everything once and is never heard of
// again.
func supersede(t *testing.T, w *world, h *hub) {
	t.Helper()
	epoch, err := h.in().Register(t.Context(), cluster, schema.Registration{HeartbeatInterval: schema.Duration(interval)})
	if err != nil {
		t.Fatal(err)
	}
	h.count("superseded")
	r := &schema.Report{Epoch: epoch, Sequence: 1, Mode: schema.ModeSnapshot, Kinds: kinds, ObservedAt: time.Now()}
	for _, kind := range kinds {
		for rec := range w.Reconcilers(kind) {
			rec.Sources = slices.Clone(rec.Sources)
			r.Reconcilers = append(r.Reconcilers, rec)
		}
	}
	r.Normalize()
	if _, err := h.in().Report(t.Context(), cluster, r); err != nil {
		t.Fatal(err)
	}
}

// compare holds what the hub has against what runs.
func compare(t *testing.T, w *world, h *hub, o *outbox.Outbox) {
	t.Helper()
	entries := h.entries()
	for ref, rec := range w.objs {
		e, ok := entries[ref]
		switch {
		case !ok:
			t.Errorf("the hub lacks %s", ref)
		case rec.Health == bad:
			if e.Status != schema.StatusUnknown {
				t.Errorf("%s cannot be reported and is %s at the hub", ref, e.Status)
			}
		case e.Digest != stateOf(rec).digest:
			t.Errorf("the hub has another state of %s", ref)
		}
	}
	for ref := range entries {
		if _, ok := w.objs[ref]; !ok {
			t.Errorf("the hub has %s, which is gone", ref)
		}
	}
	s := o.Status()
	if s.Mode != outbox.Current || s.Waiting != 0 || s.Error != nil {
		t.Errorf("the outbox has not come to rest: %+v", s)
	}
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	position := h.memory.states[cluster].Position
	if h.answer.Resync || h.beat.Epoch != s.Epoch || h.beat.Sequence != s.Sequence || h.beat.Digest != position.Digest.String() {
		t.Errorf("the digests differ: heartbeat %+v, answered %+v, the hub stands at %d/%d with %s", h.beat, h.answer, position.Epoch, position.Sequence, position.Digest)
	}
	if len(position.UnlistedKinds) != 0 {
		t.Errorf("the hub takes %v for unlisted", position.UnlistedKinds)
	}
}

// Whatever happens on the cluster, on the line and to the hub: once the hub
// answers, it knows what runs, both agree on it, no success was lost without
// being counted, and no parent came before its children.
func TestBothSidesAgreeInTheEnd(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			run(t, seed, seen)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
	t.Log(seen)
	for _, what := range []string{"report trouble 0", "report trouble 1", "report trouble 2", "report trouble 3", "413", "400", "resync asked", "superseded", "part stored", "snapshot stored", "delta stored", "successes missing"} {
		if seen[what] < 20 {
			t.Errorf("%q happened %d times: the test tests little", what, seen[what])
		}
	}
}

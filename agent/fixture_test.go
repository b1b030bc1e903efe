package agent

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/landfall-hub/landfall/agent/argocd"
	"github.com/landfall-hub/landfall/agent/watch"
	"github.com/landfall-hub/landfall/schema"
)

// load reads an object of the readers' testdata: flux/samples/… and so on.
func load(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	reader, rest := filepath.Split(filepath.Dir(name))
	raw, err := os.ReadFile(filepath.Join(reader, "testdata", rest, filepath.Base(name)+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &obj.Object); err != nil {
		t.Fatalf("parsing %s: %v", name, err)
	}
	return obj
}

func ref(kind, namespace, name string) schema.ObjectRef {
	return schema.ObjectRef{Kind: kind, Namespace: namespace, Name: name}
}

// edit changes a copy of an object: value nil removes a member.
func edit(t testing.TB, obj *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	t.Helper()
	obj = obj.DeepCopy()
	if value == nil {
		unstructured.RemoveNestedField(obj.Object, path...)
		return obj
	}
	if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
		t.Fatal(err)
	}
	return obj
}

// named gives a copy of an object another namespace and name.
func named(t testing.TB, obj *unstructured.Unstructured, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	return edit(t, edit(t, obj, namespace, "metadata", "namespace"), name, "metadata", "name")
}

// inventory gives a copy of a Kustomization an inventory.
func inventory(t testing.TB, obj *unstructured.Unstructured, children ...schema.ObjectRef) *unstructured.Unstructured {
	t.Helper()
	groups := map[string]string{"Kustomization": "kustomize.toolkit.fluxcd.io", "HelmRelease": "helm.toolkit.fluxcd.io", "Application": "argoproj.io"}
	entries := []any{}
	for _, c := range children {
		entries = append(entries, map[string]any{"id": c.Namespace + "_" + c.Name + "_" + groups[c.Kind] + "_" + c.Kind})
	}
	return edit(t, obj, entries, "status", "inventory", "entries")
}

// failing gives a copy of a Kustomization a build that failed.
func failing(t testing.TB, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	return edit(t, obj, []any{map[string]any{"type": "Ready", "status": "False", "reason": "BuildFailed", "message": "no"}}, "status", "conditions")
}

// A cluster is what the API server holds, as a watcher would tell it.
type cluster struct {
	mu     sync.Mutex
	held   map[schema.ObjectRef]*unstructured.Unstructured
	states map[string]watch.State
}

func (c *cluster) Get(key schema.ObjectRef) (*unstructured.Unstructured, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	obj, ok := c.held[key]
	if !ok {
		return nil, false
	}
	return obj.DeepCopy(), true
}

func (c *cluster) Has(key schema.ObjectRef) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[key] != nil
}

func (c *cluster) Keys(kind string) []schema.ObjectRef {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []schema.ObjectRef
	for key := range c.held {
		if key.Kind == kind {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, schema.ObjectRef.Compare)
	return keys
}

func (c *cluster) States() map[string]watch.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.states)
}

// A hub is what an outbox would have told: like one, it asks for everything
// when a kind becomes complete.
type hub struct {
	mu               sync.Mutex
	worker           *worker
	puts             [][]schema.Reconciler
	removed          []schema.ObjectRef
	listed, unlisted []string
	known            map[schema.ObjectRef]schema.Reconciler
}

func (h *hub) Put(all ...schema.Reconciler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.puts = append(h.puts, all)
	for _, r := range all {
		h.known[r.Ref()] = r
	}
}

func (h *hub) Remove(refs ...schema.ObjectRef) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removed = append(h.removed, refs...)
	for _, r := range refs {
		delete(h.known, r)
	}
}

func (h *hub) Kinds(listed, unlisted []string) {
	h.mu.Lock()
	was := h.listed
	h.listed, h.unlisted = listed, unlisted
	h.mu.Unlock()
	for _, kind := range listed {
		if !slices.Contains(was, kind) {
			h.snapshot(kind)
		}
	}
}

func (h *hub) snapshot(kind string) {
	all := slices.Collect(h.worker.Reconcilers(kind))
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.known, func(key schema.ObjectRef, _ schema.Reconciler) bool { return key.Kind == kind })
	for _, r := range all {
		h.known[r.Ref()] = r
	}
}

const absence = time.Minute

// A bench is a worker between a cluster and a hub, on a clock that the test
// moves.
type bench struct {
	t       testing.TB
	cluster *cluster
	hub     *hub
	worker  *worker
	now     time.Time
}

// newBench has all kinds listed, and nothing in them.
func newBench(t testing.TB, change ...func(*Config)) *bench {
	t.Helper()
	config := DefaultConfig()
	config.Cluster.Name = "drone-07"
	for _, c := range change {
		c(&config)
	}
	b := &bench{
		t: t, cluster: &cluster{held: map[schema.ObjectRef]*unstructured.Unstructured{}, states: map[string]watch.State{}},
		hub: &hub{known: map[schema.ObjectRef]schema.Reconciler{}}, now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC),
	}
	for _, k := range config.watched() {
		b.cluster.states[k.Kind] = watch.Listed
	}
	log := slog.New(slog.DiscardHandler)
	m := newMetrics(prometheus.NewRegistry(), "test")
	tracking := argocd.Tracking{Namespace: config.ArgoCD.Namespace, Label: config.ArgoCD.TrackingLabel}
	b.worker = newWorker(newQueue(), newFacts(b.cluster, tracking, newDestinations(config, log, m.unmapped)), absence, log, m)
	b.worker.sink, b.hub.worker = b.hub, b.worker
	return b
}

// has changes objects, without a look at them.
func (b *bench) has(objs ...*unstructured.Unstructured) {
	for _, obj := range objs {
		key := ref(obj.GetKind(), obj.GetNamespace(), obj.GetName())
		b.cluster.mu.Lock()
		b.cluster.held[key] = obj
		b.cluster.mu.Unlock()
		b.worker.queue.add(key)
	}
}

// loses takes objects away.
func (b *bench) loses(keys ...schema.ObjectRef) {
	for _, key := range keys {
		b.cluster.mu.Lock()
		delete(b.cluster.held, key)
		b.cluster.mu.Unlock()
		b.worker.queue.add(key)
	}
}

// turns puts a kind into another state.
func (b *bench) turns(kind string, s watch.State) {
	b.cluster.mu.Lock()
	defer b.cluster.mu.Unlock()
	b.cluster.states[kind] = s
}

// look lets the worker look once, now.
func (b *bench) look() { b.worker.step(b.now) }

// rest lets the worker look until there is nothing left to wait for.
func (b *bench) rest() {
	b.t.Helper()
	for range 100 {
		b.worker.step(b.now)
		next, waits := b.worker.next()
		if !waits && b.worker.queue.length() == 0 {
			return
		}
		if waits {
			b.now = next
		}
	}
	b.t.Fatal("the worker finds no rest")
}

// news returns what was put since the last time, each as text.
func (b *bench) news() [][]string {
	var all [][]string
	for _, group := range b.hub.puts {
		var texts []string
		for _, r := range group {
			texts = append(texts, r.Ref().String()+" "+string(r.Status))
		}
		all = append(all, texts)
	}
	b.hub.puts = nil
	return all
}

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

// sleep passes time in a bubble, and lets everything happen that is due then.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

package agent

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/argocd"
	"github.com/landfall-hub/landfall/agent/flux"
	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/agent/watch"
	"github.com/landfall-hub/landfall/schema"
)

// objects is what the API server holds now; agent/watch has it.
type objects interface {
	// Get returns an object that the caller may change.
	Get(schema.ObjectRef) (*unstructured.Unstructured, bool)
	// Has reports whether Get has an object.
	Has(schema.ObjectRef) bool
	// Keys returns the objects of a kind, in order.
	Keys(kind string) []schema.ObjectRef
	// States says of each watched kind whether it is listed.
	States() map[string]watch.State
}

// ReasonChildNotListed goes with status unknown: a child that the inventory
// names is of a kind that nobody looks at here.
const ReasonChildNotListed = "ChildNotListed"

// facts makes reconcilers' facts of objects, and knows which facts hang on
// which objects. It is safe for concurrent use.
type facts struct {
	objects  objects
	tracking argocd.Tracking
	clusters *destinations

	mu sync.Mutex
	// sources are the sources and repositories that facts hang on, as they were
	// last read: what vanished is known by them.
	sources map[schema.ObjectRef]*source
	// needs has, for each reconciler, the objects that its facts hang on; users
	// has the same the other way round.
	needs map[schema.ObjectRef][]schema.ObjectRef
	users map[schema.ObjectRef]map[schema.ObjectRef]struct{}
}

// source is a source object's last reading. The zero value was never seen.
type source struct {
	flux.Source
	seen bool
}

func newFacts(store objects, tracking argocd.Tracking, clusters *destinations) *facts {
	return &facts{
		objects: store, tracking: tracking, clusters: clusters,
		sources: map[schema.ObjectRef]*source{}, needs: map[schema.ObjectRef][]schema.ObjectRef{},
		users: map[schema.ObjectRef]map[schema.ObjectRef]struct{}{},
	}
}

// reading is what can be said of one reconciler now.
type reading struct {
	schema.Reconciler
	// gone: there is no such object.
	gone bool
	// children are the reconcilers that its inventory names.
	children []schema.ObjectRef
	// missing are objects that the facts hang on and that were never seen.
	// They are what a kind that is still being listed, or cannot be, may hold.
	missing []schema.ObjectRef
}

// lacks reports whether a source that the facts hang on may be one of a kind
// that is in the given state.
func (r *reading) lacks(states map[string]watch.State, s watch.State) bool {
	return slices.ContainsFunc(r.missing, func(ref schema.ObjectRef) bool { return !reconcilers[ref.Kind] && states[ref.Kind] == s })
}

// lacksChild is the same of a child.
func (r *reading) lacksChild(states map[string]watch.State, s watch.State) bool {
	return slices.ContainsFunc(r.missing, func(ref schema.ObjectRef) bool { return reconcilers[ref.Kind] && states[ref.Kind] == s })
}

// read makes the facts of a reconciler of what is known now.
func (f *facts) read(key schema.ObjectRef, states map[string]watch.State) reading {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, _ := f.readLocked(key, states)
	return r
}

// update is read, and remembers what the facts hang on; nothing, of a
// reconciler that is gone.
func (f *facts) update(key schema.ObjectRef, states map[string]watch.State) reading {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, needs := f.readLocked(key, states)
	f.remember(key, needs)
	if r.gone {
		delete(f.needs, key)
	}
	return r
}

func (f *facts) readLocked(key schema.ObjectRef, states map[string]watch.State) (reading, []schema.ObjectRef) {
	obj, ok := f.objects.Get(key)
	if !ok {
		return reading{gone: true}, nil
	}
	var r reading
	var needs []schema.ObjectRef
	var err error
	if key.Kind == argocd.KindApplication {
		r.Reconciler, err = argocd.Application(obj, f.tracking)
		r.children, r.Cluster = f.deployed(obj)
	} else {
		var from flux.Source
		from, needs, r.missing = f.source(flux.SourceRef(obj), states)
		if key.Kind == flux.KindHelmRelease {
			r.Reconciler, err = flux.HelmRelease(obj, from)
		} else {
			r.Reconciler, err = flux.Kustomization(obj, from)
		}
		r.children = flux.Inventory(obj)
	}
	if err != nil {
		// It cannot be named: the store would not have it by this key.
		return reading{gone: true}, nil
	}
	r.Owner = f.owner(obj, r.Owner)
	r.Reconciler = f.await(r.Reconciler, r.children, states)
	for _, child := range r.children {
		if !f.objects.Has(child) {
			r.missing = append(r.missing, child)
		}
	}
	return r, append(needs, r.children...)
}

// deployed returns the children of an Application, and the cluster that it
// deploys to where that is not this one. One whose address is configured as
// this cluster's has its children here.
func (f *facts) deployed(obj *unstructured.Unstructured) ([]schema.ObjectRef, string) {
	d := argocd.ReadDestination(obj)
	if d.Local() {
		return argocd.Inventory(obj), ""
	}
	cluster, here := f.clusters.find(d)
	if here {
		here := obj.DeepCopy()
		if err := unstructured.SetNestedStringMap(here.Object, map[string]string{"name": argocd.InClusterName}, "spec", "destination"); err == nil {
			return argocd.Inventory(here), ""
		}
	}
	return nil, cluster
}

// owner prefers Flux's labels, which are made for this, to Argo CD's marks:
// its label is one that charts set too.
func (f *facts) owner(obj *unstructured.Unstructured, found *schema.ObjectRef) *schema.ObjectRef {
	if by := flux.Owner(obj); by != nil {
		return by
	}
	if found != nil {
		return found
	}
	return f.tracking.Owner(obj)
}

// await holds a success back until every child was seen. A child of a kind that
// cannot be looked at here will never be seen, and nobody can say that it is
// well: then the parent is unknown.
func (f *facts) await(r schema.Reconciler, children []schema.ObjectRef, states map[string]watch.State) schema.Reconciler {
	if r.Status != schema.StatusSuccess {
		return r
	}
	for _, child := range children {
		var why string
		switch state, watched := states[child.Kind]; {
		case !watched:
			why = "which this agent is not configured to watch"
		case state == watch.Absent:
			why = "a kind that the cluster does not serve"
		case state == watch.Unlisted:
			why = "a kind that the agent cannot list"
		default:
			continue
		}
		r.Status, r.Reason, r.Since = schema.StatusUnknown, ReasonChildNotListed, time.Time{}
		r.Message = object.Message("its inventory names " + child.String() + ", " + why)
		return r
	}
	return object.Await(r, children, f.objects.Has)
}

// source returns what a reconciler reads from, with the objects that this hangs
// on and those among them that were never seen.
func (f *facts) source(ref schema.ObjectRef, states map[string]watch.State) (found flux.Source, needs, missing []schema.ObjectRef) {
	if ref.IsZero() {
		return flux.Source{}, nil, nil
	}
	one := func(ref schema.ObjectRef) flux.Source {
		needs = append(needs, ref)
		s := f.known(ref)
		if !s.seen {
			missing = append(missing, ref)
			return flux.Source{Ref: ref, Error: ref.String() + " is not there"}
		}
		if s.seen && states[ref.Kind] == watch.Unlisted {
			unlisted := s.Source
			unlisted.Error = ref.String() + " is known as it was last seen: the agent cannot list its kind"
			return unlisted
		}
		return s.Source
	}
	found = one(ref)
	if !found.From.IsZero() {
		found = found.In(one(found.From))
	}
	return found, needs, missing
}

// known returns the last reading of a source, and makes the first one.
func (f *facts) known(ref schema.ObjectRef) *source {
	s := f.sources[ref]
	if s == nil {
		s = &source{}
		f.sources[ref] = s
		f.reread(ref, s)
	}
	return s
}

// reread reads a source object again and reports whether that changed anything.
// What vanished or cannot be understood any more leaves its last endpoint.
func (f *facts) reread(ref schema.ObjectRef, s *source) bool {
	was := *s
	obj, ok := f.objects.Get(ref)
	if !ok {
		if s.seen {
			s.Source = s.Gone()
		}
		return *s != was
	}
	read, err := flux.ReadSource(obj)
	if err != nil {
		return false // no reader reads this kind
	}
	if read.Endpoint.Type == "" {
		read.Endpoint, read.From = was.Endpoint, cmp.Or(read.From, was.From)
	}
	*s = source{Source: read, seen: true}
	return *s != was
}

// changed notes that an object changed, came or went, and returns the
// reconcilers whose facts that may change, in order.
func (f *facts) changed(key schema.ObjectRef) []schema.ObjectRef {
	f.mu.Lock()
	defer f.mu.Unlock()
	if reconcilers[key.Kind] {
		_, was := f.needs[key]
		if was == f.objects.Has(key) {
			return []schema.ObjectRef{key}
		}
		// Only whether a child is there matters to its parents.
		return append(f.usersOf(key), key)
	}
	s := f.sources[key]
	if s == nil || !f.reread(key, s) {
		return nil
	}
	return f.usersOf(key)
}

func (f *facts) usersOf(key schema.ObjectRef) []schema.ObjectRef {
	users := make([]schema.ObjectRef, 0, len(f.users[key]))
	for user := range f.users[key] {
		users = append(users, user)
	}
	slices.SortFunc(users, schema.ObjectRef.Compare)
	return users
}

// on returns the reconcilers whose facts hang on an object of one of the kinds.
func (f *facts) on(kinds map[string]bool) []schema.ObjectRef {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []schema.ObjectRef
	for key, needs := range f.needs {
		if slices.ContainsFunc(needs, func(n schema.ObjectRef) bool { return kinds[n.Kind] }) {
			found = append(found, key)
		}
	}
	slices.SortFunc(found, schema.ObjectRef.Compare)
	return found
}

// remember replaces what a reconciler's facts hang on; needs is nil for one
// that is gone. What nobody needs any more is forgotten.
func (f *facts) remember(key schema.ObjectRef, needs []schema.ObjectRef) {
	was := f.needs[key]
	f.needs[key] = needs
	if slices.Equal(was, needs) {
		return
	}
	for _, n := range needs {
		if f.users[n] == nil {
			f.users[n] = map[schema.ObjectRef]struct{}{}
		}
		f.users[n][key] = struct{}{}
	}
	for _, n := range was {
		if slices.Contains(needs, n) {
			continue
		}
		if delete(f.users[n], key); len(f.users[n]) == 0 {
			delete(f.users, n)
			delete(f.sources, n)
		}
	}
}

package watch

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func dialContext(dial func() (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return dial() }
}

func gr(path []string) schema.GroupResource {
	if len(path) < 4 {
		return schema.GroupResource{}
	}
	return schema.GroupResource{Group: path[1], Resource: path[3]}
}

// A bench is a watcher on a server, and what it told.
type bench struct {
	*apiServer
	w *Watcher

	toldMu sync.Mutex
	told   []Key
	kinds  int
	stop   func()
}

// run starts a watcher of two kinds in the bubble of the test.
func run(t *testing.T, server *apiServer, edits ...func(*Options)) *bench {
	t.Helper()
	b := &bench{apiServer: server}
	options := Options{
		Config: server.config(), Kinds: []Kind{kustomization, gitRepository},
		Trim: func(obj *unstructured.Unstructured) {
			obj.SetManagedFields(nil)
			obj.SetResourceVersion("")
			delete(obj.Object, "status")
		},
		OnObject: func(k Key) {
			b.toldMu.Lock()
			defer b.toldMu.Unlock()
			b.told = append(b.told, k)
		},
		OnKinds: func() {
			b.toldMu.Lock()
			defer b.toldMu.Unlock()
			b.kinds++
		},
	}
	for _, edit := range edits {
		edit(&options)
	}
	w, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	b.w = w
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
	t.Cleanup(b.stop)
	return b
}

// hears waits until nothing moves any more, and returns which keys were told
// since it was called last, each once, in order.
func (b *bench) hears() []string {
	synctest.Wait()
	b.toldMu.Lock()
	defer b.toldMu.Unlock()
	var names []string
	for _, k := range b.told {
		names = append(names, k.String())
	}
	b.told = nil
	slices.Sort(names)
	return slices.Compact(names)
}

// settled waits until nothing moves any more, and returns a check that no state
// has changed since, not for a moment.
func (b *bench) settled() (check func(t *testing.T)) {
	changes := func() int {
		synctest.Wait()
		b.toldMu.Lock()
		defer b.toldMu.Unlock()
		return b.kinds
	}
	before := changes()
	return func(t *testing.T) {
		t.Helper()
		if n := changes() - before; n != 0 {
			t.Errorf("states changed %d times: %v", n, b.w.States())
		}
	}
}

func (b *bench) wantState(t *testing.T, k Kind, want State) {
	t.Helper()
	synctest.Wait()
	if got := b.w.States()[k.Kind]; got != want {
		t.Errorf("the state of %s is %s, want %s", k.Kind, got, want)
	}
}

func (b *bench) wantHeard(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, b.hears()); diff != "" {
		t.Errorf("keys told (-want +got):\n%s", diff)
	}
}

// wantKeys compares what is known with namespace/name=value.
func (b *bench) wantKeys(t *testing.T, k Kind, want ...string) {
	t.Helper()
	var got []string
	for _, key := range b.w.Keys(k.Kind) {
		obj, ok := b.w.Get(key)
		if !ok {
			t.Errorf("%s is a key and no object", key)
			continue
		}
		value, _, _ := unstructured.NestedString(obj.Object, "spec", "value")
		got = append(got, key.Namespace+"/"+key.Name+"="+value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects known of %s (-want +got):\n%s", k.Kind, diff)
	}
}

// both runs a test against API servers that stream lists, and that do not.
func both(t *testing.T, test func(t *testing.T, server *apiServer)) {
	t.Helper()
	for name, streams := range map[string]bool{"streamed": true, "paged": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newAPIServer(t)
				server.streams = streams
				test(t, server)
			})
		})
	}
}

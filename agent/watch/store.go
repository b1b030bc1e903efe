package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	"github.com/landfall-hub/landfall/schema"
)

// Key names an object; its kind is Kind.Kind.
type Key = schema.ObjectRef

// A packed is an object as it is kept: trimmed, and JSON again, which takes a
// tenth of the memory of what a decoder makes of it.
type packed struct {
	key  Key
	json []byte
}

// GetObjectMeta says as much of an object as a reflector has to know.
func (p *packed) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.key.Namespace, Name: p.key.Name}
}

// GetObjectKind implements runtime.Object.
func (*packed) GetObjectKind() gvk.ObjectKind { return gvk.EmptyObjectKind }

// DeepCopyObject implements runtime.Object; what is packed never changes.
func (p *packed) DeepCopyObject() runtime.Object { return p }

func (p *packed) unpack() (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(p.json, &obj.Object); err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", p.key, err)
	}
	return obj, nil
}

// A store keeps the objects of one kind for its reflector, which is one at a
// time, whatever version they come in. It tells which key changed; an object
// that is equal after trimming did not.
type store struct {
	kind    string
	trim    func(*unstructured.Unstructured)
	changed func(Key)
	// replaced is called after a complete list was taken over, under no lock.
	replaced func()

	mu      sync.Mutex
	objects map[Key]*packed
	bytes   int
}

var _ cache.TransformingStore = (*store)(nil)

// Transformer makes the reflector pack what it gathers for a first list.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.pack(obj) }
}

// pack trims and packs an object, unless it is packed already.
func (s *store) pack(obj any) (*packed, error) {
	if p, ok := obj.(*packed); ok {
		return p, nil
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("packing a %s: it came as a %T", s.kind, obj)
	}
	p := &packed{key: Key{Kind: s.kind, Namespace: u.GetNamespace(), Name: u.GetName()}}
	if s.trim != nil {
		s.trim(u)
	}
	var err error
	if p.json, err = json.Marshal(u.Object); err != nil {
		return nil, fmt.Errorf("packing %s: %w", p.key, err)
	}
	return p, nil
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error {
	p, err := s.pack(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	is := s.put(s.objects, p)
	s.mu.Unlock()
	if is {
		s.changed(p.key)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error { return s.Add(obj) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(obj any) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("removing a %s: %w", s.kind, err)
	}
	key := Key{Kind: s.kind, Namespace: m.GetNamespace(), Name: m.GetName()}
	s.mu.Lock()
	had, ok := s.objects[key]
	if ok {
		s.bytes -= len(had.json)
		delete(s.objects, key)
	}
	s.mu.Unlock()
	if ok {
		s.changed(key)
	}
	return nil
}

// Replace takes over a complete list: what is not in it is gone, also what went
// while the kind could not be listed.
func (s *store) Replace(list []any, _ string) error {
	objects := make(map[Key]*packed, len(list))
	var changed []Key
	s.mu.Lock()
	for _, obj := range list {
		p, err := s.pack(obj)
		if err != nil {
			s.mu.Unlock()
			return err
		}
		if had := s.objects[p.key]; had == nil || !bytes.Equal(had.json, p.json) {
			changed = append(changed, p.key)
		}
		objects[p.key] = p
	}
	for key := range s.objects {
		if objects[key] == nil {
			changed = append(changed, key)
		}
	}
	s.objects, s.bytes = objects, 0
	for _, p := range objects {
		s.bytes += len(p.json)
	}
	s.mu.Unlock()
	for _, key := range changed {
		s.changed(key)
	}
	s.replaced()
	return nil
}

// Resync implements cache.ReflectorStore; there is nothing to do.
func (*store) Resync() error { return nil }

// put stores an object under the lock, and reports whether it is another one
// than before.
func (s *store) put(objects map[Key]*packed, p *packed) bool {
	had := objects[p.key]
	if had != nil {
		if bytes.Equal(had.json, p.json) {
			return false
		}
		s.bytes -= len(had.json)
	}
	s.bytes += len(p.json)
	objects[p.key] = p
	return true
}

func (s *store) get(key Key) *packed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[key]
}

// keys are sorted.
func (s *store) keys() []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.objects), Key.Compare)
}

func (s *store) len() (objects, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects), s.bytes
}

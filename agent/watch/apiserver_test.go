package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

var (
	kustomization = Kind{"kustomize.toolkit.fluxcd.io", "kustomizations", "Kustomization"}
	gitRepository = Kind{"source.toolkit.fluxcd.io", "gitrepositories", "GitRepository"}
)

// An apiServer answers as one would, over pipes in memory: so that hours pass
// at once in a bubble of testing/synctest. Each watch it serves reads a log of
// changes, as a real one does.
type apiServer struct {
	t testing.TB

	mu sync.Mutex
	// serves are the versions of each kind, the preferred one first.
	serves map[Kind][]string
	log    []change
	// compacted: changes up to here are forgotten, watches from before are Gone.
	compacted int
	// streams: lists come as watches, for those who ask so.
	streams bool
	down    bool
	// fault answers in place of the server when it returns true.
	fault func(verb string, w http.ResponseWriter, r *http.Request) bool
	asked []string // verb and path of each request
	moved chan struct{}
	kick  chan struct{} // closed: watches end
	conns map[net.Conn]bool
	dials chan net.Conn
	done  chan struct{}
}

// A change to an object; it is gone when there is none.
type change struct {
	kind   string
	key    string
	object map[string]any
}

func newAPIServer(t testing.TB) *apiServer {
	t.Helper()
	s := &apiServer{
		t: t, serves: map[Kind][]string{}, streams: true, moved: make(chan struct{}), kick: make(chan struct{}),
		conns: map[net.Conn]bool{}, dials: make(chan net.Conn), done: make(chan struct{}),
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(s)
	}()
	t.Cleanup(func() {
		s.stop()
		_ = server.Close()
		<-served
	})
	return s
}

// Accept, Close and Addr make it a net.Listener.
func (s *apiServer) Accept() (net.Conn, error) {
	select {
	case c := <-s.dials:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *apiServer) Close() error   { return nil }
func (s *apiServer) Addr() net.Addr { return &net.TCPAddr{} }

func (s *apiServer) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	s.mu.Lock()
	down := s.down
	if !down {
		s.conns[ours] = true
	}
	s.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	select {
	case s.dials <- ours:
		return theirs, nil
	case <-s.done:
		return nil, errors.New("the server has ended")
	}
}

// stop ends every connection and takes no new ones.
func (s *apiServer) stop() {
	s.setDown(true)
	close(s.done)
}

func (s *apiServer) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
	if down {
		for c := range s.conns {
			_ = c.Close()
		}
		clear(s.conns)
		s.endWatches()
	}
}

// set changes something under the lock.
func (s *apiServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// kickWatches ends every watch, as a change to a CRD does.
func (s *apiServer) kickWatches() { s.set(s.endWatches) }

func (s *apiServer) endWatches() {
	close(s.kick)
	s.kick = make(chan struct{})
}

func (s *apiServer) serve(k Kind, versions ...string) {
	s.set(func() { s.serves[k] = versions; s.endWatches() })
}

func (s *apiServer) setFault(f func(verb string, w http.ResponseWriter, r *http.Request) bool) {
	s.set(func() { s.fault = f })
}

// put writes an object; its value is what distinguishes one state from another.
func (s *apiServer) put(k Kind, namespace, name, value string) {
	s.write(change{kind: k.Kind, key: namespace + "/" + name, object: map[string]any{
		"kind": k.Kind,
		"metadata": map[string]any{
			"namespace": namespace, "name": name,
			"managedFields": []any{map[string]any{"manager": "test"}},
		},
		"spec":   map[string]any{"value": value},
		"status": map[string]any{"noise": time.Now().String()},
	}})
}

func (s *apiServer) remove(k Kind, namespace, name string) {
	s.write(change{kind: k.Kind, key: namespace + "/" + name})
}

func (s *apiServer) write(c change) {
	s.set(func() {
		s.log = append(s.log, c)
		close(s.moved)
		s.moved = make(chan struct{})
	})
}

// compact forgets the changes so far, and ends the watches.
func (s *apiServer) compact() {
	s.set(func() { s.compacted = len(s.log); s.endWatches() })
}

// count returns how many requests began so.
func (s *apiServer) count(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, asked := range s.asked {
		if strings.HasPrefix(asked, prefix) {
			n++
		}
	}
	return n
}

func (s *apiServer) config() *rest.Config {
	return &rest.Config{Host: "http://api.test", Transport: &http.Transport{DialContext: dialContext(s.dial)}}
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	verb := "discover"
	if len(parts) == 4 {
		verb = "list"
		if r.URL.Query().Get("watch") == "true" {
			verb = "watch"
		}
	}
	s.mu.Lock()
	s.asked = append(s.asked, verb+" "+r.URL.Path)
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		s.asked = append(s.asked, "initial "+r.URL.Path)
	}
	fault := s.fault
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if fault != nil && fault(verb, w, r) {
		return
	}
	switch len(parts) {
	case 2:
		s.group(w, parts[1])
	case 3:
		s.resources(w, parts[1], parts[2])
	case 4:
		k, ok := s.kind(parts[1], parts[2], parts[3])
		switch {
		case !ok:
			refuse(w, apierrors.NewGenericServerResponse(http.StatusNotFound, verb, gr(parts), "", "page not found", 0, false))
		case verb == "watch":
			s.watch(w, r, k, parts[1]+"/"+parts[2])
		default:
			s.list(w, r, k, parts[1]+"/"+parts[2])
		}
	}
}

func (s *apiServer) group(w http.ResponseWriter, group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: group}
	for k, versions := range s.serves {
		for _, v := range versions {
			d := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + v, Version: v}
			if k.Group == group && !slices.Contains(g.Versions, d) {
				g.Versions = append(g.Versions, d)
			}
		}
	}
	if len(g.Versions) == 0 {
		refuse(w, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", gr(nil), "", "page not found", 0, false))
		return
	}
	slices.SortFunc(g.Versions, func(a, b metav1.GroupVersionForDiscovery) int { return len(a.Version) - len(b.Version) })
	g.PreferredVersion = g.Versions[0] // v1 before v1beta2
	answer(w, g)
}

func (s *apiServer) resources(w http.ResponseWriter, group, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group + "/" + version}
	for k, versions := range s.serves {
		if k.Group == group && slices.Contains(versions, version) {
			list.APIResources = append(list.APIResources,
				metav1.APIResource{Name: k.Resource, Kind: k.Kind, Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}},
				metav1.APIResource{Name: k.Resource + "/status", Kind: k.Kind, Namespaced: true, Verbs: metav1.Verbs{"get"}})
		}
	}
	answer(w, list)
}

func (s *apiServer) kind(group, version, resource string) (Kind, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, versions := range s.serves {
		if k.Group == group && k.Resource == resource && slices.Contains(versions, version) {
			return k, true
		}
	}
	return Kind{}, false
}

// state returns the objects of a kind now, in order, and the version of it.
func (s *apiServer) state(k Kind, apiVersion string) ([]map[string]any, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := map[string]map[string]any{}
	for i, c := range s.log {
		if c.kind == k.Kind {
			now[c.key] = versioned(c.object, apiVersion, i+1)
		}
		if c.object == nil {
			delete(now, c.key)
		}
	}
	out := make([]map[string]any, 0, len(now))
	for _, key := range slices.Sorted(maps.Keys(now)) {
		out = append(out, now[key])
	}
	return out, len(s.log)
}

func versioned(obj map[string]any, apiVersion string, rv int) map[string]any {
	if obj == nil {
		return nil
	}
	obj, m := maps.Clone(obj), maps.Clone(obj["metadata"].(map[string]any))
	m["resourceVersion"], obj["metadata"], obj["apiVersion"] = strconv.Itoa(rv), m, apiVersion
	return obj
}

func (s *apiServer) list(w http.ResponseWriter, r *http.Request, k Kind, apiVersion string) {
	items, rv := s.state(k, apiVersion)
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	items = items[min(from, len(items)):]
	meta := map[string]any{"resourceVersion": strconv.Itoa(rv)}
	cached := r.URL.Query().Get("resourceVersion") == "0" // a cache knows no pages
	if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 && limit < len(items) && !cached {
		items, meta["continue"] = items[:limit], strconv.Itoa(from+limit)
	}
	answer(w, map[string]any{"kind": k.Kind + "List", "apiVersion": apiVersion, "metadata": meta, "items": items})
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, k Kind, apiVersion string) {
	query := r.URL.Query()
	s.mu.Lock()
	streams, compacted, kick := s.streams, s.compacted, s.kick
	s.mu.Unlock()
	at, _ := strconv.Atoi(query.Get("resourceVersion"))
	initial := query.Get("sendInitialEvents") == "true"
	if initial && !streams {
		refuse(w, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil))
		return
	}
	if at < compacted && !initial { // an API server grants the watch, and says so in it
		send(w, "ERROR", status(apierrors.NewResourceExpired("too old resource version")))
		return
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	if initial {
		var items []map[string]any
		items, at = s.state(k, apiVersion)
		for _, item := range items {
			send(w, "ADDED", item)
		}
		send(w, "BOOKMARK", map[string]any{"kind": k.Kind, "apiVersion": apiVersion, "metadata": map[string]any{
			"resourceVersion": strconv.Itoa(at), "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"},
		}})
	}
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	end := time.NewTimer(time.Duration(seconds) * time.Second)
	defer end.Stop()
	for {
		s.mu.Lock()
		changes, moved := s.log[at:], s.moved
		s.mu.Unlock()
		for _, c := range changes {
			at++
			if c.kind != k.Kind {
				continue
			}
			if c.object == nil {
				namespace, name, _ := strings.Cut(c.key, "/")
				send(w, "DELETED", map[string]any{"kind": k.Kind, "apiVersion": apiVersion, "metadata": map[string]any{
					"namespace": namespace, "name": name, "resourceVersion": strconv.Itoa(at),
				}})
				continue
			}
			send(w, "MODIFIED", versioned(c.object, apiVersion, at))
		}
		select {
		case <-moved:
		case <-kick:
			return
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func send(w http.ResponseWriter, event string, object any) {
	raw, _ := json.Marshal(map[string]any{"type": event, "object": object})
	_, _ = w.Write(append(raw, '\n'))
	w.(http.Flusher).Flush()
}

func answer(w http.ResponseWriter, v any) {
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	w.WriteHeader(int(err.ErrStatus.Code))
	_ = json.NewEncoder(w).Encode(status(err))
}

// status is an error as it is sent, in an answer or in a stream.
func status(err *apierrors.StatusError) metav1.Status {
	s := err.Status()
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return s
}

// forbid makes a fault of verbs that may not be used.
func forbid(verbs ...string) func(string, http.ResponseWriter, *http.Request) bool {
	return func(verb string, w http.ResponseWriter, r *http.Request) bool {
		if !slices.Contains(verbs, verb) {
			return false
		}
		refuse(w, apierrors.NewForbidden(gr(strings.Split(strings.Trim(r.URL.Path, "/"), "/")), "", fmt.Errorf("no role grants %s", verb)))
		return true
	}
}

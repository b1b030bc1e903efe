package agent

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/landfall-hub/landfall/agent/watch"
	"github.com/landfall-hub/landfall/schema"
)

// An apiServer is as much of one as the agent asks for: what is served, lists
// and watches.
type apiServer struct {
	mu      sync.Mutex
	objects map[string]map[string]*unstructured.Unstructured // by resource and name
	events  []event
	moved   chan struct{}
}

type event struct {
	resource, kind string
	object         *unstructured.Unstructured
}

func newAPIServer() *apiServer {
	return &apiServer{objects: map[string]map[string]*unstructured.Unstructured{}, moved: make(chan struct{})}
}

func (s *apiServer) put(objs ...*unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, obj := range objs {
		obj = obj.DeepCopy()
		resource := resourceOf(obj.GetKind())
		if s.objects[resource] == nil {
			s.objects[resource] = map[string]*unstructured.Unstructured{}
		}
		obj.SetResourceVersion(strconv.Itoa(len(s.events) + 1))
		name := obj.GetNamespace() + "/" + obj.GetName()
		does := "ADDED"
		if s.objects[resource][name] != nil {
			does = "MODIFIED"
		}
		s.objects[resource][name] = obj
		s.events = append(s.events, event{resource, does, obj})
	}
	close(s.moved)
	s.moved = make(chan struct{})
}

func resourceOf(kind string) string {
	for _, k := range watch.DefaultKinds() {
		if k.Kind == kind {
			return k.Resource
		}
	}
	return ""
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	const version = "v1"
	switch len(parts) {
	case 2:
		v := map[string]any{"groupVersion": parts[1] + "/" + version, "version": version}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "APIGroup", "apiVersion": "v1", "name": parts[1], "versions": []any{v}, "preferredVersion": v})
	case 3:
		list := []any{}
		for _, k := range watch.DefaultKinds() {
			if k.Group == parts[1] {
				list = append(list, map[string]any{"name": k.Resource, "kind": k.Kind, "namespaced": true, "verbs": []string{"list", "watch"}})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": parts[1] + "/" + parts[2], "resources": list})
	case 4:
		s.look(w, r, parts[3])
	}
}

func (s *apiServer) look(w http.ResponseWriter, r *http.Request, resource string) {
	s.mu.Lock()
	at := len(s.events)
	items := slices.Collect(maps.Values(s.objects[resource]))
	s.mu.Unlock()
	query := r.URL.Query()
	switch {
	case query.Get("sendInitialEvents") == "true":
		w.WriteHeader(http.StatusUnprocessableEntity) // as one that cannot stream lists
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422, "reason": "Invalid"})
	case query.Get("watch") == "true":
		from, _ := strconv.Atoi(query.Get("resourceVersion"))
		s.watch(w, r, resource, from)
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": strconv.Itoa(at)}, "items": items,
		})
	}
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, resource string, from int) {
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		s.mu.Lock()
		news, moved := s.events[from:], s.moved
		s.mu.Unlock()
		for _, e := range news {
			if e.resource == resource {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": e.kind, "object": e.object})
			}
		}
		from += len(news)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-moved:
		case <-r.Context().Done():
			return
		}
	}
}

// A hubServer takes what an agent says, and remembers it as a hub would.
type hubServer struct {
	mu         sync.Mutex
	registered schema.Registration
	known      map[schema.ObjectRef]schema.Reconciler
	moved      chan struct{}
}

func (h *hubServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(r.Body)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { close(h.moved); h.moved = make(chan struct{}) }()
	if r.Header.Get("Authorization") != "Bearer s3cr3t" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPut:
		_ = json.NewDecoder(body).Decode(&h.registered)
		_ = json.NewEncoder(w).Encode(schema.RegistrationAnswer{Epoch: 7})
	case strings.HasSuffix(r.URL.Path, "/heartbeat"):
		_ = json.NewEncoder(w).Encode(schema.HeartbeatAnswer{CurrentEpoch: 7})
	default:
		var report schema.Report
		_ = json.NewDecoder(body).Decode(&report)
		if report.Mode == schema.ModeSnapshot {
			maps.DeleteFunc(h.known, func(key schema.ObjectRef, _ schema.Reconciler) bool { return slices.Contains(report.Kinds, key.Kind) })
		}
		for _, rec := range report.Reconcilers {
			h.known[rec.Ref()] = rec
		}
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(schema.ReportAnswer{CurrentEpoch: 7})
	}
}

// until waits for something to become true of the hub.
func (h *hubServer) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		h.mu.Lock()
		ok, moved := holds(), h.moved
		h.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-moved:
		case <-late:
			t.Fatalf("never: %s", what)
		}
	}
}

// The whole agent, between an API server and a hub.
func TestAgent(t *testing.T) {
	api, hub := newAPIServer(), &hubServer{known: map[schema.ObjectRef]schema.Reconciler{}, moved: make(chan struct{})}
	apiURL, hubURL := httptest.NewServer(api), httptest.NewServer(hub)
	defer hubURL.Close()
	defer apiURL.Close()
	parent := inventory(t, named(t, load(t, goodYAML), "flux-system", "root"), good)
	api.put(load(t, goodYAML), load(t, repoYAML), load(t, releaseYAML), load(t, chartYAML), load(t, chartsYAML), load(t, appYAML), parent)

	config := DefaultConfig()
	config.Cluster = ClusterConfig{Name: "drone-07", Memberships: []MembershipConfig{{"dev", "drone"}}, Labels: map[string]string{"region": "eu"}}
	config.Hub = HubConfig{URL: hubURL.URL, Token: "s3cr3t"}
	config.Listen, config.HeartbeatInterval = "127.0.0.1:0", schema.Duration(time.Second)
	config.Kubernetes.DiscoveryInterval = schema.Duration(time.Second)
	var log safeBuffer
	defer func() {
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	a, err := New(Options{
		Config: config, Version: "1.2.3", Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Kubernetes: &rest.Config{Host: apiURL.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()

	// A root may be told before its child was looked at: in progress until then.
	hub.until(t, "everything, once", func() bool { return len(hub.known) == 4 && hub.known[root].Status == schema.StatusSuccess })
	hub.mu.Lock()
	if r := hub.registered; r.Labels["region"] != "eu" || r.Memberships[0].Type != "drone" || r.Agent.Version != "1.2.3" || r.HeartbeatInterval != schema.Duration(time.Second) {
		t.Errorf("it registered as %+v", r)
	}
	for key, want := range map[schema.ObjectRef]string{
		good: "http://127.0.0.1:18080/repo.git", release: "https://charts.example.com/podinfo", root: "http://127.0.0.1:18080/repo.git",
	} {
		if r := hub.known[key]; len(r.Sources) != 1 || r.Sources[0].URL != want || r.Status != schema.StatusSuccess {
			t.Errorf("%s is reported as %+v", key, r)
		}
	}
	hub.mu.Unlock()

	api.put(edit(t, load(t, repoYAML), "dev", "spec", "ref", "branch"), failing(t, load(t, goodYAML)))
	hub.until(t, "what changed", func() bool {
		r := hub.known[good]
		return r.Status == schema.StatusFailure && r.Sources[0].Ref == "dev"
	})
	ready(t, a, http.StatusOK, `"status":"ready"`, "listed: Application, Bucket", "reported: Application, HelmRelease, Kustomization", "registered under epoch 7")
	if body := get(t, a, "/healthz", http.StatusOK); !strings.Contains(body, "ok") {
		t.Errorf("/healthz says %s", body)
	}
	body := get(t, a, "/metrics", http.StatusOK)
	documentedMetrics(t, body)
	for _, want := range []string{
		`landfall_agent_reconcilers{kind="Kustomization",status="failure"} 1`, `landfall_agent_build_info{version="1.2.3"} 1`, "landfall_agent_queue_length 0", "landfall_agent_blind_reconcilers 0",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}

	cancel()
	if err := <-done; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if text := log.String(); strings.Contains(text, "s3cr3t") || strings.Contains(text, "hunter2") || !strings.Contains(text, "the agent runs") {
		t.Errorf("the log is\n%s", text)
	}
}

func get(t *testing.T, a *Agent, path string, code int) string {
	t.Helper()
	resp, err := http.Get("http://" + a.Address() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != code {
		t.Errorf("%s answers %s, %v: %s", path, resp.Status, err, body)
	}
	return string(body)
}

func ready(t *testing.T, a *Agent, code int, parts ...string) {
	t.Helper()
	body := get(t, a, "/readyz", code)
	for _, part := range parts {
		if !strings.Contains(body, part) {
			t.Errorf("/readyz does not say %q: %s", part, body)
		}
	}
}

type safeBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

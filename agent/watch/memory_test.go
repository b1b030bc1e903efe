package watch

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	"github.com/landfall-hub/landfall/agent/flux"
)

// memoryServer is given to the test binary that BenchmarkMemory runs, an agent of
// which only the watcher is there.
var memoryServer = flag.String("watch.server", "", "the API server of BenchmarkMemory, in its child")

// figures of a process, in bytes.
type figures struct {
	Heap    uint64 // live after a collection
	Packed  uint64 // of it, the objects
	Listed  uint64 // resident after the first list
	Churned uint64 // resident right after each object changed twice
	Idle    uint64 // resident some seconds later
	Peak    uint64 // resident at most
	CPU     time.Duration
	Elapsed time.Duration // to the first list
}

// BenchmarkMemory shows what a watcher takes in a process of its own, over TLS
// and HTTP/2, for Kustomizations of 10 KB each: first list, then two changes to
// every object, then rest.
func BenchmarkMemory(b *testing.B) {
	for _, count := range []int{50, 500, 5000} {
		for _, streams := range []bool{true, false} {
			for _, settings := range []string{"none", "GOGC=50"} {
				name := fmt.Sprintf("objects=%d/streams=%v/settings=%s", count, streams, strings.ReplaceAll(settings, "=", ":"))
				b.Run(name, func(b *testing.B) { measure(b, count, streams, settings) })
			}
		}
	}
}

func measure(b *testing.B, count int, streams bool, settings string) {
	b.Helper()
	var f figures
	for range b.N {
		f = child(b, newBulkServer(b, count, streams), settings)
	}
	for unit, v := range map[string]uint64{
		"heap-MiB": f.Heap, "packed-MiB": f.Packed, "listed-MiB": f.Listed, "churned-MiB": f.Churned, "idle-MiB": f.Idle, "peak-MiB": f.Peak,
	} {
		b.ReportMetric(float64(v)/(1<<20), unit)
	}
	b.ReportMetric(f.CPU.Seconds(), "cpu-s")
	b.ReportMetric(f.Elapsed.Seconds(), "listed-s")
	b.ReportMetric(0, "ns/op")
}

// child runs the watcher on the server, and has the server change all.
func child(b *testing.B, server *bulkServer, settings string) figures {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	// #nosec G204 -- it is this binary
	cmd := exec.CommandContext(b.Context(), exe, "-test.run=^TestMemoryChild$", "-watch.server="+server.URL)
	if strings.Contains(settings, "=") {
		cmd.Env = append(cmd.Environ(), settings)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	var f figures
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch line := lines.Text(); {
		case line == "listed":
			server.churn()
		case strings.HasPrefix(line, "{"):
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	server.Close()
	return f
}

// TestMemoryChild is the child of BenchmarkMemory.
func TestMemoryChild(t *testing.T) {
	if *memoryServer == "" {
		t.Skip("BenchmarkMemory runs it")
	}
	began := time.Now()
	listed, last := make(chan struct{}), make(chan struct{})
	told := sync.OnceFunc(func() { close(listed) })
	var w *Watcher
	w, err := New(Options{
		Config: &rest.Config{Host: *memoryServer, TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		Kinds:  DefaultKinds(), Trim: flux.Trim,
		OnObject: func(k Key) {
			if _, ok := w.Get(k); ok && k.Name == "last" {
				close(last)
			}
		},
		OnKinds: func() {
			if w.States()["Kustomization"] == Listed {
				told()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-listed
	var f figures
	f.Elapsed = time.Since(began)
	for w.queue.Len() > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	f.Listed, _ = resident()
	fmt.Println("listed")
	<-last
	f.Churned, f.Peak = resident()
	time.Sleep(10 * time.Second)
	f.Idle, _ = resident()
	f.CPU = cpu()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.Heap = m.HeapAlloc
	for _, k := range w.informers {
		_, _, n := k.size()
		f.Packed += uint64(n) // #nosec G115 -- a size
	}
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(raw))
	cancel()
	<-done
}

// resident reads the process's memory now, and at most, where Linux tells it.
func resident() (now, peak uint64) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			now = n << 10
		case "VmHWM":
			peak = n << 10
		}
	}
	return now, peak
}

// cpu is the time that the process has used, where Linux tells it.
func cpu() time.Duration {
	raw, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw))
	user, _ := strconv.Atoi(fields[13])
	system, _ := strconv.Atoi(fields[14])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// A bulkServer serves Kustomizations made from one template, without keeping
// them.
type bulkServer struct {
	*httptest.Server
	count   int
	streams bool
	object  string
	changes chan string
}

func newBulkServer(tb testing.TB, count int, streams bool) *bulkServer {
	tb.Helper()
	s := &bulkServer{count: count, streams: streams, object: realSized(tb), changes: make(chan string, 100)}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.StartTLS()
	return s
}

// realSized is a Kustomization as clusters have them: an inventory of 60
// objects, the history of five runs, the managed fields of three managers.
func realSized(tb testing.TB) string {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "flux", "testdata", "samples", "kustomization-good.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &obj.Object); err != nil {
		tb.Fatal(err)
	}
	var entries, history, managed []any
	for i := range 60 {
		entries = append(entries, map[string]any{"id": fmt.Sprintf("team-namespace_some-application-%d_apps_Deployment", i), "v": "v1"})
	}
	for range 5 {
		history = append(history, map[string]any{
			"digest": "sha256:83a3c595163a6ff0333e0154c790383b5be441b9db632cb36da11db1c4ece111", "firstReconciled": "2026-11-20T09:36:40Z",
			"lastReconciled": "2026-11-20T09:36:40Z", "lastReconciledDuration": "1.200s", "lastReconciledStatus": "ReconciliationSucceeded",
			"metadata": map[string]any{"revision": "main@sha1:9e04eced091a4b6b71e9a3bdf4e6972ad7573bd8"}, "totalReconciliations": int64(77),
		})
	}
	fields := map[string]any{}
	for i := range 25 {
		fields[fmt.Sprintf("f:someField%02d", i)] = map[string]any{".": map[string]any{}, "f:below": map[string]any{}}
	}
	for _, manager := range []string{"flux", "kustomize-controller", "gotk-kustomize-controller"} {
		managed = append(managed, map[string]any{
			"manager": manager, "operation": "Update", "apiVersion": obj.GetAPIVersion(), "time": "2026-11-20T09:36:40Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
		})
	}
	for path, v := range map[string]any{
		"metadata.managedFields": managed, "status.history": history, "status.inventory.entries": entries,
		"metadata.name": "NAME", "metadata.resourceVersion": "VERSION", "status.lastAppliedRevision": "main@sha1:9e04eced091a4b6b71e9a3bdf4e6972aREVISION",
	} {
		if err := unstructured.SetNestedField(obj.Object, v, strings.Split(path, ".")...); err != nil {
			tb.Fatal(err)
		}
	}
	packed, err := json.Marshal(obj.Object)
	if err != nil {
		tb.Fatal(err)
	}
	if len(packed) < 9_000 || len(packed) > 12_000 {
		tb.Fatalf("an object has %d bytes", len(packed))
	}
	return string(packed)
}

func (s *bulkServer) made(name string, version, revision int) string {
	return strings.NewReplacer("NAME", name, "VERSION", strconv.Itoa(version), "REVISION", fmt.Sprintf("%08d", revision)).Replace(s.object)
}

func (s *bulkServer) name(i int) string { return fmt.Sprintf("some-kustomization-%d", i) }

// churn changes every object twice, and adds the last one.
func (s *bulkServer) churn() {
	for revision := range 2 {
		for i := range s.count {
			s.changes <- s.made(s.name(i), 2+revision, 1+revision)
		}
	}
	s.changes <- s.made("last", 9, 0)
}

// ServeHTTP implements http.Handler.
func (s *bulkServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	group := "/apis/" + kustomization.Group
	query := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	flush := w.(http.Flusher).Flush
	switch {
	case r.URL.Path == group:
		answer(w, metav1.APIGroup{Name: kustomization.Group, Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}}})
	case r.URL.Path == group+"/v1":
		answer(w, metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: kustomization.Resource, Kind: kustomization.Kind, Verbs: metav1.Verbs{"list", "watch"}}}})
	case !strings.HasPrefix(r.URL.Path, group), query.Get("sendInitialEvents") == "true" && !s.streams:
		w.WriteHeader(http.StatusNotFound)
	case query.Get("watch") == "true":
		if query.Get("sendInitialEvents") == "true" {
			for i := range s.count {
				_, _ = fmt.Fprintf(w, "{\"type\":\"ADDED\",\"object\":%s}\n", s.made(s.name(i), 1, 0))
			}
			send(w, "BOOKMARK", map[string]any{"kind": kustomization.Kind, "apiVersion": kustomization.Group + "/v1", "metadata": map[string]any{
				"resourceVersion": "1", "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"},
			}})
		}
		flush()
		for {
			select {
			case object := <-s.changes:
				_, _ = fmt.Fprintf(w, "{\"type\":\"MODIFIED\",\"object\":%s}\n", object)
				flush()
			case <-r.Context().Done():
				return
			}
		}
	default:
		s.page(w, query.Get("limit"), query.Get("continue"))
	}
}

func (s *bulkServer) page(w http.ResponseWriter, limit, from string) {
	size, _ := strconv.Atoi(limit)
	i, _ := strconv.Atoi(from)
	next, end := "", s.count
	if size > 0 && i+size < s.count {
		end = i + size
		next = strconv.Itoa(end)
	}
	_, _ = fmt.Fprintf(w, `{"kind":"KustomizationList","apiVersion":%q,"metadata":{"resourceVersion":"1","continue":%q},"items":[`, kustomization.Group+"/v1", next)
	for comma := ""; i < end; i++ {
		_, _ = fmt.Fprint(w, comma, s.made(s.name(i), 1, 0))
		comma = ","
	}
	_, _ = fmt.Fprint(w, "]}")
}

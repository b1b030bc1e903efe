package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

const (
	testRepo   = "https://git.example/org/app-gitops"
	testCommit = "5ce0d1a2b3c4d5e6f708192a3b4c5d6e7f809100"
)

// fakeHub answers for verdicts as api.md says. Its faults are set by tests.
type fakeHub struct {
	mu      sync.Mutex
	verdict *schema.Verdict
	changed chan struct{}

	// before, where it is set, may answer in the hub's place and returns true
	// when it did.
	before func(w http.ResponseWriter, r *http.Request) bool
	// requests are the paths asked for, in order.
	requests []string
}

func newFakeHub(v *schema.Verdict) *fakeHub {
	return &fakeHub{verdict: v, changed: make(chan struct{})}
}

func (h *fakeHub) set(v *schema.Verdict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.verdict = v
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *fakeHub) get() (*schema.Verdict, chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.verdict, h.changed
}

func (h *fakeHub) asked(path string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, p := range h.requests {
		if p == path {
			n++
		}
	}
	return n
}

func (h *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.requests = append(h.requests, r.URL.Path)
	before := h.before
	h.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	switch r.URL.Path {
	case "/api/v1/compliance":
		h.compliance(w, r)
	case "/api/v1/compliance/stream":
		h.stream(w, r)
	default:
		problem(w, http.StatusNotFound, schema.CodeNotFound, "no such route")
	}
}

func (h *fakeHub) compliance(w http.ResponseWriter, r *http.Request) {
	v, changed := h.get()
	if wait := r.URL.Query().Get("wait"); wait != "" && !v.State.Final() {
		d, err := time.ParseDuration(wait)
		if err != nil || d > 5*time.Minute {
			problem(w, http.StatusBadRequest, schema.CodeInvalidParameter, "wait is at most 5m")
			return
		}
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-changed:
		case <-t.C:
		case <-r.Context().Done():
		}
		v, _ = h.get()
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func (h *fakeHub) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := w.(http.Flusher).Flush
	alive := time.NewTicker(15 * time.Second)
	defer alive.Stop()
	for {
		v, changed := h.get()
		w.Write(eventOf(v))
		flush()
		if v.State.Final() {
			return
		}
	quiet:
		for {
			select {
			case <-changed:
				break quiet
			case <-alive.C:
				io.WriteString(w, ": keep-alive\n\n")
				flush()
			case <-r.Context().Done():
				return
			}
		}
	}
}

func eventOf(v *schema.Verdict) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return []byte("event: verdict\ndata: " + string(b) + "\n\n")
}

func problem(w http.ResponseWriter, status int, code schema.Code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(schema.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code})
}

// verdict returns a whole verdict on the test's question, with some changes.
func verdict(state schema.State, change ...func(*schema.Verdict)) *schema.Verdict {
	at := time.Date(2026, 11, 20, 9, 0, 1, 0, time.UTC)
	v := &schema.Verdict{
		Repo: testRepo, Ref: "dev", Commit: testCommit, State: state, Policy: schema.DefaultPolicy(),
		Counts:        schema.Counts{Total: 3, Compliant: 3},
		ByClusterType: map[string]schema.TypeCount{"drone": {Total: 2, Compliant: 2}, "large": {Total: 1, Compliant: 1}},
		Unfinished:    []schema.Unfinished{}, Currently: []schema.Currently{}, NearMisses: []schema.NearMiss{},
		DeadlineAt: at.Add(10 * time.Minute), EvaluatedAt: at,
	}
	if state != schema.Passed {
		v.Counts = schema.Counts{Total: 3, Compliant: 1, InProgress: 1, Unknown: 1}
		v.ByClusterType = map[string]schema.TypeCount{"drone": {Total: 2}, "large": {Total: 1, Compliant: 1}}
		v.Unfinished = []schema.Unfinished{
			{Cluster: "drone-07", Reconciler: "Kustomization/flux-system/hello", Verdict: schema.OutcomeUnknown, Reason: "no heartbeat for 6m12s", Revision: "dev@sha1:" + testCommit},
			{Cluster: "drone-01", Reconciler: "Kustomization/flux-system/hello", Verdict: schema.OutcomeInProgress, Reason: "health checks run", Revision: "dev@sha1:" + testCommit},
		}
	}
	if state == schema.Failed {
		v.Reason = "1 failed, 0 may"
		v.Counts = schema.Counts{Total: 3, Compliant: 1, InProgress: 1, Failed: 1}
		v.Unfinished[0].Verdict = schema.OutcomeFailed
		v.Unfinished[0].Reason = "HealthCheckFailed: timeout waiting for Deployment/hello"
	}
	for _, c := range change {
		c(v)
	}
	return v
}

// pipeNet is a network in memory, so that synctest's clock rules over it.
type pipeNet struct {
	mu       sync.Mutex
	listener *pipeListener
}

type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// serve puts a server on the network; the function it returns takes it off with
// all its connections.
func (n *pipeNet) serve(h http.Handler) (stop func()) {
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Hour}
	n.mu.Lock()
	n.listener = l
	n.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { srv.Serve(l) })
	return func() {
		n.mu.Lock()
		n.listener = nil
		n.mu.Unlock()
		srv.Close()
		wg.Wait()
	}
}

func (n *pipeNet) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listener
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// result is what one run of the program left.
type result struct {
	code     int
	out, err string
	took     time.Duration
}

// runner runs the program against a network in memory.
type runner struct {
	net     pipeNet
	env     map[string]string
	in      io.Reader
	version string
	// terminal makes all three streams a terminal of 80 columns.
	terminal bool
	now      func() time.Time
}

func (r *runner) run(ctx context.Context, args ...string) result {
	var out, errs bytes.Buffer
	if r.in == nil {
		r.in = strings.NewReader("")
	}
	transport := &http.Transport{DialContext: r.net.dial}
	defer transport.CloseIdleConnections()
	now := r.now
	if now == nil {
		now = time.Now
	}
	a := &app{
		version: r.version,
		env:     func(k string) string { return r.env[k] },
		streams: Streams{
			In: r.in, Out: &out, Err: &errs, InTerminal: r.terminal, OutTerminal: r.terminal, ErrTerminal: r.terminal,
			Width: func() int { return 80 },
		},
		now:  now,
		http: &http.Client{Transport: transport},
	}
	start := time.Now()
	code := a.run(ctx, append([]string{"--hub", "http://hub.test"}, args...))
	return result{code: code, out: out.String(), err: errs.String(), took: time.Since(start)}
}

// gateArgs is the question that verdict answers.
func gateArgs(more ...string) []string {
	return append([]string{"gate", "--repo", testRepo, "--ref", "dev", "--commit", testCommit}, more...)
}

func wantCode(t *testing.T, r result, want int) {
	t.Helper()
	if r.code != want {
		t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", r.code, want, r.out, r.err)
	}
}

// answer makes a fault that answers every request so.
func answer(status int, contentType, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return true
	}
}

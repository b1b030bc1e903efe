package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/auth"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

var (
	at     = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	commit = strings.Repeat("5ce0", 10)
)

// fakeHub stands for the parts of the hub behind the API. It notes what it was
// asked; fail, if set, is its answer to everything.
type fakeHub struct {
	mu    sync.Mutex
	calls []string
	fail  error

	report   *schema.Report
	question schema.Question
	pushed   string
	clusters schema.ClusterFilter
	states   schema.StateFilter
	filter   any // of the other lists
	page     schema.Page
	next     []string
	cluster  schema.Cluster
	verdict  schema.Verdict
	changed  chan struct{}
	hook     func()
}

func newFakeHub() *fakeHub {
	return &fakeHub{
		cluster: schema.Cluster{
			Name: "drone-07", Kind: schema.ClusterKubernetes, Status: schema.ClusterLive, RegisteredAt: at, LastSeen: at.In(time.FixedZone("CET", 3600)),
			Memberships: []schema.Membership{{Environment: "dev", Type: "drone"}}, HeartbeatInterval: schema.DefaultHeartbeatInterval, Epoch: 7,
			Counts: map[schema.Status]uint64{"success": 1, "failure": 0, "in_progress": 0, "pending": 0, "suspended": 0, "unknown": 0},
		},
		verdict: waiting(1),
		changed: make(chan struct{}),
	}
}

// waiting is a verdict with one unfinished reconciler of two, in progress n times.
func waiting(n int) schema.Verdict {
	return schema.Verdict{
		Repo: "https://github.com/org/platform-gitops", Ref: "dev", Path: "drone", Commit: commit, State: schema.Waiting,
		Policy: schema.DefaultPolicy(), Counts: schema.Counts{Total: n + 1, Compliant: 1, InProgress: n},
		ByClusterType: map[string]schema.TypeCount{"drone": {Total: n + 1, Compliant: 1}},
		Unfinished:    []schema.Unfinished{{Cluster: "drone-07", Reconciler: "Kustomization/flux-system/drone", Verdict: schema.OutcomeInProgress}},
		DeadlineAt:    at.Add(time.Minute), EvaluatedAt: at,
	}
}

func passed() schema.Verdict {
	v := waiting(0)
	v.State, v.Unfinished = schema.Passed, nil
	return v
}

func (f *fakeHub) called(name string) error {
	f.mu.Lock()
	f.calls = append(f.calls, name)
	hook, fail := f.hook, f.fail
	f.mu.Unlock()
	if hook != nil {
		hook()
	}
	return fail
}

func (f *fakeHub) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// change makes v the verdict and wakes who waits.
func (f *fakeHub) change(v schema.Verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.verdict = v
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeHub) Register(context.Context, string, schema.Registration) (uint64, error) {
	return 7, f.called("Register")
}

func (f *fakeHub) Report(_ context.Context, _ string, r *schema.Report) (uint64, error) {
	f.report = r
	return 7, f.called("Report")
}

func (f *fakeHub) Heartbeat(context.Context, string, schema.Heartbeat) (schema.HeartbeatAnswer, error) {
	return schema.HeartbeatAnswer{CurrentEpoch: 7}, f.called("Heartbeat")
}

func (f *fakeHub) Decommission(context.Context, string) error { return f.called("Decommission") }

func (f *fakeHub) Push(_ context.Context, e schema.Endpoint, commit string, body []byte) (schema.PushedDescriptors, error) {
	err := f.called("Push")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pushed = fmt.Sprintf("%s %s %s: %s", e.Repo, e.Ref, commit, body)
	return schema.PushedDescriptors{Items: []schema.PushedDescriptor{{Version: "1.1.0"}}, Placed: true}, err
}

func (f *fakeHub) Ask(_ context.Context, q schema.Question) (schema.Verdict, error) {
	err := f.called("Ask")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.question = q
	return f.verdict, err
}

func (f *fakeHub) Next(ctx context.Context, _ schema.Question, seen schema.Verdict) (schema.Verdict, error) {
	if err := f.called("Next"); err != nil {
		return schema.Verdict{}, err
	}
	for {
		f.mu.Lock()
		v, changed := f.verdict, f.changed
		f.mu.Unlock()
		if !v.SameAs(&seen) {
			return v, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return v, nil
		}
	}
}

func (f *fakeHub) Clusters(_ context.Context, filter schema.ClusterFilter, p schema.Page) ([]schema.Cluster, []string, error) {
	f.clusters, f.page = filter, p
	return []schema.Cluster{f.cluster}, f.next, f.called("Clusters")
}

func (f *fakeHub) Cluster(_ context.Context, name string) (schema.Cluster, error) {
	err := f.called("Cluster")
	if name != f.cluster.Name && err == nil {
		err = &schema.Refusal{Code: schema.CodeNotFound, Detail: "there is no such cluster"}
	}
	return f.cluster, err
}

func (f *fakeHub) ClusterStates(_ context.Context, filter schema.StateFilter, p schema.Page) ([]schema.ClusterState, []string, error) {
	f.states, f.page = filter, p
	row := schema.ClusterState{Cluster: "drone-07", ClusterType: "drone", Environment: "dev", Status: schema.StatusSuccess, Since: at, LastSeen: at}
	return []schema.ClusterState{row}, f.next, f.called("ClusterStates")
}

func (f *fakeHub) EnvironmentStates(_ context.Context, filter schema.StateFilter, p schema.Page) ([]schema.EnvironmentState, []string, error) {
	f.states, f.page = filter, p
	return []schema.EnvironmentState{{Deployed: []schema.Deployed{{Version: "1.1.0", Commit: commit, Status: schema.StatusSuccess, Clusters: 48}}}}, f.next, f.called("EnvironmentStates")
}

func (f *fakeHub) History(_ context.Context, filter schema.HistoryFilter, p schema.Page) ([]schema.HistoryEntry, []string, error) {
	f.filter, f.page = filter, p
	row := schema.HistoryEntry{ClusterState: schema.ClusterState{Status: schema.StatusSuccess}, Change: schema.ChangeReported, ObservedAt: at, ReceivedAt: at}
	return []schema.HistoryEntry{row}, f.next, f.called("History")
}

func (f *fakeHub) Discrepancies(_ context.Context, filter schema.DiscrepancyFilter, p schema.Page) ([]schema.Discrepancy, []string, error) {
	f.filter, f.page = filter, p
	row := schema.Discrepancy{Discrepant: true, Environments: []schema.EnvironmentVersion{{Environment: "dev", Deployed: []schema.Deployed{}}}}
	return []schema.Discrepancy{row}, f.next, f.called("Discrepancies")
}

func (f *fakeHub) Drift(_ context.Context, filter schema.DriftFilter, p schema.Page) ([]schema.Drift, []string, error) {
	f.filter, f.page = filter, p
	return []schema.Drift{{ClusterState: schema.ClusterState{Status: schema.StatusFailure}, BehindCommits: -1}}, f.next, f.called("Drift")
}

func (f *fakeHub) DORA(_ context.Context, filter schema.DORAFilter, p schema.Page) ([]schema.DORA, []string, error) {
	f.filter, f.page = filter, p
	rate := 0.25
	return []schema.DORA{{From: at, To: at, ChangeFailureRate: &rate}}, f.next, f.called("DORA")
}

func (f *fakeHub) Assignments(_ context.Context, filter schema.AssignmentFilter, p schema.Page) ([]schema.Assignment, []string, error) {
	f.filter, f.page = filter, p
	return []schema.Assignment{{Environment: "dev", ClusterType: "drone", Policies: []string{"all"}, PlannedAt: at}}, f.next, f.called("Assignments")
}

func (f *fakeHub) Assignment(_ context.Context, environment, clusterType, target string) (schema.AssignmentDetail, error) {
	f.filter = []string{environment, clusterType, target}
	return schema.AssignmentDetail{
		Assignment: schema.Assignment{Policies: []string{}, PlannedAt: at}, Files: []string{"reconciler.yaml"},
		Config: []schema.ConfigValue{{Key: "A", Overridden: []string{}}}, Violations: []schema.ConfigProblem{{Message: "bad"}},
	}, f.called("Assignment")
}

// memoryStore keeps tokens in memory.
type memoryStore struct {
	mu      sync.Mutex
	records []record.Token
}

func (m *memoryStore) Tokens(context.Context) ([]record.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.records), nil
}

func (m *memoryStore) PutToken(_ context.Context, r record.Token) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = append(m.records, r)
	return nil
}

func (m *memoryStore) RevokeToken(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.records {
		m.records[i].Revoked = m.records[i].Revoked || m.records[i].ID == id
	}
	return nil
}

// fixture is an API on a fake hub with real tokens. Every answer that it gives
// is held against the OpenAPI document.
type fixture struct {
	hub    *fakeHub
	api    *API
	tokens *auth.Tokens
	reg    *prometheus.Registry
	// bearer holds a token of each role; the agent's is for drone-07.
	bearer map[schema.Role]string
	ids    map[schema.Role]string
	router routers.Router
	health []Check
}

func newFixture(t testing.TB, change ...func(*Options)) *fixture {
	t.Helper()
	f := bareFixture(t, change...)
	for _, role := range []schema.Role{schema.RoleAdmin, schema.RoleAgent, schema.RoleReader, schema.RolePipeline} {
		req := schema.TokenRequest{Name: string(role), Role: role}
		if role == schema.RoleAgent {
			req.Cluster = "drone-07"
		}
		token, err := f.tokens.Create(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		f.bearer[role], f.ids[role] = token.Secret, token.ID
	}
	return f
}

// bareFixture has no tokens, on loopback.
func bareFixture(t testing.TB, change ...func(*Options)) *fixture {
	t.Helper()
	f := &fixture{hub: newFakeHub(), reg: prometheus.NewRegistry(), bearer: map[schema.Role]string{}, ids: map[schema.Role]string{}, router: documentRouter(t)}
	logger := slog.New(slog.DiscardHandler)
	var err error
	f.tokens, err = auth.New(auth.Options{Store: &memoryStore{}, LoopbackOnly: true, DataDir: t.TempDir(), Logger: logger, Registerer: f.reg})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.tokens.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.health = []Check{{Name: "clickhouse", OK: true}}
	o := Options{
		Ingester: f.hub, Gate: f.hub, Fleet: f.hub, Overview: f.hub, Figures: f.hub, Assignments: f.hub, Descriptors: f.hub, Tokens: f.tokens, Logger: logger, Registerer: f.reg, Gatherer: f.reg,
		Health: func(context.Context) []Check { return f.health }, Webhooks: f.hub.webhooks(),
	}
	for _, c := range change {
		c(&o)
	}
	if f.api, err = New(o); err != nil {
		t.Fatal(err)
	}
	return f
}

func document(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(openAPIDocument)
	if err != nil {
		t.Fatalf("openapi.json: %v", err)
	}
	return doc
}

var documentRouter = func() func(t testing.TB) routers.Router {
	var once sync.Once
	var router routers.Router
	return func(t testing.TB) routers.Router {
		t.Helper()
		once.Do(func() {
			openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.PlainBodyDecoder)
			var err error
			if router, err = legacy.NewRouter(document(t)); err != nil {
				t.Fatalf("openapi.json: %v", err)
			}
		})
		return router
	}
}()

// request is a request as tests write it. Without a role an admin calls.
type request struct {
	method, target string
	role           schema.Role
	header         map[string]string
	body           string
}

func (q request) build(f *fixture) *http.Request {
	method := q.method
	if method == "" {
		method = http.MethodGet
	}
	var body io.Reader
	if q.body != "" {
		body = strings.NewReader(q.body)
	}
	r := httptest.NewRequest(method, q.target, body)
	r.Host = "localhost:8080"
	role := q.role
	if role == "" {
		role = schema.RoleAdmin
	}
	if bearer := f.bearer[role]; bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if name, ok := strings.CutPrefix(q.target, hooks); ok {
		signHook(r.Header, name, q.body)
	}
	for k, v := range q.header {
		r.Header.Del(k)
		if v != "" {
			r.Header.Set(k, v)
		}
	}
	return r
}

// do serves a request and checks the answer against the document.
func (f *fixture) do(t testing.TB, q request) *httptest.ResponseRecorder {
	t.Helper()
	r := q.build(f)
	w := httptest.NewRecorder()
	f.api.Handler().ServeHTTP(w, r)
	f.hold(t, q, w)
	return w
}

// hold checks an answer against the document, where it knows the route.
func (f *fixture) hold(t testing.TB, q request, w *httptest.ResponseRecorder) {
	t.Helper()
	route, params, err := f.router.FindRoute(q.build(f))
	if err != nil || len(q.target) > 1 && strings.HasSuffix(q.target, "/") { // the router is lenient there
		return
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: q.build(f), PathParams: params, Route: route},
		Status:                 w.Code, Header: w.Header(),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	input.SetBodyBytes(plainBody(t, w))
	if err := openapi3filter.ValidateResponse(t.Context(), input); err != nil {
		t.Errorf("%s %s answered %d, which openapi.json does not allow: %v", q.method, q.target, w.Code, err)
	}
}

func plainBody(t testing.TB, w *httptest.ResponseRecorder) []byte {
	t.Helper()
	body := w.Body.Bytes()
	var err error
	switch w.Header().Get("Content-Encoding") {
	case "gzip":
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	case "zstd":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(nil); err == nil {
			body, err = z.DecodeAll(body, nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// problem reads the answer as a problem.
func problem(t testing.TB, w *httptest.ResponseRecorder) schema.Problem {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("Content-Type %q of a %d, want a problem: %s", got, w.Code, w.Body)
	}
	var p schema.Problem
	if err := json.Unmarshal(plainBody(t, w), &p); err != nil {
		t.Fatal(err)
	}
	if p.Status != w.Code {
		t.Errorf("the problem says %d, the answer %d", p.Status, w.Code)
	}
	return p
}

const goodReport = `{"epoch":7,"sequence":42,"mode":"delta","observed_at":"2026-11-20T09:00:00Z","reconcilers":[
{"kind":"Kustomization","namespace":"flux-system","name":"hello","sources":[{"type":"git","url":"https://user:secret@github.com/org/app","ref":"dev","path":"./x"}],"status":"success","applied":["dev@sha1:5ce05ce05ce05ce05ce05ce05ce05ce05ce05ce0"]}]}`

const reports = "/api/v1/clusters/drone-07/reports"

// compliance is a good question's target, with more parameters at its end.
func compliance(more string) string {
	return "/api/v1/compliance?repo=https://github.com/org/platform-gitops&ref=dev&path=drone&commit=" + commit + more
}

// serve serves a request as it is.
func serve(f *fixture, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	f.api.Handler().ServeHTTP(w, r)
	return w
}

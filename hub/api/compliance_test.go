package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

func TestQuestions(t *testing.T) {
	f := newFixture(t)
	f.hub.verdict = passed()
	w := f.do(t, request{target: "/api/v1/compliance?repo=git@GitHub.com:org/platform-gitops.git&ref=refs/heads/dev&path=./drone/&commit=" + strings.ToUpper(commit) +
		"&min_compliant=99.5%25&max_failures=2&mandatory=region+in+(eu,us),!canary&zero_targets=require:3&unknown=exclude&suspended=block&children=ignore&min_success_time=5m&progress_deadline=1h"})
	if w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	q := f.hub.question
	if diff := cmp.Diff(schema.Endpoint{Repo: "github.com/org/platform-gitops", Ref: "dev", Path: "drone"}, q.Endpoint); diff != "" {
		t.Error(diff)
	}
	if q.Repo != "GitHub.com:org/platform-gitops.git" || q.Ref != "refs/heads/dev" || q.Path != "./drone/" || q.ID != commit || q.Commit != strings.ToUpper(commit) {
		t.Errorf("as it was written: %+v", q)
	}
	policy, err := json.Marshal(q.Policy)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"min_compliant":"99.5%","max_failures":2,"mandatory":"region in (eu,us),!canary","zero_targets":"require:3","unknown":"exclude","suspended":"block","children":"ignore","min_success_time":"5m","progress_deadline":"1h"}`
	if diff := cmp.Diff(want, string(policy)); diff != "" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		labels map[string]string
		want   bool
	}{{map[string]string{"region": "eu"}, true}, {map[string]string{"region": "eu", "canary": ""}, false}, {map[string]string{"region": "ap"}, false}, {nil, false}} {
		if got := q.Mandatory(tc.labels); got != tc.want {
			t.Errorf("mandatory %v: %t", tc.labels, got)
		}
	}
	f.do(t, request{target: compliance("&mandatory=+")})
	if f.hub.question.Mandatory != nil {
		t.Error("a blank selector is one")
	}
}

// watched is a recorder that may be read while it is written.
type watched struct {
	mu sync.Mutex
	httptest.ResponseRecorder
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ResponseRecorder.Write(p)
}

func (w *watched) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ResponseRecorder.Flush()
}

// text returns what has been written, and whether it was flushed.
func (w *watched) text() (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Body.String(), w.Flushed
}

// answerTo serves a question in the background.
func answerTo(f *fixture, r *http.Request) (*watched, chan struct{}) {
	w, done := &watched{ResponseRecorder: *httptest.NewRecorder()}, make(chan struct{})
	go func() {
		defer close(done)
		f.api.Handler().ServeHTTP(w, r)
	}()
	synctest.Wait()
	return w, done
}

func TestWait(t *testing.T) {
	cases := map[string]struct {
		reason string
		start  schema.Verdict
		during func(f *fixture, cancel func())
		after  time.Duration
		state  schema.State
	}{
		"final already": {"evaluate first, then watch", passed(), nil, 0, schema.Passed},
		"a change": {"it answers at the first change", waiting(2), func(f *fixture, _ func()) {
			time.Sleep(7 * time.Second)
			f.hub.change(passed())
		}, 7 * time.Second, schema.Passed},
		"a change that is not final": {"until it changes or is final", waiting(2), func(f *fixture, _ func()) {
			time.Sleep(3 * time.Second)
			f.hub.change(waiting(1))
		}, 3 * time.Second, schema.Waiting},
		"a change of nothing": {"only the time moved", waiting(2), func(f *fixture, _ func()) {
			v := waiting(2)
			v.EvaluatedAt = v.EvaluatedAt.Add(time.Second)
			f.hub.change(v)
		}, 30 * time.Second, schema.Waiting},
		"its end": {"the verdict of that moment", waiting(2), nil, 30 * time.Second, schema.Waiting},
		"client gone": {"nobody waits any more", waiting(2), func(_ *fixture, cancel func()) {
			time.Sleep(time.Second)
			cancel()
		}, time.Second, schema.Waiting},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.hub.change(tc.start)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				started := time.Now()
				w, done := answerTo(f, request{target: compliance("&wait=30s")}.build(f).WithContext(ctx))
				if tc.during != nil {
					tc.during(f, cancel)
				}
				<-done
				if took := time.Since(started); took != tc.after {
					t.Errorf("answered after %s, want %s: %s", took, tc.after, tc.reason)
				}
				var v schema.Verdict
				if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || v.State != tc.state {
					t.Errorf("state %q, want %q: %v", v.State, tc.state, err)
				}
				if !f.api.waiting.TryAcquire(10_000) {
					t.Error("it still counts as waiting")
				}
			})
		})
	}
}

const streamTarget = "/api/v1/compliance/stream?repo=https://github.com/org/platform-gitops&ref=dev&path=drone&commit="

// events takes a stream apart: each event's name and state, and comments.
func events(t *testing.T, body string) []string {
	t.Helper()
	var out []string
	for block := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		head, data, isEvent := strings.Cut(block, "\ndata: ")
		if !isEvent {
			out = append(out, head)
			continue
		}
		var v struct {
			State string `json:"state"`
			Code  string `json:"code"`
		}
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			t.Fatalf("%s: %v", block, err)
		}
		out = append(out, strings.TrimPrefix(head, "event: ")+" "+v.State+v.Code)
	}
	return out
}

func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		w, done := answerTo(f, request{target: streamTarget + commit}.build(f))
		sofar, flushed := w.text()
		if got := w.Header().Get("Content-Type"); got != "text/event-stream" || !flushed {
			t.Errorf("Content-Type %q, flushed %t", got, flushed)
		}
		if diff := cmp.Diff([]string{"verdict waiting"}, events(t, sofar)); diff != "" {
			t.Errorf("at once: %s", diff)
		}
		time.Sleep(35 * time.Second) // two keep-alives
		f.hub.change(waiting(3))
		time.Sleep(14 * time.Second)
		f.hub.change(passed())
		<-done
		want := []string{"verdict waiting", ": keep-alive", ": keep-alive", "verdict waiting", "verdict passed"}
		if diff := cmp.Diff(want, events(t, w.Body.String())); diff != "" {
			t.Error(diff)
		}
		if !f.api.waiting.TryAcquire(10_000) {
			t.Error("it still counts as waiting")
		}
	})
}

func TestStreamEnds(t *testing.T) {
	cases := map[string]struct {
		reason string
		during func(f *fixture, cancel func())
		want   []string
	}{
		"client gone": {"nobody reads", func(_ *fixture, cancel func()) { cancel() }, []string{"verdict waiting"}},
		"a fault": {"the client is told, and connects again", func(f *fixture, _ func()) {
			f.hub.mu.Lock()
			f.hub.fail = &schema.Refusal{Code: schema.CodeUnavailable, Detail: "the store is down", Err: errors.New("secret")}
			f.hub.mu.Unlock()
			time.Sleep(keepAlive)
		}, []string{"verdict waiting", ": keep-alive", "problem unavailable"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w, done := answerTo(f, request{target: streamTarget + commit}.build(f).WithContext(ctx))
				tc.during(f, cancel)
				<-done
				if diff := cmp.Diff(tc.want, events(t, w.Body.String())); diff != "" {
					t.Errorf("%s\n%s", tc.reason, diff)
				}
				if strings.Contains(w.Body.String(), "secret") {
					t.Error("the cause went out")
				}
			})
		})
	}
}

func TestTooManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *Options) { o.MaxWaiting = 1 })
		_, done := answerTo(f, request{target: streamTarget + commit}.build(f))
		for _, target := range []string{compliance("&wait=10s"), streamTarget + commit} {
			w := f.do(t, request{target: target})
			if p := problem(t, w); p.Code != schema.CodeOverloaded || w.Header().Get("Retry-After") == "" {
				t.Errorf("%s: %d %s", target, w.Code, p.Code)
			}
		}
		if w := f.do(t, request{target: compliance("")}); w.Code != http.StatusOK {
			t.Errorf("without waiting: %d", w.Code)
		}
		f.hub.change(passed())
		<-done
	})
}

// TestStreamOverAConnection reads events as they come, through a real server.
func TestStreamOverAConnection(t *testing.T) {
	f := newFixture(t)
	server := httptest.NewServer(f.api.Handler())
	defer server.Close()
	r := request{target: streamTarget + commit}.build(f)
	r2, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+streamTarget+commit, nil)
	if err != nil {
		t.Fatal(err)
	}
	r2.Header = r.Header
	resp, err := server.Client().Do(r2)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 64<<10)
	n, err := resp.Body.Read(buf)
	if err != nil || !strings.HasPrefix(string(buf[:n]), "event: verdict\n") {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	f.hub.change(passed())
	var rest strings.Builder
	for {
		n, err := resp.Body.Read(buf)
		rest.Write(buf[:n])
		if err != nil {
			break
		}
	}
	if got := events(t, rest.String()); got[len(got)-1] != "verdict passed" {
		t.Error(got)
	}
}

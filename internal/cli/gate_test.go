package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// grace is how much longer than its timeout a gate may take.
const grace = 2 * time.Second

// times makes a fault of the first n requests.
func times(n int, fault func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	left := make(chan struct{}, n)
	for range n {
		left <- struct{}{}
	}
	return func(w http.ResponseWriter, r *http.Request) bool {
		select {
		case <-left:
			return fault(w, r)
		default:
			return false
		}
	}
}

// answeredOnce answers the first request with a stream that ends after one
// waiting verdict, and makes a fault of all others.
func answeredOnce(fault func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	first := times(1, answer(200, "text/event-stream", string(eventOf(verdict(schema.Waiting)))))
	return func(w http.ResponseWriter, r *http.Request) bool { return first(w, r) || fault(w, r) }
}

// onPath makes a fault of one path's requests.
func onPath(path string, fault func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool { return r.URL.Path == path && fault(w, r) }
}

// silent accepts and says nothing.
func silent(_ http.ResponseWriter, r *http.Request) bool {
	<-r.Context().Done()
	return true
}

// trickle opens a stream, says what it is given, and then one piece every five
// seconds for ever.
func trickle(first, piece string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, first)
		t := time.NewTicker(5 * time.Second)
		defer t.Stop()
		for {
			w.(http.Flusher).Flush()
			select {
			case <-t.C:
				io.WriteString(w, piece)
			case <-r.Context().Done():
				return true
			}
		}
	}
}

// slowBody promises a long body and sends a byte of it every five seconds.
func slowBody(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "100000")
	w.Write([]byte("{"))
	t := time.NewTicker(5 * time.Second)
	defer t.Stop()
	for {
		w.(http.Flusher).Flush()
		select {
		case <-t.C:
			w.Write([]byte(" "))
		case <-r.Context().Done():
			return true
		}
	}
}

const htmlPage = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"

// TestGateExit holds every way a gate ends against its exit code and its time.
func TestGateExit(t *testing.T) {
	half := `{"repo":"` + testRepo + `","ref":"dev","path":"","commit":"` + testCommit + `","state":"passed","coun`
	const (
		streamPath = "/api/v1/compliance/stream"
		pollPath   = "/api/v1/compliance"
	)
	cases := map[string]struct {
		reason  string
		verdict *schema.Verdict
		fault   func(http.ResponseWriter, *http.Request) bool
		args    []string
		want    int
		// within bounds how long it takes; zero is the timeout of 2 minutes.
		within time.Duration
		least  time.Duration
		says   string
	}{
		"passed":              {verdict: verdict(schema.Passed), want: 0, within: time.Second},
		"failed":              {verdict: verdict(schema.Failed), want: 1, within: time.Second, says: ""},
		"waiting":             {verdict: verdict(schema.Waiting), want: 3, says: "still waiting when the time was over"},
		"no wait passed":      {verdict: verdict(schema.Passed), args: []string{"--no-wait"}, want: 0, within: time.Second},
		"no wait failed":      {verdict: verdict(schema.Failed), args: []string{"--no-wait"}, want: 1, within: time.Second},
		"no wait waiting":     {verdict: verdict(schema.Waiting), args: []string{"--no-wait"}, want: 3, within: time.Second, says: "still waiting"},
		"no wait unavailable": {fault: answer(503, "text/plain", "down"), args: []string{"--no-wait"}, want: 4, within: time.Second},
		"no wait silent":      {fault: silent, args: []string{"--no-wait"}, want: 4, within: 31 * time.Second},
		"unauthenticated": {
			reason: "a refusal does not pass by waiting", want: 4, within: time.Second, says: "unauthenticated",
			fault: func(w http.ResponseWriter, _ *http.Request) bool {
				problem(w, 401, schema.CodeUnauthenticated, "no token")
				return true
			},
		},
		"forbidden": {
			want: 4, within: time.Second,
			fault: func(w http.ResponseWriter, _ *http.Request) bool {
				problem(w, 403, schema.CodeForbidden, "readers only")
				return true
			},
		},
		"refused after an answer": {
			reason: "access refused is 4 even when a verdict was had", verdict: verdict(schema.Waiting), want: 4, within: 90 * time.Second,
			fault: answeredOnce(func(w http.ResponseWriter, _ *http.Request) bool {
				problem(w, 401, schema.CodeUnauthenticated, "revoked")
				return true
			}),
		},
		"forbidden after an answer": {
			want: 4, within: 5 * time.Second,
			fault: answeredOnce(func(w http.ResponseWriter, _ *http.Request) bool {
				problem(w, 403, schema.CodeForbidden, "no longer")
				return true
			}),
		},
		"bad request": {
			want: 2, within: time.Second, says: "invalid_parameter",
			fault: func(w http.ResponseWriter, _ *http.Request) bool {
				problem(w, 400, schema.CodeInvalidParameter, "mandatory is no selector")
				return true
			},
		},
		"never up":             {fault: answer(503, "text/plain", "no backend"), want: 4, says: "503"},
		"silent":               {reason: "accepts and says nothing", fault: silent, want: 4},
		"silent, short":        {fault: silent, args: []string{"--timeout", "3s"}, want: 4, within: 3 * time.Second, says: "did not answer"},
		"keep-alives only":     {fault: trickle("", ": keep-alive\n\n"), want: 4},
		"bytes without a line": {fault: trickle("", "x"), want: 4},
		"slow body":            {fault: slowBody, want: 4},
		"keep-alives after an answer": {
			reason: "a stream that only lives is still waiting",
			fault:  trickle(string(eventOf(verdict(schema.Waiting))), ": keep-alive\n\n"), want: 3,
		},
		"bytes after an answer": {fault: trickle(string(eventOf(verdict(schema.Waiting))), "x"), want: 3},
		"lost after an answer": {
			verdict: verdict(schema.Waiting), want: 3, says: "still waiting when the hub was lost",
			fault: answeredOnce(answer(502, "text/html", htmlPage)),
		},
		"page of a proxy":       {fault: answer(200, "text/html", htmlPage), want: 4, says: `a web page titled "502 Bad Gateway"`},
		"page with 502":         {fault: answer(502, "text/html", htmlPage), want: 4},
		"page of another site":  {reason: "not a hub at all: told at once", fault: answer(404, "text/html", htmlPage), want: 4, within: 2 * time.Second, says: "404"},
		"redirected elsewhere":  {fault: answer(302, "text/html", ""), want: 4, within: 2 * time.Second},
		"half a verdict":        {fault: answer(200, "application/json", half), want: 4, says: "not whole"},
		"stream cut in a event": {fault: answer(200, "text/event-stream", "event: verdict\ndata: "+half+"\n"), want: 4},
		"event without its end": {
			reason: "the whole verdict, but the blank line that ends the event is missing",
			fault:  answer(200, "text/event-stream", strings.TrimSuffix(string(eventOf(verdict(schema.Passed))), "\n")), want: 4,
		},
		"event of another name": {
			fault: answer(200, "text/event-stream", strings.Replace(string(eventOf(verdict(schema.Passed))), "event: verdict", "event: example", 1)), want: 4,
		},
		"no stream": {
			reason: "a proxy that knows no streams: the long poll serves", verdict: verdict(schema.Passed),
			fault: onPath(streamPath, answer(404, "text/plain", "404 page not found")), want: 0, within: 2 * time.Second,
		},
		"stream held back": {
			reason: "a proxy that buffers", verdict: verdict(schema.Passed), fault: onPath(streamPath, silent), want: 0, within: 35 * time.Second,
		},
		"stream of keep-alives": {
			verdict: verdict(schema.Passed), fault: onPath(streamPath, trickle("", ": keep-alive\n\n")), want: 0, within: 35 * time.Second,
		},
		"no poll": {verdict: verdict(schema.Passed), fault: onPath(pollPath, silent), want: 0, within: time.Second},
		"unavailable for a while": {
			verdict: verdict(schema.Passed), want: 0, within: 31 * time.Second,
			fault: times(5, func(w http.ResponseWriter, _ *http.Request) bool {
				problem(w, 503, schema.CodeUnavailable, "the store is down")
				return true
			}),
		},
		"asks to wait": {
			verdict: verdict(schema.Passed), want: 0, within: 37 * time.Second, least: 30 * time.Second,
			fault: times(1, func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Retry-After", "30")
				problem(w, 429, schema.CodeOverloaded, "busy")
				return true
			}),
		},
		"asks to wait too long": {
			reason: "no Retry-After makes a gate miss the end of its timeout", want: 4,
			fault: func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Retry-After", "86400")
				problem(w, 503, schema.CodeUnavailable, "maintenance")
				return true
			},
		},
		"page for a while": {verdict: verdict(schema.Passed), fault: times(3, answer(200, "text/html", htmlPage)), want: 0, within: 8 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r runner
				h := newFakeHub(c.verdict)
				h.before = c.fault
				if c.verdict == nil && c.fault == nil {
					t.Fatal("the case has neither verdict nor fault")
				}
				defer r.net.serve(h)()
				got := r.run(t.Context(), gateArgs(append([]string{"--timeout", "2m"}, c.args...)...)...)
				wantCode(t, got, c.want)
				within := c.within
				if within == 0 {
					within = 2*time.Minute + grace
				}
				if got.took > within || got.took < c.least {
					t.Errorf("it took %s, want %s to %s", got.took, c.least, within)
				}
				if !strings.Contains(got.err, c.says) {
					t.Errorf("stderr does not say %q:\n%s", c.says, got.err)
				}
			})
		})
	}
}

// TestGateFalseGreen serves verdicts that say passed and must not open a gate,
// on the stream and on the poll.
func TestGateFalseGreen(t *testing.T) {
	type change = func(*schema.Verdict)
	raw := func(v *schema.Verdict) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	without := func(member string) string {
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(raw(verdict(schema.Passed))), &m); err != nil {
			t.Fatal(err)
		}
		delete(m, member)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	passed := func(c change) string { return raw(verdict(schema.Passed, c)) }
	cases := map[string]string{
		"another commit":   passed(func(v *schema.Verdict) { v.Commit = strings.Repeat("a", 40) }),
		"a commit's start": passed(func(v *schema.Verdict) { v.Commit = testCommit[:12] }),
		"no commit":        without("commit"),
		"another repo":     passed(func(v *schema.Verdict) { v.Repo = "https://git.example/org/other" }),
		"another ref":      passed(func(v *schema.Verdict) { v.Ref = "stage" }),
		"another path":     passed(func(v *schema.Verdict) { v.Path = "drone" }),
		"another policy":   passed(func(v *schema.Verdict) { v.Policy.MaxFailures = 7 }),
		"no policy":        without("policy"),
		"no counts":        without("counts"),
		"no time":          without("evaluated_at"),
		"zero time":        passed(func(v *schema.Verdict) { v.EvaluatedAt = time.Time{} }),
		"counts that lie":  passed(func(v *schema.Verdict) { v.Counts.Total = 9 }),
		"negative counts":  passed(func(v *schema.Verdict) { v.Counts.Compliant, v.Counts.Pending = 4, -1 }),
		"nobody counted":   passed(func(v *schema.Verdict) { v.Counts = schema.Counts{} }),
		"too many failed":  passed(func(v *schema.Verdict) { v.Counts = schema.Counts{Total: 3, Compliant: 2, Failed: 1} }),
		"state in capital": passed(func(v *schema.Verdict) { v.State = "Passed" }),
		"another state":    passed(func(v *schema.Verdict) { v.State = "passed " }),
		"only a state":     `{"state":"passed","commit":"` + testCommit + `"}`,
		"a list":           "[" + raw(verdict(schema.Passed)) + "]",
		"null":             "null",
		"cut by a brace":   strings.TrimSuffix(raw(verdict(schema.Passed)), "}"),
		"something behind": raw(verdict(schema.Passed)) + raw(verdict(schema.Waiting)),
	}
	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r runner
				h := newFakeHub(nil)
				h.before = func(w http.ResponseWriter, r *http.Request) bool {
					if strings.HasSuffix(r.URL.Path, "/stream") {
						return answer(200, "text/event-stream", "event: verdict\ndata: "+body+"\n\n")(w, r)
					}
					return answer(200, "application/json", body)(w, r)
				}
				defer r.net.serve(h)()
				got := r.run(t.Context(), gateArgs("--timeout", "30s", "--max-failures", "0")...)
				wantCode(t, got, exitNoAnswer)
				if h.asked("/api/v1/compliance") == 0 || h.asked("/api/v1/compliance/stream") == 0 {
					t.Errorf("both ways should have been tried: %v", h.requests)
				}
				if got.out != "" {
					t.Errorf("a verdict that is not trusted was printed:\n%s", got.out)
				}
			})
		})
	}
}

// TestGateSameQuestion lets harmless differences of writing through.
func TestGateSameQuestion(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		change func(*schema.Verdict)
	}{
		"upper case": {args: []string{"--commit", strings.ToUpper(testCommit)}, change: func(*schema.Verdict) {}},
		"user info":  {reason: "it stays here", args: []string{"--repo", "https://bot:hunter2@git.example/org/app-gitops.git"}, change: func(*schema.Verdict) {}},
		"ssh form":   {args: []string{"--repo", "git@git.example:org/app-gitops"}, change: func(*schema.Verdict) {}},
		"ssh, a number": {
			reason: "the hub shows it without the user", args: []string{"--repo", "git@git.example:2222/app"},
			change: func(v *schema.Verdict) { v.Repo = "git.example:/2222/app" },
		},
		"a clean ref": {args: []string{"--ref", "refs/heads/dev"}, change: func(*schema.Verdict) {}},
		"the policy": {
			args: []string{"--min-compliant", "95.0", "--progress-deadline", "600s", "--mandatory", "tier in (canary)"},
			change: func(v *schema.Verdict) {
				v.Policy.MinCompliant, _ = schema.ParsePercent("95%")
				v.Policy.Mandatory = "tier=canary"
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r runner
				var query string
				h := newFakeHub(verdict(schema.Passed, c.change))
				h.before = func(_ http.ResponseWriter, r *http.Request) bool { query = r.URL.RawQuery; return false }
				defer r.net.serve(h)()
				got := r.run(t.Context(), gateArgs(c.args...)...)
				wantCode(t, got, exitDone)
				if strings.Contains(query+got.err+got.out, "hunter2") {
					t.Error("a password left the machine or was printed")
				}
			})
		})
	}
}

// TestGateRestart takes the hub away for a while, twice.
func TestGateRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r runner
		h := newFakeHub(verdict(schema.Waiting))
		stop := r.net.serve(h)
		done := make(chan result)
		go func() { done <- r.run(t.Context(), gateArgs()...) }()
		for range 2 {
			time.Sleep(time.Minute)
			stop()
			time.Sleep(time.Minute)
			stop = r.net.serve(h)
		}
		time.Sleep(time.Minute)
		h.set(verdict(schema.Passed))
		got := <-done
		stop()
		wantCode(t, got, exitDone)
		for _, want := range []string{"waiting: 1 of 3 compliant", "connection refused; trying again", "the hub http://hub.test answers", "passed: 3 of 3 compliant"} {
			if !strings.Contains(got.err, want) {
				t.Errorf("stderr does not say %q:\n%s", want, got.err)
			}
		}
		for _, line := range strings.Split(got.err, "\n") {
			// The hub is back at 2:00 and 4:00; the longest pause is 15 seconds.
			if strings.Contains(line, "answers") && line[:8] > "00:02:16" && line[:8] < "00:04:00" {
				t.Errorf("it found out late that the hub is back: %s", line)
			}
		}
		if n := strings.Count(got.err, "connection refused"); n != 2 {
			t.Errorf("an outage is told %d times, want once for each of 2:\n%s", n, got.err)
		}
	})
}

// TestGateStreamEnds reconnects without a word when streams end now and then.
func TestGateStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r runner
		h := newFakeHub(nil)
		h.before = times(20, answer(200, "text/event-stream", "retry: 4000\n\n"+string(eventOf(verdict(schema.Waiting)))))
		h.verdict = verdict(schema.Passed)
		defer r.net.serve(h)()
		got := r.run(t.Context(), gateArgs()...)
		wantCode(t, got, exitDone)
		if strings.Contains(got.err, "no answer") || got.took < 80*time.Second {
			t.Errorf("20 streams that ended took %s:\n%s", got.took, got.err)
		}
		if h.asked("/api/v1/compliance") > 0 {
			t.Error("a stream that works was given up")
		}
	})
}

// TestGatePollIsGentle counts the questions to a hub that never holds back.
func TestGatePollIsGentle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r runner
		h := newFakeHub(verdict(schema.Waiting))
		h.before = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/stream") {
				return answer(501, "text/plain", "no")(w, r)
			}
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(verdict(schema.Waiting))
			return true
		}
		defer r.net.serve(h)()
		got := r.run(t.Context(), gateArgs("--timeout", "60s")...)
		wantCode(t, got, exitWaiting)
		if n := h.asked("/api/v1/compliance"); n > 61 {
			t.Errorf("%d questions in a minute", n)
		}
		if n := strings.Count(got.err, "waiting: "); n != 1 {
			t.Errorf("the same verdict was told %d times:\n%s", n, got.err)
		}
	})
}

// TestGateInterrupted ends at once when its context does.
func TestGateInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		fault  func(http.ResponseWriter, *http.Request) bool
		want   int
	}{
		"answered": {want: exitWaiting},
		"silent":   {fault: silent, want: exitNoAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r runner
				h := newFakeHub(verdict(schema.Waiting))
				h.before = c.fault
				defer r.net.serve(h)()
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(10*time.Second, cancel)
				got := r.run(ctx, gateArgs()...)
				wantCode(t, got, c.want)
				if got.took > 11*time.Second || !strings.Contains(got.err, "interrupted") {
					t.Errorf("after %s:\n%s", got.took, got.err)
				}
			})
		})
	}
}

// TestGateRealRestart closes a real listener and opens it again on its port.
func TestGateRealRestart(t *testing.T) {
	h := newFakeHub(verdict(schema.Waiting))
	first := make(chan struct{}, 1)
	h.before = func(http.ResponseWriter, *http.Request) bool {
		select {
		case first <- struct{}{}:
		default:
		}
		return false
	}
	srv := httptest.NewServer(h)
	address := srv.Listener.Addr().String()
	var out, errs strings.Builder
	done := make(chan int)
	go func() {
		done <- Main(t.Context(), "", append(gateArgs("--timeout", "60s", "-o", "json"), "--hub", "http://"+address),
			func(string) string { return "" }, Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	}()
	<-first
	srv.CloseClientConnections()
	srv.Listener.Close()
	h.set(verdict(schema.Passed))
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("the port was taken meanwhile: %v", err)
	}
	again := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go again.Serve(l)
	defer again.Close()
	if code := <-done; code != exitDone {
		t.Fatalf("exit code %d\n%s", code, errs.String())
	}
	var v schema.Verdict
	if err := json.Unmarshal([]byte(out.String()), &v); err != nil || v.State != schema.Passed || v.Commit != testCommit {
		t.Errorf("stdout is not the verdict: %v\n%s", err, out.String())
	}
}

// TestGateManyChanges runs a fleet of a thousand through, each change a verdict.
func TestGateManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r runner
		at := func(n int) *schema.Verdict {
			state := schema.Waiting
			if n == 1000 {
				state = schema.Passed
			}
			return verdict(state, func(v *schema.Verdict) {
				v.Counts = schema.Counts{Total: 1000, Compliant: n, Pending: 1000 - n}
				v.Unfinished = nil
				for i := n; i < 1000; i++ {
					v.Unfinished = append(v.Unfinished, schema.Unfinished{Cluster: fmt.Sprintf("c-%04d", i), Reconciler: "Kustomization/flux-system/x", Verdict: schema.OutcomePending})
				}
			})
		}
		h := newFakeHub(at(0))
		defer r.net.serve(h)()
		go func() {
			for n := 100; n <= 1000; n += 100 {
				time.Sleep(time.Second)
				h.set(at(n))
			}
		}()
		got := r.run(t.Context(), gateArgs()...)
		wantCode(t, got, exitDone)
		if n := strings.Count(got.err, "\n"); n != 11 {
			t.Errorf("%d lines for 11 verdicts:\n%s", n, got.err)
		}
		if want := "200 of 1000 compliant, " + strconv.Itoa(800) + " pending; c-0100 Kustomization/flux-system/x: pending → done;"; !strings.Contains(got.err, want) {
			t.Errorf("stderr does not say %q:\n%s", want, got.err)
		}
	})
}

// TestGatePollFindsHub tells soon that a hub is back, although nothing changes
// and the hub would hold an answer back.
func TestGatePollFindsHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r runner
		h := newFakeHub(verdict(schema.Waiting))
		back := time.Now().Add(time.Minute)
		h.before = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/stream") || time.Now().Before(back) {
				return answer(503, "text/plain", "no")(w, r)
			}
			return false
		}
		defer r.net.serve(h)()
		got := r.run(t.Context(), gateArgs("--timeout", "5m")...)
		wantCode(t, got, exitWaiting)
		_, line, found := strings.Cut(got.err, "\n00:01:") // two tries of at most 15 seconds each
		if !found || !strings.Contains(line, "the hub http://hub.test answers") || line[:2] > "31" {
			t.Errorf("it was not told soon that the hub is back:\n%s", got.err)
		}
	})
}

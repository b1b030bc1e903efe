package api

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/schema"
)

func TestFaultsOfOthersBecomeProblems(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		status int
		code   schema.Code
		retry  string
	}{
		"invalid":        {"found late", &schema.Invalid{Code: schema.CodeInvalidField, Pointer: "/x", Detail: "no"}, 400, schema.CodeInvalidField, ""},
		"not registered": {"no epoch yet", &schema.Refusal{Code: schema.CodeNotRegistered}, 404, schema.CodeNotRegistered, ""},
		"future epoch":   {"never issued", &schema.Refusal{Code: schema.CodeFutureEpoch}, 409, schema.CodeFutureEpoch, ""},
		"decommissioned": {"taken out", &schema.Refusal{Code: schema.CodeDecommissioned}, 410, schema.CodeDecommissioned, ""},
		"forbidden":      {"a destination that is not in reports_for", &schema.Refusal{Code: schema.CodeForbidden}, 403, schema.CodeForbidden, ""},
		"store down":     {"try again", &schema.Refusal{Code: schema.CodeUnavailable, Err: errors.New("secret dial tcp")}, 503, schema.CodeUnavailable, "5"},
		"queue full":     {"try again soon", &schema.Refusal{Code: schema.CodeOverloaded}, 429, schema.CodeOverloaded, "1"},
		"too late":       {"a context's error", context.DeadlineExceeded, 503, schema.CodeUnavailable, "5"},
		"anything else":  {"our own fault", errors.New("secret password"), 500, schema.CodeInternal, ""},
		"unknown code":   {"a code without a status is our fault", &schema.Refusal{Code: "secret", Detail: "secret"}, 500, schema.CodeInternal, ""},
		"internal":       {"its detail is for the log", &schema.Refusal{Code: schema.CodeInternal, Detail: "secret"}, 500, schema.CodeInternal, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			f := newFixture(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			f.hub.fail = tc.err
			w := f.do(t, request{method: "POST", target: reports, body: goodReport, header: map[string]string{"X-Request-Id": "my-id"}})
			p := problem(t, w)
			if w.Code != tc.status || p.Code != tc.code || w.Header().Get("Retry-After") != tc.retry {
				t.Errorf("%d %s, Retry-After %q, want %d %s %q, because %s", w.Code, p.Code, w.Header().Get("Retry-After"), tc.status, tc.code, tc.retry, tc.reason)
			}
			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("the cause went out: %s", w.Body)
			}
			if logged := strings.Contains(log.String(), "request_id=my-id"); logged != (tc.status >= 500) {
				t.Errorf("logged: %t\n%s", logged, log.String())
			}
		})
	}
}

func TestPanicsBecomeProblems(t *testing.T) {
	f := newFixture(t)
	f.hub.hook = func() { panic("secret") }
	w := f.do(t, request{method: "POST", target: reports, body: goodReport})
	if p := problem(t, w); p.Code != schema.CodeInternal || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !f.api.bodies.TryAcquire(128 << 20) {
		t.Error("the body's memory was not given back")
	}
	f.api.bodies.Release(128 << 20)
	if got := counter(t, f, "landfall_api_panics_total"); got != 1 {
		t.Errorf("%v panics were counted", got)
	}
	f.hub.hook = func() { panic(http.ErrAbortHandler) }
	defer func() {
		if recover() != http.ErrAbortHandler { //nolint:errorlint // a panic's value
			t.Error("http.ErrAbortHandler must pass")
		}
	}()
	f.do(t, request{method: "POST", target: reports, body: goodReport})
}

func TestRequestIDs(t *testing.T) {
	for given, kept := range map[string]bool{"abc-1.2_X": true, "": false, "with space": false, "new\nline": false, strings.Repeat("a", 129): false} {
		f := newFixture(t)
		w := f.do(t, request{target: "/healthz", header: map[string]string{"X-Request-Id": given}})
		if got := w.Header().Get("X-Request-Id"); got == "" || (got == given) != kept {
			t.Errorf("%q became %q", given, got)
		}
	}
}

func TestMetricsCountByRoute(t *testing.T) {
	f := newFixture(t)
	f.do(t, request{method: "POST", target: reports, body: goodReport})
	f.do(t, request{method: "POST", target: reports, body: `{}`})
	f.do(t, request{target: "/nowhere/" + strings.Repeat("x", 100)})
	f.do(t, request{method: "BREW", target: "/nowhere"})
	text := f.do(t, request{target: "/metrics"}).Body.String()
	for _, want := range []string{
		`landfall_api_requests_total{code="202",method="POST",route="/api/v1/clusters/{cluster}/reports"} 1`,
		`landfall_api_requests_total{code="400",method="POST",route="/api/v1/clusters/{cluster}/reports"} 1`,
		`landfall_api_requests_total{code="404",method="GET",route="unmatched"} 1`,
		`landfall_api_requests_total{code="405",method="other",route="unmatched"} 1`,
		`landfall_api_requests_in_flight 1`,
		`landfall_api_request_duration_seconds_count{method="POST",route="/api/v1/clusters/{cluster}/reports"} 2`,
		`landfall_api_waiting 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("lacks %s", want)
		}
	}
	if got, want := counter(t, f, "landfall_api_request_body_bytes_total"), float64(len(goodReport)+2); got != want {
		t.Errorf("%v bytes, want %v", got, want)
	}
}

// counter returns the sum of a counter's values.
func counter(t *testing.T, f *fixture, name string) float64 {
	t.Helper()
	families, err := f.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}

func TestHead(t *testing.T) {
	f := newFixture(t)
	for _, target := range []string{"/healthz", "/api/v1/clusters", streamTarget + commit} {
		if w := serve(f, request{method: http.MethodHead, target: target}.build(f)); w.Code != http.StatusOK {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}

func TestReadiness(t *testing.T) {
	f := newFixture(t)
	if w := f.do(t, request{target: "/readyz"}); w.Code != http.StatusOK || w.Body.String() != `{"status":"ready","checks":[{"name":"clickhouse","ok":true,"detail":""}]}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	f.health = append(f.health, Check{Name: "tokens", Detail: "never read"})
	if w := f.do(t, request{target: "/readyz"}); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"status":"not ready"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := f.do(t, request{target: "/healthz"}); w.Code != http.StatusOK {
		t.Errorf("liveness is not readiness: %d", w.Code)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := New(Options{})
	for _, name := range []string{"Ingester", "Gate", "Fleet", "Tokens", "Health", "Logger", "Registerer", "Gatherer"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is missing and the error does not say so: %v", name, err)
		}
	}
	f := newFixture(t)
	_, err = New(Options{
		Ingester: f.hub, Gate: f.hub, Fleet: f.hub, Tokens: f.tokens, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(), Gatherer: f.reg,
		Health: func(context.Context) []Check { return nil }, MaxDecoding: MaxBody - 1,
	})
	if err == nil {
		t.Error("MaxDecoding is less than a body, and nobody minds")
	}
}

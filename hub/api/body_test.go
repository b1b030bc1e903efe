package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/landfall-hub/landfall/schema"
)

// spaces is a reader of n spaces, which JSON allows before a value.
func spaces(n int64) io.Reader { return io.LimitReader(blank{}, n) }

type blank struct{}

func (blank) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func gzipOf(t testing.TB, r io.Reader) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := io.Copy(w, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zstdOf(t testing.TB, r io.Reader, options ...zstd.EOption) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := zstd.NewWriter(&buf, options...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestBodiesThatAreRead(t *testing.T) {
	cases := map[string]struct {
		reason   string
		encoding string
		body     []byte
		media    string
	}{
		"plain":           {"the common case", "", []byte(goodReport), "application/json"},
		"charset":         {"UTF-8 is what JSON is", "identity", []byte(goodReport), "application/json; charset=UTF-8"},
		"gzip":            {"everyone can", "gzip", gzipOf(t, strings.NewReader(goodReport)), "application/json"},
		"zstd":            {"what agents send", "zstd", zstdOf(t, strings.NewReader(goodReport)), "application/json"},
		"full window":     {"the best level's window, content up to the limit", "zstd", zstdOf(t, io.MultiReader(strings.NewReader(goodReport), spaces(MaxBody-int64(len(goodReport)))), zstd.WithWindowSize(maxWindow)), "application/json"},
		"16 MiB to a bit": {"the limit itself is allowed", "", append([]byte(goodReport), bytes.Repeat([]byte{' '}, MaxBody-len(goodReport))...), "application/json"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.do(t, request{method: "POST", target: reports, body: string(tc.body), header: map[string]string{"Content-Encoding": tc.encoding, "Content-Type": tc.media}})
			if w.Code != http.StatusAccepted {
				t.Fatalf("status %d, though %s: %s", w.Code, tc.reason, w.Body)
			}
			rec := f.hub.report.Reconcilers[0]
			if got := rec.Sources[0].URL; got != "https://github.com/org/app" {
				t.Errorf("the report was not normalized: %s", got)
			}
			if !f.api.bodies.TryAcquire(128 << 20) {
				t.Error("the body's memory was not given back")
			}
		})
	}
}

// TestBodiesThatAreTooLong sends them over a real connection.
func TestBodiesThatAreTooLong(t *testing.T) {
	const long = 17 << 20
	var member bytes.Buffer
	empty := gzip.NewWriter(&member)
	empty.Extra = make([]byte, 60_000)
	if err := empty.Close(); err != nil {
		t.Fatal(err)
	}
	tiny := member.Bytes()
	cases := map[string]struct {
		reason   string
		encoding string
		body     io.Reader
		length   int64
		code     schema.Code
	}{
		"17 MiB told":       {"Content-Length says it", "", spaces(long), long, schema.CodeBodyTooLarge},
		"17 MiB chunked":    {"it is noticed on the way", "", spaces(long), -1, schema.CodeBodyTooLarge},
		"gzip bomb":         {"1 GiB in 1 MiB", "gzip", bytes.NewReader(bytes.Repeat(gzipOf(t, spaces(32<<20)), 32)), -1, schema.CodeBodyTooLarge},
		"zstd bomb":         {"1 GiB in 100 KiB", "zstd", bytes.NewReader(bytes.Repeat(zstdOf(t, spaces(32<<20)), 32)), -1, schema.CodeBodyTooLarge},
		"zstd window":       {"64 MiB of memory for one body", "zstd", bytes.NewReader(zstdOf(t, spaces(15<<20), zstd.WithWindowSize(64<<20))), -1, schema.CodeBodyTooLarge},
		"endless nothing":   {"empty gzip members decompress to nothing for ever", "gzip", io.LimitReader(&repeat{of: tiny}, long), -1, schema.CodeBodyTooLarge},
		"cut gzip":          {"its end is missing", "gzip", bytes.NewReader(gzipOf(t, strings.NewReader(goodReport))[:100]), -1, schema.CodeInvalidJSON},
		"cut zstd":          {"its end is missing", "zstd", bytes.NewReader(zstdOf(t, strings.NewReader(goodReport))[:100]), -1, schema.CodeInvalidJSON},
		"empty gzip":        {"not even a header", "gzip", http.NoBody, 0, schema.CodeInvalidJSON},
		"empty zstd":        {"nothing at all", "zstd", http.NoBody, 0, schema.CodeInvalidJSON},
		"gzip of nothing":   {"an empty body, well packed", "gzip", bytes.NewReader(tiny), -1, schema.CodeInvalidJSON},
		"gzip with garbage": {"something after its end", "gzip", bytes.NewReader(append(gzipOf(t, strings.NewReader(goodReport)), "garbage"...)), -1, schema.CodeInvalidJSON},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			server := httptest.NewServer(f.api.Handler())
			defer server.Close()
			client := server.Client()
			client.Transport.(*http.Transport).ExpectContinueTimeout = time.Minute
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+reports, tc.body)
			if err != nil {
				t.Fatal(err)
			}
			r.ContentLength = tc.length
			if tc.length > 0 {
				r.Header.Set("Expect", "100-continue") // a client that asks hears the refusal before it sends
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+f.bearer[schema.RoleAgent])
			if tc.encoding != "" {
				r.Header.Set("Content-Encoding", tc.encoding)
			}
			before := allocated()
			resp, err := client.Do(r)
			if err != nil {
				t.Fatalf("no answer, because %s: %v", tc.reason, err)
			}
			defer resp.Body.Close()
			w := httptest.NewRecorder()
			w.Code = resp.StatusCode
			for k, v := range resp.Header {
				w.Header()[k] = v
			}
			if _, err := io.Copy(w.Body, resp.Body); err != nil {
				t.Fatal(err)
			}
			if p := problem(t, w); p.Code != tc.code {
				t.Errorf("%d %s, want %s, because %s: %s", w.Code, p.Code, tc.code, tc.reason, p.Detail)
			}
			if calls := f.hub.asked(); len(calls) > 0 {
				t.Errorf("%v were called", calls)
			}
			if grown := allocated() - before; grown > 160<<20 {
				t.Errorf("%d MiB were allocated", grown>>20)
			}
			if !f.api.bodies.TryAcquire(128 << 20) {
				t.Error("the body's memory was not given back")
			}
		})
	}
}

// TestTooLongIsRefusedUnread: Content-Length is enough to say no.
func TestTooLongIsRefusedUnread(t *testing.T) {
	f := newFixture(t)
	r := request{method: http.MethodPost, target: reports, body: "x"}.build(f)
	body := &metered{r: blank{}, share: &reservation{pool: f.api.bodies, held: MaxBody}}
	r.Body, r.ContentLength = io.NopCloser(body), MaxBody+1
	if p := problem(t, serve(f, r)); p.Code != schema.CodeBodyTooLarge || body.read != 0 {
		t.Errorf("%s after %d bytes were read", p.Code, body.read)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// repeat reads the same bytes for ever.
type repeat struct {
	of []byte
	at int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c := copy(p[n:], r.of[r.at:])
		n, r.at = n+c, (r.at+c)%len(r.of)
	}
	return n, nil
}

// TestTooManyBodiesAtOnce fills the memory for bodies with reports that are
// being stored.
func TestTooManyBodiesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *Options) { o.MaxDecoding = MaxBody })
		stored := make(chan struct{})
		f.hub.hook = func() { <-stored }
		big := request{method: "POST", target: reports, body: goodReport + strings.Repeat(" ", MaxBody-len(goodReport))}
		first := make(chan int)
		go func() { first <- serve(f, big.build(f)).Code }()
		synctest.Wait()

		started := time.Now()
		w := f.do(t, request{method: "POST", target: reports, body: goodReport})
		if p := problem(t, w); p.Code != schema.CodeOverloaded || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s, want overloaded with Retry-After", w.Code, p.Code)
		}
		if waited := time.Since(started); waited != 5*time.Second {
			t.Errorf("it waited %s, want 5s", waited)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan int)
		go func() {
			q := request{method: "POST", target: reports, body: goodReport}
			gone <- serve(f, q.build(f).WithContext(ctx)).Code
		}()
		synctest.Wait()
		cancel()
		if code := <-gone; code != http.StatusServiceUnavailable {
			t.Errorf("a client that left got %d", code)
		}
		close(stored)
		if code := <-first; code != http.StatusAccepted {
			t.Errorf("the first got %d", code)
		}
		if w := f.do(t, request{method: "POST", target: reports, body: goodReport}); w.Code != http.StatusAccepted {
			t.Errorf("afterwards it is %d", w.Code)
		}
	})
}

func TestAnswersAreCompressed(t *testing.T) {
	cases := map[string]struct{ reason, accept, want string }{
		"nothing":       {"the client asks for nothing", "", ""},
		"gzip":          {"the client reads it", "gzip", "gzip"},
		"zstd":          {"the client reads it", "zstd", "zstd"},
		"both":          {"zstd is cheaper", "gzip, deflate, br, zstd", "zstd"},
		"weights":       {"the client's wish counts", "zstd;q=0.5, gzip; q=0.8", "gzip"},
		"refused":       {"a weight of zero forbids", "zstd;q=0, gzip;q=0", ""},
		"broken weight": {"what is not understood is not used", "zstd;q=x", ""},
		"others":        {"nothing we have", "br, deflate", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.do(t, request{target: "/openapi.json", header: map[string]string{"Accept-Encoding": tc.accept}})
			if got := w.Header().Get("Content-Encoding"); got != tc.want {
				t.Errorf("Content-Encoding %q, want %q: %s", got, tc.want, tc.reason)
			}
			if !bytes.Equal(plainBody(t, w), openAPIDocument) {
				t.Error("the body is not the document")
			}
			if small := f.do(t, request{target: "/healthz", header: map[string]string{"Accept-Encoding": tc.accept}}); small.Header().Get("Content-Encoding") != "" {
				t.Error("a small answer was compressed")
			}
			if got := w.Header().Get("Vary"); got != "Accept-Encoding" {
				t.Errorf("Vary is %q", got)
			}
		})
	}
}

func TestAnswersHaveNoNulls(t *testing.T) {
	f := newFixture(t)
	w := f.do(t, request{target: "/api/v1/clusters/drone-07"})
	want := `{"name":"drone-07","kind":"kubernetes","status":"live","memberships":[{"environment":"dev","type":"drone"}],"labels":{},"reports_for":[],` +
		`"heartbeat_interval":"30s","agent_version":"","epoch":7,"sequence":0,"unlisted_kinds":[],"registered_at":"2026-11-20T09:00:00Z","last_seen":"2026-11-20T09:00:00Z",` +
		`"counts":{"failure":0,"in_progress":0,"pending":0,"success":1,"suspended":0,"unknown":0}}`
	if diff := cmp.Diff(want, w.Body.String()); diff != "" {
		t.Error(diff)
	}
}

package hubclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

const (
	testRepo   = "https://git.example/org/app"
	testCommit = "5ce0d1a2b3c4d5e6f708192a3b4c5d6e7f809100"
	secret     = "lf_id_verysecret"
)

// serve starts a hub and returns its client.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := New(Options{URL: srv.URL, Token: secret, UserAgent: "test/1", HTTPClient: srv.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOptions holds what New refuses, without showing secrets.
func TestOptions(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const hub = "http://127.0.0.1:8080"
	for name, c := range map[string]struct {
		o  Options
		ok bool
	}{
		"plain":            {Options{URL: hub}, true},
		"slash and path":   {Options{URL: "https://example.org/landfall/"}, true},
		"token file":       {Options{URL: hub, TokenFile: write("good", "abc\n")}, true},
		"empty":            {Options{}, false},
		"no scheme":        {Options{URL: "localhost:8080"}, false},
		"other scheme":     {Options{URL: "ftp://h"}, false},
		"no host":          {Options{URL: "http://"}, false},
		"user":             {Options{URL: "http://me:" + secret + "@h"}, false},
		"broken with user": {Options{URL: "http://me:" + secret + "@h:port%zz"}, false},
		"query":            {Options{URL: hub + "?a=b"}, false},
		"two tokens":       {Options{URL: hub, Token: secret, TokenFile: write("x", "y")}, false},
		"missing file":     {Options{URL: hub, TokenFile: filepath.Join(dir, "none")}, false},
		"empty file":       {Options{URL: hub, TokenFile: write("empty", " \n")}, false},
		"two lines":        {Options{URL: hub, TokenFile: write("two", secret+"\n"+secret)}, false},
		"bad bytes":        {Options{URL: hub, Token: secret + "\x00"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(c.o)
			if (err == nil) != c.ok {
				t.Fatalf("error %v", err)
			}
			if err != nil && (!errors.Is(err, ErrOptions) || strings.Contains(err.Error(), secret)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestTokenFileRotates reads the file anew for every request.
func TestTokenFileRotates(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
	}))
	defer srv.Close()
	path := filepath.Join(t.TempDir(), "token")
	var clients []*Client
	for _, text := range []string{"one", "two\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := New(Options{URL: srv.URL, TokenFile: path})
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
		if err := c.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := clients[0].Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Bearer one", "Bearer two", "Bearer two"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestRefusals turns answers into problems.
func TestRefusals(t *testing.T) {
	type want struct {
		code      schema.Code
		detail    string
		retry     time.Duration
		temporary bool
	}
	for name, c := range map[string]struct {
		status  int
		headers map[string]string
		body    string
		want    want
	}{
		"problem": {
			503, map[string]string{"Retry-After": "7", "Content-Type": "application/problem+json"},
			`{"type":"about:blank","title":"x","status":200,"detail":"the store is down","code":"unavailable"}`,
			want{schema.CodeUnavailable, "the store is down", 7 * time.Second, true},
		},
		"date": {
			429, map[string]string{"Date": "Fri, 20 Nov 2026 09:00:00 GMT", "Retry-After": "Fri, 20 Nov 2026 09:01:00 GMT"}, `{"code":"overloaded","detail":"busy"}`,
			want{schema.CodeOverloaded, "busy", time.Minute, true},
		},
		"date gone by": {
			429, map[string]string{"Date": "Fri, 20 Nov 2026 09:00:00 GMT", "Retry-After": "Fri, 20 Nov 2026 08:00:00 GMT"}, `{"code":"overloaded","detail":"busy"}`,
			want{schema.CodeOverloaded, "busy", 0, true},
		},
		"nonsense in Retry-After": {429, map[string]string{"Retry-After": "-5"}, `{"code":"overloaded","detail":"busy"}`, want{schema.CodeOverloaded, "busy", 0, true}},
		"page":                    {502, map[string]string{"Content-Type": "text/html"}, "<html><title>Bad\n Gateway</title>" + secret, want{CodeForeignAnswer, `a web page titled "Bad Gateway", not a hub's answer; is a proxy between, or is the URL wrong?`, 0, true}},
		"page with 200":           {200, map[string]string{"Content-Type": "text/html; charset=utf-8"}, "<p>Log in", want{CodeForeignAnswer, "a web page, not a hub's answer; is a proxy between, or is the URL wrong?", 0, true}},
		"text":                    {500, map[string]string{"Content-Type": "text/plain"}, "panic \x1b[2J" + strings.Repeat("x", 500), want{CodeForeignAnswer, `not a hub's answer: "panic [2J` + strings.Repeat("x", 91) + `…"`, 0, true}},
		"nothing":                 {401, nil, "", want{CodeForeignAnswer, "an empty answer that is not a hub's", 0, false}},
		"JSON of others":          {404, map[string]string{"Content-Type": "application/json"}, `{"error":"x"}`, want{CodeForeignAnswer, "13 bytes of application/json that are not a hub's answer", 0, false}},
		"a list":                  {200, map[string]string{"Content-Type": "application/json"}, `[]`, want{CodeForeignAnswer, "2 bytes of application/json that are not a hub's answer", 0, true}},
		"echoed token":            {400, nil, `{"code":"invalid_json","detail":"Authorization: Bearer ` + secret + `"}`, want{schema.CodeInvalidJSON, "Authorization: Bearer [token]", 0, false}},
		"echoed in text":          {403, map[string]string{"Content-Type": "text/plain"}, "Bearer " + secret, want{CodeForeignAnswer, `not a hub's answer: "Bearer [token]"`, 0, false}},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range c.headers {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			_, err := client.Cluster(t.Context(), "x")
			p, ok := errors.AsType[*schema.Problem](err)
			if !ok {
				t.Fatalf("no problem: %v", err)
			}
			if diff := cmp.Diff(c.want, want{p.Code, p.Detail, RetryAfter(err), Temporary(err)}, cmp.AllowUnexported(want{})); diff != "" {
				t.Error(diff)
			}
			if p.Status != c.status || Status(err) != c.status || strings.Contains(err.Error(), secret) {
				t.Errorf("status %d: %v", p.Status, err)
			}
		})
	}
}

// TestRedirects keeps the token at home and writes from becoming reads.
func TestRedirects(t *testing.T) {
	var elsewhere []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Method+" "+r.Header.Get("Authorization"))
		io.WriteString(w, `{"name":"x","epoch":9,"current_epoch":9}`)
	}))
	defer other.Close()
	var home []string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		home = append(home, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/api/v1/clusters/away", "/api/v1/clusters/away/heartbeat":
			http.Redirect(w, r, other.URL+"/api/v1/clusters/x", http.StatusFound)
		case "/api/v1/clusters/away307":
			http.Redirect(w, r, other.URL+"/api/v1/clusters/x", http.StatusTemporaryRedirect)
		case "/api/v1/clusters/json":
			w.Header().Set("Location", "/api/v1/clusters/x")
			w.WriteHeader(http.StatusFound)
			io.WriteString(w, `{"epoch":9}`)
		case "/api/v1/clusters/near":
			http.Redirect(w, r, "/api/v1/clusters/x", http.StatusMovedPermanently)
		case "/api/v1/clusters/round":
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		default:
			io.WriteString(w, `{"name":"x","epoch":9}`)
		}
	})
	if _, err := client.Cluster(t.Context(), "near"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"GET /api/v1/clusters/near Bearer " + secret, "GET /api/v1/clusters/x Bearer " + secret}, home); diff != "" {
		t.Error(diff)
	}
	if _, err := client.Cluster(t.Context(), "away"); err != nil {
		t.Error(err)
	}
	if _, err := client.Register(t.Context(), "away307", schema.Registration{}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"GET ", "PUT "}, elsewhere); diff != "" {
		t.Errorf("the token left home: %s", diff)
	}
	for name, call := range map[string]func() error{
		"PUT as GET":  func() error { _, err := client.Register(t.Context(), "near", schema.Registration{}); return err },
		"with a body": func() error { _, err := client.Register(t.Context(), "json", schema.Registration{}); return err },
		"POST as GET": func() error { _, err := client.Heartbeat(t.Context(), "away", schema.Heartbeat{}); return err },
	} {
		if err := call(); err == nil || Status(err)/100 != 3 || !strings.Contains(err.Error(), "redirects to") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := client.Cluster(t.Context(), "round"); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a circle: %v", err)
	}
}

// TestAtHome compares addresses.
func TestAtHome(t *testing.T) {
	for name, c := range map[string]struct {
		base, to string
		want     bool
	}{
		"same":           {"http://h", "http://H/x", true},
		"default port":   {"https://h", "https://h:443/x", true},
		"to https":       {"http://h", "https://h/x", true},
		"other port":     {"http://h", "http://h:8080/x", false},
		"to http":        {"https://h", "http://h/x", false},
		"subdomain":      {"https://h.example", "https://a.h.example/x", false},
		"to https, port": {"http://h:8080", "https://h/x", false},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := New(Options{URL: c.base})
			if err != nil {
				t.Fatal(err)
			}
			req := httptest.NewRequest(http.MethodGet, c.to, nil)
			if got := client.atHome(req.URL); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestReport sends small reports plain and large ones compressed.
func TestReport(t *testing.T) {
	for name, n := range map[string]int{"small": 1, "large": 200} {
		t.Run(name, func(t *testing.T) {
			sent := &schema.Report{Epoch: 7, Sequence: 42, Mode: schema.ModeDelta, ObservedAt: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
			for range n {
				sent.Reconcilers = append(sent.Reconcilers, schema.Reconciler{Kind: "Kustomization", Namespace: "flux-system", Name: "x", Sources: []schema.Source{}, Status: schema.StatusSuccess})
			}
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body := io.Reader(r.Body)
				if compressed := r.Header.Get("Content-Encoding") == "gzip"; compressed != (n > 1) {
					t.Errorf("compressed: %t", compressed)
				} else if compressed {
					var err error
					if body, err = gzip.NewReader(r.Body); err != nil {
						t.Error(err)
						return
					}
				}
				var got schema.Report
				if err := json.NewDecoder(body).Decode(&got); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(sent, &got); diff != "" {
					t.Error(diff)
				}
				if r.Method+r.URL.Path+r.Header.Get("Content-Type")+r.Header.Get("User-Agent") != "POST/api/v1/clusters/drone:07@x/reportsapplication/jsontest/1" {
					t.Errorf("%s %s %v", r.Method, r.URL.Path, r.Header)
				}
				w.WriteHeader(http.StatusAccepted)
				io.WriteString(w, `{"current_epoch":8}`)
			})
			for range 3 { // compressors are used again
				if answer, err := client.Report(t.Context(), "drone:07@x", sent); err != nil || answer.CurrentEpoch != 8 {
					t.Errorf("%+v %v", answer, err)
				}
			}
		})
	}
}

// TestHollowAnswers refuses answers that acknowledge nothing.
func TestHollowAnswers(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			io.WriteString(w, "<html>done</html>")
			return
		}
		io.WriteString(w, `{}`)
	})
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"register":     func() error { _, err := client.Register(ctx, "x", schema.Registration{}); return err },
		"report":       func() error { _, err := client.Report(ctx, "x", &schema.Report{}); return err },
		"heartbeat":    func() error { _, err := client.Heartbeat(ctx, "x", schema.Heartbeat{}); return err },
		"token":        func() error { _, err := client.CreateToken(ctx, schema.TokenRequest{}); return err },
		"decommission": func() error { return client.Decommission(ctx, "x") },
		"revoke":       func() error { return client.RevokeToken(ctx, "x") },
		"verdict": func() error {
			_, err := client.Compliance(ctx, Question{Repo: testRepo, Commit: testCommit}, 0)
			return err
		},
		"cluster name": func() error { return client.Decommission(ctx, "../tokens/x") },
		"token id":     func() error { return client.RevokeToken(ctx, "..") },
	} {
		if call() == nil {
			t.Errorf("%s: an answer that says nothing was taken for success", name)
		}
	}
}

// TestPages walks lists, stops early and never walks in a circle.
func TestPages(t *testing.T) {
	var asked []string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		switch r.URL.Query().Get("cursor") {
		case "":
			io.WriteString(w, `{"items":[{"name":"a"},{"name":"b"}],"next_cursor":"1"}`)
		case "1":
			io.WriteString(w, `{"items":[],"next_cursor":"2"}`)
		default:
			if r.URL.Query().Get("environment") == "circle" {
				io.WriteString(w, `{"items":[{"name":"c"}],"next_cursor":"2"}`)
				return
			}
			io.WriteString(w, `{"items":[{"name":"c"}]}`)
		}
	})
	list := func(f schema.ClusterFilter, size, most int) (names []string, err error) {
		asked = nil
		for c, err := range client.Clusters(t.Context(), f, size) {
			if err != nil {
				return names, err
			}
			if names = append(names, c.Name); len(names) == most {
				break
			}
		}
		return names, nil
	}
	names, err := list(schema.ClusterFilter{ClusterType: "drone", Status: schema.ClusterLive}, 2, 99)
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if diff := cmp.Diff([]string{"cluster_type=drone&limit=2&status=live", "cluster_type=drone&cursor=1&limit=2&status=live", "cluster_type=drone&cursor=2&limit=2&status=live"}, asked); diff != "" {
		t.Error(diff)
	}
	if names, err = list(schema.ClusterFilter{}, 5000, 2); len(names) != 2 || err != nil || len(asked) != 1 || asked[0] != "limit=1000" {
		t.Errorf("stopping early: %v %v %v", names, err, asked)
	}
	if names, err = list(schema.ClusterFilter{Environment: "circle"}, 0, 99); !errors.Is(err, ErrBadAnswer) || len(names) != 3 {
		t.Errorf("a circle: %v %v", names, err)
	}
}

// TestTooLarge caps what is read.
func TestTooLarge(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", eventStream)
		io.WriteString(w, `{"name":"`)
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		for range 40 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	if _, err := client.Cluster(t.Context(), "x"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an answer: %v", err)
	}
	s, err := client.ComplianceStream(t.Context(), Question{Repo: testRepo, Commit: testCommit})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Next(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a line: %v", err)
	}
}

// TestSilence bounds every call against a hub that accepts and says nothing.
func TestSilence(t *testing.T) {
	for name, c := range map[string]struct {
		limit time.Duration
		call  func(context.Context, *Client) error
	}{
		"health": {answerTimeout, func(ctx context.Context, c *Client) error { return c.Health(ctx) }},
		"heartbeat": {answerTimeout, func(ctx context.Context, c *Client) error {
			_, err := c.Heartbeat(ctx, "x", schema.Heartbeat{})
			return err
		}},
		"report": {reportTimeout, func(ctx context.Context, c *Client) error { _, err := c.Report(ctx, "x", &schema.Report{}); return err }},
		"long poll": {answerTimeout + time.Minute, func(ctx context.Context, c *Client) error {
			_, err := c.Compliance(ctx, Question{Repo: testRepo, Commit: testCommit}, time.Minute)
			return err
		}},
		"stream": {firstVerdict, func(ctx context.Context, c *Client) error {
			_, err := c.ComplianceStream(ctx, Question{Repo: testRepo, Commit: testCommit})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := net.Pipe()
				defer there.Close()
				go io.Copy(io.Discard, there)
				transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return here, nil }}
				defer transport.CloseIdleConnections()
				client, err := New(Options{URL: "http://hub", HTTPClient: &http.Client{Transport: transport}})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				if err := c.call(t.Context(), client); !errors.Is(err, ErrSilent) || !Temporary(err) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(start); took != c.limit {
					t.Errorf("it took %s, want %s", took, c.limit)
				}
			})
		})
	}
}

// TestNoUserInfoLeaves strips passwords from questions and errors.
func TestNoUserInfoLeaves(t *testing.T) {
	var got string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.RawQuery
		w.WriteHeader(http.StatusInternalServerError)
	})
	_, err := client.Compliance(t.Context(), Question{Repo: "https://me:" + secret + "@git.example/org/app", Commit: testCommit}, 0)
	if err == nil || strings.Contains(got+err.Error(), secret) || !strings.Contains(got, "git.example") {
		t.Errorf("query %q, error %v", got, err)
	}
	client, err = New(Options{URL: "http://127.0.0.1:1", Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Compliance(t.Context(), Question{Repo: "https://me:" + secret + "@git.example/org/app", Commit: testCommit}, 0)
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("error %v", err)
	}
}

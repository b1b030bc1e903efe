package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const testToken = "t0p-s3cret"

// fakeGitHub answers the calls that this package makes as GitHub's REST API
// does: its status codes, its words and the members that are read.
type fakeGitHub struct {
	t *testing.T

	mu       sync.Mutex
	pulls    []*fakePull
	statuses map[string][]map[string]string
	// limited has every request refused as GitHub refuses the one too many.
	limited bool
}

type fakePull struct {
	number                       int
	state, title, head, base, to string
	merged                       bool
	labels                       []string
}

func (p *fakePull) json() map[string]any {
	labels := []map[string]any{}
	for _, l := range p.labels {
		labels = append(labels, map[string]any{"name": l})
	}
	m := map[string]any{
		"number": p.number, "state": p.state, "title": p.title, "labels": labels,
		"head": map[string]any{"ref": p.head, "sha": strings.Repeat("a", 40)}, "base": map[string]any{"ref": p.base},
		"html_url": fmt.Sprintf("https://github.com/org/repo/pull/%d", p.number), "merge_commit_sha": p.to,
	}
	if p.merged {
		m["merged_at"], m["merged"] = "2026-11-20T09:00:00Z", true
	}
	return m
}

func (f *fakeGitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	answer := func(code int, v any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	refuse := func(code int, message string, more ...map[string]any) {
		answer(code, map[string]any{"message": message, "errors": more, "documentation_url": "https://docs.github.com/rest"})
	}
	if f.limited {
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Limit", "5000")
		w.Header().Set("X-RateLimit-Reset", "4102444800")
		refuse(http.StatusForbidden, "API rate limit exceeded for user ID 1.")
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+testToken {
		refuse(http.StatusUnauthorized, "Bad credentials")
		return
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/api/v3/repos/org/repo/")
	if !ok {
		refuse(http.StatusNotFound, "Not Found")
		return
	}
	var body map[string]any
	if r.Body != nil {
		_ = json.NewDecoder(r.Body).Decode(&body)
	}
	text := func(name string) string { s, _ := body[name].(string); return s }
	parts := strings.Split(rest, "/")
	find := func() *fakePull {
		n, _ := strconv.Atoi(parts[1])
		if n < 1 || n > len(f.pulls) {
			refuse(http.StatusNotFound, "Not Found")
			return nil
		}
		return f.pulls[n-1]
	}
	switch call := r.Method + " " + parts[0] + "/" + strconv.Itoa(len(parts)); call {
	case "GET pulls/1":
		q := r.URL.Query()
		page, _ := strconv.Atoi(q.Get("page"))
		size, _ := strconv.Atoi(q.Get("per_page"))
		var found []map[string]any
		for _, p := range f.pulls {
			if p.state == q.Get("state") && p.base == q.Get("base") {
				found = append(found, p.json())
			}
		}
		page = max(page, 1)
		from := min((page-1)*size, len(found))
		to := min(from+size, len(found))
		if to < len(found) {
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=%d>; rel="next"`, r.Host, r.URL.Path, page+1))
		}
		answer(http.StatusOK, found[from:to])
	case "POST pulls/1":
		for _, p := range f.pulls {
			if p.state == "open" && p.head == text("head") && p.base == text("base") {
				refuse(http.StatusUnprocessableEntity, "Validation Failed", map[string]any{"message": "A pull request already exists for org:" + p.head + "."})
				return
			}
		}
		p := &fakePull{number: len(f.pulls) + 1, state: "open", title: text("title"), head: text("head"), base: text("base"), to: strings.Repeat("7", 40)}
		f.pulls = append(f.pulls, p)
		answer(http.StatusCreated, p.json())
	case "GET pulls/2":
		if p := find(); p != nil {
			answer(http.StatusOK, p.json())
		}
	case "PATCH pulls/2":
		if p := find(); p != nil {
			p.state = text("state")
			answer(http.StatusOK, p.json())
		}
	case "POST issues/3":
		if p := find(); p != nil {
			names, _ := body["labels"].([]any)
			if body == nil { // the library sends a bare list
				refuse(http.StatusUnprocessableEntity, "Invalid request.")
				return
			}
			for _, n := range names {
				p.labels = append(p.labels, n.(string))
			}
			answer(http.StatusOK, p.json()["labels"])
		}
	case "POST statuses/2":
		if f.statuses == nil {
			f.statuses = map[string][]map[string]string{}
		}
		if parts[1] != strings.Repeat("a", 40) {
			refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+parts[1])
			return
		}
		f.statuses[parts[1]] = append(f.statuses[parts[1]], map[string]string{
			"state": text("state"), "context": text("context"), "description": text("description"), "target_url": text("target_url"),
		})
		answer(http.StatusCreated, body)
	default:
		f.t.Errorf("a call that nobody expected: %s %s", r.Method, r.URL)
		refuse(http.StatusNotFound, "Not Found")
	}
}

// labelList lets the fake read GitHub's labels, which are sent as a bare list.
func labelList(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/labels") {
			var names []string
			if json.NewDecoder(r.Body).Decode(&names) == nil {
				text, _ := json.Marshal(map[string]any{"labels": names})
				r.Body = http.NoBody
				r2, _ := http.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), strings.NewReader(string(text)))
				r2.Header, r2.Host = r.Header, r.Host
				r = r2
			}
		}
		next.ServeHTTP(w, r)
	})
}

func newFakeGitHub(t *testing.T) (*fakeGitHub, *Forge) {
	t.Helper()
	fake := &fakeGitHub{t: t}
	server := httptest.NewServer(labelList(fake))
	t.Cleanup(server.Close)
	f, err := New(Options{Provider: GitHub, Repo: server.URL + "/org/repo.git", TokenFile: tokenFile(t, testToken+"\n")})
	if err != nil {
		t.Fatal(err)
	}
	return fake, f
}

func tokenFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestPullRequestsOfGitHub(t *testing.T) {
	fake, f := newFakeGitHub(t)
	ctx := t.Context()
	want := PullRequest{
		Number: 1, State: Open, Title: "Schedule dev", Head: "landfall/dev", Base: "dev", HeadCommit: strings.Repeat("a", 40),
		Labels: []string{"promoted", "scheduler"}, URL: "https://github.com/org/repo/pull/1",
	}
	ask := NewPullRequest{Head: "landfall/dev", Base: "dev", Title: "Schedule dev", Body: "b", Labels: []string{"scheduler", "promoted"}}
	for range 2 { // the second finds the first
		got, err := f.Open(ctx, ask)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for i := range 120 { // more than one page
		if _, err := f.Open(ctx, NewPullRequest{Head: fmt.Sprintf("h%d", i), Base: "many", Title: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Open(ctx, NewPullRequest{Head: "x", Base: "stage", Title: "t"}); err != nil {
		t.Fatal(err)
	}
	if got, err := f.PullRequests(ctx, "many"); err != nil || len(got) != 120 || !slices.IsSortedFunc(got, func(a, b PullRequest) int { return int(a.Number - b.Number) }) {
		t.Errorf("%d of 120 are listed: %v", len(got), err)
	}
	if err := f.Close(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if got, err := f.PullRequest(ctx, 1); err != nil || got.State != Closed || got.MergeCommit != "" {
		t.Errorf("a closed one is %+v, %v", got, err)
	}
	if got, err := f.PullRequests(ctx, "dev"); err != nil || len(got) != 0 {
		t.Errorf("a closed one is listed: %+v, %v", got, err)
	}
	// The trial merge of an open one is no merge.
	fake.mu.Lock()
	fake.pulls[1].merged, fake.pulls[1].state = true, "closed"
	fake.mu.Unlock()
	if got, err := f.PullRequest(ctx, 2); err != nil || got.State != Merged || got.MergeCommit != strings.Repeat("7", 40) {
		t.Errorf("a merged one is %+v, %v", got, err)
	}
	if _, err := f.PullRequest(ctx, 4711); !errors.Is(err, ErrNotFound) {
		t.Errorf("one that is not there: %v, want ErrNotFound", err)
	}
}

func TestStatusOfGitHub(t *testing.T) {
	fake, f := newFakeGitHub(t)
	commit := strings.Repeat("a", 40)
	long := strings.Repeat("ö", 200)
	if err := f.SetStatus(t.Context(), commit, Status{Context: "dev", Verdict: Pending, Description: long, URL: "https://hub.example/x"}); err != nil {
		t.Fatal(err)
	}
	if err := f.SetStatus(t.Context(), commit, Status{Context: "dev", Verdict: Success}); err != nil {
		t.Fatal(err)
	}
	want := []map[string]string{
		{"state": "pending", "context": "dev", "description": strings.Repeat("ö", 139) + "…", "target_url": "https://hub.example/x"},
		{"state": "success", "context": "dev", "description": "", "target_url": ""},
	}
	if diff := cmp.Diff(want, fake.statuses[commit]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := f.SetStatus(t.Context(), strings.Repeat("b", 40), Status{Context: "dev", Verdict: Success}); err == nil || !strings.Contains(err.Error(), "No commit found") {
		t.Errorf("a commit that is not there: %v", err)
	}
}

func TestRefusalsOfGitHub(t *testing.T) {
	fake, f := newFakeGitHub(t)
	fake.limited = true
	if _, err := f.PullRequests(t.Context(), "dev"); !errors.Is(err, ErrLimited) {
		t.Errorf("one request too many: %v, want ErrLimited", err)
	}
	fake.mu.Lock()
	fake.limited = false
	fake.mu.Unlock()
	server := httptest.NewServer(fake)
	defer server.Close()
	for name, test := range map[string]struct {
		token string
		want  error
	}{"wrong": {"other", ErrAuth}, "empty": {" \n", nil}, "two lines": {"a\nb", nil}} {
		f, err := New(Options{Provider: GitHub, Repo: server.URL + "/org/repo", TokenFile: tokenFile(t, test.token)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.PullRequests(t.Context(), "dev")
		if err == nil || test.want != nil && !errors.Is(err, test.want) || strings.Contains(err.Error(), "Bearer") {
			t.Errorf("a token that is %s: %v", name, err)
		}
	}
}

// TestTokenStaysWithItsHost redirects to somebody else.
func TestTokenStaysWithItsHost(t *testing.T) {
	var seen string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Get("Authorization") }))
	defer thief.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	for _, p := range []Provider{GitHub, Gitea} {
		f, err := New(Options{Provider: p, Repo: server.URL + "/org/repo", TokenFile: tokenFile(t, testToken)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.PullRequests(t.Context(), "dev"); err == nil || strings.Contains(err.Error(), testToken) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if seen != "" {
		t.Errorf("the other host was shown %q", seen)
	}
}

func TestNew(t *testing.T) {
	token := tokenFile(t, testToken)
	tests := map[string]struct {
		options Options
		want    string
	}{
		"github":       {Options{Provider: GitHub, Repo: "git@github.com:org/repo.git", TokenFile: token}, ""},
		"gitea":        {Options{Provider: Gitea, Repo: "https://git.example/org/repo", TokenFile: token}, ""},
		"no provider":  {Options{Repo: "https://git.example/org/repo", TokenFile: token}, "is no provider"},
		"no token":     {Options{Provider: GitHub, Repo: "https://github.com/org/repo"}, "needs a token"},
		"folder":       {Options{Provider: GitHub, Repo: "/srv/git/repo", TokenFile: token}, "/OWNER/NAME"},
		"no owner":     {Options{Provider: GitHub, Repo: "https://github.com/repo", TokenFile: token}, "/OWNER/NAME"},
		"group":        {Options{Provider: Gitea, Repo: "https://git.example/a/b/c", TokenFile: token}, "/OWNER/NAME"},
		"user info":    {Options{Provider: Gitea, Repo: "https://me:secret@git.example/c", TokenFile: token}, "/OWNER/NAME"},
		"api":          {Options{Provider: Gitea, Repo: "ssh://git@git.example:2222/a/b", API: "ftp://git.example", TokenFile: token}, "no http(s) URL"},
		"certificates": {Options{Provider: Gitea, Repo: "https://git.example/a/b", CAFile: token, TokenFile: token}, "no certificate"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(test.options)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret@")):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestUsualAPI(t *testing.T) {
	for _, test := range []struct {
		provider         Provider
		host, repo, want string
	}{
		{GitHub, "github.com", "git@github.com:org/repo", "https://api.github.com/"},
		{GitHub, "ghe.example", "https://ghe.example/org/repo", "https://ghe.example/api/v3/"},
		{Gitea, "git.example:3000", "http://git.example:3000/org/repo", "http://git.example:3000/"},
		{Gitea, "git.example", "ssh://git@git.example/org/repo", "https://git.example/"},
	} {
		if got := usualAPI(test.provider, test.host, test.repo); got != test.want {
			t.Errorf("%s %s: %s, want %s", test.provider, test.repo, got, test.want)
		}
	}
}

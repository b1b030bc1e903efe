package api

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

const (
	hooks      = "/api/v1/webhooks/"
	hookSecret = "It's a secret to everybody"
)

// followed are the repositories that the fake hub follows.
var followed = []string{"github.com/kaizen/app-gitops", "gitlab.example.com/kaizen/team/app-gitops", "forge.example:2222/kaizen/app-gitops"}

func (f *fakeHub) webhooks() Webhooks {
	secret := func() (string, error) { return hookSecret, nil }
	return Webhooks{
		Secrets: map[string]func() (string, error){"github": secret, "gitlab": secret, "gitea": secret},
		Fetch: func(repo string) bool {
			if !slices.Contains(followed, repo) {
				return false
			}
			_ = f.called("Fetch " + repo)
			return true
		},
	}
}

// signHook sets what a provider sends with the body of a push.
func signHook(h http.Header, name, body string) {
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write([]byte(body))
	signature := hex.EncodeToString(mac.Sum(nil))
	switch name {
	case "github":
		h.Set("X-GitHub-Event", "push")
		h.Set("X-Hub-Signature-256", "sha256="+signature)
	case "gitlab":
		h.Set("X-Gitlab-Event", "Push Hook")
		h.Set("X-Gitlab-Token", hookSecret)
	case "gitea":
		h.Set("X-Gitea-Event", "push")
		h.Set("X-Gitea-Signature", signature)
	}
}

func payload(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func hook(provider, body string, header ...string) request {
	q := request{method: http.MethodPost, target: hooks + provider, body: body, header: map[string]string{"Authorization": ""}}
	for i := 0; i < len(header); i += 2 {
		q.header[header[i]] = header[i+1]
	}
	return q
}

// TestWebhooks holds what is made of webhooks that may be sent.
func TestWebhooks(t *testing.T) {
	github, gitlab, gitea := payload(t, "github-push"), payload(t, "gitlab-push"), payload(t, "gitea-push")
	update := payload(t, "gitlab-repository-update")
	fetch := func(i int) []string { return []string{"Fetch " + followed[i]} }
	elsewhere := strings.NewReplacer("kaizen", "others")
	const fetched, notFollowed, ignored = `{"push":true,"followed":true}`, `{"push":true,"followed":false}`, `{"push":false,"followed":false}`
	cases := map[string]struct {
		reason string
		q      request
		want   string
		calls  []string
	}{
		"GitHub":            {"a push, forced or not, of any branch", hook("github", github), fetched, fetch(0)},
		"GitHub by SSH":     {"one of the addresses is enough", hook("github", `{"repository":{"ssh_url":"git@github.com:kaizen/app-gitops.git"}}`), fetched, fetch(0)},
		"GitHub ping":       {"it asks whether somebody is there", hook("github", `{"zen":"Half measures are as bad as nothing at all.","hook_id":1}`, "X-GitHub-Event", "ping"), ignored, nil},
		"GitHub stars":      {"nothing was pushed", hook("github", github, "X-GitHub-Event", "star"), ignored, nil},
		"GitHub nameless":   {"no event", hook("github", github, "X-GitHub-Event", ""), ignored, nil},
		"not read":          {"what is ignored may be anything", hook("github", `[1`, "X-GitHub-Event", "star"), ignored, nil},
		"not followed":      {"somebody else's", hook("github", elsewhere.Replace(github)), notFollowed, nil},
		"upper case":        {"hexadecimal digits", hook("github", github, "X-Hub-Signature-256", "sha256="+strings.ToUpper(hexHMAC(github))), fetched, fetch(0)},
		"GitLab":            {"a push", hook("gitlab", gitlab), fetched, fetch(1)},
		"GitLab tag":        {"tags are followed, too", hook("gitlab", strings.ReplaceAll(gitlab, `"push"`, `"tag_push"`), "X-Gitlab-Event", "Tag Push Hook"), fetched, fetch(1)},
		"GitLab system":     {"of all projects", hook("gitlab", gitlab, "X-Gitlab-Event", "System Hook"), fetched, fetch(1)},
		"GitLab update":     {"once for all refs", hook("gitlab", update, "X-Gitlab-Event", "System Hook"), fetched, fetch(1)},
		"GitLab project":    {"a system hook of something else", hook("gitlab", strings.Replace(update, "repository_update", "project_update", 1), "X-Gitlab-Event", "System Hook"), ignored, nil},
		"GitLab issue":      {"nothing was pushed", hook("gitlab", gitlab, "X-Gitlab-Event", "Issue Hook"), ignored, nil},
		"GitLab others":     {"somebody else's", hook("gitlab", elsewhere.Replace(gitlab)), notFollowed, nil},
		"Gitea":             {"a push; the repository is followed by SSH on a port", hook("gitea", gitea), fetched, fetch(2)},
		"Forgejo":           {"by its own name of the header", hook("gitea", gitea, "X-Gitea-Signature", "", "X-Forgejo-Signature", hexHMAC(gitea)), fetched, fetch(2)},
		"both names":        {"one of them is good", hook("gitea", gitea, "X-Gitea-Signature", "00", "X-Forgejo-Signature", hexHMAC(gitea)), fetched, fetch(2)},
		"Gitea deletion":    {"a ref is gone", hook("gitea", gitea, "X-Gitea-Event", "delete"), fetched, fetch(2)},
		"Gitea release":     {"nothing was pushed", hook("gitea", gitea, "X-Gitea-Event", "release"), ignored, nil},
		"unknown members":   {"providers add some", hook("github", strings.Replace(github, `"ref"`, `"new":{"a":[1,{}]},"ref"`, 1)), fetched, fetch(0)},
		"doubled member":    {"or repeat them", hook("github", strings.Replace(github, `"ref"`, `"ref":1,"ref"`, 1)), fetched, fetch(0)},
		"no UTF-8":          {"commit messages hold anything", hook("github", strings.Replace(github, "hello", "h\xffllo", 1)), fetched, fetch(0)},
		"other names of it": {"no name of its own is an address", hook("github", `{"repository":{"clone_url":"nonsense","html_url":"https://github.com/kaizen/app-gitops/"}}`), fetched, fetch(0)},
		"charset":           {"as some send it", hook("github", github, "Content-Type", "application/json; charset=utf-8"), fetched, fetch(0)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.do(t, tc.q)
			if w.Code != http.StatusAccepted || w.Body.String() != tc.want {
				t.Errorf("%d %s, want %s, because %s", w.Code, w.Body, tc.want, tc.reason)
			}
			if diff := cmp.Diff(tc.calls, f.hub.asked()); diff != "" {
				t.Errorf("called (-want +got):\n%s", diff)
			}
			if !f.api.hookBodies.TryAcquire(maxHooks * MaxBody) {
				t.Error("the body's memory was not given back")
			}
		})
	}
}

func hexHMAC(body string) string {
	h := http.Header{}
	signHook(h, "gitea", body)
	return h.Get("X-Gitea-Signature")
}

// TestBadWebhooks holds each kind of bad webhook to its problem, and to fetching
// nothing.
func TestBadWebhooks(t *testing.T) {
	github, gitlab, gitea := payload(t, "github-push"), payload(t, "gitlab-push"), payload(t, "gitea-push")
	const push = `{"repository":{"clone_url":"https://github.com/kaizen/app-gitops"}}`
	cases := map[string]struct {
		reason string
		q      request
		status int
		code   schema.Code
		says   string
	}{
		"no signature":      {"anybody could have sent it", hook("github", github, "X-Hub-Signature-256", ""), 401, "unauthenticated", "X-Hub-Signature-256"},
		"wrong signature":   {"another secret", hook("github", github, "X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64)), 401, "unauthenticated", "the same secret"},
		"another body":      {"it was changed on the way", hook("github", push, "X-Hub-Signature-256", "sha256="+hexHMAC(github)), 401, "unauthenticated", ""},
		"SHA-1":             {"what was used before", hook("github", github, "X-Hub-Signature-256", "", "X-Hub-Signature", "sha1="+strings.Repeat("0", 40)), 401, "unauthenticated", ""},
		"no prefix":         {"GitHub writes one", hook("github", github, "X-Hub-Signature-256", hexHMAC(github)), 401, "unauthenticated", ""},
		"cut signature":     {"a part of it is none", hook("github", github, "X-Hub-Signature-256", "sha256="+hexHMAC(github)[:32]), 401, "unauthenticated", ""},
		"empty signature":   {"nothing is none", hook("github", github, "X-Hub-Signature-256", "sha256="), 401, "unauthenticated", ""},
		"no hexadecimal":    {"nor is a text", hook("github", github, "X-Hub-Signature-256", "sha256=zz"), 401, "unauthenticated", ""},
		"unsigned ping":     {"what is ignored is signed, too", hook("github", `{}`, "X-Hub-Signature-256", "", "X-GitHub-Event", "ping"), 401, "unauthenticated", ""},
		"unsigned nonsense": {"nobody reads what nobody signed", hook("github", `{`, "X-Hub-Signature-256", ""), 401, "unauthenticated", ""},
		"an admin's token":  {"it signs nothing", request{method: "POST", target: hooks + "github", body: github, header: map[string]string{"X-Hub-Signature-256": ""}}, 401, "unauthenticated", ""},
		"no GitLab token":   {"anybody could have sent it", hook("gitlab", gitlab, "X-Gitlab-Token", ""), 401, "unauthenticated", "X-Gitlab-Token"},
		"wrong token":       {"another secret", hook("gitlab", gitlab, "X-Gitlab-Token", hookSecret+"!"), 401, "unauthenticated", ""},
		"half a token":      {"a part of it is none", hook("gitlab", gitlab, "X-Gitlab-Token", hookSecret[:10]), 401, "unauthenticated", ""},
		"no Gitea":          {"anybody could have sent it", hook("gitea", gitea, "X-Gitea-Signature", ""), 401, "unauthenticated", "X-Forgejo-Signature"},
		"wrong Gitea":       {"another secret", hook("gitea", gitea, "X-Gitea-Signature", strings.Repeat("0", 64)), 401, "unauthenticated", ""},
		"GitHub's to Gitea": {"each has its own headers", hook("gitea", gitea, "X-Gitea-Signature", "", "X-Hub-Signature-256", "sha256="+hexHMAC(gitea)), 401, "unauthenticated", ""},

		"broken JSON":   {"it stops making sense", hook("github", `{"repository":{,}}`), 400, "invalid_json", "byte 15"},
		"cut JSON":      {"the end is missing", hook("github", push[:30]), 400, "invalid_json", "in the middle"},
		"empty":         {"nothing was sent", hook("github", " "), 400, "invalid_json", "empty"},
		"a list":        {"an object belongs here", hook("github", `[]`), 400, "invalid_field", "an object"},
		"wrong type":    {"an address is a text", hook("github", `{"repository":{"clone_url":7}}`), 400, "invalid_field", "a number where a text"},
		"no repository": {"which one?", hook("github", `{"ref":"refs/heads/main"}`), 400, "missing_field", "git_http_url"},
		"null":          {"which one?", hook("github", `null`), 400, "missing_field", "clone_url"},
		"no address":    {"which one?", hook("gitlab", `{"object_kind":"push","project":{"web_url":"nonsense"}}`), 400, "missing_field", "clone_url"},
		"parameter":     {"there are none", hook("github?x=1", push), 400, "unknown_parameter", "no query parameters"},

		"form":       {"as GitHub sends it unless told otherwise", hook("github", "payload=%7B%7D", "Content-Type", "application/x-www-form-urlencoded"), 415, "unsupported_media", "application/json"},
		"compressed": {"the signature is of the body as it travels", hook("github", string(gzipOf(t, strings.NewReader(github))), "Content-Encoding", "gzip"), 415, "unsupported_media", "as it was signed"},
		"zstd":       {"whatever it is compressed by", hook("gitlab", string(zstdOf(t, strings.NewReader(gitlab))), "Content-Encoding", "zstd"), 415, "unsupported_media", "as it was signed"},

		"unknown provider": {"there are three", hook("bitbucket", push), 404, "not_found", "github, gitlab and gitea"},
		"no provider":      {"nothing there", hook("", push), 404, "not_found", ""},
		"GET":              {"some look whether it is there", request{target: hooks + "github"}, 405, "method_not_allowed", "POST"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.do(t, tc.q)
			p := problem(t, w)
			if w.Code != tc.status || p.Code != tc.code || !strings.Contains(p.Detail, tc.says) {
				t.Errorf("%d %s, want %d %s with %q, because %s\n%+v", w.Code, p.Code, tc.status, tc.code, tc.says, tc.reason, p)
			}
			if strings.Contains(w.Body.String(), hookSecret) {
				t.Error("the secret went out")
			}
			if calls := f.hub.asked(); len(calls) > 0 {
				t.Errorf("%v were called", calls)
			}
			if !f.api.hookBodies.TryAcquire(maxHooks * MaxBody) {
				t.Error("the body's memory was not given back")
			}
		})
	}
}

// TestHugeWebhooks sends bodies that are too long over a real connection, signed
// as well as one can.
func TestHugeWebhooks(t *testing.T) {
	f := newFixture(t)
	srv := httptest.NewServer(f.api.Handler())
	defer srv.Close()
	for name, length := range map[string]int64{"told": 17 << 20, "chunked": -1} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+hooks+"gitlab", spaces(17<<20))
			if err != nil {
				t.Fatal(err)
			}
			r.ContentLength = length
			r.Header.Set("Content-Type", "application/json")
			signHook(r.Header, "gitlab", "")
			answer, err := srv.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			var p schema.Problem
			if err := json.NewDecoder(answer.Body).Decode(&p); err != nil || answer.StatusCode != http.StatusRequestEntityTooLarge || p.Code != schema.CodeBodyTooLarge {
				t.Errorf("%s %v %+v", answer.Status, err, p)
			}
		})
	}
	body := payload(t, "github-push")
	body += strings.Repeat(" ", MaxBody-len(body))
	if w := f.do(t, hook("github", body)); w.Code != http.StatusAccepted {
		t.Errorf("16 MiB to a bit: %d %s", w.Code, w.Body)
	}
	if got := f.hub.asked(); len(got) != 1 {
		t.Errorf("%v were called", got)
	}
}

// TestStrangersBodies keeps those who sign nothing from taking the memory for
// reports.
func TestStrangersBodies(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.DecodeWait = 1 })
	if !f.api.hookBodies.TryAcquire(maxHooks * MaxBody) { // as if so many were on their way
		t.Fatal("the memory is not free")
	}
	if w := f.do(t, hook("github", payload(t, "github-push"))); w.Code != http.StatusTooManyRequests {
		t.Errorf("one webhook too many: %d", w.Code)
	}
	if w := f.do(t, request{method: "POST", target: reports, body: goodReport}); w.Code != http.StatusAccepted {
		t.Errorf("a report: %d", w.Code)
	}
}

// TestReplayedWebhook answers one that is sent again as it did before, and counts
// them all.
func TestReplayedWebhook(t *testing.T) {
	f := newFixture(t)
	q := hook("github", payload(t, "github-push"))
	for range 3 {
		if w := f.do(t, q); w.Code != http.StatusAccepted {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	f.do(t, hook("gitea", "{}", "X-Gitea-Event", "fork"))
	f.do(t, hook("gitea", "{}", "X-Gitea-Signature", ""))
	f.do(t, hook("gitlab", `{"project":{"web_url":"https://git.example/a/b"}}`))
	f.do(t, hook("bitbucket", "{}"))
	if got := f.hub.asked(); len(got) != 3 {
		t.Errorf("%v were called", got)
	}
	want := map[string]float64{"github fetched": 3, "gitea ignored": 1, "gitlab not_followed": 1, "gitea refused": 1}
	if diff := cmp.Diff(want, counted(t, f, "landfall_api_webhooks_total")); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// counted returns a counter's values by those of its labels.
func counted(t *testing.T, f *fixture, name string) map[string]float64 {
	t.Helper()
	families, err := f.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range []string{"provider", "outcome"} {
				for _, pair := range m.GetLabel() {
					if pair.GetName() == l {
						labels = append(labels, pair.GetValue())
					}
				}
			}
			values[strings.Join(labels, " ")] = m.GetCounter().GetValue()
		}
	}
	return values
}

// TestWebhookSecrets answers providers that have a secret, and no empty one.
func TestWebhookSecrets(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.Webhooks.Secrets = map[string]func() (string, error){
			"gitlab": func() (string, error) { return "", nil },
			"gitea":  func() (string, error) { return "", errors.New("reading the password: /run/secrets/gitea is gone") },
		}
	})
	for name, want := range map[string]int{"github": http.StatusNotFound, "gitlab": http.StatusServiceUnavailable, "gitea": http.StatusServiceUnavailable} {
		w := f.do(t, hook(name, payload(t, name+"-push"), "X-Gitlab-Token", ""))
		if w.Code != want || strings.Contains(w.Body.String(), "/run") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if !strings.Contains(log.String(), "/run/secrets/gitea is gone") {
		t.Errorf("the log does not say why:\n%s", log.String())
	}
	if _, err := New(Options{Webhooks: Webhooks{Secrets: f.hub.webhooks().Secrets}}); err == nil || !strings.Contains(err.Error(), "Webhooks.Fetch") {
		t.Errorf("nobody fetches: %v", err)
	}
}

// TestWebhooksWithoutTokens answers on a hub that asks for none by the same
// rules, also under another host name: the provider is no person at a browser.
func TestWebhooksWithoutTokens(t *testing.T) {
	f := bareFixture(t)
	r := hook("github", payload(t, "github-push")).build(f)
	r.Host = "hub.example"
	if w := serve(f, r); w.Code != http.StatusAccepted {
		body, _ := io.ReadAll(w.Body)
		t.Errorf("%d %s", w.Code, body)
	}
	if w := serve(f, hook("github", "{}", "X-Hub-Signature-256", "").build(f)); w.Code != http.StatusUnauthorized {
		t.Errorf("an unsigned one: %d", w.Code)
	}
}

package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/schema"
)

var descriptors = "/api/v1/descriptors?repo=https://user:secret@github.com/org/apps.git&ref=refs/heads/dev&commit=" + commit

func TestPushDescriptors(t *testing.T) {
	f := newFixture(t)
	for _, media := range documents {
		w := f.do(t, request{method: "POST", target: descriptors, body: "a: 1\n", header: map[string]string{"Content-Type": media + "; charset=utf-8"}})
		if w.Code != http.StatusAccepted || !strings.Contains(w.Body.String(), `"version":"1.1.0"`) || !strings.Contains(w.Body.String(), `"placed":true`) {
			t.Errorf("%s: %d: %s", media, w.Code, w.Body)
		}
		if want := "github.com/org/apps dev " + commit + ": a: 1\n"; f.hub.pushed != want {
			t.Errorf("it was told %q, want %q", f.hub.pushed, want)
		}
	}
}

func TestPushDescriptorsRefuses(t *testing.T) {
	broken := &schema.Problem{Code: schema.CodeInvalidDescriptor, Detail: "body:3: spec is missing: add it", Errors: []schema.FileError{{File: "body", Line: 3, Reason: "spec is missing: add it"}}}
	cases := map[string]struct {
		reason  string
		q       request
		fail    error
		status  int
		mention string
	}{
		"broken":     {"the place and the reason are named", request{target: descriptors, body: "{}"}, broken, 400, `"errors":[{"file":"body","line":3,"reason":"spec is missing: add it"}]`},
		"no repo":    {"which repository is asked for", request{target: "/api/v1/descriptors?commit=" + commit, body: "{}"}, nil, 400, `"parameter":"repo"`},
		"no commit":  {"a version is of a commit", request{target: "/api/v1/descriptors?repo=https://h/o/r", body: "{}"}, nil, 400, `"parameter":"commit"`},
		"short":      {"commits are never guessed", request{target: "/api/v1/descriptors?repo=https://h/o/r&commit=abc123", body: "{}"}, nil, 400, "invalid_commit"},
		"bad repo":   {"it is no repository", request{target: "/api/v1/descriptors?repo=nothing&commit=" + commit, body: "{}"}, nil, 400, "invalid_repo"},
		"path":       {"a descriptor says its path itself", request{target: descriptors + "&path=x", body: "{}"}, nil, 400, "unknown_parameter"},
		"media":      {"a form is none of these", request{target: descriptors, body: "{}", header: map[string]string{"Content-Type": "text/plain"}}, nil, 415, "application/yaml or application/json"},
		"store down": {"it may be sent again", request{target: descriptors, body: "{}"}, &schema.Refusal{Code: schema.CodeUnavailable, Detail: "the store is away"}, 503, "the store is away"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.hub.fail = tc.fail
			tc.q.method = "POST"
			w := f.do(t, tc.q)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.mention) {
				t.Errorf("%s: %d: %s; want %d with %s", tc.reason, w.Code, w.Body, tc.status, tc.mention)
			}
			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("it shows the password: %s", w.Body)
			}
		})
	}
}

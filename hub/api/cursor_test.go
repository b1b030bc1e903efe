package api

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

// nextCursor reads an answer's cursor.
func nextCursor(t *testing.T, f *fixture, target string) string {
	t.Helper()
	w := f.do(t, request{target: target})
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
	var l struct {
		NextCursor *string `json:"next_cursor"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil || l.NextCursor == nil {
		t.Fatalf("%s: %v in %s", target, err, w.Body)
	}
	return *l.NextCursor
}

func TestPages(t *testing.T) {
	f := newFixture(t)
	const target = "/api/v1/state/clusters?environment=dev&workspace=w&application=a&workload=l&deployment_target=t&cluster_type=drone&cluster=drone-07&status=success"
	f.hub.next = []string{"drone-07", "Kustomization", `odd "key" ä`}
	c := nextCursor(t, f, target)
	if diff := cmp.Diff(schema.Page{Limit: 100}, f.hub.page); diff != "" {
		t.Errorf("first page: %s", diff)
	}
	f.hub.next = nil
	if last := nextCursor(t, f, target+"&limit=1000&cursor="+url.QueryEscape(c)); last != "" {
		t.Errorf("after the last page there is %q", last)
	}
	if diff := cmp.Diff(schema.Page{After: []string{"drone-07", "Kustomization", `odd "key" ä`}, Limit: 1000}, f.hub.page); diff != "" {
		t.Errorf("second page: %s", diff)
	}
	want := schema.StateFilter{Environment: "dev", Workspace: "w", Application: "a", Workload: "l", DeploymentTarget: "t", ClusterType: "drone", Cluster: "drone-07", Status: "success"}
	if diff := cmp.Diff(want, f.hub.states); diff != "" {
		t.Error(diff)
	}
}

func TestCursorsOfOthers(t *testing.T) {
	f := newFixture(t)
	f.hub.next = []string{"drone-07"}
	c := nextCursor(t, f, "/api/v1/clusters?environment=dev")
	forge := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	hash := filterHash(schema.ClusterFilter{Environment: "dev"})
	cases := map[string]struct{ reason, target string }{
		"another list":   {"keys mean something else there", "/api/v1/state/clusters?environment=dev&cursor=" + c},
		"another filter": {"the rows are others", "/api/v1/clusters?environment=stage&cursor=" + c},
		"no filter":      {"the rows are others", "/api/v1/clusters?cursor=" + c},
		"swapped filter": {"the same text in another place", "/api/v1/clusters?cluster_type=dev&cursor=" + c},
		"cut":            {"half a cursor", "/api/v1/clusters?environment=dev&cursor=" + c[:len(c)-2]},
		"no key":         {"it would start again", "/api/v1/clusters?environment=dev&cursor=" + forge(`{"l":"clusters","k":[],"f":"`+hash+`"}`)},
		"more members":   {"nobody made it", "/api/v1/clusters?environment=dev&cursor=" + forge(`{"l":"clusters","k":["a"],"f":"`+hash+`","x":1}`)},
		"key of numbers": {"keys are texts", "/api/v1/clusters?environment=dev&cursor=" + forge(`{"l":"clusters","k":[1],"f":"`+hash+`"}`)},
		"padded":         {"one cursor has one form", "/api/v1/clusters?environment=dev&cursor=" + url.QueryEscape(c+"=")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := f.do(t, request{target: tc.target})
			if p := problem(t, w); p.Code != schema.CodeInvalidCursor {
				t.Errorf("%d %s, though %s", w.Code, p.Code, tc.reason)
			}
		})
	}
	if got := nextCursor(t, f, "/api/v1/clusters?environment=dev&limit=7&cursor="+c); got != c {
		t.Errorf("its own list does not take it: %s", got)
	}
}

func TestPagesOfTokens(t *testing.T) {
	f := newFixture(t)
	seen := map[string]bool{}
	cursor := ""
	for range 5 {
		target := "/api/v1/tokens?limit=3"
		if cursor != "" {
			target += "&cursor=" + cursor
		}
		w := f.do(t, request{target: target})
		var l list[schema.Token]
		if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		for _, token := range l.Items {
			if seen[token.ID] || token.Secret != "" {
				t.Errorf("twice, or with its secret: %+v", token)
			}
			seen[token.ID] = true
		}
		if cursor = l.NextCursor; cursor == "" {
			break
		}
	}
	if len(seen) != 4 || cursor != "" {
		t.Errorf("%d tokens, cursor %q", len(seen), cursor)
	}
}

func FuzzCursor(f *testing.F) {
	filter := schema.StateFilter{Environment: "dev"}
	good, err := formatCursor("state/clusters", filter, []string{"drone-07", "ä"})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{good, "", "abc", "e30", good + "=", good[1:]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := parseCursor(text, "state/clusters", filter)
		if err != nil {
			if problemOf(err, "").Code != schema.CodeInvalidCursor {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := formatCursor("state/clusters", filter, key)
		if err != nil {
			t.Fatal(err)
		}
		back, err := parseCursor(again, "state/clusters", filter)
		if diff := cmp.Diff(key, back); err != nil || diff != "" {
			t.Fatalf("%q: %v %s", text, err, diff)
		}
		if _, err := parseCursor(text, "clusters", filter); err == nil {
			t.Fatalf("%q is a cursor of two lists", text)
		}
	})
}

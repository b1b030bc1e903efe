package api

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/schema"
)

// TestRolesAndRoutes is the matrix of api.md, each route with each role.
func TestRolesAndRoutes(t *testing.T) {
	const open, stranger, agent, other, reader, pipeline, admin = "open", "stranger", "agent", "agent of another", "reader", "pipeline", "admin"
	tokensBody := `{"role":"reader"}`
	cases := map[string]struct {
		reason string
		q      request
		allow  []string
	}{
		"register": {"an agent registers itself", request{method: "PUT", target: "/api/v1/clusters/drone-07", body: `{}`}, []string{agent, admin}},
		"clusters": {"reading the fleet is for readers", request{target: "/api/v1/clusters"}, []string{reader, admin}},
		"cluster":  {"an agent reads nothing, not even itself", request{target: "/api/v1/clusters/drone-07"}, []string{reader, admin}},
		"decommission": {"taking a cluster out is an admin's word",
			request{method: "DELETE", target: "/api/v1/clusters/drone-07"}, []string{admin}},
		"report": {"an agent reports for its own cluster", request{method: "POST", target: reports, body: goodReport}, []string{agent, admin}},
		"heartbeat": {"an agent beats for its own cluster",
			request{method: "POST", target: "/api/v1/clusters/drone-07/heartbeat", body: `{"epoch":7,"sequence":1}`}, []string{agent, admin}},
		"descriptors":  {"pipelines say what they deploy", request{method: "POST", target: descriptors, body: "{}"}, []string{pipeline, admin}},
		"compliance":   {"verdicts are for readers and pipelines", request{target: compliance("")}, []string{reader, pipeline, admin}},
		"stream":       {"as compliance", request{target: strings.Replace(compliance(""), "?", "/stream?", 1)}, []string{reader, pipeline, admin}},
		"states":       {"reading the fleet is for readers", request{target: "/api/v1/state/clusters"}, []string{reader, admin}},
		"state":        {"as the states of clusters", request{target: "/api/v1/state"}, []string{reader, admin}},
		"history":      {"as the states of clusters", request{target: "/api/v1/history"}, []string{reader, admin}},
		"discrepancy":  {"as the states of clusters", request{target: "/api/v1/discrepancies"}, []string{reader, admin}},
		"drift":        {"as the states of clusters", request{target: "/api/v1/drift"}, []string{reader, admin}},
		"dora":         {"as the states of clusters", request{target: "/api/v1/dora"}, []string{reader, admin}},
		"assignments":  {"reading what was decided is for readers", request{target: "/api/v1/assignments"}, []string{reader, admin}},
		"assignment":   {"as the list", request{target: "/api/v1/assignments/dev/drone/hello"}, []string{reader, admin}},
		"create token": {"tokens are an admin's", request{method: "POST", target: "/api/v1/tokens", body: tokensBody}, []string{admin}},
		"list tokens":  {"tokens are an admin's", request{target: "/api/v1/tokens"}, []string{admin}},
		"revoke token": {"tokens are an admin's", request{method: "DELETE", target: "/api/v1/tokens/ID"}, []string{admin}},
		"about":        {"nothing secret", request{target: "/"}, []string{open}},
		"healthz":      {"probes have no token", request{target: "/healthz"}, []string{open}},
		"webhook":      {"a signature tells who calls", request{method: "POST", target: hooks + "github", body: `{"repository":{"html_url":"https://h/o/r"}}`}, []string{open}},
		"readyz":       {"probes have no token", request{target: "/readyz"}, []string{open}},
		"metrics":      {"scrapers have no token", request{target: "/metrics"}, []string{open}},
		"openapi":      {"the contract is public", request{target: "/openapi.json"}, []string{open}},
	}
	if n := len(newFixture(t).api.table()); n != len(cases) {
		t.Fatalf("%d routes and %d cases", n, len(cases))
	}
	for name, tc := range cases {
		for _, who := range []string{stranger, agent, other, reader, pipeline, admin} {
			t.Run(name+" by "+who, func(t *testing.T) {
				f := newFixture(t)
				f.hub.verdict = passed()
				q := tc.q
				q.target = strings.Replace(q.target, "ID", f.ids[schema.RoleReader], 1)
				q.role = schema.Role(who)
				allowed := len(tc.allow) == 1 && tc.allow[0] == open
				for _, a := range tc.allow {
					allowed = allowed || a == who
				}
				var want int
				switch who {
				case other:
					token, err := f.tokens.Create(t.Context(), schema.TokenRequest{Role: schema.RoleAgent, Cluster: "drone-08"})
					if err != nil {
						t.Fatal(err)
					}
					f.bearer[schema.Role(other)] = token.Secret
					want = http.StatusForbidden
				case stranger:
					want = http.StatusUnauthorized
				default:
					want = http.StatusForbidden
				}
				w := f.do(t, q)
				if allowed {
					if w.Code >= 300 {
						t.Errorf("refused with %d, though %s: %s", w.Code, tc.reason, w.Body)
					}
					return
				}
				if w.Code != want {
					t.Errorf("status %d, want %d, because %s", w.Code, want, tc.reason)
				}
				if calls := f.hub.asked(); len(calls) > 0 {
					t.Errorf("it was refused and yet %v were called", calls)
				}
			})
		}
	}
}

func TestWhoIsNotKnown(t *testing.T) {
	cases := map[string]struct {
		reason    string
		header    string
		challenge string
	}{
		"no token":     {"nothing was sent", "", `Bearer realm="landfall"`},
		"wrong token":  {"nobody made it", "Bearer lf_mfrggzdfmztwq2lk_" + strings.Repeat("a", 52), `Bearer realm="landfall", error="invalid_token"`},
		"garbage":      {"not even the form of a token", "Bearer x", `Bearer realm="landfall", error="invalid_token"`},
		"other scheme": {"only bearer tokens are known", "Basic YWRtaW46YWRtaW4=", `Bearer realm="landfall"`},
		"empty bearer": {"an empty secret is none", "Bearer ", `Bearer realm="landfall", error="invalid_token"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.do(t, request{method: "POST", target: reports, body: goodReport, header: map[string]string{"Authorization": tc.header}})
			if p := problem(t, w); w.Code != http.StatusUnauthorized || p.Code != schema.CodeUnauthenticated {
				t.Errorf("%d %s, because %s", w.Code, p.Code, tc.reason)
			}
			if got := w.Header().Get("WWW-Authenticate"); got != tc.challenge {
				t.Errorf("WWW-Authenticate %q, want %q", got, tc.challenge)
			}
			if calls := f.hub.asked(); len(calls) > 0 {
				t.Errorf("%v were called", calls)
			}
		})
	}
}

func TestWithoutTokens(t *testing.T) {
	cases := map[string]struct {
		reason string
		host   string
		header map[string]string
		want   int
	}{
		"localhost":       {"the common case", "localhost:8080", nil, 200},
		"ipv4":            {"any loopback address", "127.0.0.2:8080", nil, 200},
		"ipv6":            {"any loopback address", "[::1]:8080", nil, 200},
		"mapped ipv4":     {"the same address in IPv6", "[::ffff:127.0.0.1]:80", nil, 200},
		"a page's name":   {"DNS rebinding: a name of the web that points here", "evil.example:8080", nil, 403},
		"looks like it":   {"the suffix must be a label", "notlocalhost:8080", nil, 403},
		"prefix only":     {"a name of the web again", "127.0.0.1.evil.example", nil, 403},
		"other address":   {"nobody listens there", "192.0.2.1:8080", nil, 403},
		"no host":         {"HTTP/1.0", "", nil, 403},
		"a page's origin": {"a form of a web page", "localhost:8080", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := bareFixture(t)
			r := request{method: "POST", target: reports, body: goodReport, header: tc.header}.build(f)
			r.Host = tc.host
			w := serve(f, r)
			want := tc.want
			if want == 200 {
				want = http.StatusAccepted
			}
			if w.Code != want {
				t.Errorf("status %d, want %d: %s", w.Code, want, tc.reason)
			}
		})
	}
}

func TestTheFirstTokenClosesTheDoor(t *testing.T) {
	f := bareFixture(t)
	create := request{method: "POST", target: "/api/v1/tokens", body: `{"role":"reader"}`}
	if w := f.do(t, create); w.Code != http.StatusCreated {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if w := f.do(t, request{target: "/api/v1/clusters"}); w.Code != http.StatusUnauthorized {
		t.Errorf("status %d without a token, want 401", w.Code)
	}
}

func TestTheLastAdminStays(t *testing.T) {
	f := newFixture(t)
	w := f.do(t, request{method: "DELETE", target: "/api/v1/tokens/" + f.ids[schema.RoleAdmin]})
	if p := problem(t, w); p.Code != schema.CodeConflict {
		t.Errorf("%d %s, want a conflict", w.Code, p.Code)
	}
	if w := f.do(t, request{method: "DELETE", target: "/api/v1/tokens/" + f.ids[schema.RoleReader]}); w.Code != http.StatusNoContent {
		t.Errorf("status %d, want 204", w.Code)
	}
	if w := f.do(t, request{target: "/api/v1/clusters", role: schema.RoleReader}); w.Code != http.StatusUnauthorized {
		t.Errorf("a revoked token still has %d", w.Code)
	}
}

func TestOnlyAnAdminBringsAClusterBack(t *testing.T) {
	f := newFixture(t)
	f.hub.cluster.Status = schema.ClusterDecommissioned
	q := request{method: "PUT", target: "/api/v1/clusters/drone-07", body: `{}`, role: schema.RoleAgent}
	if p := problem(t, f.do(t, q)); p.Code != schema.CodeDecommissioned {
		t.Errorf("the agent got %s", p.Code)
	}
	q.role = schema.RoleAdmin
	if w := f.do(t, q); w.Code != http.StatusOK {
		t.Errorf("the admin got %d", w.Code)
	}
}

// closedTokens cannot know who calls.
type closedTokens struct{ Tokens }

func (closedTokens) Required(context.Context) (bool, error) {
	return true, &schema.Refusal{Code: schema.CodeUnavailable, Detail: "not yet"}
}

func TestUnknownTokensStayClosed(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Tokens = closedTokens{} })
	w := f.do(t, request{target: "/api/v1/clusters"})
	if p := problem(t, w); p.Code != schema.CodeUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s, Retry-After %q", w.Code, p.Code, w.Header().Get("Retry-After"))
	}
	if w := f.do(t, request{target: "/healthz"}); w.Code != http.StatusOK {
		t.Errorf("healthz: %d", w.Code)
	}
}

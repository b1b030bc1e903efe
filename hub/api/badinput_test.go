package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/schema"
)

// with returns the good report with one text replaced.
func with(old, replacement string) string { return strings.Replace(goodReport, old, replacement, 1) }

// TestBadInput holds each kind of bad input to its problem, and to changing
// nothing: nobody behind the API is called.
func TestBadInput(t *testing.T) {
	post := func(body string, header ...string) request {
		q := request{method: http.MethodPost, target: reports, body: body, header: map[string]string{}}
		for i := 0; i < len(header); i += 2 {
			q.header[header[i]] = header[i+1]
		}
		return q
	}
	put := func(body string) request {
		return request{method: http.MethodPut, target: "/api/v1/clusters/drone-07", body: body}
	}
	get := func(target string) request { return request{target: target} }
	states := func(query string) request { return get("/api/v1/state/clusters" + query) }
	const source = "/reconcilers/0/sources/0"
	cases := map[string]struct {
		reason string
		q      request
		status int
		code   schema.Code
		// at is the pointer or the parameter.
		at string
		// says is a part of the detail.
		says string
	}{
		"broken JSON":       {"it stops making sense", post(`{"epoch":7,,}`), 400, "invalid_json", "", "byte 11"},
		"cut JSON":          {"the end is missing", post(goodReport[:100]), 400, "invalid_json", "/reconcilers/0/kind", "ends in the middle"},
		"empty body":        {"nothing was sent", request{method: "POST", target: reports, header: map[string]string{"Content-Type": "application/json"}}, 400, "invalid_json", "", "empty"},
		"blank body":        {"white space is nothing", post(" \n "), 400, "invalid_json", "", "empty"},
		"trailing data":     {"two values are one too many", post(goodReport + ` {}`), 400, "invalid_json", "", "after top-level value"},
		"not an object":     {"a list is no report", post(`[]`), 400, "invalid_field", "", "an object belongs"},
		"null":              {"null has no epoch", post(`null`), 400, "missing_field", "/epoch", ""},
		"NaN":               {"no JSON", post(with("7", "NaN")), 400, "invalid_json", "/epoch", "line 1"},
		"not UTF-8":         {"texts are UTF-8", post(with("hello", "h\xff")), 400, "invalid_json", "/reconcilers/0/name", "UTF-8"},
		"lone surrogate":    {"an escape that is no character", post(with("hello", `h\ud800`)), 400, "invalid_json", "/reconcilers/0/name", "surrogate"},
		"unknown field":     {"typing errors are told", post(with(`"mode"`, `"moed":"x","mode"`)), 400, "unknown_field", "/moed", `"moed"`},
		"other case":        {"names are exact", post(with(`"mode"`, `"Mode"`)), 400, "unknown_field", "/Mode", ""},
		"deep unknown":      {"at any depth", post(with(`"path"`, `"paht"`)), 400, "unknown_field", source + "/paht", "line 2"},
		"duplicate member":  {"which one is meant?", post(with(`"mode"`, `"epoch":8,"mode"`)), 400, "invalid_json", "/epoch", "twice"},
		"deep duplicate":    {"at any depth", post(with(`"path"`, `"ref":"stage","path"`)), 400, "invalid_json", source + "/ref", "twice"},
		"wrong type":        {"a text is no number", post(with("7", `"7"`)), 400, "invalid_field", "/epoch", "a text where a whole number"},
		"fraction":          {"a sequence is whole", post(with("42", "42.5")), 400, "invalid_field", "/sequence", "whole number"},
		"negative":          {"a sequence is not negative", post(with("42", "-42")), 400, "invalid_field", "/sequence", "whole number"},
		"huge number":       {"over 64 bits", post(with("42", "99999999999999999999")), 400, "invalid_field", "/sequence", "2⁶⁴"},
		"bad time":          {"no time", post(with("2026-11-20T09:00:00Z", "yesterday")), 400, "invalid_field", "/observed_at", "2026-11-20"},
		"no epoch":          {"required", post(with(`"epoch":7,`, "")), 400, "missing_field", "/epoch", ""},
		"no sources":        {"required, may be empty", post(with(`"sources"`, `"attempted":null,"sources":null,"origin"`)), 400, "invalid_field", "/reconcilers/0/origin/0", "an object where a text"},
		"bad mode":          {"there are two", post(with("delta", "full")), 400, "invalid_field", "/mode", "snapshot or delta"},
		"bad status":        {"there are six", post(with("success", "great")), 400, "invalid_field", "/reconcilers/0/status", "great"},
		"nonsense revision": {"control characters", post(with("dev@sha1", `dev\u0007`)), 400, "invalid_revision", "/reconcilers/0/applied/0", "U+0007"},
		"climbing path":     {"out of the repository", post(with("./x", "a/../../etc")), 400, "invalid_path", source + "/path", "climbs out"},
		"bad repo":          {"no host", post(with("https://user:secret@github.com/org/app", "https:///x")), 400, "invalid_repo", source + "/url", ""},
		"twice in a report": {"one reconciler, one state", post(with(`]}`, `]},{"kind":"Kustomization","namespace":"flux-system","name":"hello","sources":[],"status":"success"}`)),
			400, "duplicate", "/reconcilers/1", "twice"},
		"year 9999": {"the store cannot hold it", post(with("2026-11", "9999-11")), 400, "invalid_field", "/observed_at", "1970"},

		"wrong content type":     {"only JSON is read", post(goodReport, "Content-Type", "text/plain"), 415, "unsupported_media", "", "application/json"},
		"no content type":        {"guessing is for browsers", post(goodReport, "Content-Type", ""), 415, "unsupported_media", "", ""},
		"form":                   {"a web page's form", post(goodReport, "Content-Type", "application/x-www-form-urlencoded"), 415, "unsupported_media", "", ""},
		"charset":                {"JSON is UTF-8", post(goodReport, "Content-Type", "application/json; charset=latin1"), 415, "unsupported_media", "", ""},
		"unknown encoding":       {"gzip and zstd are read", post(goodReport, "Content-Encoding", "br"), 415, "unsupported_media", "", "gzip, zstd"},
		"two encodings":          {"one is enough", post(goodReport, "Content-Encoding", "gzip, zstd"), 415, "unsupported_media", "", ""},
		"not gzip":               {"the header lies", post(goodReport, "Content-Encoding", "gzip"), 400, "invalid_json", "", "not gzip"},
		"not zstd":               {"the header lies", post(goodReport, "Content-Encoding", "zstd"), 400, "invalid_json", "", "not zstd"},
		"parameter of a report":  {"reports have none", request{method: "POST", target: reports + "?dry=1", body: goodReport}, 400, "unknown_parameter", "dry", "no query parameters"},
		"bad cluster name":       {"it stands in URLs", request{method: "POST", target: "/api/v1/clusters/-x/reports", body: goodReport}, 400, "invalid_parameter", "cluster", "begins with"},
		"cluster climbs out":     {"escapes are read before judging", request{method: "POST", target: "/api/v1/clusters/..%2f..%2fetc/reports", body: goodReport}, 400, "invalid_parameter", "cluster", ""},
		"cluster with a newline": {"no control characters", get("/api/v1/clusters/a%0ab"), 400, "invalid_parameter", "cluster", ""},
		"cluster too long":       {"at most 253", get("/api/v1/clusters/" + strings.Repeat("a", 254)), 400, "invalid_parameter", "cluster", ""},

		"agent on another's cluster": {"its token says drone-07", request{method: "POST", target: "/api/v1/clusters/drone-08/reports", role: schema.RoleAgent, body: goodReport},
			403, "forbidden", "", "drone-07"},
		"agent registers another": {"its token says drone-07", request{method: "PUT", target: "/api/v1/clusters/drone-08", role: schema.RoleAgent, body: `{}`}, 403, "forbidden", "", ""},

		"both memberships":   {"shorthand or list", put(`{"environment":"dev","type":"drone","memberships":[{"environment":"a","type":"b"}]}`), 400, "invalid_field", "/environment", ""},
		"half a membership":  {"environment and type come together", put(`{"environment":"dev"}`), 400, "missing_field", "/environment", ""},
		"bad interval":       {"no duration", put(`{"heartbeat_interval":"often"}`), 400, "invalid_field", "/heartbeat_interval", `"30s"`},
		"interval as number": {"of what unit?", put(`{"heartbeat_interval":30}`), 400, "invalid_field", "/heartbeat_interval", `"30s"`},
		"bad kind":           {"kubernetes or host", put(`{"kind":"toaster"}`), 400, "invalid_field", "/kind", ""},
		"label as number":    {"labels are texts", put(`{"labels":{"tier":1}}`), 400, "invalid_field", "/labels/tier", "a number where a text"},
		"bad digest":         {"32 hex digits", request{method: "POST", target: "/api/v1/clusters/drone-07/heartbeat", body: `{"epoch":7,"sequence":1,"digest":"xyz"}`}, 400, "invalid_field", "/digest", ""},

		"no repo":            {"required", get("/api/v1/compliance?commit=" + commit), 400, "invalid_parameter", "repo", "missing"},
		"no commit":          {"required", get("/api/v1/compliance?repo=https://h/o/r"), 400, "invalid_parameter", "commit", "missing"},
		"short commit":       {"never guessed", get("/api/v1/compliance?repo=https://h/o/r&commit=5ce05ce0"), 400, "invalid_commit", "commit", "5ce05ce0"},
		"commit of nonsense": {"no hex", get("/api/v1/compliance?repo=https://h/o/r&commit=" + strings.Repeat("zz", 20)), 400, "invalid_commit", "commit", ""},
		"repo without host":  {"no repository", get("/api/v1/compliance?repo=https://&commit=" + commit), 400, "invalid_repo", "repo", "host"},
		"ref of nonsense":    {"no branch", get("/api/v1/compliance?repo=https://h/o/r&ref=refs/heads/&commit=" + commit), 400, "invalid_ref", "ref", ""},
		"asked path climbs":  {"out of the repository", get("/api/v1/compliance?repo=https://h/o/r&path=../x&commit=" + commit), 400, "invalid_path", "path", "climbs"},
		"min_compliant":      {"over 100", get(compliance("&min_compliant=101%25")), 400, "invalid_parameter", "min_compliant", "100"},
		"max_failures":       {"no number", get(compliance("&max_failures=-1")), 400, "invalid_parameter", "max_failures", ""},
		"mandatory":          {"no selector", get(compliance("&mandatory=a+in")), 400, "invalid_parameter", "mandatory", "selector"},
		"zero_targets":       {"N of 1 or more", get(compliance("&zero_targets=require:0")), 400, "invalid_parameter", "zero_targets", "require:N"},
		"unknown":            {"block or exclude", get(compliance("&unknown=maybe")), 400, "invalid_parameter", "unknown", ""},
		"suspended":          {"an empty value is none", get(compliance("&suspended=")), 400, "invalid_parameter", "suspended", ""},
		"children":           {"require or ignore", get(compliance("&children=block")), 400, "invalid_parameter", "children", ""},
		"min_success_time":   {"no duration", get(compliance("&min_success_time=5")), 400, "invalid_parameter", "min_success_time", ""},
		"progress_deadline":  {"positive", get(compliance("&progress_deadline=0s")), 400, "invalid_parameter", "progress_deadline", ""},
		"unknown parameter":  {"typing errors are told", get(compliance("&min_complaint=95")), 400, "unknown_parameter", "min_complaint", "min_compliant"},
		"doubled parameter":  {"which one is meant?", get(compliance("&ref=stage")), 400, "invalid_parameter", "ref", "2 times"},
		"bad escape":         {"a bare percent sign", get(compliance("&min_compliant=95%")), 400, "invalid_parameter", "", "%25"},
		"semicolon":          {"no separator any more", get(compliance(";ref=x")), 400, "invalid_parameter", "", ""},
		"control character":  {"no text", get(compliance("&mandatory=a%00")), 400, "invalid_parameter", "mandatory", "printable"},
		"bad wait":           {"no duration", get(compliance("&wait=soon")), 400, "invalid_parameter", "wait", "30s"},
		"long wait":          {"5m at most", get(compliance("&wait=5m1s")), 400, "invalid_parameter", "wait", "5m"},
		"negative wait":      {"time goes forward", get(compliance("&wait=-1s")), 400, "invalid_parameter", "wait", ""},
		"wait on a stream":   {"a stream waits anyway", get(strings.Replace(compliance("&wait=1s"), "?", "/stream?", 1)), 400, "unknown_parameter", "wait", ""},

		"limit 0":        {"1 to 1000", states("?limit=0"), 400, "invalid_parameter", "limit", "1000"},
		"limit 1001":     {"1 to 1000", states("?limit=1001"), 400, "invalid_parameter", "limit", "1000"},
		"limit x":        {"no number", states("?limit=x"), 400, "invalid_parameter", "limit", ""},
		"bad status row": {"there are six", states("?status=live"), 400, "invalid_parameter", "status", "in_progress"},
		"bad cursor":     {"garbage", states("?cursor=abc"), 400, "invalid_cursor", "cursor", "next_cursor"},
		"empty cursor":   {"left out means the start", states("?cursor="), 400, "invalid_cursor", "cursor", ""},
		"cluster status": {"there are three", get("/api/v1/clusters?status=dead"), 400, "invalid_parameter", "status", "silent"},

		"token role":          {"there are four", request{method: "POST", target: "/api/v1/tokens", body: `{"role":"god"}`}, 400, "invalid_field", "/role", "god"},
		"token without role":  {"required", request{method: "POST", target: "/api/v1/tokens", body: `{}`}, 400, "missing_field", "/role", ""},
		"agent's cluster":     {"required", request{method: "POST", target: "/api/v1/tokens", body: `{"role":"agent"}`}, 400, "missing_field", "/cluster", ""},
		"agent's bad cluster": {"it stands in URLs", request{method: "POST", target: "/api/v1/tokens", body: `{"role":"agent","cluster":"a/b"}`}, 400, "invalid_field", "/cluster", ""},
		"reader's cluster":    {"only agents have one", request{method: "POST", target: "/api/v1/tokens", body: `{"role":"reader","cluster":"a"}`}, 400, "invalid_field", "/cluster", ""},
		"token name":          {"control characters", request{method: "POST", target: "/api/v1/tokens", body: `{"role":"reader","name":"a\u0000"}`}, 400, "invalid_field", "/name", ""},
		"no such token":       {"nothing to revoke", request{method: "DELETE", target: "/api/v1/tokens/x"}, 404, "not_found", "", ""},

		"no such route":  {"nothing there", get("/api/v1/nothing"), 404, "not_found", "", "/openapi.json"},
		"trailing slash": {"another path", get("/api/v1/clusters/"), 404, "not_found", "", ""},
		"other method":   {"Allow says which", request{method: "PATCH", target: "/api/v1/clusters/drone-07"}, 405, "method_not_allowed", "", "DELETE, GET, HEAD, PUT"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.do(t, tc.q)
			p := problem(t, w)
			if w.Code != tc.status || p.Code != tc.code {
				t.Errorf("%d %s, want %d %s, because %s\n%+v", w.Code, p.Code, tc.status, tc.code, tc.reason, p)
			}
			if got := p.Pointer + p.Parameter; got != tc.at {
				t.Errorf("it blames %q, want %q\n%+v", got, tc.at, p)
			}
			if !strings.Contains(p.Detail, tc.says) {
				t.Errorf("the detail lacks %q: %s", tc.says, p.Detail)
			}
			if calls := f.hub.asked(); len(calls) > 0 {
				t.Errorf("%v were called", calls)
			}
			if tc.status == http.StatusMethodNotAllowed && w.Header().Get("Allow") != tc.says {
				t.Errorf("Allow is %q", w.Header().Get("Allow"))
			}
		})
	}
}

func TestProblemsStaySmall(t *testing.T) {
	f := newFixture(t)
	long := strings.Repeat("ä", 1<<20)
	for _, body := range []string{`{"mode":"` + long + `"}`, `{"` + long + `":1}`, with("delta", long)} {
		if w := f.do(t, request{method: "POST", target: reports, body: body}); len(plainBody(t, w)) > 4096 {
			t.Errorf("%d bytes", w.Body.Len())
		}
	}
}

package system

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/landfall-hub/landfall/schema"
)

// guarded is a hub with tokens, one for each role; the agent's is for cluster.
type guarded struct {
	*hub
	admin, reader, pipeline, agent string
	cluster                        string
}

// newGuarded starts a hub and makes its tokens, the admin's first.
func newGuarded(t testing.TB) *guarded {
	t.Helper()
	g := &guarded{hub: newHub(t), cluster: unique("cluster")}
	g.admin = g.token(t, schema.TokenRequest{Name: "first", Role: schema.RoleAdmin})
	g.reader = g.token(t, schema.TokenRequest{Role: schema.RoleReader})
	g.pipeline = g.token(t, schema.TokenRequest{Role: schema.RolePipeline})
	g.agent = g.token(t, schema.TokenRequest{Role: schema.RoleAgent, Cluster: g.cluster})
	return g
}

func (g *guarded) token(t testing.TB, r schema.TokenRequest) string {
	t.Helper()
	token, err := g.as(t, g.admin).CreateToken(t.Context(), r)
	if err != nil {
		t.Fatalf("making a token: %v", err)
	}
	return token.Secret
}

// everything is all that lists show, as text.
func (g *guarded) everything(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, path := range []string{"/api/v1/clusters?limit=1000", "/api/v1/clusters?status=decommissioned&limit=1000", "/api/v1/state/clusters?limit=1000", "/api/v1/tokens?limit=1000"} {
		status, text := request(t, http.MethodGet, g.url+path, g.admin, "")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, text)
		}
		all.WriteString(text + "\n")
	}
	return all.String()
}

// endless reads as many letters as one wants.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// bomb returns a GiB of blanks, compressed: one piece, many times over.
func bomb(t testing.TB, writer func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	const piece, whole = 4 << 20, 1 << 30
	var b bytes.Buffer
	w := writer(&b)
	if _, err := io.CopyN(w, endless{}, piece); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.Repeat(b.Bytes(), whole/piece)
}

func TestBadInputIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	g, repo := newGuarded(t), newRepo()
	a := &agent{client: g.as(t, g.agent), cluster: g.cluster}
	a.register(t, func(r *schema.Registration) { r.ReportsFor = []string{"allowed"} })
	app := at(kustomization("app", repo, "app"), commit(1), schema.StatusSuccess)
	a.lists(t, app)
	other := &agent{client: g.as(t, g.admin), cluster: unique("other")}
	other.register(t)
	other.lists(t, app)
	before := g.everything(t)

	reports, ask := "/api/v1/clusters/"+g.cluster+"/reports", "/api/v1/compliance?"
	// report is a good report but for what is put in: members of the message, then
	// members of its reconciler.
	report := func(message, reconciler string) string {
		return fmt.Sprintf(`{"epoch":%d,"sequence":9,"mode":"delta","observed_at":"2026-11-20T09:00:00Z"%s,"reconcilers":[{"kind":"Kustomization","namespace":"flux-system","name":"bad","status":"success"%s}]}`,
			a.epoch, message, reconciler)
	}
	const sources = `,"sources":[{"type":"git","url":"https://git.example/org/x","ref":"dev","path":"./x"}]`
	query := func(pairs ...string) string {
		v := url.Values{"repo": {repo}, "ref": {branch}, "commit": {commit(1)}}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return ask + v.Encode()
	}
	gz := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	zs := func(w io.Writer) io.WriteCloser {
		z, err := zstd.NewWriter(w)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	gzipBomb, zstdBomb := bomb(t, gz), bomb(t, zs)

	type badCase struct {
		method, path string
		// token is the agent's unless another is said; "-" is none.
		token, encoding string
		body            io.Reader
		status          int
		code            schema.Code
		// blamed is in the pointer or the parameter.
		blamed string
	}
	put := func(path, body string) badCase {
		return badCase{method: http.MethodPut, path: path, body: strings.NewReader(body)}
	}
	post := func(body string) badCase {
		return badCase{method: http.MethodPost, path: reports, body: strings.NewReader(body)}
	}
	get := func(path string) badCase {
		return badCase{method: http.MethodGet, path: path, token: g.admin}
	}
	is := func(c badCase, status int, code schema.Code, blamed string) badCase {
		c.status, c.code, c.blamed = status, code, blamed
		return c
	}
	with := func(c badCase, token string) badCase { c.token = token; return c }
	compressed := func(encoding string, body []byte) badCase {
		return badCase{method: http.MethodPost, path: reports, encoding: encoding, body: bytes.NewReader(body)}
	}
	const bad, forbidden = http.StatusBadRequest, http.StatusForbidden
	cases := map[string]badCase{
		"broken JSON":                         is(post(`{"epoch":1,`), bad, schema.CodeInvalidJSON, ""),
		"an empty body":                       is(post(""), bad, schema.CodeInvalidJSON, ""),
		"two documents":                       is(post(report("", sources)+"{}"), bad, schema.CodeInvalidJSON, ""),
		"not UTF-8":                           is(post(report("", sources+`,"message":"`+"\xff\xfe"+`"`)), bad, schema.CodeInvalidJSON, "/reconcilers/0/message"),
		"a member twice":                      is(post(report(`,"epoch":1`, sources)), bad, schema.CodeInvalidJSON, "/epoch"),
		"an unknown member":                   is(post(report(`,"colour":"red"`, sources)), bad, schema.CodeUnknownField, "/colour"),
		"an unknown member of a reconciler":   is(post(report("", sources+`,"colour":"red"`)), bad, schema.CodeUnknownField, "/reconcilers/0/colour"),
		"a wrong type":                        is(post(report(`,"agent":7`, sources)), bad, schema.CodeInvalidField, "/agent"),
		"no sources":                          is(post(report("", "")), bad, schema.CodeMissingField, "/reconcilers/0/sources"),
		"an unknown status":                   is(post(strings.Replace(report("", sources), `"success"`, `"splendid"`, 1)), bad, schema.CodeInvalidField, "/reconcilers/0/status"),
		"an unknown mode":                     is(post(strings.Replace(report("", sources), `"delta"`, `"whole"`, 1)), bad, schema.CodeInvalidField, "/mode"),
		"a time of no calendar":               is(post(strings.Replace(report("", sources), "11-20", "13-40", 1)), bad, schema.CodeInvalidField, "/observed_at"),
		"sequence zero":                       is(post(strings.Replace(report("", sources), `"sequence":9`, `"sequence":0`, 1)), bad, schema.CodeMissingField, "/sequence"),
		"a negative sequence":                 is(post(strings.Replace(report("", sources), `"sequence":9`, `"sequence":-9`, 1)), bad, schema.CodeInvalidField, "/sequence"),
		"a reconciler twice":                  is(post(report(`,"removed":[{"kind":"Kustomization","namespace":"flux-system","name":"bad"}]`, sources)), bad, schema.CodeDuplicate, "/removed/0"),
		"a revision with a control character": is(post(report("", sources+`,"applied":["dev@sha1:\u0000\u001b[2J"]`)), bad, schema.CodeInvalidRevision, "/reconcilers/0/applied/0"),
		"a revision too many":                 is(post(report("", sources+`,"applied":["a","b"]`)), bad, schema.CodeInvalidField, "/reconcilers/0/applied"),
		"a source's path that climbs out":     is(post(report("", strings.Replace(sources, "./x", "apps/../../x", 1))), bad, schema.CodeInvalidPath, "/reconcilers/0/sources/0/path"),
		"a source's URL that is none":         is(post(report("", strings.Replace(sources, "https://git.example/org/x", "https://", 1))), bad, schema.CodeInvalidRepo, "/reconcilers/0/sources/0/url"),
		"a destination outside reports_for":   is(post(report("", sources+`,"cluster":"elsewhere"`)), forbidden, schema.CodeForbidden, ""),
		"17 MiB":                              is(post(report("", sources)+strings.Repeat(" ", 17<<20)), http.StatusRequestEntityTooLarge, schema.CodeBodyTooLarge, ""),
		"17 MiB of no said length":            is(badCase{method: http.MethodPost, path: reports, body: io.MultiReader(strings.NewReader(report("", sources)), io.LimitReader(endless{}, 17<<20))}, http.StatusRequestEntityTooLarge, schema.CodeBodyTooLarge, ""),
		"a gzip bomb":                         is(compressed("gzip", gzipBomb), http.StatusRequestEntityTooLarge, schema.CodeBodyTooLarge, ""),
		"a zstd bomb":                         is(compressed("zstd", zstdBomb), http.StatusRequestEntityTooLarge, schema.CodeBodyTooLarge, ""),
		"no gzip at all":                      is(compressed("gzip", []byte("no gzip at all")), bad, schema.CodeInvalidJSON, ""),
		"half a gzip":                         is(compressed("gzip", gzipBomb[:100]), bad, schema.CodeInvalidJSON, ""),
		"an unknown encoding":                 is(compressed("br", []byte("x")), http.StatusUnsupportedMediaType, schema.CodeUnsupportedMedia, ""),
		"a parameter of a report":             is(badCase{method: http.MethodPost, path: reports + "?dry_run=true", body: strings.NewReader(report("", sources))}, bad, schema.CodeUnknownParameter, "dry_run"),

		"no token":                              is(with(post(report("", sources)), "-"), http.StatusUnauthorized, schema.CodeUnauthenticated, ""),
		"a wrong token":                         is(with(post(report("", sources)), "lf_0123_wrong"), http.StatusUnauthorized, schema.CodeUnauthenticated, ""),
		"a reader's report":                     is(with(post(report("", sources)), g.reader), forbidden, schema.CodeForbidden, ""),
		"another cluster's report":              is(badCase{method: http.MethodPost, path: "/api/v1/clusters/" + other.cluster + "/reports", body: strings.NewReader(report("", sources))}, forbidden, schema.CodeForbidden, ""),
		"another cluster's heartbeat":           is(badCase{method: http.MethodPost, path: "/api/v1/clusters/" + other.cluster + "/heartbeat", body: strings.NewReader(`{"epoch":1}`)}, forbidden, schema.CodeForbidden, ""),
		"another cluster's registration":        is(put("/api/v1/clusters/"+other.cluster, `{}`), forbidden, schema.CodeForbidden, ""),
		"an agent's decommission of itself":     is(badCase{method: http.MethodDelete, path: "/api/v1/clusters/" + g.cluster}, forbidden, schema.CodeForbidden, ""),
		"a decommission of nobody":              is(badCase{method: http.MethodDelete, path: "/api/v1/clusters/nobody", token: g.admin}, http.StatusNotFound, schema.CodeNotRegistered, ""),
		"a cluster's name with a slash":         is(with(put("/api/v1/clusters/a%2Fb", `{}`), g.admin), bad, schema.CodeInvalidParameter, "cluster"),
		"a cluster's name that climbs out":      is(with(put("/api/v1/clusters/%2e%2e%2fx", `{}`), g.admin), bad, schema.CodeInvalidParameter, "cluster"),
		"a heartbeat interval below a second":   is(put("/api/v1/clusters/"+g.cluster, `{"heartbeat_interval":"10ms"}`), bad, schema.CodeInvalidField, "/heartbeat_interval"),
		"a registration with an unknown member": is(put("/api/v1/clusters/"+g.cluster, `{"colour":"red"}`), bad, schema.CodeUnknownField, "/colour"),
		"half a membership":                     is(put("/api/v1/clusters/"+g.cluster, `{"environment":"dev"}`), bad, schema.CodeMissingField, "/environment"),
		"a role that there is not":              is(badCase{method: http.MethodPost, path: "/api/v1/tokens", token: g.admin, body: strings.NewReader(`{"role":"king"}`)}, bad, schema.CodeInvalidField, "/role"),
		"a token of an agent of nowhere":        is(badCase{method: http.MethodPost, path: "/api/v1/tokens", token: g.admin, body: strings.NewReader(`{"role":"agent"}`)}, bad, schema.CodeMissingField, "/cluster"),
		"a pipeline's token":                    is(badCase{method: http.MethodPost, path: "/api/v1/tokens", token: g.pipeline, body: strings.NewReader(`{"role":"admin"}`)}, forbidden, schema.CodeForbidden, ""),

		"a short commit":               is(get(query("commit", commit(1)[:12])), bad, schema.CodeInvalidCommit, "commit"),
		"a branch for a commit":        is(get(query("commit", "main")), bad, schema.CodeInvalidCommit, "commit"),
		"no commit":                    is(get(ask+"repo="+repo), bad, schema.CodeInvalidParameter, "commit"),
		"no repository":                is(get(ask+"commit="+commit(1)), bad, schema.CodeInvalidParameter, "repo"),
		"a path that climbs out":       is(get(query("path", "../../etc")), bad, schema.CodeInvalidPath, "path"),
		"a path that climbs out later": is(get(query("path", "apps/../../etc")), bad, schema.CodeInvalidPath, "path"),
		"a repository that is none":    is(get(query("repo", "not a repository")), bad, schema.CodeInvalidRepo, "repo"),
		"an unknown parameter":         is(get(query("colour", "red")), bad, schema.CodeUnknownParameter, "colour"),
		"a parameter twice":            is(get(query()+"&commit="+commit(2)), bad, schema.CodeInvalidParameter, "commit"),
		"a share above all":            is(get(query("min_compliant", "101%")), bad, schema.CodeInvalidParameter, "min_compliant"),
		"a negative number":            is(get(query("max_failures", "-1")), bad, schema.CodeInvalidParameter, "max_failures"),
		"targets of no number":         is(get(query("zero_targets", "require:none")), bad, schema.CodeInvalidParameter, "zero_targets"),
		"a selector that is none":      is(get(query("mandatory", "a=b=c")), bad, schema.CodeInvalidParameter, "mandatory"),
		"a wait above five minutes":    is(get(query("wait", "6m")), bad, schema.CodeInvalidParameter, "wait"),
		"a wait of no time":            is(get(query("wait", "soon")), bad, schema.CodeInvalidParameter, "wait"),
		"a stream with a wait":         is(get(strings.Replace(query("wait", "1s"), "compliance?", "compliance/stream?", 1)), bad, schema.CodeUnknownParameter, "wait"),
		"a short commit's stream":      is(get(strings.Replace(query("commit", "abc"), "compliance?", "compliance/stream?", 1)), bad, schema.CodeInvalidCommit, "commit"),
		"a broken cursor":              is(get("/api/v1/clusters?cursor=nonsense"), bad, schema.CodeInvalidCursor, "cursor"),
		"a page of nothing":            is(get("/api/v1/clusters?limit=0"), bad, schema.CodeInvalidParameter, "limit"),
		"a page too long":              is(get("/api/v1/state/clusters?limit=1001"), bad, schema.CodeInvalidParameter, "limit"),
		"a status that there is not":   is(get("/api/v1/state/clusters?status=splendid"), bad, schema.CodeInvalidParameter, "status"),
		"an agent that reads":          is(with(get("/api/v1/state/clusters"), g.agent), forbidden, schema.CodeForbidden, ""),
		"a cluster that is not there":  is(get("/api/v1/clusters/nobody"), http.StatusNotFound, schema.CodeNotFound, ""),
		"a route that is not there":    is(get("/api/v1/nothing"), http.StatusNotFound, schema.CodeNotFound, ""),
		"a method that is not there":   is(badCase{method: http.MethodPatch, path: "/api/v1/clusters", token: g.admin}, http.StatusMethodNotAllowed, schema.CodeMethodNotAllowed, ""),
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			body := c.body
			if body == nil {
				body = http.NoBody
			}
			r, err := http.NewRequestWithContext(t.Context(), c.method, g.url+c.path, body)
			if err != nil {
				t.Fatal(err)
			}
			if c.body != nil {
				r.Header.Set("Content-Type", "application/json")
			}
			if c.encoding != "" {
				r.Header.Set("Content-Encoding", c.encoding)
			}
			switch c.token {
			case "":
				r.Header.Set("Authorization", "Bearer "+g.agent)
			case "-":
			default:
				r.Header.Set("Authorization", "Bearer "+c.token)
			}
			status, text := do(t, r)
			var p schema.Problem
			if err := json.Unmarshal([]byte(text), &p); err != nil {
				t.Fatalf("want a problem, got %d %q", status, text)
			}
			if status != c.status || p.Status != c.status || p.Code != c.code || p.Detail == "" || p.Pointer+p.Parameter != c.blamed {
				t.Errorf("want %d %s blaming %q, got %d %+v", c.status, c.code, c.blamed, status, p)
			}
		})
	}
	if diff := cmp.Diff(before, g.everything(t)); diff != "" {
		t.Errorf("what was refused changed something (-before +after):\n%s", diff)
	}
	if _, said := request(t, http.MethodGet, g.url+"/metrics", "", ""); strings.Contains(said, "landfall_api_panics_total") && !strings.Contains(said, "landfall_api_panics_total 0") {
		t.Error("a handler panicked; the log says where")
	}
}

func TestARevisionThatIsPlainTextIsKept(t *testing.T) {
	t.Parallel()
	h, repo := sharedHub(t), newRepo()
	a := newAgent(t, h)
	for _, revision := range []string{"banana", "main/not-hex", "v1.2.3 (build 7)", "dev@sha1:zzz", "größer@ß", "'; DROP TABLE history; --"} {
		app := kustomization("app", repo, "app")
		app.Status, app.Attempted, app.Applied = schema.StatusSuccess, []string{revision}, []string{revision}
		a.says(t, app)
		v := ask(t, a.client, question(repo, "app", commit(1)))
		if v.State != schema.Waiting || len(v.Unfinished) != 1 || v.Unfinished[0].Revision != revision {
			t.Errorf("want %q kept and nothing compliant: %s", revision, show(v))
		}
		if row := stateRows(t, a.client, a.cluster)["Kustomization/flux-system/app"]; row.Commit != "" || row.Status != schema.StatusSuccess {
			t.Errorf("%q is shown as commit %q, %s", revision, row.Commit, row.Status)
		}
	}
}

// TestManyBombsAtOnceLeaveTheHubAlive sends more of them than the hub may hold,
// to a hub of its own: others would be told that it is busy.
func TestManyBombsAtOnceLeaveTheHubAlive(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	a := newAgent(t, h)
	b := bomb(t, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/api/v1/clusters/"+a.cluster+"/reports", bytes.NewReader(b))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Content-Encoding", "gzip")
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Errorf("sending a bomb: %v", err)
				return
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusRequestEntityTooLarge && response.StatusCode != http.StatusTooManyRequests {
				t.Errorf("a bomb is answered with %d", response.StatusCode)
			}
		})
	}
	all.Wait()
	a.beats(t)
}

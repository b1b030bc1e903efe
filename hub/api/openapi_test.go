package api

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

func TestDocumentIsValid(t *testing.T) {
	doc := document(t)
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("openapi is %q, want 3.1", doc.OpenAPI)
	}
}

func TestDocumentAndRoutesAgree(t *testing.T) {
	var served, described []string
	err := chi.Walk(newFixture(t).api.router, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		served = append(served, method+" "+pattern)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range document(t).Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	sort.Strings(served)
	sort.Strings(described)
	if diff := cmp.Diff(served, described); diff != "" {
		t.Errorf("served (-) and described (+) differ:\n%s", diff)
	}
}

func TestDocumentNamesTheRolesOfRoutes(t *testing.T) {
	doc := document(t)
	for _, rt := range newFixture(t).api.table() {
		op := doc.Paths.Value(rt.pattern).GetOperation(rt.method)
		if rt.open {
			if op.Security == nil || len(*op.Security) != 0 {
				t.Errorf("%s %s is open and the document asks for a token", rt.method, rt.pattern)
			}
			continue
		}
		var want []string
		for _, role := range rt.roles {
			if role == schema.RoleAgent {
				role += " (its own)"
			}
			want = append(want, string(role))
		}
		line := "Roles: " + strings.Join(append(want, "admin"), ", ") + "."
		if !strings.Contains(op.Description, line) {
			t.Errorf("%s %s: the description lacks %q: %s", rt.method, rt.pattern, line, op.Description)
		}
	}
}

// TestEveryRouteAnswersAsDescribed serves each operation with the document's
// own examples, and holds request and answer against the document.
func TestEveryRouteAnswersAsDescribed(t *testing.T) {
	for path, item := range document(t).Paths.Map() {
		for method, op := range item.Operations() {
			for i, body := range examples(op) {
				t.Run(method+" "+path+" "+strconv.Itoa(i), func(t *testing.T) {
					f := newFixture(t)
					f.hub.verdict = passed()
					f.hub.next = []string{"drone-07"}
					q := request{method: method, target: target(t, f, path, item, op), body: body}
					route, params, err := f.router.FindRoute(q.build(f))
					if err != nil {
						t.Fatal(err)
					}
					input := &openapi3filter.RequestValidationInput{Request: q.build(f), PathParams: params, Route: route,
						Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
					if err := openapi3filter.ValidateRequest(t.Context(), input); err != nil {
						t.Errorf("the example is not as described: %v", err)
					}
					if w := f.do(t, q); w.Code >= 300 {
						t.Errorf("status %d: %s", w.Code, w.Body)
					}
				})
			}
		}
	}
}

// examples returns the bodies to try; one empty where the operation has none.
func examples(op *openapi3.Operation) []string {
	if op.RequestBody == nil {
		return []string{""}
	}
	var out []string
	for _, e := range op.RequestBody.Value.Content["application/json"].Schema.Value.Examples {
		b, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		out = append(out, string(b))
	}
	return out
}

// target fills path and query from the parameters' examples.
func target(t *testing.T, f *fixture, path string, item *openapi3.PathItem, op *openapi3.Operation) string {
	t.Helper()
	query := ""
	for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
		switch example, _ := p.Value.Example.(string); {
		case p.Value.Name == "id":
			path = strings.Replace(path, "{id}", f.ids[schema.RoleReader], 1)
		case p.Value.In == "path":
			path = strings.Replace(path, "{"+p.Value.Name+"}", example, 1)
		case example != "":
			query += "&" + p.Value.Name + "=" + strings.NewReplacer("%", "%25", " ", "%20").Replace(example)
		}
	}
	if query != "" {
		path += "?" + query[1:]
	}
	return path
}

func TestDocumentHoldsTheDigest(t *testing.T) {
	value := document(t).Components.Schemas["Digest"].Value
	var example struct {
		Reconciler schema.Reconciler `json:"reconciler"`
		Serialized string            `json:"serialized"`
		Digest     string            `json:"digest"`
	}
	raw, err := json.Marshal(value.Extensions["x-example"])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &example); err != nil {
		t.Fatal(err)
	}
	if got := example.Reconciler.Digest().String(); got != example.Digest {
		t.Errorf("the example's digest is %s, the document says %s", got, example.Digest)
	}
	bytes, err := hex.DecodeString(example.Serialized)
	if err != nil || len(bytes) == 0 {
		t.Errorf("serialized: %d bytes, %v", len(bytes), err)
	}
	for _, member := range []string{"kind", "sources", "attempted", "source_error", "generation_observed", "health", "drifted", "owner"} {
		if !strings.Contains(value.Description, "`"+member+"`") {
			t.Errorf("the description of the digest lacks %s", member)
		}
	}
}

// TestEveryCodeIsInTheTable reads the codes from schema's source: Go cannot
// list constants.
func TestEveryCodeIsInTheTable(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../schema/problem.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	enum := document(t).Components.Schemas["Code"].Value.Enum
	var n int
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != "Code" {
			return true
		}
		n++
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if kinds[schema.Code(text)].status == 0 {
			t.Errorf("%s has no status", text)
		}
		if !slices.Contains(enum, any(text)) {
			t.Errorf("%s is not in openapi.json", text)
		}
		return true
	})
	if n != len(kinds) || n != len(enum) {
		t.Errorf("schema has %d codes, the table %d, openapi.json %d", n, len(kinds), len(enum))
	}
}

// TestDocumentNamesEveryMember holds the document's properties against the
// members that the vocabulary's types have.
func TestDocumentNamesEveryMember(t *testing.T) {
	doc := document(t)
	for name, v := range map[string]any{
		"Registration": schema.Registration{}, "Report": schema.Report{}, "Reconciler": schema.Reconciler{}, "Source": schema.Source{},
		"Heartbeat": schema.Heartbeat{}, "HeartbeatAnswer": schema.HeartbeatAnswer{}, "Cluster": schema.Cluster{}, "ClusterState": schema.ClusterState{},
		"Verdict": schema.Verdict{}, "Policy": schema.Policy{}, "Counts": schema.Counts{}, "NewToken": schema.Token{}, "TokenRequest": schema.TokenRequest{},
		"Problem": schema.Problem{}, "EnvironmentState": schema.EnvironmentState{}, "Deployed": schema.Deployed{}, "HistoryEntry": schema.HistoryEntry{},
		"EnvironmentVersion": schema.EnvironmentVersion{}, "Discrepancy": schema.Discrepancy{}, "Drift": schema.Drift{}, "DORA": schema.DORA{}, "Assignment": schema.Assignment{}, "AssignmentDetail": schema.AssignmentDetail{}, "ConfigValue": schema.ConfigValue{}, "ConfigProblem": schema.ConfigProblem{}, "WebhookAnswer": webhookAnswer{},
		"PushedDescriptors": schema.PushedDescriptors{}, "PushedDescriptor": schema.PushedDescriptor{}, "FileError": schema.FileError{},
	} {
		var described []string
		for p := range doc.Components.Schemas[name].Value.Properties {
			described = append(described, p)
		}
		sort.Strings(described)
		if diff := cmp.Diff(members(v), described); diff != "" {
			t.Errorf("%s: members (-) and described (+) differ:\n%s", name, diff)
		}
	}
}

func TestServedDocumentIsTheEmbeddedOne(t *testing.T) {
	f := newFixture(t)
	w := f.do(t, request{target: "/openapi.json", header: map[string]string{"Accept-Encoding": "gzip"}})
	if w.Header().Get("Content-Encoding") != "gzip" || !bytes.Equal(plainBody(t, w), openAPIDocument) {
		t.Errorf("it differs, or is not compressed: %v", w.Header())
	}
}

// members lists the JSON names of a struct's fields.
func members(v any) []string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" { // what is embedded has none
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

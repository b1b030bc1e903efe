package chdb

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadRequest(t *testing.T) {
	type want struct {
		Head, Format, Data, Database, Output string
		Params                               []Param
		Settings                             []string
	}
	cases := map[string]struct {
		reason string
		method string
		query  string
		body   string
		want   want
	}{
		"body": {
			reason: "a statement in the body", method: http.MethodPost, body: "SELECT 1",
			want: want{Head: "SELECT 1", Output: "TabSeparated"},
		},
		"link": {
			reason: "a link changes no data", method: http.MethodGet, query: "query=SELECT+1",
			want: want{Head: "SELECT 1", Output: "TabSeparated", Settings: []string{"readonly=2"}},
		},
		"query and body": {
			reason: "one after the other, as on a server", method: http.MethodPost, query: "query=SELECT", body: "1",
			want: want{Head: "SELECT\n1", Output: "TabSeparated"},
		},
		"all kinds of parameters": {
			reason: "parameters, settings and the transport's own are told apart",
			method: http.MethodPost, body: "SELECT {x:String}",
			query: "param_x=1&param_x=2&max_threads=3&database=d&default_format=Native&query_id=q&client_protocol_version=54460&compress=0",
			want: want{Head: "SELECT {x:String}", Database: "d", Output: "Native", Params: []Param{{"x", "2"}},
				Settings: []string{"max_threads=3"}},
		},
		"insert": {
			reason: "data stays in the body", method: http.MethodPost, query: "query=INSERT+INTO+t+FORMAT+Native", body: "\x00\x01",
			want: want{Head: "INSERT INTO t", Format: "Native", Data: "\x00\x01", Output: "TabSeparated"},
		},
		"insert in the body": {
			reason: "data behind the statement", method: http.MethodPost, body: "INSERT INTO t VALUES (1)",
			want: want{Head: "INSERT INTO t", Format: "Values", Data: " (1)", Output: "TabSeparated"},
		},
		"insert in both": {
			reason: "data begins in the parameter and goes on in the body", method: http.MethodPost,
			query: "query=INSERT+INTO+t+FORMAT+CSV%0A1", body: "2",
			want: want{Head: "INSERT INTO t", Format: "CSV", Data: "1\n2", Output: "TabSeparated"},
		},
		"long statement": {
			reason: "a statement may be longer than what is looked at for data", method: http.MethodPost,
			body: "SELECT '" + strings.Repeat("x", 2*insertHead) + "'",
			want: want{Head: "SELECT '" + strings.Repeat("x", 2*insertHead) + "'", Output: "TabSeparated"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req, err := readRequest(httptest.NewRequest(tc.method, "/?"+tc.query, strings.NewReader(tc.body)))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			got := want{Head: req.head, Format: req.format, Database: req.database, Output: req.output, Params: req.params}
			for _, s := range req.settings {
				got.Settings = append(got.Settings, s.name+"="+s.value)
			}
			if req.insert {
				data, err := io.ReadAll(req.body)
				if err != nil {
					t.Fatal(err)
				}
				got.Data = string(data)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReadRequestRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		query  string
		header http.Header
		body   io.Reader
		code   int
	}{
		"lz4 answers":     {"the client must hear it, or it reads rubbish", "compress=1", nil, nil, codeNotImplemented},
		"lz4 inserts":     {"the same for data", "decompress=1", nil, nil, codeNotImplemented},
		"sessions":        {"a temporary table would be lost silently", "session_id=x", nil, nil, codeNotImplemented},
		"external tables": {"they are not served", "", http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}, nil, codeNotImplemented},
		"brotli":          {"only gzip", "", http.Header{"Content-Encoding": {"br"}}, nil, codeNotImplemented},
		"no gzip":         {"a body that is not what it says", "", http.Header{"Content-Encoding": {"gzip"}}, strings.NewReader("plain"), codeCannotReadAll},
		"outfile":         {"a file of the host", "query=SELECT+1+INTO+OUTFILE+'x'", nil, nil, codeNotImplemented},
		"bad escape":      {"a broken query string", "a=%zz", nil, nil, codeBadArguments},
		"too long":        {"a statement without an end", "", nil, io.LimitReader(spaces{}, maxStatement+2*insertHead), codeQueryTooLarge},
		"head too long":   {"data must begin early", "", nil, io.MultiReader(io.LimitReader(spaces{}, insertHead), strings.NewReader("INSERT INTO t VALUES (1)")), codeQueryTooLarge},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/?"+tc.query, tc.body)
			for key, values := range tc.header {
				r.Header[key] = values
			}
			_, err := readRequest(r)
			var exception *Exception
			if !errors.As(err, &exception) || exception.Code != tc.code {
				t.Errorf("%s: want code %d, got %v", tc.reason, tc.code, err)
			}
		})
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestGzipBody(t *testing.T) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write([]byte("SELECT 1")); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", &packed)
	r.Header.Set("Content-Encoding", "gzip")
	req, err := readRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	if req.head != "SELECT 1" {
		t.Errorf("got %q", req.head)
	}
}

func TestAdmit(t *testing.T) {
	credentials := Credentials{User: "u", Password: "p"}
	cases := map[string]struct {
		change func(r *http.Request)
		want   bool
	}{
		"nothing":          {func(*http.Request) {}, false},
		"basic":            {func(r *http.Request) { r.SetBasicAuth("u", "p") }, true},
		"wrong password":   {func(r *http.Request) { r.SetBasicAuth("u", "q") }, false},
		"wrong user":       {func(r *http.Request) { r.SetBasicAuth("v", "p") }, false},
		"empty password":   {func(r *http.Request) { r.SetBasicAuth("u", "") }, false},
		"headers":          {func(r *http.Request) { r.Header.Set("X-ClickHouse-User", "u"); r.Header.Set("X-ClickHouse-Key", "p") }, true},
		"headers wrong":    {func(r *http.Request) { r.Header.Set("X-ClickHouse-User", "u"); r.Header.Set("X-ClickHouse-Key", "") }, false},
		"parameters":       {func(r *http.Request) { r.URL.RawQuery = "user=u&password=p" }, true},
		"parameters wrong": {func(r *http.Request) { r.URL.RawQuery = "user=u&password=" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			tc.change(r)
			if got := credentials.admit(r); got != tc.want {
				t.Errorf("admitted: %t", got)
			}
		})
	}
}

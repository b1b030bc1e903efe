package chdb

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strings"
)

const (
	// maxStatement bounds a statement's text, without an INSERT's data.
	maxStatement = 16 << 20
	// insertHead is how much of a body is read to find out where an INSERT's
	// data begins.
	insertHead = 256 << 10
)

// request is one HTTP request, understood.
type request struct {
	statement
	params   []Param
	settings []setting
	database string
	// output is the format of an answer whose statement names none.
	output string
	// body is the data of an INSERT.
	body io.Reader
	// protocol says that the client decodes the answer to its hello at a native
	// protocol revision.
	protocol bool
	// gzip says that the client takes, and asked for, a compressed answer.
	gzip bool
}

// transportParams are understood here or mean nothing to an engine without
// users, quotas and sessions; every other parameter is a setting.
var transportParams = map[string]bool{
	"query": true, "database": true, "user": true, "password": true, "default_format": true,
	"compress": true, "decompress": true, "query_id": true, "quota_key": true, "session_id": true,
	"session_timeout": true, "session_check": true, "client_protocol_version": true,
	"wait_end_of_query": true, "buffer_size": true, "role": true, "stacktrace": true, "close_session": true,
}

// refusedParams would change what a statement means, and are not served.
var refusedParams = map[string]string{
	"compress":   "compress=1: use no compression or gzip, the engine is on this host",
	"decompress": "decompress=1: use no compression or gzip, the engine is on this host",
	"session_id": "session_id: every request is a session of its own",
	"role":       "role: the engine has one user",
}

// readRequest understands a request. What it returns reads the rest of the
// request's body, which stays the server's to close.
func readRequest(r *http.Request) (*request, error) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return nil, failure(codeNotImplemented, "external tables are not served")
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failure(codeBadArguments, "the query string cannot be read: %v", err)
	}
	for name, reason := range refusedParams {
		if v := values.Get(name); v != "" && v != "0" {
			return nil, failure(codeNotImplemented, "%s", reason)
		}
	}
	req := &request{
		database: first(values.Get("database"), r.Header.Get("X-ClickHouse-Database")),
		output:   first(values.Get("default_format"), r.Header.Get("X-ClickHouse-Format"), "TabSeparated"),
		protocol: values.Has("client_protocol_version"),
	}
	req.addParams(values)
	if r.Method == http.MethodGet && !values.Has("readonly") {
		// As on a server: a link must not change data.
		req.settings = append(req.settings, setting{"readonly", "2"})
	}
	if v := values.Get("enable_http_compression"); v == "1" || v == "true" {
		req.gzip = strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	}
	body, err := decode(r.Body, r.Header.Get("Content-Encoding"))
	if err != nil {
		return nil, err
	}
	if err := req.readStatement(values.Get("query"), body); err != nil {
		return nil, err
	}
	if req.files {
		return nil, failure(codeNotImplemented, "INTO OUTFILE and FROM INFILE are not served")
	}
	return req, nil
}

func (q *request) addParams(values url.Values) {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		// The last of several wins, as in a server.
		value := values[name][len(values[name])-1]
		if param, ok := strings.CutPrefix(name, "param_"); ok {
			q.params = append(q.params, Param{Name: param, Value: value})
			continue
		}
		if !transportParams[name] {
			q.settings = append(q.settings, setting{name, value})
		}
	}
}

// readStatement reads the statement from the query parameter, the body, or one
// after the other, and leaves an INSERT's data unread.
func (q *request) readStatement(query string, body io.Reader) error {
	if query != "" {
		q.statement = parseStatement(query)
		if q.insert {
			q.body = body
			if rest := query[q.data:]; strings.TrimSpace(rest) != "" {
				q.body = io.MultiReader(strings.NewReader(rest+"\n"), body)
			}
			return nil
		}
	}
	head, err := io.ReadAll(io.LimitReader(body, insertHead))
	if err != nil {
		return failure(codeCannotReadAll, "reading the statement: %v", err)
	}
	if query == "" {
		q.statement = parseStatement(string(head))
		if q.insert {
			q.body = io.MultiReader(bytes.NewReader(head[q.data:]), body)
			return nil
		}
	}
	rest, err := io.ReadAll(io.LimitReader(body, maxStatement))
	if err != nil {
		return failure(codeCannotReadAll, "reading the statement: %v", err)
	}
	if len(rest) == maxStatement {
		return failure(codeQueryTooLarge, "the statement is longer than %d bytes", maxStatement)
	}
	text := string(head) + string(rest)
	if query != "" && text != "" {
		text = query + "\n" + text
	}
	if query != "" && text == "" {
		return nil
	}
	q.statement = parseStatement(text)
	if q.insert {
		// Its head alone is longer than what is read to find its data.
		return failure(codeQueryTooLarge, "the data of an INSERT must begin within %d bytes", insertHead)
	}
	return nil
}

// decode undoes a body's content encoding.
func decode(body io.Reader, encoding string) (io.Reader, error) {
	switch encoding {
	case "", "identity":
		return body, nil
	case "gzip":
		return &lazyGzip{source: body}, nil
	default:
		return nil, failure(codeNotImplemented, "Content-Encoding: %s: use none or gzip", encoding)
	}
}

// lazyGzip reads the gzip header with the first byte rather than before it: a
// request without a body may still name an encoding.
type lazyGzip struct {
	source io.Reader
	reader *gzip.Reader
}

// Read returns unpacked bytes.
func (l *lazyGzip) Read(p []byte) (int, error) {
	if l.reader == nil {
		reader, err := gzip.NewReader(l.source)
		if errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		if err != nil {
			return 0, fmt.Errorf("unpacking the body: %w", err)
		}
		l.reader = reader
	}
	return l.reader.Read(p)
}

// Credentials are the one user the engine knows.
type Credentials struct {
	User     string
	Password string
}

// admit compares what a request brings with the credentials, in constant time:
// basic authentication, ClickHouse's headers, or its URL parameters.
func (c Credentials) admit(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	if !ok {
		query := r.URL.Query()
		user = first(r.Header.Get("X-ClickHouse-User"), query.Get("user"))
		password = first(r.Header.Get("X-ClickHouse-Key"), query.Get("password"))
	}
	userOK, passwordOK := same(user, c.User), same(password, c.Password)
	return userOK && passwordOK
}

func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// first returns the first of its arguments that is not empty.
func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// Package hubclient speaks the hub's HTTP API: the agent reports through it,
// the command line asks through it. It needs the standard library and the
// schema alone, because the agent's memory pays for whatever it imports.
//
// Every call is one request without retries: who may wait, and how long, is the
// caller's business (see Temporary and RetryAfter). Every call is bounded, by
// its context and by a timeout of its own, so that a hub which accepts a
// connection and says nothing cannot hold its caller.
package hubclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Options say which hub to speak to, and as whom.
type Options struct {
	// URL is the hub's address such as https://hub.example or
	// http://127.0.0.1:8080; a path in front of /api/v1 is kept.
	URL string
	// Token is the bearer token. TokenFile names a file that holds it and is
	// read anew for every request, because mounted secrets rotate. At most one
	// is set; with neither, requests carry no token.
	Token     string
	TokenFile string
	// UserAgent names the program, as "landfall/1.2.3".
	UserAgent string
	// HTTPClient carries the requests; nil is one with the standard transport.
	// Its redirect policy is replaced, and it must have no Timeout, which would
	// cut streams short.
	HTTPClient *http.Client
}

// ErrOptions is wrapped by every error of New that another value would mend.
var ErrOptions = errors.New("bad client options")

// Client speaks to one hub. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	token     string
	tokenFile string
	userAgent string
	http      *http.Client
}

const (
	apiPrefix = "/api/v1"
	// answerTimeout bounds an ordinary request, from dialling to the last byte.
	answerTimeout = 30 * time.Second
	// reportTimeout is longer: a report may have megabytes and a slow uplink.
	reportTimeout = 2 * time.Minute
	// maxAnswer bounds what is read of an answer, in bytes. A page of 1000 rows
	// with messages of 4 KiB stays well below.
	maxAnswer = 32 << 20
	// maxToken bounds the token file, in bytes: OIDC tokens have a few KiB.
	maxToken = 64 << 10
)

// New checks the options and reads the token file once, so that a wrong path is
// told at the start. It does not speak to the hub.
func New(o Options) (*Client, error) {
	base, err := parseBase(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Token != "" && o.TokenFile != "" {
		return nil, fmt.Errorf("%w: a token and a token file are both given; give one", ErrOptions)
	}
	c := &Client{base: base, token: o.Token, tokenFile: o.TokenFile, userAgent: o.UserAgent}
	if o.HTTPClient != nil {
		own := *o.HTTPClient
		c.http = &own
	} else {
		transport, ok := http.DefaultTransport.(*http.Transport)
		if !ok {
			return nil, errors.New("the standard transport was replaced by another kind")
		}
		c.http = &http.Client{Transport: transport.Clone()}
	}
	c.http.CheckRedirect = c.checkRedirect
	if _, err := c.bearer(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return c, nil
}

// URL returns the hub's address as errors show it.
func (c *Client) URL() string { return c.base.String() }

func parseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(raw, "/"))
	switch {
	case raw == "":
		return nil, fmt.Errorf("%w: the hub's URL is empty; write one such as http://127.0.0.1:8080", ErrOptions)
	case err != nil:
		// The parser's own error repeats the text, which may hold a password.
		return nil, fmt.Errorf("%w: the hub's URL cannot be read; write one such as http://127.0.0.1:8080", ErrOptions)
	case u.User != nil:
		return nil, fmt.Errorf("%w: the hub's URL holds a user name; leave it out and use a token", ErrOptions)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("%w: the hub's URL is %q; write one with scheme and host such as http://127.0.0.1:8080", ErrOptions, raw)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("%w: the hub's URL %q has a query or a fragment; leave it out", ErrOptions, raw)
	}
	return u, nil
}

// bearer returns the token to send now, or "". Its errors never show it.
func (c *Client) bearer() (string, error) {
	token := c.token
	if c.tokenFile != "" {
		f, err := os.Open(c.tokenFile)
		if err != nil {
			return "", fmt.Errorf("opening the token file: %w", err)
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, maxToken))
		if err != nil {
			return "", fmt.Errorf("reading the token file %s: %w", c.tokenFile, err)
		}
		token = strings.TrimSpace(string(b))
		if token == "" {
			return "", fmt.Errorf("the token file %s is empty", c.tokenFile)
		}
	}
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return "", errors.New("the token holds a blank or another character that no token has; give the bare token of one line")
		}
	}
	return token, nil
}

// call is one request.
type call struct {
	method string
	// path is below the base, already escaped.
	path  string
	query url.Values
	// body is sent as it is; gzipped says that it is compressed.
	body    []byte
	gzipped bool
	timeout time.Duration
	// into receives the JSON object of the answer; nil expects none.
	into any
}

// do sends the request and reads the whole answer.
func (c *Client) do(ctx context.Context, k call) error {
	ctx, cancel := context.WithTimeoutCause(ctx, k.timeout, fmt.Errorf("%w for %s", ErrSilent, k.timeout))
	defer cancel()
	resp, token, err := c.send(ctx, k, "application/json")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return c.failed(ctx, k, "reading the answer", err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return c.refused(k, resp, body, token)
	}
	if k.into == nil {
		if k.method == http.MethodDelete && len(bytes.TrimSpace(body)) > 0 {
			// A page that a proxy shows with 200 took nothing away.
			return c.refused(k, resp, body, token)
		}
		return nil
	}
	if len(body) > maxAnswer {
		return c.failed(ctx, k, "reading the answer", fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxAnswer))
	}
	if object := bytes.TrimLeft(body, " \t\r\n"); len(object) == 0 || object[0] != '{' {
		return c.refused(k, resp, body, token)
	}
	if err := json.Unmarshal(body, k.into); err != nil {
		return c.failed(ctx, k, "reading the answer", fmt.Errorf("%w: %w", ErrBadAnswer, err))
	}
	return nil
}

// send sends the request and returns the answer's head, its body unread, and
// the token that went with it.
func (c *Client) send(ctx context.Context, k call, accept string) (*http.Response, string, error) {
	token, err := c.bearer()
	if err != nil {
		return nil, "", err
	}
	target := c.base.String() + k.path
	if len(k.query) > 0 {
		target += "?" + k.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, k.method, target, bytes.NewReader(k.body))
	if err != nil {
		return nil, "", c.failed(ctx, k, "building the request", err)
	}
	req.Header.Set("Accept", accept)
	if k.method == http.MethodGet {
		// A cache between must not answer for the hub.
		req.Header.Set("Cache-Control", "no-cache")
	}
	if accept == eventStream {
		// Compressors between hold small events back.
		req.Header.Set("Accept-Encoding", "identity")
	}
	if c.userAgent != "" {
		req.Header.Set("User-Agent", c.userAgent)
	}
	if k.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if k.gzipped {
		req.Header.Set("Content-Encoding", "gzip")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, "", c.failed(ctx, k, "", err)
	}
	return resp, token, nil
}

// checkRedirect keeps the token at home, and keeps a write from turning into a
// read: after most redirects net/http repeats a PUT as a GET, whose answer may
// look like success.
func (c *Client) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 5 {
		return errors.New("more than 5 redirects")
	}
	if req.Method != via[0].Method {
		return http.ErrUseLastResponse
	}
	if !c.atHome(req.URL) {
		req.Header.Del("Authorization")
	}
	return nil
}

// atHome reports whether u is the hub's own address: the same host and port, or
// the same host after going from http to https on their usual ports.
func (c *Client) atHome(u *url.URL) bool {
	if !strings.EqualFold(u.Hostname(), c.base.Hostname()) {
		return false
	}
	if u.Scheme == c.base.Scheme {
		return port(u) == port(c.base)
	}
	return u.Scheme == "https" && port(u) == "443" && port(c.base) == "80"
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// Package forge speaks to a Git provider about one repository: pull requests
// with their labels and merge commits, and commit statuses. GitHub and Gitea (and
// Forgejo, which has its API) are reached by their own client libraries; the
// words are the same for both.
package forge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// Provider is a kind of Git provider.
type Provider string

// The providers.
const (
	GitHub Provider = "github"
	Gitea  Provider = "gitea"
)

// What callers branch on; the errors of this package wrap one where it applies.
var (
	// ErrAuth: the provider refused the token, or what it may do is not enough.
	ErrAuth = errors.New("access was refused")
	// ErrNotFound: there is no such repository, branch, commit or pull request, or
	// the token may not see it.
	ErrNotFound = errors.New("there is no such thing, or it is not shown to this user")
	// ErrLimited: the provider wants fewer requests.
	ErrLimited = errors.New("the provider wants fewer requests")
)

// State is where a pull request is.
type State string

// The states of a pull request.
const (
	Open   State = "open"
	Closed State = "closed"
	Merged State = "merged"
)

// PullRequest is one of the repository.
type PullRequest struct {
	Number     int64
	State      State
	Title      string
	Head, Base string
	// HeadCommit is the newest commit of the head.
	HeadCommit string
	// MergeCommit is the commit that brought it into the base; "" until it is
	// merged.
	MergeCommit string
	// Labels are names, sorted.
	Labels []string
	// URL is its web page.
	URL string
}

// NewPullRequest asks for one of branches of the same repository.
type NewPullRequest struct {
	Head, Base, Title, Body string
	// Labels are names; what the repository lacks is made.
	Labels []string
}

// Verdict is what a commit status says.
type Verdict string

// The verdicts.
const (
	Pending Verdict = "pending"
	Success Verdict = "success"
	Failure Verdict = "failure"
	Error   Verdict = "error"
)

// Status is a commit's status in one context: a later one takes its place.
type Status struct {
	Context string
	Verdict Verdict
	// Description is cut at 140 characters.
	Description string
	// URL is where more is said, or empty.
	URL string
}

// mostDescription is what GitHub takes, in characters.
const mostDescription = 140

// Options say which repository, and as whom to speak.
type Options struct {
	Provider Provider
	// Repo is any address of the repository: https, ssh or host:path.
	Repo string
	// API is the provider's API where the address does not say: for an ssh address
	// with a port of its own, or a provider below a path. Empty is the usual one.
	API string
	// TokenFile holds the token; it is read for each request.
	TokenFile string
	// CAFile holds certificates (PEM) that are trusted beside the system's.
	CAFile string
	// Timeout bounds one request. Default 30 seconds.
	Timeout time.Duration
}

// client is one provider's.
type client interface {
	list(ctx context.Context, base string) ([]PullRequest, error)
	get(ctx context.Context, number int64) (PullRequest, error)
	open(ctx context.Context, p NewPullRequest) (PullRequest, error)
	close(ctx context.Context, number int64) error
	status(ctx context.Context, commit string, s Status) error
}

// Forge speaks about one repository. Its methods may be called from any
// goroutine.
type Forge struct {
	client client
	// name is the repository, for errors.
	name string
}

// New looks at the options, and asks nobody anything.
func New(o Options) (*Forge, error) {
	repo, err := schema.CanonicalRepo(o.Repo)
	if err != nil {
		return nil, err
	}
	host, path, ok := strings.Cut(repo, "/")
	owner, name, two := strings.Cut(path, "/")
	if !ok || strings.HasPrefix(repo, "file://") || !two || strings.Contains(name, "/") || owner == "" || name == "" {
		return nil, fmt.Errorf("%s is no repository of a Git provider: its address ends in /OWNER/NAME", schema.StripUserInfo(o.Repo))
	}
	if o.TokenFile == "" {
		return nil, fmt.Errorf("%s: a Git provider's API needs a token", repo)
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	transport, err := o.transport()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", repo, err)
	}
	web := &http.Client{Transport: transport, Timeout: o.Timeout}
	if web.CheckRedirect = sameHost; o.API == "" {
		o.API = usualAPI(o.Provider, host, o.Repo)
	}
	base, err := url.Parse(o.API)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" || base.User != nil {
		return nil, fmt.Errorf("%s: the address of its API is no http(s) URL", repo)
	}
	f := &Forge{name: repo}
	switch o.Provider {
	case GitHub:
		f.client, err = newGitHub(web, o.API, owner, name)
	case Gitea:
		f.client, err = newGitea(web, o.API, owner, name)
	default:
		return nil, fmt.Errorf("%s: %q is no provider; there are %s and %s", repo, o.Provider, GitHub, Gitea)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", repo, err)
	}
	return f, nil
}

// usualAPI is where a provider has its API.
func usualAPI(p Provider, host, repo string) string {
	scheme := "https://"
	if strings.HasPrefix(repo, "http://") {
		scheme = "http://"
	}
	switch {
	case p == GitHub && host == "github.com":
		return "https://api.github.com/"
	case p == GitHub:
		return scheme + host + "/api/v3/"
	}
	return scheme + host + "/"
}

// sameHost keeps a token from following a redirect to somebody else.
func sameHost(req *http.Request, via []*http.Request) error {
	if req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
		return errors.New("the provider redirects to another host, which is not followed")
	}
	if len(via) > 5 {
		return errors.New("the provider redirects again and again")
	}
	return nil
}

func (o *Options) transport() (http.RoundTripper, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		text, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading certificates: %w", err)
		}
		if config.RootCAs, err = x509.SystemCertPool(); err != nil {
			config.RootCAs = x509.NewCertPool() // a container without any
		}
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate in PEM", o.CAFile)
		}
	}
	return &authorized{tokenFile: o.TokenFile, inner: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 15 * time.Second}).DialContext, TLSHandshakeTimeout: 15 * time.Second,
		TLSClientConfig: config, ForceAttemptHTTP2: true, IdleConnTimeout: 30 * time.Second,
	}}, nil
}

// authorized sends the token with every request: what is rotated is used at
// once.
type authorized struct {
	tokenFile string
	inner     http.RoundTripper
}

func (a *authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	text, err := os.ReadFile(a.tokenFile)
	if err != nil {
		return nil, fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return nil, fmt.Errorf("the token file %s does not hold one line", a.tokenFile)
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return a.inner.RoundTrip(req)
}

// PullRequests returns the open ones that are to come into a branch, by number.
func (f *Forge) PullRequests(ctx context.Context, base string) ([]PullRequest, error) {
	all, err := f.client.list(ctx, base)
	if err != nil {
		return nil, fmt.Errorf("listing pull requests of %s: %w", f.name, err)
	}
	return all, nil
}

// PullRequest returns one, whatever its state.
func (f *Forge) PullRequest(ctx context.Context, number int64) (PullRequest, error) {
	p, err := f.client.get(ctx, number)
	if err != nil {
		return p, fmt.Errorf("reading pull request %d of %s: %w", number, f.name, err)
	}
	return p, nil
}

// Open makes a pull request, or returns the open one of the same branches: it may
// be called again after an error of unknown outcome.
func (f *Forge) Open(ctx context.Context, p NewPullRequest) (PullRequest, error) {
	there, err := f.client.list(ctx, p.Base)
	if err == nil {
		for _, q := range there {
			if q.Head == p.Head {
				return q, nil
			}
		}
		var made PullRequest
		if made, err = f.client.open(ctx, p); err == nil {
			return made, nil
		}
	}
	return PullRequest{}, fmt.Errorf("opening a pull request from %s to %s of %s: %w", p.Head, p.Base, f.name, err)
}

// Close closes a pull request without merging it.
func (f *Forge) Close(ctx context.Context, number int64) error {
	if err := f.client.close(ctx, number); err != nil {
		return fmt.Errorf("closing pull request %d of %s: %w", number, f.name, err)
	}
	return nil
}

// SetStatus sets the status of a commit (a full id) in the status's context.
func (f *Forge) SetStatus(ctx context.Context, commit string, s Status) error {
	if cut := []rune(s.Description); len(cut) > mostDescription {
		s.Description = string(cut[:mostDescription-1]) + "…"
	}
	if err := f.client.status(ctx, commit, s); err != nil {
		return fmt.Errorf("setting the status %q of %s at %s: %w", s.Context, commit, f.name, err)
	}
	return nil
}

// explain gives the answer of a provider its error. What the provider says is
// kept; what the library adds of the request is not.
func explain(code int, said string, err error) error {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: %s", ErrAuth, said)
	case http.StatusNotFound:
		return fmt.Errorf("%w: %s", ErrNotFound, said)
	case http.StatusTooManyRequests:
		return fmt.Errorf("%w: %s", ErrLimited, said)
	case 0:
		return err
	}
	return fmt.Errorf("the provider answered %d: %s", code, said)
}

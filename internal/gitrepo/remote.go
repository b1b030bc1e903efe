package gitrepo

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
)

// A conversation with a server's upload-pack: what refs there are, then at most
// one pack.
type conversation interface {
	AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error)
	UploadPack(context.Context, *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	Close() error
}

// call begins a conversation.
func (r *Repo) call(ctx context.Context, p *patience) (conversation, error) {
	switch r.endpoint.Protocol {
	case "ssh":
		return r.callSSH(ctx, p, uploadPack)
	case "file":
		return callProgram(ctx, p, uploadPack, r.endpoint.Path)
	}
	return r.callHTTP(p)
}

// connectTime bounds how long a connection, with its handshakes, may take.
const connectTime = 15 * time.Second

// callHTTP speaks by go-git's transport, which knows when credentials may
// follow a redirect.
func (r *Repo) callHTTP(p *patience) (conversation, error) {
	w, err := r.web(p)
	if err != nil {
		return nil, err
	}
	session, err := w.client.NewUploadPackSession(&w.endpoint, w.auth)
	if err != nil {
		return nil, err
	}
	return &webConversation{session, w.inner}, nil
}

// callHTTPToPush is callHTTP for the other direction.
func (r *Repo) callHTTPToPush(p *patience) (pushing, error) {
	w, err := r.web(p)
	if err != nil {
		return nil, err
	}
	session, err := w.client.NewReceivePackSession(&w.endpoint, w.auth)
	if err != nil {
		return nil, err
	}
	return &webPushing{session, w.inner}, nil
}

// web is what a conversation over http(s) needs.
type web struct {
	client transport.Transport
	inner  *nethttp.Transport
	// endpoint is a copy: a redirect changes it.
	endpoint transport.Endpoint
	// auth is nil, and no interface around nil, for nobody.
	auth transport.AuthMethod
}

func (r *Repo) web(p *patience) (*web, error) {
	auth, err := r.basic()
	if err != nil {
		return nil, err
	}
	pool, err := trusted(r.opts.Auth.CAFile)
	if err != nil {
		return nil, err
	}
	inner := &nethttp.Transport{
		Proxy: nethttp.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: connectTime}).DialContext, TLSHandshakeTimeout: connectTime,
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}
	w := &web{client: http.NewClient(&nethttp.Client{Transport: patientTransport{inner, p}}), inner: inner, endpoint: *r.endpoint}
	if auth != nil {
		w.auth = auth
	}
	return w, nil
}

type webConversation struct {
	transport.UploadPackSession
	inner *nethttp.Transport
}

func (c *webConversation) Close() error {
	err := c.UploadPackSession.Close()
	c.inner.CloseIdleConnections()
	return err
}

type webPushing struct {
	transport.ReceivePackSession
	inner *nethttp.Transport
}

func (c *webPushing) Close() error {
	err := c.ReceivePackSession.Close()
	c.inner.CloseIdleConnections()
	return err
}

// patientTransport watches over the bodies of answers.
type patientTransport struct {
	inner nethttp.RoundTripper
	p     *patience
}

// mostApology bounds the body of an answer that is an error: go-git quotes all
// of it.
const mostApology = 4 << 10

func (t patientTransport) RoundTrip(req *nethttp.Request) (*nethttp.Response, error) {
	if req.Body != nil {
		req = req.Clone(req.Context())
		req.Body = t.p.sender(req.Body)
	}
	resp, err := t.inner.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	var body io.Reader = resp.Body
	if resp.StatusCode >= nethttp.StatusMultipleChoices {
		body = io.LimitReader(body, mostApology)
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{t.p.reader(body), resp.Body}
	return resp, nil
}

// find returns the commit or tag object that a ref is at, and the name that it
// has in the mirror.
func find(refs *packp.AdvRefs, ref string) (id, name string, err error) {
	names := []string{ref}
	switch {
	case ref == "":
		if refs.Head == nil {
			return "", "", fmt.Errorf("%w: it has no default branch (HEAD)", ErrRefMissing)
		}
		return refs.Head.String(), "refs/landfall/head", nil
	case isCommit(ref):
		return ref, "refs/landfall/" + ref, nil
	case !isFullRef(ref):
		names = []string{"refs/heads/" + ref}
	}
	for _, name := range names {
		if hash, ok := refs.References[name]; ok {
			return hash.String(), name, nil
		}
	}
	return "", "", fmt.Errorf("%w: %s", ErrRefMissing, names[0])
}

package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/landfall-hub/landfall/schema"
)

// Webhooks say what is done when a Git provider tells that something was
// pushed. The zero value answers to none.
type Webhooks struct {
	// Secrets return what each provider, github, gitlab or gitea, signs with; they
	// are called for every request. A provider that is not there is not answered.
	Secrets map[string]func() (string, error)
	// Fetch has a repository, in canonical form or by an alias, fetched soon. It
	// waits for nothing, and returns false where nobody follows the repository.
	Fetch func(repo string) bool
}

// maxHooks is how many of the longest bodies of webhooks are held at once: they
// are read before anybody knows whose they are, so that strangers could take the
// memory for reports.
const maxHooks = 2

// provider is how a kind of Git server sends webhooks.
type provider struct {
	// event is the header that names the event.
	event string
	// signed reports whether the body was sent by someone who has the secret.
	signed func(h http.Header, secret string, body []byte) bool
	// signature names the headers that it is in.
	signature string
	// pushed are the events after which a repository holds something else; those
	// of GitLab are in the body, too.
	pushed []string
}

var providers = map[string]provider{
	"github": {
		event: "X-GitHub-Event", pushed: []string{"push"},
		signed: func(h http.Header, secret string, body []byte) bool {
			signature, ok := strings.CutPrefix(h.Get("X-Hub-Signature-256"), "sha256=")
			return ok && signedBy(secret, body, signature)
		},
		signature: "the header X-Hub-Signature-256",
	},
	"gitlab": {
		// A system hook, which says push, tag_push or repository_update in its body.
		event: "X-Gitlab-Event", pushed: []string{"Push Hook", "Tag Push Hook", "System Hook"},
		signed: func(h http.Header, secret string, _ []byte) bool {
			given, want := sha256.Sum256([]byte(h.Get("X-Gitlab-Token"))), sha256.Sum256([]byte(secret))
			return hmac.Equal(given[:], want[:])
		},
		signature: "the header X-Gitlab-Token",
	},
	"gitea": {
		// A ref that was deleted is no push there.
		event: "X-Gitea-Event", pushed: []string{"push", "create", "delete"},
		signed: func(h http.Header, secret string, body []byte) bool {
			return signedBy(secret, body, h.Get("X-Gitea-Signature")) || signedBy(secret, body, h.Get("X-Forgejo-Signature"))
		},
		signature: "the header X-Gitea-Signature or X-Forgejo-Signature",
	},
}

// signedBy reports, in constant time, whether a signature in hexadecimal digits
// is the body's HMAC-SHA-256.
func signedBy(secret string, body []byte, signature string) bool {
	given, err := hex.DecodeString(signature)
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hmac.Equal(given, mac.Sum(nil))
}

// Outcomes of a webhook, for metrics.
const (
	hookFetched     = "fetched"
	hookNotFollowed = "not_followed"
	hookIgnored     = "ignored"
	hookRefused     = "refused"
)

// webhookAnswer says what was made of a webhook.
type webhookAnswer struct {
	// Push is false for an event after which the repository is what it was.
	Push bool `json:"push"`
	// Followed is whether the push was to a repository that is followed, which is
	// fetched now.
	Followed bool `json:"followed"`
}

// webhook serves POST /webhooks/{provider}. One that is sent again does what it
// did: the repository is fetched, and nothing else of the body is used.
func (a *API) webhook(w http.ResponseWriter, r *http.Request) error {
	name := segment(r, "provider")
	p, known := providers[name]
	secret := a.webhooks.Secrets[name]
	if !known || secret == nil {
		return refuse(schema.CodeNotFound, "webhooks of %q are not answered; there are github, gitlab and gitea, each with a secret_file in webhooks of the hub's settings", shorten(name, 100))
	}
	answer, err := a.takeHook(w, r, p, secret)
	outcome := hookRefused
	switch {
	case err != nil:
	case !answer.Push:
		outcome = hookIgnored
	case !answer.Followed:
		outcome = hookNotFollowed
	default:
		outcome = hookFetched
	}
	a.metrics.webhooks.WithLabelValues(name, outcome).Inc()
	if err != nil {
		return err
	}
	return a.answer(w, r, http.StatusAccepted, answer)
}

// errNoSecret keeps an empty secret from signing anything.
var errNoSecret = errors.New("the webhook's secret is empty")

// takeHook checks a webhook and does what it asks for.
func (a *API) takeHook(w http.ResponseWriter, r *http.Request, p provider, secret func() (string, error)) (answer webhookAnswer, err error) {
	if _, err := parseParameters(r); err != nil {
		return answer, err
	}
	if encoding := r.Header.Values("Content-Encoding"); len(encoding) > 0 {
		return answer, refuse(schema.CodeUnsupportedMedia, "the Content-Encoding is %q; a webhook comes as it was signed, without one", shorten(strings.Join(encoding, ", "), 100))
	}
	key, err := secret()
	if err == nil && key == "" {
		err = errNoSecret
	}
	if err != nil {
		return answer, &schema.Refusal{Code: schema.CodeUnavailable, Detail: "the hub cannot read the webhook's secret; its log says why", Err: err}
	}
	release, err := a.body(w, r, a.hookBodies, onlyJSON, func(body []byte) (err error) {
		if !p.signed(r.Header, key, body) {
			w.Header().Set("WWW-Authenticate", `Signature realm="landfall"`)
			return refuse(schema.CodeUnauthenticated, "%s is missing or not by the secret in the hub's settings; give the webhook the same secret", p.signature)
		}
		if slices.Contains(p.pushed, r.Header.Get(p.event)) {
			answer, err = a.takePush(body)
		}
		return err
	})
	release()
	return answer, err
}

// takePush reads an event and has the repository fetched.
func (a *API) takePush(body []byte) (webhookAnswer, error) {
	var event push
	if err := unmarshal(body, &event, lenient); err != nil {
		return webhookAnswer{}, err
	}
	if !event.changesRefs() {
		return webhookAnswer{}, nil
	}
	names := event.names()
	if len(names) == 0 {
		return webhookAnswer{}, &schema.Invalid{Code: schema.CodeMissingField, Pointer: "/repository", Detail: "the push does not say to which repository: clone_url, ssh_url or html_url is needed, or GitLab's git_http_url, git_ssh_url or web_url"}
	}
	return webhookAnswer{Push: true, Followed: slices.ContainsFunc(names, a.webhooks.Fetch)}, nil
}

// lenient reads what others define: members come and go, and commit messages
// hold anything.
var lenient = json.JoinOptions(json.RejectUnknownMembers(false), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// push is what is read of an event's body: the addresses of the repository, by
// the names of each provider. GitLab has them in project, and in repository for
// those who came before.
type push struct {
	ObjectKind string    `json:"object_kind"`
	EventName  string    `json:"event_name"`
	Repository addresses `json:"repository"`
	Project    addresses `json:"project"`
}

type addresses struct {
	CloneURL   string `json:"clone_url"`
	SSHURL     string `json:"ssh_url"`
	HTMLURL    string `json:"html_url"`
	GitHTTPURL string `json:"git_http_url"`
	GitSSHURL  string `json:"git_ssh_url"`
	WebURL     string `json:"web_url"`
}

// changesRefs tells the system hooks of GitLab apart, which come under one name.
// Others say nothing there.
func (p *push) changesRefs() bool {
	kind := p.ObjectKind
	if kind == "" {
		kind = p.EventName
	}
	switch kind {
	case "", "push", "tag_push", "repository_update":
		return true
	}
	return false
}

// names are the repository's names in canonical form, each once.
func (p *push) names() []string {
	var names []string
	for _, a := range []addresses{p.Project, p.Repository} {
		for _, address := range []string{a.CloneURL, a.SSHURL, a.HTMLURL, a.GitHTTPURL, a.GitSSHURL, a.WebURL} {
			if name, err := schema.CanonicalRepo(address); err == nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

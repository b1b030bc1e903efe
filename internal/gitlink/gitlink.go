// Package gitlink knows where the web pages of a Git provider are: of a commit,
// and of what lies between two. It asks nobody; what it does not know has no
// link.
package gitlink

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/schema"
)

// Provider is a kind of Git server with web pages.
type Provider string

// The providers. Forgejo's pages are where Gitea's are.
const (
	GitHub  Provider = "github"
	GitLab  Provider = "gitlab"
	Gitea   Provider = "gitea"
	Forgejo Provider = "forgejo"
)

// Providers returns all providers, sorted.
func Providers() []Provider { return []Provider{Forgejo, Gitea, GitHub, GitLab} }

// Links makes links. Its zero value knows the hosts whose names tell what they
// are; see New for others.
type Links struct {
	hosts map[string]Provider
}

// New returns Links that know, beside the hosts whose names tell what they are,
// those in hosts: host names without scheme, user and port. The error names the
// first host that is none, or whose provider is none.
func New(hosts map[string]Provider) (Links, error) {
	l := Links{hosts: make(map[string]Provider, len(hosts))}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		if !plainHost(strings.ToLower(host)) {
			return Links{}, fmt.Errorf("%q is no host name; write one such as git.example.com, without scheme, user and port", shown(host))
		}
		if !slices.Contains(Providers(), hosts[host]) {
			return Links{}, fmt.Errorf("%q is no provider of %s; there are %v", hosts[host], host, Providers())
		}
		l.hosts[strings.ToLower(host)] = hosts[host]
	}
	return l, nil
}

// shown is what an error shows of a host that is none: it may be a whole URL
// with a password in it.
func shown(host string) string { return schema.StripUserInfo(host) }

// Commit returns the page of a commit, or "". The repository is written in any
// way that Git takes, the commit's id is whole.
func (l Links) Commit(repo, commit string) string {
	p, ok := l.pages(repo)
	if !ok || !schema.IsCommit(commit) {
		return ""
	}
	return p.base + p.provider.infix() + "/commit/" + strings.ToLower(commit)
}

// Compare returns the page of what the commit to has that from has not, or ""
// also where both are the same.
func (l Links) Compare(repo, from, to string) string {
	p, ok := l.pages(repo)
	if !ok || !schema.IsCommit(from) || !schema.IsCommit(to) || strings.EqualFold(from, to) {
		return ""
	}
	return p.base + p.provider.infix() + "/compare/" + strings.ToLower(from) + "..." + strings.ToLower(to)
}

// infix is what stands between a repository and its pages.
func (p Provider) infix() string {
	if p == GitLab {
		return "/-"
	}
	return ""
}

// pages are a repository's web pages.
type pages struct {
	provider Provider
	// base is the repository's own page, without a slash at its end.
	base string
}

// pages finds a repository's web pages. They are asked for by https, but where
// the repository is fetched by http; a port is kept where it is a web server's.
func (l Links) pages(repo string) (pages, bool) {
	canonical, err := schema.CanonicalRepo(repo)
	if err != nil {
		return pages{}, false
	}
	address, folder, ok := strings.Cut(canonical, "/")
	host, port, _ := strings.Cut(address, ":")
	if !ok || !plainHost(host) { // other storage, a folder, an IPv6 address
		return pages{}, false
	}
	scheme := "https"
	switch written, _, named := strings.Cut(strings.ToLower(strings.TrimSpace(repo)), "://"); {
	case !named && port != "":
		return pages{}, false // whose port is it?
	case !named:
	case written == "http":
		scheme = "http"
	case written != "https":
		port = "" // SSH's or Git's own
	}
	provider, host, ok := l.provider(host)
	if !ok {
		return pages{}, false
	}
	segments := strings.Split(folder, "/")
	if len(segments) < 2 || provider == GitHub && len(segments) != 2 {
		return pages{}, false
	}
	base := scheme + "://" + host
	if port != "" {
		base += ":" + port
	}
	for _, s := range segments {
		if plain, err := url.PathUnescape(s); err == nil {
			s = plain
		}
		if s == "" || s == "." || s == ".." || strings.Contains(s, "/") {
			return pages{}, false
		}
		base += "/" + url.PathEscape(s)
	}
	return pages{provider, base}, true
}

// wellKnown are public hosts whose names tell nothing, or whose pages are
// elsewhere.
var wellKnown = map[string]struct {
	provider Provider
	web      string
}{
	"codeberg.org":      {Forgejo, "codeberg.org"},
	"ssh.github.com":    {GitHub, "github.com"}, // SSH on port 443
	"altssh.gitlab.com": {GitLab, "gitlab.com"},
}

// provider tells a host's provider, and where its pages are: what was
// configured, what is well known, then what the host's name begins with
// (gitlab.example.com).
func (l Links) provider(host string) (p Provider, web string, ok bool) {
	if p, ok := l.hosts[host]; ok {
		return p, host, true
	}
	if known, ok := wellKnown[host]; ok {
		return known.provider, known.web, true
	}
	first, _, dotted := strings.Cut(host, ".")
	return Provider(first), host, dotted && slices.Contains(Providers(), Provider(first))
}

// plainHost reports whether a name in lower case can stand in a URL as it is.
func plainHost(host string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-_."
	return host != "" && len(host) <= 253 && strings.Trim(host, allowed) == "" && strings.Trim(host, ".") == host && !strings.Contains(host, "..")
}

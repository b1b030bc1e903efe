package schema

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentinels for the parts of an endpoint that cannot be made canonical.
var (
	ErrInvalidRepo = errors.New("not a repository URL")
	ErrInvalidRef  = errors.New("not a ref")
	ErrPathEscapes = errors.New("the path climbs out of the repository")
	ErrInvalidPath = errors.New("not a path")
)

// Endpoint is a manifests endpoint in canonical form: what is compared, while
// what was written is kept for display.
type Endpoint struct {
	// Repo is host/path without scheme, user, default port and ".git", or
	// host:/path for a host name without a dot, which could be a folder's; other
	// storage keeps its scheme (oci://, helm://, bucket://, file://).
	Repo string
	// Ref is a branch name, or a pinned ref (see PinnedRef); "" is the default branch.
	Ref string
	// Path is a clean folder below the repository's root; "" is the root.
	Path string
}

// NewEndpoint makes the canonical endpoint of a repository URL, a ref and a
// path as users write them. The error wraps one of the sentinels above.
func NewEndpoint(repo, ref, folder string) (Endpoint, error) {
	r, err := CanonicalRepo(repo)
	if err != nil {
		return Endpoint{}, err
	}
	f, err := CanonicalRef(ref)
	if err != nil {
		return Endpoint{}, err
	}
	p, err := CleanPath(folder)
	if err != nil {
		return Endpoint{}, err
	}
	return Endpoint{Repo: r, Ref: f, Path: p}, nil
}

// Source returns a source that has this endpoint, written in canonical form.
func (e Endpoint) Source() Source {
	s := Source{Type: SourceGit, URL: e.Repo, Ref: e.Ref, Path: e.Path}
	for _, t := range []SourceType{SourceOCI, SourceHelm, SourceBucket} {
		if strings.HasPrefix(e.Repo, string(t)+"://") {
			s.Type = t
		}
	}
	return s
}

// Endpoint returns the canonical endpoint of the source.
func (s Source) Endpoint() (Endpoint, error) {
	raw := s.URL
	if s.Type != SourceGit {
		if i := strings.Index(raw, "://"); i >= 0 {
			raw = raw[i+3:]
		}
		raw = string(s.Type) + "://" + raw
	}
	return NewEndpoint(raw, s.Ref, s.Path)
}

// CanonicalRepo returns the canonical form of a repository URL. Scheme, user
// info, ports 22, 443 and the scheme's own, a trailing ".git" or "/" and the
// host's case do not matter: `git@host:org/repo` and `https://host/org/repo`
// are one. Plain absolute folders are `file://` ones. Percent-encoding stays as
// it was written. The canonical form is its own canonical form.
func CanonicalRepo(raw string) (string, error) {
	s := strings.TrimSpace(raw)
	if s == "" {
		return "", fmt.Errorf("%w: it is empty", ErrInvalidRepo)
	}
	if err := plainText(s); err != nil {
		return "", fmt.Errorf("%w: it holds %w", ErrInvalidRepo, err)
	}
	if strings.HasPrefix(s, "/") {
		return fileRepo(s)
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return scpRepo(s)
	}
	scheme = strings.ToLower(scheme)
	if scheme == "file" {
		return fileRepo(rest[len(beforeSlash(rest)):])
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil || u.Hostname() == "" {
		return "", fmt.Errorf("%w: %q has no host; write https://host/org/repo, ssh://host/org/repo or host:org/repo", ErrInvalidRepo, shown(s))
	}
	if u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return "", fmt.Errorf("%w: %q has a query or a fragment", ErrInvalidRepo, shown(s))
	}
	return hostRepo(storageScheme(scheme), u.Hostname(), portOf(scheme, u.Port()), rest[len(beforeSlash(rest)):])
}

// storageScheme returns the prefix that storage other than Git keeps.
func storageScheme(scheme string) string {
	switch scheme {
	case "oci", "helm", "bucket":
		return scheme + "://"
	}
	return ""
}

// portOf returns the port to keep, or "" for one that says nothing.
func portOf(scheme, port string) string {
	port = strings.TrimLeft(port, "0")
	if port == "22" || port == "443" || (port == "80" && scheme == "http") || (port == "9418" && scheme == "git") {
		return ""
	}
	return port
}

// scpRepo reads user@host:path, and the canonical host/path and host:port/path.
func scpRepo(s string) (string, error) {
	user := false
	if i := strings.LastIndexByte(beforeSlash(s), '@'); i >= 0 {
		s, user = s[i+1:], true
	}
	host, port, p, ok := cutHost(s, user)
	if !ok || strings.Trim(p, "/") == "" {
		return "", fmt.Errorf("%w: %q is neither a URL, nor host:path, nor an absolute folder", ErrInvalidRepo, shown(s))
	}
	return hostRepo("", host, portOf("ssh", port), p)
}

// isScheme finds URLs whose second slash was forgotten: https:/host is no scp.
func isScheme(host string) bool {
	switch host {
	case "http", "https", "ssh", "file":
		return true
	}
	return false
}

// dotted reports whether a host name cannot be taken for a folder's.
func dotted(host string) bool { return strings.ContainsAny(host, ".:") || host == "localhost" }

// cutHost splits host:path, or host/path where the host has a dot, or
// host:port/path where no user stands before it: `git@host:2222/x` means the
// folder 2222.
func cutHost(s string, user bool) (host, port, p string, ok bool) {
	if strings.HasPrefix(s, "[") { // IPv6
		end := strings.IndexByte(s, ']')
		if end < 2 {
			return "", "", "", false
		}
		host, s = s[1:end], "v6"+s[end+1:]
	}
	head := beforeSlash(s)
	tail := strings.TrimPrefix(s[len(head):], "/")
	name, after, colon := strings.Cut(head, ":")
	if host == "" {
		host = name
	}
	if !colon {
		return host, "", tail, dotted(strings.ToLower(host))
	}
	if !user && isPort(after) {
		return host, after, tail, true
	}
	if tail != "" {
		after += "/" + tail
	}
	return host, "", after, true
}

func isPort(s string) bool {
	if s == "" || len(s) > 5 {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

func beforeSlash(s string) string {
	if i := strings.IndexByte(s, '/'); i >= 0 {
		return s[:i]
	}
	return s
}

func hostRepo(prefix, host, port, p string) (string, error) {
	host = strings.ToLower(strings.TrimRight(host, "."))
	if plainText(host) != nil || strings.ContainsAny(host, " \\/@[]%") || strings.HasPrefix(host, ".") || len(port) > 5 {
		return "", fmt.Errorf("%w: %q is no host and port", ErrInvalidRepo, shown(host+":"+port))
	}
	p, err := repoPath(p)
	if err != nil {
		return "", err
	}
	if host == "" || isScheme(host) || p == "" && prefix == "" {
		return "", fmt.Errorf("%w: it names no host or no repository", ErrInvalidRepo)
	}
	address := host
	if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err != nil {
			return "", fmt.Errorf("%w: %q is no IPv6 address", ErrInvalidRepo, host)
		}
		address = "[" + host + "]"
	}
	switch {
	case port != "":
		address += ":" + port
	case prefix == "" && !dotted(host):
		address += ":"
	}
	if p == "" {
		return prefix + address, nil
	}
	return prefix + address + "/" + p, nil
}

// repoPath cleans the path part of a repository URL.
func repoPath(p string) (string, error) {
	clean := strings.TrimPrefix(path.Clean("/"+strings.TrimLeft(p, "/")), "/")
	for _, part := range strings.Split(p, "/") {
		if part == ".." {
			return "", fmt.Errorf("%w: its path holds \"..\"", ErrInvalidRepo)
		}
	}
	for {
		short := strings.TrimRightFunc(strings.TrimRight(strings.TrimSuffix(clean, ".git"), "/"), unicode.IsSpace)
		if short == clean {
			return clean, nil
		}
		if last := path.Base(short); short != "" && (last == "." || last == "..") {
			return "", fmt.Errorf("%w: its path ends in dots", ErrInvalidRepo)
		}
		clean = short
	}
}

func fileRepo(p string) (string, error) {
	clean, err := repoPath(p)
	if err != nil {
		return "", err
	}
	if clean == "" {
		return "", fmt.Errorf("%w: it names the root folder", ErrInvalidRepo)
	}
	return "file:///" + clean, nil
}

// shown is what an error shows of a text that is no URL: nothing before its last
// `@`, because nobody knows where in it a password stands.
func shown(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return "…" + s[i:]
	}
	return s
}

// withoutUser cuts the user info off a URL.
func withoutUser(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return s
	}
	if i := strings.LastIndexByte(beforeSlash(rest), '@'); i >= 0 {
		rest = rest[i+1:]
	}
	return scheme + "://" + rest
}

// StripUserInfo returns a repository URL without user name and password, as
// agents send it and answers show it. An SSH user ("git") is no secret and
// goes too.
func StripUserInfo(raw string) string {
	raw = strings.TrimSpace(raw)
	if strings.HasPrefix(raw, "/") {
		return raw // a folder
	}
	if strings.Contains(raw, "://") {
		return withoutUser(raw)
	}
	head := beforeSlash(raw)
	i := strings.LastIndexByte(head, '@')
	if i < 0 {
		return raw
	}
	// Without its user, host:2222/x would name a port.
	if host, folder, ok := strings.Cut(head[i+1:], ":"); ok && isPort(folder) {
		return host + ":/" + raw[i+1+len(host)+1:]
	}
	return raw[i+1:]
}

// CanonicalRef returns the canonical form of a ref: refs/heads/x is x, empty
// and HEAD are "", the default branch; pinned refs are kept as they are.
func CanonicalRef(raw string) (string, error) {
	s := strings.TrimSpace(raw)
	if err := plainText(s); err != nil {
		return "", fmt.Errorf("%w: it holds %w", ErrInvalidRef, err)
	}
	if s == "HEAD" {
		return "", nil
	}
	if IsCommit(s) {
		return strings.ToLower(s), nil
	}
	if branch, ok := strings.CutPrefix(s, "refs/heads/"); ok {
		if branch == "" {
			return "", fmt.Errorf("%w: refs/heads/ names no branch", ErrInvalidRef)
		}
		return branch, nil
	}
	return s, nil
}

// PinnedRef reports whether a canonical ref follows no branch: a tag, a semver
// range or a commit.
func PinnedRef(ref string) bool {
	return strings.HasPrefix(ref, "refs/tags/") || strings.HasPrefix(ref, "semver:") || IsCommit(ref)
}

// CleanPath returns the clean form of a folder below a repository's root:
// "./drone/" is "drone", "", "." and "/" are "".
func CleanPath(raw string) (string, error) {
	if err := plainText(raw); err != nil {
		return "", fmt.Errorf("%w: it holds %w", ErrInvalidPath, err)
	}
	clean := path.Clean(strings.TrimLeft(raw, "/"))
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("%w: %q", ErrPathEscapes, raw)
	}
	if clean == "." {
		return "", nil
	}
	return clean, nil
}

// PathWithin reports whether the clean folder p is equal to or below the clean
// folder asked; every folder is below "".
func PathWithin(asked, p string) bool {
	if asked == "" || p == asked {
		return true
	}
	return strings.HasPrefix(p, asked) && p[len(asked)] == '/'
}

// errUnprintable says what kept a text from being plain.
type errUnprintable string

func (e errUnprintable) Error() string { return string(e) }

// plainText refuses what no name, URL or revision may hold.
func plainText(s string) error {
	if !utf8.ValidString(s) {
		return errUnprintable("bytes that are not UTF-8")
	}
	for _, r := range s {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError {
			return errUnprintable(fmt.Sprintf("the unprintable character %U", r))
		}
	}
	return nil
}

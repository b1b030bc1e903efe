package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/landfall-hub/landfall/internal/gitpack"
)

// What callers branch on. The errors of this package wrap one of them where it
// applies, and never hold a user name or a password.
var (
	// ErrNotFound: the server knows no such repository, or does not show it to
	// this user.
	ErrNotFound = errors.New("there is no such repository, or it is not shown to this user")
	// ErrAuth: the server wants other credentials, or these may not read.
	ErrAuth = errors.New("access was refused")
	// ErrRefMissing: the repository has no such branch, tag or commit.
	ErrRefMissing = errors.New("the repository has no such ref")
	// ErrPathMissing: the commit has no such folder.
	ErrPathMissing = errors.New("the commit has no such folder")
	// ErrSHA256: the repository's ids are SHA-256.
	ErrSHA256 = errors.New("the repository uses SHA-256, which cannot be read; one with SHA-1 can")
	// ErrTimeout: the server did not answer, or not to the end, in time.
	ErrTimeout = errors.New("the server took too long")
	// ErrTooLarge: the repository or the folder is over its bound.
	ErrTooLarge = gitpack.ErrTooLarge
	// ErrUnsafe: the folder holds what must not be written: names or symbolic
	// links that lead out of it.
	ErrUnsafe = errors.New("the folder leads out of itself")
	// ErrNoCommit: the mirror does not have the commit; Fetch brings it.
	ErrNoCommit = errors.New("the commit is not in the mirror")
)

var sentinels = []error{ErrNotFound, ErrAuth, ErrRefMissing, ErrPathMissing, ErrSHA256, ErrTimeout, ErrTooLarge, ErrUnsafe, ErrNoCommit, ErrRaced}

// explain words what went wrong with the server.
func (r *Repo) explain(ctx context.Context, head []byte, doing string, err error) error {
	doing += " " + r.name
	if parent := context.Cause(ctx); parent != nil {
		if errors.Is(parent, ErrTimeout) {
			return fmt.Errorf("%s: %w", doing, parent)
		}
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	if strings.Contains(string(head), "object-format=sha256") {
		return fmt.Errorf("%s: %w", doing, ErrSHA256)
	}
	for _, s := range sentinels {
		if errors.Is(err, s) {
			return fmt.Errorf("%s: %w", doing, err)
		}
	}
	for theirs, ours := range map[error]error{
		transport.ErrRepositoryNotFound: ErrNotFound, transport.ErrAuthenticationRequired: ErrAuth, transport.ErrAuthorizationFailed: ErrAuth,
		transport.ErrEmptyRemoteRepository: fmt.Errorf("%w: it is empty", ErrRefMissing),
	} {
		if errors.Is(err, theirs) {
			return fmt.Errorf("%s: %w", doing, ours)
		}
	}
	// Not wrapped: what a library or a server says may name the user.
	return fmt.Errorf("%s: %s", doing, plain(err.Error()))
}

// ownPort is this side of a connection, which is another one each time: the same
// trouble is to read the same.
var ownPort = regexp.MustCompile(`\b(tcp|udp) \S+->`)

var userInfo = regexp.MustCompile(`//[^/\s@]*@`)

// mostText bounds what an error quotes, in bytes.
const mostText = 1000

// plain makes a stranger's words fit for an error: on one line, short, without
// user info.
func plain(s string) string {
	s = userInfo.ReplaceAllString(strings.ToValidUTF8(s, "?"), "//")
	s = ownPort.ReplaceAllString(s, "$1 ")
	s = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.TrimSpace(s))
	if len(s) > mostText {
		s = strings.ToValidUTF8(s[:mostText], "") + " …"
	}
	return s
}

package control

import (
	"errors"

	"github.com/landfall-hub/landfall/internal/forge"
	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// failure is something that went wrong with a server. Its error is for the log;
// those who may not see that are told in short.
type failure struct {
	what string
	err  error
}

func (f *failure) Error() string { return f.what + ": " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// inShort words an error for those who may not see the log: without what a
// server said.
func inShort(err error) string {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return err.Error()
	}
	return f.what + ": " + brief(f.err).Error()
}

var errInLog = errors.New("it failed; the hub's log says why")

// brief is an error without what a server said.
func brief(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{
		gitrepo.ErrNotFound, gitrepo.ErrAuth, gitrepo.ErrRefMissing, gitrepo.ErrPathMissing, gitrepo.ErrSHA256, gitrepo.ErrTimeout,
		gitrepo.ErrTooLarge, gitrepo.ErrNoCommit, gitrepo.ErrRaced,
		forge.ErrAuth, forge.ErrNotFound, forge.ErrLimited,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	return errInLog
}

package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// Options say where and as whom to publish.
type Options struct {
	// Repo is the GitOps repository, with all of the branch's folders in its mirror.
	Repo *gitrepo.Repo
	// Branch is written to; it is made where it is missing.
	Branch string
	// Base is where a Branch that is missing begins; empty for nowhere.
	Base string
	// Name and Email are the author's.
	Name, Email string
	// Now is the time of the commit.
	Now time.Time
	// Message is the commit's, without what the summary says.
	Message string
	// Diff is where a unified diff of the change goes; nil for nowhere.
	Diff io.Writer
}

// Result is what came of publishing.
type Result struct {
	// Commit is where the branch is now, Before where it was; both "" for an empty
	// branch that needed nothing.
	Commit, Before string
	// Changed says that a commit was made.
	Changed bool
	Summary Summary
}

// mostRaces is how often a push that loses a race is prepared anew.
const mostRaces = 5

// Compare says what Push would do, and does nothing.
func Compare(ctx context.Context, o Options, want *Desired) (Result, error) {
	p, err := prepare(ctx, o, want)
	if err != nil {
		return p.result, err
	}
	return p.result, p.diff(ctx, o)
}

// Push publishes to the branch. A push that loses a race is done again on the
// new head, a few times; the error wraps gitrepo.ErrRaced when all are lost.
func Push(ctx context.Context, o Options, want *Desired) (Result, error) {
	for race := 1; ; race++ {
		r, err := pushOnce(ctx, o, want)
		if !errors.Is(err, gitrepo.ErrRaced) || race == mostRaces {
			return r, err
		}
	}
}

func pushOnce(ctx context.Context, o Options, want *Desired) (Result, error) {
	p, err := prepare(ctx, o, want)
	if err != nil || p.next == p.head {
		return p.result, err
	}
	if err := o.Repo.Push(ctx, o.Branch, p.draft, p.head, p.next); err != nil {
		return p.result, err
	}
	p.result.Commit, p.result.Changed = p.next.String(), true
	return p.result, p.diff(ctx, o)
}

// prepared is a commit that is ready to be pushed; next is the head where there
// is nothing to do.
type prepared struct {
	draft        *gitrepo.Draft
	head, next   gitrepo.ID
	before, tree gitrepo.ID
	result       Result
}

func prepare(ctx context.Context, o Options, want *Desired) (p prepared, err error) {
	if p.head, err = headOf(ctx, o.Repo, o.Branch); err != nil {
		return p, err
	}
	parent := p.head
	if p.head == (gitrepo.ID{}) && o.Base != "" {
		if parent, err = headOf(ctx, o.Repo, o.Base); err != nil {
			return p, err
		}
	}
	if p.head != (gitrepo.ID{}) {
		p.result.Commit, p.result.Before = p.head.String(), p.head.String()
	}
	p.draft, p.next = gitrepo.NewDraft(), p.head
	reader := o.Repo.Reader()
	if parent != (gitrepo.ID{}) {
		c, err := reader.Commit(parent)
		if err != nil {
			return p, err
		}
		p.before = c.Tree
	}
	if p.tree, p.result.Summary, err = Build(p.draft, reader, p.before, want); err != nil || p.tree == p.before {
		return p, err
	}
	text := gitrepo.CommitText{Tree: p.tree, By: gitrepo.Signature{Name: o.Name, Email: o.Email, When: o.Now}, Message: o.Message + p.result.Summary.text()}
	if parent != (gitrepo.ID{}) {
		text.Parents = []gitrepo.ID{parent}
	}
	p.next, err = p.draft.Commit(text)
	return p, err
}

// diff writes what changed, where it is wanted.
func (p *prepared) diff(ctx context.Context, o Options) error {
	if o.Diff == nil || p.tree == p.before {
		return nil
	}
	return p.draft.Diff(ctx, o.Repo.Reader(), p.before, p.tree, o.Diff)
}

// headOf fetches a branch; the zero ID where it is missing.
func headOf(ctx context.Context, repo *gitrepo.Repo, branch string) (gitrepo.ID, error) {
	commit, err := repo.Fetch(ctx, branch)
	if errors.Is(err, gitrepo.ErrRefMissing) {
		return gitrepo.ID{}, nil
	}
	if err != nil {
		return gitrepo.ID{}, err
	}
	id, ok := gitrepo.ParseID(commit)
	if !ok {
		return id, fmt.Errorf("%s is at %q, which is no commit's id", branch, commit)
	}
	return id, nil
}

package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/landfall-hub/landfall/internal/forge"
	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// Forge is what proposing needs of a Git provider.
type Forge interface {
	PullRequests(ctx context.Context, base string) ([]forge.PullRequest, error)
	Open(ctx context.Context, p forge.NewPullRequest) (forge.PullRequest, error)
	Close(ctx context.Context, number int64) error
}

// LabelPromoted marks a pull request that brings another promoted commit.
const LabelPromoted = "promoted"

// branches begin the names of the branches that pull requests come from.
const branches = "landfall/"

// Proposal is what came of proposing.
type Proposal struct {
	Result
	// PullRequest is the open one; its Number is 0 where nothing is to be changed.
	PullRequest forge.PullRequest
	// Closed are the numbers of older ones, which it takes the place of.
	Closed []int64
}

// Propose publishes by a pull request: a branch of its own, beginning at the
// branch's head, and the request to merge it. Older requests of the scheduler for
// that branch are closed, also where nothing is to be changed any more. It may be
// done again at any time, after any error.
//
// A branch that is missing is made by Push: a pull request needs one to come
// into.
func Propose(ctx context.Context, o Options, f Forge, want *Desired) (Proposal, error) {
	var r Proposal
	p, err := prepare(ctx, o, want)
	r.Result = p.result
	if err != nil {
		return r, err
	}
	if p.head == (gitrepo.ID{}) {
		r.Result, err = Push(ctx, o, want)
		return r, err
	}
	open, err := f.PullRequests(ctx, o.Branch)
	if err != nil {
		return r, err
	}
	if p.next != p.head {
		if r.PullRequest, err = p.propose(ctx, o, f); err != nil {
			return r, err
		}
		r.Changed = true
		if err := p.diff(ctx, o); err != nil {
			return r, err
		}
	}
	for _, old := range open {
		if old.Number == r.PullRequest.Number || !strings.HasPrefix(old.Head, branches+o.Branch+"/") {
			continue
		}
		if err := f.Close(ctx, old.Number); err != nil && !errors.Is(err, forge.ErrNotFound) {
			return r, err
		}
		r.Closed = append(r.Closed, old.Number)
	}
	return r, nil
}

// propose pushes the branch and asks for it to be merged.
func (p *prepared) propose(ctx context.Context, o Options, f Forge) (forge.PullRequest, error) {
	// The same change on the same head is the same branch: what a crash left
	// behind is taken up.
	head := fmt.Sprintf("%s%s/%s-%s", branches, o.Branch, p.head.String()[:10], p.tree.String()[:10])
	if err := o.Repo.Push(ctx, head, p.draft, gitrepo.ID{}, p.next); err != nil && !errors.Is(err, gitrepo.ErrRaced) {
		return forge.PullRequest{}, err
	}
	title, _, _ := strings.Cut(o.Message, "\n")
	ask := forge.NewPullRequest{Head: head, Base: o.Branch, Title: title, Body: strings.TrimSpace(p.result.Summary.text())}
	if p.result.Summary.Promoted {
		ask.Labels = []string{LabelPromoted}
	}
	return f.Open(ctx, ask)
}

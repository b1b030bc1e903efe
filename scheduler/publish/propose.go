package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/internal/forge"
	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// Forge is what proposing needs of a Git provider.
type Forge interface {
	PullRequests(ctx context.Context, base string) ([]forge.PullRequest, error)
	PullRequest(ctx context.Context, number int64) (forge.PullRequest, error)
	Open(ctx context.Context, p forge.NewPullRequest) (forge.PullRequest, error)
	Close(ctx context.Context, number int64) error
}

// LabelPromoted marks a pull request that brings another promoted commit.
const LabelPromoted = "promoted"

// branches begin the names of the branches that pull requests come from.
const branches = "landfall/"

// Request names a pull request that Propose returned.
type Request struct {
	// Head is the branch that it comes from, by the name that it was given: that
	// of the change. Empty for none.
	Head   string
	Number int64
}

// Proposal is what came of proposing.
type Proposal struct {
	// Result is about the branch as it is. Its Commit does not hold the plan while
	// a request is there; its Summary says what differs. Changed says that a
	// request was opened, or that the branch was made.
	Result
	// Request is the one for the plan; zero where nothing is to be changed.
	Request Request
	// PullRequest is what the provider knows of it. It is closed where somebody
	// else closed it without merging: the same change is not asked for again.
	PullRequest forge.PullRequest
	// Closed are the numbers of older ones, which it takes the place of. Left are
	// those of their branches that could not be deleted.
	Closed []int64
	Left   []string
	// Folders are the cluster types whose folder the branch has, sorted.
	Folders []string
	// Held are the versions that the branch has of what Summary says is changed
	// or deleted: the ids of their folders, by cluster type/deployment target.
	Held map[string]string
}

// Propose publishes by a pull request: a branch of its own, beginning at the
// branch's head, and the request to merge it. Older requests of the scheduler for
// that branch are closed, and their branches deleted, also where nothing is to be
// changed any more. It may be done again at any time, after any error: what is
// known of the branch by then is returned with the error.
//
// A request stands for a change of certain folders. It stays while the plan is
// the same and nobody else changes these, wherever the branch goes. Last is the
// Request of the time before; where somebody closed that one without merging it,
// it is returned closed, and none is opened for the same change.
//
// A branch that is missing is made by Push: a pull request needs one to come
// into.
func Propose(ctx context.Context, o Options, f Forge, want *Desired, last Request) (Proposal, error) {
	for race := 1; ; race++ {
		r, err := proposeOnce(ctx, o, f, want, last)
		if !errors.Is(err, gitrepo.ErrRaced) || race == mostRaces {
			return r, err
		}
	}
}

func proposeOnce(ctx context.Context, o Options, f Forge, want *Desired, last Request) (Proposal, error) {
	var r Proposal
	p, err := prepare(ctx, o, want)
	if err != nil {
		return r, err
	}
	if p.head == (gitrepo.ID{}) {
		r.Result, err = Push(ctx, o, want)
		return r, err
	}
	if r.Folders, r.Held, err = present(o.Repo.Reader(), p.before, want.Mark, &p.result.Summary); err != nil {
		return r, err
	}
	r.Result = p.result
	open, err := f.PullRequests(ctx, o.Branch)
	if err != nil {
		return r, err
	}
	if p.next != p.head {
		if err := p.ask(ctx, o, f, open, last, &r); err != nil {
			return r, err
		}
	}
	for _, old := range open {
		if old.Number == r.Request.Number || !strings.HasPrefix(old.Head, branches+o.Branch+"/") {
			continue
		}
		if err := f.Close(ctx, old.Number); err != nil && !errors.Is(err, forge.ErrNotFound) {
			return r, err
		}
		r.Closed = append(r.Closed, old.Number)
		// Nobody else has a use for its branch; one that somebody moved stays.
		if at, ok := gitrepo.ParseID(old.HeadCommit); ok {
			if err := o.Repo.Delete(ctx, old.Head, at); err != nil && !errors.Is(err, gitrepo.ErrRaced) {
				r.Left = append(r.Left, old.Head)
			}
		}
	}
	return r, nil
}

// present returns the cluster types whose folder a root has, sorted, and which
// versions it has of what is changed or deleted.
func present(from Reader, root gitrepo.ID, mark string, s *Summary) (found []string, held map[string]string, err error) {
	b := builder{from: from, want: &Desired{Mark: mark}}
	entries, err := b.folder(root)
	if err != nil {
		return nil, nil, err
	}
	held = make(map[string]string, len(s.Changed)+len(s.Deleted))
	for _, name := range slices.Concat(s.Changed, s.Deleted) {
		held[name] = ""
	}
	for _, e := range entries {
		if e.Kind != gitrepo.Folder || strings.HasPrefix(e.Name, ".") {
			continue
		}
		inner, err := from.Tree(e.ID)
		if err != nil {
			return nil, nil, err
		}
		for _, a := range inner {
			if _, ok := held[e.Name+"/"+a.Name]; ok {
				held[e.Name+"/"+a.Name] = a.ID.String()
			}
		}
		ours, err := b.isOurs(inner)
		if err != nil {
			return nil, nil, err
		}
		if ours {
			found = append(found, e.Name)
		}
	}
	slices.Sort(found)
	return found, held, nil
}

// ask finds the request for the change, or opens it.
func (p *prepared) ask(ctx context.Context, o Options, f Forge, open []forge.PullRequest, last Request, r *Proposal) error {
	name, err := p.change(o.Repo.Reader())
	if err != nil {
		return err
	}
	head := branches + o.Branch + "/" + name
	at := slices.IndexFunc(open, func(q forge.PullRequest) bool { return q.Head == head })
	switch {
	case at >= 0:
		r.PullRequest = open[at]
	case last.Head == head && last.Number != 0:
		if r.PullRequest, err = p.again(ctx, o, f, last.Number); err != nil {
			return err
		}
	}
	if r.PullRequest.Number == 0 {
		if r.PullRequest, err = p.open(ctx, o, f, head); err != nil {
			return err
		}
		r.Changed = true
	}
	r.Request = Request{Head: head, Number: r.PullRequest.Number}
	return p.diff(ctx, o)
}

// change names what is to be changed: the folders at the root that differ, as
// they are and as they should be.
func (p *prepared) change(from Reader) (string, error) {
	b := builder{from: from}
	old, err := b.folder(p.before)
	if err != nil {
		return "", err
	}
	next, err := p.draft.Tree(p.tree)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, side := range []struct {
		sign      string
		has, lack []gitrepo.Entry
	}{{"-", old, next}, {"+", next, old}} {
		for _, e := range side.has {
			if !slices.Contains(side.lack, e) {
				fmt.Fprintf(sum, "%s%v %s %s\x00", side.sign, e.Kind, e.ID, e.Name)
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:10]), nil
}

// again looks at a request of the same change that is not open any more. It
// returns one that somebody closed; a zero one where another is to be opened; and
// ErrRaced where it was merged since the branch was looked at.
func (p *prepared) again(ctx context.Context, o Options, f Forge, number int64) (forge.PullRequest, error) {
	was, err := f.PullRequest(ctx, number)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return forge.PullRequest{}, nil
	case err != nil:
		return was, err
	case was.State == forge.Closed:
		return was, nil
	}
	now, err := headOf(ctx, o.Repo, o.Branch)
	if err == nil && now != p.head {
		err = gitrepo.ErrRaced
	}
	return forge.PullRequest{}, err // it was merged, and that was taken back
}

// open pushes the branch and asks for it to be merged.
func (p *prepared) open(ctx context.Context, o Options, f Forge, head string) (forge.PullRequest, error) {
	if err := o.Repo.Push(ctx, head, p.draft, gitrepo.ID{}, p.next); errors.Is(err, gitrepo.ErrRaced) {
		// A crash left it behind, or an earlier request for the same change.
		there, err := headOf(ctx, o.Repo, head)
		if err == nil && there != p.next {
			err = o.Repo.Push(ctx, head, p.draft, there, p.next)
		}
		if err != nil {
			return forge.PullRequest{}, err
		}
	} else if err != nil {
		return forge.PullRequest{}, err
	}
	title, _, _ := strings.Cut(o.Message, "\n")
	ask := forge.NewPullRequest{Head: head, Base: o.Branch, Title: title, Body: strings.TrimSpace(p.result.Summary.text())}
	if p.result.Summary.Promoted {
		ask.Labels = []string{LabelPromoted}
	}
	return f.Open(ctx, ask)
}

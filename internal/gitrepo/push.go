package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/landfall-hub/landfall/schema"
)

// ErrRaced says that the branch is not where it was when the push was prepared:
// fetching and preparing it again is the remedy.
var ErrRaced = errors.New("the branch has moved meanwhile")

// Push sends a draft and moves a branch from old to next: old is the zero ID
// where the branch is to be made. It is all or nothing, and never forced: the
// error is ErrRaced where the branch is somewhere else. That the server took it
// is known when nil is returned; after an error that says nothing of the kind it
// may have.
func (r *Repo) Push(ctx context.Context, branch string, d *Draft, old, next ID) error {
	return r.move(ctx, "pushing %s to", branch, d, old, next)
}

// Delete deletes a branch, provided that it is where old says: the error is
// ErrRaced where it is not, or is there no more.
func (r *Repo) Delete(ctx context.Context, branch string, old ID) error {
	return r.move(ctx, "deleting %s of", branch, nil, old, ID{})
}

// move has the server move a branch; what is wording it, with the branch.
func (r *Repo) move(ctx context.Context, what, branch string, d *Draft, old, next ID) error {
	ref, err := schema.CanonicalRef(branch)
	if err != nil {
		return err
	}
	if ref == "" || isFullRef(ref) || isCommit(ref) {
		return fmt.Errorf("%s %s: it is no branch's name", fmt.Sprintf(what, strconv.Quote(branch)), r.name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, p, stop := bounded(ctx, r.opts.Timeout, r.opts.Stall, mostAdvertised)
	defer stop()
	if err := r.push(ctx, p, ref, d, old, next); err != nil {
		return r.explain(ctx, p.began(), fmt.Sprintf(what, ref), err)
	}
	return nil
}

func (r *Repo) push(ctx context.Context, p *patience, branch string, d *Draft, old, next ID) error {
	c, err := r.callToPush(ctx, p)
	if err != nil {
		return err
	}
	defer c.Close()
	shown, err := c.AdvertisedReferencesContext(ctx)
	switch {
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		shown = packp.NewAdvRefs()
	case err != nil:
		return err
	}
	name := plumbing.NewBranchReferenceName(branch)
	if at := shown.References[name.String()]; ID(at) != old {
		return ErrRaced
	}
	req := packp.NewReferenceUpdateRequestFromCapabilities(shown.Capabilities)
	if shown.IsEmpty() {
		// go-git forgets what an empty repository can do: to say whether it worked is
		// the least.
		if err := req.Capabilities.Set(capability.ReportStatus); err != nil {
			return err
		}
	}
	req.Commands = []*packp.Command{{Name: name, Old: plumbing.Hash(old), New: plumbing.Hash(next)}}
	if d != nil {
		pack, begin := d.pack()
		begin()
		defer pack.Close()
		req.Packfile = p.sender(pack)
	}
	report, err := c.ReceivePack(ctx, req)
	if err == nil && report != nil {
		err = report.Error()
	}
	if err == nil && report == nil {
		err = errors.New("the server did not say whether it took it")
	}
	return refusal(err)
}

// refusal tells a lost race from other refusals.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	said := err.Error()
	for _, sign := range []string{"non-fast-forward", "fetch first", "failed to update ref", "cannot lock ref", "failed to lock", "incorrect old value", "reference already exists", "stale info"} {
		if strings.Contains(said, sign) {
			return ErrRaced
		}
	}
	return err
}

// pack returns a pack of the draft, which is made while it is read, from begin on.
func (d *Draft) pack() (out io.ReadCloser, begin func()) {
	from, to := io.Pipe()
	return from, func() {
		go func() { // ends when all is read, or when the reader is closed
			_, err := packfile.NewEncoder(to, d.objects, false).Encode(d.order, 0)
			to.CloseWithError(err)
		}()
	}
}

// pushing is a conversation with a server's receive-pack.
type pushing interface {
	AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error)
	ReceivePack(context.Context, *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error)
	Close() error
}

// callToPush begins a conversation.
func (r *Repo) callToPush(ctx context.Context, p *patience) (pushing, error) {
	switch r.endpoint.Protocol {
	case "ssh":
		return r.callSSH(ctx, p, receivePack)
	case "file":
		return callProgram(ctx, p, receivePack, r.endpoint.Path)
	}
	return r.callHTTPToPush(p)
}

// ReceivePack sends a pack and asks for refs to be moved.
func (p *pipe) ReceivePack(_ context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	p.asked = true
	if err := errors.Join(req.Encode(p.in), p.in.Close()); err != nil {
		return nil, p.complaint(fmt.Errorf("sending a pack: %w", err))
	}
	if !req.Capabilities.Supports(capability.ReportStatus) {
		return nil, p.Close()
	}
	report := packp.NewReportStatus()
	if err := report.Decode(p.out); err != nil {
		return nil, p.complaint(fmt.Errorf("reading the answer: %w", err))
	}
	return report, nil
}

package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/landfall-hub/landfall/hub/descriptor"
	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// patience is how long a push waits for the repository's history to be read. It
// is stored before, and counts as soon as that is done.
const patience = 5 * time.Second

// Push stores the descriptors in a body, which say what a commit of a ref brings.
// It is all or nothing: the error is a *schema.Problem that names what is wrong,
// with lines. What it returns is known to the next question.
func (c *Catalog) Push(ctx context.Context, at schema.Endpoint, commit string, body []byte) (schema.PushedDescriptors, error) {
	claims, problems := descriptor.ReadPushed(body)
	c.mu.Lock()
	at = c.own(at)
	for i := range claims {
		if e := c.own(claims[i].Endpoint); e.Repo != at.Repo || e.Ref != at.Ref {
			problems = append(problems, descriptor.Problem{File: "body", Line: claims[i].Line, Reason: fmt.Sprintf(
				"its manifests are in %s, branch %s, and repo and ref name %s, branch %s: they must be the same", e.Repo, shownRef(e.Ref), at.Repo, shownRef(at.Ref))})
		}
		claims[i].Endpoint = c.own(claims[i].Endpoint)
	}
	c.mu.Unlock()
	if len(problems) > 0 {
		return schema.PushedDescriptors{}, broken(problems)
	}
	now := c.opts.Now().UTC().Truncate(time.Microsecond)
	rows, answer := make([]record.Pushed, 0, len(claims)), schema.PushedDescriptors{Items: []schema.PushedDescriptor{}}
	for _, claim := range claims {
		p := record.Pushed{RefKey: record.RefKey{Repo: at.Repo, Ref: at.Ref}, Commit: commit, Version: *claim.Version, ReceivedAt: now}
		p.Target.Target, p.Target.Endpoint, p.Target.URL = claim.Target, claim.Endpoint, claim.URL
		rows = append(rows, p)
		answer.Items = append(answer.Items, schema.PushedDescriptor{Target: claim.Target, Version: claim.Version.Version, Path: claim.Endpoint.Path})
	}
	if err := c.opts.Writer.PutDescriptors(ctx, rows); err != nil {
		return answer, &schema.Refusal{Code: schema.CodeUnavailable, Detail: "the descriptors could not be stored; send them again", Err: err}
	}
	c.mu.Lock()
	for _, p := range rows {
		c.keep(p)
	}
	c.publish()
	c.mu.Unlock()
	if err := c.settle(ctx, record.RefKey{Repo: at.Repo, Ref: at.Ref}, commit); err != nil {
		c.opts.Log.Warn("what was pushed is not in the tables yet", "repository", at.Repo, "error", err)
	}
	_, answer.Placed = c.Index().Place(at.Repo, at.Ref, commit)
	return answer, nil
}

// mostProblems is how many an answer lists.
const mostProblems = 100

// broken is the answer to a body of which not all is as it should be.
func broken(problems []descriptor.Problem) error {
	slices.SortStableFunc(problems, descriptor.Problem.Compare)
	p := &schema.Problem{Code: schema.CodeInvalidDescriptor, Detail: problems[0].Error()}
	if n := len(problems) - 1; n > 0 {
		p.Detail += fmt.Sprintf(" (and %d more; nothing was stored)", n)
	}
	for _, one := range problems[:min(len(problems), mostProblems)] {
		p.Errors = append(p.Errors, schema.FileError(one))
	}
	return p
}

// keep remembers what was pushed. Of several for one commit and target the last
// holds. c.mu is held.
func (c *Catalog) keep(p record.Pushed) {
	id, _ := gitops.ParseID(p.Commit)
	fresh := &push{Pushed: p, id: id, places: map[uint32]int64{}, counted: map[uint32]bool{}}
	all := c.pushed[p.RefKey]
	kept := make([]*push, 0, len(all)+1)
	for _, old := range all {
		if old.Commit != p.Commit || old.Target.Target != p.Target.Target {
			kept = append(kept, old)
		}
	}
	c.pushed[p.RefKey] = append(kept, fresh)
}

// settle has what was pushed for a ref counted.
func (c *Catalog) settle(ctx context.Context, key record.RefKey, commit string) error {
	i := slices.IndexFunc(c.followers, func(f *follower) bool { return f.repo == key.Repo })
	if i < 0 {
		return c.writeTargets(ctx)
	}
	f := c.followers[i]
	defer f.nudge()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := f.lock.Acquire(ctx, 1); err != nil {
		return errors.New("the repository's history is being read; it counts when that is done")
	}
	defer f.lock.Release(1)
	// Not before: the book must not be ahead of it.
	h, ok := c.opts.Mirrors.History(key.Repo)
	if id, isID := gitops.ParseID(commit); ok && isID && !h.Knows(id) {
		h.Want(id)
	}
	b := f.books[key.Ref]
	if !ok || b == nil || len(b.chains) == 0 || b.current().Head == none || b.tree.Files == nil {
		return nil // it is read as soon as there is something to read
	}
	f.takeAll(b)
	b.count(&walk{book: b, history: h})
	c.mu.Lock()
	if c.sheets[key.Repo] == nil {
		c.sheets[key.Repo] = map[string]*sheet{}
	}
	c.sheets[key.Repo][key.Ref] = b.sheet(h)
	c.publish()
	c.mu.Unlock()
	return errors.Join(b.flush(ctx, c.opts.Writer.WriteNames), c.writeTargets(ctx))
}

// takeAll gives a book what was pushed for its ref. f.lock is held.
func (f *follower) takeAll(b *book) {
	f.catalog.mu.Lock()
	all := f.catalog.pushed[b.key]
	f.catalog.mu.Unlock()
	b.pushed = make(map[schema.Target][]*push, len(b.pushed))
	for _, p := range all {
		b.pushed[p.Target.Target] = append(b.pushed[p.Target.Target], p)
	}
}

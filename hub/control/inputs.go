package control

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/source"
	"github.com/landfall-hub/landfall/schema"
)

// spot is a ref of a repository as far as it is known.
type spot struct {
	source *followed
	ref    string
	// commit is the last that is known; "" for none, and then err says why.
	commit string
	err    error
}

// survey finds out where everything is that an environment is planned from.
type survey struct {
	environment *environment
	uses        map[use]bool
	// waiting says that a repository was not asked yet.
	waiting bool
	// marks tell one survey from another: equal marks, equal plans.
	marks []string
	// troubles are what is known, but may be old.
	troubles []string
}

func (e *environment) survey() *survey {
	return &survey{environment: e, uses: map[use]bool{}}
}

// find returns where a ref of a repository is, and marks it. Deep asks for its
// history.
func (s *survey) find(address, ref string, deep bool) spot {
	at := s.locate(address, ref, deep)
	if at.source != nil {
		s.marks = append(s.marks, at.source.name)
	}
	s.marks = append(s.marks, at.ref, at.commit)
	if at.commit == "" {
		s.marks = append(s.marks, text(at.err))
	}
	return at
}

// locate is find for a place that nothing is read from.
func (s *survey) locate(address, ref string, deep bool) spot {
	e := s.environment
	canonical, err := schema.CanonicalRef(ref)
	if err != nil {
		return spot{ref: ref, err: err}
	}
	if schema.PinnedRef(canonical) && !strings.HasPrefix(canonical, "refs/tags/") {
		return spot{ref: ref, err: fmt.Errorf("%q is no branch's name", ref)}
	}
	from, k, err := e.control.pool.get(address, e.plane.local, deep, e.plane.interval())
	if err != nil {
		return spot{ref: canonical, err: err}
	}
	s.uses[use{k, canonical}] = true
	h := from.at(canonical)
	at := spot{source: from, ref: canonical, commit: h.commit, err: brief(h.err)}
	if from.auth == (gitrepo.Auth{}) && (errors.Is(at.err, gitrepo.ErrAuth) || errors.Is(at.err, gitrepo.ErrNotFound)) {
		at.err = fmt.Errorf("%w; if it is private, name it in hub.yaml under repositories, with its credentials", at.err)
	}
	switch {
	case h.commit == "" && !h.asked:
		s.waiting = true
	case h.commit != "" && errors.Is(h.err, gitrepo.ErrRefMissing):
		s.troubles = append(s.troubles, fmt.Sprintf("%s: %s is gone; what it held last is used", from.name, shownRef(canonical)))
	case h.commit != "" && h.err != nil:
		s.troubles = append(s.troubles, fmt.Sprintf("%s cannot be fetched, and what is known of it is used: %v", from.name, brief(h.err)))
	}
	return at
}

// treeKey names a folder of a commit.
type treeKey struct{ repo, commit, folder string }

// trees keeps what was read in the last round and this one.
type trees struct{ before, now map[treeKey]source.Tree }

// turn forgets what the last round did not need.
func (t *trees) turn() {
	t.before, t.now = t.now, map[treeKey]source.Tree{}
}

// read reads a folder of a spot.
func (t *trees) read(ctx context.Context, at spot, folder string) (source.Tree, error) {
	if at.commit == "" {
		return source.Tree{}, at.err
	}
	clean, err := schema.CleanPath(folder)
	if err != nil {
		return source.Tree{}, err
	}
	k := treeKey{at.source.name, at.commit, clean}
	tree, ok := t.now[k]
	if !ok {
		tree, ok = t.before[k]
	}
	if !ok {
		if tree, err = source.Commit(ctx, at.source.git.Reader(), at.commit, clean); err != nil {
			return source.Tree{}, err
		}
	}
	if t.now == nil {
		t.now = map[treeKey]source.Tree{}
	}
	t.now[k] = tree
	return tree, nil
}

// inputs are what a plan is made of, before the sources of registrations are
// read.
type inputs struct {
	own, base spot
	source.Inputs
	// registered are where the registrations point to, by their names.
	registered map[string]spot
	// gitops is where the plan goes.
	gitops spot
	// refused says why the plan can go nowhere.
	refused error
}

// gather reads the environment's own content and the promoted one, and finds all
// that they point to. It returns nil while something was not asked yet.
func (e *environment) gather(ctx context.Context, s *survey) (*inputs, error) {
	in := &inputs{registered: map[string]spot{}}
	in.Environment = e.name
	in.own = s.find(e.plane.URL, e.plane.Environments[e.name], true)
	e.head = in.own.commit
	main := s.find(e.plane.URL, e.plane.main(), true)
	var further []spot
	for _, c := range e.plane.ConfigRepos {
		if branch, ok := c.Environments[e.name]; ok {
			further = append(further, s.find(c.URL, branch, false))
		}
	}
	if s.waiting {
		return nil, nil //nolint:nilnil // there is nothing yet, and nothing wrong
	}
	if err := e.readOwn(ctx, in, further); err != nil {
		return nil, err
	}
	own := controlplane.ParseEnvironment(files(in.ControlPlane, in.Further))
	if err := e.readBase(ctx, s, in, own.BaseRepo, main); err != nil || s.waiting {
		return nil, err
	}
	base := controlplane.ParseBase(in.Base.Files)
	for _, r := range base.Registrations {
		in.registered[r.Name] = s.find(r.Workload.Repo, r.Workload.Branch, false)
	}
	if len(own.GitOpsRepos) == 0 {
		own.GitOpsRepos = base.GitOpsRepos
	}
	if in.gitops, in.refused = e.destination(s, own.GitOpsRepos); in.refused != nil {
		e.control.release(e)
	}
	if s.waiting {
		return nil, nil //nolint:nilnil // as above
	}
	in.Workloads = func(ctx context.Context, r controlplane.Registration) (source.Tree, error) {
		return e.trees.read(ctx, in.registered[r.Name], r.Workload.Path)
	}
	return in, nil
}

// readOwn reads the environment's branch, and its part of further repositories.
func (e *environment) readOwn(ctx context.Context, in *inputs, further []spot) (err error) {
	if in.ControlPlane, err = e.trees.read(ctx, in.own, ""); err != nil {
		return fmt.Errorf("reading the environment's branch %s: %w", in.own.ref, err)
	}
	for i, at := range further {
		tree, err := e.trees.read(ctx, at, "")
		name := e.furtherName(i, at)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			tree = source.Tree{Problems: []controlplane.Problem{{
				Place: controlplane.Place{File: name}, Hides: true, Message: fmt.Sprintf("the config repository cannot be read: %v", err),
			}}}
		}
		in.Further = append(in.Further, below(name, tree))
	}
	return nil
}

// furtherName is the folder under which the files of a config repository are
// known.
func (e *environment) furtherName(i int, at spot) string {
	if at.source == nil {
		return fmt.Sprintf("config_repos[%d]", i)
	}
	return path.Base(at.source.name)
}

// below returns a tree as it is in a folder: the files of two repositories are
// told apart, and neither's ignore file reaches the other.
func below(folder string, t source.Tree) source.Tree {
	out := source.Tree{Commit: t.Commit, Files: slices.Clone(t.Files), Problems: slices.Clone(t.Problems)}
	for i := range out.Files {
		out.Files[i].Path = folder + "/" + out.Files[i].Path
	}
	for i := range out.Problems {
		if out.Problems[i].File != folder {
			out.Problems[i].File = folder + "/" + out.Problems[i].File
		}
	}
	return out
}

func files(own source.Tree, further []source.Tree) []controlplane.File {
	all := slices.Clone(own.Files)
	for _, t := range further {
		all = append(all, t.Files...)
	}
	return all
}

// readBase reads the promoted content: of the commit that the environment pins,
// else of the branch's head.
func (e *environment) readBase(ctx context.Context, s *survey, in *inputs, pin *controlplane.BaseRepo, main spot) error {
	at, folder := main, ""
	if pin != nil {
		branch := pin.Branch
		if branch == "" {
			branch = e.plane.main()
		}
		if pin.Repo != "" {
			at = s.find(pin.Repo, branch, true)
		} else if branch != main.ref {
			at = s.find(e.plane.URL, branch, true)
		}
		if folder = pin.Path; s.waiting {
			return nil
		}
		if pin.Commit != "" {
			commit, err := e.pinned(ctx, at, pin.Commit)
			if err != nil {
				return fmt.Errorf("%s: BaseRepo %q: %w", pin.Place, pin.Name, err)
			}
			at.commit = commit
		}
	}
	in.base = at
	tree, err := e.trees.read(ctx, at, folder)
	if err != nil {
		return fmt.Errorf("reading the promoted content: %w", err)
	}
	in.Base = tree
	return nil
}

// pinned returns the full id of a commit that an environment pins.
func (e *environment) pinned(ctx context.Context, at spot, commit string) (string, error) {
	if at.source == nil || at.commit == "" {
		return "", at.err
	}
	commit = strings.ToLower(strings.TrimSpace(commit))
	if id, ok := gitrepo.ParseID(commit); ok {
		if _, err := at.source.git.Reader().Commit(id); err != nil {
			return "", fmt.Errorf("the commit %s is not in the history of %s in %s; pin one that is, or push it: %w", commit, at.ref, at.source.name, err)
		}
		return commit, nil
	}
	all, err := at.source.git.Commits(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, id := range all {
		if strings.HasPrefix(id.String(), commit) {
			found = append(found, id.String())
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d commits of %s begin with %q; pin a full id", len(found), at.source.name, commit)
	}
	return found[0], nil
}

// destination finds where the environment is to be published.
func (e *environment) destination(s *survey, all []controlplane.GitOpsRepo) (spot, error) {
	if len(all) == 0 {
		return spot{}, errors.New("the environment has no GitOpsRepo: add one to its branch, so that it is known where to publish")
	}
	to := &all[0]
	if len(all) > 1 {
		return spot{}, fmt.Errorf("%s: there is another GitOpsRepo at %s: keep one", all[1].Place, to.Place)
	}
	blame := func(err error) error { return fmt.Errorf("%s: GitOpsRepo %q: %w", to.Place, to.Name, err) }
	if clean, err := schema.CleanPath(to.Path); err != nil || clean != "" {
		return spot{}, blame(fmt.Errorf("spec.path is %q: a plan is published at the root; leave it out", to.Path))
	}
	at := s.locate(to.Repo, to.Branch, false)
	if at.source == nil {
		return spot{}, blame(at.err)
	}
	if at.ref == "" || schema.PinnedRef(at.ref) {
		return spot{}, blame(errors.New("spec.branch names no branch to publish to"))
	}
	if e.control.reads(at.source.name, at.ref) {
		return spot{}, blame(fmt.Errorf("the branch %s of %s is read by the control plane itself; publish to another", at.ref, at.source.name))
	}
	if other := e.control.claim(e, at); other != "" {
		return spot{}, blame(fmt.Errorf("the environment %s is published to the branch %s of %s already; give each its own", other, at.ref, at.source.name))
	}
	return at, nil
}

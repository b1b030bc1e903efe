package gitrepo

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/landfall-hub/landfall/internal/gitpack"
	"github.com/landfall-hub/landfall/schema"
)

// ID names a commit or a tree.
type ID [20]byte

// ParseID reads a full id in hexadecimal; ok is false for any other text.
func ParseID(s string) (id ID, ok bool) {
	if len(s) != 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s))
	return id, err == nil
}

// String returns the id in lower case.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Heads are the commits that the refs of a repository are at.
type Heads struct {
	// Refs holds a commit by canonical ref: a branch's name, a full name for all
	// else, and "" for the default branch where its commit is in the mirror.
	Refs map[string]ID
	// Default is the default branch's name; empty where the server does not say.
	Default string
	// Missing are the refs that were asked for and are not there, or at no
	// commit; sorted.
	Missing []string
	// Left is how many branches were left out, because there are too many.
	Left int
	// Shallow says that the server itself lacks a part of the history.
	Shallow bool
	// Downloaded says that the mirror has objects that it did not have before.
	Downloaded bool
}

// mostAdvertised bounds the list of refs that a server shows, in bytes.
const mostAdvertised = 32 << 20

// allow sets how many more bytes may come.
func (p *patience) allow(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most, p.left = bytes, bytes
}

// FetchHeads asks the server where refs are, and downloads what the mirror lacks
// of them in one go. Refs are branches or full names, "" is the default branch;
// none at all is every branch, but no more than most: the default branch and
// then the first by name. A ref that moved or went leaves its commits in the
// mirror.
func (r *Repo) FetchHeads(ctx context.Context, refs []string, most int) (Heads, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, p, stop := bounded(ctx, r.opts.Timeout, r.opts.Stall, mostAdvertised)
	defer stop()
	heads, err := r.fetchHeads(ctx, p, refs, most)
	if err != nil {
		return Heads{}, r.explain(ctx, p.began(), "fetching", err)
	}
	return heads, nil
}

func (r *Repo) fetchHeads(ctx context.Context, p *patience, refs []string, most int) (heads Heads, err error) {
	if err := r.renew(); err != nil {
		return heads, err
	}
	s := r.storage()
	c, err := r.call(ctx, p)
	if err != nil {
		return heads, err
	}
	defer c.Close()
	shown, err := c.AdvertisedReferencesContext(ctx)
	if err != nil {
		return heads, err
	}
	p.allow(r.opts.MaxBytes)
	tips, err := choose(shown, refs, most, &heads)
	if err != nil {
		return heads, err
	}
	heads.Shallow, heads.Default = len(shown.Shallows) > 0, defaultBranch(shown)
	if heads.Downloaded, err = r.bring(ctx, p, c, s, shown, tips); err != nil {
		return heads, err
	}
	heads.Refs = map[string]ID{}
	for _, t := range tips {
		commit, err := r.peel(s, t.want, t.commit.String())
		if err != nil && strings.HasPrefix(t.name, "refs/tags/") {
			r.broken = false // a tag may point to anything
			heads.Missing = append(heads.Missing, t.name)
			continue
		}
		if err != nil {
			return heads, err
		}
		heads.Refs[t.ref] = ID(plumbing.NewHash(commit))
	}
	slices.Sort(heads.Missing)
	if head := shown.Head; head != nil && s.HasEncodedObject(*head) == nil {
		heads.Refs[""] = ID(*head)
	}
	return heads, r.keepTips(s, heads.Refs)
}

// defaultBranch returns the name of the branch that HEAD stands for.
func defaultBranch(shown *packp.AdvRefs) string {
	for _, link := range shown.Capabilities.Get(capability.SymRef) {
		if branch, ok := strings.CutPrefix(link, "HEAD:refs/heads/"); ok {
			return branch
		}
	}
	return ""
}

// tip is where a ref is.
type tip struct {
	// ref is canonical, name the server's.
	ref, name string
	// want is the object that the ref names, commit what it leads to.
	want, commit plumbing.Hash
}

// choose returns the tips to follow, in the order of their refs.
func choose(shown *packp.AdvRefs, refs []string, most int, heads *Heads) ([]tip, error) {
	var tips []tip
	add := func(ref, name string, want plumbing.Hash) {
		t := tip{ref: ref, name: name, want: want, commit: want}
		if peeled, ok := shown.Peeled[name]; ok {
			t.commit = peeled
		}
		tips = append(tips, t)
	}
	for _, written := range refs {
		ref, err := schema.CanonicalRef(written)
		if err != nil {
			return nil, err
		}
		want, name, err := find(shown, ref)
		if err != nil {
			heads.Missing = append(heads.Missing, shownRef(ref))
			continue
		}
		add(ref, name, plumbing.NewHash(want))
	}
	if len(refs) > 0 {
		return tips, nil
	}
	if shown.Head != nil {
		add("", "HEAD", *shown.Head)
	}
	for name, want := range shown.References {
		if branch, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			add(branch, name, want)
		}
	}
	slices.SortFunc(tips, func(a, b tip) int { return strings.Compare(a.ref, b.ref) })
	if heads.Left = max(len(tips)-most, 0); heads.Left > 0 {
		tips = tips[:most]
	}
	return tips, nil
}

// bring downloads the tips that the mirror lacks, with all that leads to them. A
// mirror that has outgrown its bound is replaced by what leads to all the tips:
// until that is there as a whole, nothing goes.
func (r *Repo) bring(ctx context.Context, p *patience, c conversation, s *filesystem.Storage, shown *packp.AdvRefs, tips []tip) (downloaded bool, err error) {
	req := packp.NewUploadPackRequestFromCapabilities(shown.Capabilities)
	var all []plumbing.Hash
	for _, t := range tips {
		if !slices.Contains(all, t.want) {
			all = append(all, t.want)
		}
		switch err := s.HasEncodedObject(t.commit); {
		case errors.Is(err, plumbing.ErrObjectNotFound):
			if !slices.Contains(req.Wants, t.want) {
				req.Wants = append(req.Wants, t.want)
			}
		case err != nil:
			r.broken = true
			return false, fmt.Errorf("looking into the mirror, which begins anew: %w", err)
		}
	}
	if len(req.Wants) == 0 {
		return false, nil
	}
	size, _, err := gitpack.Size(r.packs())
	if err != nil {
		return false, fmt.Errorf("looking into the mirror: %w", err)
	}
	outgrown := size/2 > r.opts.MaxBytes
	if outgrown {
		req.Wants = all
	} else if req.Haves, err = haves(s); err != nil {
		r.broken = true
		return false, fmt.Errorf("looking into the mirror, which begins anew: %w", err)
	}
	resp, err := c.UploadPack(ctx, req)
	if err != nil {
		return false, err
	}
	defer resp.Close()
	name, err := gitpack.Receive(ctx, r.packs(), demultiplexed(req, resp), p.done)
	if err != nil {
		return false, fmt.Errorf("writing the mirror: %w", err)
	}
	s.Reindex()
	if outgrown {
		return true, r.remove(func() error { return gitpack.Keep(r.packs(), name) })
	}
	return true, nil
}

// Join makes few packs of many, so that looking something up does not take
// longer with every download, and reports whether there were that many. Nothing
// is lost, whether a ref leads to it or not.
func (r *Repo) Join(ctx context.Context) (joined bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	joined, err = gitpack.Join(ctx, r.packs(), mostPacks, r.remove)
	r.broken = r.broken || errors.Is(err, gitpack.ErrDamaged)
	if err != nil {
		return joined, fmt.Errorf("joining the packs of the mirror of %s: %w", r.name, err)
	}
	return joined, nil
}

// tipRefs is where the mirror keeps its tips, each under its id: the names of a
// stranger's refs are no file names, and a branch may take the place of a folder
// of branches.
const tipRefs = "refs/landfall/"

// keepTips makes the mirror's refs those that the server has.
func (r *Repo) keepTips(s *filesystem.Storage, refs map[string]ID) error {
	keep := map[plumbing.ReferenceName]bool{}
	for _, id := range refs {
		name := plumbing.ReferenceName(tipRefs + id.String())
		if keep[name] {
			continue
		}
		keep[name] = true
		if _, err := s.Reference(name); err == nil {
			continue
		}
		if err := s.SetReference(plumbing.NewHashReference(name, plumbing.Hash(id))); err != nil {
			return fmt.Errorf("writing the mirror: %w", err)
		}
	}
	iter, err := s.IterReferences()
	if err != nil {
		return fmt.Errorf("reading the mirror: %w", err)
	}
	defer iter.Close()
	var gone []plumbing.ReferenceName
	if err := iter.ForEach(func(ref *plumbing.Reference) error {
		if strings.HasPrefix(string(ref.Name()), tipRefs) && !keep[ref.Name()] {
			gone = append(gone, ref.Name())
		}
		return nil
	}); err != nil {
		return fmt.Errorf("reading the mirror: %w", err)
	}
	for _, name := range gone {
		err = errors.Join(err, s.RemoveReference(name))
	}
	return err
}

// BeginAnew has the next fetch throw the mirror away first: something that must
// be in it is not.
func (r *Repo) BeginAnew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = true
}

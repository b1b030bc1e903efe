package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/landfall-hub/landfall/internal/gitpack"
	"github.com/landfall-hub/landfall/schema"
)

// Options configure a Repo.
type Options struct {
	// URL is where the repository is: http(s)://, ssh://, host:path, file:// or an
	// absolute folder.
	URL string
	// Dir is the mirror's folder, made where it is missing. One Repo at a time
	// may have it.
	Dir  string
	Auth Auth
	// Depth is how many commits of a ref's history the mirror holds; 0 is all.
	Depth int
	// MaxBytes bounds one download, and what one Materialize writes. A mirror of
	// limited depth that has outgrown it begins anew; one of full depth that has
	// outgrown it twice is downloaded as a whole with the next news, and what no
	// ref leads to goes. Default 1 GiB.
	MaxBytes int64
	// Timeout bounds one Fetch, and Stall the time in which nothing comes.
	// Defaults 10 minutes and 30 seconds.
	Timeout, Stall time.Duration
}

func (o *Options) defaults() {
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	if o.Stall == 0 {
		o.Stall = 30 * time.Second
	}
}

// Repo is a repository with its mirror. Its methods may be called from any
// goroutine; they work one at a time. Nothing is kept in memory between them.
type Repo struct {
	opts     Options
	endpoint *transport.Endpoint
	// name is the address without user info.
	name           string
	user, password string

	mu sync.Mutex
	// broken: something that must be in the mirror is not; it is to begin anew.
	broken bool

	// shelf is held by who reads the mirror's packs, and alone by who removes some.
	shelf sync.RWMutex
	// removals counts how often packs were removed: a Reader that knew them looks
	// again.
	removals int
}

// Open makes a Repo. It looks at the options and asks nobody anything.
func Open(o Options) (*Repo, error) {
	o.defaults()
	name := schema.StripUserInfo(o.URL)
	if _, err := schema.CanonicalRepo(o.URL); err != nil {
		return nil, err
	}
	if o.Dir == "" || o.Depth < 0 || o.MaxBytes < 0 || o.Timeout < 0 || o.Stall < 0 {
		return nil, fmt.Errorf("a mirror of %s needs a folder, and bounds that are not negative", name)
	}
	ep, err := transport.NewEndpoint(strings.TrimSpace(o.URL))
	if err != nil {
		return nil, fmt.Errorf("reading the address %s: it is no URL, host:path or absolute folder", name)
	}
	switch ep.Protocol {
	case "http", "https", "ssh", "file":
	default:
		return nil, fmt.Errorf("%s: repositories are read by http, https, ssh or from a folder, not by %s", name, ep.Protocol)
	}
	if err := o.Auth.check(ep); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r := &Repo{opts: o, endpoint: ep, name: name, user: ep.User, password: ep.Password}
	// From here on nothing that prints the address knows the user.
	ep.User, ep.Password = "", ""
	return r, nil
}

// storage opens the mirror.
func (r *Repo) storage() *filesystem.Storage {
	return filesystem.NewStorageWithOptions(osfs.New(r.opts.Dir, osfs.WithBoundOS()), cache.NewObjectLRU(4*cache.MiByte), filesystem.Options{LargeObjectThreshold: largeObject})
}

// largeObject is from where on objects are streamed and not held in memory.
const largeObject = 1 << 20

// Fetch asks the server where a ref is, downloads that commit unless the mirror
// has it, and returns its id. The ref is a branch, a full name (refs/tags/x), a
// full commit id, or empty for the default branch.
func (r *Repo) Fetch(ctx context.Context, ref string) (commit string, err error) {
	ref, err = schema.CanonicalRef(ref)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, p, stop := bounded(ctx, r.opts.Timeout, r.opts.Stall, r.opts.MaxBytes)
	defer stop()
	commit, err = r.fetch(ctx, p, ref)
	if err != nil {
		return "", r.explain(ctx, p.began(), "fetching "+shownRef(ref)+" of", err)
	}
	return commit, nil
}

func shownRef(ref string) string {
	if ref == "" {
		return "the default branch"
	}
	return ref
}

func isFullRef(ref string) bool { return strings.HasPrefix(ref, "refs/") }

func isCommit(ref string) bool { return plumbing.IsHash(ref) }

func (r *Repo) fetch(ctx context.Context, p *patience, ref string) (string, error) {
	if err := r.renew(); err != nil {
		return "", err
	}
	s := r.storage()
	if isCommit(ref) && s.HasEncodedObject(plumbing.NewHash(ref)) == nil {
		return ref, nil
	}
	c, err := r.call(ctx, p)
	if err != nil {
		return "", err
	}
	defer c.Close()
	refs, err := c.AdvertisedReferencesContext(ctx)
	if err != nil {
		return "", err
	}
	id, name, err := find(refs, ref)
	if err != nil {
		return "", err
	}
	// Of a tag with a message, the commit is what it points to.
	commit, want := id, plumbing.NewHash(id)
	if peeled, ok := refs.Peeled[name]; ok {
		commit = peeled.String()
	}
	switch err := s.HasEncodedObject(plumbing.NewHash(commit)); {
	case errors.Is(err, plumbing.ErrObjectNotFound):
		if err := r.download(ctx, p, c, s, refs, want); err != nil {
			return "", err
		}
	case err != nil:
		r.broken = true
		return "", fmt.Errorf("looking into the mirror, which begins anew: %w", err)
	}
	if commit, err = r.peel(s, want, commit); err != nil {
		return "", err
	}
	return commit, s.SetReference(plumbing.NewHashReference(plumbing.ReferenceName(name), plumbing.NewHash(commit)))
}

// peel makes sure that what was fetched is a commit.
func (r *Repo) peel(s *filesystem.Storage, want plumbing.Hash, commit string) (string, error) {
	if o, err := s.EncodedObject(plumbing.CommitObject, plumbing.NewHash(commit)); err == nil {
		if _, err := decodeCommit(o); err == nil {
			return commit, nil
		}
	}
	tag, err := readTag(s, want)
	if err != nil {
		r.broken = true
		return "", fmt.Errorf("%w: it points to no commit", ErrRefMissing)
	}
	c, err := tag.Commit()
	if err != nil {
		return "", fmt.Errorf("%w: the tag points to no commit", ErrRefMissing)
	}
	return c.Hash.String(), nil
}

// readTag reads a tag of a size that tags have.
func readTag(s *filesystem.Storage, id plumbing.Hash) (*object.Tag, error) {
	o, err := s.EncodedObject(plumbing.TagObject, id)
	if err != nil {
		return nil, err
	}
	if o.Size() > mostHeader {
		return nil, fmt.Errorf("%w: a tag with more than %d bytes", ErrTooLarge, mostHeader)
	}
	return object.DecodeTag(s, o)
}

// download asks for a commit and all that the mirror lacks of it.
func (r *Repo) download(ctx context.Context, p *patience, c conversation, s *filesystem.Storage, refs *packp.AdvRefs, want plumbing.Hash) error {
	req := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	req.Wants = []plumbing.Hash{want}
	shallows, err := s.Shallow()
	if err != nil {
		return r.corrupt(err)
	}
	if r.opts.Depth > 0 && refs.Capabilities.Supports(capability.Shallow) {
		req.Depth, req.Shallows = packp.DepthCommits(r.opts.Depth), shallows
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return err
		}
	}
	if req.Haves, err = haves(s); err != nil {
		return r.corrupt(err)
	}
	resp, err := c.UploadPack(ctx, req)
	if err != nil {
		if strings.Contains(err.Error(), "not our ref") {
			return fmt.Errorf("%w: the server does not give %s out", ErrRefMissing, want)
		}
		return err
	}
	defer resp.Close()
	// First: a commit without its parents that is not noted as such would make
	// the server believe that the mirror has its whole history.
	if len(resp.Shallows) > 0 {
		if err := s.SetShallow(append(shallows, resp.Shallows...)); err != nil {
			return r.corrupt(err)
		}
	}
	if _, err := gitpack.Receive(ctx, r.packs(), demultiplexed(req, resp), p.done); err != nil {
		if ctx.Err() == nil && !errors.Is(err, ErrTooLarge) {
			err = r.corrupt(err)
		}
		return err
	}
	s.Reindex()
	return nil
}

func (r *Repo) corrupt(err error) error {
	r.broken = true
	return fmt.Errorf("writing the mirror, which begins anew: %w", err)
}

// demultiplexed returns the pack of an answer, without what the server says
// beside it.
func demultiplexed(req *packp.UploadPackRequest, resp *packp.UploadPackResponse) interface{ Read([]byte) (int, error) } {
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, resp)
	case req.Capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, resp)
	}
	return resp
}

// haves returns the commits that the mirror's refs are at.
func haves(s *filesystem.Storage) ([]plumbing.Hash, error) {
	iter, err := s.IterReferences()
	if err != nil {
		return nil, err
	}
	defer iter.Close()
	var found []plumbing.Hash
	err = iter.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() == plumbing.HashReference && s.HasEncodedObject(ref.Hash()) == nil {
			found = append(found, ref.Hash())
		}
		return nil
	})
	return found, err
}

// mostPacks is how many downloads a mirror grows by. One of limited depth begins
// anew then, the packs of another are joined.
const mostPacks = 64

func (r *Repo) packs() string { return filepath.Join(r.opts.Dir, "objects", "pack") }

// renew makes the mirror where there is none, and begins it anew where it is
// broken or has grown too much: with limited depth that costs one small
// download.
func (r *Repo) renew() error {
	size, count, err := gitpack.Size(r.packs())
	if err != nil {
		return fmt.Errorf("reading the mirror: %w", err)
	}
	if r.broken || r.opts.Depth > 0 && (count >= mostPacks || size > r.opts.MaxBytes) {
		if err := r.remove(func() error { return os.RemoveAll(r.opts.Dir) }); err != nil {
			return fmt.Errorf("beginning the mirror anew: %w", err)
		}
		r.broken = false
	}
	if err := os.MkdirAll(r.opts.Dir, 0o700); err != nil {
		return fmt.Errorf("making the mirror: %w", err)
	}
	s := r.storage()
	if err := errors.Join(s.Init(), s.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, "refs/heads/main")), gitpack.Sweep(r.packs())); err != nil {
		return fmt.Errorf("making the mirror: %w", err)
	}
	return nil
}

// remove has packs removed while nobody reads them.
func (r *Repo) remove(work func() error) error {
	r.shelf.Lock()
	defer r.shelf.Unlock()
	r.removals++
	return work()
}

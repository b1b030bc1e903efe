package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// follower reads one repository.
type follower struct {
	catalog *Catalog
	repo    string
	log     *slog.Logger
	// wake has room for one: there is something to read.
	wake chan struct{}
	// read says that all of the repository was read once.
	read atomic.Bool
	// holding remembers of branches' commits whether they hold documents of their
	// own.
	holding map[gitops.ID]bool
	// said are the problems that were logged; failed is the last error that was.
	said   map[problem]bool
	failed string
	// left is how many refs are not followed because there are too many.
	left int

	// lock is held by whoever looks at the books: the follower, and who pushes.
	lock  *semaphore.Weighted
	books map[string]*book
	basis uint64
}

// nudge has the repository read; it waits for nothing.
func (f *follower) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run reads until ctx ends: at once, when there is something new, and again when
// something went wrong.
func (f *follower) run(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			f.close()
			return
		case <-f.wake:
		case <-pause.C:
		}
		wait := f.round(ctx)
		pause.Reset(wait)
	}
}

// retry is how soon what went wrong is tried again.
const retry = 2 * time.Second

// round reads what there is, and says when to look again.
func (f *follower) round(ctx context.Context) time.Duration {
	err := f.update(ctx)
	if ctx.Err() != nil {
		return look
	}
	f.complain()
	if err == nil {
		if f.failed != "" {
			f.log.Info("the names of the repository are up to date again")
		}
		f.failed = ""
		return look
	}
	f.catalog.metrics.failures.WithLabelValues(f.repo).Inc()
	if f.failed != err.Error() {
		f.failed = err.Error()
		f.log.Warn("the names of the repository are not up to date; it is tried again", "error", err)
	}
	return retry
}

// mostSaid is how many new problems are logged at once.
const mostSaid = 100

// complain logs each problem once.
func (f *follower) complain() {
	f.catalog.mu.Lock()
	all := f.catalog.problems[f.repo]
	f.catalog.mu.Unlock()
	now := make(map[problem]bool, len(all))
	fresh := 0
	for _, p := range all {
		if now[p] = true; f.said[p] {
			continue
		}
		if fresh++; fresh <= mostSaid {
			f.log.Warn("a document is not as it should be, and counts as if it were not there", "ref", p.ref, "file", p.File, "line", p.Line, "reason", p.Reason)
		}
	}
	if fresh > mostSaid {
		f.log.Warn("more documents are not as they should be", "count", fresh-mostSaid)
	}
	f.said = now
}

// update brings all that is known of the repository up to date.
func (f *follower) update(ctx context.Context) error {
	c := f.catalog
	h, ok := c.opts.Mirrors.History(f.repo)
	if !ok {
		return nil
	}
	if err := c.reading.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.reading.Release(1)
	if err := f.introduce(ctx, h); err != nil {
		return err
	}
	heads := h.Heads()
	if len(heads) == 0 {
		return nil // it was never fetched
	}
	var failures []error
	behind := 0
	refs := f.interesting(ctx, h, heads)
	for i := 0; i < len(refs); i++ {
		if err := f.follow(ctx, h, refs[i], heads[refs[i]]); err != nil {
			failures, behind = append(failures, err), behind+1
			if ctx.Err() != nil {
				return err
			}
		}
		if i == len(refs)-1 && len(refs) < mostRefs { // what was read may name more of them
			refs = append(refs, without(f.interesting(ctx, h, heads), refs)...)
		}
	}
	c.metrics.behind.WithLabelValues(f.repo).Set(float64(behind))
	if err := f.retire(ctx, h, heads); err != nil {
		failures = append(failures, err)
	}
	if len(failures) == 0 {
		f.read.Store(true)
	}
	if err := f.publish(ctx, h); err != nil {
		return err
	}
	if err := c.writeTargets(ctx); err != nil {
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

func without(all, known []string) []string {
	return slices.DeleteFunc(all, func(ref string) bool { return slices.Contains(known, ref) })
}

// introduce has the repository known by its names. When these change, all that
// was read is read again: what was another's may be its own now.
func (f *follower) introduce(ctx context.Context, h *gitops.History) error {
	c := f.catalog
	c.mu.Lock()
	before := basisOf(c.repos[f.repo])
	c.know(f.repo)
	r := c.repos[f.repo]
	c.mu.Unlock()
	basis := basisOf(r)
	if basis == f.basis && before == basis {
		return nil
	}
	rows := make([]record.Repository, 0, len(r.Names))
	for _, alias := range r.Names {
		rows = append(rows, record.Repository{Alias: alias, Repo: f.repo, URL: h.Written(), Default: r.Default})
	}
	if err := c.opts.Writer.PutRepositories(ctx, rows); err != nil {
		return err
	}
	if err := f.lock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer f.lock.Release(1)
	if f.basis != 0 && f.basis != basis {
		for ref, b := range f.books {
			f.books[ref] = b.anew(f.owns(ref, r), basis)
		}
	}
	f.basis = basis
	return nil
}

// anew is a book that is read from the beginning, on a chain of its own.
func (b *book) anew(own func(schema.Endpoint) bool, basis uint64) *book {
	next := newBook(b.key, own, basis)
	next.pushed = b.pushed
	if len(b.chains) > 0 {
		next.chains = []chain{{Chain: names.Chain{Number: b.current().Number + 1, Fork: -1}, Position: -1}}
	}
	return next
}

func newBook(key record.RefKey, own func(schema.Endpoint) bool, basis uint64) *book {
	return &book{key: key, own: own, basis: basis, ledger: map[schema.Target]*history{}, now: map[schema.Target]*present{}, pushed: map[schema.Target][]*push{}}
}

// owns returns what tells endpoints of a ref from those of others.
func (f *follower) owns(ref string, r names.Repo) func(schema.Endpoint) bool {
	return func(e schema.Endpoint) bool {
		return slices.Contains(r.Names, e.Repo) && (e.Ref == ref || e.Ref == "" && ref == r.Default)
	}
}

// follow reads a ref.
func (f *follower) follow(ctx context.Context, h *gitops.History, ref string, head gitops.ID) error {
	b, err := f.open(ctx, h, ref)
	if err != nil {
		return err
	}
	if err := f.lock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer f.lock.Release(1)
	b.gone = false
	f.takeAll(b)
	from := b.read()
	err = b.follow(ctx, h, head, f.catalog.opts.batch, f.catalog.opts.Writer.WriteNames)
	if err == nil && b.unsaved {
		err = f.catalog.save(b)
	}
	f.catalog.metrics.commits.WithLabelValues(f.repo).Add(float64(max(b.read()-from, 0)))
	if err != nil {
		return fmt.Errorf("reading the names of %s, branch %s: %w", f.repo, shownRef(ref), err)
	}
	return nil
}

// open returns the book of a ref, restored where it was written before.
func (f *follower) open(ctx context.Context, h *gitops.History, ref string) (*book, error) {
	if b := f.books[ref]; b != nil {
		return b, nil
	}
	c := f.catalog
	key := record.RefKey{Repo: f.repo, Ref: ref}
	c.mu.Lock()
	r, chains := c.repos[f.repo], c.chains[key]
	c.mu.Unlock()
	b := newBook(key, f.owns(ref, r), f.basis)
	if err := c.restore(ctx, h, b, chains); err != nil {
		return nil, err
	}
	if err := f.lock.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer f.lock.Release(1)
	f.takeAll(b)
	b.counted(h)
	f.books[ref] = b
	return b, nil
}

// retire keeps the past of refs that are not there any more.
func (f *follower) retire(ctx context.Context, h *gitops.History, heads map[string]gitops.ID) error {
	c := f.catalog
	c.mu.Lock()
	var past []string
	for key := range c.chains {
		if _, there := heads[key.Ref]; key.Repo == f.repo && !there {
			past = append(past, key.Ref)
		}
	}
	c.mu.Unlock()
	slices.Sort(past)
	for _, ref := range past[:min(len(past), mostRefs)] {
		if _, err := f.open(ctx, h, ref); err != nil {
			return err
		}
	}
	if err := f.lock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer f.lock.Release(1)
	for ref, b := range f.books {
		if _, there := heads[ref]; !there {
			b.gone = true
		}
	}
	return nil
}

// publish makes what was read known.
func (f *follower) publish(ctx context.Context, h *gitops.History) error {
	c := f.catalog
	if err := f.lock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer f.lock.Release(1)
	sheets := make(map[string]*sheet, len(f.books))
	for _, ref := range slices.Sorted(maps.Keys(f.books)) {
		if b := f.books[ref]; len(b.chains) > 0 {
			sheets[ref] = b.sheet(h)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sheets[f.repo] = sheets
	c.publish()
	return nil
}

// close saves what is not saved.
func (f *follower) close() {
	for _, ref := range slices.Sorted(maps.Keys(f.books)) {
		if b := f.books[ref]; b.unsaved && b.pending.Len() == 0 {
			if err := f.catalog.save(b); err != nil {
				f.log.Warn("the next start reads the history again", "ref", ref, "error", err)
			}
		}
	}
}

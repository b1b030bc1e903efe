package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/landfall-hub/landfall/internal/forge"
	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
)

// fakeProvider is a Git provider of one repository of a stage. It keeps pull
// requests and statuses in memory, and its branches and commits are the
// repository's: it refuses what a real one refuses.
type fakeProvider struct {
	t    *testing.T
	repo *gittest.Repo
	// told is sent each status, where it is not nil.
	told chan forge.Status

	mu       sync.Mutex
	requests []forge.PullRequest
	statuses map[string][]forge.Status
	// down is its answer to everything, stuck to the closing of a request.
	down, stuck error
}

func (f *fakeProvider) rev(name string) string {
	return strings.TrimSpace(gittest.Git(f.t, f.repo.Bare, "for-each-ref", "--format=%(objectname)", "refs/heads/"+name))
}

func (f *fakeProvider) open(base string) (all []forge.PullRequest) {
	for _, p := range f.requests {
		if p.State == forge.Open && p.Base == base {
			all = append(all, p)
		}
	}
	return all
}

func (f *fakeProvider) PullRequests(_ context.Context, base string) ([]forge.PullRequest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open(base), f.down
}

func (f *fakeProvider) PullRequest(_ context.Context, number int64) (forge.PullRequest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return forge.PullRequest{}, f.down
	}
	if number < 1 || int(number) > len(f.requests) {
		return forge.PullRequest{}, forge.ErrNotFound
	}
	return f.requests[number-1], nil
}

func (f *fakeProvider) Open(_ context.Context, p forge.NewPullRequest) (forge.PullRequest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return forge.PullRequest{}, f.down
	}
	for _, q := range f.open(p.Base) {
		if q.Head == p.Head {
			return q, nil
		}
	}
	head, base := f.rev(p.Head), f.rev(p.Base)
	if head == "" || base == "" || strings.TrimSpace(gittest.Git(f.t, f.repo.Bare, "rev-list", "--count", base+".."+head)) == "0" {
		return forge.PullRequest{}, fmt.Errorf("the provider answered 422: no commits between %s and %s", p.Base, p.Head)
	}
	n := int64(len(f.requests) + 1)
	made := forge.PullRequest{
		Number: n, State: forge.Open, Title: p.Title, Head: p.Head, Base: p.Base, HeadCommit: head, Labels: p.Labels,
		URL: fmt.Sprintf("https://git.example/org/platform/pulls/%d", n),
	}
	f.requests = append(f.requests, made)
	return made, nil
}

func (f *fakeProvider) Close(_ context.Context, number int64) error {
	f.mu.Lock()
	stuck := f.stuck
	f.mu.Unlock()
	if stuck != nil {
		return stuck
	}
	return f.set(number, forge.Closed)
}

// set gives a request a state, as a person does.
func (f *fakeProvider) set(number int64, state forge.State) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down == nil {
		f.requests[number-1].State = state
	}
	return f.down
}

func (f *fakeProvider) SetStatus(_ context.Context, commit string, s forge.Status) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return f.down
	}
	gittest.Git(f.t, f.repo.Bare, "cat-file", "-e", commit+"^{commit}")
	f.statuses[commit] = append(f.statuses[commit], s)
	if f.told != nil {
		f.told <- s
	}
	return nil
}

// goAway has it answer with an error, or answer again.
func (f *fakeProvider) goAway(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
}

// states are those of all pull requests, by number.
func (f *fakeProvider) states() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, p := range f.requests {
		all = append(all, string(p.State))
	}
	return strings.Join(all, "/")
}

// merge does what a person's click does; squash makes one commit of it.
func (f *fakeProvider) merge(number int64, squash bool) {
	f.t.Helper()
	f.mu.Lock()
	p := &f.requests[number-1]
	f.mu.Unlock()
	dir := f.t.TempDir()
	gittest.Git(f.t, dir, "clone", "--quiet", "--branch", p.Base, f.repo.Bare, ".")
	how := []string{"merge", "--quiet", "--no-ff", "--message", "merge", "origin/" + p.Head}
	if squash {
		how = []string{"merge", "--quiet", "--squash", "origin/" + p.Head}
	}
	gittest.Git(f.t, dir, how...)
	if squash {
		gittest.Git(f.t, dir, "commit", "--quiet", "--message", "squashed")
	}
	gittest.Git(f.t, dir, "push", "--quiet", "origin", "HEAD:refs/heads/"+p.Base)
	f.mu.Lock()
	p.State, p.MergeCommit = forge.Merged, f.rev(p.Base)
	f.mu.Unlock()
}

// last is what a commit was told last, and how often it was told something.
func (f *fakeProvider) last(commit string) (forge.Status, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.statuses[commit]
	if len(all) == 0 {
		return forge.Status{}, 0
	}
	return all[len(all)-1], len(all)
}

// providers gives repositories of a stage their fakes.
func (s *stage) providers(names ...string) map[string]*fakeProvider {
	all := map[string]*fakeProvider{}
	for _, name := range names {
		all[name] = &fakeProvider{t: s.t, repo: s.repos[name], statuses: map[string][]forge.Status{}}
	}
	return all
}

// proposing has a Control publish by pull requests, of which these providers are
// told. A control plane's provider is told how it stands.
func (s *stage) proposing(fakes map[string]*fakeProvider) func(*Options) {
	return func(o *Options) {
		o.ControlPlanes[0].Publish = publishPull
		for _, name := range slices.Sorted(maps.Keys(fakes)) {
			if name == "control-plane" {
				o.ControlPlanes[0].Forge = &Forge{}
				continue
			}
			o.Known = append(o.Known, Repository{URL: s.url(name), Forge: &Forge{}})
		}
		o.open = func(_ *Forge, url string, _ gitrepo.Auth) (provider, error) {
			for name, f := range fakes {
				if s.url(name) == url {
					return f, nil
				}
			}
			return nil, fmt.Errorf(": nobody speaks for %s", url)
		}
	}
}

// look has every environment see what became of its pull request.
func (s *stage) look() map[string]error {
	s.t.Helper()
	for _, p := range s.control.planes {
		for _, e := range p.environments {
			e.lookAt = e.lookAt.AddDate(-1, 0, 0)
		}
	}
	return s.step()
}

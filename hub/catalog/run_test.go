package catalog

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/internal/polltest"
	"github.com/landfall-hub/landfall/schema"
)

// swap is mirrors that are replaced while they are read.
type swap struct {
	mu  sync.Mutex
	now *gitops.Mirrors
}

func (s *swap) get() *gitops.Mirrors {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *swap) set(m *gitops.Mirrors) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = m
}

func (s *swap) Repositories() []string                      { return s.get().Repositories() }
func (s *swap) History(repo string) (*gitops.History, bool) { return s.get().History(repo) }
func (s *swap) Names(repo string) []string                  { return s.get().Names(repo) }

// Commits come, descriptors are pushed and questions are asked at the same time;
// in the end everybody knows the same.
func TestRun(t *testing.T) {
	a := newApps(t)
	first := a.commit(map[string]string{"a.yaml": a.says("one", "0").text()})
	b := a.bench()
	mirrors := &swap{now: b.fetched()}
	c, err := New(Options{Mirrors: mirrors, Reader: b.store, Writer: b.store, Dir: b.names, Log: b.log()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.catalog = c
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()

	const pushes, commits = 30, 10
	var group sync.WaitGroup
	for p := range 2 {
		group.Go(func() {
			for i := range pushes {
				s := a.says(fmt.Sprint("pushed", p), fmt.Sprint(i))
				if _, err := c.Push(ctx, a.endpoint(""), first, []byte(s.text())); err != nil {
					t.Error(err)
				}
				x := c.Index()
				if got := versions(x, a.endpoint(s.target.DeploymentTarget), first); got != fmt.Sprint(i) {
					// Its commit may not be read yet: then no version is known at all.
					if _, known := x.Place(a.endpoint("").Repo, "main", first); known {
						t.Errorf("after a push of %d it is %s", i, got)
					}
				}
			}
		})
	}
	var newest string
	for i := range commits {
		newest = a.commit(map[string]string{"a.yaml": a.says("one", fmt.Sprint(i+1)).text()})
		mirrors.set(b.fetched())
		c.Changed(mirrors.Repositories()[0])
	}
	group.Wait()
	e := a.endpoint("one")
	polltest.Until(t, "the newest commit's version is known", func() bool { return versions(c.Index(), e, newest) == fmt.Sprint(commits) })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	x := b.start().Index()
	expect(t, "in the tables", versions(x, e, first, newest), fmt.Sprint(0, " ", commits))
	for p := range 2 {
		expect(t, "pushed", versions(x, schema.Endpoint{Repo: e.Repo, Ref: "main", Path: fmt.Sprint("pushed", p)}, first), fmt.Sprint(pushes-1))
	}
}

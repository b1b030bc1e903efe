package publish_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/internal/forge"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/scheduler/publish"
)

// fakeForge keeps pull requests in memory.
type fakeForge struct {
	all    []forge.PullRequest
	broken error
	// asked is called before one is read.
	asked func()
}

func (f *fakeForge) PullRequests(_ context.Context, base string) ([]forge.PullRequest, error) {
	return slices.DeleteFunc(slices.Clone(f.all), func(p forge.PullRequest) bool { return p.State != forge.Open || p.Base != base }), nil
}

func (f *fakeForge) Open(ctx context.Context, p forge.NewPullRequest) (forge.PullRequest, error) {
	if f.broken != nil {
		return forge.PullRequest{}, f.broken
	}
	open, _ := f.PullRequests(ctx, p.Base)
	for _, q := range open {
		if q.Head == p.Head {
			return q, nil
		}
	}
	made := forge.PullRequest{Number: int64(len(f.all) + 1), State: forge.Open, Title: p.Title, Head: p.Head, Base: p.Base, Labels: p.Labels}
	f.all = append(f.all, made)
	return made, nil
}

func (f *fakeForge) PullRequest(_ context.Context, number int64) (forge.PullRequest, error) {
	if f.asked != nil {
		f.asked()
	}
	if f.broken != nil || number < 1 || number > int64(len(f.all)) {
		return forge.PullRequest{}, cmp.Or(f.broken, forge.ErrNotFound)
	}
	return f.all[number-1], nil
}

func (f *fakeForge) Close(_ context.Context, number int64) error {
	f.all[number-1].State = forge.Closed
	return nil
}

func (f *fakeForge) states() []forge.State {
	var states []forge.State
	for _, p := range f.all {
		states = append(states, p.State)
	}
	return states
}

// proposer proposes, each time with what it was told the time before.
func (f *fixture) proposer(web *fakeForge) func(*publish.Desired) publish.Proposal {
	var last publish.Request
	return func(want *publish.Desired) publish.Proposal {
		f.t.Helper()
		r, err := publish.Propose(f.t.Context(), f.opts, web, want, last)
		if err != nil {
			f.t.Fatal(err)
		}
		last = r.Request
		return r
	}
}

// merge makes the branch what a pull request's merge makes of it.
func (f *fixture) merge(web *fakeForge, number int64) {
	f.t.Helper()
	q := &web.all[number-1]
	gittest.Git(f.t, f.bare.Tree, "fetch", "--quiet", f.bare.Bare, branch, q.Head)
	gittest.Git(f.t, f.bare.Tree, "checkout", "--quiet", "--force", "--detach", strings.TrimSpace(gittest.Git(f.t, f.bare.Bare, "rev-parse", branch)))
	gittest.Git(f.t, f.bare.Tree, "merge", "--quiet", "--no-ff", "--message", "merge", strings.TrimSpace(gittest.Git(f.t, f.bare.Bare, "rev-parse", q.Head)))
	f.bare.Push(f.t, "HEAD:refs/heads/"+branch)
	q.State = forge.Merged
}

func TestPropose(t *testing.T) {
	f, web := newFixture(t), &fakeForge{}
	f.opts.Message = "Schedule dev\n"
	propose := f.proposer(web)
	first := plan(map[string]string{"drone/hello/reconciler.yaml": "1"})

	// A branch that is missing is made.
	if r := propose(first); !r.Changed || r.PullRequest.Number != 0 || len(web.all) != 0 {
		t.Fatalf("the first plan: %+v", r)
	}
	if r := propose(first); r.Changed || len(web.all) != 0 {
		t.Fatalf("nothing changed, and yet: %+v", r)
	}

	// A change is asked for, once.
	second := plan(map[string]string{"drone/hello/reconciler.yaml": "2"})
	second.PromotedCommit = "9e04"
	before := f.files()
	r := propose(second)
	if again := propose(second); again.PullRequest.Number != r.PullRequest.Number || len(web.all) != 1 {
		t.Errorf("the same change again: %+v", again)
	}
	if diff := gocmp.Diff(before, f.files()); diff != "" {
		t.Errorf("the branch was changed without being asked (-want +got):\n%s", diff)
	}
	if text := gittest.Git(t, f.bare.Bare, "show", r.PullRequest.Head+":drone/hello/reconciler.yaml"); text != "2" {
		t.Errorf("the pull request's branch holds %q", text)
	}
	want := forge.PullRequest{Number: 1, State: forge.Open, Title: "Schedule dev", Head: r.PullRequest.Head, Base: branch, Labels: []string{publish.LabelPromoted}}
	if diff := gocmp.Diff(want, r.PullRequest); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// A newer plan takes its place; others' pull requests stay.
	web.all = append(web.all, forge.PullRequest{Number: 2, State: forge.Open, Head: "somebody's", Base: branch})
	third := plan(map[string]string{"drone/hello/reconciler.yaml": "3"})
	if r := propose(third); !slices.Equal(r.Closed, []int64{1}) || r.PullRequest.Labels != nil {
		t.Errorf("a newer plan: %+v", r)
	}
	if diff := gocmp.Diff([]forge.State{forge.Closed, forge.Open, forge.Open}, web.states()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// Back to what the branch has: nothing is left to be asked for.
	if r := propose(first); !slices.Equal(r.Closed, []int64{3}) || r.Changed {
		t.Errorf("a plan taken back: %+v", r)
	}
	if diff := gocmp.Diff([]forge.State{forge.Closed, forge.Open, forge.Closed}, web.states()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestProposeAfterACrash pushes the branch and fails before the pull request.
func TestProposeAfterACrash(t *testing.T) {
	f, web := newFixture(t), &fakeForge{}
	f.seed(map[string]string{"README.md": "r"})
	want := plan(map[string]string{"drone/hello/reconciler.yaml": "1"})
	web.broken = forge.ErrLimited
	if _, err := publish.Propose(t.Context(), f.opts, web, want, publish.Request{}); err == nil {
		t.Fatal("a pull request was opened by a provider that refused")
	}
	web.broken = nil
	r, err := publish.Propose(t.Context(), f.opts, web, want, publish.Request{})
	if err != nil || r.PullRequest.Number != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	heads := strings.Fields(gittest.Git(t, f.bare.Bare, "for-each-ref", "--format=%(refname:short)"))
	if diff := gocmp.Diff([]string{branch, r.PullRequest.Head}, heads); diff != "" {
		t.Errorf("branches (-want +got):\n%s", diff)
	}
}

// TestWhoClosesAProposalIsNotFought: a request that somebody closed is asked for
// again when something else is to be changed, and not before.
func TestWhoClosesAProposalIsNotFought(t *testing.T) {
	f, web := newFixture(t), &fakeForge{}
	f.seed(map[string]string{"README.md": "r"})
	propose := f.proposer(web)
	first := plan(map[string]string{"drone/hello/reconciler.yaml": "1"})
	propose(first)
	web.all[0].State, web.all[0].Head = forge.Closed, "refs/pull/1/head" // as Gitea calls it without the branch
	f.seed(map[string]string{"README.md": "r", "more.md": "people go on"})
	for range 2 {
		r := propose(first)
		if r.Changed || len(web.all) != 1 || r.PullRequest.State != forge.Closed || r.Request.Number != 1 || !slices.Equal(r.Summary.Added, []string{"drone/hello"}) {
			t.Fatalf("what was closed: %+v; requests: %+v", r, web.all)
		}
	}
	if r := propose(plan(map[string]string{"drone/hello/reconciler.yaml": "2"})); !r.Changed || r.Request.Number != 2 || r.PullRequest.State != forge.Open {
		t.Errorf("another plan: %+v", r)
	}
	// Back to the first: it was closed by nobody but the scheduler's newer plan.
	if r := propose(first); r.Request.Number != 3 || !slices.Equal(r.Closed, []int64{2}) {
		t.Errorf("the first plan again: %+v", r)
	}
	// Reopened by whoever closed it.
	web.all[2].State = forge.Closed
	if r := propose(first); r.PullRequest.State != forge.Closed {
		t.Errorf("closed: %+v", r)
	}
	web.all[2].State = forge.Open
	if r := propose(first); r.PullRequest.State != forge.Open || r.Request.Number != 3 {
		t.Errorf("reopened: %+v", r)
	}
}

// TestAProposalStaysWhileItsFoldersDo: what else moves the branch does not cost a
// request its reviews; what touches the same folders does.
func TestAProposalStaysWhileItsFoldersDo(t *testing.T) {
	f, web := newFixture(t), &fakeForge{}
	propose := f.proposer(web)
	both := func(drone, large string) *publish.Desired {
		return plan(map[string]string{"drone/hello/reconciler.yaml": drone, "large/hello/reconciler.yaml": large})
	}
	propose(both("1", "1"))
	held := map[string]string{"drone/README.md": readme, "large/README.md": readme, "drone/hello/reconciler.yaml": "1", "large/hello/reconciler.yaml": "1"}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{}
		for _, m := range []map[string]string{held, more} {
			for name, text := range m {
				all[name] = text
			}
		}
		return all
	}
	f.seed(with(nil))
	has := strings.TrimSpace(gittest.Git(t, f.bare.Bare, "rev-parse", branch+":drone/hello"))
	if r := propose(both("2", "1")); r.Request.Number != 1 || !slices.Equal(r.Folders, []string{"drone", "large"}) || !maps.Equal(r.Held, map[string]string{"drone/hello": has}) {
		t.Fatalf("%+v", r)
	}
	f.seed(with(map[string]string{"docs/people.md": "people go on"}))
	if r := propose(both("2", "1")); r.Changed || r.Request.Number != 1 || r.Closed != nil {
		t.Errorf("the branch moved elsewhere: %+v", r)
	}
	f.seed(with(map[string]string{"docs/people.md": "people go on", "drone/note.md": "in the very folder"}))
	if r := propose(both("2", "1")); r.Request.Number != 2 || !slices.Equal(r.Closed, []int64{1}) {
		t.Errorf("the branch moved there: %+v", r)
	}
	f.merge(web, 2)
	if r := propose(both("2", "1")); r.Changed || r.Request.Number != 0 || r.Commit != strings.TrimSpace(gittest.Git(t, f.bare.Bare, "rev-parse", branch)) {
		t.Errorf("merged: %+v", r)
	}
	// One that stayed while the branch moved brings what was planned.
	r := propose(both("3", "1"))
	held["drone/hello/reconciler.yaml"] = "2"
	f.seed(with(map[string]string{"docs/people.md": "and on", "drone/note.md": "in the very folder"}))
	if again := propose(both("3", "1")); again.Request != r.Request {
		t.Errorf("the branch moved elsewhere: %+v", again)
	}
	f.merge(web, r.Request.Number)
	if r := propose(both("3", "1")); r.Changed || r.Request.Number != 0 || f.files()["docs/people.md"] != "and on" {
		t.Errorf("merged: %+v; the branch: %v", r, f.files())
	}
}

// newRequest opens a request for what is wanted.
func newRequest(t *testing.T) (*fixture, *fakeForge, *publish.Desired, publish.Proposal) {
	t.Helper()
	f, web := newFixture(t), &fakeForge{}
	f.seed(map[string]string{"README.md": "r"})
	want := plan(map[string]string{"drone/hello/reconciler.yaml": "1"})
	first, err := publish.Propose(t.Context(), f.opts, web, want, publish.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return f, web, want, first
}

// TestAMergeThatIsTakenBackIsAskedForAgain, from the same branch's name.
func TestAMergeThatIsTakenBackIsAskedForAgain(t *testing.T) {
	f, web, want, first := newRequest(t)
	f.merge(web, 1)
	f.seed(map[string]string{"README.md": "r"})
	second, err := publish.Propose(t.Context(), f.opts, web, want, first.Request)
	if err != nil || second.Request.Number != 2 || second.Request.Head != first.Request.Head {
		t.Fatalf("%+v, %v", second, err)
	}
	f.merge(web, 2)
	if f.files()["drone/hello/reconciler.yaml"] != "1" {
		t.Error("the second merge brings nothing")
	}
}

// TestAMergeDuringProposingIsSeen: no request is opened for what is in the branch.
func TestAMergeDuringProposingIsSeen(t *testing.T) {
	f, web, want, first := newRequest(t)
	web.all[0].State = forge.Merged // before its branch shows it
	web.asked = func() {
		web.asked = nil
		f.merge(web, 1)
	}
	r, err := publish.Propose(t.Context(), f.opts, web, want, first.Request)
	if err != nil || r.Request.Number != 0 || len(web.all) != 1 || r.Commit == first.Commit {
		t.Errorf("%+v, %v", r, err)
	}
}

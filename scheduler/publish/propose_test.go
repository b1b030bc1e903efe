package publish_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/internal/forge"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/scheduler/publish"
)

// fakeForge keeps pull requests in memory.
type fakeForge struct {
	all    []forge.PullRequest
	broken error
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

func TestPropose(t *testing.T) {
	f, web := newFixture(t), &fakeForge{}
	f.opts.Message = "Schedule dev\n"
	propose := func(want *publish.Desired) publish.Proposal {
		t.Helper()
		r, err := publish.Propose(t.Context(), f.opts, web, want)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
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
	if diff := cmp.Diff(before, f.files()); diff != "" {
		t.Errorf("the branch was changed without being asked (-want +got):\n%s", diff)
	}
	if text := gittest.Git(t, f.bare.Bare, "show", r.PullRequest.Head+":drone/hello/reconciler.yaml"); text != "2" {
		t.Errorf("the pull request's branch holds %q", text)
	}
	want := forge.PullRequest{Number: 1, State: forge.Open, Title: "Schedule dev", Head: r.PullRequest.Head, Base: branch, Labels: []string{publish.LabelPromoted}}
	if diff := cmp.Diff(want, r.PullRequest); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// A newer plan takes its place; others' pull requests stay.
	web.all = append(web.all, forge.PullRequest{Number: 2, State: forge.Open, Head: "somebody's", Base: branch})
	third := plan(map[string]string{"drone/hello/reconciler.yaml": "3"})
	if r := propose(third); !slices.Equal(r.Closed, []int64{1}) || r.PullRequest.Labels != nil {
		t.Errorf("a newer plan: %+v", r)
	}
	if diff := cmp.Diff([]forge.State{forge.Closed, forge.Open, forge.Open}, web.states()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// Back to what the branch has: nothing is left to be asked for.
	if r := propose(first); !slices.Equal(r.Closed, []int64{3}) || r.Changed {
		t.Errorf("a plan taken back: %+v", r)
	}
	if diff := cmp.Diff([]forge.State{forge.Closed, forge.Open, forge.Closed}, web.states()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestProposeAfterACrash pushes the branch and fails before the pull request.
func TestProposeAfterACrash(t *testing.T) {
	f, web := newFixture(t), &fakeForge{}
	f.seed(map[string]string{"README.md": "r"})
	want := plan(map[string]string{"drone/hello/reconciler.yaml": "1"})
	web.broken = forge.ErrLimited
	if _, err := publish.Propose(t.Context(), f.opts, web, want); err == nil {
		t.Fatal("a pull request was opened by a provider that refused")
	}
	web.broken = nil
	r, err := publish.Propose(t.Context(), f.opts, web, want)
	if err != nil || r.PullRequest.Number != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	heads := strings.Fields(gittest.Git(t, f.bare.Bare, "for-each-ref", "--format=%(refname:short)"))
	if diff := cmp.Diff([]string{branch, r.PullRequest.Head}, heads); diff != "" {
		t.Errorf("branches (-want +got):\n%s", diff)
	}
}

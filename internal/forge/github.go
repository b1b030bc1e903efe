package forge

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v74/github"
)

// gitHub is GitHub's side, by its own library.
type gitHub struct {
	api         *github.Client
	owner, name string
}

func newGitHub(web *http.Client, api, owner, name string) (client, error) {
	c := github.NewClient(web)
	if !strings.HasSuffix(api, "/") {
		api += "/"
	}
	base, err := c.BaseURL.Parse(api)
	if err != nil {
		return nil, err
	}
	c.BaseURL = base
	return &gitHub{api: c, owner: owner, name: name}, nil
}

// mostPages bounds a list: 100 pull requests a page.
const mostPages = 20

func (g *gitHub) list(ctx context.Context, base string) ([]PullRequest, error) {
	var all []PullRequest
	opts := &github.PullRequestListOptions{State: "open", Base: base, ListOptions: github.ListOptions{PerPage: 100}}
	for range mostPages {
		page, resp, err := g.api.PullRequests.List(ctx, g.owner, g.name, opts)
		if err != nil {
			return nil, gitHubError(err)
		}
		for _, p := range page {
			all = append(all, g.read(p))
		}
		if opts.Page = resp.NextPage; opts.Page == 0 {
			break
		}
	}
	slices.SortFunc(all, func(a, b PullRequest) int { return int(a.Number - b.Number) })
	return all, nil
}

func (g *gitHub) read(p *github.PullRequest) PullRequest {
	r := PullRequest{
		Number: int64(p.GetNumber()), State: State(p.GetState()), Title: p.GetTitle(), Head: p.GetHead().GetRef(), Base: p.GetBase().GetRef(),
		HeadCommit: p.GetHead().GetSHA(), URL: p.GetHTMLURL(),
	}
	// Before it is merged, merge_commit_sha is a trial of GitHub's.
	if p.GetMerged() || !p.GetMergedAt().IsZero() {
		r.State, r.MergeCommit = Merged, p.GetMergeCommitSHA()
	}
	for _, l := range p.Labels {
		r.Labels = append(r.Labels, l.GetName())
	}
	slices.Sort(r.Labels)
	return r
}

func (g *gitHub) get(ctx context.Context, number int64) (PullRequest, error) {
	p, _, err := g.api.PullRequests.Get(ctx, g.owner, g.name, int(number))
	if err != nil {
		return PullRequest{}, gitHubError(err)
	}
	return g.read(p), nil
}

func (g *gitHub) open(ctx context.Context, p NewPullRequest) (PullRequest, error) {
	made, _, err := g.api.PullRequests.Create(ctx, g.owner, g.name, &github.NewPullRequest{
		Title: &p.Title, Head: &p.Head, Base: &p.Base, Body: &p.Body,
	})
	if err != nil {
		return PullRequest{}, gitHubError(err)
	}
	r := g.read(made)
	if len(p.Labels) == 0 {
		return r, nil
	}
	// GitHub makes the labels that are not there.
	labels, _, err := g.api.Issues.AddLabelsToIssue(ctx, g.owner, g.name, int(r.Number), p.Labels)
	if err != nil {
		return PullRequest{}, gitHubError(err)
	}
	r.Labels = nil
	for _, l := range labels {
		r.Labels = append(r.Labels, l.GetName())
	}
	slices.Sort(r.Labels)
	return r, nil
}

func (g *gitHub) close(ctx context.Context, number int64) error {
	_, _, err := g.api.PullRequests.Edit(ctx, g.owner, g.name, int(number), &github.PullRequest{State: github.Ptr("closed")})
	return gitHubError(err)
}

func (g *gitHub) status(ctx context.Context, commit string, s Status) error {
	status := &github.RepoStatus{State: github.Ptr(string(s.Verdict)), Context: &s.Context, Description: &s.Description}
	if s.URL != "" {
		status.TargetURL = &s.URL
	}
	_, _, err := g.api.Repositories.CreateStatus(ctx, g.owner, g.name, commit, status)
	return gitHubError(err)
}

func gitHubError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*github.RateLimitError](err); ok {
		return explain(http.StatusTooManyRequests, "the hourly limit is used up", err)
	}
	if _, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		return explain(http.StatusTooManyRequests, "the secondary limit is reached", err)
	}
	if e, ok := errors.AsType[*github.ErrorResponse](err); ok && e.Response != nil {
		said := e.Message
		for _, more := range e.Errors {
			if more.Message != "" {
				said += "; " + more.Message
			}
		}
		return explain(e.Response.StatusCode, said, err)
	}
	return err
}

package forge

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"code.gitea.io/sdk/gitea"
)

// giteaForge is Gitea's side, by its own library. That keeps one context for
// all requests, so they are made one at a time.
type giteaForge struct {
	owner, name string

	mu  sync.Mutex
	api *gitea.Client
}

func newGitea(web *http.Client, api, owner, name string) (client, error) {
	// Without a version the library would ask the server for one first.
	c, err := gitea.NewClient(strings.TrimSuffix(api, "/"), gitea.SetHTTPClient(web), gitea.SetGiteaVersion(""))
	if err != nil {
		return nil, err
	}
	return &giteaForge{api: c, owner: owner, name: name}, nil
}

// with begins requests of a context.
func (g *giteaForge) with(ctx context.Context) (api *gitea.Client, done func()) {
	g.mu.Lock()
	g.api.SetContext(ctx)
	return g.api, g.mu.Unlock
}

func (g *giteaForge) list(ctx context.Context, base string) ([]PullRequest, error) {
	api, done := g.with(ctx)
	defer done()
	var all []PullRequest
	opts := gitea.ListPullRequestsOptions{State: gitea.StateOpen, ListOptions: gitea.ListOptions{Page: 1, PageSize: 50}}
	for range 2 * mostPages {
		page, resp, err := api.ListRepoPullRequests(g.owner, g.name, opts)
		if err != nil {
			return nil, giteaError(resp, err)
		}
		for _, p := range page {
			if p.Base != nil && p.Base.Ref == base {
				all = append(all, readGitea(p))
			}
		}
		if len(page) < opts.PageSize {
			break
		}
		opts.Page++
	}
	slices.SortFunc(all, func(a, b PullRequest) int { return int(a.Number - b.Number) })
	return all, nil
}

func readGitea(p *gitea.PullRequest) PullRequest {
	r := PullRequest{Number: p.Index, State: State(p.State), Title: p.Title, URL: p.HTMLURL}
	if p.Head != nil {
		r.Head, r.HeadCommit = p.Head.Ref, p.Head.Sha
	}
	if p.Base != nil {
		r.Base = p.Base.Ref
	}
	if p.HasMerged {
		r.State = Merged
		if p.MergedCommitID != nil {
			r.MergeCommit = *p.MergedCommitID
		}
	}
	for _, l := range p.Labels {
		r.Labels = append(r.Labels, l.Name)
	}
	slices.Sort(r.Labels)
	return r
}

func (g *giteaForge) get(ctx context.Context, number int64) (PullRequest, error) {
	api, done := g.with(ctx)
	defer done()
	p, resp, err := api.GetPullRequest(g.owner, g.name, number)
	if err != nil {
		return PullRequest{}, giteaError(resp, err)
	}
	return readGitea(p), nil
}

func (g *giteaForge) open(ctx context.Context, p NewPullRequest) (PullRequest, error) {
	api, done := g.with(ctx)
	defer done()
	labels, err := g.labels(api, p.Labels)
	if err != nil {
		return PullRequest{}, err
	}
	made, resp, err := api.CreatePullRequest(g.owner, g.name, gitea.CreatePullRequestOption{
		Head: p.Head, Base: p.Base, Title: p.Title, Body: p.Body, Labels: labels,
	})
	if err != nil {
		return PullRequest{}, giteaError(resp, err)
	}
	return readGitea(made), nil
}

// labelColour is that of labels that are made.
const labelColour = "#0e8a16"

// labels returns the ids of labels, which are made where they are missing.
func (g *giteaForge) labels(api *gitea.Client, names []string) ([]int64, error) {
	if len(names) == 0 {
		return nil, nil
	}
	known := map[string]int64{}
	opts := gitea.ListLabelsOptions{ListOptions: gitea.ListOptions{Page: 1, PageSize: 50}}
	for range mostPages {
		page, resp, err := api.ListRepoLabels(g.owner, g.name, opts)
		if err != nil {
			return nil, giteaError(resp, err)
		}
		for _, l := range page {
			known[l.Name] = l.ID
		}
		if len(page) < opts.PageSize {
			break
		}
		opts.Page++
	}
	ids := make([]int64, len(names))
	for i, name := range names {
		if id, ok := known[name]; ok {
			ids[i] = id
			continue
		}
		made, resp, err := api.CreateLabel(g.owner, g.name, gitea.CreateLabelOption{Name: name, Color: labelColour})
		if err != nil {
			return nil, giteaError(resp, err)
		}
		ids[i] = made.ID
	}
	return ids, nil
}

func (g *giteaForge) close(ctx context.Context, number int64) error {
	api, done := g.with(ctx)
	defer done()
	closed := gitea.StateClosed
	_, resp, err := api.EditPullRequest(g.owner, g.name, number, gitea.EditPullRequestOption{State: &closed})
	return giteaError(resp, err)
}

func (g *giteaForge) status(ctx context.Context, commit string, s Status) error {
	api, done := g.with(ctx)
	defer done()
	_, resp, err := api.CreateStatus(g.owner, g.name, commit, gitea.CreateStatusOption{
		State: gitea.StatusState(s.Verdict), Context: s.Context, Description: s.Description, TargetURL: s.URL,
	})
	return giteaError(resp, err)
}

func giteaError(resp *gitea.Response, err error) error {
	if err == nil {
		return nil
	}
	if resp == nil || resp.Response == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return explain(resp.StatusCode, err.Error(), err)
}

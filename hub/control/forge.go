package control

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/landfall-hub/landfall/internal/forge"
	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/scheduler/publish"
	"github.com/landfall-hub/landfall/schema"
)

// Forge says how the Git provider of a repository is spoken to: it belongs to
// that repository, as its credentials do. Its presence alone lets Landfall open
// pull requests there, and set commit statuses.
type Forge struct {
	// Provider is "github" or "gitea" (Forgejo is gitea); it may be left out for
	// github.com.
	Provider string
	// API is its address where the repository's does not say.
	API string
	// TokenFile and CAFile are those of the repository where they are empty.
	TokenFile, CAFile string
}

// provider is what is asked of a Git provider.
type provider interface {
	publish.Forge
	SetStatus(ctx context.Context, commit string, s forge.Status) error
}

// opener makes the client of a repository's provider, and asks nobody anything.
type opener func(f *Forge, url string, auth gitrepo.Auth) (provider, error)

// open is the opener that speaks to the real ones. Its error begins with the name of what is wrong below the forge's settings.
func (f *Forge) open(url string, auth gitrepo.Auth) (provider, error) {
	name, err := schema.CanonicalRepo(url)
	if err != nil {
		return nil, err
	}
	o := forge.Options{
		Provider: forge.Provider(f.Provider), Repo: url, API: f.API,
		TokenFile: cmp.Or(f.TokenFile, auth.TokenFile), CAFile: cmp.Or(f.CAFile, auth.CAFile),
	}
	switch o.Provider {
	case forge.GitHub, forge.Gitea:
	case "":
		if !strings.HasPrefix(name, "github.com/") {
			return nil, fmt.Errorf(".provider: the address %s does not say what it is; write %s or %s (which Forgejo is, too)", name, forge.GitHub, forge.Gitea)
		}
		o.Provider = forge.GitHub
	default:
		return nil, fmt.Errorf(".provider: it is %s or %s (which Forgejo is, too), not %q", forge.GitHub, forge.Gitea, f.Provider)
	}
	if o.TokenFile == "" {
		return nil, fmt.Errorf(".token_file: the API of %s needs a token; name its file here, or as auth.token_file of the repository", name)
	}
	opened, err := forge.New(o)
	if err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	return opened, nil
}

// checkForges looks at how providers are spoken to, and at whether one may be
// for those who publish by pull requests.
func checkForges(planes []ControlPlane, known []Repository, open opener) error {
	named := false
	for i := range known {
		if known[i].Forge == nil {
			continue
		}
		named = true
		if _, err := open(known[i].Forge, known[i].URL, known[i].Auth); err != nil {
			return fmt.Errorf("repositories[%d].forge%w", i, err)
		}
	}
	for i := range planes {
		if planes[i].Forge == nil {
			continue
		}
		named = true
		if _, err := open(planes[i].Forge, planes[i].URL, planes[i].Auth); err != nil {
			return fmt.Errorf("control_planes[%d].forge%w", i, err)
		}
	}
	for i := range planes {
		if planes[i].Publish == publishPull && !named {
			return fmt.Errorf("control_planes[%d].publish: %s needs to know the Git provider of the GitOps repository: name that repository under repositories, "+
				"with forge: {provider: github or gitea}", i, publishPull)
		}
	}
	return nil
}

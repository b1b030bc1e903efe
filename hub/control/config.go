package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/schema"
)

// ControlPlane is one to follow.
type ControlPlane struct {
	// URL is where it is fetched from; Aliases are other addresses of it.
	URL     string
	Aliases []string
	// Main is the branch of the promoted content. Default "main".
	Main string
	// Environments are the branches of the environments, by name.
	Environments map[string]string
	ConfigRepos  []ConfigRepo
	// Publish is how plans are published: "push", the default, or "pull_request",
	// for which the GitOps repository has a Forge.
	Publish string
	// Interval is the time between two fetches of each repository. Default 30
	// seconds.
	Interval time.Duration
	Auth     gitrepo.Auth
	// Forge is the Git provider, which is told how it stands with each environment
	// as a status of its branch's newest commit; nil for nobody.
	Forge *Forge
}

// ConfigRepo is a further repository whose documents join environments.
type ConfigRepo struct {
	URL string
	// Environments are its branches, by the name of the environment.
	Environments map[string]string
	Auth         gitrepo.Auth
}

// Repository is one that is known beside: whoever names it by one of its names
// means URL, and gets Auth.
type Repository struct {
	URL     string
	Aliases []string
	Auth    gitrepo.Auth
	// Forge is the Git provider; nil where it is not spoken to.
	Forge *Forge
}

// Bounds of an interval.
const (
	defaultInterval = 30 * time.Second
	minInterval     = time.Second
	maxInterval     = 24 * time.Hour
)

const (
	defaultMain = "main"
	publishPush = "push"
	publishPull = "pull_request"
)

// Check says what is wrong with control planes, naming the first that is,
// without asking anybody. Known are the further repositories of the settings.
func Check(planes []ControlPlane, known []Repository) error {
	return check(planes, known, (*Forge).open)
}

func check(planes []ControlPlane, known []Repository, open opener) error {
	taken, environments := map[string]bool{}, map[string]int{}
	for i := range planes {
		if err := planes[i].check(taken, environments, i); err != nil {
			return fmt.Errorf("control_planes[%d].%w", i, err)
		}
	}
	return checkForges(planes, known, open)
}

// check begins its error with the setting's name.
func (p *ControlPlane) check(taken map[string]bool, environments map[string]int, index int) error {
	names, err := checkAddress(p.URL, p.Aliases, p.Auth)
	if err != nil {
		return err
	}
	for _, name := range names {
		if taken[name] {
			return fmt.Errorf("url: %s is named twice", name)
		}
		taken[name] = true
	}
	switch p.Publish {
	case "", publishPush, publishPull:
	default:
		return fmt.Errorf("publish: it is %s or %s, not %q", publishPush, publishPull, p.Publish)
	}
	if p.Interval != 0 && (p.Interval < minInterval || p.Interval > maxInterval) {
		return fmt.Errorf("interval: it is from %s to %s, not %s", minInterval, maxInterval, p.Interval)
	}
	if err := checkBranch(p.main()); err != nil {
		return fmt.Errorf("main: %w", err)
	}
	if len(p.Environments) == 0 {
		return errors.New("environments: name at least one, with its branch, such as {dev: dev}")
	}
	branches := map[string]string{p.main(): "main"}
	for _, name := range sortedKeys(p.Environments) {
		branch := p.Environments[name]
		if err := checkEnvironment(name, branch); err != nil {
			return err
		}
		if other, twice := environments[name]; twice {
			return fmt.Errorf("environments: %s is an environment of control_planes[%d], too; an environment belongs to one control plane", name, other)
		}
		environments[name] = index
		if other, twice := branches[branch]; twice {
			return fmt.Errorf("environments.%s: the branch %s is that of %s, too", name, branch, other)
		}
		branches[branch] = name
	}
	return p.checkConfigRepos()
}

func (p *ControlPlane) checkConfigRepos() error {
	seen := map[string]bool{}
	for i, c := range p.ConfigRepos {
		names, err := checkAddress(c.URL, nil, c.Auth)
		if err != nil {
			return fmt.Errorf("config_repos[%d].%w", i, err)
		}
		if seen[names[0]] {
			return fmt.Errorf("config_repos[%d].url: %s is named twice", i, names[0])
		}
		seen[names[0]] = true
		if len(c.Environments) == 0 {
			return fmt.Errorf("config_repos[%d].environments: name at least one, with its branch", i)
		}
		for _, name := range sortedKeys(c.Environments) {
			if _, ok := p.Environments[name]; !ok {
				return fmt.Errorf("config_repos[%d].environments: the control plane has no environment %s", i, name)
			}
			if err := checkEnvironment(name, c.Environments[name]); err != nil {
				return fmt.Errorf("config_repos[%d].%w", i, err)
			}
		}
	}
	return nil
}

func (p *ControlPlane) main() string {
	if p.Main == "" {
		return defaultMain
	}
	return p.Main
}

func (p *ControlPlane) interval() time.Duration {
	if p.Interval == 0 {
		return defaultInterval
	}
	return p.Interval
}

// checkAddress returns the canonical names of a repository, its own first.
func checkAddress(url string, aliases []string, auth gitrepo.Auth) ([]string, error) {
	own, err := schema.CanonicalRepo(url)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	if _, err := gitrepo.Open(gitrepo.Options{URL: url, Dir: "unused", Auth: auth}); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	names := []string{own}
	for _, alias := range aliases {
		name, err := schema.CanonicalRepo(alias)
		if err != nil {
			return nil, fmt.Errorf("aliases: %w", err)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// checkEnvironment looks at an environment's name, which stands in paths of the
// API, and at its branch.
func checkEnvironment(name, branch string) error {
	if name == "" || strings.ContainsAny(name, "/ \t\n") {
		return fmt.Errorf("environments: %q is no name of an environment: it has letters, digits, - and no spaces", name)
	}
	if err := checkBranch(branch); err != nil {
		return fmt.Errorf("environments.%s: %w", name, err)
	}
	return nil
}

// checkBranch refuses what is no branch in canonical form: what is read and what
// is asked for must be the same text.
func checkBranch(branch string) error {
	ref, err := schema.CanonicalRef(branch)
	if err != nil {
		return err
	}
	if ref == "" || ref != branch || schema.PinnedRef(ref) {
		return fmt.Errorf("%q is no branch's name", branch)
	}
	return nil
}

// place is a repository and how it is reached.
type place struct {
	// name is its own, canonical; names are all of them.
	name  string
	names []string
	url   string
	auth  gitrepo.Auth
	// provider is spoken to about pull requests and statuses; nil where the operator
	// named none.
	provider provider
}

// addresses know the repositories that the operator named, by every name.
// Credentials belong to a repository, and to no other on its host.
type addresses map[string]place

func newAddresses(planes []ControlPlane, known []Repository, open opener) (addresses, error) {
	all := addresses{}
	add := func(url string, aliases []string, auth gitrepo.Auth, f *Forge) error {
		names, err := checkAddress(url, aliases, auth)
		if err != nil {
			return err
		}
		p := place{name: names[0], names: names, url: url, auth: auth}
		if f != nil {
			if p.provider, err = open(f, url, auth); err != nil {
				return fmt.Errorf("%s: forge%w", names[0], err)
			}
		}
		for _, name := range names {
			was, there := all[name]
			if !there {
				all[name] = p
			} else if was.provider == nil {
				was.provider = p.provider
				all[name] = was
			}
		}
		return nil
	}
	// Those of the control planes come first: they may have the right to write.
	for _, p := range planes {
		if err := add(p.URL, p.Aliases, p.Auth, p.Forge); err != nil {
			return nil, err
		}
	}
	for _, r := range known {
		if err := add(r.URL, r.Aliases, r.Auth, r.Forge); err != nil {
			return nil, err
		}
	}
	for _, p := range planes {
		for _, c := range p.ConfigRepos {
			if err := add(c.URL, nil, c.Auth, nil); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// errLocal refuses folders of this machine that only a document names.
var errLocal = errors.New("it is a folder of the hub's machine, which is read only where hub.yaml names it (repositories)")

// find returns the repository that a document names. User info in the address is
// dropped. Local says that folders of this machine may be named.
func (a addresses) find(address string, local bool) (place, error) {
	name, err := schema.CanonicalRepo(address)
	if err != nil {
		return place{}, err
	}
	if p, ok := a[name]; ok {
		return p, nil
	}
	if isLocal(name) && !local {
		return place{}, fmt.Errorf("%s: %w", name, errLocal)
	}
	return place{name: name, names: []string{name}, url: schema.StripUserInfo(address)}, nil
}

func isLocal(name string) bool { return strings.HasPrefix(name, "file://") }

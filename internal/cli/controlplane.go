package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/source"
	"github.com/landfall-hub/landfall/schema"
)

// planInputs are the flags that say where a control plane is.
type planInputs struct {
	base, controlPlane, environment string
	sources                         []string
	auth                            gitrepo.Auth
}

const placeHelp = "a folder, or URL@REF of a Git repository"

func (p *planInputs) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&p.base, "base", "", "the promoted content (branch main): `DIR|URL@REF`, "+placeHelp)
	flags.StringVar(&p.controlPlane, "control-plane", "", "the environment's part of the control plane: `DIR|URL@REF`")
	flags.StringVar(&p.environment, "environment", "", "the environment's `NAME`")
	flags.StringArrayVar(&p.sources, "source", nil, "read the repository of a registration from a folder: `URL=DIR`; may be repeated")
	flags.StringVar(&p.auth.TokenFile, "git-token-file", "", "a `FILE` with the token for http(s) repositories on the hosts of --base, --control-plane and --out")
	flags.StringVar(&p.auth.Username, "git-username", "", "the `NAME` that goes with the token")
	flags.StringVar(&p.auth.CAFile, "git-ca-file", "", "a `FILE` with certificates to trust for https repositories")
	flags.StringVar(&p.auth.SSHKeyFile, "git-ssh-key-file", "", "a `FILE` with the private key for ssh repositories")
	flags.StringVar(&p.auth.KnownHostsFile, "git-known-hosts-file", "", "a `FILE` with the host keys of ssh repositories")
}

// check says what is missing.
func (p *planInputs) check(environmentToo bool) error {
	if p.base == "" {
		return usagef("say where the promoted content is with --base (%s)", placeHelp)
	}
	if environmentToo && (p.controlPlane == "" || p.environment == "") {
		return usagef("say which environment with --environment NAME, and where its part of the control plane is with --control-plane (%s)", placeHelp)
	}
	return nil
}

// place is where a tree is read from, or written to: a folder, or a ref of a
// repository.
type place struct {
	dir      string
	url, ref string
}

// parsePlace reads DIR or URL@REF. What is a folder that exists is one.
func parsePlace(text string) (place, error) {
	if info, err := os.Stat(text); err == nil && info.IsDir() {
		return place{dir: text}, nil
	}
	n := strings.LastIndex(text, "@")
	if n > 0 && isAddress(text[:n]) && !strings.Contains(text[n:], ":") {
		if n == len(text)-1 {
			return place{}, fmt.Errorf("%q names no ref after the @", schema.StripUserInfo(text))
		}
		return place{url: text[:n], ref: text[n+1:]}, nil
	}
	if strings.Contains(text, "://") || n > 0 && strings.Contains(text[n:], ":") {
		return place{}, fmt.Errorf("%q names no ref: write URL@REF", schema.StripUserInfo(text))
	}
	return place{dir: text}, nil
}

// isAddress reports whether a text has a path of a repository, and not only the
// user before a host.
func isAddress(text string) bool {
	if _, rest, ok := strings.Cut(text, "://"); ok {
		return strings.Contains(rest, "/")
	}
	return strings.ContainsAny(text, "/:")
}

func (p place) isRepository() bool { return p.url != "" }

// trees opens repositories, each once, in a folder of its own that goes with
// close.
type trees struct {
	auth gitrepo.Auth
	// own are the hosts that the user named: only they are shown credentials.
	own   map[string]bool
	dir   string
	repos map[string]*gitrepo.Repo
}

func newTrees(auth gitrepo.Auth, places ...string) (*trees, error) {
	dir, err := os.MkdirTemp("", "landfall-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for repositories: %w", err)
	}
	t := &trees{auth: auth, own: map[string]bool{}, dir: dir, repos: map[string]*gitrepo.Repo{}}
	for _, text := range places {
		if p, err := parsePlace(text); err == nil && p.isRepository() {
			t.own[hostOf(p.url)] = true
		}
	}
	return t, nil
}

func (t *trees) close() error { return os.RemoveAll(t.dir) }

// withTrees runs a command with trees that are closed after it.
func withTrees(auth gitrepo.Auth, places []string, run func(*trees) error) error {
	t, err := newTrees(auth, places...)
	if err != nil {
		return err
	}
	err = run(t)
	if closed := t.close(); err == nil {
		err = closed
	}
	return err
}

// hostOf returns the canonical host of a repository, "" of one that has none.
func hostOf(url string) string {
	repo, err := schema.CanonicalRepo(url)
	if err != nil || strings.HasPrefix(repo, "file://") {
		return ""
	}
	host, _, _ := strings.Cut(repo, "/")
	return host
}

// repo opens a repository.
func (t *trees) repo(url string) (*gitrepo.Repo, error) {
	if r, ok := t.repos[url]; ok {
		return r, nil
	}
	sum := sha256.Sum256([]byte(url))
	o := gitrepo.Options{URL: url, Dir: filepath.Join(t.dir, hex.EncodeToString(sum[:8])), Depth: 1}
	web := strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
	ssh := !web && !strings.HasPrefix(url, "file://") && !filepath.IsAbs(url)
	if host := hostOf(url); t.own[host] {
		switch {
		case web:
			o.Auth = gitrepo.Auth{TokenFile: t.auth.TokenFile, Username: t.auth.Username}
		case ssh:
			o.Auth = gitrepo.Auth{SSHKeyFile: t.auth.SSHKeyFile, KnownHostsFile: t.auth.KnownHostsFile, Username: t.auth.Username}
		}
	}
	if strings.HasPrefix(url, "https://") {
		o.Auth.CAFile = t.auth.CAFile
	}
	r, err := gitrepo.Open(o)
	if err != nil {
		return nil, err
	}
	t.repos[url] = r
	return r, nil
}

// read reads a tree.
func (t *trees) read(ctx context.Context, text string) (source.Tree, error) {
	p, err := parsePlace(text)
	if err != nil {
		return source.Tree{}, err
	}
	if !p.isRepository() {
		return source.Folder(p.dir)
	}
	r, err := t.repo(p.url)
	if err != nil {
		return source.Tree{}, err
	}
	return source.Repository(ctx, r, p.ref, "")
}

// workloads returns how the sources of registrations are read: from the folders
// that were mapped, else from their repositories.
func (t *trees) workloads(mapped []string) (func(context.Context, controlplane.Registration) (source.Tree, error), error) {
	folders := map[string]string{}
	for _, m := range mapped {
		// A folder's name may have an equals sign, and so may a URL: the folder is
		// what exists.
		url, dir, ok := strings.Cut(m, "=")
		for ok {
			if info, err := os.Stat(dir); err == nil && info.IsDir() {
				break
			}
			more, rest, found := strings.Cut(dir, "=")
			if !found {
				return nil, usagef("--source %s: there is no such folder", schema.StripUserInfo(m))
			}
			url, dir = url+"="+more, rest
		}
		if !ok {
			return nil, usagef("--source is URL=DIR, not %q", schema.StripUserInfo(m))
		}
		repo, err := schema.CanonicalRepo(url)
		if err != nil {
			return nil, usagef("--source %s: %w", schema.StripUserInfo(m), err)
		}
		folders[repo] = dir
	}
	return func(ctx context.Context, r controlplane.Registration) (source.Tree, error) {
		repo, err := schema.CanonicalRepo(r.Workload.Repo)
		if err != nil {
			return source.Tree{}, err
		}
		if dir, ok := folders[repo]; ok {
			return source.Folder(filepath.Join(dir, filepath.FromSlash(r.Workload.Path)))
		}
		from, err := t.repo(r.Workload.Repo)
		if err != nil {
			return source.Tree{}, err
		}
		return source.Repository(ctx, from, r.Workload.Branch, r.Workload.Path)
	}, nil
}

// load reads a whole control plane; base is its promoted content.
func (t *trees) load(ctx context.Context, p *planInputs) (model controlplane.Model, base source.Tree, err error) {
	workloads, err := t.workloads(p.sources)
	if err != nil {
		return model, base, err
	}
	in := source.Inputs{Environment: p.environment, Workloads: workloads}
	if in.Base, err = t.read(ctx, p.base); err != nil {
		return model, base, inputError("--base", err)
	}
	if p.controlPlane != "" {
		if in.ControlPlane, err = t.read(ctx, p.controlPlane); err != nil {
			return model, base, inputError("--control-plane", err)
		}
	}
	model, err = source.Load(ctx, in)
	return model, in.Base, err
}

// inputError says which flag names something that cannot be read.
func inputError(flag string, err error) error {
	return &exitError{code: exitUsage, err: fmt.Errorf("%s: %w", flag, err)}
}

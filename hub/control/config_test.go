package control

import (
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

func TestCheck(t *testing.T) {
	good := func() ControlPlane {
		return ControlPlane{
			URL: "https://git.example/org/control-plane", Environments: map[string]string{"dev": "dev", "stage": "stage"},
			ConfigRepos: []ConfigRepo{{URL: "https://git.example/org/configs", Environments: map[string]string{"stage": "stage"}}},
		}
	}
	cases := map[string]struct {
		reason string
		change func(p *ControlPlane)
		want   string
	}{
		"good":           {"all is well", func(*ControlPlane) {}, ""},
		"push":           {"push is the default, spelled out", func(p *ControlPlane) { p.Publish = "push" }, ""},
		"publish":        {"a word that nobody knows", func(p *ControlPlane) { p.Publish = "mail" }, `publish: it is push or pull_request, not "mail"`},
		"url":            {"no address", func(p *ControlPlane) { p.URL = "control-plane" }, "control_planes[0].url: "},
		"auth":           {"a key for http", func(p *ControlPlane) { p.Auth.SSHKeyFile = "key" }, "url: https://git.example/org/control-plane: a private key"},
		"alias":          {"no address either", func(p *ControlPlane) { p.Aliases = []string{"x"} }, "aliases: "},
		"interval":       {"too short", func(p *ControlPlane) { p.Interval = 1 }, "interval: it is from 1s to 24h0m0s"},
		"none":           {"nothing to do", func(p *ControlPlane) { p.Environments = nil }, "environments: name at least one"},
		"name":           {"a name with a slash", func(p *ControlPlane) { p.Environments["a/b"] = "x" }, `"a/b" is no name of an environment`},
		"branch":         {"a tag is no branch", func(p *ControlPlane) { p.Environments["dev"] = "refs/tags/x" }, "environments.dev: "},
		"full branch":    {"one spelling for a branch", func(p *ControlPlane) { p.Environments["dev"] = "refs/heads/dev" }, "environments.dev: "},
		"one branch":     {"two environments of one branch", func(p *ControlPlane) { p.Environments["dev"] = "stage" }, "the branch stage is that of dev, too"},
		"main":           {"an environment on main", func(p *ControlPlane) { p.Environments["dev"] = "main" }, "the branch main is that of main, too"},
		"foreign":        {"a config repository's environment", func(p *ControlPlane) { p.ConfigRepos[0].Environments = map[string]string{"prod": "x"} }, "config_repos[0].environments: the control plane has no environment prod"},
		"config nowhere": {"a config repository for nothing", func(p *ControlPlane) { p.ConfigRepos[0].Environments = nil }, "config_repos[0].environments: name at least one"},
		"config url":     {"a config repository without an address", func(p *ControlPlane) { p.ConfigRepos[0].URL = "" }, "config_repos[0].url: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := good()
			c.change(&p)
			err := Check([]ControlPlane{p}, nil)
			if got := text(err); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q", c.reason, got, c.want)
			}
		})
	}
	other := good()
	if err := Check([]ControlPlane{good(), other}, nil); !strings.Contains(text(err), "control_planes[1].url: git.example/org/control-plane is named twice") {
		t.Errorf("one control plane twice: %v", err)
	}
	other.URL = "https://git.example/org/other"
	if err := Check([]ControlPlane{good(), other}, nil); !strings.Contains(text(err), "dev is an environment of control_planes[0], too") {
		t.Errorf("one environment in two control planes: %v", err)
	}
}

func TestCheckForges(t *testing.T) {
	token, gone := newFile(t, "token", "s3cret"), "/nowhere/ca.pem"
	withToken := gitrepo.Auth{TokenFile: token}
	pull := ControlPlane{URL: "https://git.example/org/control-plane", Environments: map[string]string{"dev": "dev"}, Publish: "pull_request"}
	repo := func(url string, auth gitrepo.Auth, f *Forge) []Repository {
		return []Repository{{URL: "https://git.example/org/other"}, {URL: url, Auth: auth, Forge: f}}
	}
	const platform = "https://git.example/org/platform"
	cases := map[string]struct {
		reason string
		plane  func(p *ControlPlane)
		known  []Repository
		want   string
	}{
		"gitea":       {"with the token that it is fetched with", nil, repo(platform, withToken, &Forge{Provider: "gitea"}), ""},
		"own token":   {"a token for the API", nil, repo(platform, gitrepo.Auth{SSHKeyFile: ""}, &Forge{Provider: "gitea", TokenFile: token}), ""},
		"github.com":  {"its host says what it is", nil, repo("git@github.com:org/platform.git", gitrepo.Auth{}, &Forge{TokenFile: token}), ""},
		"itself":      {"a GitOps branch in the control plane's own repository", func(p *ControlPlane) { p.Auth, p.Forge = withToken, &Forge{Provider: "github"} }, nil, ""},
		"none":        {"nobody says how pull requests are opened", nil, repo(platform, withToken, nil), "control_planes[0].publish: pull_request needs to know the Git provider of the GitOps repository: name that repository under repositories, with forge:"},
		"push":        {"nobody needs to", func(p *ControlPlane) { p.Publish = "push" }, nil, ""},
		"unknown":     {"the host does not say", nil, repo(platform, withToken, &Forge{}), "repositories[1].forge.provider: the address git.example/org/platform does not say what it is; write github or gitea"},
		"misspelt":    {"a provider that is not supported", nil, repo(platform, withToken, &Forge{Provider: "gitlab"}), `repositories[1].forge.provider: it is github or gitea (which Forgejo is, too), not "gitlab"`},
		"no token":    {"nothing to be known by", nil, repo(platform, gitrepo.Auth{}, &Forge{Provider: "gitea"}), "repositories[1].forge.token_file: the API of git.example/org/platform needs a token; name its file here, or as auth.token_file"},
		"api":         {"no address", nil, repo(platform, withToken, &Forge{Provider: "gitea", API: "nowhere"}), "repositories[1].forge: git.example/org/platform: the address of its API is no http(s) URL"},
		"folder":      {"a folder has no provider", nil, repo("/srv/git/platform", gitrepo.Auth{}, &Forge{Provider: "gitea", TokenFile: token}), "repositories[1].forge: /srv/git/platform is no repository of a Git provider"},
		"certificate": {"a file that is not there", nil, repo(platform, withToken, &Forge{Provider: "gitea", CAFile: gone}), "repositories[1].forge: git.example/org/platform: reading certificates: open " + gone},
		"plane":       {"for statuses", func(p *ControlPlane) { p.Publish, p.Forge = "push", &Forge{Provider: "gitea"} }, nil, "control_planes[0].forge.token_file: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := pull
			if c.plane != nil {
				c.plane(&p)
			}
			if got := text(Check([]ControlPlane{p}, c.known)); c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, "s3cret") {
				t.Errorf("%s: %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

// TestTheProviderOfARepositoryThatIsNamedTwice is known whichever entry has it.
func TestTheProviderOfARepositoryThatIsNamedTwice(t *testing.T) {
	token := newFile(t, "token", "s3cret")
	known, err := newAddresses(
		[]ControlPlane{{URL: "https://git.example/org/one"}},
		[]Repository{{URL: "https://git.example/org/one", Auth: gitrepo.Auth{TokenFile: token}, Forge: &Forge{Provider: "gitea"}}, {URL: "https://git.example/org/two"}},
		(*Forge).open,
	)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{"ssh://git@git.example/org/one.git": true, "https://git.example/org/two": false, "https://git.example/org/one/below": false} {
		if p, err := known.find(address, false); err != nil || (p.provider != nil) != want {
			t.Errorf("%s has a provider: %v, %v", address, p.provider != nil, err)
		}
	}
}

// TestCredentialsGoToNobodyElse: what a document names gets the credentials of
// exactly the repository that the operator named, whatever it calls itself.
func TestCredentialsGoToNobodyElse(t *testing.T) {
	token := gitrepo.Auth{TokenFile: "/secret"}
	known, err := newAddresses(
		[]ControlPlane{{URL: "https://git.example/org/control-plane", Aliases: []string{"ssh://git@mirror.example/org/control-plane"}, Auth: token}},
		[]Repository{{URL: "https://git.example/org/app", Auth: token}, {URL: "/srv/git/known"}},
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	for address, c := range map[string]struct {
		reason, url string
		auth        bool
		bad         string
	}{
		"https://git.example/org/app.git":          {"it is named", "https://git.example/org/app", true, ""},
		"https://GIT.example/org/app/":             {"in another spelling", "https://git.example/org/app", true, ""},
		"http://git.example/org/app":               {"without encryption: it is fetched as the operator wrote it", "https://git.example/org/app", true, ""},
		"git@mirror.example:org/control-plane.git": {"by an alias", "https://git.example/org/control-plane", true, ""},
		"https://git.example/org/app-src":          {"a longer name", "https://git.example/org/app-src", false, ""},
		"https://git.example/org/app/below":        {"a folder below", "https://git.example/org/app/below", false, ""},
		"https://git.example/org":                  {"a folder above", "https://git.example/org", false, ""},
		"https://git.example:8443/org/app":         {"another port", "https://git.example:8443/org/app", false, ""},
		"https://git.example.evil.example/org/app": {"a host that begins so", "https://git.example.evil.example/org/app", false, ""},
		"https://git.example@evil.example/org/app": {"a user that looks like the host", "https://evil.example/org/app", false, ""},
		"https://me:secret@git.example/org/x":      {"credentials in a document are not used", "https://git.example/org/x", false, ""},
		"https://git.example/org/../org/app":       {"dots", "", false, "its path holds"},
		"/srv/git/known":                           {"a folder that is named", "/srv/git/known", false, ""},
		"file:///srv/git/known/../../../etc":       {"a folder that climbs", "", false, "its path holds"},
		"/etc":                                     {"a folder of this machine", "", false, "folder of the hub's machine"},
		"nonsense":                                 {"no address", "", false, "neither a URL"},
	} {
		p, err := known.find(address, false)
		if c.bad != "" {
			if !strings.Contains(text(err), c.bad) {
				t.Errorf("%s (%s): %+v, %v", address, c.reason, p, err)
			}
			continue
		}
		if err != nil || p.url != c.url || (p.auth != gitrepo.Auth{}) != c.auth {
			t.Errorf("%s (%s): %q, credentials %v, %v; want %q, %v", address, c.reason, p.url, p.auth != gitrepo.Auth{}, err, c.url, c.auth)
		}
	}
	if _, err := known.find("/etc", true); err != nil {
		t.Errorf("a control plane in a folder may name folders: %v", err)
	}
}

func TestTheTokenIsSentToItsRepositoriesOnly(t *testing.T) {
	s := newStage(t)
	file := newFile(t, "token", "s3cret")
	s.start(func(o *Options) {
		o.ControlPlanes[0].Auth.TokenFile = file
		o.Known = []Repository{{URL: s.url("platform-gitops"), Auth: gitrepo.Auth{TokenFile: file}}}
	})
	s.settle()
	for name, want := range map[string]string{"control-plane": "git:s3cret", "platform-gitops": "git:s3cret", "app-src": ":"} {
		if got := s.asked[name]; got != want {
			t.Errorf("%s was asked as %q, want %q", name, got, want)
		}
	}
	if s.head("dev") == "" {
		t.Error("nothing was published")
	}
}

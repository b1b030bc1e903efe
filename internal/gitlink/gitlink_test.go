package gitlink

import (
	"net/url"
	"strings"
	"testing"
)

const (
	one = "5ce0d1a2b3c4d5e6f708192a3b4c5d6e7f809100"
	two = "9e04d1b2c3a4f5e60718293a4b5c6d7e8f90a1b2"
)

func configured(t testing.TB) Links {
	t.Helper()
	l, err := New(map[string]Provider{"Git.Example.com": GitLab, "forge": Gitea, "code.example.com": Forgejo, "gitlab.odd.example": GitHub})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestCommit(t *testing.T) {
	cases := map[string]struct {
		reason, repo, commit, want string
	}{
		"GitHub":         {"The plain address.", "https://github.com/org/app", one, "https://github.com/org/app/commit/" + one},
		"GitSuffix":      {"As it is cloned.", "https://github.com/org/app.git", one, "https://github.com/org/app/commit/" + one},
		"Slash":          {"With a slash.", "https://github.com/org/app/", one, "https://github.com/org/app/commit/" + one},
		"SCP":            {"As Git's own notation has it.", "git@github.com:org/app.git", one, "https://github.com/org/app/commit/" + one},
		"SSH":            {"As a URL of SSH.", "ssh://git@github.com/org/app.git", one, "https://github.com/org/app/commit/" + one},
		"SSHPort":        {"SSH's port is no web server's.", "ssh://git@gitlab.example.com:2222/org/app.git", one, "https://gitlab.example.com/org/app/-/commit/" + one},
		"SSHOver443":     {"SSH behind a firewall.", "ssh://git@ssh.github.com:443/org/app.git", one, "https://github.com/org/app/commit/" + one},
		"AltSSH":         {"The same of GitLab.", "ssh://git@altssh.gitlab.com:443/org/app.git", one, "https://gitlab.com/org/app/-/commit/" + one},
		"GitScheme":      {"Git's own protocol.", "git://gitea.example.com:9419/org/app", one, "https://gitea.example.com/org/app/commit/" + one},
		"Canonical":      {"What is stored for comparing.", "github.com/org/app", one, "https://github.com/org/app/commit/" + one},
		"Blanks":         {"Typed in a hurry.", " https://GitHub.com/org/app ", one, "https://github.com/org/app/commit/" + one},
		"UserInfo":       {"Credentials are left out.", "https://me:s3cr3t@github.com/org/app", one, "https://github.com/org/app/commit/" + one},
		"UserInfoSCP":    {"In that notation too.", "s3cr3t@github.com:org/app", one, "https://github.com/org/app/commit/" + one},
		"UpperCommit":    {"Ids are written small.", "https://github.com/org/app", strings.ToUpper(one), "https://github.com/org/app/commit/" + one},
		"SHA256":         {"Longer ids.", "https://github.com/org/app", one + one[:24], "https://github.com/org/app/commit/" + one + one[:24]},
		"GitLab":         {"GitLab's pages are below a dash.", "https://gitlab.com/org/app", one, "https://gitlab.com/org/app/-/commit/" + one},
		"Subgroups":      {"Its groups are nested.", "git@gitlab.com:org/team/sub/app.git", one, "https://gitlab.com/org/team/sub/app/-/commit/" + one},
		"OwnGitLab":      {"A host whose name tells.", "https://gitlab.corp.example/org/app", one, "https://gitlab.corp.example/org/app/-/commit/" + one},
		"Enterprise":     {"GitHub's too.", "https://github.corp.example/org/app", one, "https://github.corp.example/org/app/commit/" + one},
		"Codeberg":       {"A well-known Forgejo.", "https://codeberg.org/org/app", one, "https://codeberg.org/org/app/commit/" + one},
		"Configured":     {"What the settings say.", "git@git.example.com:org/app", one, "https://git.example.com/org/app/-/commit/" + one},
		"ConfiguredCase": {"However it is written.", "https://GIT.example.COM/org/app", one, "https://git.example.com/org/app/-/commit/" + one},
		"Overridden":     {"They know better than the name.", "https://gitlab.odd.example/org/app", one, "https://gitlab.odd.example/org/app/commit/" + one},
		"NoDot":          {"A host of the own network.", "git@forge:org/app", one, "https://forge/org/app/commit/" + one},
		"Plain":          {"By http where it is fetched by that, with its port.", "http://forge:3000/org/app.git", one, "http://forge:3000/org/app/commit/" + one},
		"HTTPSPort":      {"A web server's port stays.", "https://code.example.com:8443/org/app", one, "https://code.example.com:8443/org/app/commit/" + one},
		"Below":          {"A Gitea below a folder of its host.", "https://code.example.com/git/org/app", one, "https://code.example.com/git/org/app/commit/" + one},
		"Blank":          {"What URLs cannot hold is escaped.", "git@gitea.example.com:org/my app", one, "https://gitea.example.com/org/my%20app/commit/" + one},
		"Escaped":        {"And not twice.", "https://gitea.example.com/org/my%20app", one, "https://gitea.example.com/org/my%20app/commit/" + one},
		"Query":          {"A question mark begins no query.", "git@gitea.example.com:org/a?b#c", one, "https://gitea.example.com/org/a%3Fb%23c/commit/" + one},
		"Quote":          {"Nothing ends an attribute.", `git@gitea.example.com:org/a"><b`, one, "https://gitea.example.com/org/a%22%3E%3Cb/commit/" + one},
		"Percent":        {"A percent sign that escapes nothing.", "git@gitea.example.com:org/100%", one, "https://gitea.example.com/org/100%25/commit/" + one},
		"Letters":        {"Letters of other alphabets.", "https://gitea.example.com/org/größe", one, "https://gitea.example.com/org/gr%C3%B6%C3%9Fe/commit/" + one},

		"Unknown":       {"Nobody knows what it is.", "https://git.other.example/org/app", one, ""},
		"Prefix":        {"A name that only resembles one.", "https://githubby.example/org/app", one, ""},
		"Bare":          {"A host that is only called so.", "git@gitlab:org/app", one, ""},
		"Gist":          {"Gists have other pages.", "https://gist.github.com/org/app", one, ""},
		"ShortPath":     {"An organisation is no repository.", "https://github.com/org", one, ""},
		"LongPath":      {"GitHub has no subgroups.", "https://github.com/org/team/app", one, ""},
		"ShortCommit":   {"An id that is not whole.", "https://github.com/org/app", one[:12], ""},
		"NoCommit":      {"Nothing was applied.", "https://github.com/org/app", "", ""},
		"Branch":        {"A branch is no commit.", "https://github.com/org/app", "main", ""},
		"Folder":        {"A folder has no pages.", "/srv/git/org/app.git", one, ""},
		"File":          {"Nor has its URL.", "file:///srv/git/org/app.git", one, ""},
		"OCI":           {"Nor has other storage.", "oci://github.com/org/app", one, ""},
		"IPv6":          {"An address that nobody named.", "https://[2001:db8::1]/org/app", one, ""},
		"Nothing":       {"No repository.", "", one, ""},
		"Nonsense":      {"Or none that is one.", "nonsense", one, ""},
		"WhosePort":     {"The port may be SSH's.", "forge.example:3000/org/app", one, ""},
		"Climbs":        {"Escaped dots climb nowhere.", "https://gitea.example.com/org/%2e%2e/app", one, ""},
		"EscapedSlash":  {"An escaped slash is no part of a name.", "https://gitea.example.com/org/a%2fb", one, ""},
		"HostWithQuery": {"A host that is none.", `git@gitea.exa"mple.com:org/app`, one, ""},
		"ControlChars":  {"What cannot be printed.", "https://github.com/org/a\x00b", one, ""},
	}
	l := configured(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := l.Commit(tc.repo, tc.commit); got != tc.want {
				t.Errorf("%s got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	cases := map[string]struct {
		reason, repo, from, to, want string
	}{
		"GitHub":  {"Three dots: what the second has.", "git@github.com:org/app", one, two, "https://github.com/org/app/compare/" + one + "..." + two},
		"GitLab":  {"Below its dash.", "https://gitlab.com/a/b/c", one, two, "https://gitlab.com/a/b/c/-/compare/" + one + "..." + two},
		"Gitea":   {"As GitHub's.", "https://gitea.example.com/a/b", one, two, "https://gitea.example.com/a/b/compare/" + one + "..." + two},
		"Same":    {"There is nothing between.", "https://github.com/org/app", one, strings.ToUpper(one), ""},
		"First":   {"There was nothing before.", "https://github.com/org/app", "", two, ""},
		"Digest":  {"What is no commit.", "https://github.com/org/app", one, "sha256:abc", ""},
		"Unknown": {"Nobody knows the host.", "https://git.other.example/org/app", one, two, ""},
	}
	l := configured(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := l.Compare(tc.repo, tc.from, tc.to); got != tc.want {
				t.Errorf("%s got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// The zero value knows what needs no settings.
func TestZeroValue(t *testing.T) {
	if got := (Links{}).Commit("https://github.com/org/app", one); got == "" {
		t.Error("GitHub is not known")
	}
	if got := (Links{}).Commit("https://git.example.com/org/app", one); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestBadHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		hosts map[string]Provider
		want  string
	}{
		"URL":      {map[string]Provider{"https://git.example.com": GitLab}, "no host name"},
		"Port":     {map[string]Provider{"git.example.com:8443": GitLab}, "port"},
		"Path":     {map[string]Provider{"git.example.com/git": GitLab}, "no host name"},
		"Password": {map[string]Provider{"https://me:s3cr3t@git.example.com": GitLab}, "no host name"},
		"Empty":    {map[string]Provider{"": GitLab}, "no host name"},
		"Provider": {map[string]Provider{"git.example.com": "bitbucket"}, "forgejo gitea github gitlab"},
		"First":    {map[string]Provider{"b.example": "x", "a.example": "x"}, "a.example"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(tc.hosts)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// FuzzLinks holds every link to being a web address of the host that was named,
// without a user.
func FuzzLinks(f *testing.F) {
	for _, repo := range []string{
		"https://github.com/org/app.git", "git@gitlab.com:a/b/c.git", "ssh://git@gitea.example.com:2222/a/b", "http://forge:3000/a/b", "https://me:s3cr3t@github.com/a/b",
		"git@gitea.example.com:a?b/c#d", `https://gitea.example.com/a"/<b>`, "https://gitea.example.com/%2e%2e/b", "github.com/a/b", "git@github.com:%zz/b",
	} {
		f.Add(repo)
	}
	l := configured(f)
	f.Fuzz(func(t *testing.T, repo string) {
		got := l.Commit(repo, one)
		if got == "" {
			return
		}
		u, err := url.Parse(got)
		if err != nil {
			t.Fatalf("%q of %q: %v", got, repo, err)
		}
		if u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !plainHost(u.Hostname()) {
			t.Errorf("%q of %q is no plain web address", got, repo)
		}
		if strings.ContainsAny(got, " \"'<>\\`\n") {
			t.Errorf("%q of %q holds what a page or a shell takes for its own", got, repo)
		}
		if !strings.HasSuffix(u.Path, "/commit/"+one) || strings.Contains(u.Path, "/../") || strings.Contains(u.EscapedPath(), "//") {
			t.Errorf("%q of %q leads elsewhere", got, repo)
		}
	})
}

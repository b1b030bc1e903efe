package schema_test

import (
	"errors"
	"path"
	"strings"
	"testing"
	"testing/quick"

	"github.com/landfall-hub/landfall/schema"
)

func TestCanonicalRepo(t *testing.T) {
	// Each list holds spellings of one repository; the key is its canonical form.
	cases := map[string][]string{
		"github.com/org/repo": {
			"https://github.com/org/repo", "https://github.com/org/repo.git", "https://github.com/org/repo/", "https://github.com/org/repo.git/",
			"http://github.com/org/repo", "http://github.com:80/org/repo", "https://github.com:443/org/repo", "https://GitHub.COM/org/repo",
			"HTTPS://github.com/org/repo", "https://token@github.com/org/repo", "https://user:pass@github.com/org/repo.git",
			"git@github.com:org/repo", "git@github.com:org/repo.git", "git@GITHUB.com:org/repo", "github.com:org/repo", "git@github.com:/org/repo",
			"ssh://git@github.com/org/repo.git", "ssh://git@github.com:22/org/repo", "ssh://github.com/org/repo", "ssh://git@github.com:443/org/repo",
			"git://github.com/org/repo", "git://github.com:9418/org/repo", "github.com/org/repo", "github.com:443/org/repo",
			" https://github.com/org/repo\n", "https://github.com//org/repo", "https://github.com./org/repo", "git+ssh://git@github.com/org/repo",
		},
		"github.com/Org/Repo":              {"https://github.com/Org/Repo", "git@github.com:Org/Repo.git"},
		"gitea.example:3000/org/repo":      {"http://gitea.example:3000/org/repo.git", "https://u:p@gitea.example:3000/org/repo", "gitea.example:3000/org/repo"},
		"gitea.example:2222/org/repo":      {"ssh://git@gitea.example:2222/org/repo.git"},
		"gitea.example/2222/org":           {"git@gitea.example:2222/org"},
		"dev.azure.com/org/project/_git/x": {"https://org@dev.azure.com/org/project/_git/x", "https://dev.azure.com/org/project/_git/x"},
		"host:/org/repo":                   {"git@host:org/repo", "ssh://git@host/org/repo.git", "https://host/org/repo", "host:org/repo", "git@HOST:/org/repo.git"},
		"gitea:3000/org/repo":              {"http://gitea:3000/org/repo.git", "http://u:p@gitea:3000/org/repo", "http://gitea:03000/org/repo"},
		"gitea:/2222/org":                  {"git@gitea:2222/org", "https://gitea/2222/org"},
		"github.com/org/my%20repo":         {"https://github.com/org/my%20repo", "git@github.com:org/my%20repo"},
		"localhost/org/repo":               {"http://localhost/org/repo", "localhost/org/repo"},
		"localhost:3000/org/repo":          {"http://localhost:3000/org/repo", "localhost:3000/org/repo"},
		"[::1]:3000/org/repo":              {"http://[::1]:3000/org/repo", "[::1]:3000/org/repo"},
		"[::1]/org/repo":                   {"http://[::1]/org/repo", "git@[::1]:org/repo", "[::1]/org/repo"},
		"file:///srv/git/repo":             {"/srv/git/repo", "/srv/git/repo.git", "file:///srv/git/repo", "file:///srv/git/repo/", "file://localhost/srv/git/repo", "/srv/git/./repo/"},
		"oci://ghcr.io/org/manifests":      {"oci://ghcr.io/org/manifests", "oci://GHCR.io:443/org/manifests", "oci://u:p@ghcr.io/org/manifests/"},
		"helm://charts.example/stable":     {"helm://charts.example/stable", "helm://charts.example/stable/"},
		"helm://charts.example":            {"helm://charts.example", "helm://charts.example/"},
		"bucket://minio.example/manifests": {"bucket://minio.example/manifests"},
	}
	for want, spellings := range cases {
		for _, in := range append(spellings, want) {
			got, err := schema.CanonicalRepo(in)
			if err != nil || got != want {
				t.Errorf("%q: want %q, got %q, %v", in, want, got, err)
			}
		}
	}
}

func TestCanonicalRepoRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"Empty": "", "Blank": "  ", "NoPath": "https://github.com", "NoPathSlash": "https://github.com/", "NoHost": "https:///org/repo",
		"Word": "repo", "RelativeFolder": "org/repo", "DotFolder": "./repo", "ClimbingURL": "https://github.com/org/../../etc",
		"ClimbingFolder": "/srv/../etc", "Root": "/", "FileRoot": "file:///", "FileHost": "file://host", "Query": "https://github.com/org/repo?ref=x", "Fragment": "https://github.com/org/repo#x",
		"Control": "https://github.com/org/re\x00po", "NewLine": "https://github.com/org/re\npo", "NotUTF8": "https://github.com/org/\xff", "EscapedHost": "https://%41/org/repo%",
		"EmptyScp": "git@:org/repo", "ScpNoPath": "git@host:", "OpenBracket": "[::1/org", "NoBracket": "[]:org",
		"OneSlash": "https:/github.com/org/repo", "LongPort": "https://github.com:123456/org/repo", "Zone": "http://[fe80::1%25en0]/org/repo", "LeadingDot": "https://.github.com/org/repo",
	} {
		if got, err := schema.CanonicalRepo(in); !errors.Is(err, schema.ErrInvalidRepo) {
			t.Errorf("%s: %q must be refused, got %q, %v", name, in, got, err)
		}
	}
}

// TestCanonicalRepoHidesSecrets: user info is in no result and no error.
func TestCanonicalRepoHidesSecrets(t *testing.T) {
	for _, in := range []string{
		"https://bob:s3cret@github.com/org/repo", "https://s3cret@github.com/org/repo", "ssh://s3cret@github.com/org/repo", "s3cret@github.com:org/repo",
		"https://bob:s3cret@github.com", "https://bob:s3cret@", "https://bob:s3cret@github.com/org/repo?x", "https://bob:s3cret@github.com/org/../..",
		"https://bob:s3cret@@github.com/org/repo", "https://bob:s3%zzcret@github.com/org/repo", "https://bob:s3cret@git hub.com/org/repo", "s3cret@host", "s3cret@:x",
		"bob:s3cret@github.com/org/repo", "bob:s3cret@github.com:org/repo", "https://bob:s3cret/with/slash@github.com/org/repo", "file://bob:s3cret@host/srv/x", "file://bob:s3cret@host",
		"https://bob:s3cret@github.com:99999999/org/repo", "https://bob:s3cret#x@github.com/org/repo", "https://bob:s3cret?x@github.com/org/repo",
		"s3cret/@github.com:org", "https://bob:s3cret@github.com/org/\x00", "https:/bob:s3cret@github.com/org/repo", "https:bob:s3cret@github.com/org/repo",
		`https:\\bob:s3cret@github.com\org`,
	} {
		got, err := schema.CanonicalRepo(in)
		if strings.Contains(got, "s3cret") || err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: the secret is in %q or in the error %v", in, got, err)
		}
	}
}

func TestStripUserInfo(t *testing.T) {
	for in, want := range map[string]string{
		"https://bob:s3cret@github.com/org/repo": "https://github.com/org/repo",
		"https://github.com/org/repo":            "https://github.com/org/repo",
		"https://github.com/org/re@po":           "https://github.com/org/re@po",
		"git@github.com:org/repo":                "github.com:org/repo",
		"ssh://git@host:2222/x":                  "ssh://host:2222/x",
		"/srv/git/re@po":                         "/srv/git/re@po",
		"https://a@b@host/x":                     "https://host/x",
		"git@gitea.example:2222/org":             "gitea.example:/2222/org",
		"git@gitea.example:22x/org":              "gitea.example:22x/org",
		"":                                       "",
	} {
		got := schema.StripUserInfo(in)
		if got != want {
			t.Errorf("%q: want %q, got %q", in, want, got)
		}
		if again := schema.StripUserInfo(got); again != got {
			t.Errorf("%q: stripped twice it is %q", in, again)
		}
	}
}

func TestCanonicalRef(t *testing.T) {
	for in, want := range map[string]string{
		"main": "main", "refs/heads/main": "main", "refs/heads/feature/x": "feature/x", "": "", "HEAD": "", " dev ": "dev",
		"refs/tags/v1.0.0": "refs/tags/v1.0.0", "semver:>=1.0.0": "semver:>=1.0.0", strings.ToUpper(strings.Repeat("ab", 20)): strings.Repeat("ab", 20),
		"refs/pull/4/head": "refs/pull/4/head", "refs/heads/refs/heads/x": "refs/heads/x",
	} {
		if got, err := schema.CanonicalRef(in); err != nil || got != want {
			t.Errorf("%q: want %q, got %q, %v", in, want, got, err)
		}
	}
	for _, in := range []string{"refs/heads/", "a\x00b", "a\nb", "\xff"} {
		if got, err := schema.CanonicalRef(in); !errors.Is(err, schema.ErrInvalidRef) {
			t.Errorf("%q must be refused, got %q, %v", in, got, err)
		}
	}
}

func TestPinnedRef(t *testing.T) {
	for in, want := range map[string]bool{"main": false, "": false, "refs/tags/v1": true, "semver:1.x": true, commit40: true, "v1.0.0": false, "refs/pull/4/head": false} {
		if got := schema.PinnedRef(in); got != want {
			t.Errorf("%q: want %v", in, want)
		}
	}
}

func TestCleanPath(t *testing.T) {
	for in, want := range map[string]string{
		"./drone/": "drone", "drone": "drone", "/drone": "drone", "": "", ".": "", "/": "", "./": "", "a//b": "a/b", "a/./b": "a/b", "a/b/..": "a", "//a": "a",
		"..a": "..a", "a/..b": "a/..b", "a/../b": "b",
	} {
		if got, err := schema.CleanPath(in); err != nil || got != want {
			t.Errorf("%q: want %q, got %q, %v", in, want, got, err)
		}
	}
	for _, in := range []string{"..", "../x", "a/../..", "a/../../b", "./../x", "/.."} {
		if got, err := schema.CleanPath(in); !errors.Is(err, schema.ErrPathEscapes) {
			t.Errorf("%q climbs out, got %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"a\x00", "a\n", "\xff"} {
		if got, err := schema.CleanPath(in); !errors.Is(err, schema.ErrInvalidPath) {
			t.Errorf("%q must be refused, got %q, %v", in, got, err)
		}
	}
}

func TestPathWithin(t *testing.T) {
	cases := []struct {
		asked, path string
		want        bool
	}{{"", "", true}, {"", "a", true}, {"a", "a", true}, {"a", "a/b", true}, {"a", "ab", false}, {"a/b", "a", false}, {"a", "", false}, {"a", "b", false}}
	for _, c := range cases {
		if got := schema.PathWithin(c.asked, c.path); got != c.want {
			t.Errorf("%q within %q: want %v", c.path, c.asked, c.want)
		}
	}
}

func TestNewEndpoint(t *testing.T) {
	got, err := schema.NewEndpoint("git@GitHub.com:org/repo.git", "refs/heads/dev", "./drone/")
	want := schema.Endpoint{Repo: "github.com/org/repo", Ref: "dev", Path: "drone"}
	if err != nil || got != want {
		t.Errorf("want %+v, got %+v, %v", want, got, err)
	}
	for _, c := range []struct {
		repo, ref, path string
		want            error
	}{{"x", "", "", schema.ErrInvalidRepo}, {"/x", "refs/heads/", "", schema.ErrInvalidRef}, {"/x", "", "..", schema.ErrPathEscapes}} {
		if got, err := schema.NewEndpoint(c.repo, c.ref, c.path); !errors.Is(err, c.want) || got != (schema.Endpoint{}) {
			t.Errorf("%+v: got %+v, %v", c, got, err)
		}
	}
}

func TestSourceEndpoint(t *testing.T) {
	for want, s := range map[schema.Endpoint]schema.Source{
		{Repo: "github.com/org/repo", Ref: "dev", Path: "drone"}:      {Type: schema.SourceGit, URL: "https://github.com/org/repo", Ref: "dev", Path: "./drone"},
		{Repo: "oci://ghcr.io/org/manifests", Ref: "latest"}:          {Type: schema.SourceOCI, URL: "oci://ghcr.io/org/manifests", Ref: "latest", Path: "./"},
		{Repo: "helm://charts.example/stable", Ref: "1", Path: "web"}: {Type: schema.SourceHelm, URL: "https://charts.example/stable", Ref: "1", Path: "web"},
		{Repo: "helm://ghcr.io/org/charts", Ref: "1", Path: "web"}:    {Type: schema.SourceHelm, URL: "oci://ghcr.io/org/charts", Ref: "1", Path: "web"},
		{Repo: "bucket://minio.example/manifests"}:                    {Type: schema.SourceBucket, URL: "minio.example/manifests"},
	} {
		if got, err := s.Endpoint(); err != nil || got != want {
			t.Errorf("%+v: want %+v, got %+v, %v", s, want, got, err)
		}
	}
}

// TestSpellingsAreOne: what is said not to matter does not, for any names.
func TestSpellingsAreOne(t *testing.T) {
	letters := func(seed uint32) string {
		const of = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
		b := []byte{'r'}
		for ; seed > 0; seed /= 64 {
			b = append(b, of[seed%64])
		}
		return string(b)
	}
	property := func(h, o, r uint32) bool {
		host, org, repo := strings.ReplaceAll(letters(h), "_", "x")+".example", letters(o), letters(r)
		want, err := schema.CanonicalRepo("https://" + host + "/" + org + "/" + repo)
		if err != nil || want != strings.ToLower(host)+"/"+org+"/"+repo {
			return false
		}
		for _, in := range []string{
			"git@" + host + ":" + org + "/" + repo, "ssh://git@" + host + "/" + org + "/" + repo + ".git", "ssh://git@" + host + ":22/" + org + "/" + repo,
			"https://u:p@" + host + ":443/" + org + "/" + repo + "/", "http://" + strings.ToUpper(host) + "/" + org + "/" + repo + ".git/", want,
		} {
			if got, err := schema.CanonicalRepo(in); err != nil || got != want {
				t.Logf("%q: want %q, got %q, %v", in, want, got, err)
				return false
			}
		}
		return true
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}

func FuzzCanonicalRepo(f *testing.F) {
	for _, s := range []string{
		"https://github.com/org/repo.git", "git@github.com:org/repo", "ssh://git@host:2222/org/repo", "/srv/git/repo", "file:///srv/git", "oci://ghcr.io/x", "helm://h",
		"[::1]:3000/org", "http://[fe80::1%25en0]/x", "host:path", "a.b/c", "localhost:1/x", "git@host:2222/x", "https://u:p@host/x", "x.git.git", "/x.git/.git",
		"http://a.b:80/c", "git://a.b:9418/c", "a.b:22/c", "HTTP://A./b", "https://h/%2e%2e/x", "https://h/a%20b", "https://h/%00", "//x", "h:443", "v6:x/y", "/..git", "/a/...git", "AA: /0", "http./0", "0: /", "/://@", "@0:0 ", "/. /", "file://@", "oCi://::",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, err := schema.CanonicalRepo(s)
		if err != nil {
			if !errors.Is(err, schema.ErrInvalidRepo) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		twice, err := schema.CanonicalRepo(once)
		if err != nil || once != twice {
			t.Fatalf("%q is %q, and that is %q, %v", s, once, twice, err)
		}
		if stripped, err := schema.CanonicalRepo(schema.StripUserInfo(s)); err != nil || stripped != once {
			t.Fatalf("%q is %q, but without its user %q, %v", s, once, stripped, err)
		}
		// A host never holds user info.
		_, rest, found := strings.Cut(once, "://")
		if !found {
			rest = once
		}
		host, _, _ := strings.Cut(rest, "/")
		if strings.Contains(host, "@") || host != strings.ToLower(host) {
			t.Fatalf("%q is %q: its host is not clean", s, once)
		}
	})
}

func FuzzCleanPath(f *testing.F) {
	for _, s := range []string{"./drone/", "", "/", "..", "../x", "a/../..", "a//b", "a/./b", "..a", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, err := schema.CleanPath(s)
		if err != nil {
			return
		}
		if once == ".." || strings.HasPrefix(once, "../") || strings.HasPrefix(once, "/") || once != "" && once != path.Clean(once) {
			t.Fatalf("%q is %q", s, once)
		}
		if twice, err := schema.CleanPath(once); err != nil || twice != once {
			t.Fatalf("%q is %q, and that is %q, %v", s, once, twice, err)
		}
		if !schema.PathWithin("", once) || !schema.PathWithin(once, once) {
			t.Fatalf("%q is not within itself", once)
		}
	})
}

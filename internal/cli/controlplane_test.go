package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePlace(t *testing.T) {
	dir := t.TempDir()
	tests := map[string]struct {
		reason string
		want   place
		bad    bool
	}{
		dir:                                  {reason: "a folder that exists", want: place{dir: dir}},
		"out/dev":                            {reason: "a folder that does not", want: place{dir: "out/dev"}},
		"out@dev":                            {reason: "no repository has such an address", want: place{dir: "out@dev"}},
		"https://git.example/org/repo@dev":   {reason: "a branch", want: place{url: "https://git.example/org/repo", ref: "dev"}},
		"https://git.example/org/repo@a/b":   {reason: "a branch with a slash", want: place{url: "https://git.example/org/repo", ref: "a/b"}},
		"https://me@git.example/org/repo@x":  {reason: "user info and a branch", want: place{url: "https://me@git.example/org/repo", ref: "x"}},
		"git@git.example:org/repo@dev":       {reason: "as ssh writes it", want: place{url: "git@git.example:org/repo", ref: "dev"}},
		"ssh://git@git.example/org/repo@dev": {reason: "an ssh URL", want: place{url: "ssh://git@git.example/org/repo", ref: "dev"}},
		"/srv/git/repo.git@dev":              {reason: "a repository on this machine", want: place{url: "/srv/git/repo.git", ref: "dev"}},
		"file:///srv/git/repo.git@dev":       {reason: "the same as a URL", want: place{url: "file:///srv/git/repo.git", ref: "dev"}},
		"https://git.example/org/repo":       {reason: "no ref", bad: true},
		"https://me@git.example/org/repo":    {reason: "user info is no ref", bad: true},
		"git@git.example:org/repo":           {reason: "nor is a host", bad: true},
		"https://git.example/org/repo@":      {reason: "an empty ref", bad: true},
	}
	for text, test := range tests {
		t.Run(text, func(t *testing.T) {
			got, err := parsePlace(text)
			if (err != nil) != test.bad {
				t.Fatalf("%s: error %v", test.reason, err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(place{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

package controlplane

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIgnored(t *testing.T) {
	tests := map[string]struct {
		reason   string
		patterns []string
		ignored  []string
		kept     []string
	}{
		"folder":       {"a folder anywhere", []string{".github/"}, []string{".github/w/x.yaml", "a/.github/x.yaml"}, []string{".github", "x.github/y"}},
		"name":         {"a name anywhere", []string{"x.yaml"}, []string{"x.yaml", "a/b/x.yaml", "x.yaml/y"}, []string{"ax.yaml"}},
		"anchored":     {"a slash in it anchors", []string{"/x", "a/b"}, []string{"x", "x/y", "a/b", "a/b/c"}, []string{"a/x", "c/a/b"}},
		"wildcards":    {"* and ? stay within a name", []string{"*.tmp", "a?c", "d[ef]g", "h[!i]j"}, []string{"x.tmp", "y/.tmp", "abc", "deg", "hkj"}, []string{"a/c", "ddg", "hij"}},
		"any depth":    {"** is any number of folders", []string{"a/**/z", "**/y", "w/**"}, []string{"a/z", "a/b/c/z", "y", "q/y", "w/v"}, []string{"z", "w"}},
		"taken back":   {"the last that matches decides", []string{"*.yaml", "!keep.yaml", "drop/", "!drop/keep.yaml"}, []string{"x.yaml", "drop/keep.yaml"}, []string{"keep.yaml", "a/keep.yaml"}},
		"comments":     {"comments and spaces", []string{"# x", "", `\#y`, `\!z`, "w   ", `v\ `}, []string{"#y", "!z", "w", "v "}, []string{"x", "# x", "v"}},
		"nearest file": {"a file in a folder counts there, and before those above", []string{"*.yaml"}, []string{"x.yaml", "sub/other/x.yaml"}, []string{"sub/x.yaml"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ig, problems := newIgnores([]File{file(".sourceignore", tc.patterns...), file("sub/.sourceignore", "!/x.yaml")})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			for _, path := range tc.ignored {
				if !ig.ignored(path) {
					t.Errorf("%s: %s is read", tc.reason, path)
				}
			}
			for _, path := range tc.kept {
				if ig.ignored(path) {
					t.Errorf("%s: %s is ignored", tc.reason, path)
				}
			}
		})
	}
}

func TestBadPatterns(t *testing.T) {
	ig, problems := newIgnores([]File{file(".sourceignore", "a[", "b")})
	if diff := cmp.Diff([]string{`.sourceignore:1: not a pattern: brackets must be closed, and a \ be followed by something`}, messages(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if !ig.ignored("b") || ig.ignored("a") {
		t.Error("the other pattern does not count")
	}
	_, problems = newIgnores([]File{file(".sourceignore", slices.Repeat([]string{"x"}, mostPatterns+1)...)})
	if len(problems) != 1 || problems[0].Line != mostPatterns+1 {
		t.Errorf("problems %v, want one at the first pattern too many", problems)
	}
}

// Random patterns and paths, each judged by git itself.
func TestIgnoredAsGitDoes(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git here to compare with")
	}
	rng := rand.New(rand.NewPCG(7, 7))
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	for round := range 20 {
		var patterns []string
		for range 1 + rng.IntN(5) {
			var segments []string
			for range 1 + rng.IntN(3) {
				segments = append(segments, pick("a", "b", "*", "**", "a*", "?", "[ab]", "[!a]", "c"))
			}
			patterns = append(patterns, pick("", "", "!")+pick("", "", "/")+strings.Join(segments, "/")+pick("", "", "/"))
		}
		var paths []string
		for range 60 {
			var segments []string
			for range 1 + rng.IntN(4) {
				segments = append(segments, pick("a", "b", "c", "ab", "ca"))
			}
			// A file never has the name of a folder.
			paths = append(paths, strings.Join(append(segments, pick("a.f", "b.f", "c.f")), "/"))
		}
		below := pick("", "a/", "b/c/")
		want := gitIgnored(t, git, below, patterns, paths)
		ig, problems := newIgnores([]File{file(below+ignoreFile, patterns...)})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for _, p := range paths {
			if got := ig.ignored(p); got != want[p] {
				t.Errorf("round %d: patterns %q in %q: ignored(%s) = %t, git says %t", round, patterns, below, p, got, want[p])
			}
		}
	}
}

// gitIgnored asks git which paths a .gitignore in a folder ignores.
func gitIgnored(t *testing.T, git, below string, patterns, paths []string) map[string]bool {
	t.Helper()
	dir := t.TempDir()
	run := func(stdin string, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), git, append([]string{"-C", dir, "-c", "core.excludesFile=/dev/null"}, args...)...)
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
		cmd.Stdin = strings.NewReader(stdin)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
			t.Fatalf("git %v: %v: %s", args, err, errs.Bytes())
		}
		return out.Bytes()
	}
	run("", "init", "-q")
	if err := os.MkdirAll(filepath.Join(dir, below), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, below, ".gitignore"), []byte(strings.Join(patterns, "\n")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	out := run(strings.Join(paths, "\n")+"\n", "check-ignore", "--no-index", "--stdin")
	ignored := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		ignored[strings.TrimSpace(line)] = true
	}
	if len(out) > 0 && len(ignored) == 0 {
		t.Fatalf("git said %q", out)
	}
	return ignored
}

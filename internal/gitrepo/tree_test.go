package gitrepo_test

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
)

// there returns what is below a folder: a file's text, a link's target.
func there(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if e.Type() == fs.ModeSymlink {
			target, err := os.Readlink(path)
			found[below] = "-> " + target
			return err
		}
		text, err := os.ReadFile(path)
		if info, infoErr := e.Info(); infoErr == nil && info.Mode()&0o100 != 0 {
			found[below] = "x "
		}
		found[below] += string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestMaterialize(t *testing.T) {
	server := newServer(t)
	repo := server.NewRepo(t, "repo", "sha1")
	repo.Write(t, map[string]string{"drone/a": "1", "drone/sub/run.sh": "#!", "drone/new\nline": "2", "drone/ ö\xff": "3", "large/a": "4", "large/big": strings.Repeat("x", 3<<20)})
	for link, target := range map[string]string{"drone/inside": "sub/run.sh", "drone/sub/up": "../a", "drone/nowhere": "none"} {
		if err := os.Symlink(target, filepath.Join(repo.Tree, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(repo.Tree, "drone/sub/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, repo.Tree, "add", "--all")
	gittest.Git(t, repo.Tree, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",drone/module")
	first := repo.CommitTree(t)
	r := open(t, gitrepo.Options{URL: repo.Bare, Depth: 1})
	fetch(t, r, "main", first)
	dir := filepath.Join(t.TempDir(), "work")
	for range 2 { // over what an apply left
		if err := r.Materialize(t.Context(), first, "./drone/", dir); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"a": "1", "sub/run.sh": "x #!", "new\nline": "2", " ö\xff": "3", "inside": "-> sub/run.sh", "sub/up": "-> ../a", "nowhere": "-> none",
		}
		if diff := cmp.Diff(want, there(t, dir)); diff != "" {
			t.Error(diff)
		}
		if err := os.WriteFile(filepath.Join(dir, "left"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Materialize(t.Context(), first, "", dir); err != nil || len(there(t, dir)["large/big"]) != 3<<20 {
		t.Errorf("the root: %v", err)
	}

	before, err := r.Tree(first, "drone")
	if err != nil {
		t.Fatal(err)
	}
	root, err := r.Tree(first, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repo.Tree, "large/a"), []byte("5"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := repo.CommitTree(t)
	fetch(t, r, "main", second)
	if after, err := r.Tree(second, "/drone"); err != nil || after != before {
		t.Errorf("nothing in drone changed: %s, %v; was %s", after, err, before)
	}
	if after, err := r.Tree(second, "."); err != nil || after == root {
		t.Errorf("the root did not change: %s, %v", after, err)
	}
	for folder, want := range map[string]error{"none": gitrepo.ErrPathMissing, "drone/a": gitrepo.ErrPathMissing, "drone/a/b": gitrepo.ErrPathMissing} {
		if _, err := r.Tree(second, folder); !errors.Is(err, want) {
			t.Errorf("%s: got %v", folder, err)
		}
		if err := r.Materialize(t.Context(), second, folder, dir); !errors.Is(err, want) {
			t.Errorf("%s: got %v", folder, err)
		}
	}
	if _, err := r.Tree(second, "../x"); err == nil {
		t.Error("a path climbed out")
	}
	if _, err := r.Tree(strings.Repeat("1", 40), ""); !errors.Is(err, gitrepo.ErrNoCommit) {
		t.Errorf("a commit that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Materialize(ctx, second, "drone", dir); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if got := there(t, dir); got["large/a"] != "4" {
		t.Errorf("an error changed the folder: %v", slices.Sorted(maps.Keys(got)))
	}
}

// A tree that its author made to climb out is refused as a whole, and what was
// there stays.
func TestMaterializeRefuses(t *testing.T) {
	server := newServer(t)
	repo := server.NewRepo(t, "repo", "sha1")
	link := func(target string) func(t *testing.T) {
		return func(t *testing.T) {
			t.Helper()
			if err := os.Symlink(target, filepath.Join(repo.Tree, "drone/link")); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What git itself refuses to add is put into the tree by hand.
	raw := func(name string) func(t *testing.T) {
		return func(t *testing.T) {
			t.Helper()
			blob := strings.TrimSpace(gittest.Git(t, repo.Tree, "hash-object", "-w", "drone/a"))
			// No entry of a tree may have a slash in its name; git mktree refuses it,
			// hash-object --literally takes whatever it gets.
			text := "100644 " + name + "\x00" + unhex(t, blob)
			file := filepath.Join(t.TempDir(), "tree")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			inner := strings.TrimSpace(gittest.Git(t, repo.Tree, "hash-object", "-w", "-t", "tree", "--literally", file))
			if err := os.WriteFile(file, []byte("40000 drone\x00"+unhex(t, inner)), 0o600); err != nil {
				t.Fatal(err)
			}
			outer := strings.TrimSpace(gittest.Git(t, repo.Tree, "hash-object", "-w", "-t", "tree", "--literally", file))
			commit := strings.TrimSpace(gittest.Git(t, repo.Tree, "commit-tree", "-m", "bad", outer))
			gittest.Git(t, repo.Tree, "update-ref", "refs/heads/bad", commit)
			repo.Push(t, "bad:bad")
		}
	}
	cases := map[string]struct {
		reason string
		make   func(t *testing.T)
		max    int64
		want   error
	}{
		"absolute link":      {"the machine's own files", link("/etc/passwd"), 0, gitrepo.ErrUnsafe},
		"link to the parent": {"the neighbour's folder", link("../large"), 0, gitrepo.ErrUnsafe},
		"link out and in":    {"it leaves on its way", link("../drone/a"), 0, gitrepo.ErrUnsafe},
		"circle":             {"it leads nowhere", link("link"), 0, gitrepo.ErrUnsafe},
		"link over a link": {"each by itself looks harmless", func(t *testing.T) {
			t.Helper()
			link("self/../..")(t)
			if err := os.Symlink(".", filepath.Join(repo.Tree, "drone/self")); err != nil {
				t.Fatal(err)
			}
		}, 0, gitrepo.ErrUnsafe},
		"a name with a slash": {"../../x", raw("../../x"), 0, gitrepo.ErrUnsafe},
		"dots":                {"the parent", raw(".."), 0, gitrepo.ErrUnsafe},
		".git":                {"hooks run by whoever calls git there", raw(".GIT"), 0, gitrepo.ErrUnsafe},
		"too large":           {"a bound on what is written", func(*testing.T) {}, 3, gitrepo.ErrTooLarge},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			repo.Write(t, map[string]string{"drone/a": "12", "drone/b": "34", "large/a": "1"})
			c.make(t)
			ref := "bad"
			if gittest.Git(t, repo.Tree, "branch", "--list", "bad") == "" {
				repo.CommitTree(t)
				ref = gittest.Branch
			}
			o := gitrepo.Options{URL: repo.Bare, Dir: filepath.Join(t.TempDir(), "mirror")}
			commit, err := open(t, o).Fetch(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if ref == "bad" {
				gittest.Git(t, repo.Tree, "branch", "-D", "bad")
			}
			o.MaxBytes = c.max
			parent := t.TempDir()
			dir := filepath.Join(parent, "work")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "old"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := open(t, o).Materialize(t.Context(), commit, "drone", dir); !errors.Is(err, c.want) {
				t.Errorf("%s: got %v", c.reason, err)
			} else {
				t.Log(err)
			}
			if diff := cmp.Diff(map[string]string{"work/old": ""}, there(t, parent)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func unhex(t *testing.T, s string) string {
	t.Helper()
	out, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

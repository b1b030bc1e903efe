package gitrepo_test

import (
	"errors"
	"fmt"
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

// heads fetches and returns the commits by ref.
func heads(t *testing.T, r *gitrepo.Repo, refs ...string) (gitrepo.Heads, map[string]string) {
	t.Helper()
	h, err := r.FetchHeads(t.Context(), refs, 100)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for ref, id := range h.Refs {
		found[ref] = id.String()
	}
	return h, found
}

// expectRefs compares where refs are.
func expectRefs(t *testing.T, when string, got, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

// Branches that come, move, are forced elsewhere, go, and come back as folders
// of branches; over each kind of address.
func TestFetchHeads(t *testing.T) {
	server := newServer(t)
	url := serve(t, server)
	sshURL, sshAuth := serveSSH(t, server.Root)
	for kind, auth := range map[string]gitrepo.Auth{url: {}, sshURL: sshAuth, server.Root: {}} {
		t.Run(strings.SplitN(kind, ":", 2)[0], func(t *testing.T) {
			repo := server.NewRepo(t, fmt.Sprintf("repo-%d", len(kind)), "sha1")
			r := open(t, gitrepo.Options{URL: kind + "/" + repo.Name, Auth: auth})
			if _, err := r.FetchHeads(t.Context(), nil, 100); !errors.Is(err, gitrepo.ErrRefMissing) {
				t.Errorf("an empty repository: %v", err)
			}
			first := repo.Commit(t, map[string]string{"a": "1"})
			second := repo.Commit(t, map[string]string{"a": "2"})
			repo.Push(t, first+":refs/heads/old")
			h, got := heads(t, r)
			expectRefs(t, "all branches", got, map[string]string{"": second, "main": second, "old": first})
			if !h.Downloaded || h.Shallow {
				t.Errorf("the first time: %+v", h)
			}
			if h, _ = heads(t, r); h.Downloaded {
				t.Error("nothing new was downloaded")
			}

			// Forced elsewhere; a branch makes room for a folder of branches.
			gittest.Git(t, repo.Tree, "reset", "--quiet", "--hard", first)
			forced := repo.Commit(t, map[string]string{"a": "3"})
			gittest.Git(t, repo.Bare, "update-ref", "-d", "refs/heads/old")
			repo.Push(t, first+":refs/heads/old/deep")
			_, got = heads(t, r)
			expectRefs(t, "forced", got, map[string]string{"": forced, "main": forced, "old/deep": first})
			gittest.Git(t, repo.Bare, "update-ref", "-d", "refs/heads/old/deep")
			repo.Push(t, second+":refs/heads/old")
			h, got = heads(t, r)
			expectRefs(t, "and back", got, map[string]string{"": forced, "main": forced, "old": second})
			if h.Downloaded {
				t.Error("a commit that left every ref must still be there")
			}
			all, err := r.Commits(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, id := range all {
				ids = append(ids, id.String())
			}
			if want := []string{first, second, forced}; !slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(want))) {
				t.Errorf("the mirror has the commits %v, want %v", ids, want)
			}
		})
	}
}

// Only what is named is followed; tags are followed to their commits.
func TestFetchNamedHeads(t *testing.T) {
	server := newServer(t)
	url := serve(t, server)
	repo := server.NewRepo(t, "repo", "sha1")
	first := repo.Commit(t, map[string]string{"a": "1"})
	gittest.Git(t, repo.Tree, "tag", "-a", "v1", "-m", "v1")
	gittest.Git(t, repo.Tree, "tag", "-a", "v1again", "-m", "v1", "v1")
	gittest.Git(t, repo.Tree, "tag", "light")
	gittest.Git(t, repo.Tree, "tag", "-a", "folder", "-m", "no commit", "HEAD^{tree}")
	second := repo.Commit(t, map[string]string{"a": "2"})
	repo.Push(t, second+":refs/heads/dev")
	third := repo.Commit(t, map[string]string{"a": "3"})
	repo.Push(t, "refs/tags/*:refs/tags/*")
	r := open(t, gitrepo.Options{URL: url + "/" + repo.Name})
	h, got := heads(t, r, "dev", "refs/tags/v1", "refs/tags/v1again", "refs/tags/light", "refs/tags/folder", "none", "refs/tags/none")
	expectRefs(t, "named", got, map[string]string{"dev": second, "refs/tags/v1": first, "refs/tags/v1again": first, "refs/tags/light": first})
	if want := []string{"none", "refs/tags/folder", "refs/tags/none"}; !slices.Equal(h.Missing, want) {
		t.Errorf("missing are %v, want %v", h.Missing, want)
	}
	if _, err := r.Reader().Commit(id(t, third)); !errors.Is(err, gitrepo.ErrNoCommit) {
		t.Errorf("main is not followed: %v", err)
	}
	_, got = heads(t, r, "HEAD")
	expectRefs(t, "the default branch", got, map[string]string{"": third})

	// A tag that is moved.
	gittest.Git(t, repo.Tree, "tag", "-f", "light")
	repo.Push(t, "+refs/tags/*:refs/tags/*")
	_, got = heads(t, r, "refs/tags/light")
	expectRefs(t, "a moved tag", got, map[string]string{"refs/tags/light": third, "": third})
}

func id(t *testing.T, s string) gitrepo.ID {
	t.Helper()
	id, ok := gitrepo.ParseID(s)
	if !ok {
		t.Fatalf("%s is no id", s)
	}
	return id
}

func TestParseID(t *testing.T) {
	full := strings.Repeat("0a", 20)
	if got, ok := gitrepo.ParseID(full); !ok || got.String() != full {
		t.Errorf("%s is %s", full, got)
	}
	for _, bad := range []string{"", full[1:], full + "00", strings.Repeat("g", 40), full + strings.Repeat("0", 24)} {
		if _, ok := gitrepo.ParseID(bad); ok {
			t.Errorf("%q is no id", bad)
		}
	}
}

// Too many branches: the default one is followed, and the first by name.
func TestFetchTooManyHeads(t *testing.T) {
	server := newServer(t)
	repo := server.NewRepo(t, "repo", "sha1")
	first := repo.Commit(t, map[string]string{"a": "1"})
	for i := range 5 {
		repo.Push(t, fmt.Sprintf("%s:refs/heads/b%d", first, i))
	}
	r := open(t, gitrepo.Options{URL: repo.Bare})
	h, err := r.FetchHeads(t.Context(), nil, 3)
	if got := slices.Sorted(maps.Keys(h.Refs)); err != nil || h.Left != 4 || !slices.Equal(got, []string{"", "b0", "b1"}) {
		t.Errorf("followed are %v, %d left, %v", got, h.Left, err)
	}
}

// A reader works while the mirror changes, and tells what is not there from what
// cannot be read.
func TestReader(t *testing.T) {
	server := newServer(t)
	repo := server.NewRepo(t, "repo", "sha1")
	first := repo.Commit(t, map[string]string{"a": "1", "d/x": "2"})
	r := open(t, gitrepo.Options{URL: repo.Bare})
	heads(t, r)
	before := r.Reader()
	c, err := before.Commit(id(t, first))
	if err != nil || len(c.Parents) != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	second := repo.Commit(t, map[string]string{"a": "2", "d/x": "2"})
	heads(t, r)
	if _, err := before.Commit(id(t, second)); !errors.Is(err, gitrepo.ErrNoCommit) {
		t.Errorf("a commit that came later: %v", err)
	}
	now, err := r.Reader().Commit(id(t, second))
	if err != nil || len(now.Parents) != 1 || now.Parents[0].String() != first || now.Tree == c.Tree {
		t.Errorf("%+v, %v", now, err)
	}
	entries, err := r.Reader().Tree(now.Tree)
	if err != nil || len(entries) != 2 || entries[0].Name != "a" || entries[0].Kind != gitrepo.File || entries[1].Kind != gitrepo.Folder {
		t.Errorf("%+v, %v", entries, err)
	}
	if text, err := r.Reader().File(entries[0].ID, 1); err != nil || string(text) != "2" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := r.Reader().File(entries[0].ID, 0); !errors.Is(err, gitrepo.ErrTooLarge) {
		t.Errorf("a file over its bound: %v", err)
	}
	if _, err := r.Reader().Tree(id(t, second)); err == nil {
		t.Error("a commit is no folder")
	}
	if _, err := r.Reader().Commit(now.Tree); !errors.Is(err, gitrepo.ErrNoCommit) {
		t.Errorf("a folder is no commit: %v", err)
	}
}

// What a crash left of a pack is no obstacle, and an index without its pack is
// not taken for the whole one.
func TestFetchHeadsAfterCrash(t *testing.T) {
	server := newServer(t)
	repo := server.NewRepo(t, "repo", "sha1")
	first := repo.Commit(t, map[string]string{"a": "1"})
	o := gitrepo.Options{URL: repo.Bare, Dir: filepath.Join(t.TempDir(), "mirror")}
	heads(t, open(t, o))
	indexes, err := filepath.Glob(filepath.Join(o.Dir, "objects/pack/*.idx"))
	if err != nil || len(indexes) != 1 {
		t.Fatal(indexes, err)
	}
	if err := os.Chmod(indexes[0], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(indexes[0], []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(strings.TrimSuffix(indexes[0], "idx") + "pack"); err != nil {
		t.Fatal(err)
	}
	r := open(t, o)
	heads(t, r)
	if _, err := r.Reader().Commit(id(t, first)); err != nil {
		t.Error(err)
	}
	// A damaged pack: the mirror begins anew when it is told so.
	if err := os.WriteFile(indexes[0], []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = open(t, o)
	for range 2 { // the first one finds out
		_, err = r.FetchHeads(t.Context(), nil, 10)
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := r.Reader().Commit(id(t, first)); err != nil {
		t.Error(err)
	}
}

// A server without the whole history says so; a SHA-256 repository is refused.
func TestFetchHeadsOfOthers(t *testing.T) {
	server := newServer(t)
	url := serve(t, server)
	repo := server.NewRepo(t, "repo", "sha1")
	repo.Commit(t, map[string]string{"a": "1"})
	repo.Commit(t, map[string]string{"a": "2"})
	gittest.Git(t, server.Root, "clone", "--quiet", "--bare", "--depth", "1", "file://"+repo.Bare, "shallow.git")
	r := open(t, gitrepo.Options{URL: url + "/shallow.git"})
	if h, _ := heads(t, r); !h.Shallow {
		t.Errorf("a shallow server: %+v", h)
	}
	other := server.NewRepo(t, "other", "sha256")
	other.Commit(t, map[string]string{"a": "1"})
	r = open(t, gitrepo.Options{URL: url + "/" + other.Name})
	if _, err := r.FetchHeads(t.Context(), nil, 10); !errors.Is(err, gitrepo.ErrSHA256) {
		t.Errorf("SHA-256: %v", err)
	}
}

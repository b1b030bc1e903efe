package gitrepo_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
)

// draft makes a commit with one file, on top of a base.
func draft(t *testing.T, base gitrepo.ID, keep []gitrepo.Entry, name, text string) (*gitrepo.Draft, gitrepo.ID) {
	t.Helper()
	d := gitrepo.NewDraft()
	file, err := d.File([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	inner, err := d.Folder([]gitrepo.Entry{{Name: name, ID: file}})
	if err != nil {
		t.Fatal(err)
	}
	root, err := d.Folder(append([]gitrepo.Entry{{Name: "made", Kind: gitrepo.Folder, ID: inner}}, keep...))
	if err != nil {
		t.Fatal(err)
	}
	c := gitrepo.CommitText{Tree: root, By: gitrepo.Signature{Name: "landfall", Email: "landfall@example.invalid", When: time.Unix(1_700_000_000, 0)}, Message: "test\n"}
	if base != (gitrepo.ID{}) {
		c.Parents = []gitrepo.ID{base}
	}
	id, err := d.Commit(c)
	if err != nil {
		t.Fatal(err)
	}
	return d, id
}

// pushTargets are the ways to reach one bare repository.
func pushTargets(t *testing.T) map[string]func(name string) (url string, bare *gittest.Repo) {
	root := t.TempDir()
	server, err := gittest.New(root, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	return map[string]func(string) (string, *gittest.Repo){
		"http": func(name string) (string, *gittest.Repo) {
			r := server.NewRepo(t, name, "sha1")
			return web.URL + "/" + r.Name, r
		},
		"file": func(name string) (string, *gittest.Repo) { r := server.NewRepo(t, name, "sha1"); return r.Bare, r },
	}
}

func TestPush(t *testing.T) {
	for way, target := range pushTargets(t) {
		t.Run(way, func(t *testing.T) {
			url, bare := target("push-" + way)
			r, err := gitrepo.Open(gitrepo.Options{URL: url, Dir: filepath.Join(t.TempDir(), "mirror")})
			if err != nil {
				t.Fatal(err)
			}
			// The first commit of an empty repository.
			d, first := draft(t, gitrepo.ID{}, nil, "a", "1")
			if err := r.Push(t.Context(), "dev", d, gitrepo.ID{}, first); err != nil {
				t.Fatal(err)
			}
			got := strings.Fields(gittest.Git(t, bare.Bare, "log", "--format=%H %an %s", "dev"))
			if diff := cmp.Diff([]string{first.String(), "landfall", "test"}, got); diff != "" {
				t.Errorf("after the first push (-want +got):\n%s", diff)
			}
			// A second one keeps what it does not name by its id alone.
			commit, err := r.Fetch(t.Context(), "dev")
			if err != nil {
				t.Fatal(err)
			}
			base, _ := gitrepo.ParseID(commit)
			c, err := r.Reader().Commit(base)
			if err != nil {
				t.Fatal(err)
			}
			entries, err := r.Reader().Tree(c.Tree)
			if err != nil {
				t.Fatal(err)
			}
			entries[0].Name = "kept"
			d, second := draft(t, base, entries, "b", "2")
			if err := r.Push(t.Context(), "dev", d, base, second); err != nil {
				t.Fatal(err)
			}
			files := gittest.Git(t, bare.Bare, "ls-tree", "-r", "--name-only", "dev")
			if want := "kept/a\nmade/b\n"; files != want {
				t.Errorf("files = %q, want %q", files, want)
			}
			if out := gittest.Git(t, bare.Bare, "fsck", "--strict"); out != "" {
				t.Errorf("git fsck says %q", out)
			}
			// Whoever prepared his push before that has lost.
			d, late := draft(t, base, nil, "c", "3")
			if err := r.Push(t.Context(), "dev", d, base, late); !errors.Is(err, gitrepo.ErrRaced) {
				t.Errorf("a push on an old head: %v, want ErrRaced", err)
			}
			if err := r.Push(t.Context(), "dev", d, gitrepo.ID{}, late); !errors.Is(err, gitrepo.ErrRaced) {
				t.Errorf("a push that makes a branch that is there: %v, want ErrRaced", err)
			}
			if at := strings.TrimSpace(gittest.Git(t, bare.Bare, "rev-parse", "dev")); at != second.String() {
				t.Errorf("the branch is at %s, want %s", at, second)
			}
		})
	}
}

// TestPushRace moves the branch after the server has shown where it is.
func TestPushRace(t *testing.T) {
	for way, target := range pushTargets(t) {
		t.Run(way, func(t *testing.T) {
			url, bare := target("race-" + way)
			base := bare.Commit(t, map[string]string{"x": "1"})
			other := bare.Commit(t, map[string]string{"x": "2"})
			gittest.Git(t, bare.Bare, "update-ref", "refs/heads/"+gittest.Branch, base)
			bare.BeforeReceive(t, fmt.Sprintf("exec env -u GIT_QUARANTINE_PATH git update-ref refs/heads/%s %s", gittest.Branch, other))
			r, err := gitrepo.Open(gitrepo.Options{URL: url, Dir: filepath.Join(t.TempDir(), "mirror")})
			if err != nil {
				t.Fatal(err)
			}
			from, _ := gitrepo.ParseID(base)
			d, next := draft(t, from, nil, "a", "1")
			if err := r.Push(t.Context(), gittest.Branch, d, from, next); !errors.Is(err, gitrepo.ErrRaced) {
				t.Errorf("got %v, want ErrRaced", err)
			}
			if at := strings.TrimSpace(gittest.Git(t, bare.Bare, "rev-parse", gittest.Branch)); at != other {
				t.Errorf("the branch is at %s, want %s: nothing may be overwritten", at, other)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	for way, target := range pushTargets(t) {
		t.Run(way, func(t *testing.T) {
			url, bare := target("delete-" + way)
			r, err := gitrepo.Open(gitrepo.Options{URL: url, Dir: filepath.Join(t.TempDir(), "mirror")})
			if err != nil {
				t.Fatal(err)
			}
			d, first := draft(t, gitrepo.ID{}, nil, "a", "1")
			_, other := draft(t, gitrepo.ID{}, nil, "a", "2")
			for _, branch := range []string{"dev", "gone"} {
				if err := r.Push(t.Context(), branch, d, gitrepo.ID{}, first); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Delete(t.Context(), "gone", other); !errors.Is(err, gitrepo.ErrRaced) {
				t.Errorf("a branch that is elsewhere: %v, want ErrRaced", err)
			}
			if err := r.Delete(t.Context(), "gone", first); err != nil {
				t.Error(err)
			}
			if got := gittest.Git(t, bare.Bare, "for-each-ref", "--format=%(refname:short)"); got != "dev\n" {
				t.Errorf("there are %q", got)
			}
			if err := r.Delete(t.Context(), "gone", first); !errors.Is(err, gitrepo.ErrRaced) {
				t.Errorf("a branch that is not there: %v, want ErrRaced", err)
			}
			if err := r.Delete(t.Context(), "refs/tags/x", first); err == nil || !strings.Contains(err.Error(), `deleting "refs/tags/x" of`) {
				t.Errorf("a tag: %v", err)
			}
		})
	}
}

func TestPushRefused(t *testing.T) {
	for way, target := range pushTargets(t) {
		t.Run(way, func(t *testing.T) {
			url, bare := target("refused-" + way)
			bare.BeforeReceive(t, "echo 'this branch is protected' >&2; exit 1")
			r, err := gitrepo.Open(gitrepo.Options{URL: url, Dir: filepath.Join(t.TempDir(), "mirror")})
			if err != nil {
				t.Fatal(err)
			}
			d, next := draft(t, gitrepo.ID{}, nil, "a", "1")
			err = r.Push(t.Context(), "dev", d, gitrepo.ID{}, next)
			if err == nil || errors.Is(err, gitrepo.ErrRaced) || !strings.Contains(err.Error(), "pre-receive hook declined") {
				t.Errorf("got %v, want the server's refusal", err)
			}
			for _, branch := range []string{"", "refs/tags/x", strings.Repeat("a", 40), "a..b"} {
				if err := r.Push(t.Context(), branch, d, gitrepo.ID{}, next); err == nil {
					t.Errorf("a push to %q went through", branch)
				}
			}
		})
	}
}

func TestDraftRefusesNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", ".git", ".GIT", "a/b", "a\x00b", `a\b`} {
		if _, err := gitrepo.NewDraft().Folder([]gitrepo.Entry{{Name: name}}); !errors.Is(err, gitrepo.ErrUnsafe) {
			t.Errorf("a folder with the entry %q: %v, want ErrUnsafe", name, err)
		}
	}
	if _, err := gitrepo.NewDraft().Folder([]gitrepo.Entry{{Name: "a"}, {Name: "a", Kind: gitrepo.Folder}}); err == nil {
		t.Error("a folder with the same name twice was made")
	}
}

package publish_test

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/scheduler/publish"
)

const (
	mark   = "made by the scheduler"
	readme = "<!-- " + mark + " -->\n# A cluster type\n"
	branch = "dev"
)

// fixture is a GitOps repository.
type fixture struct {
	t    *testing.T
	bare *gittest.Repo
	opts publish.Options
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	server, err := gittest.New(t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	f := &fixture{t: t, bare: server.NewRepo(t, "gitops", "sha1")}
	repo, err := gitrepo.Open(gitrepo.Options{URL: web.URL + "/" + f.bare.Name, Dir: filepath.Join(t.TempDir(), "mirror")})
	if err != nil {
		t.Fatal(err)
	}
	f.opts = publish.Options{Repo: repo, Branch: branch, Name: "landfall", Email: "landfall@example.invalid", Now: time.Unix(1_700_000_000, 0), Message: "plan"}
	return f
}

func (f *fixture) push(want *publish.Desired) publish.Result {
	f.t.Helper()
	r, err := publish.Push(f.t.Context(), f.opts, want)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// files returns what the branch holds.
func (f *fixture) files() map[string]string {
	f.t.Helper()
	found := map[string]string{}
	for name := range strings.SplitSeq(strings.TrimSuffix(gittest.Git(f.t, f.bare.Bare, "ls-tree", "-r", "-z", "--name-only", branch), "\x00"), "\x00") {
		found[name] = gittest.Git(f.t, f.bare.Bare, "show", branch+":"+name)
	}
	return found
}

// seed makes the branch hold these files, by hand.
func (f *fixture) seed(files map[string]string) {
	f.t.Helper()
	f.bare.CommitTo(f.t, branch, files)
}

// plan wants these files, named cluster type/deployment target/file; one that
// ends in /! is an assignment that could not be planned.
func plan(files map[string]string) *publish.Desired {
	types := map[string]map[string]*publish.Assignment{}
	for name, text := range files {
		parts := strings.Split(name, "/")
		if types[parts[0]] == nil {
			types[parts[0]] = map[string]*publish.Assignment{}
		}
		a := types[parts[0]][parts[1]]
		if a == nil {
			a = &publish.Assignment{Name: parts[1]}
			types[parts[0]][parts[1]] = a
		}
		if parts[2] == "!" {
			a.Keep = true
			continue
		}
		a.Files = append(a.Files, publish.File{Name: parts[2], Text: []byte(text)})
	}
	want := &publish.Desired{Mark: mark}
	for name, assignments := range types {
		t := publish.ClusterType{Name: name, Readme: []byte(readme)}
		for _, a := range assignments {
			t.Assignments = append(t.Assignments, *a)
		}
		want.ClusterTypes = append(want.ClusterTypes, t)
	}
	return want
}

func TestPush(t *testing.T) {
	tests := map[string]struct {
		reason  string
		before  map[string]string
		want    *publish.Desired
		files   map[string]string
		summary publish.Summary
		same    bool
	}{
		"empty branch": {
			reason: "the first plan makes the branch",
			want:   plan(map[string]string{"drone/hello/reconciler.yaml": "1", "large/hello/reconciler.yaml": "2"}),
			files: map[string]string{
				"drone/README.md": readme, "drone/hello/reconciler.yaml": "1", "large/README.md": readme, "large/hello/reconciler.yaml": "2",
			},
			summary: publish.Summary{Added: []string{"drone/hello", "large/hello"}},
		},
		"others' files": {
			reason: "nothing but the scheduler's own folders is touched",
			before: map[string]string{
				"README.md": "r", ".github/workflows/a.yaml": "w", "docs/drone/x": "d", "drone/README.md": readme, "drone/note.txt": "n",
				"drone/.hidden/x": "h", "drone/hello/reconciler.yaml": "1", "run.sh": "s",
			},
			want: plan(map[string]string{"drone/hello/reconciler.yaml": "2"}),
			files: map[string]string{
				"README.md": "r", ".github/workflows/a.yaml": "w", "docs/drone/x": "d", "drone/README.md": readme, "drone/note.txt": "n",
				"drone/.hidden/x": "h", "drone/hello/reconciler.yaml": "2", "run.sh": "s",
			},
			summary: publish.Summary{Changed: []string{"drone/hello"}},
		},
		"nothing changed": {
			reason: "no commit is made",
			before: map[string]string{"drone/README.md": readme, "drone/hello/reconciler.yaml": "1"},
			want:   plan(map[string]string{"drone/hello/reconciler.yaml": "1"}),
			files:  map[string]string{"drone/README.md": readme, "drone/hello/reconciler.yaml": "1"},
			same:   true,
		},
		"assignment gone": {
			reason:  "in a marked folder, what is not planned is deleted",
			before:  map[string]string{"drone/README.md": readme, "drone/old/reconciler.yaml": "1", "drone/hello/old.yaml": "1", "drone/hello/reconciler.yaml": "1"},
			want:    plan(map[string]string{"drone/hello/reconciler.yaml": "1"}),
			files:   map[string]string{"drone/README.md": readme, "drone/hello/reconciler.yaml": "1"},
			summary: publish.Summary{Changed: []string{"drone/hello"}, Deleted: []string{"drone/old"}},
		},
		"cluster type gone": {
			reason: "its marked folder goes, one without the mark stays, and so do loose files",
			before: map[string]string{
				"drone/README.md": readme, "drone/hello/reconciler.yaml": "1", "large/README.md": readme, "large/hello/x.yaml": "1", "large/note.txt": "n",
				"small/README.md": "# mine\n", "small/hello/x.yaml": "1", "tiny/README.md": readme, "tiny/hello/x.yaml": "1",
			},
			want: plan(map[string]string{"drone/hello/reconciler.yaml": "1"}),
			files: map[string]string{
				"drone/README.md": readme, "drone/hello/reconciler.yaml": "1", "large/note.txt": "n", "small/README.md": "# mine\n", "small/hello/x.yaml": "1",
			},
			summary: publish.Summary{Deleted: []string{"large/hello", "tiny/hello"}},
		},
		"adopted": {
			reason: "in a folder without the mark, assignments are written and nothing is deleted",
			before: map[string]string{"drone/README.md": "# mine\n", "drone/old/x.yaml": "1", "drone/hello/extra.yaml": "e", "drone/hello/reconciler.yaml": "0"},
			want:   plan(map[string]string{"drone/hello/reconciler.yaml": "1", "drone/new/reconciler.yaml": "2"}),
			files: map[string]string{
				"drone/README.md": readme, "drone/old/x.yaml": "1", "drone/hello/extra.yaml": "e", "drone/hello/reconciler.yaml": "1", "drone/new/reconciler.yaml": "2",
			},
			summary: publish.Summary{Added: []string{"drone/new"}, Changed: []string{"drone/hello"}, Adopted: []string{"drone"}},
		},
		"mark below the first line": {
			reason:  "only the first line counts",
			before:  map[string]string{"large/README.md": "# mine\n" + readme, "large/hello/x.yaml": "1"},
			want:    plan(map[string]string{"drone/hello/reconciler.yaml": "1"}),
			files:   map[string]string{"drone/README.md": readme, "drone/hello/reconciler.yaml": "1", "large/README.md": "# mine\n" + readme, "large/hello/x.yaml": "1"},
			summary: publish.Summary{Added: []string{"drone/hello"}},
		},
		"kept": {
			reason: "what could not be planned stays as it was, and is not made up",
			before: map[string]string{"drone/README.md": readme, "drone/hello/reconciler.yaml": "1", "drone/other/reconciler.yaml": "1"},
			want:   plan(map[string]string{"drone/hello/!": "", "drone/never/!": "", "drone/other/reconciler.yaml": "2"}),
			files:  map[string]string{"drone/README.md": readme, "drone/hello/reconciler.yaml": "1", "drone/other/reconciler.yaml": "2"},
			summary: publish.Summary{
				Changed: []string{"drone/other"}, Kept: []string{"drone/hello"}, Missing: []string{"drone/never"},
			},
		},
		"a file in the way": {
			reason:  "a file where a folder is wanted is somebody's, and the rest goes on",
			before:  map[string]string{"drone": "f", "large/README.md": readme, "large/hello": "f"},
			want:    plan(map[string]string{"drone/hello/reconciler.yaml": "1", "large/hello/reconciler.yaml": "1", "large/more/reconciler.yaml": "1"}),
			files:   map[string]string{"drone": "f", "large/README.md": readme, "large/hello": "f", "large/more/reconciler.yaml": "1"},
			summary: publish.Summary{Added: []string{"large/more"}, Foreign: []string{"drone", "large/hello"}},
		},
		"not all is known": {
			reason: "a plan that may lack something deletes nothing",
			before: map[string]string{"drone/README.md": readme, "drone/old/x.yaml": "1", "large/README.md": readme, "large/hello/x.yaml": "1"},
			want: func() *publish.Desired {
				w := plan(map[string]string{"drone/hello/reconciler.yaml": "1"})
				w.KeepAll = true
				return w
			}(),
			files: map[string]string{
				"drone/README.md": readme, "drone/hello/reconciler.yaml": "1", "drone/old/x.yaml": "1", "large/README.md": readme, "large/hello/x.yaml": "1",
			},
			summary: publish.Summary{Added: []string{"drone/hello"}},
		},
		"promoted": {
			reason: "the promoted commit is noted beside what else is there",
			before: map[string]string{".github/workflows/a.yaml": "w", "drone/README.md": readme, "drone/hello/reconciler.yaml": "1"},
			want: func() *publish.Desired {
				w := plan(map[string]string{"drone/hello/reconciler.yaml": "1"})
				w.PromotedCommit = "9e04"
				return w
			}(),
			files: map[string]string{
				".github/workflows/a.yaml": "w", publish.PromotedFile: "9e04\n", "drone/README.md": readme, "drone/hello/reconciler.yaml": "1",
			},
			summary: publish.Summary{Promoted: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if test.before != nil {
				f.seed(test.before)
			}
			r := f.push(test.want)
			if diff := cmp.Diff(test.files, f.files()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(test.summary, r.Summary, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
			if r.Changed == test.same {
				t.Errorf("changed = %t", r.Changed)
			}
			head := strings.TrimSpace(gittest.Git(t, f.bare.Bare, "rev-parse", branch))
			if r.Commit != head {
				t.Errorf("commit = %s, the branch is at %s", r.Commit, head)
			}
			gittest.Git(t, f.bare.Bare, "fsck", "--strict")
			// What is adopted is the scheduler's own from the second commit on.
			if again := f.push(test.want); again.Changed && len(r.Summary.Adopted) == 0 {
				t.Errorf("the same plan made a second commit: %+v", again.Summary)
			}
		})
	}
}

// TestAdoptedFolderIsOursFromThenOn deletes in the second commit what the first
// one left.
func TestAdoptedFolderIsOursFromThenOn(t *testing.T) {
	f := newFixture(t)
	f.seed(map[string]string{"drone/old/x.yaml": "1"})
	want := plan(map[string]string{"drone/hello/reconciler.yaml": "1"})
	f.push(want)
	f.push(plan(map[string]string{"drone/hello/reconciler.yaml": "2"}))
	if diff := cmp.Diff(map[string]string{"drone/README.md": readme, "drone/hello/reconciler.yaml": "2"}, f.files()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPushAfterALostRace moves the branch between fetch and push, once.
func TestPushAfterALostRace(t *testing.T) {
	f := newFixture(t)
	f.seed(map[string]string{"a": "1"})
	gittest.Git(t, f.bare.Tree, "commit", "--quiet", "--allow-empty", "--message", "another")
	other := strings.TrimSpace(gittest.Git(t, f.bare.Tree, "rev-parse", "HEAD"))
	gittest.Git(t, f.bare.Tree, "push", "--quiet", f.bare.Bare, "HEAD:refs/heads/elsewhere")
	once := filepath.Join(t.TempDir(), "once")
	f.bare.BeforeReceive(t, fmt.Sprintf("mkdir %q 2>/dev/null || exit 0\nexec env -u GIT_QUARANTINE_PATH git update-ref refs/heads/%s %s", once, branch, other))
	r := f.push(plan(map[string]string{"drone/hello/reconciler.yaml": "1"}))
	if !r.Changed || r.Before != other {
		t.Errorf("published on %s, want on %s", r.Before, other)
	}
	if log := strings.Fields(gittest.Git(t, f.bare.Bare, "rev-list", branch)); len(log) != 3 || log[1] != other {
		t.Errorf("the branch's history is %v, want the other commit below ours", log)
	}
}

// TestRandomPlans compares many plans in a row with a plain map of files.
func TestRandomPlans(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	f := newFixture(t)
	f.seed(map[string]string{"README.md": "r", "docs/x": "d"})
	want := map[string]string{"README.md": "r", "docs/x": "d"}
	for range 30 {
		files := map[string]string{}
		for range random.IntN(12) + 1 {
			files[fmt.Sprintf("type-%d/target-%d/file-%d.yaml", random.IntN(3), random.IntN(3), random.IntN(2))] = fmt.Sprint(random.IntN(3))
		}
		var kept string
		if random.IntN(2) == 0 {
			kept = fmt.Sprintf("type-%d/target-%d", random.IntN(3), random.IntN(3))
			files[kept+"/!"] = ""
		}
		next := map[string]string{"README.md": "r", "docs/x": "d"}
		for name, text := range files {
			next[name[:strings.Index(name, "/")]+"/README.md"] = readme
			if kept == "" || !strings.HasPrefix(name, kept+"/") {
				next[name] = text
			}
		}
		for name, text := range want {
			if kept != "" && strings.HasPrefix(name, kept+"/") {
				next[name] = text
			}
		}
		f.push(plan(files))
		if diff := cmp.Diff(next, f.files()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		want = next
	}
}

func TestPushRefuses(t *testing.T) {
	tests := map[string]*publish.Desired{
		"no mark":           {ClusterTypes: []publish.ClusterType{{Name: "a", Readme: []byte(readme)}}},
		"readme unmarked":   {Mark: mark, ClusterTypes: []publish.ClusterType{{Name: "a", Readme: []byte("# a\n" + readme)}}},
		"cluster type ..":   plan(map[string]string{"../hello/x.yaml": "1"}),
		"cluster type .git": plan(map[string]string{".git/hello/x.yaml": "1"}),
		"target ..":         plan(map[string]string{"drone/../x.yaml": "1"}),
		"target README.md":  plan(map[string]string{"drone/README.md/x.yaml": "1"}),
		"file ..":           plan(map[string]string{"drone/hello/..": "1"}),
		"twice":             {Mark: mark, ClusterTypes: slices.Repeat([]publish.ClusterType{{Name: "a", Readme: []byte(readme)}}, 2)},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.seed(map[string]string{"a": "1"})
			if r, err := publish.Push(t.Context(), f.opts, want); err == nil {
				t.Errorf("published %+v", r)
			}
			if diff := cmp.Diff(map[string]string{"a": "1"}, f.files()); diff != "" {
				t.Errorf("something was written (-want +got):\n%s", diff)
			}
		})
	}
}

package publish_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/scheduler/publish"
)

// world is a plan of so many assignments, a hundredth of them on each cluster
// type, with files of real size.
func world(assignments int, changed string) *publish.Desired {
	want := &publish.Desired{Mark: mark}
	text := func(file, name string) []byte {
		return fmt.Appendf(nil, "# %s of %s\n%s", file, name, bytes.Repeat([]byte("key: a value that configurations have\n"), 15))
	}
	for i := range 100 {
		t := publish.ClusterType{Name: fmt.Sprintf("type-%03d", i), Readme: []byte(readme)}
		for j := range assignments / 100 {
			a := publish.Assignment{Name: fmt.Sprintf("workload-%04d-target", j)}
			for _, file := range []string{"namespace.yaml", "platform-config.yaml", "reconciler.yaml"} {
				a.Files = append(a.Files, publish.File{Name: file, Text: text(file, t.Name+"/"+a.Name)})
			}
			if i == 0 && j == 0 {
				a.Files[0].Text = append(a.Files[0].Text, changed...)
			}
			a.Version = version(a.Files)
			t.Assignments = append(t.Assignments, a)
		}
		want.ClusterTypes = append(want.ClusterTypes, t)
	}
	return want
}

// version is what a plan knows of its assignments.
func version(files []publish.File) string {
	var entries []gitrepo.Entry
	for _, f := range files {
		entries = append(entries, gitrepo.Entry{Name: f.Name, ID: gitrepo.FileID(f.Text)})
	}
	id, err := gitrepo.FolderID(entries)
	if err != nil {
		panic(err)
	}
	return id.String()
}

// BenchmarkPublish is the first commit of a plan, then one with one changed file,
// over HTTP; beside git fast-import of the same tree.
func BenchmarkPublish(b *testing.B) {
	for _, size := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			root := b.TempDir()
			server, err := gittest.New(root, b.Output())
			if err != nil {
				b.Fatal(err)
			}
			web := httptest.NewServer(server)
			defer web.Close()
			var first, change, same, yardstick time.Duration
			for n := 0; b.Loop(); n++ {
				bare := server.NewRepo(b, fmt.Sprintf("gitops-%d", n), "sha1")
				repo, err := gitrepo.Open(gitrepo.Options{URL: web.URL + "/" + bare.Name, Dir: filepath.Join(b.TempDir(), "mirror"), Depth: 1})
				if err != nil {
					b.Fatal(err)
				}
				o := publish.Options{Repo: repo, Branch: branch, Name: "landfall", Email: "landfall@example.invalid", Now: time.Unix(1_700_000_000, 0), Message: "plan\n"}
				push := func(want *publish.Desired, changes bool) time.Duration {
					began := time.Now() // the plan is there
					r, err := publish.Push(b.Context(), o, want)
					if err != nil || r.Changed != changes {
						b.Fatalf("%+v, %v", r.Changed, err)
					}
					return time.Since(began)
				}
				first += push(world(size, ""), true)
				push(world(size, "# warm\n"), true) // the mirror has the first commit from here on
				change += push(world(size, "# changed\n"), true)
				same += push(world(size, "# changed\n"), false)
				yardstick += fastImport(b, root, n, world(size, ""))
			}
			count := time.Duration(b.N)
			b.ReportMetric((first / count).Seconds(), "first-s")
			b.ReportMetric((change / count).Seconds(), "one-file-s")
			b.ReportMetric((same / count).Seconds(), "nothing-s")
			b.ReportMetric((yardstick / count).Seconds(), "fast-import-s")
			b.ReportMetric(first.Seconds()/yardstick.Seconds(), "first/fast-import")
		})
	}
}

// fastImport has Git's own program write the same tree.
func fastImport(b *testing.B, root string, n int, want *publish.Desired) time.Duration {
	b.Helper()
	dir := filepath.Join(root, fmt.Sprintf("yardstick-%d.git", n))
	gittest.Git(b, root, "init", "--quiet", "--bare", dir)
	var in bytes.Buffer
	fmt.Fprintf(&in, "commit refs/heads/dev\ncommitter landfall <landfall@example.invalid> 1700000000 +0000\ndata 5\nplan\n\n")
	file := func(name string, text []byte) {
		fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
	}
	for _, t := range want.ClusterTypes {
		file(t.Name+"/README.md", t.Readme)
		for _, a := range t.Assignments {
			for _, f := range a.Files {
				file(t.Name+"/"+a.Name+"/"+f.Name, f.Text)
			}
		}
	}
	began := time.Now()
	cmd := exec.CommandContext(b.Context(), "git", "-C", dir, "fast-import", "--quiet")
	cmd.Stdin = &in
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git fast-import: %v: %s", err, out)
	}
	return time.Since(began)
}

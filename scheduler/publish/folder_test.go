package publish_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/scheduler/publish"
)

// onDisk makes a folder of files.
func onDisk(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func filesOnDisk(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	if err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		found[filepath.ToSlash(rel)] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFolder(t *testing.T) {
	before := map[string]string{
		".git/config": "c", "README.md": "r", "drone/README.md": readme, "drone/old/deep/x.yaml": "1", "drone/hello/reconciler.yaml": "1", "drone/hello/gone.yaml": "1",
		"mine/x": "m", "large/README.md": readme, "large/hello/x.yaml": "1",
	}
	dir := onDisk(t, before)
	if err := os.Symlink("README.md", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	untouched, err := os.Stat(filepath.Join(dir, "mine", "x"))
	if err != nil {
		t.Fatal(err)
	}
	want := plan(map[string]string{"drone/hello/reconciler.yaml": "2", "drone/kept/!": "", "small/hello/reconciler.yaml": "3"})
	want.PromotedCommit = "9e04"
	f, err := publish.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.Compare(want)
	if err != nil {
		t.Fatal(err)
	}
	before["link"] = "r"
	if diff := cmp.Diff(before, filesOnDisk(t, dir)); diff != "" {
		t.Errorf("a comparison wrote something (-want +got):\n%s", diff)
	}
	var text strings.Builder
	if err := c.Diff(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"+++ b/drone/hello/reconciler.yaml", "-1", "+2", "--- a/drone/old/deep/x.yaml", "+++ b/small/README.md", "+9e04"} {
		if !strings.Contains(text.String(), "\n"+line) {
			t.Errorf("the diff lacks %q:\n%s", line, &text)
		}
	}
	if err := c.Write(); err != nil {
		t.Fatal(err)
	}
	after := map[string]string{
		".git/config": "c", "README.md": "r", "link": "r", "drone/README.md": readme, "drone/hello/reconciler.yaml": "2", "mine/x": "m",
		"small/README.md": readme, "small/hello/reconciler.yaml": "3", publish.PromotedFile: "9e04\n",
	}
	if diff := cmp.Diff(after, filesOnDisk(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, gone := range []string{"drone/old", "large"} {
		if _, err := os.Lstat(filepath.Join(dir, gone)); err == nil {
			t.Errorf("the empty folder %s is still there", gone)
		}
	}
	if now, err := os.Stat(filepath.Join(dir, "mine", "x")); err != nil || !os.SameFile(now, untouched) || !now.ModTime().Equal(untouched.ModTime()) {
		t.Errorf("a file of somebody else was written: %v", err)
	}
	if f, err = publish.OpenFolder(dir); err != nil {
		t.Fatal(err)
	}
	if c, err = f.Compare(want); err != nil || !c.Empty() {
		t.Errorf("the same plan changes something again: %+v, %v", c.Summary, err)
	}
}

// TestFolderThatIsNotThere makes it.
func TestFolderThatIsNotThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	f, err := publish.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.Compare(plan(map[string]string{"drone/hello/reconciler.yaml": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"drone/README.md": readme, "drone/hello/reconciler.yaml": "1"}, filesOnDisk(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

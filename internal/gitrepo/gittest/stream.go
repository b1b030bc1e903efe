package gittest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Stream writes a history for git fast-import, which makes thousands of commits
// a second.
type Stream struct {
	text bytes.Buffer
	// known are the ids of the first commits, which are in the repository already.
	known []string
	// commits have the marks from 1 on, blobs those above them.
	commits int
	clock   int
}

// NewStream makes an empty one.
func NewStream() *Stream { return &Stream{clock: 1_700_000_000} }

// ContinueFrom says that all commits so far are in the repository.
func (s *Stream) ContinueFrom(ids []string) {
	s.text.Reset()
	s.known = ids
}

// name is how the stream names a commit.
func (s *Stream) name(n int) string {
	if n < len(s.known) {
		return s.known[n]
	}
	return fmt.Sprint(":", n+1)
}

// Commit adds a commit of parents, by their numbers, and returns its own. Files
// change what the first parent had; an empty text removes a file, "-> x" is a
// link.
func (s *Stream) Commit(parents []int, files map[string]string) int {
	n := s.commits
	s.commits++
	s.clock++
	fmt.Fprintf(&s.text, "commit refs/made/%d\nmark :%d\ncommitter test <test@example.invalid> %d +0000\ndata <<.\n%d\n.\n", n, n+1, s.clock, n)
	for i, p := range parents {
		word := "merge"
		if i == 0 {
			word = "from"
		}
		fmt.Fprintf(&s.text, "%s %s\n", word, s.name(p))
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		switch target, link := strings.CutPrefix(text, "-> "); {
		case text == "":
			fmt.Fprintf(&s.text, "D %s\n", name)
		case link:
			fmt.Fprintf(&s.text, "M 120000 inline %s\ndata %d\n%s\n", name, len(target), target)
		default:
			fmt.Fprintf(&s.text, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
		}
	}
	fmt.Fprintln(&s.text)
	return n
}

// Branch puts a branch at a commit.
func (s *Stream) Branch(name string, at int) {
	fmt.Fprintf(&s.text, "reset refs/heads/%s\nfrom %s\n\n", name, s.name(at))
}

// Into writes the history into a bare repository, which is made where it is
// missing, and returns the ids by number. The refs that held every commit are
// removed: a server shows branches only.
func (s *Stream) Into(tb testing.TB, dir string) (ids []string) {
	tb.Helper()
	feed(tb, dir, nil, "init", "--quiet", "--bare", "--initial-branch", "main", ".")
	marks := filepath.Join(tb.TempDir(), "marks")
	feed(tb, dir, s.text.Bytes(), "fast-import", "--quiet", "--force", "--export-marks="+marks)
	text, err := os.ReadFile(marks)
	if err != nil {
		tb.Fatal(err)
	}
	ids = append(make([]string, 0, s.commits), s.known...)[:s.commits]
	var drop bytes.Buffer
	for line := range strings.Lines(string(text)) {
		var mark int
		var id string
		if _, err := fmt.Sscanf(line, ":%d %s", &mark, &id); err != nil {
			tb.Fatal(err)
		}
		ids[mark-1] = id
		fmt.Fprintf(&drop, "delete refs/made/%d\n", mark-1)
	}
	feed(tb, dir, drop.Bytes(), "update-ref", "--stdin")
	return ids
}

// feed runs a command of Git in a folder with something to read.
func feed(tb testing.TB, dir string, in []byte, args ...string) {
	tb.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(in)
	cmd.Env = append(cmd.Environ(), environment(dir)...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := cmd.Run(); err != nil {
		tb.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, complaint.String())
	}
}

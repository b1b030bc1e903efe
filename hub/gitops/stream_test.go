package gitops

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
)

// stream is a history that is made up.
type stream struct{ *gittest.Stream }

func newStream() *stream { return &stream{gittest.NewStream()} }

func (s *stream) continueFrom(ids []string) { s.ContinueFrom(ids) }

func (s *stream) commit(parents []int, files map[string]string) int { return s.Commit(parents, files) }

func (s *stream) branch(name string, at int) { s.Branch(name, at) }

func (s *stream) into(tb testing.TB, dir string) []string {
	tb.Helper()
	return s.Into(tb, dir)
}

// git runs a command in a folder and returns what it prints.
func git(tb testing.TB, dir string, in []byte, args ...string) string {
	tb.Helper()
	out, err := tryGit(dir, in, args...)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func tryGit(dir string, in []byte, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(in)
	cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, complaint.String())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// Package gittest gives tests a real Git server: bare repositories served over
// HTTP by Git's own program.
package gittest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// environment keeps the machine's and the user's Git settings out.
func environment(home string) []string {
	return []string{
		"GIT_CONFIG_GLOBAL=" + filepath.Join(home, ".gitconfig"), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.invalid", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.invalid",
	}
}

// Server serves the bare repositories below its Root.
type Server struct {
	Root    string
	backend *cgi.Handler
}

// New makes a server for the repositories below root. What Git complains of
// goes to log.
func New(root string, log io.Writer) (*Server, error) {
	folder, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("asking git where its programs are: %w", err)
	}
	return &Server{Root: root, backend: &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(folder)), "git-http-backend"), Root: "/", Stderr: log,
		Env: append(environment(root), "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test"),
	}}, nil
}

// ServeHTTP serves /NAME.git.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.backend.ServeHTTP(w, r) }

// Branch is the first one of every repository.
const Branch = "main"

// Repo is a bare repository with a work tree from which it is filled.
type Repo struct {
	// Name is NAME.git, Bare its folder, Tree the work tree.
	Name, Bare, Tree string
}

// NewRepo makes an empty repository; format is sha1 or sha256.
func (s *Server) NewRepo(t testing.TB, name, format string) *Repo {
	t.Helper()
	r := &Repo{Name: name + ".git", Bare: filepath.Join(s.Root, name+".git"), Tree: t.TempDir()}
	Git(t, s.Root, "init", "--quiet", "--bare", "--object-format", format, "--initial-branch", Branch, r.Bare)
	Git(t, r.Tree, "init", "--quiet", "--object-format", format, "--initial-branch", Branch)
	return r
}

// Write makes the work tree hold these files, by their paths, and no others.
func (r *Repo) Write(t testing.TB, files map[string]string) {
	t.Helper()
	Git(t, r.Tree, "rm", "-r", "-f", "--quiet", "--ignore-unmatch", ".")
	for name, text := range files {
		name = filepath.Join(r.Tree, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Commit is Write, and pushes the commit to Branch.
func (r *Repo) Commit(t testing.TB, files map[string]string) (id string) {
	t.Helper()
	r.Write(t, files)
	return r.CommitTree(t)
}

// CommitTree commits the work tree as it is, and pushes the commit to Branch,
// whatever was there.
func (r *Repo) CommitTree(t testing.TB) (id string) {
	t.Helper()
	Git(t, r.Tree, "add", "--all")
	Git(t, r.Tree, "commit", "--quiet", "--allow-empty", "--message", "test")
	r.Push(t, "HEAD:refs/heads/"+Branch)
	return strings.TrimSpace(Git(t, r.Tree, "rev-parse", "HEAD"))
}

// Push pushes a refspec by the file system: a server that refuses everybody must
// not refuse the test.
func (r *Repo) Push(t testing.TB, refspec string) {
	t.Helper()
	Git(t, r.Tree, "push", "--quiet", "--force", r.Bare, refspec)
}

// Git runs a command of Git in a folder and returns what it prints.
func Git(t testing.TB, folder string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = folder, append(cmd.Environ(), environment(folder)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

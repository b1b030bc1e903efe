// Package gittest gives tests a real Git server: bare repositories served over
// HTTP by Git's own program.
package gittest

import (
	"bytes"
	"errors"
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
		// No housekeeping after every command and no sample files.
		"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false",
		"GIT_CONFIG_KEY_1=receive.autoGC", "GIT_CONFIG_VALUE_1=false", "GIT_CONFIG_KEY_2=init.templateDir", "GIT_CONFIG_VALUE_2=",
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

// Repo is a bare repository and one with a work tree from which it is filled.
// The two have the same objects, and refs of their own.
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
	objects := filepath.Join(r.Tree, ".git", "objects")
	if err := errors.Join(os.RemoveAll(objects), os.Symlink(filepath.Join(r.Bare, "objects"), objects)); err != nil {
		t.Fatal(err)
	}
	return r
}

// Write makes the work tree hold these files, by their paths, and no others.
func (r *Repo) Write(t testing.TB, files map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(r.Tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == ".git" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.Tree, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
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

// Commit is CommitTo for Branch.
func (r *Repo) Commit(t testing.TB, files map[string]string) (id string) {
	t.Helper()
	return r.CommitTo(t, Branch, files)
}

// CommitTo is Write, and makes the commit the head of a branch.
func (r *Repo) CommitTo(t testing.TB, branch string, files map[string]string) (id string) {
	t.Helper()
	r.Write(t, files)
	return r.commitTree(t, branch)
}

// CommitTree commits the work tree as it is, and makes the commit the head of
// Branch, whatever was there.
func (r *Repo) CommitTree(t testing.TB) (id string) {
	t.Helper()
	return r.commitTree(t, Branch)
}

func (r *Repo) commitTree(t testing.TB, branch string) (id string) {
	t.Helper()
	Git(t, r.Tree, "add", "--all")
	Git(t, r.Tree, "commit", "--quiet", "--allow-empty", "--message", "test")
	id = strings.TrimSpace(Git(t, r.Tree, "rev-parse", "HEAD"))
	Git(t, r.Bare, "update-ref", "refs/heads/"+branch, id)
	return id
}

// Push pushes a refspec by the file system: a server that refuses everybody must
// not refuse the test.
func (r *Repo) Push(t testing.TB, refspec string) {
	t.Helper()
	Git(t, r.Tree, "push", "--quiet", "--force", r.Bare, refspec)
}

// BeforeReceive makes the bare repository run a shell script with each push
// before it takes anything of it; if the script fails, nothing is.
func (r *Repo) BeforeReceive(t testing.TB, script string) {
	t.Helper()
	hooks := filepath.Join(r.Bare, "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(hooks, "pre-receive"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
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

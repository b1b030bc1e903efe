//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// gitEnv keeps the machine's and the user's Git settings out.
func gitEnv(home string) []string {
	return []string{
		"GIT_CONFIG_GLOBAL=" + filepath.Join(home, ".gitconfig"), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=e2e", "GIT_AUTHOR_EMAIL=e2e@example.invalid", "GIT_COMMITTER_NAME=e2e", "GIT_COMMITTER_EMAIL=e2e@example.invalid",
	}
}

// gitServer serves bare repositories over HTTP, as Git's own program does it.
type gitServer struct {
	url    string
	root   string
	server *http.Server
	done   chan struct{}
	log    *os.File

	mu      sync.Mutex
	refused map[string]bool
}

func startGit() (*gitServer, error) {
	git, err := installed("git", "install it")
	if err != nil {
		return nil, err
	}
	folder, err := exec.Command(git, "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("asking git where its programs are: %w", err)
	}
	root, err := newFolder("git")
	if err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", addresses[0])
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(logFolder(), "git.log"))
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(folder)), "git-http-backend"), Root: "/", Stderr: log,
		Env: append(gitEnv(root), "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=e2e"),
	}
	s := &gitServer{url: "http://" + addresses[0], root: root, done: make(chan struct{}), log: log, refused: map[string]bool{}}
	s.server = &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		refused := s.refuses(name)
		fmt.Fprintln(log, time.Now().UTC().Format(time.RFC3339Nano), r.Method, r.URL, r.Header.Get("User-Agent"), "refused:", refused)
		if refused {
			http.Error(w, "out of order", http.StatusServiceUnavailable)
			return
		}
		backend.ServeHTTP(w, r)
	})}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener)
	}()
	return s, nil
}

func (s *gitServer) refuses(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused[name]
}

func (s *gitServer) stop() error {
	err := s.server.Close()
	<-s.done
	return errors.Join(err, s.log.Close())
}

// repo is a repository with one branch.
type repo struct {
	url, name string
	server    *gitServer
	tree      string
}

// branch is the only one of every repository.
const branch = "main"

// newRepo makes an empty repository on the server.
func (s *gitServer) newRepo(t testing.TB, name string) *repo {
	t.Helper()
	bare := filepath.Join(s.root, name+".git")
	git(t, s.root, "init", "--quiet", "--bare", "--initial-branch", branch, bare)
	git(t, bare, "config", "http.receivepack", "true")
	r := &repo{url: s.url + "/" + name + ".git", name: name + ".git", server: s, tree: t.TempDir()}
	git(t, r.tree, "init", "--quiet", "--initial-branch", branch)
	return r
}

// refuse makes the server answer with an error, or serve the repository again.
func (r *repo) refuse(refused bool) {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.server.refused[r.name] = refused
}

// commit makes the tree what a folder of testdata holds, templates filled in, and
// pushes it. It returns the commit's id.
func (r *repo) commit(t testing.TB, folder string, values any) string {
	t.Helper()
	files := map[string]string{}
	from := filepath.Join("testdata", folder)
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		files[below], err = fill(string(text), values)
		return err
	})
	if err != nil {
		t.Fatalf("reading what to commit: %v", err)
	}
	return r.commitFiles(t, files)
}

// commitFiles is commit with the files given, by their paths.
func (r *repo) commitFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	git(t, r.tree, "rm", "-r", "--quiet", "--ignore-unmatch", ".")
	for path, text := range files {
		path = filepath.Join(r.tree, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, r.tree, "add", "--all")
	git(t, r.tree, "commit", "--quiet", "--allow-empty", "--message", "e2e")
	r.push(t)
	return strings.TrimSpace(git(t, r.tree, "rev-parse", "HEAD"))
}

// push makes the branch what it is here, whatever it was. It goes by the file
// system: a server that refuses everybody must not refuse the test.
func (r *repo) push(t testing.TB) {
	t.Helper()
	git(t, r.tree, "push", "--quiet", "--force", filepath.Join(r.server.root, r.name), branch)
}

// goBack has the next commit follow an earlier one. The server hears of it with
// the next push.
func (r *repo) goBack(t testing.TB, commit string) {
	t.Helper()
	git(t, r.tree, "reset", "--quiet", "--hard", commit)
}

func git(t testing.TB, folder string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = folder, append(gitEnv(folder), "PATH="+os.Getenv("PATH"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

package gitrepo_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
)

// newServer serves repositories; wrap, where given, stands before it.
func newServer(t *testing.T) *gittest.Server {
	t.Helper()
	s, err := gittest.New(t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func open(t *testing.T, o gitrepo.Options) *gitrepo.Repo {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "mirror")
	}
	r, err := gitrepo.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fetch(t *testing.T, r *gitrepo.Repo, ref, want string) {
	t.Helper()
	got, err := r.Fetch(t.Context(), ref)
	if err != nil || got != want {
		t.Fatalf("%q is at %s, %v; want %s", ref, got, err, want)
	}
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	file = filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Each kind of address, each depth: what moves, comes and goes.
func TestFetch(t *testing.T) {
	server := newServer(t)
	url := serve(t, server)
	sshURL, sshAuth := serveSSH(t, server.Root)
	cases := map[string]struct {
		reason string
		url    func(*gittest.Repo) string
		auth   gitrepo.Auth
	}{
		"http":   {"most repositories", func(r *gittest.Repo) string { return url + "/" + r.Name }, gitrepo.Auth{}},
		"ssh":    {"a client of our own", func(r *gittest.Repo) string { return sshURL + "/" + r.Name }, sshAuth},
		"file":   {"a URL of a folder runs git", func(r *gittest.Repo) string { return "file://" + r.Bare }, gitrepo.Auth{}},
		"folder": {"a plain folder is one too", func(r *gittest.Repo) string { return r.Bare }, gitrepo.Auth{}},
	}
	for name, c := range cases {
		for _, depth := range []int{0, 1, 3} {
			if depth == 3 && name != "http" {
				continue // a number between the two says nothing more of the others
			}
			t.Run(fmt.Sprintf("%s, depth %d", name, depth), func(t *testing.T) {
				repo := server.NewRepo(t, fmt.Sprintf("%s-%d", name, depth), "sha1")
				o := gitrepo.Options{URL: c.url(repo), Auth: c.auth, Depth: depth, Dir: filepath.Join(t.TempDir(), "mirror")}
				r := open(t, o)
				if _, err := r.Fetch(t.Context(), "main"); !errors.Is(err, gitrepo.ErrRefMissing) {
					t.Errorf("an empty repository: %v", err)
				}
				first := repo.Commit(t, map[string]string{"drone/a": "1", "large/a": "1"})
				fetch(t, r, "main", first)
				fetch(t, r, "main", first)
				fetch(t, r, "", first)
				fetch(t, r, "HEAD", first)
				fetch(t, r, "refs/heads/main", first)
				var last string
				for i := range 5 {
					last = repo.Commit(t, map[string]string{"drone/a": fmt.Sprint(i), "large/a": "1"})
				}
				fetch(t, r, "main", last)
				holds(t, r, last, "large", "a", "1") // what did not change came before
				gittest.Git(t, repo.Tree, "tag", "-a", "v1", "-m", "v1")
				repo.Push(t, "v1")
				fetch(t, r, "refs/tags/v1", last)
				next := repo.Commit(t, map[string]string{"drone/a": "x"})
				gittest.Git(t, repo.Tree, "tag", "-a", "v2", "-m", "v2")
				repo.Push(t, "v2")
				fetch(t, r, "refs/tags/v2", next) // by the tag, not by the branch

				// A restart, and a history written anew.
				r = open(t, o)
				gittest.Git(t, repo.Tree, "reset", "--quiet", "--hard", first)
				forced := repo.Commit(t, map[string]string{"drone/a": "forced", "large/a": "1"})
				fetch(t, r, "main", forced)
				holds(t, r, forced, "", "drone/a", "forced")
				fetch(t, r, last, last) // a commit that the mirror has
				if _, err := r.Fetch(t.Context(), "gone"); !errors.Is(err, gitrepo.ErrRefMissing) || !strings.Contains(err.Error(), "refs/heads/gone") {
					t.Errorf("a branch that is not there: %v", err)
				}
				if _, err := r.Fetch(t.Context(), strings.Repeat("1", 40)); err == nil {
					t.Error("a commit that nobody has was fetched")
				}
				gittest.Git(t, o.Dir, "fsck", "--connectivity-only")
				commits := strings.Fields(gittest.Git(t, o.Dir, "rev-list", forced))
				if want := map[int]int{0: 2, 1: 1, 3: 2}[depth]; len(commits) != want {
					t.Errorf("the mirror has %d commits of the branch, want %d", len(commits), want)
				}
			})
		}
	}
}

// holds materializes a folder and looks at one of its files.
func holds(t *testing.T, r *gitrepo.Repo, commit, folder, file, want string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	if err := r.Materialize(t.Context(), commit, folder, dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil || string(text) != want {
		t.Errorf("%s holds %q, %v; want %q", file, text, err, want)
	}
}

// What a server refuses is told apart, and no error shows who asked.
func TestRefusals(t *testing.T) {
	server := newServer(t)
	repo := server.NewRepo(t, "repo", "sha1")
	head := repo.Commit(t, map[string]string{"a": "1"})
	server.NewRepo(t, "long", "sha256").Commit(t, map[string]string{"a": "1"})
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, strings.Repeat("said "+r.Header.Get("Authorization")+" ", 100_000), code)
		})
	}
	private := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "hunter2" {
			status(http.StatusUnauthorized).ServeHTTP(w, r)
			return
		}
		server.ServeHTTP(w, r)
	})
	elsewhere := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the password followed a redirect to another server")
		}
		server.ServeHTTP(w, r)
	}))
	redirect := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere+r.URL.RequestURI(), http.StatusFound)
	})
	flood := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "001e# service=git-upload-pack\n0000"+"0047"+strings.Repeat("1", 40)+" refs/heads/main\x00ofs-delta\n")
		for range 100_000 {
			if _, err := w.Write([]byte("003e" + strings.Repeat("1", 40) + " refs/heads/12345\n")); err != nil {
				return
			}
		}
	})
	cases := map[string]struct {
		reason string
		server http.Handler
		repo   string
		user   string
		auth   gitrepo.Auth
		want   error
	}{
		"in the address":     {"git takes it there", private, "repo", "me:hunter2@", gitrepo.Auth{}, nil},
		"from a file":        {"where it belongs", private, "repo", "", gitrepo.Auth{Username: "me", TokenFile: write(t, "token", "hunter2\n")}, nil},
		"nobody":             {"401", private, "repo", "", gitrepo.Auth{}, gitrepo.ErrAuth},
		"wrong password":     {"401 again", private, "repo", "me:s3cr3t@", gitrepo.Auth{}, gitrepo.ErrAuth},
		"forbidden":          {"403", status(http.StatusForbidden), "repo", "s3cr3t@", gitrepo.Auth{}, gitrepo.ErrAuth},
		"not there":          {"404", server, "other", "me:s3cr3t@", gitrepo.Auth{}, gitrepo.ErrNotFound},
		"broken":             {"nobody branches on 500", status(http.StatusInternalServerError), "repo", "me:s3cr3t@", gitrepo.Auth{}, errOther},
		"no Git":             {"a web page", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }), "repo", "s3cr3t@", gitrepo.Auth{}, errOther},
		"SHA-256":            {"go-git is compiled for SHA-1", server, "long", "me:s3cr3t@", gitrepo.Auth{}, gitrepo.ErrSHA256},
		"redirected":         {"the password stays at home", redirect, "repo", "me:hunter2@", gitrepo.Auth{}, nil},
		"endless":            {"a bound on what comes", flood, "repo", "", gitrepo.Auth{}, gitrepo.ErrTooLarge},
		"missing token file": {"the file is named", private, "repo", "", gitrepo.Auth{TokenFile: "/nowhere/token"}, errOther},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			url := strings.Replace(serve(t, c.server), "://", "://"+c.user, 1) + "/" + c.repo + ".git"
			got, err := open(t, gitrepo.Options{URL: url, Auth: c.auth, Depth: 1, MaxBytes: 1 << 20}).Fetch(t.Context(), "main")
			switch {
			case c.want == nil && (err != nil || got != head):
				t.Errorf("%s: got %s, %v", c.reason, got, err)
			case errors.Is(c.want, errOther) && err == nil, c.want != nil && !errors.Is(c.want, errOther) && !errors.Is(err, c.want):
				t.Errorf("%s: got %v, want %v", c.reason, err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "hunter2") || len(err.Error()) > 2000) {
				t.Errorf("the error says too much: %v", err)
			}
			t.Log(err)
		})
	}
}

var errOther = errors.New("some other error")

func TestNotFoundElsewhere(t *testing.T) {
	server := newServer(t)
	sshURL, auth := serveSSH(t, server.Root)
	long := server.NewRepo(t, "long", "sha256")
	long.Commit(t, map[string]string{"a": "1"})
	for url, want := range map[string]error{
		server.Root + "/none": gitrepo.ErrNotFound, "file://" + server.Root + "/none": gitrepo.ErrNotFound, sshURL + "/none": gitrepo.ErrNotFound,
		long.Bare: gitrepo.ErrSHA256, sshURL + "/long.git": gitrepo.ErrSHA256,
	} {
		o := gitrepo.Options{URL: url, Depth: 1}
		if strings.HasPrefix(url, "ssh") {
			o.Auth = auth
		}
		if _, err := open(t, o).Fetch(t.Context(), "main"); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", url, err, want)
		}
	}
}

func TestCertificates(t *testing.T) {
	server := newServer(t)
	head := server.NewRepo(t, "repo", "sha1").Commit(t, map[string]string{"a": "1"})
	web := httptest.NewTLSServer(server)
	defer web.Close()
	ca := write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})))
	fetch(t, open(t, gitrepo.Options{URL: web.URL + "/repo.git", Auth: gitrepo.Auth{CAFile: ca}}), "main", head)
	if _, err := open(t, gitrepo.Options{URL: web.URL + "/repo.git"}).Fetch(t.Context(), "main"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %v", err)
	}
	if _, err := open(t, gitrepo.Options{URL: web.URL + "/repo.git", Auth: gitrepo.Auth{CAFile: write(t, "ca.pem", "x")}}).Fetch(t.Context(), "main"); err == nil {
		t.Error("a file without certificates was taken")
	}
}

// A server that stalls at any point is given up, and so is one that nobody waits
// for any more.
func TestStalls(t *testing.T) {
	server := newServer(t)
	repo := server.NewRepo(t, "repo", "sha1")
	repo.Commit(t, map[string]string{"a": "1"})
	reached := make(chan string, 10)
	until := func(stalls func(r *http.Request) bool, before string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !stalls(r) {
				server.ServeHTTP(w, r)
				return
			}
			fmt.Fprint(w, before)
			_ = http.NewResponseController(w).Flush()
			reached <- r.URL.Path
			<-r.Context().Done()
		})
	}
	refs := func(r *http.Request) bool { return r.Method == http.MethodGet }
	pack := func(r *http.Request) bool { return r.Method == http.MethodPost }
	// A busy machine may give up before it reaches the server.
	drain := func() {
		select {
		case <-reached:
		default:
		}
	}
	silent, silentAuth := silentServer(t, reached)
	cases := map[string]gitrepo.Options{
		"before refs":   {URL: serve(t, until(refs, "")) + "/repo.git"},
		"amid refs":     {URL: serve(t, until(refs, "001e# service=git-upload-pack\n0000")) + "/repo.git"},
		"before a pack": {URL: serve(t, until(pack, "")) + "/repo.git"},
		"amid a pack":   {URL: serve(t, until(pack, "0008NAK\n0009\x01PACK")) + "/repo.git"},
		"ssh":           {URL: silent, Auth: silentAuth},
	}
	for name, o := range cases {
		t.Run(name, func(t *testing.T) {
			o.Stall = 200 * time.Millisecond
			if _, err := open(t, o).Fetch(t.Context(), "main"); !errors.Is(err, gitrepo.ErrTimeout) {
				t.Errorf("got %v", err)
			}
			drain()
			o.Stall, o.Timeout = time.Hour, 200*time.Millisecond
			if _, err := open(t, o).Fetch(t.Context(), "main"); !errors.Is(err, gitrepo.ErrTimeout) {
				t.Errorf("in all: got %v", err)
			}
			drain()
			o.Timeout = time.Hour
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-reached; cancel() }()
			if _, err := open(t, o).Fetch(ctx, "main"); !errors.Is(err, context.Canceled) {
				t.Errorf("given up: got %v", err)
			}
		})
	}
}

// A mirror heals: what is broken, cut off or too large begins anew.
func TestMirrorBeginsAnew(t *testing.T) {
	server := newServer(t)
	repo := server.NewRepo(t, "repo", "sha1")
	o := gitrepo.Options{URL: repo.Bare, Dir: filepath.Join(t.TempDir(), "mirror"), Depth: 1}
	r := open(t, o)
	packs := func(pattern string) []string {
		found, err := filepath.Glob(filepath.Join(o.Dir, "objects", "pack", pattern))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	most := 0
	for i := range 70 {
		fetch(t, r, "main", repo.Commit(t, map[string]string{"a": fmt.Sprint(i)}))
		most = max(most, len(packs("*.pack")))
	}
	if n := len(packs("*.pack")); n > 10 || most != 64 {
		t.Errorf("%d packs are left, %d were the most", n, most)
	}
	for _, file := range packs("*") {
		if err := os.Truncate(file, 20); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "objects", "pack", "tmp_pack_1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	last := repo.Commit(t, map[string]string{"a": "last"})
	if _, err := r.Fetch(t.Context(), "main"); err == nil {
		t.Log("the broken mirror was of use")
	}
	fetch(t, r, "main", last)
	holds(t, r, last, "", "a", "last")
	if left := packs("tmp_pack_*"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}

	large := repo.Commit(t, map[string]string{"a": strings.Repeat("0123456789abcdef", 1<<17)})
	o.MaxBytes, o.Dir = 4096, filepath.Join(t.TempDir(), "mirror")
	if _, err := open(t, o).Fetch(t.Context(), "main"); !errors.Is(err, gitrepo.ErrTooLarge) {
		t.Errorf("%s is larger than its bound: %v", large, err)
	}
	if left := packs("*"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, o := range map[string]gitrepo.Options{
		"no address":            {Dir: dir},
		"no folder":             {URL: "https://git.example/org/repo"},
		"another protocol":      {URL: "git://git.example/org/repo", Dir: dir},
		"a bucket":              {URL: "oci://git.example/org/repo", Dir: dir},
		"a relative folder":     {URL: "../repo", Dir: dir},
		"ssh without a key":     {URL: "git@git.example:org/repo", Dir: dir},
		"a password over ssh":   {URL: "ssh://me:s3cr3t@git.example/org/repo", Dir: dir, Auth: gitrepo.Auth{SSHKeyFile: "k", KnownHostsFile: "h"}},
		"a key over https":      {URL: "https://git.example/org/repo", Dir: dir, Auth: gitrepo.Auth{SSHKeyFile: "k"}},
		"a token for a folder":  {URL: dir, Dir: dir, Auth: gitrepo.Auth{TokenFile: "t"}},
		"certificates for http": {URL: "http://git.example/org/repo", Dir: dir, Auth: gitrepo.Auth{CAFile: "c"}},
		"a user without token":  {URL: "https://git.example/org/repo", Dir: dir, Auth: gitrepo.Auth{Username: "u"}},
		"two credentials":       {URL: "https://s3cr3t@git.example/org/repo", Dir: dir, Auth: gitrepo.Auth{TokenFile: "t"}},
		"a negative depth":      {URL: dir, Dir: dir, Depth: -1},
	} {
		if _, err := gitrepo.Open(o); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

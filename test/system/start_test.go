package system

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/internal/polltest"
	"github.com/landfall-hub/landfall/schema"
)

// run runs a command of landfall-hub that is expected to end by itself, and
// returns its exit code and what it said.
func run(t testing.TB, args ...string) (int, string) {
	t.Helper()
	needPrograms(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := (&hub{}).command(args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return exitCode(t, err), said.String()
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		<-ended
		t.Fatalf("%v does not end; it said:\n%s", args, said.String())
		return 0, ""
	}
}

func exitCode(t testing.TB, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

func TestAHubThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	write(t, file, "not a folder")
	unknown := filepath.Join(folder, "unknown.yaml")
	write(t, unknown, "listen: 127.0.0.1:0\nclickhouse:\n  url: \"\"\n  sharding: 3\n")
	broken := filepath.Join(folder, "broken.yaml")
	write(t, broken, "listen: [\n")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	data := filepath.Join(folder, "data")
	cases := map[string]struct {
		reason string
		args   []string
		code   int
		// words must all be said, in one line.
		words []string
	}{
		"port taken": {
			reason: "another program listens there",
			args:   []string{"serve", "--listen", taken.Addr().String(), "--data-dir", data},
			code:   1, words: []string{taken.Addr().String(), "address already in use", "--listen"},
		},
		"data folder below a file": {
			reason: "nobody can write there, root neither",
			args:   []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(file, "data")},
			code:   1, words: []string{file, "not a directory", "--data-dir"},
		},
		"data folder in a read-only file system": {
			reason: "/proc takes no folders",
			args:   []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", "/proc/landfall"},
			code:   1, words: []string{"/proc/landfall", "--data-dir"},
		},
		"unknown key": {
			reason: "a key that nobody reads is a mistake, and its line helps to find it",
			args:   []string{"serve", "--config", unknown},
			code:   2, words: []string{unknown, "line 4", "sharding"},
		},
		"unknown key, only checked": {
			reason: "config check says the same",
			args:   []string{"config", "check", "--config", unknown},
			code:   2, words: []string{unknown, "line 4", "sharding"},
		},
		"broken file": {
			reason: "no YAML",
			args:   []string{"serve", "--config", broken},
			code:   2, words: []string{broken, "line"},
		},
		"no such file": {
			reason: "a typing mistake in the path",
			args:   []string{"serve", "--config", filepath.Join(folder, "none.yaml")},
			code:   2, words: []string{"none.yaml", "no such file"},
		},
		"unknown flag": {reason: "usage", args: []string{"serve", "--colour"}, code: 2, words: []string{"colour"}},
		"no command":   {reason: "usage", args: nil, code: 2, words: []string{"landfall-hub serve"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, said := run(t, c.args...)
			if code != c.code || !oneLineHolds(said, c.words) {
				t.Errorf("%s: exit code %d with words %q wanted; got %d and:\n%s", c.reason, c.code, c.words, code, said)
			}
		})
	}
}

func oneLineHolds(text string, words []string) bool {
	for line := range strings.Lines(text) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			return true
		}
	}
	return false
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTwoHubsOnOneDataFolderDoNotMix waits as long as the second hub does for
// the first to leave.
func TestTwoHubsOnOneDataFolderDoNotMix(t *testing.T) {
	t.Parallel()
	h, repo := newHub(t), newRepo()
	a := newAgent(t, h)
	code, said := run(t, "serve", "--listen", "127.0.0.1:0", "--data-dir", h.folder)
	if code != 1 || !oneLineHolds(said, []string{"in use by another process", h.folder}) {
		t.Errorf("want the second hub to end with 1 and say who is in the way; got %d and:\n%s", code, said)
	}
	a.lists(t, at(kustomization("app", repo, "app"), commit(1), schema.StatusSuccess))
	expect(t, ask(t, a.client, question(repo, "app", commit(1))), schema.Passed, "")
}

func TestAStopEndsWithinBoundsWhileClientsWait(t *testing.T) {
	t.Parallel()
	h, repo := newHub(t), newRepo()
	a := newAgent(t, h)
	a.lists(t, at(kustomization("app", repo, "app"), commit(1), schema.StatusInProgress))
	q := question(repo, "app", commit(1))
	type ended struct {
		v   *schema.Verdict
		err error
	}
	poll, follow := make(chan ended, 1), make(chan ended, 1)
	go func() {
		v, err := a.client.Compliance(t.Context(), q, 5*time.Minute)
		poll <- ended{v, err}
	}()
	s := open(t, a.client, q)
	if v := s.next(); v.State != schema.Waiting {
		t.Fatalf("the stream begins with %s", show(v))
	}
	go func() {
		v, err := s.Next()
		follow <- ended{v, err}
	}()
	polltest.Until(t, "both wait", func() bool { return gauge(t, h, "landfall_gate_watchers") == 2 })
	began := time.Now()
	if err := h.stop(t); err != nil {
		t.Errorf("want exit code 0, got %v", err)
	}
	t.Logf("stopped within %s", time.Since(began))
	h.awaitEngineGone(t)
	if e := <-poll; e.err != nil && hubclient.Status(e.err) != http.StatusServiceUnavailable {
		t.Errorf("want an answer for who waited, got %v", e.err)
	} else if e.err == nil && e.v.State != schema.Waiting {
		t.Errorf("want waiting, got %s", show(e.v))
	}
	if e := <-follow; !errors.Is(e.err, hubclient.ErrStreamEnded) {
		t.Errorf("want the stream to end, got %v, %v", e.v, e.err)
	}
}

func TestVersionIsTheOneOfTheBuild(t *testing.T) {
	t.Parallel()
	if code, said := run(t, "version"); code != 0 || strings.TrimSpace(said) != "system-test" {
		t.Errorf("got %d %q", code, said)
	}
}

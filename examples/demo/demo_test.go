package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

const asDemo = "LANDFALL_TEST_AS_DEMO"

func TestMain(m *testing.M) {
	if os.Getenv(asDemo) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// show is a demo that runs in a process of its own, with all that it makes
// below home.
type show struct {
	*exec.Cmd
	home  string
	lines *bufio.Scanner
	// said is what it has said so far.
	said   bytes.Buffer
	stderr bytes.Buffer
}

func start(t *testing.T, args ...string) *show {
	t.Helper()
	bin := filepath.Join("..", "..", "bin")
	for _, name := range []string{"landfall-hub", "landfall-agent", "landfall-engine", "libchdb.so"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is missing: run `make build` first", name)
			}
			t.Skipf("%s is missing: run `make build` first", name)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &show{home: t.TempDir()}
	s.Cmd = exec.Command(self, append([]string{"-bin", bin, "-example", filepath.Join("..", "control-plane")}, args...)...)
	s.Env = append(os.Environ(), asDemo+"=1", "TMPDIR="+s.home)
	s.Stderr = &s.stderr
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.lines = bufio.NewScanner(out)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Process.Kill() // mostly it is gone
		s.nothingIsLeft(t)
	})
	return s
}

// until reads what the demo says until a line holds the text, or its end for "".
func (s *show) until(t *testing.T, text string) {
	t.Helper()
	for s.lines.Scan() {
		fmt.Fprintln(&s.said, s.lines.Text())
		if text != "" && strings.Contains(s.lines.Text(), text) {
			return
		}
	}
	if text != "" {
		t.Fatalf("it ended before it said %q:\n%s%s", text, &s.said, &s.stderr)
	}
}

// nothingIsLeft waits until no process names the demo's folder.
func (s *show) nothingIsLeft(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	left := func() (found []string) {
		all, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range all {
			text, err := os.ReadFile(file) // it may have ended
			if err == nil && bytes.Contains(text, []byte(s.home)) {
				found = append(found, file+" "+string(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
			}
		}
		return found
	}
	deadline := time.Now().Add(time.Minute)
	for len(left()) > 0 {
		if time.Now().After(deadline) {
			t.Errorf("still there: %s", strings.Join(left(), "\n"))
			return
		}
		runtime.Gosched()
	}
}

var gateLine = regexp.MustCompile(`(?m)^  gate: (\w+)`)

// TestStory is `make demo-check`: what the gate says of each commit, that what is
// suggested then works, and what the hub says of it all.
func TestStory(t *testing.T) {
	s := start(t, "-listen", "127.0.0.1:0")
	s.until(t, "The whole API")
	said := s.said.String()
	story, suggested, _ := strings.Cut(said, "All of it goes on")
	chapters := strings.Split(strings.TrimSpace(story), "\n\n")[1:]
	want := []string{"passed", "passed", "failed", "passed", "passed"}
	if len(chapters) != len(want) {
		t.Fatalf("it told %d chapters:\n%s", len(chapters), said)
	}
	for i, text := range chapters {
		var states []string
		for _, m := range gateLine.FindAllStringSubmatch(text, -1) {
			states = append(states, m[1])
		}
		if len(states) < 2 || states[0] != "waiting" || states[len(states)-1] != want[i] {
			t.Errorf("the gate went %v, not from waiting to %s:\n%s", states, want[i], text)
		}
	}
	if !strings.Contains(chapters[2], small+" is failed: ApplyFailed") || !strings.Contains(chapters[2], "hello-world-app-functional-test 1.2.0 needs 2048 MiB of memory, this host has 1024 MiB") {
		t.Errorf("it does not say why:\n%s", chapters[2])
	}
	for _, line := range []string{
		`drone/hello-world-app-functional-test: configuration \w{7}, as it was`,
		`large/hello-world-app-performance-test: configuration \w{7}, was \w{7}`,
		`large/observability-prometheus: configuration \w{7}, was \w{7}`,
		`drone-01 … drone-08 \(8 hosts\) run with mysql://restricted-host:3306/mysqlrty123`,
		`large-01 … large-04 \(4 hosts\) run with mysql://west-2:8806/mysql2`,
	} {
		if !regexp.MustCompile("(?m)^  " + line + "$").MatchString(chapters[4]) {
			t.Errorf("it does not say %s:\n%s", line, chapters[4])
		}
	}

	w := s.world(t)
	t.Run("suggestions", func(t *testing.T) { w.suggestions(t, suggested) })
	t.Run("hosts", w.hosts)
	t.Run("names", w.names)

	if err := s.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	s.until(t, "")
	if err := s.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, &s.stderr)
	}
	s.isEmpty(t)
}

// isEmpty checks that the demo has taken its files away.
func (s *show) isEmpty(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(s.home)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestCtrlC(t *testing.T) {
	for _, moment := range []string{"starting a hub", "started 12 host agents", "passed"} {
		t.Run(moment, func(t *testing.T) {
			s := start(t, "-listen", "127.0.0.1:0")
			s.until(t, moment)
			if err := s.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			s.until(t, "")
			if err := s.Wait(); err != nil {
				t.Errorf("it ended with %v: %s", err, &s.stderr)
			}
			s.isEmpty(t)
		})
	}
}

// Killed at any moment, it leaves no process.
func TestKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends children with their parent")
	}
	for _, moment := range []string{"made a control plane", "starting a hub", "the hub is ready", "started 12 host agents", "waiting", "passed"} {
		t.Run(moment, func(t *testing.T) {
			s := start(t, "-listen", "127.0.0.1:0")
			s.until(t, moment)
			if err := s.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = s.Wait() // killed, as it was told
			s.nothingIsLeft(t)
		})
	}
}

func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := start(t, "-listen", l.Addr().String())
	s.until(t, "")
	if err := s.Wait(); err == nil {
		t.Error("it ended without an error")
	}
	if said := s.stderr.String(); !strings.Contains(said, l.Addr().String()) || !strings.Contains(said, "--listen") {
		t.Errorf("it says %q", said)
	}
	s.isEmpty(t)
}

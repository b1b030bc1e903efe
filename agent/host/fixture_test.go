package host

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/internal/polltest"
	"github.com/landfall-hub/landfall/schema"
)

// A hub is what an outbox would have told.
type hub struct {
	mu      sync.Mutex
	puts    []schema.Reconciler
	known   map[string]schema.Reconciler
	removed []schema.ObjectRef
	listed  []string
	moved   chan struct{}
}

func newHub() *hub { return &hub{known: map[string]schema.Reconciler{}, moved: make(chan struct{})} }

func (h *hub) change(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
	close(h.moved)
	h.moved = make(chan struct{})
}

func (h *hub) Put(all ...schema.Reconciler) {
	h.change(func() {
		for _, r := range all {
			report := schema.Report{Epoch: 1, Sequence: 1, Mode: schema.ModeDelta, ObservedAt: time.Now(), Reconcilers: []schema.Reconciler{r}}
			if err := report.Validate(); err != nil {
				panic(err)
			}
			if len(r.Message) > schema.MaxMessage {
				panic("the message is too long")
			}
			h.puts, h.known[r.Name] = append(h.puts, r), r
		}
	})
}

func (h *hub) Remove(refs ...schema.ObjectRef) {
	h.change(func() { h.removed = append(h.removed, refs...) })
}

func (h *hub) Kinds(listed, _ []string) { h.change(func() { h.listed = listed }) }

// until waits for facts of a folder, and returns them.
func (h *hub) until(t *testing.T, name, what string, holds func(schema.Reconciler) bool) schema.Reconciler {
	t.Helper()
	late := time.After(time.Minute)
	for {
		h.mu.Lock()
		r, moved := h.known[name], h.moved
		h.mu.Unlock()
		if r.Name != "" && holds(r) {
			return r
		}
		select {
		case <-moved:
		case <-late:
			t.Fatalf("never: %s; %s is %+v", what, name, r)
		}
	}
}

func (h *hub) status(t *testing.T, name string, s schema.Status, commit string) schema.Reconciler {
	t.Helper()
	return h.until(t, name, fmt.Sprintf("%s at %s", s, commit), func(r schema.Reconciler) bool {
		return r.Status == s && (r.AttemptedCommit(0) == commit || r.AppliedCommit(0) == commit && s == schema.StatusSuspended)
	})
}

// An alarm rings when the test says so.
type alarm struct {
	mu    sync.Mutex
	set   []rest
	moved chan struct{}
}

type rest struct {
	pause time.Duration
	ring  chan time.Time
}

func (a *alarm) after(d time.Duration) <-chan time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := make(chan time.Time, 1)
	a.set = append(a.set, rest{d, c})
	close(a.moved)
	a.moved = make(chan struct{})
	return c
}

// rests waits until a folder rests. It goes on with the next.
func (a *alarm) rests(t *testing.T) rest {
	t.Helper()
	late := time.After(time.Minute)
	for {
		a.mu.Lock()
		if len(a.set) > 0 {
			r := a.set[0]
			a.set = a.set[1:]
			a.mu.Unlock()
			return r
		}
		moved := a.moved
		a.mu.Unlock()
		select {
		case <-moved:
		case <-late:
			t.Fatal("no folder ever rests")
		}
	}
}

func (r rest) wake() { r.ring <- time.Time{} }

// A machine runs an agent, and starts another one on what it left.
type machine struct {
	t     *testing.T
	repo  *gittest.Repo
	opts  Options
	hub   *hub
	alarm *alarm
	log   *safeBuffer
	stop  func()

	mu  sync.Mutex
	now time.Time
}

// newMachine has one folder, drone, whose apply command is its ./apply.sh. $OUT
// is a folder that commands may write to.
func newMachine(t *testing.T) *machine {
	t.Helper()
	server, err := gittest.New(t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, repo: server.NewRepo(t, "repo", "sha1"), log: &safeBuffer{}, now: time.Now()}
	m.opts = Options{
		Config: Config{StateDir: t.TempDir(), Folders: []FolderConfig{{
			Name: "drone", Repo: m.repo.Bare, Ref: "main", Path: "drone",
			Apply: ApplyConfig{Argv: []string{"./apply.sh"}, Env: map[string]string{"OUT": t.TempDir()}},
		}}},
		Cluster: "host-07", Env: os.Getenv, Logger: slog.New(slog.NewTextHandler(m.log, nil)),
		Now: m.clock, Random: func() float64 { return 0.5 }, Grace: 200 * time.Millisecond, Settle: 200 * time.Millisecond,
	}
	m.opts.Config.Folders[0].Apply.Timeout = schema.Duration(time.Minute)
	t.Cleanup(func() {
		if m.stop != nil {
			m.stop()
		}
		if t.Failed() {
			t.Log(m.log.String())
		}
	})
	return m
}

func (m *machine) clock() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *machine) pass(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}

func (m *machine) out(name string) string {
	return filepath.Join(m.opts.Config.Folders[0].Apply.Env["OUT"], name)
}

// said returns the lines that commands wrote to a file of $OUT.
func (m *machine) said(name string) []string {
	text, _ := os.ReadFile(m.out(name))
	return strings.Fields(string(text))
}

// fifo makes a pipe in $OUT; whoever opens it waits for the other end.
func (m *machine) fifo(name string) {
	m.t.Helper()
	if err := syscall.Mkfifo(m.out(name), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// await waits until a command wrote to a pipe.
func (m *machine) await(name string) {
	m.t.Helper()
	if _, err := os.ReadFile(m.out(name)); err != nil {
		m.t.Fatal(err)
	}
}

// start runs an agent. What the last one was told goes.
func (m *machine) start() *Runner {
	m.t.Helper()
	m.hub, m.alarm = newHub(), &alarm{moved: make(chan struct{})}
	m.opts.After, m.opts.Registerer = m.alarm.after, prometheus.NewRegistry()
	r, err := New(m.opts)
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, m.hub) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			m.t.Errorf("it ended with %v", err)
		}
	})
	return r
}

// script commits an apply.sh that may be run.
func (m *machine) script(text string) (commit string) {
	m.t.Helper()
	return m.files(map[string]string{"drone/apply.sh": "#!/bin/sh\n" + text + "\n"})
}

func (m *machine) files(files map[string]string) (commit string) {
	m.t.Helper()
	m.repo.Write(m.t, files)
	for name := range files {
		if strings.HasSuffix(name, ".sh") {
			if err := os.Chmod(filepath.Join(m.repo.Tree, name), 0o755); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	return m.repo.CommitTree(m.t)
}

// runs reports whether a process runs, and is no zombie.
func runs(pid string) bool {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return false
	}
	state := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])[0]
	return string(state) != "Z" && string(state) != "X"
}

// noneRuns waits for processes to be gone: a signal takes a moment.
func noneRuns(t *testing.T, pids []string) {
	t.Helper()
	if len(pids) == 0 {
		t.Error("the command said nothing of its processes")
	}
	for _, pid := range pids {
		if _, err := strconv.Atoi(pid); err != nil {
			t.Fatalf("%q is no process", pid)
		}
		polltest.Until(t, "process "+pid+" has ended", func() bool { return !runs(pid) })
	}
}

type safeBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

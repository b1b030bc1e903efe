package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/schema"
)

// The life of a folder: applied, left alone, failed, repaired, rewritten, lost.
func TestLife(t *testing.T) {
	m := newMachine(t)
	t.Setenv("LANDFALL_TOKEN", "s3cr3t")
	t.Setenv("OTHER", "s3cr3t")
	t.Setenv("PASSED", "yes")
	m.opts.Config.Folders[0].Apply.PassEnv = []string{"PASSED"}
	good := `env | grep -v -e OUT -e PATH= -e HOME -e PWD -e SHLVL -e _= -e RUN | sort > "$OUT/env"; pwd > "$OUT/pwd"; echo x >> "$OUT/runs"`
	first := m.script(good)
	m.start()
	m.hub.until(t, "drone", "it applies", func(r schema.Reconciler) bool {
		return r.Status == schema.StatusInProgress && r.AttemptedCommit(0) == first || r.Status == schema.StatusSuccess
	})
	r := m.hub.status(t, "drone", schema.StatusSuccess, first)
	if r.AppliedCommit(0) != first || r.Reason != "ApplySucceeded" || r.Sources[0].URL != m.repo.Bare {
		t.Errorf("it is reported as %+v", r)
	}
	env, err := os.ReadFile(m.out("env"))
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(m.opts.Config.StateDir, "work", "drone")
	want := []string{
		"LANDFALL_CLUSTER=host-07", "LANDFALL_COMMIT=" + first, "LANDFALL_DIR=" + work, "LANDFALL_NAME=drone", "LANDFALL_PREVIOUS_COMMIT=",
		"LANDFALL_REF=main", "LANDFALL_REPO=" + m.repo.Bare, "PASSED=yes",
	}
	if diff := cmp.Diff(want, strings.Fields(string(env))); diff != "" {
		t.Error(diff)
	}
	if got := m.said("pwd"); len(got) != 1 || got[0] != work {
		t.Errorf("it ran in %s", got)
	}
	rest := m.alarm.rests(t)
	if rest.pause != time.Minute {
		t.Errorf("it rests for %s", rest.pause)
	}

	// Another folder changed.
	second := m.files(map[string]string{"drone/apply.sh": "#!/bin/sh\n" + good + "\n", "large/x": "1"})
	rest.wake()
	if r := m.hub.status(t, "drone", schema.StatusSuccess, second); r.AppliedCommit(0) != second || r.Reason != "FolderUnchanged" || len(m.said("runs")) != 1 {
		t.Errorf("a commit elsewhere: %+v, applied %d times", r, len(m.said("runs")))
	}

	third := m.script(`echo "about to fail https://me:hunter2@git.example/"; echo no such thing >&2; exit 3`)
	m.alarm.rests(t).wake()
	r = m.hub.status(t, "drone", schema.StatusFailure, third)
	if want := "the apply command failed: exit status 3\nabout to fail https://git.example/\nno such thing"; r.Message != want || r.AppliedCommit(0) != second || r.Reason != "ApplyFailed" {
		t.Errorf("it failed with %q: %+v", r.Message, r)
	}
	for i, want := range []time.Duration{15 * time.Second, 30 * time.Second, 60 * time.Second, 60 * time.Second} {
		rest := m.alarm.rests(t)
		if rest.pause != want {
			t.Errorf("after failure %d it rests for %s", i+1, rest.pause)
		}
		if i == 3 { // the retry is not due yet
			m.pass(rest.pause)
			rest.wake()
			continue
		}
		m.pass(rest.pause)
		rest.wake()
	}
	rest = m.alarm.rests(t)

	// Back to what was applied: half of the failed one may be there.
	gittest.Git(t, m.repo.Tree, "reset", "--quiet", "--hard", first)
	fourth := m.script(`echo "$LANDFALL_PREVIOUS_COMMIT" > "$OUT/previous"`)
	rest.wake()
	m.hub.status(t, "drone", schema.StatusSuccess, fourth)
	if got := m.said("previous"); len(got) != 1 || got[0] != second {
		t.Errorf("the previous commit was %s, not %s", got, second)
	}

	fifth := m.files(map[string]string{"large/x": "1"})
	m.alarm.rests(t).wake()
	if r := m.hub.status(t, "drone", schema.StatusFailure, fifth); r.Reason != "PathMissing" || r.AppliedCommit(0) != fourth {
		t.Errorf("the folder is gone: %+v", r)
	}
	rest = m.alarm.rests(t)
	m.hub.mu.Lock()
	puts := len(m.hub.puts)
	m.hub.mu.Unlock()
	m.pass(time.Hour)
	rest.wake()
	rest = m.alarm.rests(t)
	if m.hub.mu.Lock(); len(m.hub.puts) != puts || rest.pause != time.Minute {
		t.Errorf("a folder that is still gone is no news, and no hurry: %s", rest.pause)
	}
	m.hub.mu.Unlock()
	sixth := m.script("")
	rest.wake()
	m.hub.status(t, "drone", schema.StatusSuccess, sixth)

	// The repository goes and comes.
	if err := os.Rename(m.repo.Bare, m.repo.Bare+".away"); err != nil {
		t.Fatal(err)
	}
	m.alarm.rests(t).wake()
	lost := func(r schema.Reconciler) bool { return r.SourceError != "" }
	if r := m.hub.until(t, "drone", "a source error", lost); r.Status != schema.StatusSuccess || r.AppliedCommit(0) != sixth || !strings.Contains(r.SourceError, "no such repository") {
		t.Errorf("the repository is gone: %+v", r)
	}
	if err := os.Rename(m.repo.Bare+".away", m.repo.Bare); err != nil {
		t.Fatal(err)
	}
	m.alarm.rests(t).wake()
	m.hub.until(t, "drone", "no source error", func(r schema.Reconciler) bool { return !lost(r) && r.Status == schema.StatusSuccess })
	gittest.Git(t, m.repo.Bare, "branch", "-m", "main", "other")
	m.alarm.rests(t).wake()
	if r := m.hub.until(t, "drone", "a source error", lost); r.Status != schema.StatusSuccess || !strings.Contains(r.SourceError, "no such ref") {
		t.Errorf("the branch is gone: %+v", r)
	}
	m.alarm.rests(t)
	m.stop()
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	for _, r := range m.hub.puts {
		if strings.Contains(r.Message+r.SourceError, "hunter2") {
			t.Errorf("it told a password: %+v", r)
		}
	}
	if !slices.Equal(m.hub.listed, []string{"HostRunner"}) {
		t.Errorf("the kinds are %s", m.hub.listed)
	}
}

// Commands that do what no command should: a failure, nothing left, and the
// agent goes on.
func TestHostileCommands(t *testing.T) {
	const pid = `echo $$ >> "$OUT/pids"; `
	cases := map[string]struct {
		reason  string
		script  string
		change  func(*ApplyConfig)
		timeout time.Duration
		why     string
		words   string
	}{
		"hangs":             {"it is ended", pid + "echo began; sleep 1000", nil, time.Second, "ApplyTimeout", "within 1s and was ended (apply.timeout)\nbegan"},
		"ignores SIGTERM":   {"it is killed", "trap '' TERM; " + pid + "while :; do sleep 1000; done", nil, time.Second, "ApplyTimeout", "within 1s"},
		"its child does":    {"so is the child", pid + `sh -c "trap '' TERM; echo \$\$ >> $OUT/pids; while :; do sleep 1000; done" & wait`, nil, time.Second, "ApplyTimeout", "within 1s"},
		"leaves a child":    {"it has the output open", pid + `sh -c 'echo $$ >> "$OUT/pids"; exec sleep 1000' & while [ $(wc -l < "$OUT/pids") -lt 2 ]; do :; done; exit 0`, nil, time.Minute, "ProcessesLeft", "service manager"},
		"leaves and fails":  {"the failure is the news", pid + `sleep 1000 & echo $! >> "$OUT/pids"; exit 7`, nil, time.Minute, "ApplyFailed", "exit status 7"},
		"floods and fails":  {"the end is what counts", pid + `yes 'a line of output that says nothing' | head -c 100000000; echo; echo the end; exit 1`, nil, time.Minute, "ApplyFailed", "\na line of output that says nothing\n"},
		"ends itself":       {"by a signal", pid + "kill -KILL $$", nil, time.Minute, "ApplyFailed", "by a signal: killed"},
		"missing":           {"there is no such program", "", func(a *ApplyConfig) { a.Argv = []string{"./none"} }, time.Minute, "ApplyNotStarted", "./none: no such file"},
		"nowhere":           {"nor this one", "", func(a *ApplyConfig) { a.Argv = []string{"landfall-none"} }, time.Minute, "ApplyNotStarted", "executable file not found"},
		"not executable":    {"a file's mode", "", func(a *ApplyConfig) { a.Argv = []string{"./text"} }, time.Minute, "ApplyNotStarted", "permission denied"},
		"no such directory": {"where to run", "", func(a *ApplyConfig) { a.Dir = "none" }, time.Minute, "ApplyNotStarted", "no such file"},
		"a shell without":   {"the shell says it", "", func(a *ApplyConfig) { a.Argv, a.Shell = nil, "landfall-none" }, time.Minute, "ApplyFailed", "landfall-none: not found"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			apply := &m.opts.Config.Folders[0].Apply
			apply.Timeout = schema.Duration(c.timeout)
			if c.change != nil {
				c.change(apply)
			}
			commit := m.files(map[string]string{"drone/apply.sh": "#!/bin/sh\n" + c.script + "\n", "drone/text": "#!/bin/sh\n"})
			m.start()
			r := m.hub.status(t, "drone", schema.StatusFailure, commit)
			if r.Reason != c.why || !strings.Contains(r.Message, c.words) || len(r.Applied) > 0 {
				t.Errorf("%s: got %s: %s", c.reason, r.Reason, r.Message)
			}
			if c.script != "" {
				noneRuns(t, m.said("pids"))
			}
			if info, err := os.Stat(filepath.Join(m.opts.Config.StateDir, "folders", "drone", "apply.log")); err != nil || info.Size() > mostLog+100 {
				t.Errorf("the log: %v, %v", info, err)
			}
			if c.change == nil {
				next := m.script("echo fine")
				m.alarm.rests(t).wake()
				m.hub.status(t, "drone", schema.StatusSuccess, next)
			}
		})
	}
}

// What left the group on purpose lives, and keeps nobody waiting.
func TestDaemonsLive(t *testing.T) {
	m := newMachine(t)
	commit := m.script(`setsid sh -c 'echo $$ > "$OUT/pid"; exec sleep 1000' & while [ ! -s "$OUT/pid" ]; do :; done; wait -n 2>/dev/null; exit 0`)
	m.start()
	m.hub.until(t, "drone", "an end", func(r schema.Reconciler) bool {
		return r.AttemptedCommit(0) == commit && r.Status != schema.StatusInProgress
	})
	pids := m.said("pid")
	if len(pids) != 1 || !runs(pids[0]) {
		t.Fatalf("the daemon %s does not run", pids)
	}
	var pid int
	if _, err := fmt.Sscan(pids[0], &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// What comes during an apply waits for no queue: the newest is next.
func TestTheNewestWins(t *testing.T) {
	m := newMachine(t)
	m.fifo("gate")
	const script = `echo "$LANDFALL_COMMIT" >> "$OUT/runs"; cat "$OUT/gate"`
	first := m.script(script)
	m.start()
	m.hub.until(t, "drone", "it applies", func(r schema.Reconciler) bool {
		return r.AttemptedCommit(0) == first && r.Status == schema.StatusInProgress
	})
	var last string
	for i := range 3 {
		last = m.script(script + fmt.Sprintf(" # %d", i))
	}
	m.pass(5 * time.Minute)
	open := func() {
		file, err := os.OpenFile(m.out("gate"), os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		_ = file.Close()
	}
	open()
	m.hub.until(t, "drone", "the first", func(r schema.Reconciler) bool { return r.AppliedCommit(0) == first })
	rest := m.alarm.rests(t)
	if rest.pause != 0 {
		t.Errorf("the interval is long over, and it rests for %s", rest.pause)
	}
	rest.wake()
	open()
	m.hub.status(t, "drone", schema.StatusSuccess, last)
	if diff := cmp.Diff([]string{first, last}, m.said("runs")); diff != "" {
		t.Error(diff)
	}
}

// An agent that is started again, in each phase.
func TestRestart(t *testing.T) {
	t.Run("applied", func(t *testing.T) {
		m := newMachine(t)
		commit := m.script(`echo x >> "$OUT/runs"`)
		m.start()
		m.hub.status(t, "drone", schema.StatusSuccess, commit)
		m.alarm.rests(t)
		m.stop()
		r := m.start()
		m.hub.status(t, "drone", schema.StatusSuccess, commit)
		m.alarm.rests(t).wake()
		m.alarm.rests(t)
		if runs := m.said("runs"); len(runs) != 1 {
			t.Errorf("it was applied %d times", len(runs))
		}
		if s := r.Status(); s.Folders[schema.StatusSuccess] != 1 || len(s.Unread) > 0 {
			t.Errorf("it stands at %+v", s)
		}
		// Another command, another apply; another place, a new start.
		m.stop()
		m.opts.Config.Folders[0].Apply.Env["MORE"] = "1"
		m.start()
		m.alarm.rests(t)
		if runs := m.said("runs"); len(runs) != 2 {
			t.Errorf("with another command it was applied %d times", len(runs))
		}
		m.stop()
		m.opts.Config.Folders[0].Path = "./drone/"
		m.start()
		m.alarm.rests(t)
		if runs := m.said("runs"); len(runs) != 2 {
			t.Errorf("with its path written otherwise it was applied %d times", len(runs))
		}
		m.stop()
		m.repo.Push(t, "HEAD:refs/heads/other")
		m.opts.Config.Folders[0].Ref = "other"
		m.start()
		m.alarm.rests(t)
		if runs := m.said("runs"); len(runs) != 3 {
			t.Errorf("with another branch it was applied %d times", len(runs))
		}
	})
	t.Run("failed", func(t *testing.T) {
		m := newMachine(t)
		commit := m.script(`echo x >> "$OUT/runs"; exit 1`)
		m.start()
		m.hub.status(t, "drone", schema.StatusFailure, commit)
		m.alarm.rests(t)
		m.stop()
		m.start()
		m.alarm.rests(t)
		m.hub.status(t, "drone", schema.StatusFailure, commit)
		if runs := m.said("runs"); len(runs) != 2 {
			t.Errorf("it was tried %d times", len(runs))
		}
	})
	t.Run("stopped while it applies", func(t *testing.T) {
		m := newMachine(t)
		m.fifo("ready")
		commit := m.script(`echo $$ >> "$OUT/pids"; if [ ! -e "$OUT/again" ]; then touch "$OUT/again"; echo x > "$OUT/ready"; sleep 1000; fi`)
		m.start()
		m.await("ready")
		m.stop()
		noneRuns(t, m.said("pids"))
		m.hub.mu.Lock()
		if r := m.hub.known["drone"]; r.Status != schema.StatusInProgress {
			t.Errorf("what was cut off is no failure: %+v", r)
		}
		m.hub.mu.Unlock()
		m.start()
		m.hub.until(t, "drone", "it was cut off", func(schema.Reconciler) bool {
			m.hub.mu.Lock()
			defer m.hub.mu.Unlock()
			return m.hub.puts[0].Reason == "Interrupted" && m.hub.puts[0].Status == schema.StatusInProgress
		})
		m.hub.status(t, "drone", schema.StatusSuccess, commit)
		if pids := m.said("pids"); len(pids) != 2 {
			t.Errorf("it was run %d times", len(pids))
		}
	})
	t.Run("without what it wrote", func(t *testing.T) {
		m := newMachine(t)
		commit := m.script(`echo x >> "$OUT/runs"`)
		m.start()
		m.hub.status(t, "drone", schema.StatusSuccess, commit)
		m.alarm.rests(t)
		m.stop()
		state := filepath.Join(m.opts.Config.StateDir, "folders", "drone", "state.json")
		if err := os.WriteFile(state, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(m.opts.Config.StateDir, "mirrors")); err != nil {
			t.Fatal(err)
		}
		m.start()
		m.hub.status(t, "drone", schema.StatusSuccess, commit)
		if runs := m.said("runs"); len(runs) != 2 {
			t.Errorf("it was applied %d times", len(runs))
		}
	})
}

// killed is set in the process that TestKilled kills.
const killed = "LANDFALL_TEST_KILLED"

// An agent that is killed leaves its command running. The next one ends that
// before it runs it again.
func TestKilled(t *testing.T) {
	m := newMachine(t)
	if text := os.Getenv(killed); text != "" {
		m.opts.Config.StateDir, m.repo.Bare, _ = strings.Cut(text, "\n")
		m.opts.Config.Folders[0].Repo, m.opts.Config.Folders[0].Apply.Env["OUT"], _ = strings.Cut(m.repo.Bare, "\n")
		m.start()
		select {} // until it is killed
	}
	commit := m.script(`[ -e "$OUT/again" ] && exit 0
		touch "$OUT/again"
		setsid -f sh -c 'echo $$ >> "$OUT/pids"; exec sleep 1000'
		while [ ! -s "$OUT/pids" ]; do :; done
		echo $$ >> "$OUT/pids"
		echo x > "$OUT/ready"
		sleep 1000`)
	m.fifo("ready")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestKilled$")
	// It leaves what it makes in TMPDIR.
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), killed+"="+m.opts.Config.StateDir+"\n"+m.repo.Bare+"\n"+filepath.Dir(m.out("x")))
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.await("ready")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	pids := m.said("pids")
	if len(pids) != 2 || !runs(pids[0]) || !runs(pids[1]) {
		t.Fatalf("the command's processes are %s", pids)
	}
	m.start()
	noneRuns(t, pids)
	m.hub.status(t, "drone", schema.StatusSuccess, commit)
}

// A folder that is configured no more is gone, with all that was kept of it.
func TestRemoved(t *testing.T) {
	m := newMachine(t)
	other := m.opts.Config.Folders[0]
	other.Name, other.Path = "large", ""
	other.Apply = ApplyConfig{Shell: "true"}
	m.opts.Config.Folders = append(m.opts.Config.Folders, other)
	commit := m.script("")
	m.start()
	m.hub.status(t, "drone", schema.StatusSuccess, commit)
	m.hub.status(t, "large", schema.StatusSuccess, commit)
	m.stop()
	m.opts.Config.Folders = m.opts.Config.Folders[:1]
	m.start()
	m.hub.status(t, "drone", schema.StatusSuccess, commit)
	m.stop()
	if diff := cmp.Diff([]schema.ObjectRef{{Kind: "HostRunner", Namespace: "host", Name: "large"}}, m.hub.removed); diff != "" {
		t.Error(diff)
	}
	for _, dir := range []string{"folders/large", "work/large"} {
		if _, err := os.Stat(filepath.Join(m.opts.Config.StateDir, dir)); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
	m.opts.Config.Folders = nil
	m.start()
	m.stop()
	if left, err := filepath.Glob(filepath.Join(m.opts.Config.StateDir, "*/*")); err != nil || len(left) > 0 {
		t.Errorf("%s is left, %v", left, err)
	}
}

func TestSuspended(t *testing.T) {
	m := newMachine(t)
	commit := m.script(`echo x >> "$OUT/runs"`)
	m.start()
	m.hub.status(t, "drone", schema.StatusSuccess, commit)
	m.alarm.rests(t)
	m.stop()
	m.opts.Config.Folders[0].Suspend = true
	m.script(`echo x >> "$OUT/runs"; # more`)
	m.start()
	if r := m.hub.status(t, "drone", schema.StatusSuspended, commit); !r.Suspended || len(m.said("runs")) != 1 {
		t.Errorf("it is suspended: %+v", r)
	}
	m.stop()
}

// A state directory is one agent's.
func TestOneAgentAtATime(t *testing.T) {
	m := newMachine(t)
	m.script("")
	m.start()
	if _, err := New(m.opts); err == nil || !strings.Contains(err.Error(), "another agent's") {
		t.Errorf("a second one: %v", err)
	}
	m.stop()
	m.start()
}

// Several folders work at the same time, and not more than allowed.
func TestParallel(t *testing.T) {
	m := newMachine(t)
	base := m.opts.Config.Folders[0]
	m.opts.Config.Folders = nil
	for i := range 6 {
		f := base
		f.Name = fmt.Sprintf("f%d", i)
		f.Apply.Argv = nil
		f.Apply.Shell = `mkdir "$OUT/slot1" 2>/dev/null && s=1 || { mkdir "$OUT/slot2" 2>/dev/null && s=2; } || { echo too many; exit 1; }
			[ -e "$OUT/two" ] || while [ ! -d "$OUT/slot1" ] || [ ! -d "$OUT/slot2" ]; do :; done
			touch "$OUT/two"; rmdir "$OUT/slot$s"`
		m.opts.Config.Folders = append(m.opts.Config.Folders, f)
	}
	m.opts.Config.Parallel = 2
	commit := m.script("")
	m.start()
	for _, f := range m.opts.Config.Folders {
		r := m.hub.until(t, f.Name, "an end", func(r schema.Reconciler) bool {
			return r.AttemptedCommit(0) == commit && r.Status != schema.StatusInProgress
		})
		if r.Status != schema.StatusSuccess {
			t.Errorf("%s: %s", f.Name, r.Message)
		}
	}
}

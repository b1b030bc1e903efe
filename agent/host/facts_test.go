package host

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

const (
	one = "1111111111111111111111111111111111111111"
	two = "2222222222222222222222222222222222222222"
)

// Each row of the table above facts.
func TestFacts(t *testing.T) {
	since := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		ref    string
		off    bool
		state  state
		want   schema.Reconciler
	}{
		"nothing yet": {
			reason: "it starts",
			want:   schema.Reconciler{Status: schema.StatusInProgress, Reason: "Starting", Message: "nothing was fetched yet"},
		},
		"never fetched": {
			reason: "the hub lets ArtifactFailed age to a failure",
			state:  state{sourceError: "refused"},
			want: schema.Reconciler{
				Status: schema.StatusInProgress, Reason: "ArtifactFailed", Message: "nothing was fetched yet: refused", SourceError: "refused",
			},
		},
		"running": {
			reason: "what runs is neither applied nor failed", ref: "dev",
			state: state{Applied: one, Attempted: two, Outcome: running, Reason: "Applying", Message: "m", Since: since},
			want: schema.Reconciler{
				Status: schema.StatusInProgress, Reason: "Applying", Message: "m", Since: since,
				Applied: []string{"dev@sha1:" + one}, Attempted: []string{"dev@sha1:" + two},
			},
		},
		"succeeded": {
			reason: "applied is attempted", ref: "refs/heads/dev",
			state: state{Applied: two, Attempted: two, Outcome: succeeded, Reason: "ApplySucceeded", Since: since},
			want: schema.Reconciler{
				Status: schema.StatusSuccess, Reason: "ApplySucceeded", Since: since,
				Applied: []string{"dev@sha1:" + two}, Attempted: []string{"dev@sha1:" + two},
			},
		},
		"failed": {
			reason: "the old commit stays applied", ref: "refs/tags/v1",
			state: state{Applied: one, Attempted: two, Outcome: failed, Reason: "ApplyFailed", Message: "exit status 1"},
			want: schema.Reconciler{
				Status: schema.StatusFailure, Reason: "ApplyFailed", Message: "exit status 1",
				Applied: []string{"refs/tags/v1@sha1:" + one}, Attempted: []string{"refs/tags/v1@sha1:" + two},
			},
		},
		"succeeded, source gone": {
			reason: "what is applied stays applied", ref: one,
			state: state{Applied: one, Attempted: one, Outcome: succeeded, sourceError: "refused"},
			want: schema.Reconciler{
				Status: schema.StatusSuccess, SourceError: "refused", Applied: []string{"sha1:" + one}, Attempted: []string{"sha1:" + one},
			},
		},
		"failed, source gone": {
			reason: "and what failed, failed",
			state:  state{Attempted: one, Outcome: failed, Reason: "ApplyFailed", sourceError: "refused"},
			want:   schema.Reconciler{Status: schema.StatusFailure, Reason: "ApplyFailed", SourceError: "refused", Attempted: []string{"sha1:" + one}},
		},
		"suspended": {
			reason: "the settings say so, whatever came before", off: true,
			state: state{Applied: one, Attempted: two, Outcome: failed, Reason: "ApplyFailed", Message: "m", Since: since},
			want: schema.Reconciler{
				Status: schema.StatusSuspended, Suspended: true, Reason: "Suspended", Message: "the folder is suspended in the agent's settings",
				Applied: []string{"sha1:" + one}, Attempted: []string{"sha1:" + two},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := FolderConfig{Name: "drone", Repo: "https://me:hunter2@git.example/org/repo", Ref: c.ref, Path: "./drone", Suspend: c.off}
			c.want.Kind, c.want.Namespace, c.want.Name = "HostRunner", "host", "drone"
			c.want.Sources = []schema.Source{{Type: schema.SourceGit, URL: "https://git.example/org/repo", Ref: c.ref, Path: "./drone"}}
			got := facts(&f, &c.state)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
			report := schema.Report{Epoch: 1, Sequence: 1, Mode: schema.ModeDelta, ObservedAt: since, Reconcilers: []schema.Reconciler{got}}
			if err := report.Validate(); err != nil {
				t.Errorf("the hub would refuse it: %v", err)
			}
			for _, commit := range []string{got.AppliedCommit(0), got.AttemptedCommit(0)} {
				if commit != "" && commit != one && commit != two {
					t.Errorf("the hub would read the commit %s", commit)
				}
			}
		})
	}
}

func TestNext(t *testing.T) {
	cases := map[string]struct {
		reason string
		state  state
		due    bool
		want   step
	}{
		"first":                {"nothing is applied", state{}, true, apply},
		"applied":              {"it is there", state{Outcome: succeeded, Tree: "t", Command: "c", Applied: one}, true, stay},
		"same folder":          {"another commit, the same files", state{Outcome: succeeded, Tree: "t", Command: "c", Applied: two}, true, move},
		"changed folder":       {"other files", state{Outcome: succeeded, Tree: "u", Command: "c", Applied: two}, true, apply},
		"changed command":      {"the same files, made otherwise", state{Outcome: succeeded, Tree: "t", Command: "d", Applied: one}, true, apply},
		"failed just now":      {"not at once again", state{Outcome: failed, Tree: "t", Command: "c", Attempted: one}, false, wait},
		"failed, due":          {"again", state{Outcome: failed, Tree: "t", Command: "c", Attempted: one}, true, apply},
		"failed, new files":    {"a fix does not wait", state{Outcome: failed, Tree: "u", Command: "c", Attempted: two}, false, apply},
		"failed, new command":  {"nor does another command", state{Outcome: failed, Tree: "t", Command: "d", Attempted: one}, false, apply},
		"failed, back to old":  {"half of the new may be there", state{Outcome: failed, Tree: "u", Command: "c", Applied: one, Attempted: two}, false, apply},
		"cut off":              {"nobody knows how far it came", state{Outcome: running, Tree: "t", Command: "c", Applied: one, Attempted: one}, true, apply},
		"folder was not there": {"now it is", state{Outcome: failed, Reason: reasonPath, Command: "c", Attempted: two}, false, apply},
	}
	for name, c := range cases {
		if got := c.state.next(one, "t", "c", c.due); got != c.want {
			t.Errorf("%s: %s: got %d, want %d", name, c.reason, got, c.want)
		}
	}
}

func TestOutput(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"nothing":    {"", ""},
		"lines":      {"a\nb\n", "a\nb"},
		"colours":    {"\x1b[31mfatal\x1b[0m: \x07bad\r\n", "fatal: bad"},
		"a password": {"cloning https://me:hunter2@git.example/x", "cloning https://git.example/x"},
		"binary":     {"a\xff\x00b", "ab"},
		"long":       {strings.Repeat("line\n", 100), "…\n" + strings.TrimSpace(strings.Repeat("line\n", 9))},
		"one line":   {strings.Repeat("ö", 200), "…\n" + strings.Repeat("ö", 23)},
	}
	for name, c := range cases {
		out, err := newOutput(t.TempDir() + "/log")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = out.Write([]byte(c.in))
		if got := out.last(50); got != c.want || len(got) > 50 {
			t.Errorf("%s: got %q (%d bytes), want %q", name, got, len(got), c.want)
		}
		_ = out.close()
	}
}

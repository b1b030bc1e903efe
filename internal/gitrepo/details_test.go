package gitrepo

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// What people read of a commit is on one line, short, and without anybody's
// address.
func TestDetails(t *testing.T) {
	dir := t.TempDir()
	run := func(in string, args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(in)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	run("", "init", "--quiet", "--bare", ".")
	tree := run("", "hash-object", "-t", "tree", "-w", os.DevNull)
	const when = "1700000000 +0100"
	header := "tree " + tree + "\nauthor A U Thor <thor@example.invalid> 1 +0000\ncommitter C O Mitter <mitter@example.invalid> " + when + "\n"
	long := strings.Repeat("é", 150)
	r := (&Repo{opts: Options{Dir: dir}}).Reader()
	for name, tc := range map[string]struct {
		reason string
		text   string
		want   Details
	}{
		"plain":   {"name, time, subject", header + "\nthe subject\n\nthe body\n", Details{"A U Thor", time.Unix(1_700_000_000, 0).UTC(), "the subject"}},
		"empty":   {"no message", header, Details{"A U Thor", time.Unix(1_700_000_000, 0).UTC(), ""}},
		"blank":   {"lines before the subject", header + "\n\n \n the subject", Details{"A U Thor", time.Unix(1_700_000_000, 0).UTC(), "the subject"}},
		"signed":  {"other headers", header + "gpgsig -----BEGIN\n author nobody\n -----END\n\nthe subject\n", Details{"A U Thor", time.Unix(1_700_000_000, 0).UTC(), "the subject"}},
		"address": {"an address for a name", strings.Replace(header, "A U Thor", "thor@example.invalid", 1) + "\nx", Details{"thor", time.Unix(1_700_000_000, 0).UTC(), "x"}},
		"long":    {"cut at a character", header + "\n" + long, Details{"A U Thor", time.Unix(1_700_000_000, 0).UTC(), long[:200]}},
		"control": {"no escapes, no passwords", header + "\na\x1b[31m\tb https://user:secret@host/x \xff", Details{"A U Thor", time.Unix(1_700_000_000, 0).UTC(), "a [31m b https://host/x \uFFFD"}},
		"no time": {"a time that is none", strings.ReplaceAll(header, when, "99999999999999999 +0000") + "\nx", Details{"A U Thor", time.Unix(0, 0).UTC(), "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			id := ID(plumbing.NewHash(run(tc.text, "hash-object", "-t", "commit", "-w", "--literally", "--stdin")))
			got, err := r.Details(id)
			if err != nil || got != tc.want {
				t.Errorf("%s: %+v, %v; want %+v", tc.reason, got, err, tc.want)
			}
			c, err := r.Commit(id)
			if err != nil || c.CommittedAt != tc.want.CommittedAt.Unix() || c.Tree.String() != tree {
				t.Errorf("%s: %+v, %v", tc.reason, c, err)
			}
		})
	}
	blob := ID(plumbing.NewHash(run(strings.Repeat("x", 5000), "hash-object", "-w", "--stdin")))
	if text, size, err := r.Beginning(blob, 100); err != nil || len(text) != 100 || size != 5000 {
		t.Errorf("%d bytes of %d: %v", len(text), size, err)
	}
}

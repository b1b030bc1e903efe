package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// patience is how long a step of the story may take.
const patience = 3 * time.Minute

// story commits versions and shows what the gate says of them.
type story struct {
	client   *hubclient.Client
	url      string
	repos    *repos
	programs *programs
}

func newStory(url string, r *repos, p *programs) (*story, error) {
	client, err := hubclient.New(hubclient.Options{URL: url, UserAgent: "landfall-demo"})
	if err != nil {
		return nil, err
	}
	return &story{client: client, url: url, repos: r, programs: p}, nil
}

// tell tells the story and returns the last commit.
func (t *story) tell(ctx context.Context) (fix string, err error) {
	first, err := t.repos.git(ctx, application, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	sayf("\nhello-world 1.0.0 is on the branch (commit %.7s); the hosts fetch and apply it", first)
	if err := t.until(ctx, first, schema.Passed, 8); err != nil {
		return "", err
	}
	for _, chapter := range []struct {
		says, version string
		memory        int
		becomes       schema.State
	}{
		{"the application team commits 1.1.0", "1.1.0", 512, schema.Passed},
		{"1.2.0 asks for 2048 MiB of memory, and " + small + " has 1024", "1.2.0", 2048, schema.Failed},
		{"1.2.1 asks for less", "1.2.1", 768, schema.Passed},
	} {
		if fix, err = t.repos.release(ctx, chapter.version, chapter.memory); err != nil {
			return "", err
		}
		sayf("\n%s (commit %.7s)", chapter.says, fix)
		if err := t.until(ctx, fix, chapter.becomes, 0); err != nil {
			return "", err
		}
	}
	return fix, nil
}

func (t *story) question(commit string) hubclient.Question {
	return hubclient.Question{Repo: t.repos.path(application), Ref: branch, Path: "functional-test", Commit: commit}
}

// until shows what the gate says of a commit, until it says what the story is
// waiting for, over at least so many targets.
func (t *story) until(ctx context.Context, commit string, want schema.State, targets int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the gate did not become %s within %s", want, patience))
	defer cancel()
	shown := ""
	for wait := time.Duration(0); ; wait = 10 * time.Second {
		v, err := t.client.Compliance(ctx, t.question(commit), wait)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		if line := describe(v); line != shown {
			sayf("  %s", line)
			shown = line
		}
		if v.State == want && v.Counts.Total >= targets {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case one := <-t.programs.ended:
			return fmt.Errorf("%s ended: %s", one.name, t.programs.lastLine(one.name))
		case <-time.After(100 * time.Millisecond): // a final answer comes at once
		}
	}
}

// describe is a verdict in a line.
func describe(v *schema.Verdict) string {
	line := fmt.Sprintf("gate: %-7s %d of %d compliant", v.State, v.Counts.Compliant, v.Counts.Total)
	if len(v.Unfinished) > 0 {
		u := v.Unfinished[0]
		line += fmt.Sprintf("; %s is %s: %s", u.Cluster, u.Verdict, strings.ReplaceAll(u.Reason, "\n", "; "))
	}
	return line
}

// suggest says what to try next.
func (t *story) suggest(commit string) {
	sayf(`
All of it goes on until Ctrl-C. Try, in another terminal:`)
	if t.url != "http://127.0.0.1:8080" {
		sayf("\n  export LANDFALL_HUB=%s", t.url)
	}
	sayf(`
  %[1]s/landfall status                 every folder on every host, with its version and commit
  %[1]s/landfall status --summary       which version should run where, and which does on how many
  %[1]s/landfall history --limit 20     what changed, the newest first
  %[1]s/landfall dora                   how often, how fast, how well
  %[1]s/landfall clusters               who reports, and when each was last heard of
  %[1]s/landfall gate --repo %[2]s --ref %[3]s --path functional-test --commit %[4]s

Be the application team:

  cd %[2]s
  sed -i 's/1\.2\.1/1.3.0/' functional-test/service.env descriptors/functional-test.yaml && git commit -am 'hello-world 1.3.0'
  %[1]s/landfall gate --repo $PWD --ref %[3]s --path functional-test --commit $(git rev-parse HEAD)

The whole API: %[5]s/openapi.json`, t.programs.bin, t.repos.path(application), branch, commit, t.url)
}

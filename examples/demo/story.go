package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// patience is how long a step of the story may take.
const patience = 3 * time.Minute

// look is the time between two looks at what is waited for.
const look = 100 * time.Millisecond

// story commits versions and configuration and shows what the gate says of them.
type story struct {
	client   *hubclient.Client
	url      string
	repos    *repos
	programs *programs
	// dir holds everything.
	dir string
}

func newStory(url string, r *repos, p *programs, dir string) (*story, error) {
	client, err := hubclient.New(hubclient.Options{URL: url, UserAgent: "landfall-demo"})
	if err != nil {
		return nil, err
	}
	return &story{client: client, url: url, repos: r, programs: p, dir: dir}, nil
}

// tell tells the story.
func (t *story) tell(ctx context.Context) error {
	first, err := t.repos.head(ctx, application)
	if err != nil {
		return err
	}
	sayf("\nhello-world 1.0.0 is on the branch (commit %.7s); the hosts fetch and apply it", first)
	if err := t.until(ctx, t.release(first), schema.Passed, 8); err != nil {
		return err
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
		commit, err := t.repos.release(ctx, chapter.version, chapter.memory)
		if err != nil {
			return err
		}
		sayf("\n%s (commit %.7s)", chapter.says, commit)
		if err := t.until(ctx, t.release(commit), chapter.becomes, 0); err != nil {
			return err
		}
	}
	return t.configure(ctx)
}

// The ConfigMap that the story edits.
const (
	westConfig = "cluster-types/west-us/west-us-config.yaml"
	oldWest    = "mysql://west:8806/mysql2"
	newWest    = "mysql://west-2:8806/mysql2"
)

// configure edits a ConfigMap of the control plane and follows the change to the
// hosts.
func (t *story) configure(ctx context.Context) error {
	before, err := t.repos.head(ctx, platform)
	if err != nil {
		return err
	}
	assigned, err := t.planned(ctx)
	if err != nil {
		return err
	}
	edit, err := t.repos.edit(ctx, westConfig, oldWest, newWest, "Another database for the west")
	if err != nil {
		return err
	}
	began := time.Now()
	sayf("\nthe platform team edits a ConfigMap of the control plane: another database for the west (commit %.7s)", edit)
	var commit string
	err = t.wait(ctx, "the hub did not publish the change", func(ctx context.Context) (done bool, err error) {
		commit, err = t.repos.head(ctx, platform)
		return commit != before, err
	})
	if err != nil {
		return err
	}
	sayf("  %.1f s later the hub has planned it and committed to %s (commit %.7s)", time.Since(began).Seconds(), platform, commit)
	if err := t.until(ctx, hubclient.Question{Repo: t.repos.path(platform), Ref: branch, Path: "large", Commit: commit}, schema.Passed, 4); err != nil {
		return err
	}
	if err := t.compare(ctx, assigned, edit); err != nil {
		return err
	}
	return t.show()
}

// compare says which assignments an edit of the control plane changed.
func (t *story) compare(ctx context.Context, before []schema.Assignment, edit string) error {
	was := map[string]string{}
	for i := range before {
		was[nameOf(&before[i])] = before[i].ConfigVersion
	}
	var now []schema.Assignment
	err := t.wait(ctx, "the hub did not say what it changed", func(ctx context.Context) (done bool, err error) {
		now, err = t.planned(ctx)
		return slices.ContainsFunc(now, func(a schema.Assignment) bool { return a.ControlPlaneCommit == edit }), err
	})
	if err != nil {
		return err
	}
	for i := range now {
		if name, version := nameOf(&now[i]), now[i].ConfigVersion; was[name] != version {
			sayf("  %s: configuration %.7s, was %.7s", name, version, was[name])
		} else {
			sayf("  %s: configuration %.7s, as it was", name, version)
		}
	}
	return nil
}

// show says which database hello-world has on which hosts.
func (t *story) show() error {
	files, err := filepath.Glob(filepath.Join(t.dir, "hosts", "*", "root", "running", "*-hello-world-app-*"))
	if err != nil {
		return err
	}
	on := map[string][]string{}
	var order []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found := databaseLine.FindSubmatch(text)
		if found == nil {
			return fmt.Errorf("%s names no DATABASE_URL", file)
		}
		database, host := string(found[1]), strings.Split(strings.TrimPrefix(file, t.dir), string(filepath.Separator))[2]
		if on[database] == nil {
			order = append(order, database)
		}
		on[database] = append(on[database], host)
	}
	for _, database := range order {
		hosts := on[database]
		sayf("  %s … %s (%d hosts) run with %s", hosts[0], hosts[len(hosts)-1], len(hosts), database)
	}
	return nil
}

var databaseLine = regexp.MustCompile(`(?m)^DATABASE_URL=(\S+)$`)

// planned waits until the hub has planned and published the environment, and
// returns what it assigned.
func (t *story) planned(ctx context.Context) (all []schema.Assignment, err error) {
	err = t.wait(ctx, "the hub did not plan the control plane", func(ctx context.Context) (done bool, err error) {
		all = nil
		for a, err := range t.client.Assignments(ctx, schema.AssignmentFilter{Environment: branch}, 100) {
			if err != nil {
				return false, err
			}
			if a.Error != "" {
				return false, fmt.Errorf("%s cannot be planned: %s", nameOf(&a), a.Error)
			}
			if a.GitOpsCommit == "" {
				return false, nil
			}
			all = append(all, a)
		}
		return len(all) > 0, nil
	})
	return all, err
}

func nameOf(a *schema.Assignment) string { return a.ClusterType + "/" + a.DeploymentTarget }

// wait waits for something that must come. Complaint says what it is when it does
// not.
func (t *story) wait(ctx context.Context, complaint string, holds func(context.Context) (bool, error)) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		done, err := holds(limited)
		if err == nil && !done {
			err = t.rest(limited)
		}
		if ctx.Err() == nil && limited.Err() != nil {
			return fmt.Errorf("%s within %s; its log ends with: %s", complaint, patience, t.programs.lastLine("hub"))
		}
		if done || err != nil {
			return err
		}
	}
}

// rest waits for a moment. The error says that it is all over.
func (t *story) rest(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case one := <-t.programs.ended:
		return t.programs.endOf(one)
	case <-time.After(look):
		return nil
	}
}

// release is the question about a commit of the application.
func (t *story) release(commit string) hubclient.Question {
	return hubclient.Question{Repo: t.repos.path(application), Ref: branch, Path: targets[0].name, Commit: commit}
}

// until shows what the gate says of a commit, until it says what the story is
// waiting for, over at least so many targets.
func (t *story) until(ctx context.Context, q hubclient.Question, want schema.State, atLeast int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the gate did not become %s within %s", want, patience))
	defer cancel()
	shown := ""
	for wait := time.Duration(0); ; wait = 10 * time.Second {
		v, err := t.client.Compliance(ctx, q, wait)
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
		if v.State == want && v.Counts.Total >= atLeast {
			return nil
		}
		if err := t.rest(ctx); err != nil { // a final answer comes at once
			return err
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

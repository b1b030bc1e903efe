//go:build e2e

package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// gate asks the hub, over the public API, whether a commit has landed.
type gate struct {
	t        testing.TB
	client   *hubclient.Client
	question hubclient.Question
}

// gate returns the one of a commit in a folder of the scene's repository; pairs
// are policy fields and values in turn.
func (s *scene) gate(commit, path string, pairs ...string) *gate {
	q := hubclient.Question{Repo: s.repo.url, Ref: branch, Path: path, Commit: commit, Policy: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		q.Policy[pairs[i]] = pairs[i+1]
	}
	return &gate{t: s.t, client: s.hub.client, question: q}
}

// entry is what a verdict must say of one who is not compliant.
type entry struct {
	// reconciler is kind/name: the namespace is the test's.
	reconciler string
	verdict    schema.Outcome
	// reason is a pattern.
	reason string
}

// passes waits until the gate has passed.
func (g *gate) passes() *schema.Verdict {
	g.t.Helper()
	return g.becomes(schema.Passed)
}

// fails waits until the gate has failed because of these.
func (g *gate) fails(because ...entry) *schema.Verdict {
	g.t.Helper()
	return g.becomes(schema.Failed, because...)
}

// waits follows the gate until it is waiting for exactly these.
func (g *gate) waits(on ...entry) *schema.Verdict {
	g.t.Helper()
	return g.becomes(schema.Waiting, on...)
}

// reopens waits until a gate that has passed is waiting again, for exactly these.
func (g *gate) reopens(because ...entry) *schema.Verdict {
	g.t.Helper()
	return g.follow(schema.Waiting, true, because)
}

// failsAfterAll waits until a gate that has passed has failed because of these.
func (g *gate) failsAfterAll(because ...entry) *schema.Verdict {
	g.t.Helper()
	return g.follow(schema.Failed, true, because)
}

// becomes follows the gate until it is in this state because of exactly these.
// A gate that passes on the way to anything else is a false green, and fails
// the test at once.
func (g *gate) becomes(state schema.State, because ...entry) *schema.Verdict {
	g.t.Helper()
	return g.follow(state, false, because)
}

func (g *gate) follow(state schema.State, mayHavePassed bool, because []entry) *schema.Verdict {
	g.t.Helper()
	over := time.NewTimer(patience)
	defer over.Stop()
	again := time.NewTicker(every)
	defer again.Stop()
	for wait := time.Duration(0); ; wait = 2 * time.Second {
		v, err := g.client.Compliance(g.t.Context(), g.question, wait)
		if err != nil {
			g.t.Fatalf("asking for %s: %v", g.question.Commit, err)
		}
		if v.State == state && says(v, because) {
			return v
		}
		if v.State == schema.Passed && state != schema.Passed && !mayHavePassed {
			g.t.Fatalf("a false green: want %s because of %v, got %s", state, because, show(v))
		}
		// A waiting gate answers when it changes, a final one at once.
		select {
		case <-over.C:
			g.t.Fatalf("not within %s: the gate is %s because of %v; the last verdict: %s", patience, state, because, show(v))
		case <-again.C:
		}
	}
}

// stays asks the gate as often as it takes for something else to become so, and
// wants the same answer each time.
func (g *gate) stays(state schema.State, until string, so func() error) {
	g.t.Helper()
	eventually(g.t, until, func() error {
		if v := g.now(); v.State != state {
			g.t.Fatalf("want the gate to stay %s until %s: %s", state, until, show(v))
		}
		return so()
	})
}

// now asks once.
func (g *gate) now() *schema.Verdict {
	g.t.Helper()
	v, err := g.client.Compliance(g.t.Context(), g.question, 0)
	if err != nil {
		g.t.Fatalf("asking for %s: %v", g.question.Commit, err)
	}
	return v
}

// says tells whether those who are not compliant are exactly these.
func says(v *schema.Verdict, because []entry) bool {
	if len(v.Unfinished) != len(because) {
		return false
	}
	for _, want := range because {
		pattern := regexp.MustCompile(want.reason)
		if !slices.ContainsFunc(v.Unfinished, func(u schema.Unfinished) bool {
			return without(u.Reconciler) == want.reconciler && u.Verdict == want.verdict && pattern.MatchString(u.Reason)
		}) {
			return false
		}
	}
	return true
}

// without takes the namespace out of kind/namespace/name.
func without(reconciler string) string {
	parts := strings.SplitN(reconciler, "/", 3)
	if len(parts) != 3 {
		return reconciler
	}
	return parts[0] + "/" + parts[2]
}

// show is a verdict for an error message.
func show(v *schema.Verdict) string {
	return fmt.Sprintf("%s %q counts=%+v unfinished=%+v currently=%+v near=%+v", v.State, v.Reason, v.Counts, v.Unfinished, v.Currently, v.NearMisses)
}

// exits runs `landfall gate`, as a pipeline does, and wants this exit code.
func (g *gate) exits(code int) {
	g.t.Helper()
	path, err := built("landfall")
	if err != nil {
		g.t.Fatal(err)
	}
	q := g.question
	cmd := exec.CommandContext(g.t.Context(), path, "gate", "--hub", g.client.URL(), "--timeout", patience.String(),
		"--repo", q.Repo, "--ref", q.Ref, "--path", q.Path, "--commit", q.Commit)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || ok && exit.ExitCode() < 0 {
		g.t.Fatalf("running landfall gate: %v\n%s", err, out)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		g.t.Errorf("landfall gate ended with %d, want %d:\n%s", got, code, out)
	}
}

// awaitGone waits until the hub knows a reconciler no more.
func (s *scene) awaitGone(kind, namespace, name string) {
	s.t.Helper()
	eventually(s.t, "the hub has forgotten "+name, func() error {
		_, err := s.row(kind, namespace, name)
		if errors.Is(err, errUnknown) {
			return nil
		}
		return cmp.Or(err, errors.New("it is still there"))
	})
}

var errUnknown = errors.New("the hub does not know it")

// row returns what the hub shows of one of the scene's reconcilers.
func (s *scene) row(kind, namespace, name string) (schema.ClusterState, error) {
	for row, err := range s.hub.client.ClusterStates(s.t.Context(), schema.StateFilter{}, 1000) {
		if err != nil {
			return row, err
		}
		if row.Reconciler == kind+"/"+namespace+"/"+name {
			return row, nil
		}
	}
	return schema.ClusterState{}, fmt.Errorf("%s/%s/%s: %w", kind, namespace, name, errUnknown)
}

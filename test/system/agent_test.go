package system

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// unique returns a name that no other test uses.
func unique(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()[:10]) }

// commit returns the full id of the n-th commit of a test's repository.
func commit(n int) string { return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "commit %d", n))) }

// newRepo returns the URL of a repository that no other test uses.
func newRepo() string { return "https://git.example/org/" + unique("gitops") }

// branch is the one that most tests follow.
const branch = "dev"

// agent reports for one cluster, one message after the other.
type agent struct {
	client  *hubclient.Client
	cluster string
	epoch   uint64
	// sequence is the last message's.
	sequence uint64
}

// newAgent registers a cluster of the test's own as one of `dev/drone`.
func newAgent(t testing.TB, h *hub, edits ...func(*schema.Registration)) *agent {
	t.Helper()
	a := &agent{client: h.client(t), cluster: unique("cluster")}
	a.register(t, edits...)
	return a
}

// register gives the agent a new epoch.
func (a *agent) register(t testing.TB, edits ...func(*schema.Registration)) {
	t.Helper()
	r := schema.Registration{Environment: "dev", Type: "drone"}
	for _, edit := range edits {
		edit(&r)
	}
	epoch, err := a.client.Register(t.Context(), a.cluster, r)
	if err != nil {
		t.Fatalf("registering %s: %v", a.cluster, err)
	}
	a.epoch, a.sequence = epoch, 0
}

// send sends a report as the next message, or as the one it says it is.
func (a *agent) send(t testing.TB, r schema.Report) schema.ReportAnswer {
	t.Helper()
	answer, err := a.try(t.Context(), r)
	if err != nil {
		t.Fatalf("reporting for %s: %v", a.cluster, err)
	}
	return answer
}

func (a *agent) try(ctx context.Context, r schema.Report) (schema.ReportAnswer, error) {
	if r.Epoch == 0 {
		r.Epoch = a.epoch
	}
	if r.Sequence == 0 {
		a.sequence++
		r.Sequence = a.sequence
	}
	r.ObservedAt = time.Now().UTC()
	return a.client.Report(ctx, a.cluster, &r)
}

// says reports reconcilers as they are now.
func (a *agent) says(t testing.TB, now ...schema.Reconciler) {
	t.Helper()
	a.send(t, schema.Report{Mode: schema.ModeDelta, Reconcilers: now})
}

// lists reports all Kustomizations that there are.
func (a *agent) lists(t testing.TB, all ...schema.Reconciler) {
	t.Helper()
	a.send(t, schema.Report{Mode: schema.ModeSnapshot, Kinds: []string{"Kustomization"}, Reconcilers: all})
}

// beats sends a heartbeat of the agent's own epoch.
func (a *agent) beats(t testing.TB) schema.HeartbeatAnswer {
	t.Helper()
	answer, err := a.client.Heartbeat(t.Context(), a.cluster, schema.Heartbeat{Epoch: a.epoch, Sequence: a.sequence})
	if err != nil {
		t.Fatalf("a heartbeat of %s: %v", a.cluster, err)
	}
	return answer
}

// kustomization is one that follows a folder of a repository's branch.
func kustomization(name, repo, path string) schema.Reconciler {
	return schema.Reconciler{
		Kind: "Kustomization", Namespace: "flux-system", Name: name,
		Sources: []schema.Source{{Type: schema.SourceGit, URL: repo, Ref: branch, Path: "./" + path}},
		Status:  schema.StatusPending,
	}
}

// at returns the reconciler with a status at a commit: success has applied it,
// everything else attempts it and runs what was applied before.
func at(r schema.Reconciler, commit string, status schema.Status) schema.Reconciler {
	revision := branch + "@sha1:" + commit
	r.Status, r.Attempted = status, []string{revision}
	switch status {
	case schema.StatusSuccess:
		r.Applied, r.Reason = []string{revision}, "ReconciliationSucceeded"
	case schema.StatusFailure:
		r.Reason, r.Message = "BuildFailed", "kustomization.yaml: no such file"
	case schema.StatusInProgress:
		r.Reason = "Progressing"
	}
	return r
}

// ownedBy returns the reconciler as one that another one made.
func ownedBy(r, owner schema.Reconciler) schema.Reconciler {
	ref := owner.Ref()
	r.Owner = &ref
	return r
}

// question asks about a commit in a folder of a repository; pairs are policy
// fields and values in turn.
func question(repo, path, commit string, pairs ...string) hubclient.Question {
	q := hubclient.Question{Repo: repo, Ref: branch, Path: path, Commit: commit, Policy: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		q.Policy[pairs[i]] = pairs[i+1]
	}
	return q
}

// ask asks once.
func ask(t testing.TB, c *hubclient.Client, q hubclient.Question) *schema.Verdict {
	t.Helper()
	return askWaiting(t, c, q, 0)
}

// askWaiting asks once and lets the hub hold the answer back.
func askWaiting(t testing.TB, c *hubclient.Client, q hubclient.Question, wait time.Duration) *schema.Verdict {
	t.Helper()
	v, err := c.Compliance(t.Context(), q, wait)
	if err != nil {
		t.Fatalf("asking for %s: %v", q.Commit, err)
	}
	return v
}

// askUntil follows the gate through wait= until the verdict is so.
func askUntil(t testing.TB, c *hubclient.Client, q hubclient.Question, what string, so func(*schema.Verdict) bool) *schema.Verdict {
	t.Helper()
	began := time.Now()
	v := ask(t, c, q)
	for !so(v) {
		if time.Since(began) > patience {
			t.Fatalf("not within %s: %s; the last verdict: %s", patience, what, show(v))
		}
		v = askWaiting(t, c, q, 10*time.Second)
		if !so(v) && v.State.Final() {
			t.Fatalf("the gate ended otherwise than: %s: %s", what, show(v))
		}
	}
	return v
}

// show is a verdict for an error message.
func show(v *schema.Verdict) string {
	return fmt.Sprintf("%s %q counts=%+v unfinished=%+v near=%+v", v.State, v.Reason, v.Counts, v.Unfinished, v.NearMisses)
}

// expect checks state and reason of a verdict.
func expect(t testing.TB, v *schema.Verdict, state schema.State, reason string) {
	t.Helper()
	if v.State != state || v.Reason != reason {
		t.Errorf("want %s %q, got %s", state, reason, show(v))
	}
}

// stateRows lists a cluster's reconcilers as people see them, by reconciler.
func stateRows(t testing.TB, c *hubclient.Client, cluster string) map[string]schema.ClusterState {
	t.Helper()
	rows := map[string]schema.ClusterState{}
	for row, err := range c.ClusterStates(t.Context(), schema.StateFilter{Cluster: cluster}, 2) {
		if err != nil {
			t.Fatalf("listing %s: %v", cluster, err)
		}
		if _, twice := rows[row.Reconciler]; twice {
			t.Errorf("%s stands in the list of %s twice", row.Reconciler, cluster)
		}
		rows[row.Reconciler] = row
	}
	return rows
}

// total adds up a cluster's counts.
func total(t testing.TB, c *hubclient.Client, cluster string) int {
	t.Helper()
	row, err := c.Cluster(t.Context(), cluster)
	if err != nil {
		t.Fatalf("asking for %s: %v", cluster, err)
	}
	n := 0
	for _, count := range row.Counts {
		n += int(count)
	}
	return n
}

// refused checks that an error is the hub's refusal with this status and code.
func refused(t testing.TB, err error, status int, code schema.Code) {
	t.Helper()
	var problem *schema.Problem
	if !asProblem(err, &problem) {
		t.Errorf("want %d %s, got %v", status, code, err)
		return
	}
	if problem.Status != status || problem.Code != code {
		t.Errorf("want %d %s, got %d %v", status, code, problem.Status, problem)
	}
}

// request sends a raw request and returns its answer, whatever it is.
func request(t testing.TB, method, url, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return do(t, r)
}

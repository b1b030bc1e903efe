package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// describe is a descriptor of the folder drone.
func (a *agent) describe(version string) string {
	return fmt.Sprintf(`apiVersion: hub.kalypso.io/v1alpha1
kind: DeploymentDescriptor
metadata: {name: hello}
spec:
  workload:
    name: hello
    source: {repo: https://git.example/org/hello, branch: main, path: .}
    application: {name: greeting, workspace: {name: kaizen}}
  deploymentTarget:
    name: functional-test
    environment: dev
    manifests: {repo: %q, branch: main, path: ./drone}
  workloadVersion: {version: %q, build: b-1, commit: ca9ee9d0ff9ec52b998fdcf64e128c84ddd0e661, buildTime: "2026-11-20T09:00:00Z"}
`, a.url, version)
}

// send pushes descriptors for a commit and returns the answer.
func (a *agent) send(commit, body string) (status int, answer string) {
	a.t.Helper()
	at := a.hub.URL() + "/api/v1/descriptors?" + url.Values{"repo": {a.url}, "ref": {"main"}, "commit": {commit}}.Encode()
	return a.fetch(http.MethodPost, at, body)
}

func (a *agent) fetch(method, at, body string) (status int, answer string) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), method, at, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/yaml")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// runs waits until the cluster's row has a version and names.
func (a *agent) runs(when, want string) {
	a.t.Helper()
	got := ""
	ctx, cancel := context.WithTimeout(a.t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil && got != want {
		got = ""
		for row, err := range a.client.ClusterStates(ctx, schema.StateFilter{Cluster: a.cluster}, 10) {
			if err != nil {
				a.t.Fatal(err)
			}
			got = strings.Join([]string{row.Environment, row.Workspace, row.Application, row.Workload, row.DeploymentTarget, row.Version}, "/")
		}
		if got == want {
			return
		}
		moment(ctx)
	}
	a.t.Errorf("%s it runs %s, want %s", when, got, want)
}

// moment is the pause between two questions.
func moment(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

// Reports and metadata come in any order: names are there as soon as both are,
// from Git or pushed, and a broken descriptor is named in readiness.
func TestNames(t *testing.T) {
	t.Parallel()
	s := newStage(t, "apps")
	a := s.agent(t, "apps")
	first := a.commit(map[string]string{"drone/a": "1", "descriptor.yaml": a.describe("1.0.0")})
	a.says(first, schema.StatusSuccess)
	a.runs("after the report", "dev/kaizen/greeting/hello/functional-test/1.0.0")

	second := a.commit(map[string]string{"drone/a": "2"}) // its descriptor is pushed
	a.expect("the second commit is known", second, `waiting pending "not fetched"`, "progress_deadline", "1h")
	if status, answer := a.send(second, a.describe("2.0.0")); status != http.StatusAccepted || !strings.Contains(answer, `"version":"2.0.0"`) {
		t.Fatalf("%d: %s", status, answer)
	}
	a.says(second, schema.StatusSuccess)
	a.runs("what was pushed", "dev/kaizen/greeting/hello/functional-test/2.0.0")

	status, answer := a.send(second, strings.Replace(a.describe("3.0.0"), "workload:", "wrokload:", 1))
	var p schema.Problem
	if err := json.Unmarshal([]byte(answer), &p); err != nil || status != http.StatusBadRequest || p.Code != schema.CodeInvalidDescriptor || len(p.Errors) != 2 ||
		p.Errors[0].File != "body" || p.Errors[0].Line != 5 || !strings.Contains(p.Errors[0].Reason, "wrokload") {
		t.Errorf("a broken one: %d: %s", status, answer)
	}

	a.commit(map[string]string{"drone/a": "2", "deep/broken.yaml": strings.Replace(a.describe("3.0.0"), "2026-11-20", "yesterday", 1)})
	want, ready := "problems with its documents: 1, the first: main: deep/broken.yaml:13: spec.workloadVersion.buildTime", ""
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil && !strings.Contains(ready, want) {
		if status, ready = a.fetch(http.MethodGet, s.hub.URL()+"/readyz", ""); status != http.StatusOK {
			t.Fatalf("a broken descriptor makes nobody wait: %d: %s", status, ready)
		}
		moment(ctx)
	}
	if !strings.Contains(ready, want) {
		t.Errorf("readiness says nothing of the broken descriptor: %s", ready)
	}
}

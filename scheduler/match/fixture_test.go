package match

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
)

// sample reads a folder below ../testdata, which holds the control plane of
// Kalypso's tutorial as it is.
func sample(t *testing.T, folder string) []controlplane.File {
	t.Helper()
	var files []controlplane.File
	root := filepath.Join("..", "testdata", folder)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		files = append(files, controlplane.File{Path: filepath.ToSlash(strings.TrimPrefix(name, root+string(filepath.Separator))), Text: text})
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("reading the sample %s: %d files, %v", root, len(files), err)
	}
	return files
}

// tutorial is the model of the tutorials' dev environment, with the workload
// that they onboard and further documents for the environment.
func tutorial(t *testing.T, environment string, more ...string) *controlplane.Model {
	t.Helper()
	base := controlplane.ParseBase(append(sample(t, "kalypso-control-plane/main"), controlplane.File{
		Path: "workloads/hello-world-app.yaml",
		Text: []byte(`
apiVersion: scheduler.kalypso.io/v1alpha1
kind: WorkloadRegistration
metadata:
  name: hello-world-app
  labels:
    type: application
spec:
  workload:
    repo: https://github.com/microsoft/kalypso-app-src
    branch: main
    path: workload/
  workspace: kaizen-app-team
`),
	}))
	env := append(sample(t, "kalypso-control-plane/dev"), controlplane.File{Path: "more.yaml", Text: []byte(strings.Join(more, "\n---\n"))})
	var workloads []controlplane.Workload
	problems := base.Problems
	for _, r := range base.Registrations {
		var own []controlplane.File
		for _, f := range sample(t, "kalypso-workloads") {
			if (f.Path == "hello-world-app.yaml") == (r.Name == "hello-world-app") {
				own = append(own, f)
			}
		}
		w, p := controlplane.ParseWorkloads(r, own)
		workloads, problems = append(workloads, w...), append(problems, p...)
	}
	m := controlplane.Join(environment, base, controlplane.ParseEnvironment(env), workloads, problems...)
	if len(m.Problems) > 0 {
		t.Fatalf("the tutorial has problems: %v", m.Problems)
	}
	return &m
}

// The policies of seed 003.
const (
	functionalTest = `
apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata:
  name: functional-test-policy
spec:
  deploymentTargetSelector:
    workspace: kaizen-app-team
    labelSelector:
      matchLabels:
        purpose: functional-test
        edge: "true"
  clusterTypeSelector:
    labelSelector:
      matchLabels:
        restricted: "true"
        edge: "true"`
	performanceTest = `
apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata:
  name: performance-test-policy
spec:
  deploymentTargetSelector:
    workspace: kaizen-app-team
    labelSelector:
      matchLabels:
        purpose: performance-test
        edge: "false"
  clusterTypeSelector:
    labelSelector:
      matchLabels:
        size: large`
	uatTest = `
apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata:
  name: uat-test-policy
spec:
  deploymentTargetSelector:
    workspace: kaizen-app-team
    labelSelector:
      matchLabels:
        purpose: uat-test
  clusterTypeSelector:
    labelSelector: {}`
)

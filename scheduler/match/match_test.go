package match

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
)

// plan returns the assignments of a model as "type/target: policies", and what
// is wrong.
func plan(m *controlplane.Model) (lines, problems []string) {
	targets, bad := Targets(m)
	all, more := Assignments(m, targets)
	for _, a := range all {
		lines = append(lines, a.Name()+": "+strings.Join(a.Policies, " "))
	}
	for _, p := range append(bad, more...) {
		problems = append(problems, p.Error())
	}
	return lines, problems
}

// Rule 1: deployment target identity.
func TestRule1Identity(t *testing.T) {
	m := tutorial(t, "dev")
	targets, problems := Targets(m)
	if len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
	var names []string
	for _, d := range targets {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"hello-world-app-functional-test", "hello-world-app-performance-test", "observability-prometheus"}, names); diff != "" {
		t.Errorf("the targets of dev (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(DeploymentTarget{
		Place: controlplane.Place{File: "hello-world-app.yaml", Line: 10},
		Name:  "hello-world-app-functional-test", Short: "functional-test", Workload: "hello-world-app", Workspace: "kaizen-app-team", Environment: "dev",
		Labels: map[string]string{
			"purpose": "functional-test", "edge": "true", "type": "application", "family": "force", "workload": "hello-world-app", "workspace": "kaizen-app-team",
		},
		Manifests: map[string]any{"repo": "https://github.com/microsoft/kalypso-app-gitops", "branch": "dev", "path": "./functional-test"},
	}, targets[0]); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}

	// The workload's labels lie over the target's, and nobody's over its names.
	one := controlplane.Model{Environment: "dev", Workloads: []controlplane.Workload{{
		Name: "w", Workspace: "team", Labels: map[string]string{"a": "workload", "workload": "x"}, ConfigSchemas: []string{"one"},
		Targets: []controlplane.Target{{Name: "t", Environment: "dev", Labels: map[string]string{"a": "target", "b": "target", "workspace": "x"}, ConfigSchemas: []string{"two"}}},
	}}}
	targets, _ = Targets(&one)
	if diff := cmp.Diff(map[string]string{"a": "workload", "b": "target", "workload": "w", "workspace": "team"}, targets[0].Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"one", "two"}, targets[0].Schemas); diff != "" {
		t.Errorf("schemas (-want +got):\n%s", diff)
	}
}

// Rule 2: assignment, on the tutorial step by step.
func TestRule2Assignment(t *testing.T) {
	both := strings.NewReplacer("performance-test-policy", "again", "size: large", "size: large", "edge: \"false\"", "type: application").Replace(performanceTest)
	tests := map[string]struct {
		reason, environment string
		policies            []string
		want                []string
	}{
		"as it is": {
			"the policy selects on a label of the workload", "dev", nil,
			[]string{"large/observability-prometheus: observability-policy"},
		},
		"dev": {
			"functional test on drone, performance test on large", "dev", []string{functionalTest, performanceTest},
			[]string{
				"drone/hello-world-app-functional-test: functional-test-policy",
				"large/hello-world-app-performance-test: performance-test-policy",
				"large/observability-prometheus: observability-policy",
			},
		},
		"two reasons": {
			"two policies that pick the same pair make one assignment", "dev", []string{performanceTest, both},
			[]string{
				"large/hello-world-app-performance-test: again performance-test-policy",
				"large/observability-prometheus: observability-policy",
			},
		},
		"stage": {
			"an empty selector takes every cluster type", "stage", []string{uatTest, functionalTest},
			[]string{
				"command-center/hello-world-app-uat-test: uat-test-policy", "drone/hello-world-app-uat-test: uat-test-policy",
				"large/hello-world-app-uat-test: uat-test-policy", "small/hello-world-app-uat-test: uat-test-policy",
			},
		},
		"another workspace": {
			"a policy of a workspace takes nobody else's targets", "dev", []string{strings.Replace(functionalTest, "kaizen-app-team", "platform-team", 1)},
			[]string{"large/observability-prometheus: observability-policy"},
		},
		"all workspaces": {
			"a policy without a workspace takes everybody's", "dev", []string{`
apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata: {name: all}
spec: {deploymentTargetSelector: {}, clusterTypeSelector: {labelSelector: {matchExpressions: [{key: size, operator: NotIn, values: [large, small]}, {key: edge, operator: Exists}]}}}`},
			[]string{
				"drone/hello-world-app-functional-test: all", "drone/hello-world-app-performance-test: all", "drone/observability-prometheus: all",
				"large/observability-prometheus: observability-policy",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			lines, problems := plan(tutorial(t, tc.environment, tc.policies...))
			if diff := cmp.Diff(tc.want, lines); diff != "" || len(problems) > 0 {
				t.Errorf("%s: problems %v, assignments (-want +got):\n%s", tc.reason, problems, diff)
			}
		})
	}
}

// targetsOf makes a model of workloads, given as workload/target and manifests.
func targetsOf(all ...controlplane.Workload) *controlplane.Model {
	return &controlplane.Model{Environment: "dev", Workloads: all}
}

func workload(name, target string, manifests ...string) controlplane.Workload {
	m := map[string]any{}
	for i := 0; i+1 < len(manifests); i += 2 {
		m[manifests[i]] = manifests[i+1]
	}
	at := controlplane.Place{File: name + ".yaml", Line: 7}
	return controlplane.Workload{Name: name, Targets: []controlplane.Target{{Place: at, Name: target, Environment: "dev", Manifests: m}}}
}

func TestOneFolderClaimedTwice(t *testing.T) {
	const message = `b.yaml:7: Workload "b": deployment target "b-t" claims the folder of manifests (repo, branch and path) that "a-t" at a.yaml:7 has: give each its own`
	tests := map[string]struct {
		reason string
		a, b   []string
		taken  bool
	}{
		"the same":          {"the same words", []string{"repo", "https://g/o/r", "branch", "dev", "path", "x"}, []string{"repo", "https://g/o/r", "branch", "dev", "path", "x"}, true},
		"other words":       {"the same folder in other words", []string{"repo", "https://g.com/o/r", "branch", "dev", "path", "./x/"}, []string{"repo", "git@G.com:o/r.git", "branch", "refs/heads/dev", "path", "y/../x"}, true},
		"no repository":     {"what is no repository is compared as written", []string{"repo", "r", "branch", "dev"}, []string{"repo", "r", "branch", "dev"}, true},
		"another path":      {"folders of one repository", []string{"repo", "https://g/o/r", "branch", "dev", "path", "x"}, []string{"repo", "https://g/o/r", "branch", "dev", "path", "x/y"}, false},
		"another branch":    {"branches of one repository", []string{"repo", "https://g/o/r", "branch", "dev", "path", "x"}, []string{"repo", "https://g/o/r", "branch", "qa", "path", "x"}, false},
		"another tag":       {"tags of one repository", []string{"repo", "oci://g/o/r", "tag", "1", "path", "x"}, []string{"repo", "oci://g/o/r", "tag", "2", "path", "x"}, false},
		"charts":            {"charts of one repository have no folder", []string{"type", "helm", "repo", "https://g/o/r", "chart", "x", "path", ""}, []string{"type", "helm", "repo", "https://g/o/r", "chart", "x", "path", ""}, false},
		"a repository only": {"no folder is named", []string{"repo", "https://g/o/r"}, []string{"repo", "https://g/o/r"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			targets, problems := Targets(targetsOf(workload("a", "t", tc.a...), workload("b", "t", tc.b...), workload("c", "t", "repo", "https://g/o/c", "path", "c")))
			if len(targets) != 3 || targets[0].Broken != "" || targets[2].Broken != "" {
				t.Fatalf("%s: the other targets are not as they were: %+v", tc.reason, targets)
			}
			if got := targets[1].Broken != ""; got != tc.taken {
				t.Errorf("%s: broken is %q", tc.reason, targets[1].Broken)
			}
			var want, got []string
			if tc.taken {
				want = []string{message}
			}
			for _, p := range problems {
				got = append(got, p.Error())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: problems (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// a-b + c and a + b-c are one name, which is one folder of the GitOps repository.
func TestOneNameTwice(t *testing.T) {
	targets, problems := Targets(targetsOf(workload("a", "b-c"), workload("a-b", "c"), workload("a-b", "d")))
	if len(targets) != 2 || targets[0].Workload != "a" || targets[1].Name != "a-b-d" {
		t.Errorf("targets %+v", targets)
	}
	want := `a-b.yaml:7: Workload "a-b": there is a deployment target "a-b-c" already, that of workload "a" at a.yaml:7, and that one counts: rename one`
	if len(problems) != 1 || problems[0].Error() != want {
		t.Errorf("problems %v, want %s", problems, want)
	}
}

func TestBrokenIsAssigned(t *testing.T) {
	m := tutorial(t, "dev")
	for i := range m.ClusterTypes {
		m.ClusterTypes[i].Broken = "type"
	}
	targets, _ := Targets(m)
	all, _ := Assignments(m, targets)
	if len(all) != 1 || all[0].Broken() != "type" {
		t.Fatalf("assignments %+v, want the one that is there, broken", all)
	}
	targets[2].Broken = "target"
	if all[0].Broken() != "target" {
		t.Errorf("broken by %q, want by its target", all[0].Broken())
	}
}

// 100 shuffles of a model's input give the same assignments.
func TestShuffles(t *testing.T) {
	texts := []string{functionalTest, performanceTest, uatTest, strings.Replace(performanceTest, "performance-test-policy", "x", 1)}
	for i := range 20 {
		texts = append(texts, fmt.Sprintf("apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nmetadata: {name: c%d, labels: {size: large}}\nspec: {reconciler: r, namespaceService: n}", i))
	}
	want, _ := plan(tutorial(t, "dev", texts...))
	if len(want) != 43 {
		t.Fatalf("%d assignments, want 43", len(want))
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		rng.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
		got, _ := plan(tutorial(t, "dev", texts...))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

func TestTooManyAssignments(t *testing.T) {
	m := &controlplane.Model{Environment: "dev"}
	for i := range 1001 {
		m.ClusterTypes = append(m.ClusterTypes, controlplane.ClusterType{Name: fmt.Sprintf("c%04d", i)})
		m.Workloads = append(m.Workloads, workload(fmt.Sprintf("w%04d", i), "t"))
	}
	m.Policies = []controlplane.Policy{{Name: "everything", Place: controlplane.Place{File: "p.yaml", Line: 3}}}
	targets, _ := Targets(m)
	all, problems := Assignments(m, targets)
	if len(all) != mostAssignments {
		t.Errorf("%d assignments, want %d", len(all), mostAssignments)
	}
	want := `p.yaml:3: SchedulingPolicy "everything": the policies ask for more than 1000000 assignments, and what follows is left out: select less`
	if len(problems) != 1 || problems[0].Error() != want || !problems[0].Hides {
		t.Errorf("problems %v", problems)
	}
}

func BenchmarkAssignments(b *testing.B) {
	m := &controlplane.Model{Environment: "dev"}
	env := ""
	for i := range 200 {
		env += fmt.Sprintf("apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nmetadata: {name: c%d, labels: {ring: r%d}}\nspec: {reconciler: r, namespaceService: n}\n---\n", i, i%3)
	}
	for i := range 3 {
		env += fmt.Sprintf("apiVersion: scheduler.kalypso.io/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: p%d}\n"+
			"spec: {deploymentTargetSelector: {labelSelector: {matchLabels: {workspace: team}}}, clusterTypeSelector: {labelSelector: {matchLabels: {ring: r%d}}}}\n---\n", i, i)
	}
	*m = controlplane.Join("dev", controlplane.Model{}, controlplane.ParseEnvironment([]controlplane.File{{Path: "e.yaml", Text: []byte(env)}}), nil)
	for i := range 500 {
		w := workload(fmt.Sprintf("w%d", i), "t")
		w.Workspace = "team"
		m.Workloads = append(m.Workloads, w)
	}
	b.ResetTimer()
	for b.Loop() {
		targets, _ := Targets(m)
		if all, _ := Assignments(m, targets); len(all) != 100_000 {
			b.Fatalf("%d assignments", len(all))
		}
	}
}

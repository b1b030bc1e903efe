package scheduler

import "testing"

// A control plane written for Kalypso, from a public repository, without an edit.
func TestKalypsoSample(t *testing.T) {
	workloads := readTree(t, "testdata/kalypso-workloads")
	p := plane{
		main: readTree(t, "testdata/kalypso-control-plane/main"), env: readTree(t, "testdata/kalypso-control-plane/dev"),
		sources: map[string]tree{
			"https://github.com/microsoft/kalypso-svc-src": {"workloads/observability.yaml": workloads["observability.yaml"]},
		},
	}
	plan := New(p.model("dev"))
	noComplaints(t, &plan)
	if plan.PromotedCommit != "5523a85f37d12c0c7c10ab6616644db089fcd6f7" {
		t.Errorf("promoted is %q", plan.PromotedCommit)
	}
	golden(t, "golden/kalypso", written(&plan))
}

// The second tutorial shows the files of an assignment. Ours differ where the
// sample's template does (the interval), and in how YAML is quoted.
func TestKalypsoTutorial(t *testing.T) {
	workloads := readTree(t, "testdata/kalypso-workloads")
	p := plane{
		main: readTree(t, "testdata/kalypso-control-plane/main"), env: readTree(t, "testdata/kalypso-control-plane/dev"),
		sources: map[string]tree{
			"https://github.com/microsoft/kalypso-svc-src": {"workloads/observability.yaml": workloads["observability.yaml"]},
			"https://github.com/microsoft/kalypso-app-src": {"workload/workload.yaml": workloads["hello-world-app.yaml"]},
		},
	}
	p.main["workloads/hello-world-app.yaml"] = lines(
		"apiVersion: scheduler.kalypso.io/v1alpha1", "kind: WorkloadRegistration",
		"metadata:", "  name: hello-world-app", "  labels:", "    type: application",
		"spec:", "  workload:", "    repo: https://github.com/microsoft/kalypso-app-src", "    branch: main", "    path: workload/",
		"  workspace: kaizen-app-team")
	p.env["scheduling/kaizen/functional-test-policy.yaml"] = lines(
		"apiVersion: scheduler.kalypso.io/v1alpha1", "kind: SchedulingPolicy", "metadata:", "  name: functional-test-policy",
		"spec:", "  deploymentTargetSelector:", "    workspace: kaizen-app-team", "    labelSelector:", "      matchLabels:",
		"        purpose: functional-test", `        edge: "true"`,
		"  clusterTypeSelector:", "    labelSelector:", "      matchLabels:", `        restricted: "true"`, `        edge: "true"`)
	plan := New(p.model("dev"))
	noComplaints(t, &plan)
	a := find(t, &plan, "drone/hello-world-app-functional-test")
	for file, want := range map[string]string{
		"namespace.yaml": lines("apiVersion: v1", "kind: Namespace", "metadata:", `  name: "dev-drone-hello-world-app-functional-test" `,
			"  labels:", `    environment: "dev"`, `    workspace: "kaizen-app-team"`, `    workload: "hello-world-app"`,
			`    deploymentTarget: "hello-world-app-functional-test"`, "    someLabel: some-value"),
		"platform-config.yaml": lines("apiVersion: v1", "kind: ConfigMap", "metadata:", "  name: platform-config",
			"  namespace: dev-drone-hello-world-app-functional-test", "data:", "  CLUSTER_NAME: Drone",
			"  DATABASE_URL: mysql://restricted-host:3306/mysqlrty123", "  ENVIRONMENT: Dev", "  REGION: East US",
			`  SOME_COMMON_ENVIRONMENT_VARIABLE: "false"`),
	} {
		if got := text(t, a, file); got != want {
			t.Errorf("%s is\n%s", file, got)
		}
	}
	if got := names(&plan); len(got) != 2 || got[1] != "large/observability-prometheus" {
		t.Errorf("planned are %v", got)
	}
}

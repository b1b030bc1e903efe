package scheduler

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/scheduler/render"
)

const exampleControlPlane = "../examples/control-plane"

// example is the example's control plane for one environment.
func example(t *testing.T, environment string) plane {
	t.Helper()
	all := readTree(t, exampleControlPlane)
	return plane{
		main: all.sub("main"), env: all.sub(environment),
		sources: map[string]tree{
			"https://git.example/kaizen/hello-world-app": all.sub("sources/hello-world-app"),
			"https://git.example/platform/services":      all.sub("sources/platform-services"),
		},
	}
}

func (p *plane) planned(t *testing.T, by *Planner, environment string) Plan {
	t.Helper()
	plan := by.Plan(p.model(environment))
	noComplaints(t, &plan)
	return plan
}

// changedBetween lists the files that two plans differ by, other than READMEs.
func changedBetween(a, b *Plan) []string {
	before, after := written(a), written(b)
	var all []string
	for name, text := range after {
		if before[name] != text && !strings.HasSuffix(name, "README.md") {
			all = append(all, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			all = append(all, name+" deleted")
		}
	}
	return sorted(all)
}

// holds wants texts in the files of an assignment.
func holds(t *testing.T, a *Planned, want map[string][]string) {
	t.Helper()
	for file, parts := range want {
		for _, part := range parts {
			if !strings.Contains(text(t, a, file), part) {
				t.Errorf("%s has no %s:\n%s", file, part, text(t, a, file))
			}
		}
	}
}

// The tutorial of the field, step by step.
func TestTutorial(t *testing.T) {
	dev, stage := example(t, "dev"), example(t, "stage")
	devPlanner, stagePlanner := NewPlanner(render.Limits{}), NewPlanner(render.Limits{})

	// Before: the application is not registered, and nobody has a policy for it.
	later := map[string]string{}
	take := func(from tree, names ...string) {
		for _, name := range names {
			if from[name] == "" {
				t.Fatalf("the example has no %s", name)
			}
			later[name] = from[name]
			delete(from, name)
		}
	}
	take(dev.main, "workloads/hello-world-app.yaml")
	delete(stage.main, "workloads/hello-world-app.yaml")
	take(dev.env, "scheduling/kaizen/functional-test-policy.yaml", "scheduling/kaizen/performance-test-policy.yaml")
	take(stage.env, "scheduling/kaizen/uat-test-policy.yaml")
	onDev, onStage := dev.planned(t, devPlanner, "dev"), stage.planned(t, stagePlanner, "stage")
	if diff := cmp.Diff([]string{"large/observability-prometheus"}, names(&onDev)); diff != "" {
		t.Errorf("before, dev has\n%s", diff)
	}
	if len(onStage.Assignments) != 0 {
		t.Errorf("before, stage has %v", names(&onStage))
	}
	for _, plan := range []*Plan{&onDev, &onStage} {
		if plan.PromotedCommit != "5523a85f37d12c0c7c10ab6616644db089fcd6f7" {
			t.Errorf("%s follows %q", plan.Environment, plan.PromotedCommit)
		}
	}

	// The platform team onboards the application: still nobody knows where it goes.
	dev.main["workloads/hello-world-app.yaml"] = later["workloads/hello-world-app.yaml"]
	registered := dev.planned(t, devPlanner, "dev")
	if changed := changedBetween(&onDev, &registered); changed != nil {
		t.Errorf("a registration alone changed %v", changed)
	}

	// Policies for dev: drone and large are chosen, command-center and small are not.
	for _, name := range []string{"scheduling/kaizen/functional-test-policy.yaml", "scheduling/kaizen/performance-test-policy.yaml"} {
		dev.env[name] = later[name]
	}
	assigned := dev.planned(t, devPlanner, "dev")
	want := []string{"drone/hello-world-app-functional-test", "large/hello-world-app-performance-test", "large/observability-prometheus"}
	if diff := cmp.Diff(want, names(&assigned)); diff != "" {
		t.Errorf("dev is assigned\n%s", diff)
	}
	a := find(t, &assigned, "drone/hello-world-app-functional-test")
	if diff := cmp.Diff([]string{"functional-test-policy"}, a.Policies); diff != "" {
		t.Error(diff)
	}
	holds(t, a, map[string][]string{
		"namespace.sh":       {"NAMESPACE='dev-drone-hello-world-app-functional-test'", "WORKSPACE='kaizen-app-team'"},
		"platform-config.sh": {"CLUSTER_NAME='Drone'", "DATABASE_URL='mysql://restricted-host:3306/mysqlrty123'", "REGION='East US'", "SOME_COMMON_ENVIRONMENT_VARIABLE='false'"},
		"reconciler.sh":      {"MANIFESTS_REPO='https://git.example/kaizen/hello-world-gitops'", "MANIFESTS_BRANCH='dev'", "MANIFESTS_PATH='./functional-test'"},
	})
	var folders []string
	for _, f := range assigned.Folders {
		folders = append(folders, f.Name)
		if !strings.HasPrefix(string(f.Readme), Mark) {
			t.Errorf("%s/README.md does not begin with the mark", f.Name)
		}
	}
	if diff := cmp.Diff([]string{"command-center", "drone", "large", "small"}, folders); diff != "" {
		t.Errorf("folders of cluster types:\n%s", diff)
	}

	// Promoted to stage, where a policy takes every cluster type, and all of them
	// are Kubernetes.
	stage.main["workloads/hello-world-app.yaml"] = later["workloads/hello-world-app.yaml"]
	stage.env["scheduling/kaizen/uat-test-policy.yaml"] = later["scheduling/kaizen/uat-test-policy.yaml"]
	uat := stage.planned(t, stagePlanner, "stage")
	if diff := cmp.Diff([]string{"drone/hello-world-app-uat-test", "large/hello-world-app-uat-test"}, names(&uat)); diff != "" {
		t.Errorf("stage is assigned\n%s", diff)
	}
	a = find(t, &uat, "drone/hello-world-app-uat-test")
	holds(t, a, map[string][]string{
		"namespace.yaml":       {`name: "stage-drone-hello-world-app-uat-test"`, `workspace: "kaizen-app-team"`},
		"platform-config.yaml": {"CLUSTER_NAME: Drone", "DATABASE_URL: mysql://restricted-host:3306/mysqlrty123", "REGION: East US", `SOME_COMMON_ENVIRONMENT_VARIABLE: "false"`},
		"reconciler.yaml":      {`url: "https://git.example/kaizen/hello-world-gitops"`, `branch: "stage"`, `path: "./uat-test"`, `targetNamespace: "stage-drone-hello-world-app-uat-test"`},
	})

	// Another database for the west reaches the west.
	west := stage.env["cluster-types/west-us/west-us-config.yaml"]
	stage.env["cluster-types/west-us/west-us-config.yaml"] = strings.Replace(west, "mysql://west:8806/mysql2", "mysql://west-stage:8806/mysql2", 1)
	database := stage.planned(t, stagePlanner, "stage")
	if diff := cmp.Diff([]string{"large/hello-world-app-uat-test/platform-config.yaml"}, changedBetween(&uat, &database)); diff != "" {
		t.Errorf("the database of the west changed\n%s", diff)
	}
	if was, is := find(t, &uat, "drone/hello-world-app-uat-test").Version, find(t, &database, "drone/hello-world-app-uat-test").Version; was != is {
		t.Error("drone has a new version")
	}
	if was, is := find(t, &uat, "large/hello-world-app-uat-test").Version, find(t, &database, "large/hello-world-app-uat-test").Version; was == is {
		t.Error("large has no new version")
	}

	// A new cluster type gets the target.
	stage.env["cluster-types/west-us/small/small-cluster-type.yaml"] = dev.env["cluster-types/west-us/small/small-cluster-type.yaml"]
	small := stage.planned(t, stagePlanner, "stage")
	if diff := cmp.Diff([]string{
		"small/hello-world-app-uat-test/namespace.yaml", "small/hello-world-app-uat-test/platform-config.yaml", "small/hello-world-app-uat-test/reconciler.yaml",
	}, changedBetween(&database, &small)); diff != "" {
		t.Errorf("a new cluster type changed\n%s", diff)
	}
	added := find(t, &small, "small/hello-world-app-uat-test")
	if !strings.Contains(text(t, added, "platform-config.yaml"), "mysql://west-stage:8806/mysql2") || !strings.Contains(text(t, added, "reconciler.yaml"), "kind: Application") {
		t.Errorf("small has\n%s\n%s", text(t, added, "platform-config.yaml"), text(t, added, "reconciler.yaml"))
	}
	for environment, p := range map[string]*plane{"dev": &dev, "stage": &stage} {
		cold := New(p.model(environment))
		golden(t, filepath.Join("golden", "control-plane", environment), written(&cold))
	}
}

// The example's templates are the ready ones.
func TestExampleUsesReadyTemplates(t *testing.T) {
	ready := readTree(t, readyTemplates)
	for name, text := range readTree(t, filepath.Join(exampleControlPlane, "main", "templates")) {
		if diff := cmp.Diff(ready[name], text); diff != "" {
			t.Errorf("%s is not what examples/templates has; copy it anew:\n%s", name, diff)
		}
	}
}

// The example as it lies there, without the tutorial's changes.
func TestExampleIsWhole(t *testing.T) {
	for environment, want := range map[string][]string{
		"dev":   {"drone/hello-world-app-functional-test", "large/hello-world-app-performance-test", "large/observability-prometheus"},
		"stage": {"drone/hello-world-app-uat-test", "large/hello-world-app-uat-test"},
	} {
		p := example(t, environment)
		plan := New(p.model(environment))
		noComplaints(t, &plan)
		if diff := cmp.Diff(want, names(&plan)); diff != "" {
			t.Errorf("%s:\n%s", environment, diff)
		}
		for name, text := range written(&plan) {
			if filepath.Ext(name) == ".yaml" {
				checkDocuments(t, name, text)
			}
		}
	}
}

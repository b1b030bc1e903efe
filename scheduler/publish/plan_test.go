package publish_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/landfall-hub/landfall/scheduler"
	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/publish"
	"github.com/landfall-hub/landfall/scheduler/source"
)

// TestOf publishes the plan of the example: what a plan says of versions is what
// Git says, for it spares looking at the files.
func TestOf(t *testing.T) {
	example := filepath.Join("..", "..", "examples", "control-plane")
	folder := func(name ...string) source.Tree {
		t.Helper()
		tree, err := source.Folder(filepath.Join(append([]string{example}, name...)...))
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
	model, err := source.Load(t.Context(), source.Inputs{
		Environment: "dev", Base: folder("main"), ControlPlane: folder("dev"),
		Workloads: func(_ context.Context, r controlplane.Registration) (source.Tree, error) {
			return folder("sources", r.Name), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	plan := scheduler.New(model)
	if len(plan.Assignments) == 0 || len(plan.Problems) > 0 {
		t.Fatalf("%d assignments, problems %v", len(plan.Assignments), plan.Problems)
	}
	want := publish.Of(&plan)
	count := 0
	for _, c := range want.ClusterTypes {
		for _, a := range c.Assignments {
			count++
			if a.Version != version(a.Files) {
				t.Errorf("%s/%s: the plan says version %s, Git says %s", c.Name, a.Name, a.Version, version(a.Files))
			}
		}
	}
	if count != len(plan.Assignments) || len(want.ClusterTypes) != len(plan.Folders) || want.KeepAll {
		t.Errorf("%d of %d assignments, %d of %d cluster types are published", count, len(plan.Assignments), len(want.ClusterTypes), len(plan.Folders))
	}

	plan.Problems = append(plan.Problems, controlplane.Problem{Hides: true})
	plan.Assignments[0].Err, plan.Assignments[0].Files, plan.Assignments[0].Version = "broken", nil, ""
	want = publish.Of(&plan)
	if !want.KeepAll || !want.ClusterTypes[1].Assignments[0].Keep && !want.ClusterTypes[0].Assignments[0].Keep {
		t.Error("a plan that is not whole does not keep what is there")
	}
}

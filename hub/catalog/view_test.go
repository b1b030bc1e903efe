package catalog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/schema"
)

// The view of deployments and the Index say the same of every subscription,
// whatever name its repository goes by.
func TestViewAgreesWithIndex(t *testing.T) {
	a := newApps(t)
	b := newBench(t, gitops.Repository{URL: a.dir, Aliases: []string{"ssh://git@git.example/org/apps"}})
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 30 {
		name := one(r, "one", "two", "three")
		s := a.says(name, fmt.Sprint(i))
		s.path = one(r, name, name+"/deep", "shared")
		text := s.text()
		if r.IntN(5) == 0 {
			text = ""
		}
		if text == "" && i < 10 {
			text = s.text()
		}
		files := map[string]string{"README": fmt.Sprint(i)}
		if i%2 == 0 || text != "" {
			files[name+".yaml"] = text
		}
		if text == "" && i < 3 {
			delete(files, name+".yaml")
		}
		a.tip = []int{a.stream.Commit(a.tip, files)}
	}
	a.push("main", a.tip[0])
	b.start()
	a.tip = []int{15}
	a.commit(map[string]string{"one.yaml": a.says("one", "forced").text()})
	b.again()
	b.push(t, a, a.ids[10], a.says("two", "pushed"))

	state, at := fold.NewState(), time.Now().UTC().Truncate(time.Millisecond)
	report := &schema.Report{Epoch: 1, Sequence: 1, Mode: schema.ModeDelta, ObservedAt: at}
	for i := range 300 {
		rec := schema.Reconciler{Kind: "Kustomization", Namespace: "flux-system", Name: fmt.Sprint("r", i), Status: schema.StatusSuccess}
		rec.Sources = []schema.Source{{
			Type: schema.SourceGit, URL: one(r, a.dir, "https://git.example/org/apps.git", "https://git.example/org/unknown"), Ref: one(r, "main", "", "dev"),
			Path: one(r, "one", "one/deep/er", "two", "two/deep", "three", "shared", "shared/x", "", "four"),
		}}
		rec.Applied = []string{one(r, "main@sha1:"+one(r, a.ids...), "", "main@sha1:"+fmt.Sprintf("%040d", i))}
		report.Reconcilers = append(report.Reconcilers, rec)
	}
	report.Normalize()
	if err := b.store.Write(t.Context(), []fold.Changes{state.Apply("c1", report, at)}); err != nil {
		t.Fatal(err)
	}

	x := b.catalog.Index()
	var want []string
	named := 0
	for i := range report.Reconcilers {
		rec := &report.Reconcilers[i]
		e, err := rec.Sources[0].Endpoint()
		if err != nil {
			t.Fatal(err)
		}
		commit := rec.AppliedCommit(0)
		target, version := names.Target{}, commit
		if found, ok := x.At(e); ok {
			target = found
			if v, _, ok := x.VersionAt(found, commit); ok {
				version = v.Version
				named++
			}
		}
		want = append(want, fmt.Sprintf("%s\t%s\t%s\t%s\t%s", rec.Name, target.Environment, target.Workload, target.DeploymentTarget, version))
	}
	slices.Sort(want)
	got := b.rows("SELECT name, environment, workload, deployment_target, version FROM deployments ORDER BY name")
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the index (-) and the view (+) differ:\n%s", diff)
	}
	if named < 20 {
		t.Errorf("only %d of the subscriptions have a version: the fleet is too tame", named)
	}
}

package scheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/scheduler/compose"
	"github.com/landfall-hub/landfall/scheduler/render"
)

// tight limits are found soon by templates that never end.
var tight = render.Limits{Work: 1 << 16}

func TestOneBrokenInputStopsOnlyItsAssignments(t *testing.T) {
	const web = "https://git.example/web"
	for name, tc := range map[string]struct {
		reason string
		change func(*plane)
		// stopped are the assignments without files; gone those that are not planned
		// any more.
		stopped, gone []string
		// says is in a problem of the plan, or in the error of the first that stopped.
		says string
		// hides: nobody knows what is missing.
		hides bool
	}{
		"a template that does not parse": {
			reason: "stops the cluster types that use it", says: "templates/flux.yaml:10",
			change:  func(p *plane) { p.main["templates/flux.yaml"] = templateDoc("flux", "reconciler", "a: 1\n{{ if }}") },
			stopped: []string{"east/db-live", "east/db-test", "east/web-live", "east/web-test"},
		},
		"a template that wants what one workload lacks": {
			reason: "stops where that is wanted", says: "{{.Manifests.extra}} has no value",
			change: func(p *plane) {
				p.main["templates/argo.yaml"] = templateDoc("argo", "reconciler", "app: {{ .Manifests.repo }}\nextra: {{ if eq .Workload \"web\" }}{{ .Manifests.extra }}{{ end }}")
			},
			stopped: []string{"west/web-live", "west/web-test"},
		},
		"a template that is gone": {
			reason: "stops the cluster types that name it", says: `east.yaml:1: ClusterType "east": spec.reconciler names the Template "flux", which the control plane does not have`,
			change:  func(p *plane) { delete(p.main, "templates/flux.yaml") },
			stopped: []string{"east/db-live", "east/db-test", "east/web-live", "east/web-test"},
		},
		"a template of the wrong type": {
			reason: "a namespace's template makes no reconciler", says: "whose spec.type is namespace; it takes one of type reconciler",
			change:  func(p *plane) { p.env["west.yaml"] = clusterTypeDoc("west", "region: west", "ns", "ns", `""`) },
			stopped: []string{"west/db-live", "west/db-test", "west/web-live", "west/web-test"},
		},
		"a template over its limits": {
			reason: "is given up, and the other templates' files of an assignment are not written either", says: "over its limit",
			change: func(p *plane) {
				p.main["templates/flux.yaml"] = templateDoc("flux", "reconciler", "{{ range 1000000000 }}{{ end }}")
			},
			stopped: []string{"east/db-live", "east/db-test", "east/web-live", "east/web-test"},
		},
		"a schema that is none": {
			reason: "stops where it applies", says: "ConfigSchema",
			change: func(p *plane) {
				p.env["west-schema.yaml"] = schemaDoc("west", "region: west", `{"type": "nonsense"}`)
			},
			stopped: []string{"west/db-live", "west/db-test", "west/web-live", "west/web-test"},
		},
		"a value that a schema refuses": {
			reason: "stops where it is composed into", says: "REGION",
			change:  func(p *plane) { p.env["east-config.yaml"] = configMapDoc("east", ", region: east", "OTHER: 1") },
			stopped: []string{"east/db-live", "east/db-test", "east/web-live", "east/web-test"},
		},
		"a ConfigMap that does not parse": {
			reason: "stops where its labels say that it applies", says: "west-config.yaml",
			change:  func(p *plane) { p.env["west-config.yaml"] += "  : [\n" },
			stopped: []string{"west/db-live", "west/db-test", "west/web-live", "west/web-test"},
		},
		"a workload that does not parse": {
			reason: "its targets are not known any more, and nothing may be deleted", says: "workload.yaml", hides: true,
			change: func(p *plane) { p.sources[web]["workload.yaml"] += "  nonsense: [\n" },
			gone:   []string{"east/web-live", "east/web-test", "west/web-live", "west/web-test"},
		},
		"a target that climbs out": {
			reason: "its folder of manifests is above the repository", says: "workload.yaml",
			change: func(p *plane) {
				p.sources[web]["workload.yaml"] = workloadDoc("web", target("test", "kind: test", "/../../.."), target("live", "kind: live", ""))
			},
			stopped: []string{"east/web-test", "west/web-test"},
		},
		"a target that is no folder": {
			reason: "its name leads elsewhere: nobody knows what it was to be", says: "workload.yaml", hides: true,
			change: func(p *plane) {
				p.sources[web]["workload.yaml"] = workloadDoc("web", target("../../x", "kind: test", ""), target("live", "kind: live", ""))
			},
			gone: []string{"east/web-test", "west/web-test"},
		},
		"two targets with one folder": {
			reason: "what is deployed from it could not be told apart: the second stops", says: "claims the folder",
			change: func(p *plane) {
				p.sources[web]["workload.yaml"] = strings.Replace(p.sources[web]["workload.yaml"], "./test", "./live", 1)
			},
			stopped: []string{"east/web-test", "west/web-test"},
		},
		"a selector of nonsense": {
			reason: "its policy assigns nothing, and nobody knows what it was to assign", says: "more.yaml", hides: true,
			change: func(p *plane) {
				p.env["more.yaml"] = strings.Replace(policyDoc("more", "web-team", "", ""), "labelSelector: {}", "labelSelector: {matchExpressions: [{key: a, operator: Near, values: [b]}]}", 1)
			},
		},
		"a bomb": {
			reason: "aliases of aliases are not followed to the end", says: "bomb.yaml:14",
			change: func(p *plane) { p.env["bomb.yaml"] = configMapDoc("bomb", ", region: nowhere") + bomb() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			whole := small()
			planner := NewPlanner(tight)
			before := planner.Plan(whole.model("dev"))
			noComplaints(t, &before)
			if len(before.Assignments) != 8 {
				t.Fatalf("%d assignments: %v", len(before.Assignments), names(&before))
			}
			changed := whole.clone()
			tc.change(&changed)
			after := planner.Plan(changed.model("dev"))

			var stopped, gone []string
			said := ""
			for i := range after.Assignments {
				a := &after.Assignments[i]
				if a.Err != "" {
					stopped = append(stopped, a.Name())
					said += a.Err + "\n"
					if a.Files != nil || a.Version != "" {
						t.Errorf("%s has an error and files", a.Name())
					}
					continue
				}
				if was := find(t, &before, a.Name()); name != "a template that wants what one workload lacks" && !cmp.Equal(was.Files, a.Files) {
					t.Errorf("%s has other files:\n%s", a.Name(), cmp.Diff(was.Files, a.Files))
				}
			}
			for _, n := range names(&before) {
				if !slices.Contains(names(&after), n) {
					gone = append(gone, n)
				}
			}
			if diff := cmp.Diff(tc.stopped, stopped); diff != "" {
				t.Errorf("%s; stopped are (-want +got):\n%s%s", tc.reason, diff, said)
			}
			if diff := cmp.Diff(tc.gone, gone); diff != "" {
				t.Errorf("%s; gone are (-want +got):\n%s", tc.reason, diff)
			}
			for _, p := range after.Problems {
				said += p.Error() + "\n"
			}
			if !strings.Contains(said, tc.says) {
				t.Errorf("%s; nobody says %q, but:\n%s", tc.reason, tc.says, said)
			}
			if len(after.Problems) == 0 && (len(tc.stopped) == 0 || len(find(t, &after, tc.stopped[0]).Violations) == 0) {
				t.Errorf("%s; the plan has no problem", tc.reason)
			}
			if after.Complete() == tc.hides {
				t.Errorf("%s; complete is %v", tc.reason, after.Complete())
			}
			if cold := NewPlanner(tight).Plan(changed.model("dev")); !cmp.Equal(cold, after) {
				t.Errorf("a cold plan differs:\n%s", cmp.Diff(cold, after))
			}
			// Mended, all is as it was.
			if mended := planner.Plan(whole.model("dev")); !cmp.Equal(before, mended) {
				t.Errorf("the mended plan differs:\n%s", cmp.Diff(before, mended))
			}
		})
	}
}

// bomb is a YAML text of a few hundred bytes that stands for a billion values.
func bomb() string {
	all := "a: &a [" + strings.TrimSuffix(strings.Repeat("x, ", 9), ", ") + "]\n"
	for c := 'b'; c <= 'i'; c++ {
		all += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	return all
}

// What many assignments complain about is told once.
func TestProblemsAreToldOnce(t *testing.T) {
	p := small()
	p.main["templates/flux.yaml"] = templateDoc("flux", "reconciler", "a: {{ .Manifests.extra }}")
	plan := New(p.model("dev"))
	if len(plan.Problems) != 1 {
		t.Fatalf("got %v", plan.Problems)
	}
	want := `templates/flux.yaml:9: Template "flux": {{.Manifests.extra}} has no value: give it one where it should come from, ` +
		`or test for it with if or default (not planned because of it: east/db-live and 3 more)`
	if got := plan.Problems[0].Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The order in which documents are read does not matter: files come in a map's
// order, and then all documents of a tree in one file, in any order.
func TestOrderDoesNotMatter(t *testing.T) {
	p := small()
	first := New(p.model("dev"))
	noComplaints(t, &first)
	for n := range 100 {
		again := New(p.model("dev"))
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatalf("another order of files, another plan:\n%s", diff)
		}
		r := rand.New(rand.NewPCG(uint64(n), 1))
		shuffled := p.clone()
		shuffled.main, shuffled.env = tree{"all.yaml": inOneFile(r, p.main)}, tree{"all.yml": inOneFile(r, p.env)}
		plan := New(shuffled.model("dev"))
		noComplaints(t, &plan)
		if diff := cmp.Diff(written(&first), written(&plan)); diff != "" {
			t.Fatalf("another order of documents, another plan:\n%s", diff)
		}
	}
}

func inOneFile(r *rand.Rand, files tree) string {
	all := slices.Collect(maps.Values(files))
	slices.Sort(all)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return strings.Join(all, "---\n")
}

// Whatever changes, a plan from memory is equal to one from cold.
func TestPlanFromMemoryEqualsPlanFromCold(t *testing.T) {
	worlds, changes := 40, 12
	if testing.Short() {
		worlds = 10
	}
	planned, stopped, kept := 0, 0, 0
	for seed := range worlds {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		p := random(r)
		planner := NewPlanner(tight)
		var before Plan
		for n := range changes {
			cold := NewPlanner(tight).Plan(p.model("dev"))
			warm := planner.Plan(p.model("dev"))
			if !reflect.DeepEqual(cold, warm) {
				t.Fatalf("world %d, change %d (-cold +memory):\n%s", seed, n, cmp.Diff(cold, warm))
			}
			for i := range warm.Assignments {
				if planned++; warm.Assignments[i].Err != "" {
					stopped++
				}
			}
			kept += len(sameFiles(&before, &warm))
			checkProvenance(t, &warm)
			before = warm
			for range 1 + r.IntN(3) {
				p.change(r)
			}
		}
	}
	t.Logf("%d assignments planned, %d of them stopped, %d taken from memory", planned, stopped, kept)
	if planned == 0 || stopped == 0 || stopped == planned || kept == 0 {
		t.Error("the worlds are too much alike to show anything")
	}
}

// sameFiles names the assignments whose files were not rendered again.
func sameFiles(before, after *Plan) []string {
	was := map[string]*render.File{}
	for _, a := range before.Assignments {
		if len(a.Files) > 0 {
			was[a.Name()] = &a.Files[0]
		}
	}
	var all []string
	for _, a := range after.Assignments {
		if len(a.Files) > 0 && was[a.Name()] == &a.Files[0] {
			all = append(all, a.Name())
		}
	}
	return all
}

// checkProvenance wants to know of every value who gave it, and of nothing else.
func checkProvenance(t *testing.T, plan *Plan) {
	t.Helper()
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		leaves := map[string]bool{}
		for key, value := range a.Config.Data {
			collect([]string{key}, value, leaves)
		}
		for key := range leaves {
			o, ok := a.Config.Origins[key]
			if !ok {
				t.Errorf("%s: nobody gave %s; known are %v", a.Name(), key, slices.Sorted(maps.Keys(a.Config.Origins)))
			} else if !slices.Contains(a.Config.Inputs, o.ConfigMap) {
				t.Errorf("%s: %s is from %s, which is not among %v", a.Name(), key, o.ConfigMap, a.Config.Inputs)
			}
		}
		for key := range a.Config.Origins {
			if !leaves[key] {
				t.Errorf("%s: there is no value %s", a.Name(), key)
			}
		}
	}
}

// collect gathers the keys of the leaves below a value, by the documented rule.
func collect(at []string, v any, leaves map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			for key, inner := range v {
				collect(append(slices.Clone(at), key), inner, leaves)
			}
			return
		}
	case []any:
		if len(v) > 0 {
			for i, inner := range v {
				collect(append(slices.Clone(at), fmt.Sprint(i)), inner, leaves)
			}
			return
		}
	}
	leaves[compose.Key(at...)] = true
}

// What a change does not touch is not rendered again.
func TestWorkIsInProportion(t *testing.T) {
	east := []string{"east/db-live", "east/db-test", "east/web-live", "east/web-test"}
	west := []string{"west/db-live", "west/db-test", "west/web-live", "west/web-test"}
	for name, tc := range map[string]struct {
		change func(*plane)
		kept   []string
	}{
		"nothing":                  {func(*plane) {}, append(slices.Clone(east), west...)},
		"a ConfigMap of the east":  {func(p *plane) { p.env["east-config.yaml"] += "  MORE: x\n" }, west},
		"a ConfigMap of everybody": {func(p *plane) { p.main["configs/common.yaml"] += "  MORE: x\n" }, nil},
		"a ConfigMap of nobody":    {func(p *plane) { p.env["n.yaml"] = configMapDoc("n", ", region: north", "A: b") }, append(slices.Clone(east), west...)},
		"a ConfigMap less":         {func(p *plane) { delete(p.main, "configs/common.yaml") }, nil},
		"a new cluster type":       {func(p *plane) { p.env["n.yaml"] = clusterTypeDoc("north", "region: east", "flux", "ns", "config") }, append(slices.Clone(east), west...)},
		"a cluster type less":      {func(p *plane) { delete(p.env, "east.yaml") }, west},
		"a schema of the west":     {func(p *plane) { p.env["w.yaml"] = schemaDoc("w", "region: west", `{"type": "object"}`) }, east},
		"a schema that a target names": {
			func(p *plane) { p.env["s.yaml"] = schemaDoc("named", "region: nowhere", `{"type": "object"}`) },
			[]string{"east/web-live", "east/web-test", "west/web-live", "west/web-test"},
		},
		"a template of the east": {func(p *plane) { p.main["templates/flux.yaml"] += "    more: x\n" }, west},
		"a workload": {
			func(p *plane) { p.sources["https://git.example/web"]["workload.yaml"] += "  configSchemas: [named]\n" },
			[]string{"east/db-live", "east/db-test", "west/db-live", "west/db-test"},
		},
		"a target": {
			func(p *plane) {
				p.sources["https://git.example/web"]["workload.yaml"] = workloadDoc("web", target("test", "kind: test", "/deep"), target("live", "kind: live", ""))
			},
			[]string{"east/db-live", "east/db-test", "east/web-live", "west/db-live", "west/db-test", "west/web-live"},
		},
		"another policy": {func(p *plane) { p.env["more.yaml"] = policyDoc("more", "web-team", "", "") }, append(slices.Clone(east), west...)},
	} {
		t.Run(name, func(t *testing.T) {
			p := small()
			p.env["s.yaml"] = schemaDoc("named", "region: nowhere", `{}`)
			p.sources["https://git.example/db"]["workload.yaml"] += "  configSchemas: [named]\n"
			planner := NewPlanner(tight)
			before := planner.Plan(p.model("dev"))
			tc.change(&p)
			after := planner.Plan(p.model("dev"))
			noComplaints(t, &after)
			if diff := cmp.Diff(tc.kept, sameFiles(&before, &after)); diff != "" {
				t.Errorf("kept are (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(New(p.model("dev")), after); diff != "" {
				t.Errorf("a cold plan differs:\n%s", diff)
			}
		})
	}
}

// Another environment shares nothing with the last.
func TestPlannerOfAnotherEnvironment(t *testing.T) {
	p := small()
	planner := NewPlanner(tight)
	planner.Plan(p.model("dev"))
	if diff := cmp.Diff(New(p.model("stage")), planner.Plan(p.model("stage"))); diff != "" {
		t.Error(diff)
	}
}

// A template that goes over its limits is tried a few times, not for each of ten
// thousand assignments.
func TestTemplatesAreGivenUp(t *testing.T) {
	p := small()
	for n := range 20 {
		p.env[fmt.Sprintf("types/%d.yaml", n)] = clusterTypeDoc(fmt.Sprintf("c%02d", n), "", "flux", "ns", "config")
	}
	p.env["schema.yaml"] = ""
	p.main["templates/flux.yaml"] = templateDoc("flux", "reconciler", "{{ if eq .Workload \"web\" }}{{ range 1000000000 }}{{ end }}{{ end }}a: 1")
	planner := NewPlanner(tight)
	plan := planner.Plan(p.model("dev"))
	tried, given, fine := 0, 0, 0
	for _, a := range plan.Assignments {
		switch {
		case strings.Contains(a.Err, "over its limit: "):
			tried++
		case strings.Contains(a.Err, "is given up for workload \"web\""):
			given++
		case a.Err == "":
			fine++
		}
	}
	if tried != mostTries || given != 42-mostTries || fine != 46 {
		t.Errorf("%d tried, %d given up, %d fine", tried, given, fine)
	}
	if diff := cmp.Diff(plan, planner.Plan(p.model("dev"))); diff != "" {
		t.Errorf("the second time:\n%s", diff)
	}

	// Those for which it was given up have their turn when others go.
	for n := range 5 {
		delete(p.env, fmt.Sprintf("types/%d.yaml", n))
	}
	if diff := cmp.Diff(NewPlanner(tight).Plan(p.model("dev")), planner.Plan(p.model("dev"))); diff != "" {
		t.Errorf("with less cluster types (-cold +memory):\n%s", diff)
	}
	for n := range 5 {
		p.env[fmt.Sprintf("types/%d.yaml", n)] = clusterTypeDoc(fmt.Sprintf("c%02d", n), "", "flux", "ns", "config")
	}
	if diff := cmp.Diff(plan, planner.Plan(p.model("dev"))); diff != "" {
		t.Errorf("with more again:\n%s", diff)
	}

	// Where it fails for all, it is given up as a whole.
	for n := range 20 {
		name := fmt.Sprintf("w%02d", n)
		p.main["workloads/"+name+".yaml"] = registrationDoc(name, "team")
		p.sources["https://git.example/"+name] = tree{"w.yaml": workloadDoc(name, target("live", "kind: live", ""))}
	}
	p.main["templates/flux.yaml"] = templateDoc("flux", "reconciler", "{{ range 1000000000 }}{{ end }}a: 1")
	plan = planner.Plan(p.model("dev"))
	tried, given = 0, 0
	for _, a := range plan.Assignments {
		switch {
		case strings.Contains(a.Err, "over its limit: "):
			tried++
		case strings.Contains(a.Err, "is given up for this plan"):
			given++
		}
	}
	if tried > mostWorkloads*mostTries || given != 21*24-tried {
		t.Errorf("%d tried, %d given up", tried, given)
	}
	if diff := cmp.Diff(plan, planner.Plan(p.model("dev"))); diff != "" {
		t.Errorf("the second time:\n%s", diff)
	}
}

// The version of an assignment is what Git calls its folder.
func TestVersionIsGits(t *testing.T) {
	p := small()
	plan := New(p.model("dev"))
	a := find(t, &plan, "east/web-live")
	dir := t.TempDir()
	git := func(stdin string, args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("", "init", "-q", "--object-format=sha1")
	listing := ""
	for _, f := range a.Files {
		listing += "100644 blob " + git(string(f.Text), "hash-object", "-w", "--stdin") + "\t" + f.Name + "\n"
	}
	if want := git(listing, "mktree"); a.Version != want {
		t.Errorf("the version is %s, git says %s", a.Version, want)
	}
}

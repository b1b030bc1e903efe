package controlplane

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The real control plane of Kalypso's tutorial, without an edit.
func TestSample(t *testing.T) {
	base := ParseBase(sample(t, "kalypso-control-plane/main"))
	env := ParseEnvironment(sample(t, "kalypso-control-plane/dev"))
	if len(base.Registrations) != 1 {
		t.Fatalf("%d registrations, want 1", len(base.Registrations))
	}
	workloads, problems := ParseWorkloads(base.Registrations[0], sample(t, "kalypso-workloads"))
	m := Join("dev", base, env, workloads, problems...)
	if len(m.Problems) > 0 {
		t.Fatalf("problems: %v", messages(m.Problems))
	}

	const repo = "https://github.com/microsoft/"
	if diff := cmp.Diff(Registration{
		Place: Place{"workloads/platform-svc.yaml", 1}, Name: "platform-svc", Labels: map[string]string{"type": "service"},
		Workload: Location{repo + "kalypso-svc-src", "main", "./workloads"}, Workspace: "platform-team",
	}, m.Registrations[0]); diff != "" {
		t.Errorf("registration (-want +got):\n%s", diff)
	}
	// .environments/ is in .sourceignore, which does not hold for environments.
	if diff := cmp.Diff([]Environment{
		{Place: Place{".environments/dev.yaml", 1}, Name: "dev", ControlPlane: Location{repo + "kalypso-control-plane", "dev", "."}},
		{Place: Place{".environments/stage.yaml", 1}, Name: "stage", ControlPlane: Location{repo + "kalypso-control-plane", "stage", "."}},
	}, m.Environments); diff != "" {
		t.Errorf("environments (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&BaseRepo{
		Place: Place{"base-repo.yaml", 1}, Name: "main", Location: Location{repo + "kalypso-control-plane", "main", "."},
		Commit: "5523a85f37d12c0c7c10ab6616644db089fcd6f7",
	}, m.BaseRepo); diff != "" {
		t.Errorf("base repo (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]GitOpsRepo{{Place: Place{"gitops-repo.yaml", 1}, Name: "dev", Location: Location{repo + "kalypso-gitops", "dev", "."}}}, m.GitOpsRepos); diff != "" {
		t.Errorf("GitOps repos (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ClusterType{
		Place: Place{"cluster-types/east-us/restricted/drones/drone-cluster-type.yaml", 1}, Name: "drone",
		Labels:     map[string]string{"region": "east-us", "restricted": "true", "edge": "true"},
		Reconciler: "arc-flux", NamespaceService: "default", ConfigType: "configmap",
	}, m.ClusterTypes[1]); diff != "" {
		t.Errorf("cluster type (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ConfigMap{
		Place: Place{"configs/dev-config.yaml", 1}, Name: "dev-config", Labels: map[string]string{"platform-config": "true"}, Merge: MergeDeep,
		Data:  map[string]string{"ENVIRONMENT": "Dev", "SOME_COMMON_ENVIRONMENT_VARIABLE": "false"},
		Lines: map[string]int{"ENVIRONMENT": 8, "SOME_COMMON_ENVIRONMENT_VARIABLE": 9},
	}, m.ConfigMaps[1]); diff != "" {
		t.Errorf("ConfigMap (-want +got):\n%s", diff)
	}
	p := m.Policies[0]
	if got := []string{p.Name, p.Workspace, p.Targets.String(), p.ClusterTypes.String()}; !cmp.Equal(got, []string{"observability-policy", "platform-team", "stack=observability", "size=large"}) {
		t.Errorf("policy %q", got)
	}
	flux := m.Templates[0]
	if flux.Name != "arc-flux" || flux.Type != TemplateReconciler || flux.ContentType != ContentYAML || len(flux.Manifests) != 2 {
		t.Fatalf("template %+v", flux)
	}
	if got := flux.Manifests[1]; got.Line != 24 || !strings.HasPrefix(got.Text, "apiVersion: kustomize.toolkit.fluxcd.io/v1beta2\n") {
		t.Errorf("second manifest at line %d: %s", got.Line, got.Text)
	}
	hello := m.Workloads[0]
	if diff := cmp.Diff(Workload{
		Place: Place{"hello-world-app.yaml", 1}, Name: "hello-world-app", Labels: map[string]string{"type": "application", "family": "force"},
		Registration: "platform-svc", Workspace: "platform-team",
	}, hello, cmpopts.IgnoreFields(Workload{}, "Targets")); diff != "" {
		t.Errorf("workload (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Target{
		Place: Place{"hello-world-app.yaml", 28}, Name: "uat-test", Environment: "stage", Labels: map[string]string{"purpose": "uat-test"},
		Manifests: map[string]any{"repo": repo + "kalypso-app-gitops", "branch": "stage", "path": "./uat-test"},
	}, hello.Targets[2]); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}
}

// The order of reading does not matter, whatever is wrong with what is read.
func TestShuffles(t *testing.T) {
	base, env, src := sample(t, "kalypso-control-plane/main"), sample(t, "kalypso-control-plane/dev"), sample(t, "kalypso-workloads")
	env = append(env,
		file("a.yaml", clusterType("drone"), "---", clusterType("large")), file("b.yaml", clusterType("large")),
		file("c.yaml", "kind: ["), file("d.yaml", bomb("")), file("configs/.sourceignore", "*-old.yaml"), file("configs/x-old.yaml", "kind: ["),
		file("e.yaml", "apiVersion: scheduler.kalypso.io/v1alpha1", "kind: BaseRepo", "metadata: {name: other}", "spec: {repo: r}"),
	)
	src = append(src, file("twice.yaml", string(src[0].Text)))
	read := func() Model {
		b := ParseBase(base)
		w, problems := ParseWorkloads(b.Registrations[0], src)
		return Join("dev", b, ParseEnvironment(env), w, problems...)
	}
	want := read()
	if len(want.Problems) != 7 {
		t.Errorf("%d problems, want 7:\n%s", len(want.Problems), strings.Join(messages(want.Problems), "\n"))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 100 {
		for _, files := range [][]File{base, env, src} {
			rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		}
		if diff := cmp.Diff(want, read()); diff != "" {
			t.Fatalf("shuffle %d gives another model (-want +got):\n%s", i, diff)
		}
	}
}

func TestDuplicates(t *testing.T) {
	env := ParseEnvironment([]File{
		file("b.yaml", clusterType("large")),
		file("a.yaml", "# first", clusterType("large"), "---", clusterType("large")),
	})
	if len(env.ClusterTypes) != 1 || env.ClusterTypes[0].Place != (Place{"a.yaml", 2}) {
		t.Errorf("cluster types %+v, want the first by place", env.ClusterTypes)
	}
	if diff := cmp.Diff([]string{
		`a.yaml:8: ClusterType "large": there is one of that name already, at a.yaml:2, and that one counts: rename or remove one`,
		`b.yaml:1: ClusterType "large": there is one of that name already, at a.yaml:2, and that one counts: rename or remove one`,
	}, messages(env.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}

	base := ParseBase([]File{file("0.yaml", clusterType("large"))})
	m := Join("dev", base, ParseEnvironment([]File{file("b.yaml", clusterType("large"))}), nil)
	if len(m.ClusterTypes) != 1 || m.ClusterTypes[0].File != "b.yaml" {
		t.Errorf("cluster types %+v, want the environment's own", m.ClusterTypes)
	}
	if diff := cmp.Diff([]string{
		`0.yaml:1: ClusterType "large": the environment has one of that name, too, at b.yaml:1, and that one counts: rename or remove one`,
	}, messages(m.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}

	workload := file("w.yaml", "apiVersion: scheduler.kalypso.io/v1alpha1", "kind: Workload", "metadata: {name: w}",
		"spec: {deploymentTargets: [{name: t, environment: dev}]}")
	var all []Workload
	for _, r := range []string{"team-b", "team-a"} {
		w, _ := ParseWorkloads(Registration{Name: r, Workspace: r}, []File{workload})
		all = append(all, w...)
	}
	m = Join("dev", Model{}, Model{}, all)
	if len(m.Workloads) != 1 || m.Workloads[0].Workspace != "team-a" {
		t.Errorf("workloads %+v, want that of the first registration by name", m.Workloads)
	}
	if diff := cmp.Diff([]string{
		`w.yaml:1: Workload "w": there is one of that name already, at w.yaml:1 (WorkloadRegistration "team-a"), and that one counts: rename or remove one`,
	}, messages(m.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// head is the beginning of a document of the scheduler's.
func head(kind, name string) string {
	return "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: " + kind + "\nmetadata:\n  name: " + name
}

// noLabelValue is how Kubernetes says it.
const noLabelValue = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an ` +
	`alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`

// Each bad input is one clear complaint with its place, and says whether it
// hides anything.
func TestBadDocuments(t *testing.T) {
	config := func(rest ...string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n" + strings.Join(rest, "\n")
	}
	tests := map[string]struct {
		reason, text string
		want         []string
		hides        bool
		broken       func(m Model) string
	}{
		"a workload's file says kind Deployment": {
			reason: "other kinds are ignored, however odd", text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: [1]\nspec: {a: 1, a: 2}",
		},
		"a template of someone else's": {
			reason: "a kind is ours only in our group", text: "apiVersion: template.openshift.io/v1\nkind: Template\nspec: 1",
		},
		"a misspelt kind": {
			reason: "in our group nobody else has business", text: head("ClusterTyp", "x"),
			want: []string{`f.yaml:1: ClusterTyp "x": kind "ClusterTyp" is not known in scheduler.kalypso.io/v1alpha1: correct it`}, hides: true,
		},
		"a later version": {
			reason: "what it means is not known", text: "apiVersion: scheduler.kalypso.io/v2\nkind: Template\nmetadata: {name: x}",
			want: []string{`f.yaml:1: Template "x": apiVersion "scheduler.kalypso.io/v2" is not known: write scheduler.kalypso.io/v1alpha1`}, hides: true,
		},
		"what Kalypso writes itself": {
			reason: "exported from a cluster, it changes nothing", text: head("Assignment", "x"),
		},
		"no name": {
			reason: "what has no name can be referred to by nobody", text: "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nspec: {reconciler: r, namespaceService: n}",
			want: []string{`f.yaml:1: ClusterType: metadata.name is missing: add it`}, hides: true,
		},
		"a name that climbs out": {
			reason: "names become folders", text: head("ClusterType", "../../etc") + "\nspec: {reconciler: r, namespaceService: n}",
			want: []string{`f.yaml:4: ClusterType: metadata.name "../../etc" is no name: lower-case letters, digits, - and . are, ` +
				`at most 253 of them, beginning and ending with a letter or digit`}, hides: true,
		},
		"a cluster type without spec": {
			reason: "its assignments must wait", text: head("ClusterType", "x"),
			want: []string{
				`f.yaml:1: ClusterType "x": spec is missing: add it`,
				`f.yaml:1: ClusterType "x": spec.namespaceService is missing: add it`,
				`f.yaml:1: ClusterType "x": spec.reconciler is missing: add it`,
			},
			broken: func(m Model) string { return m.ClusterTypes[1].Broken },
		},
		"labels that are none": {
			reason: "nobody knows who would select it", text: head("ClusterType", "x") + "\n  labels: {region: East US}\nspec: {reconciler: r, namespaceService: n}",
			want:   []string{`f.yaml:5: ClusterType "x": metadata.labels.region: "East US" is no label value: ` + noLabelValue},
			hides:  true,
			broken: func(m Model) string { return m.ClusterTypes[1].Broken },
		},
		"a key twice": {
			reason: "which one counts?", text: head("ClusterType", "x") + "\nspec:\n  reconciler: r\n  namespaceService: n\n  reconciler: q",
			want:   []string{`f.yaml:8: ClusterType "x": spec.reconciler stands there twice: remove one`},
			broken: func(m Model) string { return m.ClusterTypes[1].Broken },
		},
		"a registration that climbs out": {
			reason: "a path stays in its repository", text: head("WorkloadRegistration", "x") + "\nspec:\n  workspace: w\n  workload: {repo: https://g/x/y, path: ../../etc}",
			want:  []string{`f.yaml:7: WorkloadRegistration "x": spec.workload.path: the path climbs out of the repository: "../../etc": name a folder below its root`},
			hides: true,
		},
		"an environment without a repository": {
			reason: "nothing can be read", text: head("Environment", "x") + "\nspec: {controlPlane: {branch: dev}}",
			want: []string{`f.yaml:5: Environment "x": spec.controlPlane.repo is missing: add it`}, hides: true,
		},
		"a template of no type": {
			reason: "a template broken costs its assignments", text: head("Template", "x") + "\nspec: {type: reconcile, contentType: toml, manifests: [text, {a: b}]}",
			want: []string{
				`f.yaml:5: Template "x": spec.contentType "toml" is not known: yaml, env and json are`,
				`f.yaml:5: Template "x": spec.manifests[1] must be text: begin it with |`,
				`f.yaml:5: Template "x": spec.type "reconcile" is not known: reconciler, namespace and config are`,
			},
			broken: func(m Model) string { return m.Templates[0].Broken },
		},
		"values that are no text": {
			reason: "a ConfigMap's values are text, numbers and booleans are taken as written", text: config("  labels: {platform-config: true}", "data:", "  A: 1.10", "  B: no", "  C:", "  D: {a: b}"),
			want:   []string{`f.yaml:10: ConfigMap "c": data.D must be text`},
			broken: func(m Model) string { return m.ConfigMaps[0].Broken },
		},
		"an unknown strategy": {
			reason: "a merge annotation must be understood", text: config("  labels: {platform-config: 'true'}", "  annotations: {landfall.dev/merge: shallow}"),
			want:   []string{`f.yaml:6: ConfigMap "c": annotation landfall.dev/merge: "shallow" is no strategy: deep, replace and append are`},
			broken: func(m Model) string { return m.ConfigMaps[0].Broken },
		},
		"a ConfigMap of someone else's": {
			reason: "without the label it is not ours", text: config("data: {D: {a: b}}"),
		},
		"an unreadable ConfigMap": {
			reason: "its values must not be missing silently, wherever its labels apply", text: config("  labels:", "    platform-config: \"true\"", "    region: west-us", "data:", "  A: [", "  B: x"),
			want: []string{`f.yaml:9: ConfigMap "c": not YAML: did not find expected ',' or ']'`},
			broken: func(m Model) string {
				if diff := cmp.Diff(map[string]string{"platform-config": "true", "region": "west-us"}, m.ConfigMaps[0].Labels); diff != "" {
					return ""
				}
				return m.ConfigMaps[0].Broken
			},
		},
		"a ConfigMap with labels that are none": {
			reason: "it applies wherever its other labels do", text: config("  labels: {platform-config: 'true', cluster-type: good, region: West US}"),
			want: []string{`f.yaml:5: ConfigMap "c": metadata.labels.region: "West US" is no label value: ` + noLabelValue},
			broken: func(m Model) string {
				if diff := cmp.Diff(map[string]string{"platform-config": "true", "cluster-type": "good"}, m.ConfigMaps[0].Labels); diff != "" {
					return ""
				}
				return m.ConfigMaps[0].Broken
			},
		},
		"an unreadable schema": {
			reason: "what it would refuse must not go out", text: head("ConfigSchema", "s") + "\nspec: [",
			want:   []string{`f.yaml:5: ConfigSchema "s": not YAML: did not find expected node content`},
			broken: func(m Model) string { return m.Schemas[0].Broken },
		},
		"an unreadable stranger": {
			reason: "it is said, but it hides nothing", text: "apiVersion: v2\nkind: Chart\nx: [",
			want: []string{`f.yaml:3: Chart: not YAML: did not find expected node content`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := ParseEnvironment([]File{file("f.yaml", tc.text), file("good.yaml", clusterType("good"))})
			if diff := cmp.Diff(tc.want, append([]string(nil), messages(m.Problems)...)); diff != "" {
				t.Errorf("%s: problems (-want +got):\n%s", tc.reason, diff)
			}
			for _, p := range m.Problems {
				if p.Hides != tc.hides {
					t.Errorf("%s: hides is %t for %s", tc.reason, p.Hides, p)
				}
			}
			if tc.broken != nil && tc.broken(m) == "" {
				t.Errorf("%s: not marked broken: %+v", tc.reason, m)
			}
			if n := len(m.ClusterTypes); n == 0 || m.ClusterTypes[0].Name != "good" {
				t.Errorf("%s: the other file was not read: %+v", tc.reason, m.ClusterTypes)
			}
		})
	}
}

func TestWorkload(t *testing.T) {
	text := head("Workload", "w") + `
spec:
  configSchemas: [base, "{type: object}"]
  deploymentTargets:
    - name: b
      environment: dev
      manifests: {repo: r, path: ../x, replicas: 3, flags: {on: true, since: 2024-01-02}}
      configSchemas:
        - type: object
    - name: a
      environment: dev
    - environment: dev
      name: Upper
`
	docs, problems := Documents(file("w.yaml", "", "---", text))
	if len(docs) != 1 || len(problems) > 0 {
		t.Fatalf("%v, %v", docs, problems)
	}
	w, err := ParseWorkload(docs[0])
	want := Workload{
		Place: Place{"w.yaml", 3}, Name: "w", ConfigSchemas: []string{"base", "{type: object}"},
		Targets: []Target{
			{Place: Place{"w.yaml", 15}, Name: "a", Environment: "dev"},
			{
				Place: Place{"w.yaml", 10}, Name: "b", Environment: "dev",
				Manifests:     map[string]any{"repo": "r", "path": "../x", "replicas": int64(3), "flags": map[string]any{"on": true, "since": "2024-01-02"}},
				ConfigSchemas: []string{`{"type":"object"}`},
				Broken:        `w.yaml:12: spec.deploymentTargets[0].manifests.path: the path climbs out of the repository: "../x": name a folder below its root`,
			},
		},
	}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Errorf("workload (-want +got):\n%s", diff)
	}
	wantErr := `w.yaml:12: Workload "w": spec.deploymentTargets[0].manifests.path: the path climbs out of the repository: "../x": name a folder below its root` + "\n" +
		`w.yaml:18: Workload "w": spec.deploymentTargets[2].name "Upper" is no name: lower-case letters, digits, - and . are, at most 253 of them, beginning and ending with a letter or digit`
	if err == nil || err.Error() != wantErr {
		t.Errorf("error\n%v, want\n%s", err, wantErr)
	}

	if _, err := ParseRegistration(docs[0]); err == nil || err.Error() != `w.yaml:3: Workload "w": not a document of kind WorkloadRegistration of scheduler.kalypso.io/v1alpha1` {
		t.Errorf("a workload taken for a registration: %v", err)
	}
}

func TestOneDocumentAtATime(t *testing.T) {
	docs, _ := Documents(file("x.yaml",
		head("WorkloadRegistration", "r"), "spec: {workspace: team, workload: {repo: https://g/o/r, branch: main, path: w/}}", "---",
		head("Environment", "dev"), "spec: {controlPlane: {repo: https://g/o/c, branch: dev}}"))
	r, err := ParseRegistration(docs[0])
	if diff := cmp.Diff(Registration{Place: Place{"x.yaml", 1}, Name: "r", Workspace: "team", Workload: Location{"https://g/o/r", "main", "w/"}}, r); diff != "" || err != nil {
		t.Errorf("registration: %v (-want +got):\n%s", err, diff)
	}
	e, err := ParseEnvironmentDocument(docs[1])
	if diff := cmp.Diff(Environment{Place: Place{"x.yaml", 7}, Name: "dev", ControlPlane: Location{"https://g/o/c", "dev", ""}}, e); diff != "" || err != nil {
		t.Errorf("environment: %v (-want +got):\n%s", err, diff)
	}
}

func TestComplaintsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(head("Workload", "w") + "\nspec:\n  deploymentTargets:\n")
	for range 1000 {
		b.WriteString("    - {name: t, environment: dev, manifests: {path: ../x}}\n")
	}
	m := ParseEnvironment([]File{file("w.yaml", b.String())})
	if len(m.Problems) != mostComplaints {
		t.Errorf("%d problems, want %d", len(m.Problems), mostComplaints)
	}
	for _, target := range m.Workloads[0].Targets {
		if target.Broken == "" {
			t.Fatal("a target whose complaint is not shown counts as sound")
		}
	}
}

func TestWorkloadsFolderHoldsNoPolicies(t *testing.T) {
	w, problems := ParseWorkloads(Registration{Name: "r", Workspace: "team"}, []File{
		file("w.yaml", head("Workload", "w"), "spec: {deploymentTargets: [{name: t, environment: dev}]}"),
		file("p.yaml", head("SchedulingPolicy", "p"), "spec: {deploymentTargetSelector: {}, clusterTypeSelector: {}}"),
	})
	if len(w) != 1 || w[0].Workspace != "team" || w[0].Registration != "r" {
		t.Errorf("workloads %+v", w)
	}
	if diff := cmp.Diff([]string{
		`p.yaml:1: SchedulingPolicy "p": only Workload documents are read from the folder of a registration: move it to the control plane`,
	}, messages(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

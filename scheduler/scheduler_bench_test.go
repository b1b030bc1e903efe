//go:build unix

package scheduler

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"go.yaml.in/yaml/v3"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/match"
	"github.com/landfall-hub/landfall/scheduler/render"
)

// fleet is a control plane of 200 cluster types in ten regions and workloads of
// three targets each, every target on a third of the cluster types: 200
// assignments for each workload. A configuration has about twenty values from
// six ConfigMaps. The templates are the ready ones.
func fleet(t testing.TB, workloads int) plane {
	t.Helper()
	p := plane{main: tree{}, env: tree{}, sources: map[string]tree{}}
	ready := readTree(t, readyTemplates)
	for _, name := range []string{"flux-git.yaml", "argocd.yaml", "namespace.yaml", "config-configmap.yaml"} {
		p.main["templates/"+name] = ready[name]
	}
	common := []string{}
	for n := range 8 {
		common = append(common, fmt.Sprintf("COMMON_%d: https://service-%d.example/api", n, n))
	}
	p.main["common.yaml"] = configMapDoc("common", "", append(common, "LIMITS: '{cpu: 1, memory: {soft: 1Gi, hard: 2Gi}}'")...)
	p.env["schema.yaml"] = schemaDoc("platform", "", `{"required": ["REGION", "CLUSTER"], "properties": {"REPLICAS": {"type": "number", "maximum": 10}}}`)
	for n := range 10 {
		p.env[fmt.Sprintf("regions/%d.yaml", n)] = configMapDoc(fmt.Sprintf("region-%d", n), fmt.Sprintf(", region: r%d", n),
			fmt.Sprintf("REGION: region %d", n), fmt.Sprintf("DATABASE_URL: mysql://db-%d.example:3306/app", n), "LIMITS: '{memory: {hard: 4Gi}}'")
	}
	for n := range 3 {
		p.env[fmt.Sprintf("kinds/%d.yaml", n)] = configMapDoc(fmt.Sprintf("kind-%d", n), fmt.Sprintf(", kind: k%d", n), "LOG: info", fmt.Sprintf("REPLICAS: \"%d\"", 1+n))
		p.env[fmt.Sprintf("policies/%d.yaml", n)] = policyDoc(fmt.Sprintf("policy-%d", n), `""`,
			fmt.Sprintf("matchLabels: {kind: k%d}", n), fmt.Sprintf("matchLabels: {third: t%d}", n))
	}
	for n := range 200 {
		p.addType(n)
	}
	for n := range workloads {
		name := fmt.Sprintf("app-%03d", n)
		p.main["workloads/"+name+".yaml"] = registrationDoc(name, fmt.Sprintf("team-%d", n/10))
		p.sources["https://git.example/"+name] = tree{"w.yaml": workloadDoc(name,
			target("test", "kind: k0", ""), target("load", "kind: k1", ""), target("live", "kind: k2", ""))}
		if n%10 == 0 {
			p.env["apps/"+name+".yaml"] = configMapDoc(name, ", workload: "+name, "FEATURES: '[{name: a, on: true}, {name: b, on: false}]'", "LOG: debug")
		}
	}
	return p
}

func (p *plane) addType(n int) {
	name := fmt.Sprintf("type-%03d", n)
	p.env["types/"+name+".yaml"] = clusterTypeDoc(name, fmt.Sprintf("region: r%d, third: t%d", n%10, n%3), [2]string{"flux-git", "argocd"}[n%2], "namespace", "config-configmap")
	p.env["types/"+name+"-config.yaml"] = configMapDoc(name, ", cluster-type: "+name, "CLUSTER: "+name, fmt.Sprintf("SIZE: \"%d\"", n), "ZONES: '[a, b]'")
}

var fleets = []struct {
	name      string
	workloads int
}{{"10000", 50}, {"100000", 500}}

// everyTemplate is the yardstick: one text/template execution for each file,
// nothing else. It returns how long that takes.
func everyTemplate(b *testing.B, m *controlplane.Model, plan *Plan) time.Duration {
	b.Helper()
	parsed := map[string][]*template.Template{}
	funcs := sprig.TxtFuncMap()
	for name, f := range map[string]any{"toYaml": toYAMLForBench, "stringify": toYAMLForBench} {
		funcs[name] = f
	}
	for _, t := range m.Templates {
		for _, manifest := range t.Manifests {
			parsed[t.Name] = append(parsed[t.Name], template.Must(template.New("").Funcs(funcs).Parse(manifest.Text)))
		}
	}
	targets, _ := match.Targets(m)
	assignments, _ := match.Assignments(m, targets)
	var out bytes.Buffer
	begin := time.Now()
	for i := range assignments {
		a := &assignments[i]
		in := render.Input{
			DeploymentTargetName: a.Target.Name, Namespace: "dev-" + a.Name(), Environment: "dev", Workspace: a.Target.Workspace,
			Workload: a.Target.Workload, ClusterType: a.ClusterType.Name, Labels: a.Target.Labels, Manifests: a.Target.Manifests,
			ConfigData: plan.Assignments[i].Config.Data,
		}
		for _, name := range []string{a.ClusterType.NamespaceService, a.ClusterType.ConfigType, a.ClusterType.Reconciler} {
			for _, t := range parsed[name] {
				out.Reset()
				if err := t.Execute(&out, &in); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	return time.Since(begin)
}

// BenchmarkPlan plans from cold.
func BenchmarkPlan(b *testing.B) {
	for _, f := range fleets {
		b.Run(f.name, func(b *testing.B) {
			p := fleet(b, f.workloads)
			begin := time.Now()
			m := p.model("dev")
			parsing := time.Since(begin)
			var plan Plan
			b.ReportAllocs()
			begin = time.Now()
			busy := processor(b)
			for b.Loop() {
				plan = New(m)
			}
			took := time.Since(begin) / time.Duration(b.N)
			b.ReportMetric((processor(b)-busy).Seconds()*1000/float64(b.N), "cpu-ms")
			wellPlanned(b, &plan, 200*f.workloads)
			report(b, took, everyTemplate(b, &m, &plan))
			b.ReportMetric(parsing.Seconds()*1000, "ms-parsing")
			b.ReportMetric(float64(200*f.workloads)/took.Seconds(), "assignments/s")
			b.ReportMetric(heap(), "MiB-kept")
			runtime.KeepAlive(plan)
		})
	}
}

// BenchmarkReplan plans after one change, and after it was taken back.
func BenchmarkReplan(b *testing.B) {
	for name, change := range map[string]func(*plane){
		"nothing": func(*plane) {},
		"one ConfigMap": func(p *plane) {
			p.env["types/type-007-config.yaml"] = configMapDoc("type-007", ", cluster-type: type-007", "CLUSTER: other", "SIZE: '7'")
		},
		"new cluster type": func(p *plane) { p.addType(200) },
		"bad schema":       func(p *plane) { p.env["bad.yaml"] = schemaDoc("bad", "region: r7", `{"type": "nonsense"}`) },
	} {
		for _, f := range fleets {
			b.Run(name+"/"+f.name, func(b *testing.B) {
				p := fleet(b, f.workloads)
				whole := p.model("dev")
				change(&p)
				// Documents are read anew each time: nothing is equal by its address.
				changed := [2]controlplane.Model{p.model("dev"), whole}
				planner := NewPlanner(render.Limits{})
				before := planner.Plan(whole)
				plan := planner.Plan(changed[0])
				touched := len(plan.Assignments) - len(sameFiles(&before, &plan))
				n := 1
				b.ReportAllocs()
				begin, busy := time.Now(), processor(b)
				for b.Loop() {
					planner.Plan(changed[n%2])
					n++
				}
				b.ReportMetric((processor(b)-busy).Seconds()*1000/float64(b.N), "cpu-ms")
				b.ReportMetric(time.Since(begin).Seconds()*1000/float64(b.N), "ms")
				b.ReportMetric(float64(touched), "touched")
			})
		}
	}
}

func wellPlanned(b *testing.B, plan *Plan, want int) {
	b.Helper()
	if len(plan.Assignments) != want || len(plan.Problems) > 0 {
		b.Fatalf("%d assignments, problems %v", len(plan.Assignments), plan.Problems)
	}
	for _, a := range plan.Assignments {
		if len(a.Files) != 3 {
			b.Fatalf("%s: %d files, %s", a.Name(), len(a.Files), a.Err)
		}
	}
}

func report(b *testing.B, took, yardstick time.Duration) {
	b.Helper()
	b.ReportMetric(took.Seconds()*1000, "ms")
	b.ReportMetric(yardstick.Seconds()*1000, "ms-yardstick")
	b.ReportMetric(took.Seconds()/yardstick.Seconds(), "of-yardstick")
}

// processor is the processor time of this process: what a busy machine changes
// least. The collector's is in it.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// toYAMLForBench is what templates' toYaml does, without the meter.
func toYAMLForBench(v any) (string, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

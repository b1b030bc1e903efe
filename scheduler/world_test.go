package scheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

const group = "apiVersion: scheduler.kalypso.io/v1alpha1"

// Documents, as text.

func templateDoc(name, kind string, manifests ...string) string {
	all := []string{group, "kind: Template", "metadata:", "  name: " + name, "spec:", "  type: " + kind, "  manifests:"}
	for _, m := range manifests {
		all = append(all, "  - |")
		for line := range strings.Lines(m) {
			all = append(all, "    "+strings.TrimSuffix(line, "\n"))
		}
	}
	return lines(all...)
}

func clusterTypeDoc(name, labels, reconciler, namespace, config string) string {
	return lines(group, "kind: ClusterType", "metadata:", "  name: "+name, "  labels: {"+labels+"}",
		"spec:", "  reconciler: "+reconciler, "  namespaceService: "+namespace, "  configType: "+config)
}

func policyDoc(name, workspace, targets, types string) string {
	return lines(group, "kind: SchedulingPolicy", "metadata:", "  name: "+name, "spec:",
		"  deploymentTargetSelector:", "    workspace: "+workspace, "    labelSelector: {"+targets+"}",
		"  clusterTypeSelector:", "    labelSelector: {"+types+"}")
}

func configMapDoc(name, labels string, data ...string) string {
	all := []string{"apiVersion: v1", "kind: ConfigMap", "metadata:", "  name: " + name, "  labels:", "    platform-config: \"true\""}
	for label := range strings.SplitSeq(labels, ", ") {
		if label != "" {
			all = append(all, "    "+label)
		}
	}
	all = append(all, "data:")
	for _, d := range data {
		all = append(all, "  "+d)
	}
	return lines(all...)
}

func schemaDoc(name, labels, schema string) string {
	return lines(group, "kind: ConfigSchema", "metadata:", "  name: "+name, "  labels: {"+labels+"}", "spec:", "  schema: '"+schema+"'")
}

func registrationDoc(name, workspace string) string {
	return lines(group, "kind: WorkloadRegistration", "metadata:", "  name: "+name,
		"spec:", "  workload: {repo: 'https://git.example/"+name+"', branch: main, path: .}", "  workspace: "+workspace)
}

// target is a deployment target of a workloadDoc.
func target(name, labels, more string) string {
	return "    - {name: " + name + ", environment: dev, labels: {" + labels + "}, manifests: {repo: 'https://git.example/NAME', branch: dev, path: ./" + name + more + "}}"
}

func workloadDoc(name string, targets ...string) string {
	all := []string{group, "kind: Workload", "metadata:", "  name: " + name, "spec:", "  deploymentTargets:"}
	for _, t := range targets {
		all = append(all, strings.ReplaceAll(t, "NAME", name))
	}
	return lines(all...)
}

// small is a control plane with everything that the tests of isolation break: two
// cluster types, two workloads with two targets each, and nothing wrong.
func small() plane {
	return plane{
		main: tree{
			"templates/flux.yaml":   templateDoc("flux", "reconciler", "url: {{ .Manifests.repo }}\npath: {{ .Manifests.path }}"),
			"templates/argo.yaml":   templateDoc("argo", "reconciler", "app: {{ .Manifests.repo }}", "{{ with .Manifests.extra }}extra: {{ . }}{{ end }}"),
			"templates/ns.yaml":     templateDoc("ns", "namespace", "name: {{ .Namespace }}"),
			"templates/config.yaml": templateDoc("config", "config", "{{ toYaml .ConfigData }}"),
			"workloads/web.yaml":    registrationDoc("web", "web-team"),
			"workloads/db.yaml":     registrationDoc("db", "db-team"),
			"configs/common.yaml":   configMapDoc("common", "", "LOG: info"),
		},
		env: tree{
			"east.yaml":        clusterTypeDoc("east", "region: east", "flux", "ns", "config"),
			"west.yaml":        clusterTypeDoc("west", "region: west", "argo", "ns", `""`),
			"all.yaml":         policyDoc("all", `""`, "", ""),
			"east-config.yaml": configMapDoc("east", ", region: east", "REGION: East"),
			"west-config.yaml": configMapDoc("west", ", region: west", "REGION: West"),
			"schema.yaml":      schemaDoc("region", "", `{"required": ["REGION"]}`),
		},
		sources: map[string]tree{
			"https://git.example/web": {"workload.yaml": workloadDoc("web", target("test", "kind: test", ""), target("live", "kind: live", ""))},
			"https://git.example/db":  {"workload.yaml": workloadDoc("db", target("test", "kind: test", ""), target("live", "kind: live", ""))},
		},
	}
}

// clone copies a control plane.
func (p *plane) clone() plane {
	c := plane{main: maps.Clone(p.main), env: maps.Clone(p.env), sources: map[string]tree{}}
	for repo, files := range p.sources {
		c.sources[repo] = maps.Clone(files)
	}
	return c
}

// any picks an entry.
func anyOf[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

var (
	regions = []string{"east", "west", "north"}
	sizes   = []string{"small", "large"}
)

// random returns a control plane of a random shape: names come from small sets,
// so that documents meet, replace and miss each other, and some are broken.
func random(r *rand.Rand) plane {
	p := plane{main: tree{}, env: tree{}, sources: map[string]tree{}}
	for range 6 + r.IntN(30) {
		p.change(r)
	}
	p.main["ns.yaml"] = templateDoc("ns", "namespace", "a: {{ .Namespace }}")
	p.main["templates/t0.yaml"] = templateDoc("t0", "reconciler", "a: {{ .Manifests.repo }}")
	p.main["templates/t1.yaml"] = templateDoc("t1", "reconciler", "{{ toYaml .ConfigData }}")
	p.main["templates/t2.yaml"] = templateDoc("t2", "reconciler", "a: {{ .ClusterType }}")
	p.env["all.yaml"] = policyDoc("all", `""`, "", "")
	return p
}

// change changes one document: adds it, writes it anew, moves it or deletes it.
func (p *plane) change(r *rand.Rand) {
	if r.IntN(5) == 0 {
		p.remove(r)
		return
	}
	n := r.IntN(4)
	labels := func() string {
		return anyOf(r, "", "region: "+anyOf(r, regions...), "size: "+anyOf(r, sizes...), "region: "+anyOf(r, regions...)+", size: "+anyOf(r, sizes...))
	}
	and := func(labels string) string {
		if labels == "" {
			return ""
		}
		return ", " + labels
	}
	broken := func(s string) string {
		if r.IntN(50) == 0 {
			return s + anyOf(r, "{", "  spec: [1", "spec: 1\n", "\x00")
		}
		return strings.Repeat("#\n", r.IntN(2)) + s
	}
	switch r.IntN(8) {
	case 0:
		p.main[fmt.Sprintf("templates/t%d.yaml", n)] = broken(templateDoc(fmt.Sprintf("t%d", n), anyOf(r, "reconciler", "reconciler", "reconciler", "reconciler", anyOf(r, "namespace", "config")),
			anyOf(r,
				"a: {{ .Manifests.repo }}", "a: {{ .Manifests.path }}", "a: {{ .Namespace }}", "a: {{ .Namespace }}\nb: {{ .ConfigData.KEY0 }}", "a: {{ .ConfigData.KEY1 | default 1 }}", "a: {{ .Manifests.extra }}",
				"a: {{ if }}", "a: [", "{{ range until 9000 }}{{ range until 9000 }}{{ end }}{{ end }}a: 1",
				"{{ if .Manifests.extra }}{{ range 1000000000 }}{{ end }}{{ end }}a: 1", "{{ if eq .ClusterType \"c1\" }}{{ range 1000000000 }}{{ end }}{{ end }}a: 1",
				"{{ toYaml .ConfigData }}", "{{ $_ := set .ConfigData \"x\" 1 }}{{ toYaml .ConfigData }}", "a: {{ .ConfigData.NEST }}")))
	case 1:
		p.env[fmt.Sprintf("types/c%d.yaml", n)] = broken(clusterTypeDoc(fmt.Sprintf("c%d", n), labels(),
			anyOf(r, "t0", "t0", "t0", "t1", "t1", "t1", "t2"), anyOf(r, "ns", "ns", "ns", "ns", "ns", "ns", "t3"), anyOf(r, `""`, `""`, `""`, `""`, `""`, "t3")))
	case 2:
		p.env[fmt.Sprintf("policies/p%d.yaml", n)] = broken(policyDoc(fmt.Sprintf("p%d", n), anyOf(r, `""`, "team0", "team1"),
			anyOf(r, "", "matchLabels: {"+labels()+"}"), anyOf(r, "", "matchLabels: {"+labels()+"}")))
	case 3, 4:
		file, in := fmt.Sprintf("configs/m%d.yaml", n), p.env
		if r.IntN(4) == 0 {
			in = p.main
		}
		in[file] = broken(configMapDoc(anyOf(r, "m", "a", "azure-app-config-")+fmt.Sprint(n),
			anyOf(r, "", and(labels()), and(labels()), fmt.Sprintf(", cluster-type: c%d", r.IntN(4)), fmt.Sprintf(", workload: w%d", r.IntN(4)), ", deployment-target: w1-live"),
			fmt.Sprintf("KEY%d: %s", r.IntN(3), anyOf(r, "v", `"1"`, "'{{ .Workload }}'")), anyOf(r, "NEST: '{a: 1}'", "NEST: '{b: [1, {name: x}]}'", "LIST: '[1]'", "region.west.KEY2: w")))
	case 5:
		p.env[fmt.Sprintf("schemas/s%d.yaml", n)] = broken(schemaDoc(fmt.Sprintf("s%d", n), labels(),
			anyOf(r, `{}`, `{}`, `{"type": "object"}`, `{"properties": {"KEY1": {"type": "number"}}}`, anyOf(r, `{}`, `{"required": ["KEY0"]}`, `{"type": "nonsense"}`))))
	case 6:
		name := fmt.Sprintf("w%d", n)
		p.main["workloads/"+name+".yaml"] = broken(registrationDoc(name, anyOf(r, "team0", "team1")))
		fallthrough
	default:
		name := fmt.Sprintf("w%d", n)
		var targets []string
		for _, t := range []string{"live", "test", "more"}[:1+r.IntN(3)] {
			targets = append(targets, target(t, labels(), anyOf(r, "", "", "", "", "", "", ", extra: x", anyOf(r, "", "/../../.."))))
		}
		text := workloadDoc(name, targets...) + anyOf(r, "", "", fmt.Sprintf("  configSchemas: [s%d]\n", r.IntN(2)))
		p.sources["https://git.example/"+name] = tree{"w.yaml": broken(text)}
	}
}

func (p *plane) remove(r *rand.Rand) {
	from := anyOf(r, p.main, p.env, p.env)
	if names := slices.Sorted(maps.Keys(from)); len(names) > 0 {
		delete(from, names[r.IntN(len(names))])
	}
}

package scheduler

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// readyTemplates is what users copy from.
const readyTemplates = "../examples/templates"

// endpoints are manifests endpoints for each reconciler's template: all that it
// takes, and the least.
var endpoints = map[string]map[string]string{
	"flux-git": {
		"all":   `{repo: "https://git.example/app", branch: dev, path: ./app, secret: git-credentials, interval: 30s}`,
		"least": `{repo: "ssh://git@git.example/app", tag: v1.2.3, path: ./app}`,
	},
	"flux-oci": {
		"all":   `{repo: "oci://registry.example/app", semver: ">=1.0.0", path: ./app, provider: azure, secret: registry-credentials, interval: 30s}`,
		"least": `{repo: "oci://registry.example/app", tag: "1.2"}`,
	},
	"flux-helm": {
		"all":   `{repo: "oci://registry.example/charts", chart: app, version: 1.x, secret: registry-credentials, interval: 30s, values: {replicas: 2, image: {tag: "1.10"}}}`,
		"least": `{repo: "https://charts.example", chart: app}`,
	},
	"argocd": {
		"all":       `{repo: "https://git.example/app", branch: dev, path: ./app, type: helm, project: apps, values: {replicas: 2}}`,
		"kustomize": `{repo: "https://git.example/app", branch: dev, path: ./kustomized, type: kustomize}`,
		"least":     `{repo: "https://git.example/app", path: ./plain}`,
	},
	"rancher-fleet": {
		"all":   `{repo: "https://git.example/app", revision: v1.2.3, path: ./app, secret: git-credentials, interval: 5m}`,
		"least": `{repo: "https://git.example/app", branch: dev, path: ./least}`,
	},
	"zarf": {
		"all":   `{repo: "https://git.example/app", branch: v1.2.3, path: ./app, version: 1.2.3, images: ["registry.example/app:1.2.3"]}`,
		"least": `{repo: "https://git.example/app", branch: dev, path: ./least}`,
	},
	"ansible": {"all": `{repo: "https://git.example/app", branch: dev, path: ./app}`},
	"host": {
		"all":   `{repo: "https://git.example/app", branch: dev, path: "./it's"}`,
		"least": `{repo: "https://git.example/app"}`,
	},
}

// companions are the other two templates of the cluster type that tries a
// reconciler's.
var companions = map[string][2]string{
	"flux-git":      {"namespace-as-a-service", "config-configmap"},
	"flux-oci":      {"namespace", ""},
	"flux-helm":     {"namespace", "config-json"},
	"argocd":        {"namespace", "config-configmap"},
	"rancher-fleet": {"namespace", "config-symphony"},
	"zarf":          {"namespace", "config-configmap"},
	"ansible":       {"ansible-user", "config-ansible"},
	"host":          {"host-folder", "config-env"},
}

// tryOut is a control plane with a cluster type for each reconciler, and a
// workload for each.
func tryOut(t *testing.T) plane {
	t.Helper()
	p := plane{main: readTree(t, readyTemplates), env: tree{}, sources: map[string]tree{"https://git.example/src": {}}}
	p.env["config.yaml"] = lines("apiVersion: v1", "kind: ConfigMap", "metadata:", "  name: common", "  labels: {platform-config: 'true'}", "data:",
		"  REGION: West US", `  PORT: "8080"`, `  DEBUG: "false"`, `  EMPTY: ""`, `  QUOTED: it's "quoted"; $HOME`, `  VERSION: "1.10"`,
		"  TEXT: |", "    two", "    lines", "  db.host: mysql.example", "  LISTENERS: |", "    - name: http", "      port: 80", "    - name: https", "      port: 443",
		"  LIMITS: |", "    cpu: 2", "    memory: {soft: 1Gi, hard: 2Gi}")
	kind := func(name, reconciler, namespace, config string) {
		p.env["types/"+name+".yaml"] = lines("apiVersion: scheduler.kalypso.io/v1alpha1", "kind: ClusterType",
			"metadata:", "  name: "+name, "  labels: {takes: "+name+"}",
			"spec:", "  reconciler: "+reconciler, "  namespaceService: "+namespace, "  configType: "+config)
		p.env["policies/"+name+".yaml"] = lines("apiVersion: scheduler.kalypso.io/v1alpha1", "kind: SchedulingPolicy", "metadata:", "  name: "+name,
			"spec:", "  deploymentTargetSelector:", "    workspace: team-a", "    labelSelector:", "      matchLabels: {takes: "+reconciler+"}",
			"  clusterTypeSelector:", "    labelSelector:", "      matchLabels: {takes: "+name+"}")
	}
	for reconciler, two := range companions {
		kind(reconciler, reconciler, two[0], two[1])
		workload := []string{"apiVersion: scheduler.kalypso.io/v1alpha1", "kind: Workload", "metadata:", "  name: " + reconciler, "spec:", "  deploymentTargets:"}
		for name, manifests := range endpoints[reconciler] {
			workload = append(workload, "  - name: "+name, "    environment: dev", "    labels: {takes: "+reconciler+"}",
				"    manifests: "+strings.ReplaceAll(manifests, "/app\"", "/"+reconciler+"\""))
		}
		p.sources["https://git.example/src"]["workloads/"+reconciler+".yaml"] = lines(workload...)
	}
	p.env["team.yaml"] = lines("apiVersion: scheduler.kalypso.io/v1alpha1", "kind: WorkloadRegistration", "metadata:", "  name: src",
		"spec:", "  workload: {repo: 'https://git.example/src', branch: main, path: workloads}", "  workspace: team-a")
	return p
}

func TestReadyTemplates(t *testing.T) {
	p := tryOut(t)
	plan := New(p.model("dev"))
	noComplaints(t, &plan)
	files := written(&plan)
	golden(t, "golden/templates", files)

	used := map[string]bool{}
	for reconciler, two := range companions {
		used[reconciler+".yaml"], used[two[0]+".yaml"], used[two[1]+".yaml"] = true, true, true
	}
	for name := range p.main {
		if path.Ext(name) == ".yaml" && !used[name] {
			t.Errorf("nothing tries %s", name)
		}
	}
	for name, text := range files {
		switch path.Ext(name) {
		case ".yaml":
			checkDocuments(t, name, text)
		case ".json":
			if !json.Valid([]byte(text)) {
				t.Errorf("%s is no JSON", name)
			}
		}
	}
}

// checkDocuments holds the documents of a file against the schemas of their
// kinds.
func checkDocuments(t *testing.T, name, text string) {
	t.Helper()
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var document any
		if err := d.Decode(&document); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s does not parse: %v", name, err)
			return
		}
		object, ok := document.(map[string]any)
		if !ok {
			continue // a playbook
		}
		kind, _ := object["kind"].(string)
		if kind == "" && path.Base(name) == "platform-config.yaml" {
			continue // variables
		}
		if err := checkKind(object); err != nil {
			t.Errorf("%s: %s: %v", name, kind, err)
		}
	}
}

// kubernetes are the kinds of Kubernetes that templates write.
var kubernetes = map[string]func() any{
	"v1 Namespace":                             func() any { return new(corev1.Namespace) },
	"v1 ConfigMap":                             func() any { return new(corev1.ConfigMap) },
	"v1 ServiceAccount":                        func() any { return new(corev1.ServiceAccount) },
	"v1 LimitRange":                            func() any { return new(corev1.LimitRange) },
	"v1 ResourceQuota":                         func() any { return new(corev1.ResourceQuota) },
	"networking.k8s.io/v1 NetworkPolicy":       func() any { return new(networkingv1.NetworkPolicy) },
	"rbac.authorization.k8s.io/v1 Role":        func() any { return new(rbacv1.Role) },
	"rbac.authorization.k8s.io/v1 RoleBinding": func() any { return new(rbacv1.RoleBinding) },
}

func checkKind(object map[string]any) error {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	if typed, ok := kubernetes[version+" "+kind]; ok {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		return d.Decode(typed())
	}
	name := strings.ReplaceAll(version, "/", "_") + "_" + kind + ".json"
	f, err := os.Open(filepath.Join("testdata", "schemas", name))
	if err != nil {
		return err
	}
	defer f.Close()
	schema, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, closed(schema)); err != nil {
		return err
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return compiled.Validate(value)
}

// closed makes an OpenAPI schema of a CRD a JSON Schema that takes no field
// that it does not name: an API server would drop it without a word.
func closed(schema any) any {
	switch s := schema.(type) {
	case []any:
		for i := range s {
			s[i] = closed(s[i])
		}
	case map[string]any:
		for key, inner := range s {
			s[key] = closed(inner)
		}
		properties, ok := s["properties"].(map[string]any)
		if _, isSchema := properties["type"].(string); ok && !isSchema && s["x-kubernetes-preserve-unknown-fields"] != true && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
		if s["x-kubernetes-int-or-string"] == true {
			delete(s, "type")
		}
		delete(s, "format") // of numbers: int32
	}
	return schema
}

// A schema that takes everything would prove nothing.
func TestSchemasObject(t *testing.T) {
	p := tryOut(t)
	plan := New(p.model("dev"))
	seen := map[string]bool{}
	for name, text := range written(&plan) {
		if path.Ext(name) != ".yaml" {
			continue
		}
		for d := yaml.NewDecoder(strings.NewReader(text)); ; {
			var object map[string]any
			if err := d.Decode(&object); err != nil {
				break
			}
			kind, _ := object["kind"].(string)
			if kind == "" || seen[kind] || slices.Contains([]string{"CatalogContainer", "ServiceAccount"}, kind) {
				continue
			}
			seen[kind] = true
			for _, field := range []string{"spec", "data", "rules", "roleRef", "components"} {
				if object[field] == nil {
					continue
				}
				object[field] = "nonsense"
				if checkKind(object) == nil {
					t.Errorf("a %s may have a text as its %s", kind, field)
				}
				delete(object, field)
			}
			object["speck"] = true
			if checkKind(object) == nil {
				t.Errorf("a %s may have any field", kind)
			}
		}
	}
	if len(seen) < 12 {
		t.Errorf("only the kinds %v were tried", seen)
	}
}

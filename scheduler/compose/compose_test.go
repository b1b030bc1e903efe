package compose

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
)

// Rule 3: which ConfigMaps apply.
func TestRule3Applies(t *testing.T) {
	a := assignment("large", "app", map[string]string{"region": "west", "size": "large", "both": "type"},
		map[string]string{"purpose": "test", "workload": "hello", "workspace": "team", "both": "target"})
	tests := map[string]struct {
		reason string
		labels map[string]string
		want   bool
	}{
		"none":                  {"without labels it applies everywhere", nil, true},
		"its mark":              {"platform-config is no condition", map[string]string{"platform-config": "true"}, true},
		"Flux's own":            {"nor is who applied it", map[string]string{"kustomize.toolkit.fluxcd.io/name": "x", "kustomize.toolkit.fluxcd.io/namespace": "y"}, true},
		"cluster type":          {"cluster-type names it", map[string]string{"cluster-type": "large"}, true},
		"another type":          {"", map[string]string{"cluster-type": "small"}, false},
		"target":                {"deployment-target is <workload>-<name>", map[string]string{"deployment-target": "hello-app"}, true},
		"target's short name":   {"the short name is not enough", map[string]string{"deployment-target": "app"}, false},
		"workload":              {"workload names it", map[string]string{"workload": "hello"}, true},
		"another workload":      {"", map[string]string{"workload": "other"}, false},
		"label of the type":     {"any other label is the cluster type's …", map[string]string{"region": "west"}, true},
		"label of the target":   {"… or the target's", map[string]string{"purpose": "test"}, true},
		"of both, the type's":   {"either is enough", map[string]string{"both": "type"}, true},
		"of both, the target's": {"either is enough", map[string]string{"both": "target"}, true},
		"of neither":            {"a label that nobody has", map[string]string{"zone": "1"}, false},
		"an empty one":          {"no label is not an empty one", map[string]string{"zone": ""}, false},
		"another value":         {"", map[string]string{"region": "east"}, false},
		"all of them":           {"every label counts", map[string]string{"region": "west", "purpose": "test", "cluster-type": "large", "workspace": "team"}, true},
		"all but one":           {"every label counts", map[string]string{"region": "west", "purpose": "production"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Applies(tc.labels, a); got != tc.want {
				t.Errorf("%s: Applies = %t, want %t", tc.reason, got, tc.want)
			}
			// What the composer makes of it is the same.
			config := compose(t, a, configMap("m", tc.labels, "K", "v"), configMap("n", map[string]string{"zone": "2"}, "L", "v"))
			if _, got := config.Data["K"]; got != tc.want || len(config.Data) > 1 {
				t.Errorf("%s: composed %v, want K: %t", tc.reason, config.Data, tc.want)
			}
		})
	}
}

// A type's label must not pass for the target's name, and the other way round.
func TestRule3NamesAreNoLabels(t *testing.T) {
	a := assignment("large", "app", map[string]string{"deployment-target": "x", "workload": "x", "cluster-type": "x"},
		map[string]string{"cluster-type": "x", "deployment-target": "x", "workload": "hello"})
	for _, key := range []string{"cluster-type", "deployment-target", "workload"} {
		if Applies(map[string]string{key: "x"}, a) {
			t.Errorf("label %s is taken for the name", key)
		}
	}
}

// Rule 3: values merge in order of the ConfigMaps' names.
func TestRule3Merge(t *testing.T) {
	m := func(name string, data ...string) controlplane.ConfigMap { return configMap(name, nil, data...) }
	tests := map[string]struct {
		reason string
		maps   []controlplane.ConfigMap
		want   map[string]any
		told   []string
	}{
		"order of names": {
			"the last by name wins, wherever it stands", []controlplane.ConfigMap{m("b", "K", "2", "M", "b"), m("c", "K", "3"), m("a", "K", "1", "L", "a")},
			map[string]any{"K": "3", "L": "a", "M": "b"}, []string{"K: c < b < a", "L: a", "M: b"},
		},
		"maps merge deeply": {
			"", []controlplane.ConfigMap{m("a", "K", "x: {p: 1, q: 1}\ny: a"), m("b", "K", `{"x": {"q": 2, "r": 2}}`)},
			map[string]any{"K": map[string]any{"x": map[string]any{"p": int64(1), "q": int64(2), "r": int64(2)}, "y": "a"}},
			[]string{"K.x.p: a", "K.x.q: b < a", "K.x.r: b", "K.y: a"},
		},
		"items with a name merge": {
			"others are appended", []controlplane.ConfigMap{m("a", "K", "- {name: x, v: 1}\n- plain\n- {name: y, v: 1}"), m("b", "K", "- {name: y, v: 2, w: 2}\n- plain\n- {name: z}")},
			map[string]any{"K": []any{
				map[string]any{"name": "x", "v": int64(1)}, "plain", map[string]any{"name": "y", "v": int64(2), "w": int64(2)}, "plain", map[string]any{"name": "z"},
			}},
			[]string{"K.0.name: a", "K.0.v: a", "K.1: a", "K.2.name: a", "K.2.v: b < a", "K.2.w: b", "K.3: b", "K.4.name: b"},
		},
		"a scalar replaces": {
			"a map, too", []controlplane.ConfigMap{m("a", "K", "x: 1\ny: 2"), m("b", "K", "y: 3"), m("c", "K", "text"), m("d", "K", "z: 1")},
			map[string]any{"K": map[string]any{"z": int64(1)}}, []string{"K.z: d < c < b < a"},
		},
		"a list in the place of a map": {
			"what cannot merge replaces", []controlplane.ConfigMap{m("a", "K", "x: 1"), m("b", "K", "[1]")},
			map[string]any{"K": []any{int64(1)}}, []string{"K.0: b < a"},
		},
		"empty ones": {
			"an empty map or list is a value", []controlplane.ConfigMap{m("a", "K", "{}", "L", "[]", "M", "x: 1"), m("b", "M", "{}", "L", "[1]")},
			map[string]any{"K": map[string]any{}, "L": []any{int64(1)}, "M": map[string]any{"x": int64(1)}}, []string{"K: a", "L.0: b", "M.x: a"},
		},
		"replace": {
			"annotation landfall.dev/merge: replace", []controlplane.ConfigMap{m("a", "K", "x: 1\ny: 2", "L", "[1]"), merging(m("b", "K", "y: 3", "L", "[2]"), controlplane.MergeReplace)},
			map[string]any{"K": map[string]any{"y": int64(3)}, "L": []any{int64(2)}}, []string{"K.y: b < a", "L.0: b < a"},
		},
		"append": {
			"annotation landfall.dev/merge: append", []controlplane.ConfigMap{m("a", "K", "- {name: x, v: 1}", "L", "x: [1]"), merging(m("b", "K", "- {name: x, v: 2}", "L", "x: [2]"), controlplane.MergeAppend)},
			map[string]any{"K": []any{map[string]any{"name": "x", "v": int64(1)}, map[string]any{"name": "x", "v": int64(2)}}, "L": map[string]any{"x": []any{int64(1), int64(2)}}},
			[]string{"K.0.name: a", "K.0.v: a", "K.1.name: b", "K.1.v: b", "L.x.0: a", "L.x.1: b"},
		},
		"the strategy is the later one's": {
			"it says how its own values meet others", []controlplane.ConfigMap{merging(m("a", "K", "x: 1"), controlplane.MergeReplace), m("b", "K", "y: 2")},
			map[string]any{"K": map[string]any{"x": int64(1), "y": int64(2)}}, []string{"K.x: a", "K.y: b"},
		},
		"scalars stay text": {
			"a ConfigMap's values are text, however they look", []controlplane.ConfigMap{m("a", "N", "42", "B", "true", "U", "mysql://host:3306/db", "T", "{{ .Environment }}-x", "E", "")},
			map[string]any{"N": "42", "B": "true", "U": "mysql://host:3306/db", "T": "{{ .Environment }}-x", "E": ""}, []string{"B: a", "E: a", "N: a", "T: a", "U: a"},
		},
		"single quotes": {
			"what is in single quotes stays a string", []controlplane.ConfigMap{m("a", "K", "'[1, 2]'", "L", "'42'\n", "M", "'", "N", "it's", "O", "'a' or 'b'", "P", "'it''s'"), m("b", "K", "'{}'")},
			map[string]any{"K": "{}", "L": "42", "M": "'", "N": "it's", "O": "'a' or 'b'", "P": "it's"}, []string{"K: b < a", "L: a", "M: a", "N: a", "O: a", "P: a"},
		},
		"keys with dots": {
			"no two values have one key", []controlplane.ConfigMap{m("a", "x.y", "1", "x", "y: 2", "z", `{"": 1, "\"": 2}`)},
			map[string]any{"x.y": "1", "x": map[string]any{"y": int64(2)}, "z": map[string]any{"": int64(1), `"`: int64(2)}},
			[]string{`"x.y": a`, "x.y: a", `z."": a`, `z."\"": a`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			config := compose(t, anywhere(), tc.maps...)
			if diff := cmp.Diff(tc.want, config.Data); diff != "" {
				t.Errorf("%s: data (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.told, told(config)); diff != "" {
				t.Errorf("%s: origins (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Rule 3: ConfigMaps whose name begins with azure-app-config carry their labels
// in the keys.
func TestRule3AzureAppConfig(t *testing.T) {
	azure := configMap("azure-app-config-west", map[string]string{"platform-config": "true", "region": "west"},
		"A", "all", "size.large.A", "large", "cluster-type.large.size.large.A", "longest", "region.west.B", "west", "region.east.B", "east",
		"workload.hello.C", "x: 1", "deployment-target.hello-app.C", "y: 2", "workload.other.D", "no")
	west := map[string]string{"region": "west", "size": "large"}
	config := compose(t, assignment("large", "app", west, nil), azure, configMap("a", nil, "A", "first", "C", "z: 3"))
	if diff := cmp.Diff(map[string]any{"A": "longest", "B": "west", "C": map[string]any{"x": int64(1), "y": int64(2), "z": int64(3)}}, config.Data); diff != "" {
		t.Errorf("shorter keys go first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"A: azure-app-config-west < azure-app-config-west < a", "B: azure-app-config-west",
		"C.x: azure-app-config-west", "C.y: azure-app-config-west", "C.z: a",
	}, told(config)); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
	if got := config.Origins["A"].Place; got != (controlplane.Place{File: "azure-app-config-west.yaml", Line: 12}) {
		t.Errorf("A is from %s, want the line of its longest key", got)
	}
	if diff := cmp.Diff([]string{"a", "azure-app-config-west"}, config.Inputs); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}

	config = compose(t, assignment("small", "app", west, nil), azure)
	if config.Data["A"] != "large" {
		t.Errorf("A is %q on a small cluster type labelled large", config.Data["A"])
	}
	config = compose(t, assignment("large", "app", map[string]string{"region": "east"}, nil), azure)
	if len(config.Data)+len(config.Inputs) > 0 {
		t.Errorf("the ConfigMap's own labels count, too: %v from %v", config.Data, config.Inputs)
	}

	// A key that cannot be read stops what the ConfigMap applies to.
	bad := configMap("azure-app-config", map[string]string{"region": "west"}, "region.A", "x", "B", "y", "region.west.region.east.C", "z", "..", "z")
	c, problems := NewComposer([]controlplane.ConfigMap{bad})
	if len(problems) != 3 || problems[0].Error() != `azure-app-config.yaml:10: ConfigMap "azure-app-config": key "region.A" must be label1.value1.label2.value2.KEY, with any number of labels: correct it` {
		t.Errorf("problems %v", problems)
	}
	if _, problems := c.Compose(assignment("large", "app", west, nil)); len(problems) != 1 {
		t.Errorf("composed with an unreadable key: %v", problems)
	}
	if _, problems := c.Compose(anywhere()); len(problems) != 0 {
		t.Errorf("others are stopped, too: %v", problems)
	}
}

// A broken ConfigMap stops what it applies to, and nothing else.
func TestBrokenConfigMap(t *testing.T) {
	broken := configMap("b", map[string]string{"region": "west"}, "K", "half")
	broken.Broken = "b.yaml:9: no YAML"
	c, problems := NewComposer([]controlplane.ConfigMap{configMap("a", nil, "K", "v"), broken})
	if len(problems) > 0 {
		t.Errorf("what the model says is said again: %v", problems)
	}
	_, problems = c.Compose(assignment("large", "app", map[string]string{"region": "west"}, nil))
	if len(problems) != 1 || problems[0].Error() != `b.yaml:1: ConfigMap "b": nothing is composed with or without it until it is mended: b.yaml:9: no YAML` {
		t.Errorf("problems %v", problems)
	}
	config, problems := c.Compose(anywhere())
	if len(problems) > 0 || config.Data["K"] != "v" {
		t.Errorf("elsewhere: %v, %v", config.Data, problems)
	}
}

func TestDigest(t *testing.T) {
	digest := func(data ...string) string { return compose(t, anywhere(), configMap("m", nil, data...)).Digest }
	if digest("A", "x: 1", "B", "2") != compose(t, anywhere(), configMap("b", nil, "B", "2"), configMap("a", nil, "A", "{x: 1}")).Digest {
		t.Error("one data, two digests")
	}
	seen := map[string]bool{digest(): true}
	for _, data := range [][]string{{"A", "1"}, {"A", "2"}, {"B", "1"}, {"A", "x: 1"}, {"A", "x: '1'"}, {"A", "[1]"}, {"A", "'1'"}} {
		d := digest(data...)
		if seen[d] {
			t.Errorf("%q has the digest of another", data)
		}
		seen[d] = true
	}
}

// The seed's step 4: a value in west-us reaches the assignments there alone.
func TestSeedDatabaseURL(t *testing.T) {
	maps := []controlplane.ConfigMap{
		configMap("dev-config", nil, "ENVIRONMENT", "Dev", "SOME_COMMON_ENVIRONMENT_VARIABLE", "false"),
		configMap("drone-config", map[string]string{"cluster-type": "drone"}, "CLUSTER_NAME", "Drone"),
		configMap("east-us-config", map[string]string{"region": "east-us"}, "REGION", "East US"),
		configMap("restricted-config", map[string]string{"restricted": "true"}, "DATABASE_URL", "mysql://restricted-host:3306/mysqlrty123"),
		configMap("west-us-config", map[string]string{"region": "west-us"}, "REGION", "West US", "DATABASE_URL", "mysql://west:8806/mysql2"),
	}
	drone := assignment("drone", "functional-test", map[string]string{"region": "east-us", "restricted": "true", "edge": "true"}, nil)
	large := assignment("large", "uat-test", map[string]string{"region": "west-us", "size": "large"}, nil)
	if diff := cmp.Diff(map[string]any{
		"CLUSTER_NAME": "Drone", "DATABASE_URL": "mysql://restricted-host:3306/mysqlrty123", "ENVIRONMENT": "Dev", "REGION": "East US",
		"SOME_COMMON_ENVIRONMENT_VARIABLE": "false",
	}, compose(t, drone, maps...).Data); diff != "" {
		t.Errorf("drone's configuration as the tutorial shows it (-want +got):\n%s", diff)
	}
	before := []string{compose(t, drone, maps...).Digest, compose(t, large, maps...).Digest}
	maps[4].Data["DATABASE_URL"] = "mysql://west-stage:8806/mysql2"
	if got := compose(t, drone, maps...).Digest; got != before[0] {
		t.Error("drone, in the east, has another configuration")
	}
	if got := compose(t, large, maps...).Digest; got == before[1] {
		t.Error("large, in the west, has the same configuration")
	}
}

package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func policy(selectors string) []File {
	return []File{file("p.yaml", head("SchedulingPolicy", "p"), "spec:", selectors)}
}

func TestSelectors(t *testing.T) {
	const expressions = "  deploymentTargetSelector: {}\n  clusterTypeSelector:\n    labelSelector:\n      matchExpressions:\n        - "
	west, east, none := map[string]string{"region": "west"}, map[string]string{"region": "east", "edge": ""}, map[string]string{}
	tests := map[string]struct {
		reason, selectors, canonical string
		// selected says which of west, east and none the cluster types' selector takes.
		selected [3]bool
	}{
		"empty":          {"an empty selector selects everything", "  deploymentTargetSelector: {}\n  clusterTypeSelector: {labelSelector: {}}", "", [3]bool{true, true, true}},
		"none":           {"so does one that is not there", "  deploymentTargetSelector: {}\n  clusterTypeSelector: {}", "", [3]bool{true, true, true}},
		"null":           {"and one without content", "  deploymentTargetSelector: {}\n  clusterTypeSelector: {labelSelector: }", "", [3]bool{true, true, true}},
		"matchLabels":    {"all labels must be equal", "  deploymentTargetSelector: {}\n  clusterTypeSelector: {labelSelector: {matchLabels: {region: east, edge: ''}}}", "edge=,region=east", [3]bool{false, true, false}},
		"number":         {"values are text", "  deploymentTargetSelector: {}\n  clusterTypeSelector: {labelSelector: {matchLabels: {region: 1.10}}}", "region=1.10", [3]bool{}},
		"In":             {"one of several", expressions + "{key: region, operator: In, values: [west, north]}", "region in (north,west)", [3]bool{true, false, false}},
		"NotIn":          {"none of several, or no such label", expressions + "{key: region, operator: NotIn, values: [west]}", "region notin (west)", [3]bool{false, true, true}},
		"Exists":         {"whatever its value", expressions + "{key: edge, operator: Exists}", "edge", [3]bool{false, true, false}},
		"DoesNotExist":   {"no such label", expressions + "{key: edge, operator: DoesNotExist}", "!edge", [3]bool{true, false, true}},
		"all of several": {"requirements add up, in whatever order", expressions + "{key: region, operator: Exists}\n        - {key: edge, operator: DoesNotExist}", "!edge,region", [3]bool{true, false, false}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := ParseEnvironment(policy(tc.selectors))
			if len(m.Problems) > 0 || len(m.Policies) != 1 {
				t.Fatalf("%s: %v", tc.reason, m.Problems)
			}
			s := m.Policies[0].ClusterTypes
			if got := [3]bool{s.Matches(west), s.Matches(east), s.Matches(none)}; got != tc.selected {
				t.Errorf("%s: selects %v, want %v", tc.reason, got, tc.selected)
			}
			if s.String() != tc.canonical {
				t.Errorf("%s: written %q, want %q", tc.reason, s, tc.canonical)
			}
			if !s.Equal(s) || tc.canonical != "" && s.Equal(Selector{}) {
				t.Errorf("%s: Equal is wrong", tc.reason)
			}
		})
	}
}

func TestNonsenseSelectors(t *testing.T) {
	const both, types = "  deploymentTargetSelector: {}\n  clusterTypeSelector:\n", "  deploymentTargetSelector: {}\n  clusterTypeSelector:\n    labelSelector:\n"
	tests := map[string]struct{ reason, selectors, want string }{
		"no selector": {
			"a forgotten selector must not mean everything", "  deploymentTargetSelector: {}",
			`p.yaml:6: SchedulingPolicy "p": spec.clusterTypeSelector is missing: add it`,
		},
		"misspelt": {
			"nor must a misspelt one", both + "    labelSelectors: {matchLabels: {a: b}}",
			`p.yaml:8: SchedulingPolicy "p": spec.clusterTypeSelector.labelSelectors is not known here, only labelSelector: remove or correct it`,
		},
		"labels without matchLabels": {
			"nor one that lacks a level", types + "      region: west",
			`p.yaml:9: SchedulingPolicy "p": spec.clusterTypeSelector.labelSelector.region is not known here, only matchLabels, matchExpressions: remove or correct it`,
		},
		"operator": {
			"operators are Kubernetes' own", types + "      matchExpressions: [{key: a, operator: Is, values: [b]}]",
			`p.yaml:9: SchedulingPolicy "p": spec.clusterTypeSelector.labelSelector.matchExpressions[0].operator "Is" is no operator: In, NotIn, Exists and DoesNotExist are`,
		},
		"In without values": {
			"in nothing is nowhere", types + "      matchExpressions: [{key: a, operator: In}]",
			`p.yaml:9: SchedulingPolicy "p": selector: values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty`,
		},
		"Exists with values": {
			"whatever was meant", types + "      matchExpressions: [{key: a, operator: Exists, values: [b]}]",
			`p.yaml:9: SchedulingPolicy "p": selector: values: Invalid value: ["b"]: values set must be empty for exists and does not exist`,
		},
		"no key": {
			"a requirement is about a label", types + "      matchExpressions: [{operator: Exists}]",
			`p.yaml:9: SchedulingPolicy "p": spec.clusterTypeSelector.labelSelector.matchExpressions[0].key is missing: add it`,
		},
		"a list of labels": {
			"the wrong shape", types + "      matchLabels: [a, b]",
			`p.yaml:9: SchedulingPolicy "p": spec.clusterTypeSelector.labelSelector.matchLabels must be a mapping`,
		},
		"a value that is none": {
			"values are mappings' business elsewhere", types + "      matchLabels: {a: {b: c}}",
			`p.yaml:9: SchedulingPolicy "p": spec.clusterTypeSelector.labelSelector.matchLabels.a must be text`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			files := append(policy(tc.selectors), file("good.yaml", head("SchedulingPolicy", "good"), "spec: {deploymentTargetSelector: {}, clusterTypeSelector: {}}"))
			m := ParseEnvironment(files)
			if diff := cmp.Diff([]string{tc.want}, messages(m.Problems)); diff != "" {
				t.Errorf("%s: problems (-want +got):\n%s", tc.reason, diff)
			}
			if len(m.Problems) > 0 && !m.Problems[0].Hides {
				t.Errorf("%s: whoever was assigned by the policy would be deleted", tc.reason)
			}
			if len(m.Policies) != 1 || m.Policies[0].Name != "good" {
				t.Errorf("%s: policies %v, want the good one alone", tc.reason, m.Policies)
			}
		})
	}
}

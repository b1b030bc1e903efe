package compose

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/match"
)

// assignment puts a deployment target of workload hello on a cluster type, with
// the labels of both.
func assignment(clusterType, target string, typeLabels, targetLabels map[string]string) *match.Assignment {
	return &match.Assignment{
		ClusterType: &controlplane.ClusterType{Name: clusterType, Labels: typeLabels},
		Target: &match.DeploymentTarget{
			Name: "hello-" + target, Short: target, Workload: "hello", Labels: targetLabels,
			Place: controlplane.Place{File: "hello.yaml", Line: 5},
		},
	}
}

// anywhere is an assignment for tests to which labels do not matter.
func anywhere() *match.Assignment { return assignment("large", "app", nil, nil) }

// configMap is a ConfigMap with the given labels and values, given by turns.
func configMap(name string, labels map[string]string, data ...string) controlplane.ConfigMap {
	m := controlplane.ConfigMap{
		Place: controlplane.Place{File: name + ".yaml", Line: 1}, Name: name, Labels: labels, Merge: controlplane.MergeDeep,
		Data: map[string]string{}, Lines: map[string]int{},
	}
	for i := 0; i+1 < len(data); i += 2 {
		m.Data[data[i]], m.Lines[data[i]] = data[i+1], 10+i/2
	}
	return m
}

func merging(m controlplane.ConfigMap, how controlplane.Merge) controlplane.ConfigMap {
	m.Merge = how
	return m
}

// compose composes and wants no problem.
func compose(t *testing.T, a *match.Assignment, maps ...controlplane.ConfigMap) Config {
	t.Helper()
	c, problems := NewComposer(maps)
	config, more := c.Compose(a)
	if len(problems)+len(more) > 0 {
		t.Fatalf("problems: %v, %v", problems, more)
	}
	return config
}

// told writes the origins of a configuration down: key: giver < overridden.
func told(c Config) []string {
	var all []string
	for key, o := range c.Origins {
		all = append(all, strings.Join(slices.Concat([]string{fmt.Sprintf("%s: %s", key, o.ConfigMap)}, reversed(o.Overridden)), " < "))
	}
	slices.Sort(all)
	return all
}

func reversed(s []string) []string {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}

func configSchema(name string, labels map[string]string, schema string) controlplane.ConfigSchema {
	return controlplane.ConfigSchema{Place: controlplane.Place{File: name + ".yaml", Line: 1}, Name: name, Labels: labels, Schema: schema}
}

// validate returns the violations of values under schemas.
func validate(t *testing.T, a *match.Assignment, maps []controlplane.ConfigMap, schemas ...controlplane.ConfigSchema) []Violation {
	t.Helper()
	k, problems := NewChecker(schemas)
	if len(problems) > 0 {
		t.Fatalf("schemas: %v", problems)
	}
	config := compose(t, a, maps...)
	return k.Validate(a, &config)
}

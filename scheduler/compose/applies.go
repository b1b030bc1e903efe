package compose

import (
	"math/big"
	"strings"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/match"
)

// The labels by which ConfigMaps and ConfigSchemas name what they are for.
const (
	labelClusterType      = "cluster-type"
	labelDeploymentTarget = "deployment-target"
	labelPlatformConfig   = "platform-config"
)

// ownership says whether a label says only who applied the document: Flux
// leaves such in what is exported from a cluster.
func ownership(key string) bool {
	prefix, name, _ := strings.Cut(key, "/")
	return strings.HasSuffix(prefix, ".toolkit.fluxcd.io") && (name == "name" || name == "namespace")
}

// Applies says whether what has these labels, a ConfigMap or a ConfigSchema, is
// meant for an assignment: each of them must be one of its cluster type or of
// its target. The labels cluster-type, deployment-target and workload name it;
// platform-config and Flux's labels of ownership say nothing about it.
func Applies(labels map[string]string, a *match.Assignment) bool {
	for key, value := range labels {
		if meant(key) && !ofType(key, value, a.ClusterType) && !ofTarget(key, value, a.Target) {
			return false
		}
	}
	return true
}

// meant says whether a label is about where its document applies.
func meant(key string) bool { return key != labelPlatformConfig && !ownership(key) }

func ofType(key, value string, t *controlplane.ClusterType) bool {
	switch key {
	case labelClusterType:
		return value == t.Name
	case labelDeploymentTarget, match.LabelWorkload:
		return false
	}
	return has(t.Labels, key, value)
}

func ofTarget(key, value string, t *match.DeploymentTarget) bool {
	switch key {
	case labelClusterType:
		return false
	case labelDeploymentTarget:
		return value == t.Name
	case match.LabelWorkload:
		return value == t.Workload
	}
	return has(t.Labels, key, value)
}

func has(labels map[string]string, key, value string) bool {
	v, ok := labels[key]
	return ok && v == value
}

// condition is one label that an assignment must satisfy.
type condition struct{ key, value string }

// conditions numbers the conditions of many sets of labels, so that which of
// them hold for an assignment is found once for each cluster type and once for
// each target, not for each pair of them.
type conditions struct {
	numbers map[condition]int
	types   map[*controlplane.ClusterType]*big.Int
	targets map[*match.DeploymentTarget]*big.Int
}

func newConditions() *conditions {
	return &conditions{
		numbers: map[condition]int{}, types: map[*controlplane.ClusterType]*big.Int{}, targets: map[*match.DeploymentTarget]*big.Int{},
	}
}

// need returns the conditions that a set of labels makes. All of them must be
// known before the first assignment is looked at.
func (c *conditions) need(labels map[string]string) *big.Int {
	set := new(big.Int)
	for key, value := range labels {
		if !meant(key) {
			continue
		}
		n, ok := c.numbers[condition{key, value}]
		if !ok {
			n = len(c.numbers)
			c.numbers[condition{key, value}] = n
		}
		set.SetBit(set, n, 1)
	}
	return set
}

// hold returns the conditions that hold for an assignment.
func (c *conditions) hold(a *match.Assignment) *big.Int {
	byType, ok := c.types[a.ClusterType]
	if !ok {
		byType = c.those(func(key, value string) bool { return ofType(key, value, a.ClusterType) })
		c.types[a.ClusterType] = byType
	}
	byTarget, ok := c.targets[a.Target]
	if !ok {
		byTarget = c.those(func(key, value string) bool { return ofTarget(key, value, a.Target) })
		c.targets[a.Target] = byTarget
	}
	return new(big.Int).Or(byType, byTarget)
}

func (c *conditions) those(is func(key, value string) bool) *big.Int {
	set := new(big.Int)
	for cond, n := range c.numbers {
		if is(cond.key, cond.value) {
			set.SetBit(set, n, 1)
		}
	}
	return set
}

// within says whether all that is needed holds.
func within(need, hold *big.Int) bool { return new(big.Int).AndNot(need, hold).Sign() == 0 }

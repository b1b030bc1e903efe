package agent

import (
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/agent/watch"
)

// reconcilers has the names of the kinds that are reported; all others that are
// watched are sources.
var reconcilers = func() map[string]bool {
	names := map[string]bool{}
	for _, k := range watch.DefaultKinds() {
		if object.IsReconciler(k.Group, k.Kind) {
			names[k.Kind] = true
		}
	}
	return names
}()

// watched returns the kinds that the settings ask for.
func (c *Config) watched() []watch.Kind {
	return slices.DeleteFunc(watch.DefaultKinds(), func(k watch.Kind) bool {
		if strings.HasSuffix(k.Group, ".fluxcd.io") {
			return !c.Flux.Enabled
		}
		return !c.ArgoCD.Enabled
	})
}

// reported returns the names of those that are reported, sorted.
func (c *Config) reported() []string {
	if c.Host.Enabled() {
		return hostKind
	}
	var names []string
	for _, k := range c.watched() {
		if reconcilers[k.Kind] {
			names = append(names, k.Kind)
		}
	}
	slices.Sort(names)
	return names
}

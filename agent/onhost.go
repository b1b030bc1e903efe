package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/agent/host"
	"github.com/landfall-hub/landfall/internal/lifecycle"
	"github.com/landfall-hub/landfall/schema"
)

// onHost sees the folders that it follows itself.
type onHost struct {
	*host.Runner
	sink    sink
	folders int
}

func newOnHost(opts Options, reg *prometheus.Registry) (*onHost, error) {
	runner, err := host.New(host.Options{
		Config: opts.Config.Host, Cluster: opts.Config.Cluster.Name, Env: opts.Env, Logger: opts.Log.With("part", "host"), Registerer: reg,
	})
	if err != nil {
		return nil, err
	}
	return &onHost{Runner: runner, folders: len(opts.Config.Host.Folders)}, nil
}

func (h *onHost) tell(to sink) { h.sink = without{to, slices.Collect(maps.Keys(reconcilers))} }

func (h *onHost) start(l *lifecycle.Lifecycle) {
	l.Start("host", hostGrace, func(ctx context.Context) error { return h.Run(ctx, h.sink) })
}

// checks say whether every folder's repository can be read. An apply that fails
// is the hub's to know; the agent did its part.
func (h *onHost) checks() []check {
	s := h.Status()
	if len(s.Unread) > 0 {
		return []check{{Name: "folders", Detail: "cannot be read: " + strings.Join(s.Unread, "; ")}}
	}
	counts := []string{}
	for _, status := range slices.Sorted(maps.Keys(s.Folders)) {
		counts = append(counts, fmt.Sprintf("%s: %d", status, s.Folders[status]))
	}
	return []check{{Name: "folders", OK: true, Detail: "followed: " + strings.Join(counts, ", ")}}
}

func (h *onHost) about() (key string, value any) { return "folders", h.folders }

// without is a sink that is told of further kinds that there is nothing of
// them: what an agent of another sort reported of them, under this cluster's
// name, is gone.
type without struct {
	sink
	kinds []string
}

func (w without) Kinds(listed, unlisted []string) {
	all := append(slices.Clone(listed), w.kinds...)
	slices.Sort(all)
	w.sink.Kinds(all, unlisted)
}

// hostKind is what a host's agent reports.
var hostKind = []string{host.Kind}

// clusterKind says what the settings make of the cluster.
func (c *Config) clusterKind() schema.ClusterKind {
	if c.Host.Enabled() {
		return schema.ClusterHost
	}
	return schema.ClusterKubernetes
}

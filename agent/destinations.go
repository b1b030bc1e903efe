package agent

import (
	"log/slog"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/agent/argocd"
)

// destinations maps the clusters that Argo CD deploys to on the names under
// which they are registered with the hub.
type destinations struct {
	own      string // this cluster's name
	byName   map[string]string
	byServer map[string]string
	log      *slog.Logger
	unmapped prometheus.Gauge

	mu sync.Mutex
	// unknown are those that nothing was found for.
	unknown map[argocd.Destination]bool
}

// maxUnknown bounds what is remembered and logged of them.
const maxUnknown = 1000

func newDestinations(c Config, log *slog.Logger, unmapped prometheus.Gauge) *destinations {
	d := &destinations{
		own: c.Cluster.Name, byName: map[string]string{}, byServer: map[string]string{},
		log: log, unmapped: unmapped, unknown: map[argocd.Destination]bool{},
	}
	for _, entry := range c.ArgoCD.Destinations {
		if entry.Name != "" {
			d.byName[entry.Name] = entry.Cluster
		}
		if entry.Server != "" {
			d.byServer[plainServer(entry.Server)] = entry.Cluster
		}
	}
	return d
}

// plainServer makes addresses of API servers comparable.
func plainServer(server string) string { return strings.TrimRight(strings.ToLower(server), "/") }

// find returns the registered name of a destination elsewhere, or that it is
// this cluster by another address. Nothing is found for a destination that no
// setting names: its Application counts for the cluster that Argo CD runs on,
// because one that counted nowhere would be missed by nobody.
func (d *destinations) find(to argocd.Destination) (cluster string, here bool) {
	cluster, ok := d.byName[to.Name]
	if to.Name == "" {
		cluster, ok = d.byServer[plainServer(to.Server)]
	}
	if !ok {
		d.complain(to)
		return "", false
	}
	if cluster == d.own {
		return "", true
	}
	return cluster, false
}

func (d *destinations) complain(to argocd.Destination) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unknown[to] || len(d.unknown) >= maxUnknown {
		return
	}
	d.unknown[to] = true
	d.unmapped.Set(float64(len(d.unknown)))
	d.log.Warn("an Application deploys to a cluster that argocd.destinations does not name; it counts for this cluster until an entry does",
		"server", to.Server, "name", to.Name)
}

package agent

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	looked      prometheus.Counter
	reconcilers *prometheus.GaugeVec
	unmapped    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, version string) *metrics {
	m := &metrics{
		looked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "landfall_agent_reads_total", Help: "Reconcilers whose facts were read because something that they hang on changed.",
		}),
		reconcilers: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "landfall_agent_reconcilers", Help: "Reconcilers on this cluster by kind and status.",
		}, []string{"kind", "status"}),
		unmapped: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "landfall_agent_unmapped_destinations", Help: "Destinations of Argo CD that no entry of argocd.destinations names.",
		}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "landfall_agent_build_info", Help: "Always 1, with the version.",
	}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	reg.MustRegister(m.looked, m.reconcilers, m.unmapped, build)
	return m
}

// follow adds what is asked for when metrics are read.
func (m *metrics) follow(reg prometheus.Registerer, w *worker) {
	gauge := func(name, help string, value func() int) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) }))
	}
	gauge("landfall_agent_queue_length", "Objects that changed and were not looked at yet.", w.queue.length)
	gauge("landfall_agent_held_reconcilers", "Reconcilers held back until the kinds of their sources are listed.", func() int { return w.progress().heldCount })
	gauge("landfall_agent_blind_reconcilers", "Reconcilers whose source was never seen and cannot be now.", func() int { return w.progress().blindCount })
}

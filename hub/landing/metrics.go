package landing

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	hits, misses prometheus.Counter
	rows         prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	looks := f.NewCounterVec(prometheus.CounterOpts{
		Namespace: "landfall", Subsystem: "landing", Name: "looks_total", Help: "Look-ups of a repository and ref in memory, by whether it was there.",
	}, []string{"found"})
	return &metrics{
		hits: looks.WithLabelValues("yes"), misses: looks.WithLabelValues("no"),
		rows: f.NewGauge(prometheus.GaugeOpts{
			Namespace: "landfall", Subsystem: "landing", Name: "rows", Help: "Subscriptions kept in memory.",
		}),
	}
}

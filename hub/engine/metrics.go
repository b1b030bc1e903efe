package engine

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	up       prometheus.Gauge
	restarts prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	factory := promauto.With(reg)
	return &metrics{
		up: factory.NewGauge(prometheus.GaugeOpts{
			Name: "landfall_engine_up",
			Help: "Whether the embedded ClickHouse takes statements (1) or not (0).",
		}),
		restarts: factory.NewCounter(prometheus.CounterOpts{
			Name: "landfall_engine_restarts_total",
			Help: "How often the embedded ClickHouse was started again after it had ended by itself.",
		}),
	}
}

package store

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	duration *prometheus.HistogramVec
	rows     *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		duration: f.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "landfall", Subsystem: "store", Name: "statement_duration_seconds",
			Help:    "How long ClickHouse took, by family of statements.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}, []string{"family"}),
		rows: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: "landfall", Subsystem: "store", Name: "inserted_rows_total",
			Help: "Rows that ClickHouse acknowledged, by table.",
		}, []string{"table"}),
	}
}

// time observes how long it takes until the function it returns is called.
func (m *metrics) time(family string) func() {
	start := time.Now()
	return func() { m.duration.WithLabelValues(family).Observe(time.Since(start).Seconds()) }
}

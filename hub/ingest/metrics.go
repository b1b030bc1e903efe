package ingest

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	batch    prometheus.Histogram
	facts    prometheus.Counter
	shed     prometheus.Counter
	failures prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		batch: f.NewHistogram(prometheus.HistogramOpts{
			Namespace: "landfall", Subsystem: "ingest", Name: "batch_reports",
			Help: "Reports stored with one insert.", Buckets: prometheus.ExponentialBuckets(1, 2, 12),
		}),
		facts: f.NewCounter(prometheus.CounterOpts{
			Namespace: "landfall", Subsystem: "ingest", Name: "facts_total",
			Help: "Reconcilers in reports that were acknowledged.",
		}),
		shed: f.NewCounter(prometheus.CounterOpts{
			Namespace: "landfall", Subsystem: "ingest", Name: "shed_total",
			Help: "Reports refused because the queue was full.",
		}),
		failures: f.NewCounter(prometheus.CounterOpts{
			Namespace: "landfall", Subsystem: "ingest", Name: "store_failures_total",
			Help: "Batches that ClickHouse did not take at a try.",
		}),
	}
}

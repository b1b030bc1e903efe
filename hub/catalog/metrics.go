package catalog

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are labelled with the repositories that the operator named, in
// canonical form.
type metrics struct {
	problems *prometheus.GaugeVec
	behind   *prometheus.GaugeVec
	commits  *prometheus.CounterVec
	failures *prometheus.CounterVec
	targets  prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	const repository = "repository"
	return &metrics{
		problems: f.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "landfall", Subsystem: "names", Name: "problems", Help: "Documents of a followed repository that are not as they should be.",
		}, []string{repository}),
		behind: f.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "landfall", Subsystem: "names", Name: "behind_refs", Help: "Refs of a followed repository whose newest commits are not read or not stored yet.",
		}, []string{repository}),
		commits: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: "landfall", Subsystem: "names", Name: "commits_total", Help: "Commits of a followed repository that were read for names and stored.",
		}, []string{repository}),
		failures: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: "landfall", Subsystem: "names", Name: "failures_total", Help: "Times that names of a followed repository could not be read or stored.",
		}, []string{repository}),
		targets: f.NewGauge(prometheus.GaugeOpts{
			Namespace: "landfall", Subsystem: "names", Name: "deployment_targets", Help: "Deployment targets that are named now.",
		}),
	}
}

package gitops

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are labelled with the repositories that the operator named, in
// canonical form: without a user, and as many as were named.
type metrics struct {
	fetches  *prometheus.CounterVec
	duration prometheus.Histogram
	up       *prometheus.GaugeVec
	commits  *prometheus.GaugeVec
	fetched  *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	const repository = "repository"
	return &metrics{
		fetches: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: "landfall", Subsystem: "git", Name: "fetches_total", Help: "Fetches of a followed repository, by whether they succeeded.",
		}, []string{repository, "result"}),
		duration: f.NewHistogram(prometheus.HistogramOpts{
			Namespace: "landfall", Subsystem: "git", Name: "fetch_seconds", Help: "How long fetches took.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 9),
		}),
		up: f.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "landfall", Subsystem: "git", Name: "up", Help: "Whether the last fetch of a repository brought all that is followed of it.",
		}, []string{repository}),
		commits: f.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "landfall", Subsystem: "git", Name: "commits", Help: "Commits of a repository that are known.",
		}, []string{repository}),
		fetched: f.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "landfall", Subsystem: "git", Name: "last_fetch_timestamp_seconds", Help: "When a repository was last fetched.",
		}, []string{repository}),
	}
}

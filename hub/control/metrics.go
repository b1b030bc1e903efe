package control

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are labelled with the environments that the operator named.
type metrics struct {
	rounds   *prometheus.CounterVec
	commits  *prometheus.CounterVec
	requests *prometheus.CounterVec
	statuses *prometheus.CounterVec
	planning prometheus.Histogram
	waiting  *prometheus.GaugeVec

	assignments, failed, problems *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer, sources func() (ok, failed int)) *metrics {
	f := promauto.With(reg)
	const (
		namespace = "landfall"
		subsystem = "control"
	)
	labels := []string{"environment"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return f.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, labels)
	}
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "repositories", Help: "Repositories that plans are made of or published to.",
	}, func() float64 { ok, failed := sources(); return float64(ok + failed) })
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "repositories_failed", Help: "Those of the repositories that cannot be fetched.",
	}, func() float64 { _, failed := sources(); return float64(failed) })
	return &metrics{
		rounds: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "rounds_total", Help: "Times that an environment was looked at, by whether it is up to date since.",
		}, []string{"environment", "result"}),
		commits: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "commits_total", Help: "Commits that were published.",
		}, labels),
		requests: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "pull_requests_opened_total", Help: "Pull requests that were opened.",
		}, labels),
		statuses: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "statuses_total", Help: "Commit statuses that were to be set, by whether they were.",
		}, []string{"environment", "result"}),
		waiting: f.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "pull_requests",
			Help: "Whether a plan is not published because its pull request is open, or because somebody closed it without merging.",
		}, []string{"environment", "state"}),
		planning: f.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "plan_seconds", Help: "How long reading and planning took.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}),
		assignments: gauge("assignments", "Assignments of an environment."),
		failed:      gauge("assignments_failed", "Those of the assignments that could not be planned and stay as they were."),
		problems:    gauge("problems", "What an environment's plan complains of."),
	}
}

package host

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/schema"
)

type metrics struct {
	fetches, applies *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, r *Runner) *metrics {
	m := &metrics{
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfall_host_fetches_total", Help: "Looks at a folder's repository, by result (ok, error).",
		}, []string{"result"}),
		applies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfall_host_applies_total", Help: "Commits that were applied, or could not be, by result (success, failure).",
		}, []string{"result"}),
	}
	reg.MustRegister(m.fetches, m.applies)
	for _, status := range []schema.Status{schema.StatusSuccess, schema.StatusFailure, schema.StatusInProgress, schema.StatusSuspended} {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "landfall_host_folders", Help: "Folders that are followed, by status.", ConstLabels: prometheus.Labels{"status": string(status)},
		}, func() float64 { return float64(r.Status().Folders[status]) }))
	}
	return m
}

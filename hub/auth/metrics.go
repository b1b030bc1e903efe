package auth

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	tokens   prometheus.Gauge
	failures prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	factory := promauto.With(reg)
	return &metrics{
		tokens: factory.NewGauge(prometheus.GaugeOpts{
			Name: "landfall_auth_tokens",
			Help: "Tokens in force, as the copy in memory has them.",
		}),
		failures: factory.NewCounter(prometheus.CounterOpts{
			Name: "landfall_auth_refresh_failures_total",
			Help: "How often the tokens could not be read from the store.",
		}),
	}
}

package api

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	inFlight  prometheus.Gauge
	bodyBytes *prometheus.CounterVec
	waiting   prometheus.Gauge
	panics    prometheus.Counter
	webhooks  *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	factory := promauto.With(reg)
	return &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "landfall_api_requests_total",
			Help: "Requests by route pattern, method and status code.",
		}, []string{"route", "method", "code"}),
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "landfall_api_request_duration_seconds",
			Help:    "How long requests took, long polls and streams with their waiting.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"route", "method"}),
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "landfall_api_requests_in_flight",
			Help: "Requests that are being served.",
		}),
		bodyBytes: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "landfall_api_request_body_bytes_total",
			Help: "Bytes of request bodies, after decompression.",
		}, []string{"route"}),
		waiting: factory.NewGauge(prometheus.GaugeOpts{
			Name: "landfall_api_waiting",
			Help: "Long polls and streams that wait for a verdict to change.",
		}),
		panics: factory.NewCounter(prometheus.CounterOpts{
			Name: "landfall_api_panics_total",
			Help: "Handlers that panicked; each is a fault of the hub's own.",
		}),
		webhooks: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "landfall_api_webhooks_total",
			Help: "Webhooks by provider and outcome: fetched, not_followed, ignored (no push), refused (signature or body).",
		}, []string{"provider", "outcome"}),
	}
}

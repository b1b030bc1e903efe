package watch

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

type metrics struct {
	errors    *prometheus.CounterVec
	discovery prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		errors: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: "landfall", Subsystem: "watch", Name: "errors_total",
			Help: "Lists and watches that the API server did not grant, by kind, verb and why.",
		}, []string{"kind", "verb", "reason"}),
		discovery: f.NewCounter(prometheus.CounterOpts{
			Namespace: "landfall", Subsystem: "watch", Name: "discovery_errors_total",
			Help: "Groups of which could not be told what the API server serves.",
		}),
	}
}

// reason names an error in a word of a small set.
func reason(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "forbidden"
	case apierrors.IsUnauthorized(err):
		return "unauthorized"
	case apierrors.IsNotFound(err):
		return "not_found"
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return "expired"
	case apierrors.IsTooManyRequests(err):
		return "too_many_requests"
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return "invalid" // an API server that cannot stream lists says so
	case apierrors.ReasonForError(err) != "":
		return "refused"
	}
	return "unreachable"
}

var (
	objectsDesc = prometheus.NewDesc("landfall_watch_objects", "Objects known of a kind, also while it cannot be listed.", []string{"kind"}, nil)
	bytesDesc   = prometheus.NewDesc("landfall_watch_object_bytes", "Bytes of the objects known of a kind, as they are kept.", []string{"kind"}, nil)
	stateDesc   = prometheus.NewDesc("landfall_watch_kind_state", "1 for the state that a kind is in, 0 for the others.", []string{"kind", "state"}, nil)
	queueDesc   = prometheus.NewDesc("landfall_watch_queue_depth", "Keys that changed and were not handed on yet.", nil, nil)
)

// collector reads what is known when it is asked.
type collector struct{ w *Watcher }

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{objectsDesc, bytesDesc, stateDesc, queueDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	for _, k := range c.w.informers {
		is, objects, bytes := k.size()
		gauge(objectsDesc, objects, k.Kind.Kind)
		gauge(bytesDesc, bytes, k.Kind.Kind)
		for _, s := range states {
			value := 0
			if s == is {
				value = 1
			}
			gauge(stateDesc, value, k.Kind.Kind, string(s))
		}
	}
	gauge(queueDesc, c.w.queue.Len())
}

package outbox

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// What is told to the hub, as a label; reports are told apart by mode there.
const (
	kindRegistration = "registration"
	kindReport       = "report"
	kindHeartbeat    = "heartbeat"
)

// Why states were dropped, as a label.
const (
	// droppedOvertaken: newer states of the same reconciler were kept.
	droppedOvertaken = "overtaken"
	// droppedOther: the hub knows another agent, or has begun anew.
	droppedOther = "session_over"
	// droppedWithheld: the hub takes them in no form.
	droppedWithheld = "withheld"
)

type metrics struct {
	messages *prometheus.CounterVec
	retries  *prometheus.CounterVec
	dropped  *prometheus.CounterVec
	heard    prometheus.Gauge
	epoch    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, o *Outbox) *metrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "landfall", Subsystem: "outbox", Name: "pending_states",
		Help: "States of reconcilers that the hub has not acknowledged yet.",
	}, func() float64 { return float64(o.Status().Waiting) })
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "landfall", Subsystem: "outbox", Name: "refused_reconcilers",
		Help: "Reconcilers that stand as unknown because the hub refuses their facts.",
	}, func() float64 { return float64(o.Status().Refused) })
	return &metrics{
		messages: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: "landfall", Subsystem: "outbox", Name: "messages_total",
			Help: "Messages to the hub by kind (registration, snapshot, delta, heartbeat) and outcome, each try by itself.",
		}, []string{"kind", "outcome"}),
		retries: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: "landfall", Subsystem: "outbox", Name: "retries_total",
			Help: "Messages to the hub that were tried again, by kind.",
		}, []string{"kind"}),
		dropped: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: "landfall", Subsystem: "outbox", Name: "dropped_states_total",
			Help: "States of reconcilers that were never sent, by reason: the hub knows newer ones, or another agent's.",
		}, []string{"reason"}),
		heard: f.NewGauge(prometheus.GaugeOpts{
			Namespace: "landfall", Subsystem: "outbox", Name: "last_acknowledged_timestamp_seconds",
			Help: "When the hub last acknowledged a report or a heartbeat.",
		}),
		epoch: f.NewGauge(prometheus.GaugeOpts{
			Namespace: "landfall", Subsystem: "outbox", Name: "epoch",
			Help: "The epoch of the session with the hub.",
		}),
	}
}

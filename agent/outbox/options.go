package outbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/schema"
)

// Hub is the hub's side of the stream; hubclient.Client has it. Errors are
// judged by hubclient's Status, Temporary and RetryAfter.
type Hub interface {
	Register(ctx context.Context, cluster string, r schema.Registration) (epoch uint64, err error)
	Report(ctx context.Context, cluster string, r *schema.Report) (schema.ReportAnswer, error)
	Heartbeat(ctx context.Context, cluster string, h schema.Heartbeat) (schema.HeartbeatAnswer, error)
}

// State is asked for everything when a snapshot is due.
type State interface {
	// Reconcilers yields the current facts of every reconciler of a kind. No
	// lock of the outbox is held meanwhile.
	Reconcilers(kind string) iter.Seq[schema.Reconciler]
}

// Options configure an Outbox.
type Options struct {
	// Cluster is the name that the cluster registers under.
	Cluster string
	// Registration is what the cluster says of itself. Its heartbeat interval is
	// the outbox's; none is schema.DefaultHeartbeatInterval.
	Registration schema.Registration
	// Agent describes the program in every message, and in the registration where
	// that says nothing.
	Agent schema.Agent
	Hub   Hub
	State State

	// Window is how long after a message the next change may wait for others. A
	// change that finds the outbox idle for longer leaves at once. Default 100 ms.
	Window time.Duration
	// MaxReconcilers and MaxBytes bound a message: its reconcilers, and its size before compression, in bytes, as estimated. Defaults
	// 1000 and 4 MiB. What was put together is only split beyond them.
	MaxReconcilers, MaxBytes int
	// MaxHistory is how many states of one reconciler may wait, MaxPending how
	// many of all together; beyond them states are dropped that newer ones have
	// overtaken. The newest of each reconciler stays. Defaults 32 and 20,000.
	MaxHistory, MaxPending int

	// Now is the clock that stamps messages; nil is time.Now.
	Now func() time.Time
	// Random returns a number in [0, 1) that spreads heartbeats and retries of
	// many agents; several goroutines call it. Nil is math/rand/v2's.
	Random func() float64
	// Logger may be nil.
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

func (o *Options) validate() error {
	if o.Hub == nil || o.State == nil {
		return errors.New("an outbox needs a hub and a state")
	}
	if err := schema.ValidateClusterName(o.Cluster); err != nil {
		return fmt.Errorf("an outbox for %q: %w", o.Cluster, err)
	}
	if err := o.Registration.Validate(); err != nil {
		return fmt.Errorf("the registration of %s: %w", o.Cluster, err)
	}
	beat := schema.Heartbeat{Agent: o.Agent, Epoch: 1}
	if err := beat.Validate(); err != nil {
		return fmt.Errorf("the agent of %s: %w", o.Cluster, err)
	}
	o.defaults()
	if o.Window < 0 || o.MaxReconcilers < 1 || o.MaxBytes < minBytes || o.MaxHistory < 1 || o.MaxPending < 1 {
		return fmt.Errorf("a window of %s, messages of %d reconcilers and %d bytes, %d states of a reconciler and %d in all: all positive, and at least %d bytes",
			o.Window, o.MaxReconcilers, o.MaxBytes, o.MaxHistory, o.MaxPending, minBytes)
	}
	return nil
}

func (o *Options) defaults() {
	for _, d := range []struct {
		value *int
		is    int
	}{{&o.MaxReconcilers, 1000}, {&o.MaxBytes, 4 << 20}, {&o.MaxHistory, 32}, {&o.MaxPending, 20_000}} {
		if *d.value == 0 {
			*d.value = d.is
		}
	}
	if o.Window == 0 {
		o.Window = 100 * time.Millisecond
	}
	if o.Registration.HeartbeatInterval == 0 {
		o.Registration.HeartbeatInterval = schema.DefaultHeartbeatInterval
	}
	if o.Registration.Agent == (schema.Agent{}) {
		o.Registration.Agent = o.Agent
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

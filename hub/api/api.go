// Package api serves the hub's HTTP interface: it reads requests strictly,
// asks who is calling, hands well-formed messages to the parts of the hub that
// it knows by narrow interfaces, and turns their answers and refusals into JSON
// and problems. It keeps no state of the fleet.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/semaphore"
)

// Options are what an API is made of. All but Webhooks, the limits and Now are required.
type Options struct {
	Ingester    Ingester
	Gate        Gate
	Fleet       Fleet
	Overview    Overview
	Figures     Figures
	Assignments Assignments
	Tokens      Tokens
	Descriptors Descriptors
	// Health answers /readyz. It is open to everyone, so details hold no secrets.
	Health func(context.Context) []Check
	// Webhooks are answered where they have secrets.
	Webhooks Webhooks

	Logger *slog.Logger
	// Registerer takes the API's own metrics; Gatherer is what /metrics shows.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	// Version is the hub's version, for `/`.
	Version string

	// MaxDecoding bounds the bytes of all bodies held at once, from their
	// arrival until they are stored; 128 MiB by default, never below MaxBody.
	MaxDecoding int64
	// DecodeWait is how long a request waits for its share of MaxDecoding
	// before it is refused as overloaded; 5 s by default.
	DecodeWait time.Duration
	// MaxWaiting bounds the long polls and streams at once; 10,000 by default.
	MaxWaiting int64
	// Now is the clock of durations in logs and metrics; time.Now by default.
	Now func() time.Time
}

func (o *Options) validate() error {
	var errs []error
	for _, part := range []struct {
		name   string
		absent bool
	}{
		{"Ingester", o.Ingester == nil},
		{"Gate", o.Gate == nil},
		{"Fleet", o.Fleet == nil},
		{"Overview", o.Overview == nil},
		{"Figures", o.Figures == nil},
		{"Assignments", o.Assignments == nil},
		{"Tokens", o.Tokens == nil},
		{"Descriptors", o.Descriptors == nil},
		{"Health", o.Health == nil},
		{"Logger", o.Logger == nil},
		{"Registerer", o.Registerer == nil},
		{"Gatherer", o.Gatherer == nil},
		{"Webhooks.Fetch", len(o.Webhooks.Secrets) > 0 && o.Webhooks.Fetch == nil},
	} {
		if part.absent {
			errs = append(errs, errors.New("api: option "+part.name+" is missing"))
		}
	}
	if o.MaxDecoding == 0 {
		o.MaxDecoding = 128 << 20
	}
	if o.MaxDecoding < MaxBody {
		errs = append(errs, errors.New("api: option MaxDecoding is less than one body"))
	}
	if o.DecodeWait == 0 {
		o.DecodeWait = 5 * time.Second
	}
	if o.MaxWaiting == 0 {
		o.MaxWaiting = 10_000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return errors.Join(errs...)
}

// API answers the hub's HTTP requests.
type API struct {
	ingester    Ingester
	gate        Gate
	fleet       Fleet
	overview    Overview
	figures     Figures
	assignments Assignments
	tokens      Tokens
	descriptors Descriptors
	health      func(context.Context) []Check
	webhooks    Webhooks

	logger  *slog.Logger
	metrics *metrics
	exposed http.Handler
	version string
	now     func() time.Time

	bodies     *semaphore.Weighted
	hookBodies *semaphore.Weighted
	decodeWait time.Duration
	waiting    *semaphore.Weighted
	zstd       *zstd.Encoder

	router *chi.Mux
}

// New builds the API. The error names every option that is missing.
func New(o Options) (*API, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(256<<10), zstd.WithEncoderConcurrency(2))
	if err != nil {
		return nil, err
	}
	a := &API{
		ingester:    o.Ingester,
		gate:        o.Gate,
		fleet:       o.Fleet,
		overview:    o.Overview,
		figures:     o.Figures,
		assignments: o.Assignments,
		tokens:      o.Tokens,
		descriptors: o.Descriptors,
		health:      o.Health,
		webhooks:    o.Webhooks,
		logger:      o.Logger,
		metrics:     newMetrics(o.Registerer),
		exposed:     promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{}),
		version:     o.Version,
		now:         o.Now,
		bodies:      semaphore.NewWeighted(o.MaxDecoding),
		hookBodies:  semaphore.NewWeighted(maxHooks * MaxBody),
		decodeWait:  o.DecodeWait,
		waiting:     semaphore.NewWeighted(o.MaxWaiting),
		zstd:        encoder,
	}
	a.router = a.routes()
	return a, nil
}

// Handler returns the handler of every route. Long polls and streams end with
// their request's context: a server that shuts down cancels its BaseContext.
func (a *API) Handler() http.Handler { return a.router }

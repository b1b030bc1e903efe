// Package agent is the program on a cluster: it wires the watching of Flux's
// and Argo CD's objects, their readers and the outbox together. Keys of objects
// that changed go in, facts of reconcilers go out. On a host without Kubernetes
// the facts come from the folders that it follows and applies.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/rest"

	"github.com/landfall-hub/landfall/agent/outbox"
	"github.com/landfall-hub/landfall/internal/httpserver"
	"github.com/landfall-hub/landfall/internal/lifecycle"
	"github.com/landfall-hub/landfall/schema"
)

// Options configure an Agent.
type Options struct {
	Config  Config
	Version string
	Log     *slog.Logger
	// Env reads a variable of the environment, for the commands that a host runs.
	Env func(string) string
	// Kubernetes says how to reach the API server; nil is what Config says.
	Kubernetes *rest.Config
}

// Agent is the program. It listens from New on, so that callers that asked for
// port 0 can learn the Address.
type Agent struct {
	opts     Options
	registry *prometheus.Registry
	listener net.Listener
	lookout  lookout
	outbox   *outbox.Outbox
}

// lookout is where facts come from: a cluster's API server, or a host.
type lookout interface {
	// State has all facts.
	outbox.State
	// tell says who is to be told of facts. It is called once, before start.
	tell(sink)
	// start starts what looks.
	start(*lifecycle.Lifecycle)
	// checks say whether it sees everything.
	checks() []check
	// about is what the log says of it.
	about() (key string, value any)
}

// New checks the settings, reads the files that they name, takes the port and
// starts nothing.
func New(opts Options) (*Agent, error) {
	if err := opts.Config.validate(); err != nil {
		return nil, err
	}
	if opts.Log == nil {
		return nil, errors.New("a logger is needed")
	}
	a := &Agent{opts: opts, registry: prometheus.NewRegistry()}
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	listener, err := net.Listen("tcp", opts.Config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening (choose another address with --listen): %w", err)
	}
	a.listener = listener
	if err := a.build(); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return a, nil
}

// build makes the parts and joins them.
func (a *Agent) build() error {
	c, log := a.opts.Config, a.opts.Log
	hub, err := newHubClient(c.Hub, a.opts.Version)
	if err != nil {
		return err
	}
	m := newMetrics(a.registry, a.opts.Version)
	if c.Host.Enabled() {
		a.lookout, err = newOnHost(a.opts, a.registry)
	} else {
		a.lookout, err = newOnKubernetes(a.opts, a.registry, m)
	}
	if err != nil {
		return err
	}
	a.outbox, err = outbox.New(outbox.Options{
		Cluster: c.Cluster.Name, Registration: c.registration(a.opts.Version), Agent: schema.Agent{Version: a.opts.Version},
		Hub: hub, State: a.lookout, Logger: log.With("part", "outbox"), Registerer: a.registry,
	})
	if err != nil {
		return err
	}
	a.lookout.tell(a.outbox)
	return nil
}

// Address is where health and metrics are served, host:port.
func (a *Agent) Address() string { return a.listener.Addr().String() }

// How long each part may take to stop.
const (
	httpGrace   = 5 * time.Second
	workerGrace = 10 * time.Second
	// hostGrace has time for a command that is told to end, and made to.
	hostGrace = 30 * time.Second
)

// Run reports until ctx ends. The first part that fails stops all the others.
func (a *Agent) Run(ctx context.Context) error {
	c := a.opts.Config
	l := lifecycle.New(ctx, a.opts.Log)
	defer l.Stop()
	l.Start("http", httpGrace, func(ctx context.Context) error {
		return httpserver.Serve(ctx, a.listener, a.handler(), a.opts.Log)
	})
	l.Start("outbox", workerGrace, a.outbox.Run)
	a.lookout.start(l)
	key, value := a.lookout.about()
	a.opts.Log.Info("the agent runs", "version", a.opts.Version, "cluster", c.Cluster.Name, "hub", c.Hub.URL, key, value, "health", a.Address())
	return l.Wait()
}

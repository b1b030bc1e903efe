// Package agent is the program on a cluster: it wires the watching of Flux's
// and Argo CD's objects, their readers and the outbox together. Keys of objects
// that changed go in, facts of reconcilers go out.
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/landfall-hub/landfall/agent/argocd"
	"github.com/landfall-hub/landfall/agent/flux"
	"github.com/landfall-hub/landfall/agent/outbox"
	"github.com/landfall-hub/landfall/agent/watch"
	"github.com/landfall-hub/landfall/internal/httpserver"
	"github.com/landfall-hub/landfall/internal/lifecycle"
	"github.com/landfall-hub/landfall/schema"
)

// Options configure an Agent.
type Options struct {
	Config  Config
	Version string
	Log     *slog.Logger
	// Kubernetes says how to reach the API server; nil is what Config says.
	Kubernetes *rest.Config
}

// Agent is the program. It listens from New on, so that callers that asked for
// port 0 can learn the Address.
type Agent struct {
	opts     Options
	registry *prometheus.Registry
	listener net.Listener
	watcher  *watch.Watcher
	worker   *worker
	outbox   *outbox.Outbox
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
	if err := a.build(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", opts.Config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening (choose another address with --listen): %w", err)
	}
	a.listener = listener
	return a, nil
}

// build makes the parts and joins them.
func (a *Agent) build() error {
	c, log := a.opts.Config, a.opts.Log
	hub, err := newHubClient(c.Hub, a.opts.Version)
	if err != nil {
		return err
	}
	if a.opts.Kubernetes == nil {
		if a.opts.Kubernetes, err = restConfig(c.Kubernetes); err != nil {
			return err
		}
	}
	q := newQueue()
	a.watcher, err = watch.New(watch.Options{
		Config: a.opts.Kubernetes, Kinds: c.watched(), Trim: trim, OnObject: q.add, OnKinds: q.wake,
		Discovery: time.Duration(c.Kubernetes.DiscoveryInterval), Logger: log.With("part", "watch"), Registerer: a.registry,
	})
	if err != nil {
		return err
	}
	m := newMetrics(a.registry, a.opts.Version)
	tracking := argocd.Tracking{Namespace: c.ArgoCD.Namespace, Label: c.ArgoCD.TrackingLabel}
	a.worker = newWorker(q, newFacts(a.watcher, tracking, newDestinations(c, log, m.unmapped)), absences*time.Duration(c.Kubernetes.DiscoveryInterval), log.With("part", "worker"), m)
	m.follow(a.registry, a.worker)
	a.outbox, err = outbox.New(outbox.Options{
		Cluster: c.Cluster.Name, Registration: c.registration(a.opts.Version), Agent: schema.Agent{Version: a.opts.Version},
		Hub: hub, State: a.worker, Logger: log.With("part", "outbox"), Registerer: a.registry,
	})
	if err != nil {
		return err
	}
	a.worker.sink = a.outbox
	return nil
}

// absences is how many looks must not find a kind before there is none.
const absences = 3

// trim leaves of an object what the readers look at.
func trim(obj *unstructured.Unstructured) {
	flux.Trim(obj)
	argocd.Trim(obj)
}

// Address is where health and metrics are served, host:port.
func (a *Agent) Address() string { return a.listener.Addr().String() }

// How long each part may take to stop.
const (
	httpGrace   = 5 * time.Second
	workerGrace = 10 * time.Second
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
	l.Start("worker", workerGrace, a.worker.run)
	l.Start("watch", workerGrace, a.watcher.Run)
	a.opts.Log.Info("the agent runs", "version", a.opts.Version, "cluster", c.Cluster.Name, "hub", c.Hub.URL, "api_server", schema.StripUserInfo(a.opts.Kubernetes.Host), "health", a.Address())
	return l.Wait()
}

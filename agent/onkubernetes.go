package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/argocd"
	"github.com/landfall-hub/landfall/agent/flux"
	"github.com/landfall-hub/landfall/agent/host"
	"github.com/landfall-hub/landfall/agent/watch"
	"github.com/landfall-hub/landfall/internal/lifecycle"
	"github.com/landfall-hub/landfall/schema"
)

// onKubernetes sees what the API server holds.
type onKubernetes struct {
	*worker
	watcher *watch.Watcher
	address string
}

func newOnKubernetes(opts Options, reg *prometheus.Registry, m *metrics) (*onKubernetes, error) {
	c, log := opts.Config, opts.Log
	config := opts.Kubernetes
	if config == nil {
		var err error
		if config, err = restConfig(c.Kubernetes); err != nil {
			return nil, err
		}
	}
	q := newQueue()
	watcher, err := watch.New(watch.Options{
		Config: config, Kinds: c.watched(), Trim: trim, OnObject: q.add, OnKinds: q.wake,
		Discovery: time.Duration(c.Kubernetes.DiscoveryInterval), Logger: log.With("part", "watch"), Registerer: reg,
	})
	if err != nil {
		return nil, err
	}
	tracking := argocd.Tracking{Namespace: c.ArgoCD.Namespace, Label: c.ArgoCD.TrackingLabel}
	w := newWorker(q, newFacts(watcher, tracking, newDestinations(c, log, m.unmapped)), absences*time.Duration(c.Kubernetes.DiscoveryInterval), log.With("part", "worker"), m)
	m.follow(reg, w)
	return &onKubernetes{worker: w, watcher: watcher, address: schema.StripUserInfo(config.Host)}, nil
}

// absences is how many looks must not find a kind before there is none.
const absences = 3

// trim leaves of an object what the readers look at.
func trim(obj *unstructured.Unstructured) {
	flux.Trim(obj)
	argocd.Trim(obj)
}

func (k *onKubernetes) tell(to sink) { k.worker.sink = without{to, []string{host.Kind}} }

func (k *onKubernetes) start(l *lifecycle.Lifecycle) {
	l.Start("worker", workerGrace, k.worker.run)
	l.Start("watch", workerGrace, k.watcher.Run)
}

func (k *onKubernetes) checks() []check { return kindChecks(k.watcher.States(), k.worker.progress()) }

func (k *onKubernetes) about() (key string, value any) { return "api_server", k.address }

// Package gate answers whether a commit may go on: it gathers what is known of
// an endpoint, has hub/compliance judge it, keeps each gate's progress, and
// wakes those who wait when something that concerns them changes.
package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/errgroup"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// Landings looks up who reads an endpoint.
type Landings interface {
	Landing(ctx context.Context, e schema.Endpoint, commit string) (record.Landing, error)
}

// Store looks up near misses and keeps gates.
type Store interface {
	NearMisses(ctx context.Context, e schema.Endpoint) ([]schema.NearMiss, error)
	Progress(ctx context.Context, e schema.Endpoint, commit, policy string) (compliance.Progress, error)
	PutProgress(ctx context.Context, e schema.Endpoint, commit, policy string, p compliance.Progress, now time.Time) error
}

// Expectations know who should read an endpoint.
type Expectations interface {
	// Expected returns which clusters should read an endpoint or a folder below it,
	// by environment and type, sorted. Names are all names of its repository.
	Expected(e schema.Endpoint, names []string) []record.Expected
}

// Options configure a Gate.
type Options struct {
	Landings Landings
	Store    Store
	Fleet    *fleet.Fleet
	Rules    compliance.Rules
	// Graph returns the commit graph of a repository in canonical form.
	Graph func(repo string) compliance.Graph
	// Names returns the canonical names of the repository that one of them names,
	// its own first. Nil where each repository has one.
	Names func(repo string) []string
	// Expectations make clusters count that should read an endpoint and never said
	// that they do. Nil where nobody knows.
	Expectations Expectations
	// Shared says that other hubs write to the same store: those who wait look
	// again by themselves every pollInterval.
	Shared     bool
	Now        func() time.Time
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

func (o *Options) validate() error {
	if o.Landings == nil || o.Store == nil || o.Fleet == nil || o.Now == nil || o.Log == nil || o.Graph == nil {
		return errors.New("a gate needs landings, a store, a fleet, a graph, a clock and a logger")
	}
	if o.Rules.SilentAfter < 1 || o.Rules.AgeAfter <= 0 {
		return fmt.Errorf("silent after %d heartbeats, ageing after %s: both positive", o.Rules.SilentAfter, o.Rules.AgeAfter)
	}
	if o.Names == nil {
		o.Names = func(repo string) []string { return []string{repo} }
	}
	return nil
}

// Gate answers questions.
type Gate struct {
	opts     Options
	watchers *watchers
	recall   *recall
	verdicts *prometheus.CounterVec
}

// New makes a Gate.
func New(opts Options) (*Gate, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	f := promauto.With(opts.Registerer)
	return &Gate{
		opts:   opts,
		recall: newRecall(!opts.Shared),
		watchers: newWatchers(f.NewGauge(prometheus.GaugeOpts{
			Namespace: "landfall", Subsystem: "gate", Name: "watchers", Help: "Questions that wait for a change.",
		})),
		verdicts: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: "landfall", Subsystem: "gate", Name: "verdicts_total", Help: "Verdicts given, by state.",
		}, []string{"state"}),
	}, nil
}

// Ask judges the question now.
func (g *Gate) Ask(ctx context.Context, q schema.Question) (schema.Verdict, error) {
	result, _, err := g.judge(ctx, q)
	return result.Verdict, err
}

// judge returns the result and the clusters that it depends on.
func (g *Gate) judge(ctx context.Context, q schema.Question) (compliance.Result, map[string]*compliance.Cluster, error) {
	names := g.opts.Names(q.Endpoint.Repo)
	q.Endpoint.Repo = names[0]
	policy, err := json.Marshal(q.Policy)
	if err != nil {
		return compliance.Result{}, nil, fmt.Errorf("writing the policy down: %w", err)
	}
	var landing record.Landing
	var near []schema.NearMiss
	var progress compliance.Progress
	gate := gateKey{endpoint: q.Endpoint, commit: q.ID, policy: string(policy)}
	group, both := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		landing, err = g.landing(both, q, names)
		return err
	})
	group.Go(func() (err error) {
		near, err = g.nearMisses(both, q.Endpoint, names)
		return err
	})
	group.Go(func() (err error) {
		progress, err = g.recall.progressOf(gate, func() (compliance.Progress, error) {
			return g.opts.Store.Progress(both, q.Endpoint, q.ID, string(policy))
		})
		return err
	})
	if err := group.Wait(); err != nil {
		return compliance.Result{}, nil, unavailable(ctx, err)
	}
	subscribers, err := g.complete(ctx, &landing)
	if err != nil {
		return compliance.Result{}, nil, unavailable(ctx, err)
	}
	subscribers = g.expect(subscribers, q.Endpoint, names)
	// The store keeps milliseconds: the first answer must name the same deadline
	// as those that read it back.
	now := g.opts.Now().UTC().Truncate(time.Millisecond)
	result := compliance.Evaluate(compliance.Input{
		Question: compliance.Question{Repo: q.Repo, Ref: q.Ref, Path: q.Path, Commit: q.Commit},
		Endpoint: q.Endpoint, Commit: q.ID, Policy: q.Policy, Mandatory: q.Mandatory,
		Subscribers: subscribers, NearMisses: near,
		Graph: g.opts.Graph(q.Endpoint.Repo), Progress: progress, Rules: g.opts.Rules, Now: now,
	})
	if result.Progress != progress {
		if err := g.opts.Store.PutProgress(ctx, q.Endpoint, q.ID, string(policy), result.Progress, now); err != nil {
			return compliance.Result{}, nil, unavailable(ctx, err)
		}
		g.recall.keepProgress(gate, result.Progress)
	}
	g.verdicts.WithLabelValues(string(result.Verdict.State)).Inc()
	return result, landing.Clusters, nil
}

func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &schema.Refusal{Code: schema.CodeUnavailable, Detail: "ClickHouse does not answer now; try again", Err: err}
}

// complete adds what the fleet knows of the clusters, and drops subscribers
// whose cluster was decommissioned.
func (g *Gate) complete(ctx context.Context, l *record.Landing) ([]compliance.Subscriber, error) {
	known := make(map[string]*destinationOf, len(l.Clusters))
	places := make([]destinationOf, 0, len(l.Clusters))
	for name, c := range l.Clusters {
		m, ok, err := g.reporter(ctx, name)
		if err != nil {
			return nil, err
		}
		places = append(places, destinationOf{cluster: c, gone: !ok || m.Decommissioned})
		known[name] = &places[len(places)-1]
		known[name].fill(&m)
	}
	kept := 0
	for i := range l.Subscribers {
		s := &l.Subscribers[i]
		d := known[s.Reporter.Name]
		if d.gone {
			continue
		}
		if s.DestinationName != s.Reporter.Name {
			d = g.destination(known, s.DestinationName)
		}
		if d.cluster != nil && d.gone {
			continue
		}
		s.Destination, s.ClusterType = d.cluster, d.clusterType
		if kept != i {
			l.Subscribers[kept] = *s
		}
		kept++
	}
	return l.Subscribers[:kept], nil
}

// reporter returns a cluster whose reports are stored. Where other hubs write
// too, one of them may have registered it a moment ago: its reconcilers must not
// be missed.
func (g *Gate) reporter(ctx context.Context, name string) (m fleet.Member, ok bool, err error) {
	if m, ok = g.opts.Fleet.Get(name); ok || !g.opts.Shared {
		return m, ok, nil
	}
	_, err = g.opts.Fleet.Current(ctx, name, 0)
	if refusal, refused := errors.AsType[*schema.Refusal](err); refused && refusal.Code != schema.CodeUnavailable {
		err = nil // not registered, or decommissioned
	}
	m, ok = g.opts.Fleet.Get(name)
	return m, ok, err
}

// destinationOf is a cluster as a place to deploy to.
type destinationOf struct {
	// cluster is nil for one that nobody registered.
	cluster     *compliance.Cluster
	clusterType string
	gone        bool
}

// destination returns a cluster that another one reports for.
func (g *Gate) destination(known map[string]*destinationOf, name string) *destinationOf {
	if d, ok := known[name]; ok {
		return d
	}
	d := &destinationOf{}
	known[name] = d
	if m, ok := g.opts.Fleet.Get(name); ok {
		d.cluster, d.gone = &compliance.Cluster{Name: name}, m.Decommissioned
		d.fill(&m)
	}
	return d
}

func (d *destinationOf) fill(m *fleet.Member) {
	d.cluster.Labels, d.cluster.HeartbeatInterval, d.cluster.LastSeen = m.Labels, m.HeartbeatInterval, m.LastSeen
	_, d.clusterType = fleet.Place(m.Memberships)
}

const (
	// pollInterval is how often those who wait look again by themselves where
	// other hubs may have changed what is stored.
	pollInterval = 500 * time.Millisecond
	// breath is the least time between two looks of one who waits: a busy hub
	// is not asked for every report of a rollout.
	breath = 100 * time.Millisecond
)

// Next blocks until the verdict is no longer the same as the one seen, or ctx
// ends; it returns the verdict of that moment.
func (g *Gate) Next(ctx context.Context, q schema.Question, seen schema.Verdict) (schema.Verdict, error) {
	w := g.watchers.add(q.Endpoint, g.opts.Names(q.Endpoint.Repo))
	defer g.watchers.remove(w)
	latest := seen
	for {
		w.watch(nil) // whatever is stored from here on may matter
		result, clusters, err := g.judge(ctx, q)
		if ctx.Err() != nil {
			return g.askLast(ctx, q, latest), nil
		}
		if err != nil {
			return latest, err
		}
		latest = result.Verdict
		if !latest.SameAs(&seen) {
			return latest, nil
		}
		w.watch(clusters)
		if !g.sleep(ctx, w, result.NextAt) {
			return g.askLast(ctx, q, latest), nil
		}
	}
}

// lastAnswer bounds the question that is asked when the time to wait is over.
const lastAnswer = 10 * time.Second

// askLast asks once more when the time to wait is over: the answer is the
// verdict of that moment. The latest one holds when that fails, or when nobody
// waits any more.
func (g *Gate) askLast(ctx context.Context, q schema.Question, latest schema.Verdict) schema.Verdict {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return latest
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswer)
	defer cancel()
	if v, err := g.Ask(ctx, q); err == nil {
		return v
	}
	return latest
}

// sleep waits for a reason to look again. It returns false when ctx ends.
func (g *Gate) sleep(ctx context.Context, w *watcher, next time.Time) bool {
	if !pause(ctx, breath, nil) {
		return false
	}
	wait := time.Duration(-1)
	if !next.IsZero() {
		wait = max(next.Sub(g.opts.Now()), 0)
	}
	if g.opts.Shared && (wait < 0 || wait > pollInterval) {
		wait = pollInterval
	}
	return pause(ctx, wait, w.woken)
}

// pause waits for a time (for ever when negative), or to be woken. It returns
// false when ctx ends.
func pause(ctx context.Context, wait time.Duration, woken <-chan struct{}) bool {
	var over <-chan time.Time
	if wait >= 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-over:
	case <-woken:
	}
	return true
}

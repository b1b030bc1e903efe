// Package ingest takes in what agents say: it orders a cluster's messages,
// folds them into its state, and stores many of them with one insert. A
// message is answered after ClickHouse has it.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
)

// Store keeps states and history.
type Store interface {
	Load(ctx context.Context, clusters []string) (map[string]*fold.State, error)
	Positions(ctx context.Context, clusters []string) (map[string]fold.Position, error)
	ReportSeen(ctx context.Context, cluster string, epoch, sequence uint64) (bool, error)
	Write(ctx context.Context, batch []fold.Changes) error
}

// Options configure an Ingester.
type Options struct {
	Store Store
	Fleet *fleet.Fleet
	// Shared says that other hubs write to the same store: states that are kept
	// in memory are compared with it before each batch.
	Shared bool
	// MaxEntries is how many reconcilers are kept in memory, about 1 KiB each.
	// Default 500,000.
	MaxEntries int
	// MaxBatch is how many reconcilers one insert holds, roughly; MaxQueue is
	// how many may wait. Defaults 50,000 and 500,000.
	MaxBatch, MaxQueue int
	// AnswerWithin is how long a message may wait for its batch: longer than
	// ClickHouse needs, shorter than clients wait. Default 15 s.
	AnswerWithin time.Duration
	// Permanent says that an error of the store will be the same next time.
	Permanent func(error) bool
	// Storing is called before a batch is written; then either Stored, before
	// its messages are answered, or Unsure, when nobody knows whether it is
	// stored. None may block.
	Storing    func()
	Stored     func(batch []fold.Changes)
	Unsure     func()
	Now        func() time.Time
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

func (o *Options) validate() error {
	if o.Store == nil || o.Fleet == nil || o.Now == nil || o.Log == nil {
		return errors.New("an ingester needs a store, a fleet, a clock and a logger")
	}
	if o.MaxEntries == 0 {
		o.MaxEntries = 500_000
	}
	if o.MaxBatch == 0 {
		o.MaxBatch = 50_000
	}
	if o.MaxQueue == 0 {
		o.MaxQueue = 500_000
	}
	if o.AnswerWithin == 0 {
		o.AnswerWithin = 15 * time.Second
	}
	if o.AnswerWithin < 0 {
		return fmt.Errorf("answering within %s: must be positive", o.AnswerWithin)
	}
	if o.MaxEntries < 1 || o.MaxBatch < 1 || o.MaxQueue < o.MaxBatch {
		return fmt.Errorf("batches of %d in a queue of %d with %d kept: all positive, and a queue holds a batch", o.MaxBatch, o.MaxQueue, o.MaxEntries)
	}
	if o.Permanent == nil {
		o.Permanent = func(error) bool { return false }
	}
	if o.Storing == nil {
		o.Storing = func() {}
	}
	if o.Stored == nil {
		o.Stored = func([]fold.Changes) {}
	}
	if o.Unsure == nil {
		o.Unsure = func() {}
	}
	return nil
}

// Ingester takes messages in. Run must be running.
type Ingester struct {
	opts    Options
	queue   *queue
	states  *states
	metrics *metrics
}

// New makes an Ingester.
func New(opts Options) (*Ingester, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	return &Ingester{
		opts: opts, queue: newQueue(opts.MaxQueue), states: newStates(opts.MaxEntries), metrics: newMetrics(opts.Registerer),
	}, nil
}

// Load reads where the clusters' streams stand, so that heartbeats can be
// answered from memory.
func (in *Ingester) Load(ctx context.Context) error {
	positions, err := in.opts.Store.Positions(ctx, nil)
	if err != nil {
		return fmt.Errorf("loading the positions of agents' streams: %w", err)
	}
	in.states.setPositions(positions)
	return nil
}

// Register gives an agent its epoch.
func (in *Ingester) Register(ctx context.Context, cluster string, r schema.Registration) (epoch uint64, err error) {
	return in.opts.Fleet.Register(ctx, cluster, r)
}

// Decommission takes a cluster out: it leaves verdicts, and its reconcilers
// leave the current state.
func (in *Ingester) Decommission(ctx context.Context, cluster string) error {
	gone, err := in.opts.Fleet.Decommission(ctx, cluster)
	if err != nil {
		return err
	}
	return in.submit(ctx, &message{cluster: cluster, epoch: gone.Epoch})
}

// Report stores a report, which must be valid and normalized, and returns the
// cluster's current epoch. It returns after the report is stored.
func (in *Ingester) Report(ctx context.Context, cluster string, r *schema.Report) (currentEpoch uint64, err error) {
	m, err := in.opts.Fleet.Current(ctx, cluster, r.Epoch)
	if err != nil {
		return 0, err
	}
	if err := mayReportFor(m, cluster, r); err != nil {
		return 0, err
	}
	if err := in.submit(ctx, &message{cluster: cluster, report: r}); err != nil {
		return 0, err
	}
	in.opts.Fleet.Seen(cluster, r.Epoch)
	if now, ok := in.opts.Fleet.Get(cluster); ok {
		return now.Epoch, nil
	}
	return m.Epoch, nil
}

func mayReportFor(m fleet.Member, cluster string, r *schema.Report) error {
	for i := range r.Reconcilers {
		if to := r.Reconcilers[i].Cluster; to != "" && to != cluster && !slices.Contains(m.ReportsFor, to) {
			return &schema.Refusal{Code: schema.CodeForbidden, Detail: fmt.Sprintf(
				"%s (/reconcilers/%d/cluster) deploys to %q, which %s may not report for; add it to reports_for when registering", r.Reconcilers[i].Ref(), i, to, cluster)}
		}
	}
	return nil
}

// Heartbeat answers an agent's sign of life.
func (in *Ingester) Heartbeat(ctx context.Context, cluster string, h schema.Heartbeat) (schema.HeartbeatAnswer, error) {
	m, err := in.opts.Fleet.Current(ctx, cluster, h.Epoch)
	if err != nil {
		return schema.HeartbeatAnswer{}, err
	}
	answer := schema.HeartbeatAnswer{CurrentEpoch: m.Epoch}
	if h.Epoch < m.Epoch {
		answer.Silent = in.opts.Fleet.SilentEpoch(cluster)
		return answer, nil
	}
	in.opts.Fleet.Seen(cluster, h.Epoch)
	p, err := in.position(ctx, cluster)
	if err != nil {
		return answer, err
	}
	answer.Resync = resync(p, h)
	return answer, nil
}

// position returns where a cluster's stream stands. Only a shared store knows
// more than the memory.
func (in *Ingester) position(ctx context.Context, cluster string) (fold.Position, error) {
	if !in.opts.Shared {
		return in.states.position(cluster), nil
	}
	positions, err := in.opts.Store.Positions(ctx, []string{cluster})
	if err != nil {
		return fold.Position{}, &schema.Refusal{Code: schema.CodeUnavailable, Detail: "ClickHouse does not answer now; try again", Err: err}
	}
	return positions[cluster], nil
}

// resync says whether the hub's state is not the one that the agent means.
func resync(p fold.Position, h schema.Heartbeat) bool {
	at, said := p.Version(), schema.Version(h.Epoch, h.Sequence)
	switch {
	case h.Sequence == 0:
		return false // a fresh agent: its snapshot is on the way
	case at > said:
		return false // a report overtook the heartbeat
	case at < said:
		return true
	}
	digest, ok := schema.ParseDigest(h.Digest)
	return ok && digest != p.Digest
}

var errLate = errors.New("its batch is not stored yet")

// submit queues a message and waits until it is stored.
func (in *Ingester) submit(ctx context.Context, m *message) error {
	ctx, cancel := context.WithTimeoutCause(ctx, in.opts.AnswerWithin, errLate)
	defer cancel()
	m.done = make(chan error, 1)
	if !in.queue.put(m) {
		in.metrics.shed.Inc()
		return &schema.Refusal{Code: schema.CodeOverloaded, Detail: "the queue of reports is full; try again later"}
	}
	select {
	case err := <-m.done:
		return err
	case <-ctx.Done():
		return &schema.Refusal{Code: schema.CodeUnavailable, Detail: "it could not be stored in time; send it again", Err: context.Cause(ctx)}
	}
}

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
	// tries is how often a batch is sent that ClickHouse refuses.
	tries = 3
)

// Run stores messages, a batch at a time, until ctx ends. Those that are
// waiting then are answered with an error, so that agents send them again.
func (in *Ingester) Run(ctx context.Context) error {
	defer in.queue.close(&schema.Refusal{Code: schema.CodeUnavailable, Detail: "the hub is stopping; send it again"})
	for {
		batch := in.queue.take(ctx, in.opts.MaxBatch)
		if batch == nil {
			return nil
		}
		in.process(ctx, batch)
	}
}

// process folds and stores a batch and answers its messages.
func (in *Ingester) process(ctx context.Context, batch []*message) {
	in.metrics.batch.Observe(float64(len(batch)))
	changes, folded, err := in.fold(ctx, batch)
	if err == nil {
		in.opts.Storing()
		if err = in.write(ctx, changes); err != nil {
			in.opts.Unsure()
		}
	}
	if err != nil {
		in.states.forget(batch)
		err = &schema.Refusal{Code: schema.CodeUnavailable, Detail: "ClickHouse does not take it now; send it again", Err: err}
		for _, m := range batch {
			m.done <- err
		}
		return
	}
	in.states.settle(batch)
	in.metrics.facts.Add(float64(folded))
	in.opts.Stored(changes)
	for _, m := range batch {
		m.done <- m.refused
	}
}

// fold applies the batch's messages to their clusters' states, in order.
func (in *Ingester) fold(ctx context.Context, batch []*message) (changes []fold.Changes, facts int, err error) {
	if err := in.load(ctx, batch); err != nil {
		return nil, 0, err
	}
	now := in.opts.Now()
	changes = make([]fold.Changes, 0, len(batch))
	taken := map[messageKey]bool{}
	for _, m := range batch {
		state := in.states.get(m.cluster)
		if m.report == nil {
			if c, ok := state.Clear(m.cluster, m.epoch, now); ok {
				changes = append(changes, c)
			}
			continue
		}
		if current, ok := in.opts.Fleet.Get(m.cluster); ok && current.Decommissioned {
			m.refused = fleet.Decommissioned(m.cluster) // it left while this was in the queue
			continue
		}
		c, write, err := in.foldReport(ctx, state, m, taken, now)
		if err != nil {
			return nil, 0, err
		}
		facts += len(m.report.Reconcilers)
		if write {
			changes = append(changes, c)
		}
	}
	return changes, facts, nil
}

// messageKey names a report of a batch that is not stored yet.
type messageKey struct {
	cluster string
	version uint64
}

// foldReport decides what a report is: the next one, a repeated one, or one
// that comes too late and belongs to history alone.
func (in *Ingester) foldReport(ctx context.Context, state *fold.State, m *message, taken map[messageKey]bool, now time.Time) (c fold.Changes, write bool, err error) {
	r := m.report
	version := schema.Version(r.Epoch, r.Sequence)
	key := messageKey{m.cluster, version}
	if taken[key] || version == state.Position.Version() {
		return c, false, nil
	}
	current, _ := in.opts.Fleet.Get(m.cluster)
	if version > state.Position.Version() && r.Epoch >= current.Epoch {
		taken[key] = true
		return state.Apply(m.cluster, r, now), true, nil
	}
	seen, err := in.opts.Store.ReportSeen(ctx, m.cluster, r.Epoch, r.Sequence)
	if err != nil || seen {
		return c, false, err
	}
	taken[key] = true
	return fold.Late(m.cluster, r, now), true, nil
}

// load brings the states of the batch's clusters into memory, and again those
// that another hub has moved on.
func (in *Ingester) load(ctx context.Context, batch []*message) error {
	names := make([]string, 0, len(batch))
	for _, m := range batch {
		names = append(names, m.cluster)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if in.opts.Shared {
		if err := in.opts.Fleet.Refresh(ctx, names); err != nil {
			return err
		}
		positions, err := in.opts.Store.Positions(ctx, names)
		if err != nil {
			return err
		}
		in.states.compare(names, positions)
	}
	loaded, err := in.opts.Store.Load(ctx, in.states.missing(names))
	if err != nil {
		return err
	}
	in.states.put(loaded)
	return nil
}

// write stores the changes, again and again while ClickHouse is away: the rows
// are the same each time. It gives up when ctx ends, or when
// ClickHouse refuses the rows themselves.
func (in *Ingester) write(ctx context.Context, changes []fold.Changes) error {
	if len(changes) == 0 {
		return nil
	}
	backoff := minBackoff
	for try := 1; ; try++ {
		err := in.opts.Store.Write(ctx, changes)
		if err == nil {
			return nil
		}
		in.metrics.failures.Inc()
		if ctx.Err() != nil || in.opts.Permanent(err) && try >= tries {
			return err
		}
		in.opts.Log.Warn("a batch of reports is not stored yet; trying again", "error", err, "try", try, "wait", backoff)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

package system

import (
	"context"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/agent/outbox"
	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/internal/polltest"
	"github.com/landfall-hub/landfall/schema"
)

// line is a client that remembers what heartbeats said.
type line struct {
	*hubclient.Client
	mu sync.Mutex
	// agreed is the last version whose digest was the hub's, too; resyncs counts
	// the snapshots that the hub asked for.
	agreed  uint64
	resyncs int
}

func (l *line) Heartbeat(ctx context.Context, cluster string, h schema.Heartbeat) (schema.HeartbeatAnswer, error) {
	answer, err := l.Client.Heartbeat(ctx, cluster, h)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil || answer.CurrentEpoch > h.Epoch:
	case answer.Resync:
		l.resyncs++
	case h.Digest != "":
		l.agreed = schema.Version(h.Epoch, h.Sequence)
	}
	return answer, err
}

// outboxAgent is an outbox with the state that it reports.
type outboxAgent struct {
	*outbox.Outbox
	line *line
	stop func()

	mu  sync.Mutex
	all map[schema.ObjectRef]schema.Reconciler
}

func (a *outboxAgent) Reconcilers(kind string) iter.Seq[schema.Reconciler] {
	return func(yield func(schema.Reconciler) bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for ref, rec := range a.all {
			if ref.Kind == kind && !yield(rec) {
				return
			}
		}
	}
}

// runs changes what the agent sees.
func (a *outboxAgent) runs(recs ...schema.Reconciler) {
	a.mu.Lock()
	for _, rec := range recs {
		a.all[rec.Ref()] = rec
	}
	a.mu.Unlock()
	a.Put(recs...)
}

// agrees waits until the hub has all there is and says so in a heartbeat.
func (a *outboxAgent) agrees(t *testing.T) {
	t.Helper()
	polltest.Until(t, "the digests agree", func() bool {
		s := a.Status()
		a.line.mu.Lock()
		defer a.line.mu.Unlock()
		return s.Mode == outbox.Current && s.Sequence > 0 && s.Waiting == 0 && a.line.agreed == schema.Version(s.Epoch, s.Sequence)
	})
	a.line.mu.Lock()
	defer a.line.mu.Unlock()
	if a.line.resyncs > 0 {
		t.Errorf("the hub asked for %d snapshots", a.line.resyncs)
	}
}

func startOutbox(t *testing.T, h *hub, cluster string, recs ...schema.Reconciler) *outboxAgent {
	t.Helper()
	a := &outboxAgent{line: &line{Client: h.client(t)}, all: map[schema.ObjectRef]schema.Reconciler{}}
	var err error
	a.Outbox, err = outbox.New(outbox.Options{
		Cluster: cluster, Hub: a.line, State: a, MaxReconcilers: 2,
		Registration: schema.Registration{Environment: "dev", Type: "drone", HeartbeatInterval: schema.Duration(time.Second)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	a.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the outbox ended with %v", err)
		}
	})
	t.Cleanup(a.stop)
	a.runs(recs...)
	a.Kinds([]string{"Kustomization"}, nil)
	return a
}

// The agent's outbox on the hub as it is shipped: both agree, through a restart
// of the hub and through a second agent that comes and goes.
func TestTheOutboxAndTheHubAgree(t *testing.T) {
	t.Parallel()
	h, cluster, repo := newHub(t), unique("cluster"), newRepo()
	apps := []schema.Reconciler{kustomization("a", repo, "a"), kustomization("b", repo, "b"), kustomization("c", repo, "c")}
	statuses := func() map[string]schema.Status {
		all := map[string]schema.Status{}
		for ref, row := range stateRows(t, h.client(t), cluster) {
			all[ref] = row.Status
		}
		return all
	}
	is := func(what, name string, status schema.Status, total int) {
		t.Helper()
		if all := statuses(); all["Kustomization/flux-system/"+name] != status || len(all) != total {
			t.Errorf("%s: the hub has %v", what, all)
		}
	}

	first := startOutbox(t, h, cluster, apps...)
	first.agrees(t)
	first.runs(at(apps[0], commit(1), schema.StatusSuccess))
	askUntil(t, h.client(t), question(repo, "a", commit(1)), "the change arrives", func(v *schema.Verdict) bool { return v.State == schema.Passed })
	first.agrees(t)
	is("after a change", "a", schema.StatusSuccess, 3)

	if err := h.stop(t); err != nil {
		t.Fatal(err)
	}
	first.runs(at(apps[0], commit(2), schema.StatusSuccess))
	first.runs(at(apps[0], commit(3), schema.StatusFailure))
	h.start(t)
	first.agrees(t)
	is("after a restart", "a", schema.StatusFailure, 3)

	second := startOutbox(t, h, cluster, apps[:2]...)
	second.agrees(t)
	is("a second agent", "a", schema.StatusPending, 2)
	polltest.Until(t, "the first agent is still", func() bool { return first.Status().Mode == outbox.Superseded })
	first.runs(at(apps[2], commit(3), schema.StatusSuccess))
	second.runs(at(apps[1], commit(3), schema.StatusSuccess))
	second.agrees(t)
	is("two agents at once", "b", schema.StatusSuccess, 2)

	second.stop()
	polltest.Until(t, "the first agent reports again", func() bool { return first.Status().Mode == outbox.Current })
	first.agrees(t)
	is("after the second agent died", "c", schema.StatusSuccess, 3)
}

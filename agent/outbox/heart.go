package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// longestResync bounds the wait between snapshots that do not help.
const longestResync = 30 * time.Minute

// resync spaces the snapshots that the hub asks for: where one has not made the
// two sides equal, the hub has something that this agent cannot list.
type resync struct {
	wait time.Duration
	next time.Time
}

// beat sends heartbeats while there is a session, until ctx ends.
func (o *Outbox) beat(ctx context.Context) {
	interval := time.Duration(o.opts.Registration.HeartbeatInterval)
	tries := retry{random: o.opts.Random}
	var last uint64
	wait := time.Duration(0)
	for sleep(ctx, nil, wait) {
		over := o.over()
		h, compared, ok := o.heartbeat()
		if !ok {
			select {
			case <-ctx.Done():
			case <-over:
			}
			wait = 0
			continue
		}
		if h.Epoch != last {
			// Registering was a sign of life; many agents may have registered at once.
			last = h.Epoch
			wait = tries.share(interval)
			continue
		}
		answer, err := o.opts.Hub.Heartbeat(ctx, o.opts.Cluster, h)
		if ctx.Err() != nil {
			return
		}
		result := judge(err)
		o.metrics.messages.WithLabelValues(kindHeartbeat, string(result)).Inc()
		o.note(kindHeartbeat, err)
		if err == nil {
			tries.wait = 0
			o.hear(h, answer, compared)
			wait = interval*4/5 + tries.share(interval/5)
			continue
		}
		switch result {
		case gone:
			o.leave(h.Epoch, Decommissioned, err.Error())
		case unregistered:
			o.leave(h.Epoch, Registering, err.Error())
		}
		o.metrics.retries.WithLabelValues(kindHeartbeat).Inc()
		wait = tries.after(err)
	}
}

// heartbeat returns the heartbeat to send now. Without a session there is none.
// compared says that it asks for a comparison of states: not while a snapshot is
// on its way, and not where the hub may have objects of a kind that could not be
// listed in this epoch.
func (o *Outbox) heartbeat() (h schema.Heartbeat, compared, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mode != Current && o.mode != Superseded {
		return h, false, false
	}
	h = schema.Heartbeat{Agent: o.opts.Agent, Epoch: o.epoch, Sequence: o.acknowledged}
	blind := slices.ContainsFunc(o.unlisted, func(kind string) bool { return !o.covered[kind] })
	if o.mode == Current && o.told && len(o.due) == 0 && !o.snapshotting() && !blind && o.acknowledged > 0 {
		h.Digest, compared = o.ledger.digest.String(), true
	}
	return h, compared, true
}

func (o *Outbox) snapshotting() bool {
	return slices.ContainsFunc(o.queue.works, func(w *work) bool { return w.snapshot != nil })
}

// hear acts on the answer to a heartbeat.
func (o *Outbox) hear(h schema.Heartbeat, answer schema.HeartbeatAnswer, compared bool) {
	switch {
	case answer.CurrentEpoch > h.Epoch && answer.Silent:
		o.leave(h.Epoch, Registering, "the newer agent is silent")
	case answer.CurrentEpoch > h.Epoch:
		o.leave(h.Epoch, Superseded, "the hub has a newer agent's epoch")
	case answer.Resync:
		o.resynchronize(h)
	case compared:
		o.mu.Lock()
		o.resync = resync{}
		o.mu.Unlock()
	}
}

// resynchronize makes a snapshot of everything due, unless one is on its way or
// one has not helped a moment ago.
func (o *Outbox) resynchronize(h schema.Heartbeat) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.opts.Now()
	if o.mode != Current || o.epoch != h.Epoch || len(o.due) > 0 || o.snapshotting() || now.Before(o.resync.next) {
		return
	}
	interval := time.Duration(o.opts.Registration.HeartbeatInterval)
	o.resync.wait = min(max(interval, 2*o.resync.wait), longestResync)
	o.resync.next = now.Add(o.resync.wait)
	o.due, o.said = o.listed, nil
	o.log.Warn("the hub's state differs; sending a snapshot", "cluster", o.opts.Cluster, "epoch", h.Epoch, "sequence", h.Sequence, "kinds", o.listed)
	o.poke()
}

package outbox

import (
	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// begin starts the session of an epoch. What the hub has from before is not
// known, so a snapshot of all listed kinds is due.
func (o *Outbox) begin(epoch uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.epoch != 0 {
		o.forget()
	}
	o.turn(Current)
	o.epoch, o.sequence, o.acknowledged = epoch, 0, 0
	o.due, o.said, o.covered = o.listed, nil, map[string]bool{}
	o.most, o.bytes, o.resync = o.opts.MaxReconcilers, o.opts.MaxBytes, resync{}
	o.metrics.epoch.Set(float64(epoch))
	o.log.Info("registered with the hub", "cluster", o.opts.Cluster, "epoch", epoch)
}

// turn changes the mode, and wakes whoever waits for that. o.mu is held.
func (o *Outbox) turn(to Mode) {
	o.mode = to
	close(o.ended)
	o.ended = make(chan struct{})
	o.poke()
}

// over is closed when the mode changes.
func (o *Outbox) over() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended
}

func (o *Outbox) where() Mode {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mode
}

func (o *Outbox) session() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.epoch
}

// forget drops what waits and what the hub is believed to have: another agent
// reported since, or the hub lost its state. History that would rest on what is
// not there is no history. o.mu is held.
func (o *Outbox) forget() {
	o.metrics.dropped.WithLabelValues(droppedOther).Add(float64(o.queue.clear()))
	o.ledger, o.refused = newLedger(), map[schema.ObjectRef]refusal{}
}

// leave ends the session of an epoch, unless it has ended already.
func (o *Outbox) leave(epoch uint64, to Mode, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.epoch != epoch || o.mode == to {
		return
	}
	if o.mode == Superseded && to == Registering {
		o.log.Info("the agent that superseded this one is silent; registering again", "cluster", o.opts.Cluster, "epoch", epoch)
	} else {
		o.log.Warn("the session with the hub ends", "cluster", o.opts.Cluster, "epoch", epoch, "now", string(to), "reason", why)
	}
	o.turn(to)
	if !o.reports() {
		o.forget()
	}
}

// alikeTrouble reports whether two errors need not both be logged: texts differ
// in ports and request ids.
func alikeTrouble(a, b error) bool {
	return a != nil && judge(a) == judge(b) && hubclient.Status(a) == hubclient.Status(b) && codeOf(a) == codeOf(b)
}

// note takes down how telling the hub went, and logs what changed.
func (o *Outbox) note(what string, err error) {
	o.mu.Lock()
	before := o.errors[what]
	o.errors[what] = err
	if err == nil {
		o.heard = o.opts.Now()
		o.metrics.heard.Set(float64(o.heard.UnixMilli()) / 1000)
	}
	o.mu.Unlock()
	switch {
	case err == nil && before != nil:
		o.log.Info("the hub answers again", "cluster", o.opts.Cluster, "to", what)
	case err != nil && !alikeTrouble(before, err):
		o.log.Warn("the hub could not be told; trying again", "cluster", o.opts.Cluster, "what", what, "advice", advice(err), "error", err)
	}
}

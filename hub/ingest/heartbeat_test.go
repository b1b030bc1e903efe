package ingest

import (
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

func TestHeartbeatAsksForASnapshot(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.register("c1")
		r.send("c1", saying(1, 1, 1))
		r.register("c1")
		r.send("c1", saying(2, 5, 5))
		digest := r.ingester.states.position("c1").Digest.String()
		other := strings.Repeat("0", 32)
		r.register("fresh")
		cases := map[string]struct {
			reason  string
			cluster string
			beat    schema.Heartbeat
			want    bool
		}{
			"Same":        {"Both know the same.", "c1", schema.Heartbeat{Epoch: 2, Sequence: 5, Digest: digest}, false},
			"UpperCase":   {"Hex is hex.", "c1", schema.Heartbeat{Epoch: 2, Sequence: 5, Digest: strings.ToUpper(digest)}, false},
			"NoDigest":    {"No digest asks for no comparison.", "c1", schema.Heartbeat{Epoch: 2, Sequence: 5}, false},
			"Digest":      {"The hub's state differs.", "c1", schema.Heartbeat{Epoch: 2, Sequence: 5, Digest: other}, true},
			"HubBehind":   {"The hub lost an acknowledged message.", "c1", schema.Heartbeat{Epoch: 2, Sequence: 6, Digest: digest}, true},
			"HubAhead":    {"A report overtook the heartbeat.", "c1", schema.Heartbeat{Epoch: 2, Sequence: 4, Digest: other}, false},
			"NothingSent": {"Its snapshot is on the way.", "c1", schema.Heartbeat{Epoch: 2, Digest: other}, false},
			"NeverHeard":  {"An agent believes in a state that the hub never had.", "fresh", schema.Heartbeat{Epoch: 1, Sequence: 3, Digest: digest}, true},
			"Fresh":       {"A fresh agent has a snapshot on the way.", "fresh", schema.Heartbeat{Epoch: 1}, false},
		}
		for name, tc := range cases {
			got, err := r.ingester.Heartbeat(t.Context(), tc.cluster, tc.beat)
			if err != nil {
				t.Fatal(err)
			}
			m, _ := r.fleet.Get(tc.cluster)
			if want := (schema.HeartbeatAnswer{CurrentEpoch: m.Epoch, Resync: tc.want}); got != want {
				t.Errorf("%s: %s %+v", name, tc.reason, got)
			}
		}
		for cluster, want := range map[string]schema.Code{"never": schema.CodeNotRegistered, "c1": schema.CodeFutureEpoch} {
			if _, err := r.ingester.Heartbeat(t.Context(), cluster, schema.Heartbeat{Epoch: 3}); code(t, err) != want {
				t.Errorf("%s: %v", cluster, err)
			}
		}
		if err := r.ingester.Decommission(t.Context(), "c1"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.ingester.Heartbeat(t.Context(), "c1", schema.Heartbeat{Epoch: 2}); code(t, err) != schema.CodeDecommissioned {
			t.Errorf("one that is gone: %v", err)
		}
	})
}

// A superseded agent takes over only when the current one has been silent for
// as long as is allowed; its own heartbeats are no sign of life of the other.
func TestSupersededAgentWaitsForSilence(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.register("c1")
		r.register("c1")
		old := schema.Heartbeat{Epoch: 1, Sequence: 9, Digest: strings.Repeat("1", 32)}
		see := func(want bool, why string) {
			t.Helper()
			got, err := r.ingester.Heartbeat(t.Context(), "c1", old)
			if err != nil || got != (schema.HeartbeatAnswer{CurrentEpoch: 2, Silent: want}) {
				t.Errorf("%s: %+v, %v", why, got, err)
			}
		}
		see(false, "at once")
		for range 5 {
			time.Sleep(10 * time.Second)
			see(false, "within five intervals")
		}
		time.Sleep(time.Millisecond)
		see(true, "after five intervals")
		if got, err := r.ingester.Heartbeat(t.Context(), "c1", schema.Heartbeat{Epoch: 2}); err != nil || got.Silent {
			t.Errorf("the current agent is told of silence: %+v, %v", got, err)
		}
		see(false, "the current one is back")
		time.Sleep(51 * time.Second)
		r.send("c1", saying(2, 1, 1))
		see(false, "a report is a sign of life")
		time.Sleep(51 * time.Second)
		r.send("c1", saying(1, 1, 1))
		see(true, "a report of the old agent is none")
	})
}

func TestHeartbeatOfASharedStore(t *testing.T) {
	inBubble(t, func(o *Options) { o.Shared = true }, func(t *testing.T, r *rig) {
		r.register("c1")
		r.send("c1", saying(1, 1, 1))
		// Another hub stored the next message.
		r.store.mu.Lock()
		state := copied(r.store.states["c1"])
		c := state.Apply("c1", saying(1, 2, 2), time.Now())
		r.store.store(&c)
		r.store.mu.Unlock()
		beat := schema.Heartbeat{Epoch: 1, Sequence: 2, Digest: state.Position.Digest.String()}
		if got, err := r.ingester.Heartbeat(t.Context(), "c1", beat); err != nil || got.Resync {
			t.Errorf("what another hub stored is not known: %+v, %v", got, err)
		}
		r.store.failing(func(call string) error {
			if call == "positions" {
				return errDown
			}
			return nil
		})
		if _, err := r.ingester.Heartbeat(t.Context(), "c1", beat); code(t, err) != schema.CodeUnavailable {
			t.Errorf("while the store is down: %v", err)
		}
		if _, err := r.ingester.Report(t.Context(), "c1", saying(1, 3, 3)); code(t, err) != schema.CodeUnavailable {
			t.Errorf("a report while the store is down: %v", err)
		}
		r.store.failing(nil)
		r.send("c1", saying(1, 3, 3))
		expectHistory(t, r, "c1 1/1 a", "c1 1/2 a", "c1 1/3 a")
	})
}

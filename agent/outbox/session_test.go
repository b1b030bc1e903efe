package outbox

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// settled starts an outbox that has said what there is.
func (r *rig) settled(start func(), recs ...schema.Reconciler) {
	r.t.Helper()
	start()
	r.has(recs...)
	r.Kinds([]string{flux}, nil)
	r.rest()
	r.told()
}

// Heartbeats go from the start, spread, and say what the hub has as of the last
// acknowledged message.
func TestHeartbeats(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		start()
		r.rest()
		if n := len(r.hub.beats); n < 5 || n > 8 {
			t.Errorf("%d heartbeats in a minute of 10 s intervals", n)
		}
		if h := r.hub.beats[0]; h.Epoch != 1 || h.Sequence != 0 || h.Digest != "" || h.Agent.Version != "test" {
			t.Errorf("the first heartbeat says %+v", h)
		}
		a, b := kustomization("a", schema.StatusSuccess), kustomization("b", schema.StatusSuccess)
		r.has(a, b)
		r.Kinds([]string{flux}, nil)
		r.rest()
		sum := a.Digest()
		sum.Toggle(b.Digest())
		if h := r.hub.beats[len(r.hub.beats)-1]; h.Sequence != 1 || h.Digest != sum.String() {
			t.Errorf("after a snapshot it says %+v, want %s", h, sum)
		}
		r.hub.set(func(f *fake) { f.onReport = func(*schema.Report) error { return errNetwork } })
		r.Remove(b.Ref())
		r.rest()
		if h := r.hub.beats[len(r.hub.beats)-1]; h.Sequence != 1 || h.Digest != sum.String() {
			t.Errorf("what is not acknowledged is in %+v", h)
		}
		r.hub.set(func(f *fake) { f.onReport = nil })
		r.rest()
		if h := r.hub.beats[len(r.hub.beats)-1]; h.Sequence != 2 || h.Digest != a.Digest().String() {
			t.Errorf("after a removal it says %+v", h)
		}
		if s := r.Status(); s.Acknowledged.IsZero() || s.Error != nil || s.Epoch != 1 || s.Sequence != 2 {
			t.Errorf("the status is %+v", s)
		}
	})
}

// A hub that cannot be satisfied by a snapshot is not sent one with every
// heartbeat.
func TestResyncIsSpaced(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		r.settled(start, kustomization("a", schema.StatusSuccess))
		r.hub.set(func(f *fake) {
			f.onHeartbeat = func(schema.Heartbeat) (schema.HeartbeatAnswer, error) {
				return schema.HeartbeatAnswer{CurrentEpoch: 1, Resync: true}, nil
			}
		})
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		n := len(r.told())
		if n < 5 || n > 30 {
			t.Errorf("%d snapshots in 4 hours", n)
		}
		r.hub.set(func(f *fake) { f.onHeartbeat = nil })
		r.rest()
		r.hub.set(func(f *fake) {
			f.onHeartbeat = func(schema.Heartbeat) (schema.HeartbeatAnswer, error) {
				f.onHeartbeat = nil
				return schema.HeartbeatAnswer{CurrentEpoch: 1, Resync: true}, nil
			}
		})
		r.rest()
		expect(t, "after they agreed", []string{fmt.Sprintf("1/%d snapshot [Kustomization] unlisted []: a=success", n+2)}, r.told())
	})
}

// What cannot be listed in this epoch may be at the hub from before: no digest
// of ours can be the hub's then.
func TestNoDigestOfWhatWasNeverListed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		start()
		r.Kinds([]string{flux}, []string{"HelmRelease"})
		r.rest()
		if h := r.hub.beats[len(r.hub.beats)-1]; h.Digest != "" {
			t.Errorf("HelmReleases were never listed, and a heartbeat says %+v", h)
		}
		r.Kinds([]string{flux, "HelmRelease"}, nil)
		r.rest()
		r.Kinds([]string{flux}, []string{"HelmRelease"})
		r.rest()
		if h := r.hub.beats[len(r.hub.beats)-1]; h.Digest == "" {
			t.Error("HelmReleases were listed once in this epoch, and a heartbeat says no digest")
		}
	})
}

// Two agents alive at once do not fight: the older one is still, and comes back
// when the newer one is silent.
func TestSuperseded(t *testing.T) {
	for name, learn := range map[string]func(r *rig){
		"from a report": func(r *rig) {
			r.hub.set(func(f *fake) {
				told := f.onHeartbeat
				f.onHeartbeat = func(h schema.Heartbeat) (schema.HeartbeatAnswer, error) {
					if len(f.taken) == 0 {
						return schema.HeartbeatAnswer{CurrentEpoch: 1}, nil
					}
					return told(h)
				}
			})
			r.rest()
			r.has(kustomization("a", schema.StatusFailure))
			synctest.Wait()
			if s := r.Status(); s.Mode != Superseded || s.Waiting != 0 {
				r.t.Errorf("after the answer to a report the status is %+v", s)
			}
		},
		"from a heartbeat": func(*rig) {},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
				r.settled(start, kustomization("a", schema.StatusSuccess))
				silent := false
				r.hub.set(func(f *fake) {
					f.epoch = 2
					f.onHeartbeat = func(h schema.Heartbeat) (schema.HeartbeatAnswer, error) {
						return schema.HeartbeatAnswer{CurrentEpoch: f.epoch, Silent: silent && h.Epoch < f.epoch}, nil
					}
				})
				learn(r)
				r.rest()
				if s := r.Status(); s.Mode != Superseded {
					t.Fatalf("the status is %+v", s)
				}
				r.told()
				r.hub.set(func(f *fake) { f.beats = nil })
				r.has(kustomization("b", schema.StatusSuccess))
				r.Remove(ref("a"))
				r.facts.mu.Lock()
				delete(r.facts.all, ref("a"))
				r.facts.mu.Unlock()
				time.Sleep(time.Hour)
				synctest.Wait()
				expect(t, "while the other one lives", []string{}, r.told())
				if n := len(r.hub.beats); n < 300 || r.hub.beats[n-1].Epoch != 1 || r.hub.registrations != 1 {
					t.Errorf("%d heartbeats in an hour, the last %+v, after %d registrations", n, r.hub.beats[n-1], r.hub.registrations)
				}
				r.hub.set(func(f *fake) {
					silent = true
					f.onHeartbeat = func(h schema.Heartbeat) (schema.HeartbeatAnswer, error) {
						return schema.HeartbeatAnswer{CurrentEpoch: f.epoch, Silent: h.Epoch < f.epoch}, nil
					}
				})
				r.rest()
				expect(t, "when it is silent", []string{"3/1 snapshot [Kustomization] unlisted []: b=success"}, r.told())
				if n := r.counted("dropped_states_total", "session_over"); n < 1 {
					t.Error("what the other one may not have seen is not counted")
				}
				if r.counted("epoch") != 3 {
					t.Errorf("the epoch's metric is %v", r.counted("epoch"))
				}
			})
		})
	}
}

// A hub that lost its memory is told everything again.
func TestTheHubForgotTheCluster(t *testing.T) {
	for name, err := range map[string]error{
		"not registered": refused(http.StatusNotFound, schema.CodeNotRegistered, "", 0),
		"future epoch":   refused(http.StatusConflict, schema.CodeFutureEpoch, "", 0),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
				r.settled(start, kustomization("a", schema.StatusSuccess))
				app := kustomization("app", schema.StatusSuccess)
				app.Kind = "Application" // not listed yet
				r.has(app)
				r.rest()
				r.told()
				r.hub.set(func(f *fake) {
					f.onReport = func(m *schema.Report) error {
						if m.Epoch == 1 {
							return err
						}
						return nil
					}
				})
				r.has(kustomization("b", schema.StatusSuccess))
				r.rest()
				expect(t, "to the new hub", []string{"2/1 snapshot [Kustomization] unlisted []: a=success b=success"}, r.told())
				r.has(app)
				r.rest()
				expect(t, "what the old one knew", []string{"2/2 delta: app=success"}, r.told())
			})
		})
	}
}

// A cluster that an admin took out is still, asks seldom, and comes back.
func TestDecommissioned(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		r.settled(start, kustomization("a", schema.StatusSuccess))
		out := refused(http.StatusGone, schema.CodeDecommissioned, "", 0)
		r.hub.set(func(f *fake) {
			f.onRegister = func() error { return out }
			f.onReport = func(*schema.Report) error { return out }
			f.onHeartbeat = func(schema.Heartbeat) (schema.HeartbeatAnswer, error) { return schema.HeartbeatAnswer{}, out }
		})
		r.has(kustomization("a", schema.StatusFailure))
		r.rest()
		if s := r.Status(); s.Mode != Decommissioned || s.Error == nil {
			t.Fatalf("the status is %+v", s)
		}
		r.hub.set(func(f *fake) { f.beats, f.tried, f.registrations = nil, nil, 0 })
		r.has(kustomization("b", schema.StatusFailure))
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		if len(r.hub.beats)+len(r.hub.tried) > 0 || r.hub.registrations < 20 || r.hub.registrations > 120 {
			t.Errorf("in 10 hours: %d heartbeats, %d reports, %d registrations", len(r.hub.beats), len(r.hub.tried), r.hub.registrations)
		}
		r.hub.set(func(f *fake) { f.onRegister, f.onReport, f.onHeartbeat = nil, nil, nil })
		time.Sleep(time.Hour)
		synctest.Wait()
		expect(t, "when it is back", []string{"2/1 snapshot [Kustomization] unlisted []: a=failure b=failure"}, r.told())
	})
}

// A token that the hub does not take is tried on, slowly: the file may rotate.
func TestDenied(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusFound} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
				r.settled(start)
				denied := refused(status, hubclient.CodeForeignAnswer, "", 0)
				r.hub.set(func(f *fake) { f.tried, f.onReport = nil, func(*schema.Report) error { return denied } })
				r.has(kustomization("a", schema.StatusSuccess))
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := len(r.hub.tried); n < 10 || n > 80 {
					t.Errorf("%d tries in 10 minutes", n)
				}
				if s := r.Status(); s.Mode != Current || s.Error == nil || s.Waiting != 1 {
					t.Errorf("the status is %+v", s)
				}
				r.hub.set(func(f *fake) { f.onReport = nil })
				r.rest()
				expect(t, "with another token", []string{"1/2 delta: a=success"}, r.told())
				if s := r.Status(); s.Error != nil {
					t.Errorf("the status is %+v", s)
				}
			})
		})
	}
}

// A registration that fails is tried again, and heartbeats that fail do not hold
// up reports.
func TestRegistrationAndHeartbeatsAreRetried(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		r.hub.onRegister = func() error { return errNetwork }
		r.hub.onHeartbeat = func(schema.Heartbeat) (schema.HeartbeatAnswer, error) { return schema.HeartbeatAnswer{}, errNetwork }
		start()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		n := 0
		r.hub.set(func(f *fake) { n = f.registrations })
		if n < 15 || n > 60 {
			t.Errorf("%d registrations in 10 minutes", n)
		}
		if s := r.Status(); s.Mode != Registering || s.Error == nil {
			t.Errorf("the status is %+v", s)
		}
		r.hub.set(func(f *fake) { f.onRegister = nil })
		r.Kinds(nil, nil)
		r.has(kustomization("a", schema.StatusSuccess))
		r.rest()
		expect(t, "with a heart that fails", []string{"1/1 delta unlisted []: a=success"}, r.told())
		if s := r.Status(); s.Error == nil || s.Mode != Current {
			t.Errorf("the status is %+v", s)
		}
		if r.counted("retries_total", "heartbeat") < 2 || r.counted("retries_total", "registration") < 2 {
			t.Error("the retries are not counted")
		}
	})
}

// Run ends at once, whatever it waits for.
func TestRunEnds(t *testing.T) {
	for name, prepare := range map[string]func(*fake){
		"idle":        func(*fake) {},
		"registering": func(f *fake) { f.onRegister = func() error { return errNetwork } },
		"retrying":    func(f *fake) { f.onReport = func(*schema.Report) error { return errNetwork } },
		"taken out": func(f *fake) {
			f.onRegister = func() error { return refused(http.StatusGone, schema.CodeDecommissioned, "", 0) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(_ *testing.T, r *rig, start func()) {
				prepare(r.hub)
				start()
				r.Kinds([]string{flux}, nil)
				r.has(kustomization("a", schema.StatusSuccess))
				r.rest()
			}) // waits for Run; a bubble with a goroutine left fails
		})
	}
}

func TestMessagesAreCounted(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		r.settled(start, kustomization("a", schema.StatusSuccess))
		if r.counted("messages_total", "snapshot", "acknowledged") != 1 || r.counted("messages_total", "registration", "acknowledged") != 1 ||
			r.counted("messages_total", "heartbeat", "acknowledged") < 3 || r.counted("last_acknowledged_timestamp_seconds") == 0 {
			t.Error("the messages are not counted")
		}
	})
}

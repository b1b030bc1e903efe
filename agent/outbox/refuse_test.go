package outbox

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// The hub refuses one reconciler: the rest is reported, it stands as unknown,
// and the hub is not asked about the same facts again.
func TestRefusedReconciler(t *testing.T) {
	sick := func(m *schema.Report) int {
		return slices.IndexFunc(m.Reconcilers, func(rec schema.Reconciler) bool { return rec.Health == "sick" })
	}
	for name, refuse := range map[string]func(m *schema.Report) error{
		"pointed at": func(m *schema.Report) error {
			if i := sick(m); i >= 0 {
				return refused(http.StatusBadRequest, schema.CodeInvalidField, fmt.Sprintf("/reconcilers/%d/health", i), 0)
			}
			return nil
		},
		"not pointed at": func(m *schema.Report) error {
			if sick(m) >= 0 {
				return refused(http.StatusUnprocessableEntity, schema.CodeInvalidJSON, "", 0)
			}
			return nil
		},
		"too large": func(m *schema.Report) error {
			if sick(m) >= 0 {
				return errTooLarge
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
				r.hub.onReport = refuse
				var recs []schema.Reconciler
				for i := range 9 {
					recs = append(recs, kustomization(fmt.Sprint("r", i), schema.StatusSuccess))
				}
				recs[3].Health = "sick"
				r.settled(start, recs...) // a snapshot
				states := map[string]schema.Status{}
				r.hub.set(func(f *fake) {
					f.onHeartbeat = func(schema.Heartbeat) (schema.HeartbeatAnswer, error) {
						f.onHeartbeat = nil
						return schema.HeartbeatAnswer{CurrentEpoch: 1, Resync: true}, nil
					}
					f.tried = nil
				})
				r.rest()
				for _, m := range r.hub.taken {
					for _, rec := range m.Reconcilers {
						states[rec.Name] = rec.Status
					}
				}
				if len(states) != 9 || states["r3"] != schema.StatusUnknown || states["r2"] != schema.StatusSuccess {
					t.Errorf("the hub has %v", states)
				}
				if len(r.hub.tried) != 1 {
					t.Errorf("%d tries for a snapshot of what was refused before", len(r.hub.tried))
				}
				if s := r.Status(); s.Refused != 1 || s.Waiting != 0 || s.Error != nil {
					t.Errorf("the status is %+v", s)
				}
				r.told()
				r.hub.set(func(f *fake) { f.tried = nil })
				r.has(recs[3])
				r.rest()
				if len(r.hub.tried) != 0 {
					t.Errorf("the same facts were tried again: %s", line(r.hub.tried[0]))
				}
				r.has(kustomization("r3", schema.StatusFailure, healthy("sick")), kustomization("r9", schema.StatusSuccess)) // a delta
				r.rest()
				got := strings.Join(r.told(), "\n")
				if !strings.Contains(got, "r3=unknown") || !strings.Contains(got, "r9=success") || strings.Contains(got, "r3=failure") {
					t.Errorf("after other facts the hub was refused, it was told %s", got)
				}
				r.has(kustomization("r3", schema.StatusSuccess))
				r.rest()
				if got := r.told(); len(got) != 1 || !strings.HasSuffix(got[0], "r3=success") || r.Status().Refused != 0 {
					t.Errorf("after it was healed the hub was told %q", got)
				}
			})
		})
	}
}

// A reconciler that is refused in every form is withheld, and holds up nothing.
func TestWithheldReconciler(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		r.hub.onReport = func(m *schema.Report) error {
			for i, rec := range m.Reconcilers {
				if rec.Name == "never" {
					return refused(http.StatusBadRequest, schema.CodeInvalidField, fmt.Sprintf("/reconcilers/%d/name", i), 0)
				}
			}
			return nil
		}
		r.settled(start, kustomization("a", schema.StatusSuccess), kustomization("never", schema.StatusSuccess))
		r.has(kustomization("b", schema.StatusSuccess))
		r.has(kustomization("never", schema.StatusFailure), kustomization("c", schema.StatusSuccess))
		r.rest()
		if s := r.Status(); s.Waiting != 0 || s.Error != nil || s.Refused != 1 {
			t.Errorf("the status is %+v", s)
		}
		sum := schema.Digest{}
		for _, name := range []string{"a", "b", "c"} {
			rec := kustomization(name, schema.StatusSuccess)
			sum.Toggle(rec.Digest())
		}
		if h := r.hub.beats[len(r.hub.beats)-1]; h.Digest != sum.String() {
			t.Errorf("the hub lacks it, and the heartbeat says %+v", h)
		}
	})
}

// A complaint about something else than a reconciler condemns none.
func TestRefusalOfAWholeMessage(t *testing.T) {
	for _, problem := range []error{
		refused(http.StatusBadRequest, schema.CodeInvalidField, "/agent/version", 0),
		refused(http.StatusBadRequest, schema.CodeInvalidField, "/reconcilers/7/name", 0),
		refused(http.StatusBadRequest, hubclient.CodeForeignAnswer, "", 0),
	} {
		inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
			r.settled(start)
			r.hub.set(func(f *fake) { f.onReport = func(*schema.Report) error { return problem } })
			r.has(kustomization("a", schema.StatusSuccess), kustomization("b", schema.StatusSuccess))
			r.rest()
			if s := r.Status(); s.Waiting != 2 || s.Error == nil {
				t.Errorf("the status is %+v", s)
			}
			r.hub.set(func(f *fake) { f.onReport = nil })
			r.rest()
			expect(t, "when the hub was mended", []string{"1/2 delta: a=success b=success"}, r.told())
		})
	}
}

// After an answer that never came, a refused number may be taken: the next
// message has another one.
func TestNumberOfAnUnsureMessage(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		r.settled(start)
		answers := []error{errNetwork, refused(http.StatusBadRequest, schema.CodeInvalidField, "/reconcilers/0/health", 0)}
		r.hub.set(func(f *fake) {
			f.onReport = func(*schema.Report) (err error) {
				if len(answers) > 0 {
					err, answers = answers[0], answers[1:]
				}
				return err
			}
		})
		r.has(kustomization("a", schema.StatusSuccess, healthy("sick")))
		r.rest()
		expect(t, "after 1/2 was sent twice", []string{"1/3 delta: a=unknown"}, r.told())
	})
}

// A snapshot in parts is one row of numbers: after a number that may be taken it
// begins again, else the hub would not see it complete.
func TestSnapshotAfterAnUnsureRefusal(t *testing.T) {
	inBubble(t, func(o *Options) { o.MaxReconcilers = 2 }, func(t *testing.T, r *rig, start func()) {
		answers := []error{nil, errNetwork, refused(http.StatusBadRequest, schema.CodeInvalidField, "/reconcilers/0/health", 0)}
		r.hub.onReport = func(*schema.Report) (err error) {
			if len(answers) > 0 {
				err, answers = answers[0], answers[1:]
			}
			return err
		}
		r.has(kustomization("a", schema.StatusSuccess), kustomization("b", schema.StatusSuccess))
		r.has(kustomization("c", schema.StatusSuccess, healthy("sick")), kustomization("d", schema.StatusSuccess), kustomization("e", schema.StatusSuccess))
		start()
		r.Kinds([]string{flux}, nil)
		r.rest()
		expect(t, "a set that was broken off, and a whole one", []string{
			"1/1 snapshot [Kustomization] 1 of 3 unlisted []: a=success b=success",
			"1/3 snapshot [Kustomization] 1 of 3: a=success b=success",
			"1/4 snapshot [Kustomization] 2 of 3: c=unknown d=success",
			"1/5 snapshot [Kustomization] 3 of 3: e=success",
		}, r.told())
	})
}

// A child that waits already and did not change travels with the parent that was
// put with it.
func TestUnchangedChildTravelsWithItsParent(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		r.settled(start)
		r.hub.set(func(f *fake) {
			f.onReport = func(m *schema.Report) error {
				if len(m.Reconcilers) > 2 {
					return errTooLarge
				}
				return nil
			}
		})
		r.has(kustomization("leaves at once", schema.StatusSuccess))
		synctest.Wait()
		child := kustomization("z-child", schema.StatusSuccess, ownedBy("a-parent"))
		r.has(child)
		r.has(kustomization("b", schema.StatusSuccess))
		r.has(kustomization("a-parent", schema.StatusSuccess), child)
		r.rest()
		expect(t, "in messages of two", []string{
			"1/2 delta: leaves at once=success", "1/3 delta: b=success", "1/4 delta: z-child=success a-parent=success",
		}, r.told())
	})
}

// Messages that something on the way finds too large become smaller, and what
// was put together still travels together.
func TestTooLargeMessages(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		r.settled(start)
		r.hub.set(func(f *fake) {
			f.onReport = func(m *schema.Report) error {
				size := 0
				for i := range m.Reconcilers {
					size += len(m.Reconcilers[i].Message)
				}
				if size > 40_000 {
					return errTooLarge
				}
				return nil
			}
		})
		long := func(r *schema.Reconciler) { r.Message = strings.Repeat("x", 4000) }
		r.has(kustomization("leaves at once", schema.StatusSuccess))
		for i := range 20 {
			owner := fmt.Sprintf("p%02d", i)
			r.has(kustomization(owner, schema.StatusSuccess, long), kustomization(owner+"-child", schema.StatusSuccess, long, ownedBy(owner)))
		}
		r.rest()
		n := 0
		for _, m := range r.hub.taken {
			names := map[string]bool{}
			for _, rec := range m.Reconcilers {
				names[rec.Name] = true
			}
			for i := range 20 {
				if owner := fmt.Sprintf("p%02d", i); names[owner] != names[owner+"-child"] {
					t.Errorf("%s and its child are apart in %s", owner, line(m))
				}
			}
			n += len(m.Reconcilers)
		}
		if n != 40+1 {
			t.Errorf("%d reconcilers arrived, want 41", n)
		}
	})
}

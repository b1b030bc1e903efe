package outbox

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

const flux = "Kustomization"

func expect(t *testing.T, why string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", why, diff)
	}
}

// A change that finds the outbox idle leaves without any time passing; what
// follows within the window becomes one message.
func TestCoalescing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		start()
		r.Kinds([]string{flux}, nil)
		r.rest()
		expect(t, "the first message", []string{"1/1 snapshot [Kustomization] unlisted []:"}, r.told())
		r.has(kustomization("a", schema.StatusSuccess))
		synctest.Wait()
		expect(t, "an idle agent's change", []string{"1/2 delta: a=success"}, r.told())
		for i := range 5 {
			r.has(kustomization(fmt.Sprint("b", i), schema.StatusSuccess))
			synctest.Wait()
		}
		expect(t, "within the window", []string{}, r.told())
		r.rest()
		expect(t, "a burst", []string{"1/3 delta: b0=success b1=success b2=success b3=success b4=success"}, r.told())
		r.has(kustomization("b0", schema.StatusSuccess))
		r.Remove(ref("never"))
		r.rest()
		expect(t, "what is known already", []string{}, r.told())
		r.Remove(ref("b0"), ref("b1"))
		r.rest()
		expect(t, "gone", []string{"1/4 delta: -b0 -b1"}, r.told())
	})
}

// Short states count: a success that was there for a moment is remembered at the
// hub for ever, so each state travels, with the time it was seen.
func TestStatesOfADownHubAreKept(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		r.hub.onRegister = func() error { return errNetwork }
		r.hub.epoch = 4
		start()
		r.Kinds([]string{flux}, nil)
		for _, status := range []schema.Status{schema.StatusInProgress, schema.StatusSuccess, schema.StatusFailure} {
			r.has(kustomization("a", status), kustomization("of-"+string(status), status))
			time.Sleep(10 * time.Second)
		}
		began := time.Now()
		r.hub.set(func(f *fake) { f.onRegister = nil })
		r.rest()
		r.hub.mu.Lock()
		seen := r.hub.taken[0].ObservedAt
		r.hub.mu.Unlock()
		expect(t, "history first, and then all that is there", []string{
			"5/1 delta unlisted []: a=in_progress of-in_progress=in_progress",
			"5/2 delta: a=success of-success=success",
			"5/3 snapshot [Kustomization]: a=failure of-failure=failure of-in_progress=in_progress of-success=success",
		}, r.told())
		if want := began.Add(-30 * time.Second); !seen.Equal(want) {
			t.Errorf("the first state was seen at %s, the report says %s", want, seen)
		}
		if n := r.counted("dropped_states_total"); n != 0 {
			t.Errorf("%v states are counted as dropped, none was", n)
		}
	})
}

// States that wait for each other in one message keep the time they were seen.
func TestObservedAt(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		start()
		r.Kinds(nil, nil)
		r.rest()
		r.told()
		r.hub.set(func(f *fake) { f.onReport = func(*schema.Report) error { return errNetwork } })
		r.has(kustomization("a", schema.StatusSuccess))
		synctest.Wait()
		b := time.Now()
		r.has(kustomization("b", schema.StatusSuccess))
		time.Sleep(5 * time.Second)
		c := time.Now()
		r.has(kustomization("c", schema.StatusSuccess))
		r.hub.set(func(f *fake) { f.onReport = nil })
		r.rest()
		last := r.hub.taken[len(r.hub.taken)-1]
		if !last.ObservedAt.Equal(c) || !last.Reconcilers[0].ObservedAt.Equal(b) || !last.Reconcilers[1].ObservedAt.IsZero() {
			t.Errorf("%s was observed at %s, %+v", line(last), last.ObservedAt, last.Reconcilers)
		}
	})
}

// Beyond the bounds the newest state of each stays, what was put together still
// travels together, and what is dropped is counted.
func TestDroppedHistoryIsCounted(t *testing.T) {
	inBubble(t, func(o *Options) { o.MaxHistory = 2 }, func(t *testing.T, r *rig, start func()) {
		start()
		r.Kinds(nil, nil)
		r.rest()
		r.told()
		r.hub.set(func(f *fake) { f.onReport = func(*schema.Report) error { return errNetwork } })
		r.has(kustomization("on-its-way", schema.StatusPending))
		synctest.Wait()
		r.has(kustomization("parent", schema.StatusSuccess), kustomization("child", schema.StatusInProgress, ownedBy("parent")))
		for i := range 4 {
			r.has(kustomization("child", schema.StatusInProgress, ownedBy("parent"), healthy(fmt.Sprint(i))))
		}
		r.has(kustomization("child", schema.StatusSuccess, ownedBy("parent")))
		if n := r.Status().Waiting; n != 3 {
			t.Errorf("%d states wait, want 3", n)
		}
		r.hub.set(func(f *fake) { f.onReport = nil })
		r.rest()
		expect(t, "after the flood", []string{"1/2 delta: on-its-way=pending", "1/3 delta: child=success parent=success"}, r.told())
		if n := r.counted("dropped_states_total", "overtaken"); n != 5 {
			t.Errorf("%v states are counted as dropped, want 5", n)
		}
	})
}

// What is sent again under the same number says the same, whatever was put in
// the meantime: the hub may have it already.
func TestRepeatedMessageIsFrozen(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		start()
		r.Kinds(nil, nil)
		r.rest()
		r.told()
		r.hub.set(func(f *fake) { f.tried, f.onReport = nil, func(*schema.Report) error { return errNetwork } })
		r.has(kustomization("a", schema.StatusInProgress))
		time.Sleep(time.Second)
		r.has(kustomization("a", schema.StatusSuccess), kustomization("b", schema.StatusSuccess))
		time.Sleep(time.Second)
		r.hub.set(func(f *fake) { f.onReport = nil })
		r.rest()
		for _, m := range r.hub.tried[:len(r.hub.tried)-1] {
			if got := line(m); got != "1/2 delta: a=in_progress" {
				t.Errorf("a try says %q", got)
			}
		}
		expect(t, "in the end", []string{"1/2 delta: a=in_progress", "1/3 delta: a=success b=success"}, r.told())
		if r.counted("retries_total", "delta") < 2 || r.counted("messages_total", "delta", "failed") < 2 {
			t.Error("the retries are not counted")
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	for name, err := range map[string]error{
		"unavailable": refused(http.StatusServiceUnavailable, schema.CodeUnavailable, "", 5*time.Minute),
		"overloaded":  refused(http.StatusTooManyRequests, schema.CodeOverloaded, "", 5*time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
				start()
				r.Kinds(nil, nil)
				r.rest()
				r.hub.set(func(f *fake) { f.tried, f.onReport = nil, func(*schema.Report) error { return err } })
				r.has(kustomization("a", schema.StatusSuccess))
				time.Sleep(5*time.Minute - time.Second)
				synctest.Wait()
				if n := r.tries(); n != 1 {
					t.Errorf("%d tries before the hub wanted any", n)
				}
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if n := r.tries(); n != 2 {
					t.Errorf("%d tries after it, want the second", n)
				}
			})
		})
	}
}

// A snapshot in parts: one set, one after the other, children before owners.
func TestSnapshotInParts(t *testing.T) {
	inBubble(t, func(o *Options) { o.MaxReconcilers = 2 }, func(t *testing.T, r *rig, start func()) {
		start()
		r.has(kustomization("a-root", schema.StatusSuccess))
		r.has(kustomization("b-middle", schema.StatusSuccess, ownedBy("a-root")))
		r.has(kustomization("c-leaf", schema.StatusSuccess, ownedBy("b-middle")))
		r.has(kustomization("d-round", schema.StatusSuccess, ownedBy("e-round")))
		r.has(kustomization("e-round", schema.StatusSuccess, ownedBy("d-round")))
		r.rest()
		expect(t, "before the kinds are known", []string{}, r.told())
		r.Kinds([]string{flux, "HelmRelease"}, []string{"Application"})
		r.rest()
		expect(t, "the first snapshot", []string{
			"1/1 snapshot [HelmRelease Kustomization] 1 of 3 unlisted [Application]: d-round=success e-round=success",
			"1/2 snapshot [HelmRelease Kustomization] 2 of 3: c-leaf=success b-middle=success",
			"1/3 snapshot [HelmRelease Kustomization] 3 of 3: a-root=success",
		}, r.told())
		r.Kinds([]string{flux, "HelmRelease", "Application"}, nil)
		r.rest()
		expect(t, "a kind listed later", []string{"1/4 snapshot [Application] unlisted []:"}, r.told())
		r.Kinds([]string{"HelmRelease", "Application"}, []string{flux})
		r.rest()
		expect(t, "a kind lost", []string{"1/5 delta unlisted [Kustomization]:"}, r.told())
	})
}

// What is put while the state is being read may be newer than what was read,
// also where it looks like what was known before.
func TestPutWhileASnapshotIsRead(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		start()
		r.has(kustomization("a", schema.StatusSuccess), kustomization("b", schema.StatusSuccess))
		r.Kinds([]string{flux}, nil) // last: what was put before goes with the snapshot, in one message
		r.rest()
		r.told()
		r.facts.mu.Lock()
		r.facts.all[ref("a")] = kustomization("a", schema.StatusInProgress)
		r.facts.all[ref("c")] = kustomization("c", schema.StatusInProgress)
		r.facts.reading = func(string) {
			r.facts.reading = nil
			r.Put(kustomization("a", schema.StatusSuccess)) // it was, it is, and it was not in between
			r.Remove(ref("c"))
		}
		r.facts.mu.Unlock()
		r.hub.set(func(f *fake) {
			f.onHeartbeat = func(schema.Heartbeat) (schema.HeartbeatAnswer, error) {
				f.onHeartbeat = nil
				return schema.HeartbeatAnswer{CurrentEpoch: 1, Resync: true}, nil
			}
		})
		r.rest()
		expect(t, "a resync", []string{
			"1/2 snapshot [Kustomization] unlisted []: a=success b=success",
			"1/3 delta: a=success -c",
		}, r.told())
	})
}

// Kinds are read one after the other; a parent that changes in between must not
// stand beside the children it had before.
func TestASnapshotIsOfOneTime(t *testing.T) {
	release := func(status schema.Status) schema.Reconciler {
		rec := kustomization("child", status, ownedBy("parent"))
		rec.Kind = "HelmRelease"
		return rec
	}
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		start()
		r.has(kustomization("parent", schema.StatusInProgress), release(schema.StatusSuccess))
		r.facts.reading = func(kind string) {
			if kind != "HelmRelease" {
				return
			}
			r.facts.mu.Lock() // the wiring has seen it, and not put it yet
			defer r.facts.mu.Unlock()
			r.facts.reading = nil
			child := release(schema.StatusFailure)
			r.facts.all[child.Ref()] = child
			r.facts.all[ref("parent")] = kustomization("parent", schema.StatusSuccess)
		}
		r.Kinds([]string{"HelmRelease", flux}, nil)
		r.rest()
		got := r.told()
		if last := got[len(got)-1]; !strings.HasSuffix(last, "child=failure parent=success") {
			t.Errorf("the hub was told %q", got)
		}
	})
}

// Facts that no hub would take are reported as unknown, with the reason, and
// never as what they were.
func TestFactsThatAreNotValid(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   edit
		// sources and owner say what is still told.
		sources, owner bool
	}{
		"Revision":    {"A revision that cannot be printed.", func(r *schema.Reconciler) { r.Applied = []string{"a\x00"} }, true, true},
		"Destination": {"It deploys to a cluster that this one may not report for.", func(r *schema.Reconciler) { r.Cluster = "other" }, true, true},
		"Source":      {"A URL that is none.", func(r *schema.Reconciler) { r.Sources[0].URL = "https:/x" }, false, true},
		"Owner":       {"An owner without a name.", func(r *schema.Reconciler) { r.Owner.Name = "" }, true, false},
		"Both":        {"Neither source nor owner.", func(r *schema.Reconciler) { r.Owner.Name, r.Sources[0].URL = "", "" }, false, false},
		"UTF8":        {"A message that is no text.", func(r *schema.Reconciler) { r.Message = "\xff" }, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
				start()
				r.Kinds(nil, nil)
				r.rest()
				r.has(kustomization("good", schema.StatusSuccess), kustomization("bad", schema.StatusSuccess, ownedBy("good"), tc.edit))
				r.rest()
				got := r.hub.taken[len(r.hub.taken)-1].Reconcilers
				if len(got) != 2 || got[1].Status != schema.StatusSuccess {
					t.Fatalf("%s the hub was told %+v", tc.reason, got)
				}
				bad := got[0]
				if bad.Status != schema.StatusUnknown || bad.Reason != reasonRefused || (len(bad.Sources) > 0) != tc.sources || (bad.Owner != nil) != tc.owner {
					t.Errorf("%s It is told as %+v", tc.reason, bad)
				}
			})
		})
	}
}

func TestUserInfoAndLongTexts(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig, start func()) {
		start()
		r.Kinds(nil, nil)
		r.rest()
		rec := kustomization("a", schema.StatusSuccess)
		rec.Sources[0].URL = "https://me:secret@git.example/org/apps"
		rec.Message = strings.Repeat("é", schema.MaxMessage)
		r.has(rec)
		r.rest()
		got := r.hub.taken[len(r.hub.taken)-1].Reconcilers[0]
		if strings.Contains(got.Sources[0].URL, "secret") || len(got.Message) > schema.MaxMessage {
			t.Errorf("it was sent as %+v", got)
		}
		if rec.Sources[0].URL != "https://me:secret@git.example/org/apps" {
			t.Error("the caller's facts were changed")
		}
	})
}

func TestOptions(t *testing.T) {
	good := func() Options { return Options{Cluster: "c", Hub: &fake{}, State: &facts{}} }
	for name, spoil := range map[string]func(*Options){
		"no hub":         func(o *Options) { o.Hub = nil },
		"no state":       func(o *Options) { o.State = nil },
		"no cluster":     func(o *Options) { o.Cluster = "" },
		"a registration": func(o *Options) { o.Registration.Environment = "dev" },
		"an agent":       func(o *Options) { o.Agent.Version = "\x00" },
		"a window":       func(o *Options) { o.Window = -1 },
		"reconcilers":    func(o *Options) { o.MaxReconcilers = -1 },
		"bytes":          func(o *Options) { o.MaxBytes = 100 },
		"history":        func(o *Options) { o.MaxHistory = -1 },
		"pending":        func(o *Options) { o.MaxPending = -1 },
	} {
		o := good()
		spoil(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := New(good()); err != nil {
		t.Error(err)
	}
}

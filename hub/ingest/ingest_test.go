package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
)

func expectHistory(t *testing.T, r *rig, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, r.store.lines()); d != "" {
		t.Errorf("history (-want +got):\n%s", d)
	}
}

func counted(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func TestReportIsStoredBeforeItIsAnswered(t *testing.T) {
	var told []int
	edit := func(o *Options) { o.Stored = func(batch []fold.Changes) { told = append(told, len(batch)) } }
	inBubble(t, edit, func(t *testing.T, r *rig) {
		r.register("c1")
		release := r.hold()
		got := r.begin("c1", saying(1, 1, 1))
		select {
		case a := <-got:
			t.Fatalf("answered before it is stored: %+v", a)
		default:
		}
		if len(told) != 0 {
			t.Error("those who wait are told before it is stored")
		}
		release()
		if a := <-got; a.err != nil || a.epoch != 1 || len(told) != 1 {
			t.Errorf("answered with %+v, told %v", a, told)
		}
		expectHistory(t, r, "c1 1/1 a")
	})
}

func TestManyReportsAreOneBatch(t *testing.T) {
	inBubble(t, func(o *Options) { o.MaxBatch = 9; o.MaxQueue = 1000 }, func(t *testing.T, r *rig) {
		for i := range 8 {
			r.register(fmt.Sprint("c", i))
		}
		release := r.hold()
		answers := []<-chan answer{r.begin("c0", saying(1, 1, 0))} // alone on its way
		for i := 1; i < 8; i++ {
			answers = append(answers, r.begin(fmt.Sprint("c", i), saying(1, 1, i)))
		}
		release()
		for _, a := range answers {
			if got := <-a; got.err != nil {
				t.Error(got.err)
			}
		}
		// 7 messages of weight 2 in batches of 9.
		if n := len(r.store.batches); n != 3 {
			t.Errorf("%d inserts, want 1 + 2: %q", n, r.store.batches)
		}
	})
}

func TestOrderWithinACluster(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.register("c1")
		release := r.hold()
		var answers []<-chan answer
		want := []string{}
		for i := range uint64(6) {
			answers = append(answers, r.begin("c1", saying(1, i+1, int(i))))
			want = append(want, fmt.Sprintf("c1 1/%d a", i+1))
		}
		release()
		for _, a := range answers {
			if got := <-a; got.err != nil {
				t.Error(got.err)
			}
		}
		expectHistory(t, r, want...)
		if p := r.ingester.states.position("c1"); p.Sequence != 6 {
			t.Errorf("the stream stands at %d", p.Sequence)
		}
	})
}

func TestRepeatedReports(t *testing.T) {
	cases := map[string]struct {
		reason string
		// sent are sequences, sent together while the store is busy with
		// another cluster's, so that they are one batch.
		sent []uint64
		want []string
	}{
		"Twice":         {"A repeated message is stored once.", []uint64{1, 1}, []string{"c1 1/1 a"}},
		"ThreeTimes":    {"However often it comes.", []uint64{1, 1, 1}, []string{"c1 1/1 a"}},
		"RepeatedLater": {"Also when a newer one stands between.", []uint64{1, 2, 1, 1}, []string{"c1 1/1 a", "c1 1/2 a"}},
		"Backwards":     {"A lower one that is new goes to history, once.", []uint64{3, 2, 2, 3}, []string{"c1 1/3 a", "c1 1/2 a late"}},
	}
	for name, tc := range cases {
		for _, together := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/together=%t", name, together), func(t *testing.T) {
				inBubble(t, nil, func(t *testing.T, r *rig) {
					r.register("c1")
					r.register("busy")
					release := func() {}
					if together {
						release = r.hold()
						r.begin("busy", delta(1, 1))
					}
					var answers []<-chan answer
					for _, sequence := range tc.sent {
						answers = append(answers, r.begin("c1", saying(1, sequence, int(sequence))))
					}
					release()
					for _, a := range answers {
						if got := <-a; got.err != nil || got.epoch != 1 {
							t.Errorf("answered with %+v", got)
						}
					}
					expectHistory(t, r, tc.want...)
					highest := slices.Max(tc.sent)
					want := reconciler("a", fmt.Sprintf("%040x", highest), schema.StatusSuccess)
					e := r.store.states["c1"].Entries[want.Ref()]
					if e.Digest != want.Digest() {
						t.Errorf("%s The current state is not the newest message's", tc.reason)
					}
				})
			})
		}
	}
}

func TestOlderEpochGoesToHistoryAlone(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.register("c1")
		r.send("c1", saying(1, 1, 1))
		r.register("c1")
		// The new agent has said nothing yet: the old one is superseded all the same.
		if epoch := r.send("c1", saying(1, 2, 2)); epoch != 2 {
			t.Errorf("the answer names epoch %d", epoch)
		}
		r.send("c1", saying(2, 1, 3))
		if epoch := r.send("c1", saying(1, 9, 9)); epoch != 2 {
			t.Errorf("the answer names epoch %d", epoch)
		}
		r.send("c1", saying(1, 9, 9))
		expectHistory(t, r, "c1 1/1 a", "c1 1/2 a late", "c1 2/1 a", "c1 1/9 a late")
		if p := r.ingester.states.position("c1"); p.Epoch != 2 || p.Sequence != 1 {
			t.Errorf("the stream stands at %d/%d", p.Epoch, p.Sequence)
		}
	})
}

// A message is judged by the epochs of the moment in which it is folded.
func TestSupersededInTheQueue(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.register("c1")
		r.register("busy")
		release := r.hold()
		r.begin("busy", delta(1, 1))
		got := r.begin("c1", saying(1, 1, 1))
		r.register("c1")
		release()
		if a := <-got; a.err != nil || a.epoch != 2 {
			t.Errorf("answered with %+v", a)
		}
		expectHistory(t, r, "c1 1/1 a late")
	})
}

func TestRefusals(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.register("c1", func(g *schema.Registration) { g.ReportsFor = []string{"spoke"} })
		r.register("gone")
		r.send("gone", saying(1, 1, 1))
		if err := r.ingester.Decommission(t.Context(), "gone"); err != nil {
			t.Fatal(err)
		}
		to := func(cluster string) *schema.Report {
			report := saying(1, 1, 1)
			report.Reconcilers[0].Cluster = cluster
			return report
		}
		cases := map[string]struct {
			cluster string
			report  *schema.Report
			want    schema.Code
		}{
			"NotRegistered":  {"never", saying(1, 1, 1), schema.CodeNotRegistered},
			"Future":         {"c1", saying(2, 1, 1), schema.CodeFutureEpoch},
			"Decommissioned": {"gone", saying(1, 2, 2), schema.CodeDecommissioned},
			"Foreign":        {"c1", to("other"), schema.CodeForbidden},
		}
		for name, tc := range cases {
			if _, err := r.ingester.Report(t.Context(), tc.cluster, tc.report); code(t, err) != tc.want {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := r.ingester.Decommission(t.Context(), "never"); code(t, err) != schema.CodeNotRegistered {
			t.Errorf("decommissioning nobody: %v", err)
		}
		expectHistory(t, r, "gone 1/1 a", "gone "+"gone a")
		r.send("c1", to("spoke"))
		r.send("c1", delta(1, 2, func() schema.Reconciler { rec := to("c1").Reconcilers[0]; rec.Name = "own"; return rec }()))
	})
}

func TestDecommission(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.register("c1")
		r.register("busy")
		r.send("c1", saying(1, 1, 1))
		release := r.hold()
		r.begin("busy", delta(1, 1))
		queued := r.begin("c1", saying(1, 2, 2))
		done := make(chan error, 1)
		go func() { done <- r.ingester.Decommission(t.Context(), "c1") }()
		synctest.Wait()
		release()
		if a := <-queued; code(t, a.err) != schema.CodeDecommissioned {
			t.Errorf("a report that was queued when the decommission came is answered with %+v", a)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		expectHistory(t, r, "c1 1/1 a", "c1 gone a")
		if n := len(r.store.states["c1"].Entries); n != 0 {
			t.Errorf("%d reconcilers are left", n)
		}
		if err := r.ingester.Decommission(t.Context(), "c1"); err != nil {
			t.Errorf("twice: %v", err)
		}

		// It comes back, and starts from nothing.
		if epoch := r.register("c1"); epoch != 2 {
			t.Errorf("back with epoch %d", epoch)
		}
		r.send("c1", saying(2, 1, 3))
		r.send("c1", saying(1, 2, 2)) // spooled before it went
		expectHistory(t, r, "c1 1/1 a", "c1 gone a", "c1 2/1 a", "c1 1/2 a late")
	})
}

func TestStoreComesBack(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.register("c1")
		r.register("c2")
		failures := 5
		r.store.failing(func(call string) error {
			if call != "write" || failures == 0 {
				return nil
			}
			failures--
			return errDown
		})
		before := time.Now()
		got := r.begin("c1", saying(1, 1, 1))
		other := r.begin("c2", saying(1, 1, 1))
		if a := <-got; a.err != nil {
			t.Errorf("answered with %v", a.err)
		}
		if a := <-other; a.err != nil {
			t.Errorf("answered with %v", a.err)
		}
		if waited := time.Since(before); waited != (50+100+200+400+800)*time.Millisecond {
			t.Errorf("it waited %s between its tries", waited)
		}
		expectHistory(t, r, "c1 1/1 a", "c2 1/1 a")
		if batches := slices.Compact(r.store.batches[:6]); len(batches) != 1 {
			t.Errorf("six tries had %d different batches:\n%q", len(batches), batches)
		}
	})
}

func TestStoreRefuses(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.register("c1")
		r.send("c1", saying(1, 1, 1))
		r.store.failing(func(call string) error {
			if call == "write" {
				return fmt.Errorf("wrapped: %w", errPermanent)
			}
			return nil
		})
		tried, loaded := len(r.store.batches), r.store.loads
		_, err := r.ingester.Report(t.Context(), "c1", saying(1, 2, 2))
		if code(t, err) != schema.CodeUnavailable || !errors.Is(err, errPermanent) {
			t.Errorf("answered with %v", err)
		}
		if n := len(r.store.batches) - tried; n != tries {
			t.Errorf("it was tried %d times", n)
		}
		if p := r.ingester.states.position("c1"); p.Sequence != 1 {
			t.Errorf("a message that is not stored moved the stream to %d", p.Sequence)
		}
		r.store.failing(nil)
		r.send("c1", saying(1, 2, 2))
		if r.store.loads == loaded {
			t.Error("the state that was not stored is still believed")
		}
		expectHistory(t, r, "c1 1/1 a", "c1 1/2 a")
	})
}

// What cannot be looked up fails its batch, and nothing of it counts.
func TestStoreCannotBeRead(t *testing.T) {
	for _, call := range []string{"load", "seen"} {
		t.Run(call, func(t *testing.T) {
			inBubble(t, func(o *Options) { o.MaxEntries = 1 }, func(t *testing.T, r *rig) {
				r.register("c1")
				r.register("c2")
				r.register("busy")
				r.send("c1", saying(1, 5, 5))
				r.send("c2", saying(1, 1, 1)) // takes the place of c1 in memory
				r.store.failing(func(c string) error {
					if c == call {
						return errDown
					}
					return nil
				})
				release := r.hold()
				r.begin("busy", delta(1, 1))
				next, late := r.begin("c1", saying(1, 6, 6)), r.begin("c1", saying(1, 4, 4))
				release()
				for _, a := range []<-chan answer{next, late} {
					if got := <-a; code(t, got.err) != schema.CodeUnavailable {
						t.Errorf("answered with %+v", got)
					}
				}
				r.store.failing(nil)
				r.send("c1", saying(1, 6, 6))
				r.send("c1", saying(1, 4, 4))
				expectHistory(t, r, "c1 1/5 a", "c2 1/1 a", "c1 1/6 a", "c1 1/4 a late")
			})
		})
	}
}

func TestEndAnswersThoseWhoWait(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.register("c1")
		r.register("c2")
		release := r.hold()
		defer release()
		first, second := r.begin("c1", saying(1, 1, 1)), r.begin("c2", saying(1, 1, 1))
		r.stop()
		for _, a := range []<-chan answer{first, second} {
			if got := <-a; code(t, got.err) != schema.CodeUnavailable {
				t.Errorf("answered with %+v", got)
			}
		}
		if _, err := r.ingester.Report(t.Context(), "c1", saying(1, 1, 1)); code(t, err) != schema.CodeUnavailable {
			t.Errorf("after the end: %v", err)
		}
		expectHistory(t, r)
	})
}

func TestCallerLeaves(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.register("c1")
		release := r.hold()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errDown)
		defer cancel()
		if _, err := r.ingester.Report(ctx, "c1", saying(1, 1, 1)); code(t, err) != schema.CodeUnavailable || !errors.Is(err, errDown) {
			t.Errorf("answered with %v", err)
		}
		release()
		r.send("c1", saying(1, 1, 1)) // sent again
		expectHistory(t, r, "c1 1/1 a")
	})
}

func TestFullQueueSheds(t *testing.T) {
	reg := prometheus.NewRegistry()
	inBubble(t, func(o *Options) { o.MaxBatch, o.MaxQueue, o.Registerer = 4, 4, reg }, func(t *testing.T, r *rig) {
		r.register("c1")
		release := r.hold()
		var answers []<-chan answer
		for i := range uint64(3) { // one in the store, two in the queue
			answers = append(answers, r.begin("c1", saying(1, i+1, int(i))))
		}
		if _, err := r.ingester.Report(t.Context(), "c1", saying(1, 4, 4)); code(t, err) != schema.CodeOverloaded {
			t.Errorf("with a full queue: %v", err)
		}
		if n := counted(t, r.ingester.metrics.shed); n != 1 {
			t.Errorf("%v are counted as shed", n)
		}
		release()
		for _, a := range answers {
			if got := <-a; got.err != nil {
				t.Error(got.err)
			}
		}
		if n := counted(t, r.ingester.metrics.facts); n != 3 {
			t.Errorf("%v facts are counted", n)
		}
	})
}

func TestOptions(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	f, err := fleet.New(fleet.Options{Store: &registry{}, SilentAfter: 1, Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	good := Options{Store: newMemory(), Fleet: f, Now: time.Now, Log: log}
	for name, spoil := range map[string]func(*Options){
		"no store": func(o *Options) { o.Store = nil }, "no fleet": func(o *Options) { o.Fleet = nil }, "no clock": func(o *Options) { o.Now = nil },
		"no logger": func(o *Options) { o.Log = nil }, "small queue": func(o *Options) { o.MaxBatch, o.MaxQueue = 10, 5 },
		"negative": func(o *Options) { o.MaxEntries = -1 },
	} {
		o := good
		spoil(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: made an ingester", name)
		}
	}
	m := newMemory()
	m.failing(func(string) error { return errDown })
	good.Store = m
	in, err := New(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Load(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("loading: %v", err)
	}
}

package gate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

func TestNextAnswersAtOnceWhenItDiffers(t *testing.T) {
	inBubble(t, false, func(t *testing.T, r *rig) {
		r.store.says("c1", "c1", commitB, schema.StatusInProgress)
		seen := r.ask(question())
		r.store.says("c1", "c1", commitA, schema.StatusSuccess)
		if a := <-r.next(t.Context(), question(), seen); a.err != nil || a.State != schema.Passed || a.after != 0 {
			t.Errorf("answered %+v after %s", a.Verdict, a.after)
		}
	})
}

func TestNextWakesUp(t *testing.T) {
	cases := map[string]struct {
		reason string
		wake   func(*rig)
		wakes  bool
	}{
		"Report":     {"A report of a cluster that counts.", func(r *rig) { r.gate.Stored(message("c1")) }, true},
		"Subscriber": {"A report of a new subscriber.", func(r *rig) { r.gate.Stored(append(message("x"), message("c9", apps)...)) }, true},
		"Cluster":    {"A cluster that changed.", func(r *rig) { r.gate.ClusterChanged("c9") }, true},
		"Return":     {"A registration, by way of the fleet.", func(r *rig) { r.register("c9", time.Hour) }, true},
		"Late": {"A late report changes nothing.", func(r *rig) {
			late := message("c1", apps)
			late[0].Late = true
			r.gate.Stored(late)
		}, false},
		"Other": {"Nor does a report of others.", func(r *rig) { r.gate.Stored(message("c9")) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, false, func(t *testing.T, r *rig) {
				r.store.says("c1", "c1", commitB, schema.StatusInProgress)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				got := r.next(ctx, question(), r.ask(question()))
				time.Sleep(time.Second)
				before, _ := r.store.count()
				r.store.says("c1", "c1", commitA, schema.StatusSuccess)
				tc.wake(r)
				time.Sleep(time.Second)
				after, _ := r.store.count()
				if (after > before) != tc.wakes {
					t.Errorf("%s It looked %d times", tc.reason, after-before)
				}
				a := <-got
				if a.err != nil || a.State != schema.Passed || tc.wakes != (a.after == time.Second) {
					t.Errorf("%s Answered %s after %s (%v)", tc.reason, a.State, a.after, a.err)
				}
			})
		})
	}
}

// A change that is stored while a look is going on, after the rows were read,
// is not lost.
func TestNextLosesNoWakeUp(t *testing.T) {
	inBubble(t, false, func(t *testing.T, r *rig) {
		r.store.says("c1", "c1", commitB, schema.StatusInProgress)
		seen := r.ask(question())
		r.store.mu.Lock()
		r.store.looking = func() {
			r.store.mu.Lock()
			r.store.looking = nil
			r.store.set("c1", "c1", commitA, schema.StatusSuccess)
			r.store.mu.Unlock()
			r.gate.Stored(message("c1"))
		}
		r.store.mu.Unlock()
		a := <-r.next(t.Context(), question(), seen)
		if a.State != schema.Passed || a.after != breath {
			t.Errorf("answered %s after %s", a.State, a.after)
		}
	})
}

// Nor is a cluster that no look found so far, when it is stored while one is
// going on.
func TestNextLosesNoNewCluster(t *testing.T) {
	for look, name := range []string{"FirstLook", "SecondLook"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, false, func(t *testing.T, r *rig) {
				r.store.says("c1", "c1", commitB, schema.StatusInProgress)
				seen := r.ask(question())
				n := 0
				r.store.mu.Lock()
				r.store.looking = func() {
					if n++; n != look+1 {
						return
					}
					r.store.says("c2", "c2", commitB, schema.StatusInProgress)
					r.gate.Stored(message("c2")) // without the endpoint: a removal, say
				}
				r.store.mu.Unlock()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				got := r.next(ctx, question(), seen)
				time.Sleep(time.Duration(look) * time.Second)
				r.gate.Stored(message("c1"))
				want := time.Duration(look)*time.Second + breath
				if a := <-got; a.Counts.Total != 2 || a.after != want {
					t.Errorf("answered %+v after %s, want %s", a.Counts, a.after, want)
				}
			})
		})
	}
}

// What changes by itself is told when it does, with no poll.
func TestNextAtItsTime(t *testing.T) {
	cases := map[string]struct {
		reason string
		status schema.Status
		commit string
		beat   time.Duration
		edit   func(*schema.Policy)
		state  schema.State
		after  time.Duration
	}{
		"Deadline": {"The deadline fails it.", schema.StatusInProgress, commitA, time.Hour, func(*schema.Policy) {}, schema.Failed, 10 * time.Minute},
		"Soak":     {"The soak passes it when it is over.", schema.StatusSuccess, commitA, time.Hour, func(p *schema.Policy) { p.MinSuccessTime = schema.Duration(90 * time.Second) }, schema.Passed, 90 * time.Second},
		"Silence":  {"Silence makes it unknown.", schema.StatusInProgress, commitA, 20 * time.Second, func(*schema.Policy) {}, schema.Waiting, 100 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, false, func(t *testing.T, r *rig) {
				r.register("c1", tc.beat)
				r.store.says("c1", "c1", tc.commit, tc.status)
				q := question(tc.edit)
				seen := r.ask(q)
				before, _ := r.store.count()
				a := <-r.next(t.Context(), q, seen)
				if a.err != nil || a.State != tc.state || a.after != tc.after {
					t.Errorf("%s Answered %s after %s (%v)", tc.reason, a.State, a.after, a.err)
				}
				if looks, _ := r.store.count(); looks-before != 2 {
					t.Errorf("%s It looked %d times, want at the start and at its time", tc.reason, looks-before)
				}
			})
		})
	}
}

func TestNextEnds(t *testing.T) {
	inBubble(t, false, func(t *testing.T, r *rig) {
		r.store.says("c1", "c1", commitB, schema.StatusInProgress)
		seen := r.ask(question())
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		got := r.next(ctx, question(), seen)
		r.store.says("c2", "c2", commitB, schema.StatusInProgress) // and nobody is woken
		if a := <-got; a.err != nil || a.after != 30*time.Second || a.Counts.Total != 2 {
			t.Errorf("when its time is over it answers %+v after %s (%v), not what holds then", a.Counts, a.after, a.err)
		}

		left, leave := context.WithCancel(t.Context())
		before, _ := r.store.count()
		got = r.next(left, question(), r.ask(question()))
		time.Sleep(time.Second)
		leave()
		if a := <-got; a.err != nil || a.Counts.Total != 2 {
			t.Errorf("one who left is answered %+v (%v)", a.Counts, a.err)
		}
		if looks, _ := r.store.count(); looks-before != 2 {
			t.Errorf("after a caller left it looked again: %d", looks-before)
		}
		r.store.fail("landing", errDown)
		last, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if a := <-r.next(last, question(), seen); a.err == nil {
			t.Error("an error while waiting is not told")
		}
		if n := len(r.gate.watchers.all); n != 0 {
			t.Errorf("%d watchers are left", n)
		}
	})
}

// A storm of reports is looked at ten times a second, not for each of them.
func TestNextBreathes(t *testing.T) {
	inBubble(t, false, func(t *testing.T, r *rig) {
		r.store.says("c1", "c1", commitB, schema.StatusInProgress)
		ctx, cancel := context.WithCancel(t.Context())
		seen := r.ask(question())
		before, _ := r.store.count()
		got := r.next(ctx, question(), seen)
		for range 1000 {
			time.Sleep(time.Millisecond)
			r.gate.Stored(message("c1"))
		}
		cancel()
		<-got
		if looks, _ := r.store.count(); looks-before > 12 {
			t.Errorf("it looked %d times in a second", looks-before)
		}
	})
}

// Where other hubs write, those who wait look by themselves.
func TestNextPollsASharedStore(t *testing.T) {
	inBubble(t, true, func(t *testing.T, r *rig) {
		r.store.says("c1", "c1", commitB, schema.StatusInProgress)
		got := r.next(t.Context(), question(), r.ask(question()))
		time.Sleep(10 * time.Second)
		r.store.says("c1", "c1", commitA, schema.StatusSuccess) // by another hub
		synctest.Wait()
		if a := <-got; a.State != schema.Passed || a.after > 10*time.Second+breath+pollInterval {
			t.Errorf("answered %s after %s", a.State, a.after)
		}
	})
}

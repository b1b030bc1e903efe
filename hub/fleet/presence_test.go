package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

func every(d time.Duration) func(*schema.Registration) {
	return func(r *schema.Registration) { r.HeartbeatInterval = schema.Duration(d) }
}

// FalseGreen 8: one missed heartbeat is no silence.
func TestSilence(t *testing.T) {
	s, c, seen := newMemory(), newClock(), &changes{}
	f := newFleet(t, s, c, changed(seen))
	epoch := register(t, f, "c1", every(10*time.Second))
	seen.take()
	silent := func() bool { m, _ := f.Get("c1"); return m.Silent }

	c.advance(50 * time.Second)
	if silent() {
		t.Error("silent at five intervals: more than five are")
	}
	c.advance(time.Second)
	if !silent() {
		t.Error("not silent after five intervals")
	}
	f.Seen("c1", epoch+1)
	f.Seen("never", 1)
	if !silent() || seen.take() != "" {
		t.Error("another epoch's agent ended the silence")
	}
	f.Seen("c1", epoch)
	if silent() || seen.take() != "c1" {
		t.Error("a return from silence is not told")
	}
	c.advance(time.Second)
	f.Seen("c1", epoch)
	if got := seen.take(); got != "" {
		t.Errorf("an ordinary heartbeat is told: %q", got)
	}
	before, _ := f.Get("c1")
	c.advance(-time.Hour)
	f.Seen("c1", epoch)
	if after, _ := f.Get("c1"); !after.LastSeen.Equal(before.LastSeen) {
		t.Error("a clock that went back took the last sign of life with it")
	}
	c.advance(2 * time.Hour)
	register(t, f, "c1", every(10*time.Second))
	if silent() {
		t.Error("a registration is a sign of life")
	}
}

// A hub that has just started has not listened: it calls nobody silent to an
// agent that waits for its turn, whatever the store says.
func TestSilentEpochNeedsListening(t *testing.T) {
	s, c := newMemory(), newClock()
	f := newFleet(t, s, c)
	register(t, f, "c1", every(10*time.Second))
	c.advance(51 * time.Second)
	if !f.SilentEpoch("c1") {
		t.Error("the hub listened for five intervals and heard nothing")
	}
	if f.SilentEpoch("never") {
		t.Error("nobody is silent")
	}
	c.advance(time.Hour)
	again := newFleet(t, s, c)
	if m, _ := again.Get("c1"); !m.Silent {
		t.Error("the restarted hub forgot when it was last heard of")
	}
	if again.SilentEpoch("c1") {
		t.Error("a hub that has just started calls the agent silent")
	}
	c.advance(50 * time.Second)
	if again.SilentEpoch("c1") {
		t.Error("it has listened for just five intervals")
	}
	c.advance(time.Second)
	if !again.SilentEpoch("c1") {
		t.Error("it has listened long enough")
	}
	again.Seen("c1", 1)
	if again.SilentEpoch("c1") {
		t.Error("it is heard of")
	}
}

// Run stores heartbeats, keeps those that could not be stored, and stores what
// is left when it ends.
func TestRunStoresHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newMemory(), &clock{}
		c.now = time.Now().UTC()
		f := newFleet(t, s, c)
		for _, name := range []string{"c1", "c2"} {
			register(t, f, name)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx) }()
		beat := func(name string) time.Time {
			c.advance(time.Second)
			f.Seen(name, 1)
			return c.Now()
		}
		first := beat("c1")
		time.Sleep(1500 * time.Millisecond)
		if b := s.beat("c1"); !b.ReceivedAt.Equal(first) || b.Epoch != 1 {
			t.Errorf("stored %+v, want %s", b, first)
		}
		put := s.beatsPut
		time.Sleep(3 * time.Second)
		if s.beatsPut != put {
			t.Error("nothing new was stored again")
		}
		s.fail(true)
		second := beat("c1")
		time.Sleep(2 * time.Second)
		s.fail(false)
		time.Sleep(1500 * time.Millisecond)
		if b := s.beat("c1"); !b.ReceivedAt.Equal(second) {
			t.Errorf("after a failure %+v is stored, want %s", b, second)
		}
		last := beat("c2")
		cancel()
		if err := <-done; err != nil {
			t.Errorf("it ended with %v", err)
		}
		if b := s.beat("c2"); !b.ReceivedAt.Equal(last) {
			t.Errorf("at the end %+v is stored, want %s", b, last)
		}
	})
}

// Of hubs that share a store each learns what the others hear.
func TestRunRefreshes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, seen := newMemory(), &clock{}, &changes{}
		c.now = time.Now().UTC()
		one, two := newFleet(t, s, c, shared), newFleet(t, s, c, shared, changed(seen))
		alone := newFleet(t, s, c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 3)
		for _, f := range []*Fleet{one, two, alone} {
			go func() { done <- f.Run(ctx) }()
		}
		register(t, one, "c1", every(time.Second))
		time.Sleep(2500 * time.Millisecond)
		if _, ok := two.Get("c1"); !ok || seen.take() != "c1" {
			t.Error("another hub's registration is not known, or not told")
		}
		c.advance(6 * time.Second)
		one.Seen("c1", 1)
		if m, _ := two.Get("c1"); !m.Silent {
			t.Error("known before it was stored")
		}
		time.Sleep(4 * time.Second)
		if m, _ := two.Get("c1"); m.Silent {
			t.Error("what another hub heard is not known")
		}
		if got := seen.take(); got != "c1" {
			t.Errorf("a return from silence that another hub heard is told as %q", got)
		}
		if _, ok := alone.Get("c1"); ok {
			t.Error("a hub that shares its store with nobody reads it again and again")
		}
		s.fail(true)
		time.Sleep(3 * time.Second)
		if _, ok := two.Get("c1"); !ok {
			t.Error("a store that is down takes the fleet away")
		}
		cancel()
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// A heartbeat of an epoch that is over does not count for the next one, even
// when it came later.
func TestOldHeartbeatsDoNotCount(t *testing.T) {
	s, c := newMemory(), newClock()
	f := newFleet(t, s, c)
	register(t, f, "c1")
	c.advance(time.Second)
	register(t, f, "c1")
	late := record.Heartbeat{Cluster: "c1", Epoch: 1, ReceivedAt: start.Add(time.Minute)}
	if err := s.PutHeartbeats(t.Context(), []record.Heartbeat{late}); err != nil {
		t.Fatal(err)
	}
	again := newFleet(t, s, c)
	if m, _ := again.Get("c1"); !m.LastSeen.Equal(start.Add(time.Second)) {
		t.Errorf("last seen %s, want the registration", m.LastSeen)
	}
}

func TestClustersGauge(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := newClock()
	f := newFleet(t, newMemory(), c, func(o *Options) { o.Registerer = reg })
	register(t, f, "c1", every(time.Second))
	register(t, f, "c2", every(time.Hour))
	register(t, f, "gone")
	if _, err := f.Decommission(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Minute)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
	}
	if got["live"] != 1 || got["silent"] != 1 || len(got) != 2 {
		t.Errorf("clusters by status: %v", got)
	}
}

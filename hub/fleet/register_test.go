package fleet

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/hub/store"
	"github.com/landfall-hub/landfall/schema"
)

func TestEpochsIncrease(t *testing.T) {
	s, c, seen := newMemory(), newClock(), &changes{}
	f := newFleet(t, s, c, changed(seen))
	if epoch := register(t, f, "c1"); epoch != 1 {
		t.Errorf("the first epoch is %d", epoch)
	}
	if got := seen.take(); got != "c1" {
		t.Errorf("changed: %q", got)
	}
	if epoch := register(t, f, "c1"); epoch != 2 {
		t.Errorf("the second epoch is %d", epoch)
	}
	if epoch := register(t, f, "c2"); epoch != 1 {
		t.Errorf("another cluster's first epoch is %d", epoch)
	}
	if _, err := f.Decommission(t.Context(), "c1"); err != nil {
		t.Fatal(err)
	}
	again := newFleet(t, s, c) // a restart
	if m, ok := again.Get("c1"); !ok || !m.Decommissioned || m.Epoch != 2 {
		t.Errorf("after a restart the decommissioned one is %+v", m)
	}
	if epoch := register(t, again, "c1"); epoch != 3 {
		t.Errorf("the epoch after a decommission and a restart is %d", epoch)
	}
	if m, _ := again.Get("c1"); m.Decommissioned {
		t.Error("a registration does not bring it back")
	}
}

func TestRegisterWhileTheStoreIsDown(t *testing.T) {
	s, c, seen := newMemory(), newClock(), &changes{}
	f := newFleet(t, s, c, changed(seen))
	s.fail(true)
	_, err := f.Register(t.Context(), "c1", registration())
	if code(t, err) != schema.CodeUnavailable || !errors.Is(err, errDown) {
		t.Errorf("the error is %v", err)
	}
	if _, ok := f.Get("c1"); ok || seen.take() != "" {
		t.Error("what is not stored is known")
	}
	s.fail(false)
	if epoch := register(t, f, "c1"); epoch != 1 {
		t.Errorf("the epoch afterwards is %d", epoch)
	}
	s.fail(true)
	if _, err := f.Decommission(t.Context(), "c1"); code(t, err) != schema.CodeUnavailable {
		t.Errorf("the error is %v", err)
	}
	if m, _ := f.Get("c1"); m.Decommissioned {
		t.Error("a decommission that is not stored holds")
	}
}

func TestRegisterRefusals(t *testing.T) {
	s, c := newMemory(), newClock()
	f := newFleet(t, s, c)
	if _, err := f.Decommission(t.Context(), "never"); code(t, err) != schema.CodeNotRegistered {
		t.Errorf("decommissioning nobody: %v", err)
	}
	if err := s.Register(t.Context(), []record.Registered{{Name: "old", Epoch: schema.MaxEpoch}}); err != nil {
		t.Fatal(err)
	}
	full := newFleet(t, s, c)
	if _, err := full.Register(t.Context(), "old", registration()); code(t, err) != schema.CodeConflict {
		t.Errorf("beyond the last epoch: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	full.registrar.turn <- struct{}{} // another one is storing
	if _, err := full.Register(ctx, "c1", registration()); code(t, err) != schema.CodeUnavailable {
		t.Errorf("a caller that left: %v", err)
	}
	<-full.registrar.turn
}

// Many agents start at once, some of them twice.
func TestRegisterAtOnce(t *testing.T) {
	f := newFleet(t, newMemory(), newClock())
	var mu sync.Mutex
	epochs := map[string]map[uint64]bool{}
	var group sync.WaitGroup
	for i := range 200 {
		name := []string{"a", "b", "c", "d", "e"}[i%5]
		group.Go(func() {
			epoch, err := f.Register(t.Context(), name, registration())
			mu.Lock()
			defer mu.Unlock()
			if err != nil || epochs[name][epoch] {
				t.Errorf("%s: epoch %d, twice or with %v", name, epoch, err)
			}
			if epochs[name] == nil {
				epochs[name] = map[uint64]bool{}
			}
			epochs[name][epoch] = true
		})
	}
	group.Wait()
	for name, all := range epochs {
		if m, _ := f.Get(name); len(all) != 40 || m.Epoch != 40 {
			t.Errorf("%s got %d epochs and is at %d", name, len(all), m.Epoch)
		}
	}
}

// Two hubs on one ClickHouse never issue one epoch twice, and each ends up with
// the highest one.
func TestTwoHubsRegisterAtOnce(t *testing.T) {
	url, c := enginetest.Shared(t), newClock()
	var fleets []*Fleet
	for i := range 2 {
		s, err := store.Open(store.Options{URL: url, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatalf("hub %d: %v", i, err)
		}
		fleets = append(fleets, newFleet(t, s, c, shared))
	}
	const rounds = 12
	var mu sync.Mutex
	issued := map[uint64]int{}
	var group sync.WaitGroup
	for range rounds {
		for _, f := range fleets {
			group.Go(func() {
				epoch, err := f.Register(t.Context(), "c1", registration())
				if err != nil && code(t, err) != schema.CodeOverloaded {
					t.Errorf("registering: %v", err)
				}
				if err == nil {
					mu.Lock()
					issued[epoch]++
					mu.Unlock()
				}
			})
		}
	}
	group.Wait()
	highest := uint64(0)
	for epoch, n := range issued {
		if n != 1 {
			t.Errorf("epoch %d was issued %d times", epoch, n)
		}
		highest = max(highest, epoch)
	}
	if len(issued) < rounds {
		t.Errorf("only %d of %d registrations were done", len(issued), 2*rounds)
	}
	for i, f := range fleets {
		if err := f.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m, _ := f.Get("c1"); m.Epoch < highest {
			t.Errorf("hub %d is at epoch %d, below %d", i, m.Epoch, highest)
		}
		if epoch := register(t, f, "c1"); epoch <= highest {
			t.Errorf("the next epoch, %d, is not above %d", epoch, highest)
		}
	}
}

func TestTakeOrders(t *testing.T) {
	at := func(epoch uint64, gone bool) record.Registered {
		return record.Registered{Name: "c1", Epoch: epoch, Decommissioned: gone, RegisteredAt: start}
	}
	cases := map[string]struct {
		reason        string
		before, after record.Registered
		taken         bool
	}{
		"Newer":          {"A newer epoch holds.", at(1, false), at(2, false), true},
		"Older":          {"An older one does not.", at(2, false), at(1, false), false},
		"Same":           {"The same says nothing new.", at(2, false), at(2, false), false},
		"Gone":           {"A decommission comes after its epoch.", at(2, false), at(2, true), true},
		"GoneStays":      {"A registration of its epoch came before it.", at(2, true), at(2, false), false},
		"GoneAgain":      {"Twice gone is once gone.", at(2, true), at(2, true), false},
		"GoneOlder":      {"A decommission of an older epoch is over.", at(3, false), at(2, true), false},
		"BackFromGone":   {"The next epoch brings it back.", at(2, true), at(3, false), true},
		"GoneOfTheNewer": {"A decommission of a newer epoch holds too.", at(2, false), at(3, true), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, newMemory(), newClock())
			f.take(tc.before)
			if got := f.take(tc.after); got != tc.taken {
				t.Errorf("%s Taken is %t", tc.reason, got)
			}
			want := tc.before
			if tc.taken {
				want = tc.after
			}
			if m, _ := f.Get("c1"); m.Epoch != want.Epoch || m.Decommissioned != want.Decommissioned {
				t.Errorf("%s It is %+v", tc.reason, m.Registered)
			}
		})
	}
}

func TestCurrent(t *testing.T) {
	s, c := newMemory(), newClock()
	f := newFleet(t, s, c)
	register(t, f, "c1")
	register(t, f, "c1")
	register(t, f, "gone")
	if _, err := f.Decommission(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		name  string
		epoch uint64
		want  schema.Code
	}{
		"Current": {"c1", 2, ""}, "Older": {"c1", 1, ""}, "Future": {"c1", 3, schema.CodeFutureEpoch},
		"Nobody": {"never", 1, schema.CodeNotRegistered}, "Gone": {"gone", 1, schema.CodeDecommissioned}, "GoneFuture": {"gone", 9, schema.CodeDecommissioned},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m, err := f.Current(t.Context(), tc.name, tc.epoch)
			if got := code(t, err); got != tc.want {
				t.Errorf("the code is %q, want %q", got, tc.want)
			}
			if err == nil && m.Epoch != 2 {
				t.Errorf("the member is %+v", m)
			}
		})
	}
	// What another hub issued is looked up where the memory does not know it.
	other := newFleet(t, s, c, shared)
	register(t, f, "c1")
	register(t, f, "new")
	if m, err := other.Current(t.Context(), "c1", 3); err != nil || m.Epoch != 3 {
		t.Errorf("another hub's epoch: %+v, %v", m, err)
	}
	if _, err := other.Current(t.Context(), "new", 1); err != nil {
		t.Errorf("another hub's cluster: %v", err)
	}
	s.fail(true)
	if _, err := other.Current(t.Context(), "never", 1); code(t, err) != schema.CodeUnavailable {
		t.Errorf("while the store is down nobody can know: %v", err)
	}
	if _, err := other.Current(t.Context(), "c1", 3); err != nil {
		t.Errorf("what is known needs no store: %v", err)
	}
}

func TestOptions(t *testing.T) {
	good := Options{Store: newMemory(), SilentAfter: 5, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	for name, spoil := range map[string]option{
		"no store":  func(o *Options) { o.Store = nil },
		"no clock":  func(o *Options) { o.Now = nil },
		"no logger": func(o *Options) { o.Log = nil },
		"silence":   func(o *Options) { o.SilentAfter = 0 },
	} {
		o := good
		spoil(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: made a fleet", name)
		}
	}
}

package store

import (
	"strconv"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// tableCounts are the rows of a store that readers see.
type tableCounts struct{ History, Reports, Reconcilers, Subscriptions, Clusters uint64 }

func count(t *testing.T, s *Store) tableCounts {
	t.Helper()
	current := "SELECT count() FROM {db}.current FINAL WHERE row = "
	return tableCounts{
		History: s.number(t, "SELECT count() FROM {db}.history FINAL"), Reports: s.number(t, "SELECT count() FROM {db}.reports FINAL"),
		Reconcilers: s.number(t, current+"'reconciler'"), Subscriptions: s.number(t, current+"'subscription'"), Clusters: s.number(t, current+"'cluster'"),
	}
}

// A batch is cut off after each of its inserts in turn. The next try of the same
// batch, and the same messages taken in anew after a crash, give one of everything.
func TestWriteIsCutOff(t *testing.T) {
	for _, hidden := range []string{"history", "reports", "current"} {
		for _, crash := range []bool{false, true} {
			name := "Before" + hidden + "ThenRetry"
			if crash {
				name = "Before" + hidden + "ThenCrash"
			}
			t.Run(name, func(t *testing.T) {
				s, url := openAt(t)
				messages := []*schema.Report{
					delta(1, reconciler("a", "a", commitA, schema.StatusSuccess), reconciler("b", "b", commitA, schema.StatusSuccess)),
					delta(2, reconciler("a", "a2", commitB, schema.StatusSuccess)),
					{Epoch: 1, Sequence: 3, Mode: schema.ModeDelta, ObservedAt: start, Removed: []schema.ObjectRef{{Kind: "Kustomization", Namespace: "flux-system", Name: "b"}}},
				}
				foldAll := func(state *fold.State) (batch []fold.Changes) {
					for _, m := range messages {
						batch = append(batch, state.Apply("c1", m, start))
					}
					return batch
				}
				batch := foldAll(fold.NewState())
				enginetest.Exec(t, url, "RENAME TABLE "+hidden+" TO hidden")
				if err := s.Write(t.Context(), batch); err == nil {
					t.Fatal("a batch was stored without the table " + hidden)
				}
				enginetest.Exec(t, url, "RENAME TABLE hidden TO "+hidden)
				if crash {
					states, err := s.Load(t.Context(), []string{"c1"})
					if err != nil {
						t.Fatal(err)
					}
					if v := states["c1"].Position.Version(); v != 0 {
						t.Fatalf("a batch that was cut off has come: its stream stands at %d", v)
					}
					batch = foldAll(states["c1"])
				}
				for range 2 {
					if err := s.Write(t.Context(), batch); err != nil {
						t.Fatal(err)
					}
				}
				want := tableCounts{History: 4, Reports: 3, Reconcilers: 1, Subscriptions: 1, Clusters: 1}
				if got := count(t, s); got != want {
					t.Errorf("there are %+v, want %+v", got, want)
				}
				if n := s.number(t, "SELECT countIf(change = 'late') FROM {db}.history FINAL"); n != 0 {
					t.Errorf("%d rows count as late", n)
				}
			})
		}
	}
}

// Messages of one cluster that are stored in one batch, and so lie in one part
// with their older rows, count as they would one by one; the same after a merge.
func TestOneBatchOfManyMessages(t *testing.T) {
	s, url := openAt(t)
	state := fold.NewState()
	var batch []fold.Changes
	for _, m := range []*schema.Report{
		delta(1, reconciler("a", "a", commitA, schema.StatusFailure), reconciler("moved", "a", commitA, schema.StatusSuccess), reconciler("gone", "a", commitA, schema.StatusSuccess)),
		delta(2, reconciler("a", "a", commitB, schema.StatusSuccess), reconciler("moved", "b", commitB, schema.StatusSuccess)),
		{Epoch: 1, Sequence: 3, Mode: schema.ModeDelta, ObservedAt: start, Removed: []schema.ObjectRef{{Kind: "Kustomization", Namespace: "flux-system", Name: "gone"}}},
	} {
		batch = append(batch, state.Apply("c1", m, start))
	}
	if err := s.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		if n := enginetest.Exec(t, url, "SELECT count() FROM system.parts WHERE active AND database = currentDatabase() AND table = 'current'"); n != "1\n" {
			t.Fatalf("%s: what is current is in %s parts", when, n)
		}
		want := tableCounts{History: 6, Reports: 3, Reconcilers: 2, Subscriptions: 2, Clusters: 1}
		if got := count(t, s); got != want {
			t.Errorf("%s: there are %+v, want %+v", when, got, want)
		}
		for folder, name := range map[string]string{"a": "a", "b": "moved"} {
			rows, err := s.States(t.Context(), record.StateQuery{Limit: 10, Under: []schema.Endpoint{apps(folder)}})
			if err != nil || len(rows) != 1 || rows[0].Ref.Name != name || rows[0].Status != schema.StatusSuccess || rows[0].Sources[0].Commit != commitB {
				t.Errorf("%s: %s is read by %+v (%v)", when, folder, rows, err)
			}
			l, err := landings(t, s).Landing(t.Context(), apps(folder), commitB)
			if err != nil || len(l.Subscribers) != 1 || l.Subscribers[0].Ref.Name != name || l.Subscribers[0].Status != schema.StatusSuccess {
				t.Errorf("%s: of %s a gate sees %+v (%v)", when, folder, l, err)
			}
		}
	}
	check("at once")
	states, err := s.Load(t.Context(), []string{"c1"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := states["c1"].Position, state.Position; got.Version() != want.Version() || got.Digest != want.Digest {
		t.Errorf("a hub that starts again stands at %+v, want %+v", got, want)
	}
	if got, want := len(states["c1"].Entries), len(state.Entries); got != want {
		t.Errorf("a hub that starts again knows %d, want %d", got, want)
	}
	for ref, e := range state.Entries {
		if again := states["c1"].Entries[ref]; again == nil || again.Digest != e.Digest {
			t.Errorf("a hub that starts again knows of %s %+v, want %+v", ref, again, e)
		}
	}
	enginetest.Exec(t, url, "OPTIMIZE TABLE current FINAL")
	check("after a merge")
}

func TestLateIsHistoryAlone(t *testing.T) {
	s, _ := openAt(t)
	state := fold.NewState()
	if err := s.Write(t.Context(), []fold.Changes{state.Apply("c1", delta(5, reconciler("a", "a", commitB, schema.StatusSuccess)), start)}); err != nil {
		t.Fatal(err)
	}
	late := delta(3, reconciler("a", "old", commitA, schema.StatusFailure), reconciler("gone", "g", commitA, schema.StatusSuccess))
	if seen, err := s.ReportSeen(t.Context(), "c1", 1, 3); seen || err != nil {
		t.Errorf("seen before it came: %t, %v", seen, err)
	}
	if err := s.Write(t.Context(), []fold.Changes{fold.Late("c1", late, start)}); err != nil {
		t.Fatal(err)
	}
	if seen, err := s.ReportSeen(t.Context(), "c1", 1, 3); !seen || err != nil {
		t.Errorf("not seen after it came: %t, %v", seen, err)
	}
	if seen, _ := s.ReportSeen(t.Context(), "c2", 1, 3); seen { // the first call tells
		t.Error("another cluster's message counts as seen")
	}
	want := tableCounts{History: 3, Reports: 2, Reconcilers: 1, Subscriptions: 1, Clusters: 1}
	if got := count(t, s); got != want {
		t.Errorf("there are %+v, want %+v", got, want)
	}
	rows, err := s.States(t.Context(), allStates())
	if err != nil || len(rows) != 1 || rows[0].Sources[0].Commit != commitB || rows[0].Sources[0].Path != "a" {
		t.Errorf("the current state is %+v (%v)", rows, err)
	}
}

// An insert of nothing asks nothing of ClickHouse.
func TestWriteNothing(t *testing.T) {
	s, _ := openAt(t)
	if err := s.Write(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if got := count(t, s); got != (tableCounts{}) {
		t.Errorf("there are %+v", got)
	}
	if err := s.insert(t.Context(), "history", 1, columnsOf{"no such column": []string{"x"}}); err == nil {
		t.Error("a column that the table has not was written")
	}
}

// Texts of few values come back as they were written, where a run of one ends
// and where there is none.
func TestTextsOfFewValues(t *testing.T) {
	s := open(t)
	all := []string{"", "a", "a", "", "b", "a", "", "", "b", "b"}
	names := make([]string, len(all))
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	columns := columnsOf{"name": names, "kind": later(all, func(text *string) string { return *text })}
	if err := s.insert(t.Context(), "current", len(all), columns); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := s.query(t.Context(), "test", "SELECT kind FROM {db}.current ORDER BY name", func(r driver.Rows) error {
		got = append(got, "")
		return r.Scan(&got[len(got)-1])
	})
	if diff := cmp.Diff(all, got); diff != "" || err != nil {
		t.Errorf("kinds came back changed (%v):\n%s", err, diff)
	}
}

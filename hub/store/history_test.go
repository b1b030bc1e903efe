package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// teller reports for clusters, one message after the other.
type teller struct {
	t      *testing.T
	s      *Store
	states map[string]*fold.State
}

func newTeller(t *testing.T, s *Store) *teller {
	t.Helper()
	return &teller{t, s, map[string]*fold.State{}}
}

// says stores a message of a cluster, observed and received at that time.
func (w *teller) says(cluster string, at time.Time, rs ...schema.Reconciler) {
	w.t.Helper()
	w.sends(cluster, at, &schema.Report{Mode: schema.ModeDelta, ObservedAt: at, Reconcilers: rs})
}

func (w *teller) sends(cluster string, at time.Time, r *schema.Report) {
	w.t.Helper()
	st, ok := w.states[cluster]
	if !ok {
		st = fold.NewState()
		w.states[cluster] = st
	}
	r.Epoch, r.Sequence = 1, st.Position.Sequence+1
	w.write(st.Apply(cluster, r, at))
}

func (w *teller) write(c fold.Changes) {
	w.t.Helper()
	if err := w.s.Write(w.t.Context(), []fold.Changes{c}); err != nil {
		w.t.Fatal(err)
	}
}

// told are history rows in short: minutes after the start, cluster, path, status.
func told(rows []record.HistoryRow) []string {
	var all []string
	for i := range rows {
		h := &rows[i]
		all = append(all, fmt.Sprintf("%d %s %s %s", int(h.ReceivedAt.Sub(start).Minutes()), h.Cluster, h.Endpoint.Path, h.Status))
	}
	return all
}

func minutes(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

func TestHistory(t *testing.T) {
	s := open(t)
	w := newTeller(t, s)
	const ok, bad = schema.StatusSuccess, schema.StatusFailure
	elsewhere := reconciler("r", "b", commitA, ok)
	elsewhere.Cluster = "spoke"
	// It may not do so any more, but it did.
	if err := s.Register(t.Context(), []record.Registered{{Name: "c2", Epoch: 1, ReportsFor: []string{"spoke"}}, {Name: "c2", Epoch: 2}}); err != nil {
		t.Fatal(err)
	}
	w.says("c1", minutes(0), reconciler("r", "a", commitA, ok))
	w.says("c1", minutes(90*24*60), reconciler("r", "a", commitA, bad)) // three months later
	w.says("c1", minutes(90*24*60+1), reconciler("r", "a", commitB, ok))
	w.says("c2", minutes(90*24*60+1), elsewhere)
	w.sends("c1", minutes(90*24*60+2), &schema.Report{Mode: schema.ModeDelta, ObservedAt: minutes(90*24*60 + 2), Removed: []schema.ObjectRef{{Kind: "Kustomization", Namespace: "flux-system", Name: "r"}}})
	const day90 = "12960"
	all := []string{day90 + "2 c1 a ", day90 + "1 c1 a success", day90 + "1 c2 b success", day90 + "0 c1 a failure", "0 c1 a success"}
	cases := map[string]struct {
		reason string
		q      record.HistoryQuery
		want   []string
	}{
		"All":         {"The newest first, however long it is between them.", record.HistoryQuery{}, all},
		"Under":       {"A folder's.", record.HistoryQuery{Under: []schema.Endpoint{apps("b")}}, all[2:3]},
		"Destination": {"Where it was deployed to.", record.HistoryQuery{Destinations: []string{"spoke"}}, all[2:3]},
		"Both":        {"Both.", record.HistoryQuery{Destinations: []string{"spoke"}, Under: []schema.Endpoint{apps("a")}}, nil},
		"Either":      {"Either.", record.HistoryQuery{Destinations: []string{"spoke"}, Under: []schema.Endpoint{apps("a")}, Either: true}, all},
		"EitherNone":  {"Nobody's place does not hide a folder.", record.HistoryQuery{Destinations: []string{}, Under: []schema.Endpoint{apps("b")}, Either: true}, all[2:3]},
		"Nowhere":     {"Nobody's place is empty.", record.HistoryQuery{Destinations: []string{}}, nil},
		"Status":      {"A status.", record.HistoryQuery{Status: bad}, all[3:4]},
		"From":        {"From is in it.", record.HistoryQuery{From: minutes(90*24*60 + 1)}, all[:3]},
		"To":          {"To is not.", record.HistoryQuery{To: minutes(90*24*60 + 1)}, all[3:]},
		"Between":     {"Nothing came in between.", record.HistoryQuery{From: minutes(1), To: minutes(90 * 24 * 60)}, nil},
		"Turned":      {"Nothing is before its beginning.", record.HistoryQuery{From: minutes(10), To: minutes(1)}, nil},
		"Limit":       {"The newest.", record.HistoryQuery{Limit: 2}, all[:2]},
		"After":       {"After a row of the same moment.", record.HistoryQuery{After: &record.HistoryKey{ReceivedAt: minutes(90*24*60 + 1), Endpoint: apps("a"), Cluster: "c1", Ref: schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "r"}, Epoch: 1, Sequence: 3}}, all[2:]},
		"AfterAll":    {"After the last.", record.HistoryQuery{After: &record.HistoryKey{ReceivedAt: start.Add(-time.Hour)}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.q.Limit == 0 {
				tc.q.Limit = 100
			}
			rows, err := s.History(t.Context(), tc.q)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, told(rows)); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
	rows, err := s.History(t.Context(), record.HistoryQuery{Limit: 2, Under: []schema.Endpoint{apps("a")}})
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	ref := schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "r"}
	gone, landed := minutes(90*24*60+2), minutes(90*24*60+1)
	want := []record.HistoryRow{
		{HistoryKey: record.HistoryKey{ReceivedAt: gone, Endpoint: apps("a"), Cluster: "c1", Ref: ref, Epoch: 1, Sequence: 4}, Change: schema.ChangeRemoved, ObservedAt: gone, Destination: "c1"},
		{HistoryKey: record.HistoryKey{ReceivedAt: landed, Endpoint: apps("a"), Cluster: "c1", Ref: ref, Epoch: 1, Sequence: 3}, Change: schema.ChangeReported, ObservedAt: landed, Destination: "c1",
			URL: "https://git.example/org/apps.git", GitRef: "dev", Path: "a", Commit: commitB, Attempted: commitB, Status: ok},
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

func TestHistoryOfNothing(t *testing.T) {
	if rows, err := open(t).History(t.Context(), record.HistoryQuery{Limit: 5}); err != nil || len(rows) != 0 {
		t.Errorf("%v, %v", rows, err)
	}
}

// Pages of any size hold each row once, while newer ones arrive; a message that
// was stored twice is one row, at its later time.
func TestHistoryPages(t *testing.T) {
	s := open(t)
	w := newTeller(t, s)
	again := func(at time.Time) { // as an agent does after a crash of the hub
		w.write(fold.NewState().Apply("twice", delta(1, reconciler("twice", "a", commitA, schema.StatusSuccess)), at))
	}
	again(minutes(3))
	for i := range 40 {
		// Many of one moment, some of them weeks ago.
		w.says(fmt.Sprint("c", i%4), minutes(i/8*20_000), reconciler(fmt.Sprint("r", i), fmt.Sprint("p", i%3), []string{commitA, commitB}[i%2], schema.StatusSuccess))
	}
	again(minutes(60_000))
	all, err := s.History(t.Context(), record.HistoryQuery{Limit: 100})
	if err != nil || len(all) != 41 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	if !slices.IsSortedFunc(all, func(a, b record.HistoryRow) int { return a.Compare(&b.HistoryKey) }) {
		t.Errorf("the rows are not in their order: %v", told(all))
	}
	if n := slices.IndexFunc(all, func(h record.HistoryRow) bool { return h.Cluster == "twice" }); !all[n].ReceivedAt.Equal(minutes(60_000)) {
		t.Errorf("what came twice stands at %s", all[n].ReceivedAt)
	}
	for _, size := range []int{1, 7, 25, 60} {
		var got []record.HistoryRow
		q := record.HistoryQuery{Limit: size}
		for page := 0; page < 100; page++ {
			rows, err := s.History(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rows...)
			if len(rows) < size {
				break
			}
			q.After = &rows[len(rows)-1].HistoryKey
			if page%8 == 0 {
				w.says("new", minutes(100_000+size*100+page), reconciler(fmt.Sprint("n", size, "-", page), "p1", commitA, schema.StatusSuccess))
			}
		}
		got = slices.DeleteFunc(got, func(h record.HistoryRow) bool { return h.Cluster == "new" })
		if d := cmp.Diff(told(all), told(got)); d != "" {
			t.Fatalf("pages of %d (-want +got):\n%s", size, d)
		}
	}
}

func TestSuccesses(t *testing.T) {
	s := open(t)
	w := newTeller(t, s)
	const ok, bad = schema.StatusSuccess, schema.StatusFailure
	for i, said := range []schema.Reconciler{
		reconciler("r", "a", commitA, ok), reconciler("r", "a", commitA, bad), reconciler("r", "a", commitA, ok), // one
		reconciler("r", "a", commitB, bad), reconciler("r", "a", commitB, ok), // two
		reconciler("r", "a/b", commitB, ok), // three, elsewhere
		reconciler("r", "other", commitA, ok),
		reconciler("r", "a", commitB, ok), // four
	} {
		w.says("c1", minutes(i), said)
	}
	w.says("c2", minutes(1), reconciler("r", "a", commitA, ok))
	w.says("c1", minutes(20), reconciler("q", "a", commitA, ok))
	late := delta(1, reconciler("r", "a", commitB, ok))
	late.Epoch = 0
	w.write(fold.Late("c1", late, minutes(9)))
	who := record.Reconciler{Cluster: "c1", Ref: schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "r"}}
	got, err := s.Successes(t.Context(), []record.Reconciler{who, {Cluster: "c2", Ref: schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "q"}}})
	if err != nil {
		t.Fatal(err)
	}
	ran := func(sequence uint64, path, commit string) record.Success {
		return record.Success{Running: record.Running{Endpoint: apps(path), Commit: commit}, Epoch: 1, Sequence: sequence}
	}
	want := map[record.Reconciler][]record.Success{who: {ran(1, "a", commitA), ran(5, "a", commitB), ran(6, "a/b", commitB), ran(7, "other", commitA), ran(8, "a", commitB)}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("successes (-want +got):\n%s", d)
	}
	if got, err := s.Successes(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("of nobody: %v, %v", got, err)
	}
}

package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/store"
	"github.com/landfall-hub/landfall/schema"
)

// hub is an ingester on ClickHouse.
type hub struct {
	*Ingester
	url   string
	store *store.Store
}

// now is a clock that stands still, the same for hubs that are to be compared.
func now() time.Time { return time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC) }

func startHub(t *testing.T, url string, maxEntries int, shared bool) *hub {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(store.Options{URL: url, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(fleet.Options{Store: s, SilentAfter: 5, Shared: shared, Now: now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	in, err := New(Options{Store: s, Fleet: f, Shared: shared, MaxEntries: maxEntries, Permanent: store.IsRejected, Now: now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &hub{Ingester: in, url: url, store: s}
}

// step is one message of a random stream.
type step struct {
	cluster string
	report  *schema.Report
}

// stream makes up what the agents of three clusters say, snapshots in parts,
// repeated and late messages among it.
func stream(seed uint64, n int) []step {
	g := rand.New(rand.NewPCG(seed, 3))
	last := map[string]*schema.Report{}
	var all []step
	for len(all) < n {
		cluster := fmt.Sprint("c", g.IntN(3))
		before, ok := last[cluster]
		if !ok {
			before = &schema.Report{Epoch: 1}
		}
		if before.Sequence > 0 && g.IntN(6) == 0 { // again, or again and older
			for i := range all {
				if s := all[len(all)-1-i]; s.cluster == cluster && g.IntN(2) == 0 {
					all = append(all, s)
					break
				}
			}
			continue
		}
		r := delta(1, before.Sequence+1)
		if g.IntN(9) == 0 {
			r.Sequence++ // one that will come late
			late := delta(1, before.Sequence+1, reconciler("late", commitA, schema.StatusFailure))
			all = append(all, step{cluster, r}, step{cluster, late})
			last[cluster] = r
			continue
		}
		for i := range g.IntN(4) {
			statuses := schema.Statuses()
			rec := reconciler(fmt.Sprint("r", i, g.IntN(2)), []string{commitA, commitB}[g.IntN(2)], statuses[g.IntN(len(statuses))])
			rec.Sources[0].Path = fmt.Sprint("p", g.IntN(3))
			if g.IntN(3) == 0 {
				rec.Reason, rec.Status = "ArtifactFailed", schema.StatusInProgress
			}
			r.Reconcilers = append(r.Reconcilers, rec)
		}
		switch open := before.Part < before.Parts; {
		case open && g.IntN(5) > 0:
			r.Mode, r.Kinds, r.Part, r.Parts = schema.ModeSnapshot, before.Kinds, before.Part+1, before.Parts
		case g.IntN(3) == 0:
			r.Mode, r.Kinds, r.Part, r.Parts = schema.ModeSnapshot, []string{"Kustomization"}, 1, 1+g.IntN(3)
		}
		last[cluster] = r
		all = append(all, step{cluster, r})
	}
	return all
}

// contents is all that readers see, in an order of its own.
func contents(t *testing.T, h *hub) map[string]string {
	t.Helper()
	return map[string]string{
		"current": enginetest.Exec(t, h.url, `SELECT row, repo, ref, path, cluster, kind, namespace, name, status, reason, since, applied_commit, latch, hex(digest), settled, version * (row = 'cluster'), stream, trouble
			FROM current FINAL ORDER BY row, repo, ref, path, cluster, kind, namespace, name FORMAT TSV`),
		"history": enginetest.Exec(t, h.url, `SELECT cluster, kind, name, epoch, sequence, change, path, status, applied_commit FROM history FINAL
			ORDER BY cluster, epoch, sequence, kind, name, change, path FORMAT TSV`),
		"history without FINAL": enginetest.Exec(t, h.url, "SELECT count() FROM history FORMAT TSV"),
		"reports":               enginetest.Exec(t, h.url, "SELECT cluster, epoch, sequence, mode FROM reports FINAL ORDER BY ALL FORMAT TSV"),
	}
}

func registerAll(t *testing.T, hubs ...*hub) {
	t.Helper()
	for i := range 3 {
		for _, h := range hubs {
			if _, err := h.Register(t.Context(), fmt.Sprint("c", i), schema.Registration{Kind: schema.ClusterHost, HeartbeatInterval: schema.Duration(time.Minute)}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What is kept in memory changes nothing: a hub that keeps next to nothing, and
// two that share one store and take turns, store what one with room for all does.
func TestMemoryChangesNothing(t *testing.T) {
	const seed, n = 5, 90
	steps := stream(seed, n)
	roomy := startHub(t, enginetest.Shared(t), 0, false)
	tight := startHub(t, enginetest.Shared(t), 1, false)
	url := enginetest.Shared(t)
	first := startHub(t, url, 0, true)
	registerAll(t, roomy, tight, first)
	second := startHub(t, url, 3, true)

	for i, s := range steps {
		turn := first
		if i%2 == 1 {
			turn = second
		}
		for name, h := range map[string]*hub{"roomy": roomy, "tight": tight, "shared": turn} {
			if _, err := h.Report(t.Context(), s.cluster, s.report); err != nil {
				t.Fatalf("%s, step %d, %s %d: %v", name, i, s.cluster, s.report.Sequence, err)
			}
		}
	}
	want := contents(t, roomy)
	for name, h := range map[string]*hub{"a hub without memory": tight, "two hubs that take turns": first} {
		if d := cmp.Diff(want, contents(t, h)); d != "" {
			t.Errorf("%s stored otherwise:\n%s", name, d)
		}
	}
	if len(want["current"]) < 500 || len(want["history"]) < 2000 {
		t.Errorf("too little is stored to tell: %d and %d bytes", len(want["current"]), len(want["history"]))
	}
	// A heartbeat finds the same digest wherever it is asked.
	for i := range 3 {
		cluster := fmt.Sprint("c", i)
		positions, err := first.store.Positions(t.Context(), []string{cluster})
		if err != nil {
			t.Fatal(err)
		}
		p := positions[cluster]
		for name, h := range map[string]*hub{"roomy": roomy, "tight": tight, "first": first, "second": second} {
			got, err := h.Heartbeat(t.Context(), cluster, schema.Heartbeat{Epoch: p.Epoch, Sequence: p.Sequence, Digest: p.Digest.String()})
			if err != nil || got.Resync {
				t.Errorf("%s asks %s for a snapshot: %+v, %v", name, cluster, got, err)
			}
		}
	}
}

// Reports that come at once are stored as they would be one by one.
func TestReportsAtOnce(t *testing.T) {
	h := startHub(t, enginetest.Shared(t), 0, false)
	registerAll(t, h)
	var group sync.WaitGroup
	for c := range 3 {
		for range 3 { // each message three times, from three connections
			group.Go(func() {
				for sequence := range uint64(10) {
					report := delta(1, sequence+1, reconciler("a", fmt.Sprintf("%040x", sequence), schema.StatusSuccess))
					if _, err := h.Report(t.Context(), fmt.Sprint("c", c), report); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	for sql, want := range map[string]string{
		"SELECT count() FROM history":                                             "30\n",
		"SELECT count() FROM reports":                                             "30\n",
		"SELECT count() FROM current FINAL WHERE row = 'reconciler'":              "3\n",
		"SELECT max(version) % 1000 FROM current FINAL WHERE row = 'cluster'":     fmt.Sprintln(schema.Version(1, 10) % 1000),
		"SELECT uniq(applied_commit) FROM current FINAL WHERE row = 'reconciler'": "1\n",
	} {
		if got := enginetest.Exec(t, h.url, sql); got != want {
			t.Errorf("%s: %swant %s", sql, got, want)
		}
	}
}

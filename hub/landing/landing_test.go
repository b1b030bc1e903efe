package landing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/hub/store"
	"github.com/landfall-hub/landfall/schema"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

var commits = []string{strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40)}

// world is a few clusters whose agents report at random.
type world struct {
	*rand.Rand
	states    map[string]*fold.State
	sequences map[string]uint64
	now       time.Time
}

func newWorld(seed uint64) *world {
	return &world{Rand: rand.New(rand.NewPCG(seed, 1)), states: map[string]*fold.State{}, sequences: map[string]uint64{}, now: time.Now().Truncate(time.Millisecond)}
}

func pickOne[T any](w *world, of ...T) T { return of[w.IntN(len(of))] }

func (w *world) name() string { return fmt.Sprint("r", w.IntN(5)) }

func (w *world) reconciler() schema.Reconciler {
	r := schema.Reconciler{
		Kind: pickOne(w, "Kustomization", "Application"), Namespace: "flux-system", Name: w.name(), Status: pickOne(w, schema.Statuses()...),
		Reason: pickOne(w, "", "ArtifactFailed", "Bad"), Message: pickOne(w, "", "it broke"), Cluster: pickOne(w, "", "", "spoke"),
		SourceError: pickOne(w, "", "", "no such host"),
	}
	for range 1 + w.IntN(2) {
		r.Sources = append(r.Sources, schema.Source{
			Type: schema.SourceGit, URL: "https://git.example/org/" + pickOne(w, "apps", "platform"), Ref: pickOne(w, "dev", "dev", "prod"), Path: pickOne(w, "", "drone", "drone/x", "large"),
		})
		r.Applied = append(r.Applied, pickOne(w, "", "dev@sha1:"+pickOne(w, commits...)))
		r.Attempted = append(r.Attempted, pickOne(w, "", "dev@sha1:"+pickOne(w, commits...)))
	}
	if w.IntN(8) == 0 {
		r.Sources, r.Applied, r.Attempted, r.SourceError = []schema.Source{}, nil, nil, "its source is not there"
	}
	if w.IntN(2) == 0 {
		r.Owner = &schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: w.name()}
	}
	return r
}

// batch is what a few messages change.
func (w *world) batch() []fold.Changes {
	var all []fold.Changes
	for range 1 + w.IntN(4) {
		all = append(all, w.message())
	}
	return all
}

func (w *world) message() fold.Changes {
	cluster := fmt.Sprint("c", w.IntN(3))
	if w.states[cluster] == nil {
		w.states[cluster] = fold.NewState()
	}
	w.sequences[cluster]++
	w.now = w.now.Add(time.Second)
	r := &schema.Report{Epoch: 1, Sequence: w.sequences[cluster], Mode: schema.ModeDelta, ObservedAt: w.now}
	held := map[schema.ObjectRef]bool{}
	for range w.IntN(4) {
		if rec := w.reconciler(); !held[rec.Ref()] {
			held[rec.Ref()] = true
			r.Reconcilers = append(r.Reconcilers, rec)
		}
	}
	switch w.IntN(4) {
	case 0:
		r.Mode, r.Kinds = schema.ModeSnapshot, []string{"Application", "Kustomization"}
	case 1:
		if ref := (schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: w.name()}); !held[ref] {
			r.Removed = []schema.ObjectRef{ref}
		}
	}
	if w.IntN(6) == 0 {
		r.UnlistedKinds = pickOne(w, []string{}, []string{"Application"})
	}
	r.Normalize()
	if w.IntN(10) == 0 {
		return fold.Late(cluster, r, w.now)
	}
	return w.states[cluster].Apply(cluster, r, w.now)
}

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(store.Options{URL: enginetest.Shared(t), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func newLandings(t *testing.T, opts Options) *Landings {
	t.Helper()
	k, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// sorted is a landing in an order of its own, without what the clusters that
// nobody reports from say.
func sorted(l record.Landing) record.Landing {
	slices.SortFunc(l.Subscribers, func(a, b compliance.Subscriber) int {
		return strings.Compare(a.Reporter.Name+a.Ref.String(), b.Reporter.Name+b.Ref.String())
	})
	for i := range l.Subscribers {
		for j := range l.Subscribers[i].Sources {
			if src := &l.Subscribers[i].Sources[j]; len(src.Runs) == 0 {
				src.Runs = nil
			}
		}
	}
	for _, c := range l.Clusters {
		if len(c.Blocked) == 0 {
			c.Blocked = nil
		}
		for i := range c.Blocked {
			c.Blocked[i].Reason = strings.Clone(c.Blocked[i].Reason)
		}
	}
	return l
}

// However reports come and whatever is asked, memory says what the store says.
func TestMemoryEqualsStore(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w, s := newWorld(seed), openStore(t)
			remembers := newLandings(t, Options{Store: s, MaxRows: 20}) // some are forgotten, some never fit
			asks := newLandings(t, Options{Store: s, Shared: true})
			hits := 0
			for step := range 30 {
				b := w.batch()
				remembers.Storing()
				if err := s.Write(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				if w.IntN(8) == 0 {
					remembers.Unsure()
				} else {
					remembers.Stored(b)
				}
				for range 2 {
					e := schema.Endpoint{Repo: "git.example/org/" + pickOne(w, "apps", "platform"), Ref: pickOne(w, "dev", "prod"), Path: pickOne(w, "", "drone", "drone/x")}
					commit := pickOne(w, commits...)
					if _, ok := remembers.memory.refs[refKey{e.Repo, e.Ref}]; ok {
						hits++
					}
					got, err := remembers.Landing(t.Context(), e, commit)
					if err != nil {
						t.Fatal(err)
					}
					want, err := asks.Landing(t.Context(), e, commit)
					if err != nil {
						t.Fatal(err)
					}
					if d := cmp.Diff(sorted(want), sorted(got)); d != "" {
						t.Fatalf("step %d, %v at %.4s (-store +memory):\n%s", step, e, commit, d)
					}
				}
			}
			if hits < 10 {
				t.Errorf("memory was asked %d times only", hits)
			}
		})
	}
}

// slowStore is a store whose looks a test holds up.
type slowStore struct {
	rows     []*record.Subscription
	troubles map[string]record.Trouble
	err      error
	looks    int
	// looking is called after the rows are read.
	looking func()
}

func (s *slowStore) Subscriptions(context.Context, schema.Endpoint, string) ([]*record.Subscription, error) {
	s.looks++
	rows := slices.Clone(s.rows)
	if s.looking != nil {
		s.looking()
	}
	return rows, s.err
}

func (s *slowStore) SubscriptionsAtMost(context.Context, string, string) (int, error) {
	return len(s.rows), s.err
}

func (s *slowStore) Links(context.Context, *record.Landing) error { return nil }

func (s *slowStore) Troubles(context.Context) (map[string]record.Trouble, error) {
	all := map[string]record.Trouble{}
	for name, t := range s.troubles {
		all[name] = t
	}
	return all, s.err
}

var drone = schema.Endpoint{Repo: "git.example/org/apps", Ref: "dev", Path: "drone"}

// says is a batch of one message: the root of a cluster has the status, and a
// child below it too.
func says(state *fold.State, sequence uint64, root, child schema.Status) []fold.Changes {
	at := func(name, path string, status schema.Status) schema.Reconciler {
		return schema.Reconciler{
			Kind: "Kustomization", Namespace: "flux-system", Name: name, Status: status,
			Sources: []schema.Source{{Type: schema.SourceGit, URL: "https://git.example/org/apps", Ref: "dev", Path: path}},
			Applied: []string{"dev@sha1:" + commits[0]}, Attempted: []string{"dev@sha1:" + commits[0]},
		}
	}
	leaf := at("leaf", "leaf", child)
	leaf.Sources[0].URL = "https://git.example/org/other"
	leaf.Owner = &schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "root"}
	r := &schema.Report{Epoch: 1, Sequence: sequence, Mode: schema.ModeDelta, ObservedAt: time.Now(), Reconcilers: []schema.Reconciler{at("root", "drone", root), leaf}}
	r.Normalize()
	return []fold.Changes{state.Apply("c1", r, time.Now())}
}

// stored is what a batch leaves in the store.
func (s *slowStore) write(batch []fold.Changes) {
	for i := range batch {
		u := &batch[i].Upserts[0]
		s.rows = []*record.Subscription{record.SubscriptionOf("c1", u, 0)}
		s.troubles = map[string]record.Trouble{"c1": {Blocked: batch[i].Blocked}}
	}
}

func (s *slowStore) land(t *testing.T, k *Landings) (root schema.Status, blocked int) {
	t.Helper()
	l, err := k.Landing(t.Context(), drone, commits[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Subscribers) != 1 {
		t.Fatalf("subscribers: %+v", l.Subscribers)
	}
	return l.Subscribers[0].Status, len(l.Clusters["c1"].Blocked)
}

// A batch that is stored while a ref is being read is in what is kept, however
// much of it was read.
func TestStoredWhileLoading(t *testing.T) {
	state, s := fold.NewState(), &slowStore{}
	k := newLandings(t, Options{Store: s})
	s.write(says(state, 1, schema.StatusInProgress, schema.StatusInProgress))
	next := says(state, 2, schema.StatusSuccess, schema.StatusFailure)
	s.looking = func() { // the rows of before are read; then this is stored
		k.Storing()
		s.write(next)
		k.Stored(next)
	}
	root, blocked := s.land(t, k)
	if root != schema.StatusSuccess || blocked != 1 {
		t.Errorf("the root is %s with %d below it that are not well", root, blocked)
	}
	if s.land(t, k); s.looks != 1 {
		t.Errorf("the store was asked %d times", s.looks)
	}
}

// A batch that is written but not known to be stored may have been read in
// part: subscribers of it beside troubles of before would be a false green.
func TestReadWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state, s := fold.NewState(), &slowStore{}
		k := newLandings(t, Options{Store: s})
		s.write(says(state, 1, schema.StatusInProgress, schema.StatusInProgress))
		next := says(state, 2, schema.StatusSuccess, schema.StatusFailure)
		k.Storing()
		s.rows = []*record.Subscription{record.SubscriptionOf("c1", &next[0].Upserts[0], 0)} // its troubles are not seen yet
		s.troubles = map[string]record.Trouble{}
		var answered atomic.Int64
		for range 3 {
			go func() {
				if root, blocked := s.land(t, k); root != schema.StatusSuccess || blocked != 1 {
					t.Errorf("the root is %s with %d below it that are not well", root, blocked)
				}
				answered.Add(1)
			}()
			synctest.Wait()
		}
		if answered.Load() > 0 {
			t.Error("answered from what may be half a report")
		}
		k.Stored(next)
		synctest.Wait()
		if answered.Load() != 3 || s.looks != 1 {
			t.Errorf("%d of 3 were answered, by %d looks at the store", answered.Load(), s.looks)
		}
	})
}

func TestUnsure(t *testing.T) {
	state, s := fold.NewState(), &slowStore{}
	k := newLandings(t, Options{Store: s})
	s.write(says(state, 1, schema.StatusSuccess, schema.StatusSuccess))
	s.land(t, k)
	k.Storing()
	s.write(says(state, 2, schema.StatusFailure, schema.StatusFailure)) // it is there, and nobody was told
	k.Unsure()
	if root, _ := s.land(t, k); root != schema.StatusFailure {
		t.Errorf("the root is %s", root)
	}
	// The same while a ref is being read: nothing of it may be kept.
	k.Storing()
	k.Unsure()
	s.looking = func() {
		s.looking = nil
		k.Storing()
		s.write(says(state, 3, schema.StatusSuccess, schema.StatusSuccess))
		k.Unsure()
	}
	if root, _ := s.land(t, k); root != schema.StatusSuccess {
		t.Errorf("the root is %s", root)
	}
	if root, _ := s.land(t, k); root != schema.StatusSuccess {
		t.Errorf("later the root is %s", root)
	}
}

// Those who ask while a ref is being read wait for it; when its reader fails or
// leaves, they ask themselves.
func TestErrorsOfALoad(t *testing.T) {
	state, s := fold.NewState(), &slowStore{}
	k := newLandings(t, Options{Store: s})
	s.write(says(state, 1, schema.StatusSuccess, schema.StatusSuccess))
	s.err = errors.New("down")
	if _, err := k.Landing(t.Context(), drone, commits[0]); !errors.Is(err, s.err) {
		t.Errorf("the error is %v", err)
	}
	s.err = nil
	k.Storing()
	ctx, cancel := context.WithCancelCause(t.Context())
	left := errors.New("the caller left")
	s.looking = func() { cancel(left) }
	if _, err := k.Landing(ctx, drone, commits[0]); !errors.Is(err, left) {
		t.Errorf("the error is %v", err)
	}
	k.Stored(nil)
	s.looking = nil
	if root, _ := s.land(t, k); root != schema.StatusSuccess {
		t.Errorf("the root is %s", root)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{"no store": {}, "negative": {Store: &slowStore{}, MaxRows: -1}} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: made landings", name)
		}
	}
}

// Questions about refs that nobody reads do not fill the memory.
func TestRefsAreBounded(t *testing.T) {
	k := newLandings(t, Options{Store: &slowStore{}, MaxRows: 5})
	for i := range 50 {
		if _, err := k.Landing(t.Context(), schema.Endpoint{Repo: "git.example/org/apps", Ref: fmt.Sprint("branch-", i)}, commits[0]); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(k.memory.refs); n == 0 || n > 5 {
		t.Errorf("%d refs are kept", n)
	}
}

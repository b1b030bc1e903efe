package gate

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unique"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

const (
	commitA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	commitB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

var (
	apps    = schema.Endpoint{Repo: "git.example/org/apps", Ref: "dev", Path: "drone"}
	errDown = errors.New("the store is down")
)

// board is a store of what a test writes on it.
type board struct {
	mu   sync.Mutex
	subs []compliance.Subscriber
	// reporters are names by subscriber.
	reporters []string
	progress  map[string]compliance.Progress
	near      []schema.NearMiss
	// asked counts the look-ups of near misses and progress.
	asked map[string]int
	puts  int
	looks int
	err   map[string]error
	// looking, when set, is called in the middle of each look, after the rows
	// are read.
	looking func()
}

func newBoard() *board {
	return &board{progress: map[string]compliance.Progress{}, err: map[string]error{}, asked: map[string]int{}}
}

func (b *board) Landing(context.Context, schema.Endpoint, string) (record.Landing, error) {
	b.mu.Lock()
	l := record.Landing{Clusters: map[string]*compliance.Cluster{}}
	for i, s := range b.subs {
		name := b.reporters[i]
		if l.Clusters[name] == nil {
			l.Clusters[name] = &compliance.Cluster{Name: name}
		}
		s.Reporter = l.Clusters[name]
		s.Sources = slices.Clone(s.Sources)
		l.Subscribers = append(l.Subscribers, s)
	}
	b.looks++
	looking, err := b.looking, b.err["landing"]
	b.mu.Unlock()
	if looking != nil {
		looking()
	}
	return l, err
}

func key(e schema.Endpoint, commit, policy string) string {
	return e.Repo + e.Ref + e.Path + commit + policy
}

func (b *board) NearMisses(context.Context, schema.Endpoint) ([]schema.NearMiss, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked["near"]++
	return b.near, b.err["near"]
}

func (b *board) Progress(_ context.Context, e schema.Endpoint, commit, policy string) (compliance.Progress, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked["progress"]++
	return b.progress[key(e, commit, policy)], b.err["progress"]
}

func (b *board) PutProgress(_ context.Context, e schema.Endpoint, commit, policy string, p compliance.Progress, _ time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.err["put"]; err != nil {
		return err
	}
	b.puts++
	p.FirstAsked, p.RoseAt = p.FirstAsked.Truncate(time.Millisecond), p.RoseAt.Truncate(time.Millisecond) // as columns do
	b.progress[key(e, commit, policy)] = p
	return nil
}

func (b *board) fail(call string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err[call] = err
}

func (b *board) count() (looks, puts int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.looks, b.puts
}

// says sets what the reconciler of a cluster says, at a commit since now.
func (b *board) says(cluster, destination, commit string, status schema.Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(cluster, destination, commit, status)
}

func (b *board) set(cluster, destination, commit string, status schema.Status) {
	run := compliance.Run{Commit: commit}
	if status == schema.StatusSuccess {
		run.SuccessAt, run.SteadyAt = time.Now().UTC(), time.Now().UTC()
	}
	sub := compliance.Subscriber{
		Ref: schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "root"}, DestinationName: destination, Asked: true, Status: status,
		Sources: []compliance.Source{{Path: "drone", Applied: commit, Attempted: commit, Runs: []compliance.Run{run}}},
	}
	if i := slices.Index(b.reporters, cluster); i >= 0 {
		b.subs[i] = sub
		return
	}
	b.subs, b.reporters = append(b.subs, sub), append(b.reporters, cluster)
}

// registry is the least store that a fleet needs.
type registry struct {
	mu   sync.Mutex
	rows []record.Registered
	err  error
}

func (r *registry) Registered(_ context.Context, names []string) ([]record.Registered, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []record.Registered
	for _, row := range r.rows {
		if names == nil || slices.Contains(names, row.Name) {
			found = append(found, row)
		}
	}
	return found, r.err
}

func (r *registry) Register(_ context.Context, all []record.Registered) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, all...)
	return r.err
}

func (r *registry) Contested(context.Context, []record.Registered) ([]string, error) { return nil, nil }
func (r *registry) Heartbeats(context.Context) ([]record.Heartbeat, error)           { return nil, nil }
func (r *registry) PutHeartbeats(context.Context, []record.Heartbeat) error          { return nil }

// rig is a gate in a synctest bubble, with c1 and c2 registered.
type rig struct {
	t        *testing.T
	store    *board
	registry *registry
	fleet    *fleet.Fleet
	gate     *Gate
	shared   bool
}

func inBubble(t *testing.T, shared bool, test func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, store: newBoard(), registry: &registry{}, shared: shared}
		log := slog.New(slog.DiscardHandler)
		changed := func(name string) {
			if r.gate != nil {
				r.gate.ClusterChanged(name)
			}
		}
		var err error
		r.fleet, err = fleet.New(fleet.Options{Store: r.registry, SilentAfter: 5, Shared: shared, Now: time.Now, Log: log, Changed: changed})
		if err != nil {
			t.Fatal(err)
		}
		r.register("c1", time.Hour)
		r.register("c2", time.Hour)
		r.restart()
		test(t, r)
	})
}

// restart makes a gate that knows nothing but what is stored.
func (r *rig) restart() {
	r.t.Helper()
	g, err := New(Options{
		Landings: r.store, Store: r.store, Fleet: r.fleet, Rules: compliance.DefaultRules(), Graph: func(string) compliance.Graph { return compliance.Equality{} },
		Shared: r.shared, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.gate = g
}

func (r *rig) register(name string, heartbeat time.Duration) {
	r.t.Helper()
	_, err := r.fleet.Register(r.t.Context(), name, schema.Registration{
		Kind: schema.ClusterKubernetes, HeartbeatInterval: schema.Duration(heartbeat), Labels: map[string]string{"name": name},
		Memberships: []schema.Membership{{Environment: "dev", Type: "type-of-" + name}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func question(edits ...func(*schema.Policy)) schema.Question {
	q := schema.Question{Repo: "https://git.example/org/apps", Ref: "dev", Path: "drone", Commit: commitA, Endpoint: apps, ID: commitA, Policy: schema.DefaultPolicy()}
	for _, edit := range edits {
		edit(&q.Policy)
	}
	return q
}

func (r *rig) ask(q schema.Question) schema.Verdict {
	r.t.Helper()
	v, err := r.gate.Ask(r.t.Context(), q)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// answer is what a Next in the background came to, and when.
type answer struct {
	schema.Verdict
	err   error
	after time.Duration
}

func (r *rig) next(ctx context.Context, q schema.Question, seen schema.Verdict) <-chan answer {
	out, begun := make(chan answer, 1), time.Now()
	go func() {
		v, err := r.gate.Next(ctx, q, seen)
		out <- answer{v, err, time.Since(begun)}
	}()
	synctest.Wait()
	return out
}

// message is what ingest says of a stored message of a cluster.
func message(cluster string, endpoints ...schema.Endpoint) []fold.Changes {
	c := fold.Changes{Cluster: cluster}
	for _, e := range endpoints {
		c.Upserts = append(c.Upserts, fold.Upsert{Entry: fold.Entry{Endpoints: []unique.Handle[schema.Endpoint]{unique.Make(e)}}})
	}
	return []fold.Changes{c}
}

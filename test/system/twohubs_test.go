package system

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/internal/polltest"
	"github.com/landfall-hub/landfall/schema"
)

// TestTwoHubsOnOneStoreAreOneHub runs two hubs on one ClickHouse: what one is
// told the other knows.
func TestTwoHubsOnOneStoreAreOneHub(t *testing.T) {
	t.Parallel()
	clickhouse := startEngine(t, t.TempDir())
	hubs := []*hub{newHub(t, "--clickhouse-url", clickhouse), newHub(t, "--clickhouse-url", clickhouse)}
	repo := newRepo()
	a := newAgent(t, hubs[0])
	clients := []func(){}
	for _, h := range hubs {
		c := h.client(t)
		clients = append(clients, func() { a.client = c })
	}
	via := func(n int) { clients[n%2]() }
	one, two := hubs[0].client(t), hubs[1].client(t)
	app := kustomization("app", repo, "app")

	t.Run("a new cluster's report at one counts at the other", func(t *testing.T) {
		for n := range 5 {
			b, repo := newAgent(t, hubs[n%2]), newRepo()
			b.lists(t, at(kustomization("new", repo, ""), commit(1), schema.StatusFailure))
			if v := ask(t, hubs[(n+1)%2].client(t), question(repo, "", commit(1), "zero_targets", "allow")); v.State != schema.Failed {
				t.Errorf("round %d: want the failure to be seen: %s", n, show(v))
			}
		}
	})
	t.Run("messages of one cluster alternate", func(t *testing.T) {
		for n := range 30 {
			via(n)
			app = at(app, commit(n), schema.StatusSuccess)
			k := kustomization(fmt.Sprintf("k-%d", n), repo, "other")
			a.says(t, app, k)
			if v := ask(t, hubs[n%2].client(t), question(repo, "app", commit(n))); v.State != schema.Passed {
				t.Fatalf("round %d: the hub that acknowledged says %s", n, show(v))
			}
			if v := ask(t, hubs[(n+1)%2].client(t), question(repo, "app", commit(n))); n > 0 && v.State != schema.Passed {
				t.Fatalf("round %d: the other hub says %s", n, show(v))
			}
		}
		for i, h := range hubs {
			if n := total(t, h.client(t), a.cluster); n != 31 {
				t.Errorf("hub %d counts %d reconcilers, want 31", i, n)
			}
		}
		via(0)
		a.lists(t, app)
		via(1)
		a.says(t, kustomization("late", repo, "late"))
		for i, h := range hubs {
			if rows := stateRows(t, h.client(t), a.cluster); len(rows) != 2 {
				t.Errorf("hub %d lists %v after a snapshot of one and one more", i, rows)
			}
		}
	})
	t.Run("a repeated message through the other hub is stored once", func(t *testing.T) {
		again := schema.Report{Sequence: a.sequence + 1, Mode: schema.ModeDelta, Reconcilers: []schema.Reconciler{kustomization("again", repo, "again")}}
		a.sequence++
		for n := range 6 {
			via(n)
			a.send(t, again)
		}
		if n := count(t, clickhouse, "SELECT count() FROM landfall.history WHERE name = 'again'"); n != 1 {
			t.Errorf("history has it %d times", n)
		}
	})
	t.Run("who waits at one hears what the other was told", func(t *testing.T) {
		// Looked at again by themselves: no reason to hurry.
		waits := later(t, one, question(repo, "app", commit(100)), patience)
		s := open(t, one, question(repo, "app", commit(100)))
		if v := s.next(); v.State != schema.Waiting {
			t.Fatalf("want waiting: %s", show(v))
		}
		polltest.Until(t, "both wait", func() bool { return gauge(t, hubs[0], "landfall_gate_watchers") == 2 })
		via(1)
		a.says(t, at(app, commit(100), schema.StatusSuccess))
		told := time.Now()
		v := <-waits
		expect(t, v.verdict, schema.Passed, "")
		t.Logf("heard %s after the other hub's acknowledgement", v.at.Sub(told))
		expect(t, s.next(), schema.Passed, "")
	})
	t.Run("epochs increase strictly, whoever issues them", func(t *testing.T) {
		var mu sync.Mutex
		issued := map[uint64]bool{a.epoch: true}
		last := a.epoch
		for n := range 10 {
			via(n)
			a.register(t)
			if a.epoch <= last {
				t.Errorf("epoch %d after %d", a.epoch, last)
			}
			last = a.epoch
			issued[last] = true
		}
		var all sync.WaitGroup
		for n := range 10 {
			c := []*agent{{client: one, cluster: a.cluster}, {client: two, cluster: a.cluster}}[n%2]
			all.Go(func() {
				epoch, err := c.client.Register(t.Context(), c.cluster, schema.Registration{})
				mu.Lock()
				defer mu.Unlock()
				if err != nil || issued[epoch] || epoch <= last {
					t.Errorf("at the same time: epoch %d (after %d, issued twice: %t): %v", epoch, last, issued[epoch], err)
				}
				issued[epoch] = true
			})
		}
		all.Wait()
	})
	t.Run("an older epoch is an older one at both", func(t *testing.T) {
		via(0)
		a.register(t)
		old := a.epoch
		via(1)
		a.register(t)
		for n, h := range hubs {
			answer, err := h.client(t).Report(t.Context(), a.cluster, &schema.Report{
				Epoch: old, Sequence: uint64(500 + n), Mode: schema.ModeSnapshot, Kinds: []string{"Kustomization"}, ObservedAt: time.Now().UTC(),
			})
			if err != nil || answer.CurrentEpoch != a.epoch {
				t.Errorf("hub %d answers %+v, %v; the current epoch is %d", n, answer, err, a.epoch)
			}
			if rows := stateRows(t, h.client(t), a.cluster); len(rows) == 0 {
				t.Errorf("hub %d let an older epoch's snapshot remove everything", n)
			}
		}
	})
	t.Run("a decommission at one is known at the other", func(t *testing.T) {
		if err := one.Decommission(t.Context(), a.cluster); err != nil {
			t.Fatal(err)
		}
		polltest.Until(t, "the other hub lists it no more", func() bool {
			row, err := two.Cluster(t.Context(), a.cluster)
			return err == nil && row.Status == schema.ClusterDecommissioned
		})
		_, err := two.Heartbeat(t.Context(), a.cluster, schema.Heartbeat{Epoch: a.epoch})
		refused(t, err, http.StatusGone, schema.CodeDecommissioned)
	})
	t.Run("a token made at one is needed at both", func(t *testing.T) {
		token, err := one.CreateToken(t.Context(), schema.TokenRequest{Role: schema.RoleAdmin})
		if err != nil {
			t.Fatal(err)
		}
		polltest.Until(t, "the other hub asks for it", func() bool {
			status, _ := request(t, http.MethodGet, hubs[1].url+"/api/v1/clusters", "", "")
			return status == http.StatusUnauthorized
		})
		if status, _ := request(t, http.MethodGet, hubs[1].url+"/api/v1/clusters", token.Secret, ""); status != http.StatusOK {
			t.Errorf("the other hub answers the new token with %d", status)
		}
	})
}

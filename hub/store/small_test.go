package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// Several hubs write one gate's progress: the earliest question and the highest
// count hold, whatever comes last.
func TestProgressIsJoined(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	if p, err := s.Progress(ctx, asked, commitA, "p"); err != nil || p != (compliance.Progress{}) {
		t.Errorf("before the first question: %+v, %v", p, err)
	}
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	for _, p := range []compliance.Progress{
		{FirstAsked: minute(2)}, {FirstAsked: minute(1), Highest: 4, RoseAt: minute(5)}, {FirstAsked: minute(3), Highest: 2, RoseAt: minute(4)},
	} {
		if err := s.PutProgress(ctx, asked, commitA, "p", p, minute(9)); err != nil {
			t.Fatal(err)
		}
	}
	want := compliance.Progress{FirstAsked: minute(1), Highest: 4, RoseAt: minute(5)}
	if p, err := s.Progress(ctx, asked, commitA, "p"); err != nil || p != want {
		t.Errorf("progress is %+v, want %+v (%v)", p, want, err)
	}
	other := asked
	other.Path = ""
	for name, ask := range map[string]func() (compliance.Progress, error){
		"policy":   func() (compliance.Progress, error) { return s.Progress(ctx, asked, commitA, "q") },
		"commit":   func() (compliance.Progress, error) { return s.Progress(ctx, asked, commitB, "p") },
		"endpoint": func() (compliance.Progress, error) { return s.Progress(ctx, other, commitA, "p") },
	} {
		if p, err := ask(); err != nil || p != (compliance.Progress{}) {
			t.Errorf("another %s shares the progress: %+v, %v", name, p, err)
		}
	}
}

func TestNewestRegistrationHolds(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	at := func(epoch uint64, gone bool, nonce uint64, version string) record.Registered {
		return record.Registered{Name: "c1", Epoch: epoch, Decommissioned: gone, Nonce: nonce, AgentVersion: version, Kind: schema.ClusterHost, HeartbeatInterval: time.Second, RegisteredAt: start}
	}
	see := func(epoch uint64, gone bool, version string) {
		t.Helper()
		got, err := s.Registered(ctx, nil)
		if err != nil || len(got) != 1 || got[0].Epoch != epoch || got[0].Decommissioned != gone || got[0].AgentVersion != version {
			t.Errorf("registered: %+v (%v), want epoch %d, decommissioned %t", got, err, epoch, gone)
		}
	}
	put := func(r record.Registered) {
		t.Helper()
		if err := s.Register(ctx, []record.Registered{r}); err != nil {
			t.Fatal(err)
		}
	}
	put(at(2, false, 1, "two"))
	see(2, false, "two")
	put(at(1, false, 2, "one, stored late"))
	see(2, false, "two")
	put(at(2, true, 3, "gone"))
	see(2, true, "gone")
	put(at(3, false, 4, "back"))
	see(3, false, "back")

	contested := func(r record.Registered) []string {
		t.Helper()
		names, err := s.Contested(ctx, []record.Registered{r})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if got := contested(at(3, false, 4, "")); got != nil {
		t.Errorf("alone at its epoch, and contested: %v", got)
	}
	if got := contested(at(3, false, 5, "")); len(got) != 1 {
		t.Error("another hub's registration of the same epoch is not seen")
	}
	if got := contested(at(2, false, 1, "")); got != nil {
		t.Error("a decommission contests a registration")
	}
	if got, err := s.Registered(ctx, []string{"never"}); err != nil || len(got) != 0 {
		t.Errorf("nobody is %+v, %v", got, err)
	}
}

func TestNewestHeartbeatHolds(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	for _, beats := range [][]record.Heartbeat{
		{{Cluster: "c1", Epoch: 1, ReceivedAt: start}, {Cluster: "c2", Epoch: 9, ReceivedAt: start}},
		{{Cluster: "c1", Epoch: 2, ReceivedAt: start.Add(time.Minute)}}, {{Cluster: "c1", Epoch: 1, ReceivedAt: start.Add(time.Second)}}, nil,
	} {
		if err := s.PutHeartbeats(ctx, beats); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Heartbeats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []record.Heartbeat{{Cluster: "c1", Epoch: 2, ReceivedAt: start.Add(time.Minute)}, {Cluster: "c2", Epoch: 9, ReceivedAt: start}}
	if d := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b record.Heartbeat) bool { return a.Cluster < b.Cluster })); d != "" {
		t.Errorf("heartbeats (-want +got):\n%s", d)
	}
}

func TestRevokedTokensStayRevoked(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	token := record.Token{ID: "a", Name: "n", Role: schema.RoleAgent, Cluster: "c1", CreatedAt: start}
	copy(token.Hash[:], "0123456789abcdef\x00\xff")
	if err := s.PutToken(ctx, token); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Tokens(ctx); err != nil || len(all) != 1 || all[0] != token {
		t.Errorf("tokens are %+v, %v, want %+v", all, err, token)
	}
	if err := s.RevokeToken(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.PutToken(ctx, token); err != nil { // the first try of its making, stored late
		t.Fatal(err)
	}
	if all, err := s.Tokens(ctx); err != nil || len(all) != 1 || !all[0].Revoked || all[0].Hash != token.Hash {
		t.Errorf("tokens are %+v, %v, want it revoked", all, err)
	}
	if err := s.RevokeToken(ctx, "nobody"); err == nil {
		t.Error("a token that is not there was revoked")
	}
}

package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// oddNames are texts that mean something to SQL, to a URL, to the driver's
// placeholders or to the store's own templates.
var oddNames = []string{
	`quote'`, `two''quotes`, `back\slash`, `ends\`, `\'`, `'); DROP TABLE current; --`, `a"b`, "back`tick", `50%`, `%s %d %%`, `100%zz`, `what?`, `?`, `\?`, `$1`,
	`{db}`, `{path:String}`, `@name`, `:name`, `/* c */`, `-- c`, `\n`, `\t\b\0`, `\N`, `über`, `名前`, `🚀`, `a b`, `+`, `a&b=c`, `#`, `[x]`, `('a','b')`, `NULL`, `null`,
}

// identity is an odd name as a part of kind/namespace/name, which holds no slash.
func identity(odd string) string { return strings.ReplaceAll(odd, "/", "∕") }

func TestOddNamesSurvive(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	states := map[string]*fold.State{}
	var batch []fold.Changes
	var clusters []string
	for i, odd := range oddNames {
		r := reconciler(identity(odd), "dir/"+identity(odd), commitA, schema.StatusFailure)
		r.Kind, r.Namespace = r.Name, r.Name
		r.Reason, r.Message, r.SourceError, r.Health = odd, odd+"\nsecond line\ttab", odd, odd
		r.Sources[0].Ref = "ref/" + odd
		r.Applied, r.Attempted = []string{odd + "@sha1:" + commitA}, []string{odd}
		r.Owner = &schema.ObjectRef{Kind: r.Kind, Namespace: r.Name, Name: r.Name + "-owner"}
		report := delta(1, r)
		report.UnlistedKinds, report.Agent.Version = []string{odd + "kind"}, odd
		if err := report.Validate(); err != nil {
			t.Fatalf("%q: %v", odd, err)
		}
		name := fmt.Sprint("c", i)
		states[name] = fold.NewState()
		clusters = append(clusters, name)
		batch = append(batch, states[name].Apply(name, report, start))
	}
	if err := s.Write(ctx, batch); err != nil {
		t.Fatal(err)
	}
	loaded, err := s.Load(ctx, clusters)
	if err != nil {
		t.Fatal(err)
	}
	positions, err := s.Positions(ctx, clusters)
	if err != nil {
		t.Fatal(err)
	}
	for i, odd := range oddNames {
		name := clusters[i]
		t.Run(odd, func(t *testing.T) {
			sameState(t, states[name], loaded[name])
			if positions[name].AgentVersion != odd {
				t.Errorf("the agent's version came back as %q", positions[name].AgentVersion)
			}
			endpoint, err := schema.NewEndpoint("https://git.example/org/apps", "ref/"+odd, "dir/"+identity(odd))
			if err != nil {
				t.Fatal(err)
			}
			l := land(t, s, endpoint, commitA)
			if len(l.Subscribers) != 1 {
				t.Fatalf("its endpoint has %d subscribers", len(l.Subscribers))
			}
			got := l.Subscribers[0]
			id := identity(odd)
			want := compliance.Subscriber{
				Ref: schema.ObjectRef{Kind: id, Namespace: id, Name: id}, Reporter: got.Reporter, DestinationName: name, Asked: true,
				Owner: &schema.ObjectRef{Kind: id, Namespace: id, Name: id + "-owner"}, Status: schema.StatusFailure, Reason: odd,
				Message: odd + "\nsecond line\ttab", SourceError: odd, Revision: odd, AgingSince: start,
				Sources: []compliance.Source{{Path: "dir/" + identity(odd), Applied: commitA, Runs: []compliance.Run{{Commit: commitA, Failed: true}}}},
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the subscriber (-want +got):\n%s", d)
			}
			above := endpoint
			above.Path += "/below"
			if misses := nearMisses(t, s, above); len(misses) != 1 || misses[0].Path != "dir/"+identity(odd) {
				t.Errorf("below it the near misses are %+v", misses)
			}
			p := compliance.Progress{FirstAsked: start, Highest: 3, RoseAt: start.Add(1e9)}
			policy := `{"mandatory":"a in (` + odd + `)"}`
			if err := s.PutProgress(ctx, endpoint, commitA, policy, p, start); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Progress(ctx, endpoint, commitA, policy); err != nil || got != p {
				t.Errorf("the gate's progress came back as %+v, %v", got, err)
			}
			rows, err := s.States(ctx, record.StateQuery{Clusters: []string{name, odd}, Silent: []string{odd}, Status: schema.StatusFailure, Limit: 10})
			if err != nil || len(rows) != 1 || rows[0].Ref != want.Ref || rows[0].Sources[0].Path != "dir/"+identity(odd) || rows[0].Message != want.Message {
				t.Errorf("its row is %+v, %v", rows, err)
			}
			after := record.StateQuery{After: []string{name, id, id, id}, Clusters: []string{name}, Limit: 10}
			if rows, err := s.States(ctx, after); err != nil || len(rows) != 0 {
				t.Errorf("after itself there is %+v, %v", rows, err)
			}
			after.After[3] = ""
			if rows, err := s.States(ctx, after); err != nil || len(rows) != 1 {
				t.Errorf("after nothing of its kind there is %+v, %v", rows, err)
			}
		})
	}
	if n := s.number(t, "SELECT count() FROM {db}.history"); n != uint64(len(oddNames)) {
		t.Errorf("history has %d rows", n)
	}
}

// A child whose owners have odd names is found all the same.
func TestOddOwners(t *testing.T) {
	s := open(t)
	clusters := map[string][]schema.Reconciler{}
	for i, odd := range oddNames {
		mid := reconciler(identity(odd), "mid", commitA, schema.StatusSuccess)
		clusters[fmt.Sprint("c", i)] = []schema.Reconciler{mid, owned(reconciler("leaf", "leaf", commitA, schema.StatusFailure), mid.Name)}
	}
	write(t, s, clusters)
	if n := len(land(t, s, asked, commitA).Subscribers); n != 2*len(oddNames) {
		t.Errorf("%d subscribers, want %d", n, 2*len(oddNames))
	}
}

func TestOddClusters(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	for i, odd := range oddNames {
		c := record.Registered{
			Name: fmt.Sprint("c", i), Epoch: 1, Kind: schema.ClusterHost, Labels: map[string]string{odd: odd}, ReportsFor: []string{odd},
			Memberships: []schema.Membership{{Environment: odd, Type: odd}, {Environment: "b", Type: odd}}, HeartbeatInterval: 1500e6, AgentVersion: odd, RegisteredAt: start, Nonce: 1 << 63,
		}
		if err := s.Register(ctx, []record.Registered{c}); err != nil {
			t.Fatalf("%q: %v", odd, err)
		}
		got, err := s.Registered(ctx, []string{c.Name, odd})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]record.Registered{c}, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", odd, d)
		}
		if names, err := s.Contested(ctx, []record.Registered{c, {Name: odd, Epoch: 1}}); err != nil || len(names) != 0 {
			t.Errorf("%q is contested: %v, %v", odd, names, err)
		}
		if err := s.PutToken(ctx, record.Token{ID: odd, Name: odd, Role: schema.Role(odd), Cluster: odd, CreatedAt: start}); err != nil {
			t.Fatal(err)
		}
	}
	tokens, err := s.Tokens(ctx)
	if err != nil || len(tokens) != len(oddNames) {
		t.Fatalf("%d tokens, %v", len(tokens), err)
	}
	for _, token := range tokens {
		if token.ID != token.Name || token.ID != token.Cluster || token.ID != string(token.Role) {
			t.Errorf("a token came back as %+v", token)
		}
	}
}

package gate

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/landing"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// rollout is a store in which every cluster has the root of one folder.
type rollout []*record.Subscription

func (r rollout) Subscriptions(context.Context, schema.Endpoint, string) ([]*record.Subscription, error) {
	return r, nil
}
func (r rollout) SubscriptionsAtMost(context.Context, string, string) (int, error) {
	return len(r), nil
}
func (r rollout) Links(context.Context, *record.Landing) error { return nil }
func (r rollout) Troubles(context.Context) (map[string]record.Trouble, error) {
	return map[string]record.Trouble{}, nil
}

// BenchmarkAsk is a question about an endpoint with a reader on each of 1,000
// and of 10,000 clusters, without the store and HTTP.
func BenchmarkAsk(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			log, names := slog.New(slog.DiscardHandler), &registry{}
			f, err := fleet.New(fleet.Options{Store: names, SilentAfter: 5, Now: time.Now, Log: log})
			if err != nil {
				b.Fatal(err)
			}
			store, now := rollout{}, time.Now()
			for i := range n {
				name := fmt.Sprintf("cluster-%05d", i)
				_, err := f.Register(b.Context(), name, schema.Registration{
					HeartbeatInterval: schema.Duration(time.Hour), Memberships: []schema.Membership{{Environment: "dev", Type: "drone"}},
				})
				if err != nil {
					b.Fatal(err)
				}
				store = append(store, &record.Subscription{
					Cluster: name, Destination: name, Ref: schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "drone"}, Path: "drone",
					Status: schema.StatusSuccess, Applied: commitA, Attempted: commitA, Revision: "dev@sha1:" + commitA,
					Runs: []compliance.Run{{Commit: commitA, SuccessAt: now, SteadyAt: now}},
				})
			}
			landings, err := landing.New(landing.Options{Store: store})
			if err != nil {
				b.Fatal(err)
			}
			g, err := New(Options{
				Landings: landings, Store: newBoard(), Fleet: f, Rules: compliance.DefaultRules(),
				Graph: func(string) compliance.Graph { return compliance.Equality{} }, Now: time.Now, Log: log,
			})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if v, err := g.Ask(b.Context(), question()); err != nil || v.State != schema.Passed {
					b.Fatal(v.State, err)
				}
			}
		})
	}
}

package store

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

func sortedGroups(all []record.Group) []record.Group {
	for i := range all {
		slices.Sort(all[i].Names)
		if len(all[i].Names) == 0 {
			all[i].Names = nil
		}
	}
	slices.SortFunc(all, func(a, b record.Group) int {
		return cmp.Or(cmp.Compare(a.Endpoint.Path, b.Endpoint.Path), cmp.Compare(a.Commit, b.Commit), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Class, b.Class))
	})
	return all
}

func TestGroups(t *testing.T) {
	s := open(t)
	elsewhere := reconciler("other", "a", commitA, schema.StatusSuccess)
	elsewhere.Cluster = "spoke"
	twice := reconciler("twice", "a", commitA, schema.StatusSuccess)
	mixed := reconciler("m", "b", commitA, schema.StatusFailure)
	mixed.Sources = append(mixed.Sources, schema.Source{Type: schema.SourceGit, URL: "https://git.example/org/apps", Ref: "dev", Path: "c"})
	mixed.Applied = append(mixed.Applied, "dev@sha1:"+commitB)
	write(t, s, map[string][]schema.Reconciler{
		"c1": {reconciler("x", "a", commitA, schema.StatusSuccess), twice, elsewhere},
		"c2": {reconciler("x", "a", commitA, schema.StatusSuccess), mixed},
		"c3": {reconciler("x", "a", commitB, schema.StatusSuccess)},
		"c4": {{Kind: "K", Namespace: "n", Name: "bare", Status: schema.StatusSuccess, Sources: []schema.Source{}}},
	})
	group := func(path, commit string, status schema.Status, class uint32, clusters uint64, names ...string) record.Group {
		return record.Group{Running: record.Running{Endpoint: apps(path), Commit: commit}, Status: status, Class: class, Clusters: clusters, Names: names}
	}
	const ok, bad, unknown = schema.StatusSuccess, schema.StatusFailure, schema.StatusUnknown
	cases := map[string]struct {
		reason string
		q      record.GroupQuery
		want   []record.Group
	}{
		"All": {"A cluster counts once in each, however many reconcilers it has; each source is one of its own.", record.GroupQuery{},
			[]record.Group{group("a", commitA, ok, 0, 3), group("a", commitB, ok, 0, 1), group("b", commitA, bad, 0, 1), group("c", commitB, bad, 0, 1)}},
		"Named": {"By name.", record.GroupQuery{Named: true, Under: []schema.Endpoint{apps("a")}},
			[]record.Group{group("a", commitA, ok, 0, 3, "c1", "c2", "spoke"), group("a", commitB, ok, 0, 1, "c3")}},
		"Silent": {"A silent reporter's are unknown, wherever it deploys to.", record.GroupQuery{Silent: []string{"c1"}, Under: []schema.Endpoint{apps("a")}},
			[]record.Group{group("a", commitA, ok, 0, 1), group("a", commitA, unknown, 0, 2), group("a", commitB, ok, 0, 1)}},
		"SilentStatus": {"And are asked for as such.", record.GroupQuery{Silent: []string{"c1"}, Status: unknown}, []record.Group{group("a", commitA, unknown, 0, 2)}},
		"Status":       {"A status.", record.GroupQuery{Status: bad}, []record.Group{group("b", commitA, bad, 0, 1), group("c", commitB, bad, 0, 1)}},
		"Destinations": {"Where it is deployed to.", record.GroupQuery{Destinations: []string{"spoke", "c3"}},
			[]record.Group{group("a", commitA, ok, 0, 1), group("a", commitB, ok, 0, 1)}},
		"Classes": {"Classes are apart, and those without are of the others.", record.GroupQuery{Classes: map[string]uint32{"c2": 7, "spoke": 9}, Others: 4, Under: []schema.Endpoint{apps("a")}},
			[]record.Group{group("a", commitA, ok, 4, 1), group("a", commitA, ok, 7, 1), group("a", commitA, ok, 9, 1), group("a", commitB, ok, 4, 1)}},
		"Together": {"Arguments stand in their order.", record.GroupQuery{
			Silent: []string{"c1"}, Classes: map[string]uint32{"c1": 1}, Others: 2, Destinations: []string{"c1", "c2"}, Status: unknown, Under: []schema.Endpoint{apps("a"), apps("b")}},
			[]record.Group{group("a", commitA, unknown, 1, 1)}},
		"Nowhere": {"No cluster.", record.GroupQuery{Destinations: []string{}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.q.Most = 10
			got, err := s.Groups(t.Context(), tc.q)
			if err != nil {
				t.Fatal(err)
			}
			if d := gocmp.Diff(tc.want, sortedGroups(got)); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
	if got, err := s.Groups(t.Context(), record.GroupQuery{Most: 3}); !errors.Is(err, record.ErrTooMany) {
		t.Errorf("four groups of at most three: %v, %v", got, err)
	}
	names, err := s.Destinations(t.Context(), []schema.Endpoint{{Repo: "git.example/org/apps", Ref: "dev"}, {Repo: "git.example/none", Ref: "dev"}})
	if d := gocmp.Diff([]string{"c1", "c2", "c3", "spoke"}, names); err != nil || d != "" {
		t.Errorf("destinations: %v\n%s", err, d)
	}
	if names, err := s.Destinations(t.Context(), nil); err != nil || names != nil {
		t.Errorf("of no ref: %v, %v", names, err)
	}
}

package store

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// openAt is open with the database's URL, for statements of the test's own.
func openAt(t *testing.T) (*Store, string) {
	t.Helper()
	url := enginetest.Shared(t)
	s := dial(t, url, 0)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, url
}

func allStates() record.StateQuery { return record.StateQuery{Limit: 1000} }

// write stores a first message of each cluster.
func write(t *testing.T, s *Store, clusters map[string][]schema.Reconciler) {
	t.Helper()
	var batch []fold.Changes
	for name, list := range clusters {
		batch = append(batch, fold.NewState().Apply(name, delta(1, list...), start))
	}
	if err := s.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
}

// apps is a folder of the repository that reconciler reads.
func apps(path string) schema.Endpoint {
	return schema.Endpoint{Repo: "git.example/org/apps", Ref: "dev", Path: path}
}

func stateNames(rows []record.StateRow) []string {
	var all []string
	for _, r := range rows {
		all = append(all, r.Cluster+" "+r.Ref.String())
	}
	return all
}

func TestStates(t *testing.T) {
	s := open(t)
	failing := reconciler("b", "b", commitB, schema.StatusFailure)
	failing.Kind, failing.Reason, failing.Message, failing.Drifted, failing.Cluster = "HelmRelease", "Bad", "it broke", true, "spoke"
	failing.Attempted, failing.Since = []string{"dev@sha1:" + commitA}, start.Add(5)
	bare := schema.Reconciler{Kind: "Application", Namespace: "argocd", Name: "z", Status: schema.StatusUnknown, Sources: []schema.Source{}}
	mixed := reconciler("m", "m", commitA, schema.StatusSuccess)
	mixed.Sources = append([]schema.Source{{Type: schema.SourceHelm, URL: "https://charts.example", Path: "chart"}}, mixed.Sources...)
	mixed.Applied, mixed.Attempted = []string{"1.2.3", "dev@sha1:" + commitA}, []string{"1.2.3", "dev@sha1:" + commitB}
	write(t, s, map[string][]schema.Reconciler{
		"c1": {reconciler("a", "./a/", commitA, schema.StatusSuccess), failing},
		"c2": {bare, mixed},
		"c3": {reconciler("a", "a", commitA, schema.StatusSuccess)},
	})
	const a1, b1, z2, m2, a3 = "c1 Kustomization/flux-system/a", "c1 HelmRelease/flux-system/b", "c2 Application/argocd/z", "c2 Kustomization/flux-system/m", "c3 Kustomization/flux-system/a"
	var many []schema.Endpoint
	for i := range mostFolders + 1 {
		many = append(many, apps(fmt.Sprint(i)))
	}
	cases := map[string]struct {
		reason string
		q      record.StateQuery
		want   []string
	}{
		"All":            {"Nil matches every cluster.", record.StateQuery{}, []string{b1, a1, z2, m2, a3}},
		"None":           {"An empty list matches none.", record.StateQuery{Clusters: []string{}}, nil},
		"Clusters":       {"A list matches its clusters.", record.StateQuery{Clusters: []string{"c2", "c3", "never"}}, []string{z2, m2, a3}},
		"Destination":    {"A destination is what it deploys to.", record.StateQuery{Destinations: []string{"spoke"}}, []string{b1}},
		"NoDestination":  {"An empty list of destinations matches none.", record.StateQuery{Destinations: []string{}}, nil},
		"Status":         {"A status matches what was said.", record.StateQuery{Status: schema.StatusSuccess}, []string{a1, m2, a3}},
		"StatusSilent":   {"What a silent cluster said does not count.", record.StateQuery{Status: schema.StatusSuccess, Silent: []string{"c1"}}, []string{m2, a3}},
		"Unknown":        {"Unknown are those that say so.", record.StateQuery{Status: schema.StatusUnknown}, []string{z2}},
		"UnknownSilent":  {"And all of silent clusters.", record.StateQuery{Status: schema.StatusUnknown, Silent: []string{"c1"}}, []string{b1, a1, z2}},
		"SilentAlone":    {"Silence alone leaves nothing out.", record.StateQuery{Silent: []string{"c1"}}, []string{b1, a1, z2, m2, a3}},
		"After":          {"A page begins after its key.", record.StateQuery{After: []string{"c1", "Kustomization", "flux-system", "a"}}, []string{z2, m2, a3}},
		"AfterNobody":    {"The key's row may be gone.", record.StateQuery{After: []string{"c2", "B", "", ""}}, []string{m2, a3}},
		"AfterAll":       {"After the last there is nothing.", record.StateQuery{After: []string{"x", "", "", ""}}, nil},
		"Under":          {"A folder's readers, and those below it.", record.StateQuery{Under: []schema.Endpoint{apps("a")}}, []string{a1, a3}},
		"UnderSecond":    {"Any source counts.", record.StateQuery{Under: []schema.Endpoint{{Repo: "helm://charts.example"}}}, []string{m2}},
		"UnderTwo":       {"Any folder counts.", record.StateQuery{Under: []schema.Endpoint{apps("m"), apps("b")}}, []string{b1, m2}},
		"UnderNone":      {"No folder is nobody's.", record.StateQuery{Under: []schema.Endpoint{}}, nil},
		"UnderPart":      {"A folder is no prefix.", record.StateQuery{Under: []schema.Endpoint{apps("mm"), {Repo: "git.example/org/apps", Ref: "de"}}}, nil},
		"UnderAfter":     {"Folders and pages.", record.StateQuery{Under: []schema.Endpoint{apps("a")}, After: []string{"c1", "Kustomization", "flux-system", "a"}}, []string{a3}},
		"UnderMany":      {"Of many folders only the refs count.", record.StateQuery{Under: many}, []string{b1, a1, m2, a3}},
		"OffNothing":     {"Those that were changed live.", record.StateQuery{Off: []record.Running{}}, []string{b1}},
		"Off":            {"And those that run something.", record.StateQuery{Off: []record.Running{{Endpoint: apps("a"), Commit: commitA}}}, []string{b1, a1, a3}},
		"OffOther":       {"But not something else.", record.StateQuery{Off: []record.Running{{Endpoint: apps("a"), Commit: commitB}, {Endpoint: apps("b"), Commit: commitA}}}, []string{b1}},
		"OffUnder":       {"Folders narrow what was changed live.", record.StateQuery{Off: []record.Running{{Endpoint: apps("a"), Commit: commitA}}, Under: []schema.Endpoint{apps("a")}}, []string{a1, a3}},
		"OffStatus":      {"All of it joins.", record.StateQuery{Off: []record.Running{{Endpoint: apps("a"), Commit: commitA}}, Status: schema.StatusSuccess, Clusters: []string{"c3"}}, []string{a3}},
		"EverythingOnce": {"All of it together.", record.StateQuery{Clusters: []string{"c1", "c2"}, Status: schema.StatusUnknown, Silent: []string{"c1"}, After: []string{"c1", "I", "", ""}}, []string{a1, z2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.q.Limit = 100
			rows, err := s.States(t.Context(), tc.q)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, stateNames(rows)); d != "" {
				t.Errorf("%s\n%s", tc.reason, d)
			}
		})
	}
	rows, err := s.States(t.Context(), record.StateQuery{Clusters: []string{"c1", "c2"}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	const url = "https://git.example/org/apps.git"
	at := func(raw, path, applied, attempted string) record.StateSource {
		return record.StateSource{URL: url, Ref: "dev", Path: raw, Commit: applied, Attempted: attempted, Endpoint: schema.Endpoint{Repo: "git.example/org/apps", Ref: "dev", Path: path}}
	}
	chart := record.StateSource{URL: "https://charts.example", Path: "chart", Endpoint: schema.Endpoint{Repo: "helm://charts.example", Path: "chart"}}
	want := []record.StateRow{
		{Cluster: "c1", Destination: "spoke", Ref: failing.Ref(), Sources: []record.StateSource{at("b", "b", commitB, commitA)}, Status: schema.StatusFailure, Reason: "Bad", Message: "it broke", Drifted: true, Since: start},
		{Cluster: "c1", Destination: "c1", Ref: schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "a"}, Sources: []record.StateSource{at("./a/", "a", commitA, commitA)}, Status: schema.StatusSuccess, Since: start},
		{Cluster: "c2", Destination: "c2", Ref: bare.Ref(), Sources: []record.StateSource{{}}, Status: schema.StatusUnknown, Since: start},
		{Cluster: "c2", Destination: "c2", Ref: mixed.Ref(), Sources: []record.StateSource{at("m", "m", commitA, commitB), chart}, Status: schema.StatusSuccess, Since: start},
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	if _, err := s.States(t.Context(), record.StateQuery{After: []string{"c1"}, Limit: 1}); err == nil {
		t.Error("half a key was taken")
	}

	counts, err := s.Counts(t.Context(), []string{"c1", "c2", "never"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]map[schema.Status]uint64{"c1": {schema.StatusSuccess: 1, schema.StatusFailure: 1}, "c2": {schema.StatusSuccess: 1, schema.StatusUnknown: 1}}, counts); d != "" {
		t.Errorf("counts (-want +got):\n%s", d)
	}
	if counts, err := s.Counts(t.Context(), nil); err != nil || len(counts) != 0 {
		t.Errorf("counts of no cluster: %v, %v", counts, err)
	}
}

// Pages of any size, put together, are the whole list.
func TestStatesPaging(t *testing.T) {
	s := open(t)
	clusters := map[string][]schema.Reconciler{}
	for i := range 23 {
		r := reconciler(fmt.Sprint("n", i%7), "p", commitA, schema.StatusSuccess)
		r.Kind, r.Namespace = []string{"A", "B"}[i%2], fmt.Sprint("ns", i%3)
		name := fmt.Sprint("c", i%4)
		if !slices.ContainsFunc(clusters[name], func(o schema.Reconciler) bool { return o.Ref() == r.Ref() }) {
			clusters[name] = append(clusters[name], r)
		}
	}
	write(t, s, clusters)
	all, err := s.States(t.Context(), allStates())
	if err != nil || len(all) < 20 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	for size := 1; size < len(all)+2; size += 3 {
		var got []record.StateRow
		q := record.StateQuery{Limit: size}
		for {
			rows, err := s.States(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rows...)
			if len(rows) < size || len(got) > len(all) {
				break
			}
			last := rows[len(rows)-1]
			q.After = []string{last.Cluster, last.Ref.Kind, last.Ref.Namespace, last.Ref.Name}
		}
		if d := cmp.Diff(all, got); d != "" {
			t.Fatalf("pages of %d are not the list:\n%s", size, d)
		}
	}
}

func TestPositions(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	state := fold.NewState()
	r := delta(9, reconciler("a", "a", commitA, schema.StatusSuccess))
	r.Epoch, r.UnlistedKinds, r.Agent.Version = 3, []string{"HelmRelease"}, "1.2"
	if err := s.Write(ctx, []fold.Changes{state.Apply("c1", r, start)}); err != nil {
		t.Fatal(err)
	}
	for _, asked := range [][]string{nil, {"c1", "never"}} {
		got, err := s.Positions(ctx, asked)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[string]fold.Position{"c1": state.Position}, got); d != "" {
			t.Errorf("positions of %v (-want +got):\n%s", asked, d)
		}
	}
	if got, err := s.Positions(ctx, []string{}); err != nil || len(got) != 0 {
		t.Errorf("positions of no cluster: %v, %v", got, err)
	}
	if got, err := s.Load(ctx, nil); err != nil || len(got) != 0 {
		t.Errorf("states of no cluster: %v, %v", got, err)
	}
}

func TestCancelledQuestions(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Load(ctx, []string{"c1"}); err == nil {
		t.Error("a question that nobody waits for was answered")
	}
	if err := s.Write(ctx, []fold.Changes{fold.NewState().Apply("c1", delta(1), start)}); err == nil {
		t.Error("a write that was given up reports success")
	}
}

// Lists of the names of a large fleet are longer than ClickHouse parses by
// default.
func TestManyClusters(t *testing.T) {
	s := open(t)
	write(t, s, map[string][]schema.Reconciler{"c1": {reconciler("a", "a", commitA, schema.StatusSuccess)}})
	names := make([]string, 0, 20_001)
	for i := range cap(names) - 1 {
		names = append(names, fmt.Sprintf("a-cluster-with-a-name-of-some-length-%08d", i))
	}
	names = append(names, "c1")
	rows, err := s.States(t.Context(), record.StateQuery{Clusters: names, Silent: names, Status: schema.StatusUnknown, Limit: 10})
	if err != nil || len(rows) != 1 {
		t.Errorf("rows are %+v, %v", rows, err)
	}
	if p, err := s.Positions(t.Context(), names); err != nil || len(p) != 1 {
		t.Errorf("positions are %+v, %v", p, err)
	}
}

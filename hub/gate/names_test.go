package gate

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// shelves are landings by repository; looked is called after each look.
type shelves struct {
	at     map[string][]*record.Subscription
	blocks map[string]record.Trouble
	looked func(repo string)
}

func (s *shelves) Landing(_ context.Context, e schema.Endpoint, _ string) (record.Landing, error) {
	l := record.NewLanding(e.Path, s.at[e.Repo])
	l.SetTroubles(s.blocks)
	if s.looked != nil {
		s.looked(e.Repo)
	}
	return l, nil
}

// reads is a subscription of a reconciler to a folder at a commit.
func reads(name, folder, commit string) *record.Subscription {
	return &record.Subscription{
		Cluster: "c1", Destination: "c1", Ref: schema.ObjectRef{Kind: "Kustomization", Name: name}, Path: folder,
		Status: schema.StatusSuccess, Applied: commit, Runs: []compliance.Run{{Commit: commit}},
	}
}

// read returns what a landing has: sources by reconciler.
func read(l record.Landing) map[string][]string {
	found := map[string][]string{}
	for _, s := range l.Subscribers {
		for _, src := range s.Sources {
			found[s.Ref.Name] = append(found[s.Ref.Name], src.Path+"@"+src.Applied)
		}
		if s.Reporter != l.Clusters["c1"] {
			found[s.Ref.Name] = append(found[s.Ref.Name], "of another cluster")
		}
	}
	return found
}

// A repository under two names is looked up under both: each reconciler once,
// wherever it reads it, and also while it moves from one name to the other.
func TestNames(t *testing.T) {
	const own, alias = "git.example/org/apps", "mirror.example/apps"
	cases := map[string]struct {
		reason string
		at     map[string][]*record.Subscription
		// moves says that a reconciler goes from one name to another when that one
		// has been looked at.
		moves func(s *shelves, looked string)
		want  map[string][]string
	}{
		"Own":   {"Only the one.", map[string][]*record.Subscription{own: {reads("a", "x", "1")}}, nil, map[string][]string{"a": {"x@1"}}},
		"Alias": {"Only the other.", map[string][]*record.Subscription{alias: {reads("a", "x", "1")}}, nil, map[string][]string{"a": {"x@1"}}},
		"Both": {
			"One each.", map[string][]*record.Subscription{own: {reads("a", "x", "1")}, alias: {reads("b", "x", "2")}}, nil,
			map[string][]string{"a": {"x@1"}, "b": {"x@2"}},
		},
		"Multi": {
			"One that reads both is one subscriber with two sources.",
			map[string][]*record.Subscription{own: {reads("a", "x", "1")}, alias: {reads("a", "x/y", "2")}}, nil, map[string][]string{"a": {"x@1", "x/y@2"}},
		},
		"ToTheAlias": {
			"One that moves to the other name is not missed; both states of it count.", map[string][]*record.Subscription{own: {reads("a", "x", "1")}},
			func(s *shelves, looked string) {
				if looked == own {
					s.at = map[string][]*record.Subscription{alias: {reads("a", "x", "2")}}
				}
			},
			map[string][]string{"a": {"x@1", "x@2"}},
		},
		"FromTheAlias": {
			"Nor one that moves back.", map[string][]*record.Subscription{alias: {reads("a", "x", "1")}},
			func(s *shelves, looked string) {
				if looked == own && s.at[alias] != nil {
					s.at = map[string][]*record.Subscription{own: {reads("a", "x", "2")}}
				}
			},
			map[string][]string{"a": {"x@2"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &shelves{at: c.at, blocks: map[string]record.Trouble{"c1": {Blocked: []compliance.Blocked{{Repo: alias, Ref: "dev"}, {Repo: "other", Ref: "dev"}}}}}
			kept := s.blocks["c1"].Blocked
			if c.moves != nil {
				s.looked = func(repo string) { c.moves(s, repo) }
			}
			g := &Gate{opts: Options{Landings: s, Log: slog.New(slog.DiscardHandler)}}
			q := schema.Question{Endpoint: schema.Endpoint{Repo: own, Ref: "dev", Path: "x"}}
			l, err := g.landing(t.Context(), q, []string{own, alias})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, read(l)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			want := []compliance.Blocked{{Repo: own, Ref: "dev"}, {Repo: "other", Ref: "dev"}}
			if diff := cmp.Diff(want, l.Clusters["c1"].Blocked); diff != "" {
				t.Errorf("blocked (-want +got):\n%s", diff)
			}
			if kept[0].Repo != alias {
				t.Error("what others read too was changed")
			}
		})
	}
}

// Who waits for a repository is woken when it changes, and nobody else.
func TestRepositoryChanged(t *testing.T) {
	g := &Gate{watchers: newWatchers(prometheus.NewGauge(prometheus.GaugeOpts{Name: "watchers", Help: "Those who wait."}))}
	ours := g.watchers.add(apps, []string{apps.Repo, "mirror.example/apps"})
	other := g.watchers.add(schema.Endpoint{Repo: "other"}, []string{"other"})
	woken := func(w *watcher) bool {
		select {
		case <-w.woken:
			return true
		default:
			return false
		}
	}
	g.RepositoryChanged(apps.Repo)
	if !woken(ours) || woken(other) {
		t.Error("only who waits for the repository is woken")
	}
	g.RepositoryChanged("other")
	if woken(ours) || !woken(other) {
		t.Error("and the other one for its own")
	}
}

// A child that fails between two looks counts: the root that the second one saw
// was reported with it.
func TestTroubleBetweenLooks(t *testing.T) {
	const own, alias = "git.example/org/apps", "mirror.example/apps"
	s := &shelves{at: map[string][]*record.Subscription{own: {reads("a", "x", "1")}, alias: {reads("b", "x", "1")}}, blocks: map[string]record.Trouble{}}
	trouble := compliance.Blocked{Owner: schema.ObjectRef{Kind: "Kustomization", Name: "b"}, Status: schema.StatusFailure}
	s.looked = func(repo string) {
		switch repo {
		case own:
			s.blocks = map[string]record.Trouble{"c1": {Blocked: []compliance.Blocked{trouble}, UnlistedKinds: []string{"HelmRelease"}}}
		case alias:
			s.blocks = map[string]record.Trouble{}
		}
	}
	g := &Gate{opts: Options{Landings: s, Log: slog.New(slog.DiscardHandler)}}
	l, err := g.landing(t.Context(), schema.Question{Endpoint: schema.Endpoint{Repo: own, Ref: "dev"}}, []string{own, alias})
	if err != nil {
		t.Fatal(err)
	}
	c := l.Clusters["c1"]
	if diff := cmp.Diff([]compliance.Blocked{trouble}, c.Blocked); diff != "" || len(c.UnlistedKinds) != 1 {
		t.Errorf("unlisted %v, blocked (-want +got):\n%s", c.UnlistedKinds, diff)
	}
}

package fold

import (
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

func TestDelta(t *testing.T) {
	cases := map[string]struct {
		reason string
		// before is told first, then report.
		before, report              *schema.Report
		changed, unchanged, removed []string
		left                        map[string]bool
	}{
		"FirstMessage": {
			reason: "A delta may be the first message of an epoch.",
			report: delta(2, kustomization("a")), changed: []string{"a"}, left: set("Kustomization/a"),
		},
		"Add": {
			reason: "What is not in a delta stays as it is.",
			before: delta(1, kustomization("a")), report: delta(2, kustomization("b")),
			changed: []string{"b"}, left: set("Kustomization/a", "Kustomization/b"),
		},
		"Change": {
			reason: "Another status is a change.",
			before: delta(1, kustomization("a")), report: delta(2, kustomization("a", status(schema.StatusFailure, "BuildFailed"))),
			changed: []string{"a"}, left: set("Kustomization/a"),
		},
		"Unchanged": {
			reason: "What says the same again gives no history and no row.",
			before: delta(1, kustomization("a"), kustomization("b")), report: delta(2, kustomization("a"), kustomization("b", applies(commitB))),
			changed: []string{"b"}, left: set("Kustomization/a", "Kustomization/b"),
		},
		"TimesAlone": {
			reason: "Times that move on every reconcile are no change.",
			before: delta(1, kustomization("a")), report: delta(2, kustomization("a", func(r *schema.Reconciler) { r.Since, r.ObservedAt = at(7), at(8) })),
			left: set("Kustomization/a"),
		},
		"Remove": {
			reason: "A delta says by name what is gone; what nobody knows is no removal.",
			before: delta(1, kustomization("a"), kustomization("b")), report: removal(2, ref("Kustomization", "a"), ref("Kustomization", "never")),
			removed: []string{"a"}, left: set("Kustomization/b"),
		},
		"SameNameOtherKind": {
			reason: "The kind is part of the identity.",
			before: delta(1, kustomization("a")), report: delta(2, kustomization("a", ofKind("HelmRelease"))),
			changed: []string{"a"}, left: set("Kustomization/a", "HelmRelease/a"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewState()
			if tc.before != nil {
				tell(t, s, tc.before)
			}
			c := tell(t, s, tc.report)
			changed, unchanged := upserts(c)
			diff(t, tc.reason+" Changed", tc.changed, changed)
			diff(t, tc.reason+" Unchanged", tc.unchanged, unchanged)
			diff(t, tc.reason+" Removed", tc.removed, removed(c))
			diff(t, tc.reason+" Left", tc.left, names(s))
			if s.Position.Epoch != 1 || s.Position.Sequence != 2 || c.Position.Version() != s.Position.Version() || c.Position.Digest != s.Position.Digest {
				t.Errorf("the position is %+v, in the changes %+v", s.Position, c.Position)
			}
		})
	}
}

func TestSnapshotRemovesOnlyWhatItCovers(t *testing.T) {
	before := func(s *State) {
		tell(t, s, delta(1, kustomization("a"), kustomization("b"), kustomization("h", ofKind("HelmRelease")), kustomization("x", ofKind("Application"))))
	}
	cases := map[string]struct {
		reason string
		report *schema.Report
		gone   []string
		left   map[string]bool
	}{
		"OneKind": {
			reason: "Objects of other kinds stay.", report: snapshot(2, kustomizations, kustomization("b")),
			gone: []string{"a"}, left: set("Kustomization/b", "HelmRelease/h", "Application/x"),
		},
		"NoKinds": {
			reason: "A snapshot of nothing removes nothing.", report: snapshot(2, []string{}),
			left: set("Kustomization/a", "Kustomization/b", "HelmRelease/h", "Application/x"),
		},
		"Empty": {
			reason: "An empty list of two kinds is their end.", report: snapshot(2, []string{"HelmRelease", "Kustomization"}),
			gone: []string{"h", "a", "b"}, left: set("Application/x"),
		},
		"OnePart": {
			reason: "Part 1 of 1 is a whole snapshot.", report: part(2, 1, 1, kustomizations, kustomization("a")),
			gone: []string{"b"}, left: set("Kustomization/a", "HelmRelease/h", "Application/x"),
		},
		"HoldsAnotherKind": {
			reason: "What it holds beyond its kinds is taken in.", report: snapshot(2, kustomizations, kustomization("a"), kustomization("n", ofKind("HelmRelease"))),
			gone: []string{"b"}, left: set("Kustomization/a", "HelmRelease/h", "HelmRelease/n", "Application/x"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewState()
			before(s)
			c := tell(t, s, tc.report)
			diff(t, tc.reason, tc.gone, removed(c))
			diff(t, tc.reason, tc.left, names(s))
			diff(t, "nothing stays open", Snapshot{}, s.Position.Snapshot)
		})
	}
}

func TestUnlistedKinds(t *testing.T) {
	with := func(r *schema.Report, kinds ...string) *schema.Report {
		r.UnlistedKinds = append([]string{}, kinds...)
		return r
	}
	cases := map[string]struct {
		reason  string
		reports []*schema.Report
		want    []string
	}{
		"Said":         {"A list is kept sorted, each once.", []*schema.Report{with(delta(1), "B", "A", "B")}, []string{"A", "B"}},
		"Nil":          {"A message that says nothing leaves it.", []*schema.Report{with(delta(1), "A"), delta(2)}, []string{"A"}},
		"Empty":        {"An empty list clears it.", []*schema.Report{with(delta(1), "A"), with(delta(2))}, nil},
		"Replaced":     {"A list takes the place of the one before.", []*schema.Report{with(delta(1), "A"), with(delta(2), "B")}, []string{"B"}},
		"Covered":      {"A snapshot takes what it covers off the list.", []*schema.Report{with(delta(1), "A", "Kustomization"), snapshot(2, kustomizations)}, []string{"A"}},
		"CoveredPart":  {"A part alone has not listed everything.", []*schema.Report{with(delta(1), "Kustomization"), part(2, 1, 2, kustomizations)}, []string{"Kustomization"}},
		"CoveredParts": {"The last part has.", []*schema.Report{with(delta(1), "Kustomization"), part(2, 1, 2, kustomizations), part(3, 2, 2, kustomizations)}, nil},
		"SnapshotSays": {"A snapshot may say of another kind that it cannot be listed.", []*schema.Report{with(snapshot(1, kustomizations), "A")}, []string{"A"}},
		"NotCovered":   {"A snapshot of another kind leaves it.", []*schema.Report{with(delta(1), "A"), snapshot(2, kustomizations)}, []string{"A"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewState()
			for _, r := range tc.reports {
				tell(t, s, r)
			}
			diff(t, tc.reason, tc.want, s.Position.UnlistedKinds)
		})
	}
}

func TestUnlistedKindsRemoveNothing(t *testing.T) {
	s := NewState()
	tell(t, s, delta(1, kustomization("a")))
	r := snapshot(2, []string{})
	r.UnlistedKinds = kustomizations
	tell(t, s, r)
	diff(t, "reconcilers of a kind that cannot be listed are unknown, not gone", set("Kustomization/a"), names(s))
}

func TestMoves(t *testing.T) {
	tag := func(s schema.Source) schema.Source { s.Ref = "prod"; return s }
	oci := schema.Source{Type: schema.SourceOCI, URL: "oci://registry.example/org/apps", Ref: "latest"}
	cases := map[string]struct {
		reason    string
		from, to  []schema.Source
		left, now []string
	}{
		"Path":          {"Another path leaves the old one.", []schema.Source{git("apps", "a")}, []schema.Source{git("apps", "b")}, []string{"git.example/org/apps#dev:a"}, []string{"git.example/org/apps#dev:b"}},
		"Ref":           {"Another ref leaves the old one.", []schema.Source{git("apps", "a")}, []schema.Source{tag(git("apps", "a"))}, []string{"git.example/org/apps#dev:a"}, []string{"git.example/org/apps#prod:a"}},
		"Repo":          {"Another repository leaves the old one.", []schema.Source{git("apps", "a")}, []schema.Source{git("other", "a")}, []string{"git.example/org/apps#dev:a"}, []string{"git.example/org/other#dev:a"}},
		"Type":          {"Another storage leaves the old one.", []schema.Source{git("apps", "a")}, []schema.Source{oci}, []string{"git.example/org/apps#dev:a"}, []string{"oci://registry.example/org/apps#latest:"}},
		"Spelling":      {"Another spelling of one endpoint leaves nothing.", []schema.Source{git("apps", "a")}, []schema.Source{git("apps.git", "./a/")}, nil, []string{"git.example/org/apps#dev:a"}},
		"OneOfTwo":      {"The source that stays is not left.", []schema.Source{git("apps", "a"), git("apps", "b")}, []schema.Source{git("apps", "b"), git("apps", "c")}, []string{"git.example/org/apps#dev:a"}, []string{"git.example/org/apps#dev:b", "git.example/org/apps#dev:c"}},
		"TwiceThenOnce": {"The same endpoint twice is one subscription.", []schema.Source{git("apps", "a"), git("apps", "a/")}, []schema.Source{git("apps", "a")}, nil, []string{"git.example/org/apps#dev:a"}},
		"Order":         {"Another order leaves nothing.", []schema.Source{git("apps", "a"), git("apps", "b")}, []schema.Source{git("apps", "b"), git("apps", "a")}, nil, []string{"git.example/org/apps#dev:b", "git.example/org/apps#dev:a"}},
		"ToNone":        {"No source is no subscription.", []schema.Source{git("apps", "a")}, []schema.Source{}, []string{"git.example/org/apps#dev:a"}, nil},
		"FromNone":      {"A first source leaves nothing.", []schema.Source{}, []schema.Source{git("apps", "a")}, nil, []string{"git.example/org/apps#dev:a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewState()
			bare := func(r *schema.Reconciler) { r.Attempted, r.Applied = nil, nil }
			tell(t, s, delta(1, kustomization("r", sources(tc.from...), bare)))
			c := tell(t, s, delta(2, kustomization("r", sources(tc.to...), bare)))
			var left []string
			for _, h := range c.Upserts[0].Left {
				left = append(left, h.Value().Repo+"#"+h.Value().Ref+":"+h.Value().Path)
			}
			diff(t, tc.reason, tc.left, left)
			diff(t, tc.reason, tc.now, endpointTexts(s.Entries[ref("Kustomization", "r")]))
			gone := tell(t, s, removal(3, ref("Kustomization", "r"))).Removals[0]
			if len(gone.Endpoints) != len(tc.now) {
				t.Errorf("a removal names %d endpoints, not the %d it read", len(gone.Endpoints), len(tc.now))
			}
		})
	}
}

func TestEndpointsNameTheirFirstSource(t *testing.T) {
	r := kustomization("r", sources(git("apps", "a"), git("apps", "a/"), git("apps", "b")))
	endpoints, index := Endpoints(&r)
	diff(t, "indexes", []int{0, 2}, index)
	if len(endpoints) != 2 || endpoints[1] != unique.Make(schema.Endpoint{Repo: "git.example/org/apps", Ref: "dev", Path: "b"}) {
		t.Errorf("endpoints are %v", endpoints)
	}
}

func TestSettled(t *testing.T) {
	progress := status(schema.StatusInProgress, "Progressing")
	cases := map[string]struct {
		reason string
		says   []schema.Reconciler
		want   bool
	}{
		"Success":         {"Success settles.", []schema.Reconciler{kustomization("a")}, true},
		"Never":           {"A wait from the start has not settled.", []schema.Reconciler{kustomization("a", progress)}, false},
		"Flicker":         {"A later wait keeps it.", []schema.Reconciler{kustomization("a"), kustomization("a", progress)}, true},
		"FlickerObserved": {"A wait at the observed generation keeps it.", []schema.Reconciler{kustomization("a"), kustomization("a", progress, generation(true))}, true},
		"Failure":         {"A later failure keeps it.", []schema.Reconciler{kustomization("a"), kustomization("a", status(schema.StatusFailure, "HealthCheckFailed"))}, true},
		"NewGeneration":   {"A generation not looked at yet resets it.", []schema.Reconciler{kustomization("a"), kustomization("a", progress, generation(false))}, false},
		"StaysReset":      {"Looking at it is not success.", []schema.Reconciler{kustomization("a"), kustomization("a", progress, generation(false)), kustomization("a", progress, generation(true))}, false},
		"Again":           {"Success at the new generation settles again.", []schema.Reconciler{kustomization("a"), kustomization("a", progress, generation(false)), kustomization("a", generation(true))}, true},
		"OldSuccess":      {"A success said of an older generation proves nothing.", []schema.Reconciler{kustomization("a", generation(false))}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewState()
			for i, r := range tc.says {
				tell(t, s, delta(uint64(i)+1, r))
			}
			if got := s.Entries[ref("Kustomization", "a")].Settled; got != tc.want {
				t.Errorf("%s Settled is %t", tc.reason, got)
			}
		})
	}
}

func TestSince(t *testing.T) {
	s := NewState()
	see := func(want time.Time, r *schema.Report, why string) {
		t.Helper()
		tell(t, s, r)
		if got := s.Entries[ref("Kustomization", "a")].Since; !got.Equal(want) {
			t.Errorf("%s: since %s, want %s", why, got, want)
		}
	}
	failing := status(schema.StatusFailure, "BuildFailed")
	see(at(1), delta(1, kustomization("a")), "the report's time stands in for none")
	see(at(1), delta(2, kustomization("a", applies(commitB))), "the status went on")
	see(at(3), delta(3, kustomization("a", failing)), "another status began")
	see(at(40), delta(4, kustomization("a", func(r *schema.Reconciler) { r.ObservedAt = at(40) })), "the agent's own time comes before the report's")
	see(at(50), delta(5, kustomization("a", failing, func(r *schema.Reconciler) { r.ObservedAt, r.Since = at(41), at(50) })), "the reconciler's own word comes first")
}

func TestAgentVersionStays(t *testing.T) {
	s := NewState()
	r := delta(1)
	r.Agent.Version = "1.2.3"
	tell(t, s, r)
	tell(t, s, delta(2))
	if s.Position.AgentVersion != "1.2.3" {
		t.Errorf("the agent's version is %q", s.Position.AgentVersion)
	}
}

func TestLateChangesHistoryAlone(t *testing.T) {
	r := delta(3, kustomization("a"))
	r.Removed = []schema.ObjectRef{ref("Kustomization", "b")}
	c := Late("c1", r, at(9))
	changed, _ := upserts(c)
	diff(t, "upserts", []string{"a"}, changed)
	diff(t, "removals", []string{"b"}, removed(c))
	if !c.Late || c.Report != r || c.Cluster != "c1" || !c.ReceivedAt.Equal(at(9)) {
		t.Errorf("late changes are %+v", c)
	}
}

func TestClear(t *testing.T) {
	s := NewState()
	first := delta(7, kustomization("b"), kustomization("a"))
	first.UnlistedKinds = []string{"Application"}
	tell(t, s, first)
	c, ok := s.Clear("c1", 1, at(9))
	if !ok || len(s.Entries) != 0 || s.Position.Digest != (schema.Digest{}) || len(s.Position.UnlistedKinds) != 0 {
		t.Errorf("after a decommission the state is %+v", s)
	}
	diff(t, "removals, sorted", []string{"a", "b"}, removed(c))
	if v := c.Position.Version(); v <= schema.Version(1, schema.MaxSequence) || v >= schema.Version(2, 1) {
		t.Errorf("a decommission stands at %d/%d: it must come after every message of its epoch and before the next one's", c.Position.Epoch, c.Position.Sequence)
	}
	if again, ok := s.Clear("c1", 1, at(10)); !ok || len(again.Removals) != 0 {
		t.Errorf("a decommission that is sent again does %+v", again)
	}

	// The cluster came back before the decommission was folded.
	back := delta(1, kustomization("a"))
	back.Epoch = 2
	tell(t, s, back)
	if _, ok := s.Clear("c1", 1, at(11)); ok || len(s.Entries) != 1 {
		t.Error("a decommission of an older epoch took the new one's reconcilers")
	}
}

func TestChangesAreNotWrittenToLater(t *testing.T) {
	s := NewState()
	c := tell(t, s, delta(1, kustomization("a")))
	before := c.Upserts[0].Entry.Latch.String()
	tell(t, s, delta(2, kustomization("a", status(schema.StatusFailure, "x"))))
	tell(t, s, delta(3, kustomization("a", applies(commitB))))
	if d := cmp.Diff(before, c.Upserts[0].Entry.Latch.String()); d != "" {
		t.Errorf("changes that wait to be stored were changed: %s", d)
	}
}

// A reconciler whose source object is not there stays a reader of what it read
// last: else a gate would pass without it.
func TestSourceThatIsNotThere(t *testing.T) {
	lost := func(r *schema.Reconciler) { r.Sources, r.Applied, r.Attempted = []schema.Source{}, nil, nil }
	complains := func(r *schema.Reconciler) { r.SourceError = "GitRepository flux-system/apps is not there" }
	apps := "git.example/org/apps#dev:a"
	cases := map[string]struct {
		reason        string
		before, after schema.Reconciler
		want          []string
		left          int
	}{
		"NotThere":  {"The last endpoint stays.", kustomization("a"), kustomization("a", lost, complains), []string{apps}, 0},
		"NoSource":  {"One that reads nothing, and says so, leaves.", kustomization("a"), kustomization("a", lost), nil, 1},
		"Another":   {"One that reads another place leaves.", kustomization("a"), kustomization("a", complains, sources(git("other", "x"))), []string{"git.example/org/other#dev:x"}, 1},
		"NeverRead": {"Where nothing was known, nothing is made up.", kustomization("a", lost), kustomization("a", lost, complains), nil, 0},
		"Chart": {"A chart stays one.", kustomization("a", lost, sources(schema.Source{Type: schema.SourceOCI, URL: "oci://reg.example/charts/x", Ref: "1.0.0"})),
			kustomization("a", lost, complains), []string{"oci://reg.example/charts/x#1.0.0:"}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewState()
			tell(t, s, delta(1, tc.before))
			c := tell(t, s, delta(2, tc.after))
			u := c.Upserts[0]
			diff(t, tc.reason+" Endpoints", tc.want, endpointTexts(&u.Entry))
			if len(u.Left) != tc.left || len(u.Index) != len(tc.want) {
				t.Errorf("%s It leaves %d endpoints, %v", tc.reason, len(u.Left), u.Index)
			}
			if u.Entry.Digest != tc.after.Digest() {
				t.Errorf("%s The digest is not that of what the agent said", tc.reason)
			}
			tc.after.Message = "said again, in a snapshot"
			c = tell(t, s, part(3, 1, 2, kustomizations, tc.after))
			diff(t, tc.reason+" Later", tc.want, endpointTexts(&c.Upserts[0].Entry))
			c = tell(t, s, part(4, 2, 2, kustomizations, tc.after))
			diff(t, tc.reason+" Unchanged", tc.want, endpointTexts(&c.Upserts[0].Entry))
		})
	}
}

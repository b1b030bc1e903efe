package fold

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// line is a run in few letters: the first letter of each commit, then the
// minutes of success and steadiness, "-" for never, and "!" where it failed.
func line(r Run) string {
	var commits []string
	for _, c := range r.Commits() {
		if c == "" {
			c = "_"
		}
		commits = append(commits, c[:1])
	}
	minute := func(at time.Time) string {
		if at.IsZero() {
			return "-"
		}
		return fmt.Sprint(int(at.Sub(start).Minutes()))
	}
	mark := ""
	if r.Failed {
		mark = "!"
	}
	return strings.Join(commits, "+") + " " + minute(r.SuccessAt) + " " + minute(r.SteadyAt) + mark
}

func lines(l Latch) []string {
	var all []string
	for _, r := range l.Runs {
		all = append(all, line(r))
	}
	return all
}

func TestRuns(t *testing.T) {
	failing, progressing := status(schema.StatusFailure, "HealthCheckFailed"), status(schema.StatusInProgress, "Progressing")
	two := sources(git("apps", "a"), git("values", "v"))
	cases := map[string]struct {
		reason string
		// says are told a minute apart, from minute 1.
		says []schema.Reconciler
		want []string
	}{
		"Success":        {"Success is noted with its time.", []schema.Reconciler{kustomization("a")}, []string{"a 1 1"}},
		"WaitFirst":      {"A wait is a run without success.", []schema.Reconciler{kustomization("a", progressing)}, []string{"a - -"}},
		"ThenSuccess":    {"The success of a run may come later.", []schema.Reconciler{kustomization("a", progressing), kustomization("a")}, []string{"a 2 2"}},
		"Flicker":        {"Ready flickers: what was seen stays.", []schema.Reconciler{kustomization("a"), kustomization("a", progressing), kustomization("a")}, []string{"a 1 1"}},
		"FailureAtIt":    {"A failure of what runs resets the soak, not the success.", []schema.Reconciler{kustomization("a"), kustomization("a", failing)}, []string{"a 1 -!"}},
		"Recovers":       {"Steadiness begins again; the failure is remembered.", []schema.Reconciler{kustomization("a"), kustomization("a", failing), kustomization("a")}, []string{"a 1 3!"}},
		"FailureAtNewer": {"A newer revision that fails says nothing of the one that runs.", []schema.Reconciler{kustomization("a"), kustomization("a", failing, attempts(commitB))}, []string{"a 1 1"}},
		"FailureAtNone":  {"A failure that names no commit may be of what runs.", []schema.Reconciler{kustomization("a"), kustomization("a", failing, attempts())}, []string{"a 1 -!"}},
		"Next":           {"Another applied revision is another run.", []schema.Reconciler{kustomization("a"), kustomization("a", applies(commitB), progressing), kustomization("a", applies(commitB))}, []string{"a 1 1", "b 3 3"}},
		"AndBack":        {"A rollback is a run of its own.", []schema.Reconciler{kustomization("a"), kustomization("a", applies(commitB)), kustomization("a", progressing)}, []string{"a 1 1", "b 2 2", "a - -"}},
		"NothingApplied": {"A report without a revision ends no run.", []schema.Reconciler{kustomization("a"), kustomization("a", progressing, applies())}, []string{"a 1 1"}},
		"NoCommit":       {"A revision that is no commit is a run without one.", []schema.Reconciler{kustomization("a", func(r *schema.Reconciler) { r.Applied = []string{"1.2.3"} })}, []string{"_ 1 1"}},
		"PathMoves":      {"What was applied from elsewhere proves nothing here.", []schema.Reconciler{kustomization("a"), kustomization("a", sources(git("apps", "other")), progressing)}, []string{"a - -"}},
		"RefMoves":       {"Nor from another ref.", []schema.Reconciler{kustomization("a"), kustomization("a", func(r *schema.Reconciler) { r.Sources[0].Ref = "prod" })}, []string{"a 2 2"}},
		"TwoSources":     {"Either source makes another run.", []schema.Reconciler{kustomization("a", two, applies(commitA, commitA)), kustomization("a", two, applies(commitA, commitB), progressing)}, []string{"a+a 1 1", "a+b - -"}},
		"OrderOfSources": {"Another order of sources begins anew.", []schema.Reconciler{kustomization("a", two, applies(commitA, commitB)), kustomization("a", sources(git("values", "v"), git("apps", "a")), applies(commitB, commitA), progressing)}, []string{"b+a - -"}},
		"SameTwice": {"One endpoint twice counts once, by its first source.", []schema.Reconciler{
			kustomization("a", sources(git("apps", "a"), git("apps", "a/"), git("values", "v")), applies(commitA, commitA, commitB)),
			kustomization("a", sources(git("apps", "a"), git("values", "v"), git("values", "v/")), applies(commitA, commitB, commitB), progressing),
		}, []string{"a+b 1 1"}},
		"Origin": {"The origin of an artifact is what was applied.", []schema.Reconciler{kustomization("a", sources(schema.Source{Type: schema.SourceOCI, URL: "oci://registry.example/a"}), func(r *schema.Reconciler) {
			r.Applied, r.Origin = nil, []string{"main@sha1:" + commitC}
		})}, []string{"c 1 1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewState()
			for i, r := range tc.says {
				tell(t, s, delta(uint64(i)+1, r))
			}
			diff(t, tc.reason, tc.want, lines(s.Entries[ref("Kustomization", "a")].Latch))
		})
	}
}

func TestRunsAreBounded(t *testing.T) {
	s := NewState()
	for i := range 3 * MaxRuns {
		commit := fmt.Sprintf("%040x", i)
		tell(t, s, delta(uint64(i)+1, kustomization("a", applies(commit))))
	}
	runs := s.Entries[ref("Kustomization", "a")].Latch.Runs
	if len(runs) != MaxRuns {
		t.Fatalf("%d runs are kept, want %d", len(runs), MaxRuns)
	}
	if got := runs[len(runs)-1].Commits()[0]; got != fmt.Sprintf("%040x", 3*MaxRuns-1) {
		t.Errorf("the newest run is %s: the oldest ones must go", got)
	}
}

func TestAging(t *testing.T) {
	artifact, progressing := status(schema.StatusInProgress, "ArtifactFailed"), status(schema.StatusInProgress, "Progressing")
	dependency := status(schema.StatusInProgress, "DependencyNotReady")
	failing := status(schema.StatusFailure, "ComparisonError")
	helm := ofKind("HelmRelease")
	cases := map[string]struct {
		reason string
		says   []schema.Reconciler
		// since is the minute that the clock began, 0 for no clock; aging
		// whether it counts now.
		since int
		aging bool
	}{
		"ArtifactFailed":      {"An artifact that cannot be had ages.", []schema.Reconciler{kustomization("a", artifact)}, 1, true},
		"SourceNotReady":      {"So does a source that is not ready.", []schema.Reconciler{kustomization("a", helm, status(schema.StatusInProgress, "SourceNotReady"))}, 1, true},
		"HelmDependency":      {"So does a dependency of a HelmRelease.", []schema.Reconciler{kustomization("a", helm, dependency)}, 1, true},
		"Dependency":          {"A dependency of a Kustomization does not.", []schema.Reconciler{kustomization("a", dependency)}, 0, false},
		"Progress":            {"Progress does not.", []schema.Reconciler{kustomization("a", progressing)}, 0, false},
		"Same":                {"The clock runs on while it is so.", []schema.Reconciler{kustomization("a", artifact), kustomization("a", artifact, func(r *schema.Reconciler) { r.Message = "again" })}, 1, true},
		"Flicker":             {"A flicker stops the effect, not the clock.", []schema.Reconciler{kustomization("a", artifact), kustomization("a", progressing)}, 1, false},
		"FlickerBack":         {"Back from a flicker the old clock holds.", []schema.Reconciler{kustomization("a", artifact), kustomization("a", progressing), kustomization("a", artifact)}, 1, true},
		"FlickerUnknown":      {"Unknown is a flicker too.", []schema.Reconciler{kustomization("a", artifact), kustomization("a", status(schema.StatusUnknown, "")), kustomization("a", artifact)}, 1, true},
		"NewRevision":         {"Another revision restarts it.", []schema.Reconciler{kustomization("a", artifact), kustomization("a", artifact, attempts(commitB))}, 2, true},
		"NewReason":           {"Another reason restarts it.", []schema.Reconciler{kustomization("a", artifact), kustomization("a", status(schema.StatusInProgress, "SourceNotReady"))}, 2, true},
		"Success":             {"Success ends it.", []schema.Reconciler{kustomization("a", artifact), kustomization("a"), kustomization("a", artifact)}, 3, true},
		"Suspended":           {"A suspension ends it.", []schema.Reconciler{kustomization("a", artifact), kustomization("a", status(schema.StatusSuspended, ""))}, 0, false},
		"FailureAtCommit":     {"A failure at a commit needs no clock.", []schema.Reconciler{kustomization("a", failing)}, 0, false},
		"FailureAtBranch":     {"A failure at a branch's name ages.", []schema.Reconciler{kustomization("a", failing, attemptedText("dev"))}, 1, true},
		"FailureAtNothing":    {"A failure that names nothing ages.", []schema.Reconciler{kustomization("a", failing, attempts())}, 1, true},
		"FailureOfOneSource":  {"One source without a commit is enough: it is judged by itself.", []schema.Reconciler{kustomization("a", sources(git("apps", "a"), git("values", "v")), failing, attempts(commitA, ""))}, 1, true},
		"FailureOfAnArtifact": {"A digest is no commit.", []schema.Reconciler{kustomization("a", sources(schema.Source{Type: schema.SourceOCI, URL: "oci://registry.example/a"}), failing, attemptedText("latest@sha256:"+strings.Repeat("a", 64)))}, 1, true},
		"FailureThenCommit":   {"The commit, once known, ends it.", []schema.Reconciler{kustomization("a", failing, attempts()), kustomization("a", failing)}, 0, false},
		"PathMoves":           {"The clock of a wait survives a move: it waits all the same.", []schema.Reconciler{kustomization("a", artifact), kustomization("a", artifact, sources(git("apps", "b")))}, 1, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewState()
			for i, r := range tc.says {
				tell(t, s, delta(uint64(i)+1, r))
			}
			var l Latch
			for _, e := range s.Entries {
				l = e.Latch
			}
			var want time.Time
			if tc.since > 0 {
				want = at(tc.since)
			}
			if !l.AgingSince.Equal(want) || l.Aging != tc.aging {
				t.Errorf("%s Since %s (want %s), ageing %t", tc.reason, l.AgingSince, want, l.Aging)
			}
		})
	}
}

func TestLatchRoundTrip(t *testing.T) {
	says := map[string][]schema.Reconciler{
		"Empty":      {kustomization("a", applies(), attempts())},
		"Runs":       {kustomization("a"), kustomization("a", applies(commitB), status(schema.StatusFailure, "x")), kustomization("a", applies(commitC), status(schema.StatusInProgress, "y"))},
		"TwoSources": {kustomization("a", sources(git("apps", "a"), git("values", "v")), applies(commitA, ""))},
		"Aging":      {kustomization("a", status(schema.StatusInProgress, "ArtifactFailed"))},
		"Flicker":    {kustomization("a", status(schema.StatusInProgress, "ArtifactFailed")), kustomization("a", status(schema.StatusInProgress, "z"))},
		"Odd":        {kustomization("a", status(schema.StatusFailure, `"quoted" \ é <html>`), attemptedText("brånch'`<&>"))},
	}
	for name, list := range says {
		t.Run(name, func(t *testing.T) {
			s := NewState()
			for i, r := range list {
				tell(t, s, delta(uint64(i)+1, r))
			}
			l := s.Entries[ref("Kustomization", "a")].Latch
			got, err := ParseLatch(l.String())
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "runs", lines(l), lines(got))
			if got.AgingKey != l.AgingKey || !got.AgingSince.Equal(l.AgingSince) || got.Aging != l.Aging || got.String() != l.String() {
				t.Errorf("%q came back as %q", l.String(), got.String())
			}
			for i := range l.Runs {
				if l.Runs[i] != got.Runs[i] { // as Apply compares them
					t.Errorf("run %d: %+v came back as %+v", i, l.Runs[i], got.Runs[i])
				}
			}
		})
	}
	if l, err := ParseLatch(""); err != nil || l.String() != "" {
		t.Errorf("no latch reads as %+v, %v", l, err)
	}
	for _, bad := range []string{"{", "[]", `{"r":1}`} {
		if _, err := ParseLatch(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

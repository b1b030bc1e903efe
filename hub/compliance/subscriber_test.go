package compliance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/schema"
)

// source changes the only source of a subscriber.
func source(applied, attempted string, runs ...compliance.Run) func(*compliance.Subscriber) {
	return func(s *compliance.Subscriber) {
		s.Sources[0].Applied, s.Sources[0].Attempted, s.Sources[0].Runs = applied, attempted, runs
	}
}

// says changes a subscriber's status and reason.
func says(status schema.Status, reason string) func(*compliance.Subscriber) {
	return func(s *compliance.Subscriber) { s.Status, s.Reason = status, reason }
}

func folder(path string) func(*compliance.Subscriber) {
	return func(s *compliance.Subscriber) { s.Sources[0].Path = path }
}

func both(fs ...func(*compliance.Subscriber)) func(*compliance.Subscriber) {
	return func(s *compliance.Subscriber) {
		for _, f := range fs {
			f(s)
		}
	}
}

func silentFor(d time.Duration) func(*compliance.Subscriber) {
	return func(s *compliance.Subscriber) { s.Reporter.LastSeen = now.Add(-d) }
}

func ageing(minute float64) func(*compliance.Subscriber) {
	return func(s *compliance.Subscriber) { s.AgingSince = at(minute) }
}

func TestSubscriberTable(t *testing.T) {
	unseen := compliance.Run{Commit: "c2"}
	cases := map[string]struct {
		reason string
		change func(*compliance.Subscriber)
		graph  func(*history)
		// commit is asked for instead of c2.
		commit    string
		want      schema.Outcome
		why       string
		currently schema.Status
	}{
		// Row 1.
		"SilentCluster": {
			reason: "A success of a cluster that is heard of no more proves nothing.",
			change: silentFor(6*time.Minute + 12*time.Second + 300*time.Millisecond),
			want:   schema.OutcomeUnknown, why: "no heartbeat for 6m12s",
		},
		"SilentForFiveIntervals": {
			reason: "Five heartbeats of 30 seconds are over at 2m30s.",
			change: silentFor(5 * heartbeat),
			want:   schema.OutcomeUnknown, why: "no heartbeat for 2m30s",
		},
		"SilentForLess": {
			reason: "Up to five heartbeats may be missed.",
			change: silentFor(5*heartbeat - time.Nanosecond),
			want:   schema.OutcomeCompliant,
		},
		"SlowHeartbeat": {
			reason: "Silence is measured in the cluster's own intervals.",
			change: both(silentFor(20*time.Minute), func(s *compliance.Subscriber) { s.Reporter.HeartbeatInterval = 5 * time.Minute }),
			want:   schema.OutcomeCompliant,
		},
		"ReporterIsWhatIsSilent": {
			reason: "Silence is judged by the reporter's heartbeat, not the destination's.",
			change: func(s *compliance.Subscriber) {
				s.Destination = &compliance.Cluster{Name: "far", HeartbeatInterval: heartbeat, LastSeen: at(0)}
			},
			want: schema.OutcomeCompliant,
		},
		"KindUnlisted": {
			reason: "A kind that cannot be listed any more hides every change.",
			change: func(s *compliance.Subscriber) { s.Reporter.UnlistedKinds = []string{"Application", "Kustomization"} },
			want:   schema.OutcomeUnknown, why: "Kustomization can no longer be listed",
		},
		"OtherKindUnlisted": {
			reason: "Another kind's loss is not this one's.",
			change: func(s *compliance.Subscriber) { s.Reporter.UnlistedKinds = []string{"Application"} },
			want:   schema.OutcomeCompliant,
		},
		"StatusUnknown": {
			reason: "A state that the reader does not know comes before the latch.",
			change: says(schema.StatusUnknown, "HealthUnknown"),
			want:   schema.OutcomeUnknown, why: "HealthUnknown",
		},
		"StatusNobodyKnows": {
			reason: "A status of a newer agent is no success.",
			change: says("splendid", ""),
			want:   schema.OutcomeUnknown, why: "splendid",
		},
		"SilentBeforeReverted": {
			reason: "The first row wins over the second.",
			change: both(silentFor(time.Hour), source("c4", "c4", run("c4", 10))),
			want:   schema.OutcomeUnknown, why: "no heartbeat for 1h",
		},

		// Row 2.
		"Reverted": {
			reason: "A comes after C, but drone is again what it was before C.",
			change: source("c4", "c4", run("c2", 10), run("c4", 20)),
			want:   schema.OutcomeFailed, why: "reverted",
		},
		"RevertedBeforeSuspended": {
			reason: "The second row wins over the fifth.",
			change: both(source("c4", "c4", run("c4", 20)), says(schema.StatusSuspended, "")),
			want:   schema.OutcomeFailed, why: "reverted",
		},
		"RevertedInOpaquePaths": {
			reason: "Only not_affected is off for opaque paths.",
			change: both(source("c4", "c4", run("c4", 20)), func(s *compliance.Subscriber) { s.OpaquePaths = true }),
			want:   schema.OutcomeFailed, why: "reverted",
		},
		"NothingToRevert": {
			reason: "C did not change idle, so that equal trees are no revert.",
			change: both(source("c4", "c4", run("c4", 20)), folder("idle")),
			want:   schema.OutcomeCompliant,
		},
		"ChangedAgain": {
			reason: "A later change of the same folder is no revert.",
			change: source("c4", "c4", run("c4", 20)),
			graph:  func(h *history) { h.trees["c4"]["drone"] = "d4" },
			want:   schema.OutcomeCompliant,
		},
		"RevertCannotBeTold": {
			reason: "Without the trees of C's parent nothing is called reverted, nor compliant.",
			change: source("c4", "c4", run("c4", 20)),
			graph:  func(h *history) { delete(h.trees, "c1") },
			want:   schema.OutcomeUnknownLineage, why: "its commit or this one is not in the mirror",
		},
		"RevertByUnknownTrees": {
			reason: "Nor without the trees of A.",
			change: source("c4", "c4", run("c4", 20)),
			graph:  func(h *history) { delete(h.trees, "c4") },
			want:   schema.OutcomeUnknownLineage, why: "its commit or this one is not in the mirror",
		},
		"FirstCommitOfTheRepository": {
			reason: "A root commit has no parent to go back to.",
			change: source("c4", "c4", run("c4", 20)), commit: "c0",
			want: schema.OutcomeCompliant,
		},

		// Row 3.
		"LatchedAtTheCommit":   {reason: "Success at C.", change: source("c2", "c2", run("c2", 10)), want: schema.OutcomeCompliant},
		"LatchedAtADescendant": {reason: "Success after C.", change: source("c3", "c3", run("c1", 1), run("c3", 10)), want: schema.OutcomeCompliant},
		"LatchedInAnOlderRun": {
			reason: "A later commit that did not succeed yet takes nothing back.",
			change: both(source("c3", "c3", run("c2", 10), compliance.Run{Commit: "c3"}), says(schema.StatusInProgress, "Progressing")),
			want:   schema.OutcomeCompliant, currently: schema.StatusInProgress,
		},
		"LatchedAndFailing": {
			reason: "Ready flickers; the failure is shown beside.",
			change: says(schema.StatusFailure, "HealthCheckFailed"),
			want:   schema.OutcomeCompliant, currently: schema.StatusFailure,
		},
		"LatchedAndInProgress": {reason: "The same.", change: says(schema.StatusInProgress, ""), want: schema.OutcomeCompliant, currently: schema.StatusInProgress},
		"LatchedAndPending":    {reason: "Out of sync, waiting for a person.", change: says(schema.StatusPending, "OutOfSync"), want: schema.OutcomeCompliant, currently: schema.StatusPending},
		"LatchedAndSuspended":  {reason: "Suspended after the success.", change: says(schema.StatusSuspended, ""), want: schema.OutcomeCompliant, currently: schema.StatusSuspended},
		"LatchedAndAged": {
			reason: "What is shown beside ages like the rest.",
			change: both(says(schema.StatusInProgress, "ArtifactFailed"), ageing(50)),
			want:   schema.OutcomeCompliant, currently: schema.StatusFailure,
		},
		"LatchIsLostWithTheCommit": {
			reason: "A left C's descendants in between: the success before does not count.",
			change: source("c3", "c3", run("c2", 10), run("c1", 20), compliance.Run{Commit: "c3"}),
			want:   schema.OutcomeInProgress, why: "no success at this commit yet",
		},

		// Row 4.
		"NotAffected": {
			reason: "C does not touch the folder: what is there is what C says.",
			change: both(source("c1", "c1", run("c1", 1)), folder("idle")),
			want:   schema.OutcomeCompliant,
		},
		"NotAffectedButOpaque": {
			reason: "Equal trees prove nothing for paths with references out of them.",
			change: both(source("c1", "c1", run("c1", 1)), folder("idle"), func(s *compliance.Subscriber) { s.OpaquePaths = true }),
			want:   schema.OutcomePending, why: "not fetched",
		},
		"NotAffectedButOpen": {
			reason: "Equal trees prove nothing for a folder that the graph knows to depend on others.",
			change: both(source("c1", "c1", run("c1", 1)), folder("idle")),
			graph:  func(h *history) { h.open = map[string]bool{"idle": true} },
			want:   schema.OutcomePending, why: "not fetched",
		},
		"NotAffectedBelow": {
			reason: "What the folders above leave out is as it was.",
			change: both(source("c1", "c1", run("c1", 1)), folder("idle/deep/er")),
			want:   schema.OutcomeCompliant,
		},
		"IgnoredBelow": {
			reason: "A folder above leaves out something else now: the same tree is another folder to its reader.",
			change: both(source("c1", "c1", run("c1", 1)), folder("idle/deep/er")),
			graph:  func(h *history) { h.trees["c2"]["idle/.sourceignore"] = "i2" },
			want:   schema.OutcomePending, why: "not fetched",
		},
		"IgnoredAtTheRoot": {
			reason: "The same for the repository's own.",
			change: both(source("c1", "c1", run("c1", 1)), folder("idle")),
			graph:  func(h *history) { h.trees["c2"][".sourceignore"] = "i2" },
			want:   schema.OutcomePending, why: "not fetched",
		},
		"NotAffectedButFailing": {
			reason: "Only a success counts.",
			change: both(source("c1", "c1", run("c1", 1)), folder("idle"), says(schema.StatusFailure, "HealthCheckFailed")),
			want:   schema.OutcomePending, why: "not fetched",
		},
		"NotAffectedButSuspended": {
			reason: "Only a success counts.",
			change: both(source("c1", "c1", run("c1", 1)), folder("idle"), says(schema.StatusSuspended, "")),
			want:   schema.OutcomeSuspended, why: "suspended",
		},
		"NotAffectedCannotBeTold": {
			reason: "Unknown trees are not equal ones.",
			change: both(source("c1", "c1", run("c1", 1)), folder("idle")),
			graph:  func(h *history) { delete(h.trees, "c1") },
			want:   schema.OutcomePending, why: "not fetched",
		},
		"Affected": {
			reason: "C touches the folder.",
			change: source("c1", "c1", run("c1", 1)),
			want:   schema.OutcomePending, why: "not fetched",
		},

		// Row 5.
		"Suspended":           {reason: "It will not go on.", change: both(source("c1", "c1"), says(schema.StatusSuspended, "x")), want: schema.OutcomeSuspended, why: "suspended"},
		"SuspendedAtC":        {reason: "Applied, no success seen.", change: both(source("c2", "c2", unseen), says(schema.StatusSuspended, "")), want: schema.OutcomeSuspended, why: "suspended"},
		"SuspendedElsewhere":  {reason: "Before the lineage is asked.", change: both(source("z", "z"), says(schema.StatusSuspended, "")), want: schema.OutcomeSuspended, why: "suspended"},
		"SuspendedNeverRan":   {reason: "Before the first apply.", change: both(source("", ""), says(schema.StatusSuspended, "")), want: schema.OutcomeSuspended, why: "suspended"},
		"SuspendedSourceDown": {reason: "Suspension is the reason.", change: both(source("c1", ""), says(schema.StatusSuspended, ""), func(s *compliance.Subscriber) { s.SourceError = "denied" }), want: schema.OutcomeSuspended, why: "suspended"},

		// Row 6.
		"FailedAtC": {
			reason: "Attempted C and failed.",
			change: both(source("c1", "c2", run("c1", 1)), says(schema.StatusFailure, "BuildFailed"), func(s *compliance.Subscriber) { s.Message = "no such file" }),
			want:   schema.OutcomeFailed, why: "BuildFailed: no such file",
		},
		"FailedAfterC":    {reason: "A later attempt holds C too.", change: both(source("c1", "c3"), says(schema.StatusFailure, "")), want: schema.OutcomeFailed, why: "failure"},
		"FailedWhereItIs": {reason: "A holds C and never succeeded.", change: both(source("c2", "c2", unseen), says(schema.StatusFailure, "HealthCheckFailed")), want: schema.OutcomeFailed, why: "HealthCheckFailed"},
		"FailedBeforeC":   {reason: "A failure at an older commit says nothing of C.", change: both(source("c0", "c1"), says(schema.StatusFailure, "BuildFailed")), want: schema.OutcomePending, why: "not fetched"},
		"AgedToFailure": {
			reason: "Five minutes of ArtifactFailed at C.",
			change: both(source("c1", "c2"), says(schema.StatusInProgress, "ArtifactFailed"), ageing(55)),
			want:   schema.OutcomeFailed, why: "ArtifactFailed",
		},
		"NotAgedYet": {
			reason: "Less than five minutes of it.",
			change: both(source("c1", "c2"), says(schema.StatusInProgress, "ArtifactFailed"), ageing(55.01)),
			want:   schema.OutcomeInProgress, why: "ArtifactFailed",
		},
		"AgedBeforeC": {reason: "Aged at an older commit.", change: both(source("c0", "c1"), says(schema.StatusInProgress, "ArtifactFailed"), ageing(0)), want: schema.OutcomePending, why: "not fetched"},
		"FailedNowhere": {
			reason: "A failure at no commit counts at the newest one of the ref after five minutes.",
			change: both(source("c1", ""), says(schema.StatusFailure, "ComparisonError"), ageing(55)),
			want:   schema.OutcomeFailed, why: "ComparisonError",
		},
		"FailedNowhereYoung": {
			reason: "Before that it is no failure.",
			change: both(source("c1", ""), says(schema.StatusFailure, "ComparisonError"), ageing(56)),
			want:   schema.OutcomePending, why: "not fetched",
		},
		"FailedNowhereYoungAtC": {
			reason: "Nor where C is applied.",
			change: both(source("c2", "", unseen), says(schema.StatusFailure, "ComparisonError"), ageing(56)),
			want:   schema.OutcomeInProgress, why: "ComparisonError",
		},
		"FailedNowhereAgeless": {
			reason: "Without a beginning it never ages.",
			change: both(source("c2", "", unseen), says(schema.StatusFailure, "ComparisonError")),
			want:   schema.OutcomeInProgress, why: "ComparisonError",
		},
		"FailedNowhereBehindC": {
			reason: "The newest commit of the ref does not hold C yet.",
			change: both(source("c0", ""), says(schema.StatusFailure, "ComparisonError"), ageing(0)),
			graph:  func(h *history) { h.heads["dev"] = "c1" },
			want:   schema.OutcomePending, why: "not fetched",
		},
		"FailedNowhereNoHead": {
			reason: "Without a newest commit there is nothing to compare.",
			change: both(source("", ""), says(schema.StatusFailure, "ComparisonError"), ageing(0)),
			graph:  func(h *history) { h.heads = nil },
			want:   schema.OutcomePending, why: "never applied",
		},
		"FailedFirstEver": {
			reason: "Nothing was ever applied, and it fails at the newest commit.",
			change: both(source("", ""), says(schema.StatusFailure, "ComparisonError"), ageing(0)),
			want:   schema.OutcomeFailed, why: "ComparisonError",
		},

		// Row 7.
		"InProgressAtC":  {reason: "Working on C.", change: both(source("c1", "c2"), says(schema.StatusInProgress, "Progressing")), want: schema.OutcomeInProgress, why: "Progressing"},
		"AppliedAtC":     {reason: "C is applied and not healthy yet.", change: both(source("c2", "c2", unseen), says(schema.StatusInProgress, "")), want: schema.OutcomeInProgress, why: "in_progress"},
		"PendingAtC":     {reason: "Somebody has to press the button.", change: both(source("c1", "c2"), says(schema.StatusPending, "OutOfSync")), want: schema.OutcomePending, why: "OutOfSync"},
		"SuccessAtOlder": {reason: "A success at an older commit while C is tried.", change: both(source("c1", "c2", run("c1", 1)), says(schema.StatusSuccess, "")), want: schema.OutcomeInProgress, why: "no success at this commit yet"},

		// Row 8.
		"NeverReported": {
			reason: "Silence is not compliance.",
			change: func(s *compliance.Subscriber) {
				s.Expected, s.Status, s.Sources = true, "", nil
			},
			want: schema.OutcomePending, why: "never reported",
		},
		"NeverReportedAndSilent": {
			reason: "The first row wins.",
			change: both(silentFor(time.Hour), func(s *compliance.Subscriber) {
				s.Expected, s.Status, s.Sources = true, "", nil
			}),
			want: schema.OutcomeUnknown, why: "no heartbeat for 1h",
		},
		"NeverApplied":       {reason: "Neither A nor T.", change: source("", ""), want: schema.OutcomePending, why: "never applied"},
		"NoSource":           {reason: "The same.", change: func(s *compliance.Subscriber) { s.Sources = nil }, want: schema.OutcomePending, why: "never applied"},
		"NeverFetched":       {reason: "The source says why.", change: both(source("", ""), func(s *compliance.Subscriber) { s.SourceError = "authentication required" }), want: schema.OutcomePending, why: "authentication required"},
		"NotFetched":         {reason: "A is older.", change: source("c1", "c1", run("c1", 1)), want: schema.OutcomePending, why: "not fetched"},
		"NotFetchedYetTried": {reason: "Only T is known, and older.", change: source("", "c1"), want: schema.OutcomePending, why: "not fetched"},
		"SourceError": {
			reason: "It would be there if its source could fetch.",
			change: both(source("c1", "c1", run("c1", 1)), func(s *compliance.Subscriber) { s.SourceError = "failed to checkout" }),
			want:   schema.OutcomePending, why: "failed to checkout",
		},
		"RolledBack": {
			reason: "A left C's descendants.",
			change: source("c1", "c1", run("c3", 10), run("c1", 20)),
			want:   schema.OutcomePending, why: "rolled back",
		},
		"RelatedByT": {
			reason: "One related commit is enough.",
			change: source("z", "c1"),
			want:   schema.OutcomePending, why: "not fetched",
		},
		"ReachedByT": {
			reason: "The same for T at C.",
			change: both(source("z", "c3"), says(schema.StatusFailure, "BuildFailed")),
			want:   schema.OutcomeFailed, why: "BuildFailed",
		},

		// Row 9.
		"Unrelated":       {reason: "A force-push.", change: source("z", "z", run("z", 10)), want: schema.OutcomeUnknownLineage, why: "its commit and this one are not related"},
		"UnrelatedByT":    {reason: "Only T is known.", change: source("", "z"), want: schema.OutcomeUnknownLineage, why: "its commit and this one are not related"},
		"CommitNotFound":  {reason: "C is not in the mirror.", change: source("c3", "c3", run("c3", 10)), commit: "dead", want: schema.OutcomeUnknownLineage, why: "its commit or this one is not in the mirror"},
		"AppliedNotFound": {reason: "A is not in the mirror.", change: source("dead", "dead", run("dead", 10)), want: schema.OutcomeUnknownLineage, why: "its commit or this one is not in the mirror"},
		"EqualIsEnough":   {reason: "Exact equality needs no graph.", change: source("dead", "dead", run("dead", 10)), commit: "dead", want: schema.OutcomeCompliant},

		// Several sources.
		"WorstSource": {
			reason: "Each source is judged; the worst outcome wins.",
			change: func(s *compliance.Subscriber) {
				s.Sources = append(s.Sources, compliance.Source{Path: "drone", Applied: "c1", Attempted: "c1"}, s.Sources[0])
			},
			want: schema.OutcomePending, why: "not fetched",
		},
		"AllSources": {
			reason: "All of them hold C.",
			change: func(s *compliance.Subscriber) {
				s.Sources = append(s.Sources, compliance.Source{Path: "other", Applied: "c1", Attempted: "c1", Runs: []compliance.Run{run("c1", 1)}})
			},
			want: schema.OutcomeCompliant,
		},
		"LongMessage": {
			reason: "A list of a thousand rows carries no whole build logs.",
			change: both(source("c1", "c2"), says(schema.StatusFailure, "BuildFailed"), func(s *compliance.Subscriber) { s.Message = strings.Repeat("é", 400) }),
			want:   schema.OutcomeFailed, why: "BuildFailed: " + strings.Repeat("é", 143) + "…",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := compliantOn("drone-01")
			c.change(&s)
			in := ask(s)
			h := mainline()
			if c.graph != nil {
				c.graph(&h)
			}
			in.Graph = h
			if c.commit != "" {
				in.Commit = c.commit
			}
			expect(t, c.reason, compliance.Evaluate(in), c.want, c.why, c.currently)
		})
	}
}

// expect compares the outcome of a verdict on one subscriber.
func expect(t *testing.T, reason string, r compliance.Result, want schema.Outcome, why string, currently schema.Status) {
	t.Helper()
	var counts schema.Counts
	counts.Add(want)
	if diff := cmp.Diff(counts, r.Verdict.Counts); diff != "" {
		t.Errorf("%s\ncounts: -want +got:\n%s", reason, diff)
	}
	if want != schema.OutcomeCompliant {
		if len(r.Verdict.Unfinished) != 1 || r.Verdict.Unfinished[0].Verdict != want || r.Verdict.Unfinished[0].Reason != why {
			t.Errorf("%s\nunfinished: want %s %q, got %+v", reason, want, why, r.Verdict.Unfinished)
		}
	}
	if currently == "" {
		if len(r.Verdict.Currently) != 0 {
			t.Errorf("%s\ncurrently: want none, got %+v", reason, r.Verdict.Currently)
		}
		return
	}
	if len(r.Verdict.Currently) != 1 || r.Verdict.Currently[0].Status != currently {
		t.Errorf("%s\ncurrently: want %s, got %+v", reason, currently, r.Verdict.Currently)
	}
}

func TestEqualityGraph(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*compliance.Subscriber)
		want   schema.Outcome
		why    string
	}{
		"Applied":      {reason: "A is C.", change: source("c2", "c2", run("c2", 10)), want: schema.OutcomeCompliant},
		"Attempted":    {reason: "T is C.", change: both(source("c1", "c2"), says(schema.StatusInProgress, "Progressing")), want: schema.OutcomeInProgress, why: "Progressing"},
		"Failed":       {reason: "T is C and it failed.", change: both(source("c1", "c2"), says(schema.StatusFailure, "BuildFailed")), want: schema.OutcomeFailed, why: "BuildFailed"},
		"Another":      {reason: "Nothing is guessed.", change: source("c3", "c3", run("c3", 10)), want: schema.OutcomeUnknownLineage, why: "its commit or this one is not in the mirror"},
		"NeverApplied": {reason: "There is no commit to doubt.", change: source("", ""), want: schema.OutcomePending, why: "never applied"},
		"LatchEnds":    {reason: "A success at C before another commit was applied is gone.", change: source("c3", "c3", run("c2", 5), run("c3", 10)), want: schema.OutcomeUnknownLineage, why: "its commit or this one is not in the mirror"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := compliantOn("drone-01")
			c.change(&s)
			in := ask(s)
			in.Graph = compliance.Equality{}
			expect(t, c.reason, compliance.Evaluate(in), c.want, c.why, "")
		})
	}
}

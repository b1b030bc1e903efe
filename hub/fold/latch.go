package fold

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/schema"
)

// MaxRuns is how many spans of one applied revision are remembered: a question
// about an older commit finds what it needs in the newest of them, because its
// descendants were applied since.
const MaxRuns = 8

// Latch remembers what flickers: the success that was seen at each applied
// revision, and since when the present trouble has been there.
type Latch struct {
	// Runs are the revisions that were applied, oldest first.
	Runs []Run
	// AgingKey is the reason and revision that age to a failure, AgingSince
	// when they were first seen together. Aging says that they are so now: a
	// flicker to another wait keeps the clock.
	AgingKey   string
	AgingSince time.Time
	Aging      bool
}

// Run is a span of time in which the same revisions were applied.
type Run struct {
	// Applied holds the commit of each endpoint, joined (see Commits).
	Applied unique.Handle[string]
	// SuccessAt is when success was first seen in it, SteadyAt when it was
	// first seen since the last failure at these revisions; zero for never.
	SuccessAt, SteadyAt time.Time
	// Failed says that these revisions were seen to fail.
	Failed bool
}

// AgesSince is since when the present trouble has been there; zero where
// nothing ages now.
func (l *Latch) AgesSince() time.Time {
	if l.Aging {
		return l.AgingSince
	}
	return time.Time{}
}

// LandedAt reports whether the last run was first seen to succeed then.
func (l *Latch) LandedAt(now time.Time) bool {
	n := len(l.Runs)
	return n > 0 && l.Runs[n-1].SuccessAt.Equal(now)
}

// RunsAt returns the runs as the reader of the nth endpoint sees them.
func (l *Latch) RunsAt(nth int) []compliance.Run {
	found := make([]compliance.Run, 0, len(l.Runs))
	for _, r := range l.Runs {
		if commits := r.Commits(); nth < len(commits) {
			found = append(found, compliance.Run{Commit: commits[nth], SuccessAt: r.SuccessAt, SteadyAt: r.SteadyAt, Failed: r.Failed})
		}
	}
	return found
}

const separator = "\x1f"

// Commits returns the applied Git commit of each of the entry's endpoints, ""
// where it is not known.
func (r Run) Commits() []string { return strings.Split(r.Applied.Value(), separator) }

// applied joins the applied commits of the sources that index names, one for
// each endpoint.
func applied(r *schema.Reconciler, index []int) string {
	commits := make([]string, len(index))
	for i, source := range index {
		commits[i] = r.AppliedCommit(source)
	}
	return strings.Join(commits, separator)
}

// next returns the latch after the reconciler said r at the time now; index
// holds the source of each endpoint. The runs are copied when they change: the
// ones before may still be read.
func (l Latch) next(r *schema.Reconciler, index []int, now time.Time) Latch {
	l.Runs = nextRuns(l.Runs, r, index, now)
	key := agingKey(r)
	switch {
	case key != "" && key == l.AgingKey:
		l.Aging = true
	case key != "":
		l.AgingKey, l.AgingSince, l.Aging = key, now, true
	case r.Status == schema.StatusInProgress || r.Status == schema.StatusUnknown:
		l.Aging = false
	default:
		l.AgingKey, l.AgingSince, l.Aging = "", time.Time{}, false
	}
	return l
}

func nextRuns(runs []Run, r *schema.Reconciler, index []int, now time.Time) []Run {
	if len(r.Applied) == 0 && len(r.Origin) == 0 {
		return failedAgain(runs, r, index)
	}
	h := unique.Make(applied(r, index))
	var run Run
	fresh := len(runs) == 0 || runs[len(runs)-1].Applied != h
	if fresh {
		run.Applied = h
	} else {
		run = runs[len(runs)-1]
	}
	before := run
	switch r.Status {
	case schema.StatusSuccess:
		if run.SuccessAt.IsZero() {
			run.SuccessAt = now
		}
		if run.SteadyAt.IsZero() {
			run.SteadyAt = now
		}
	case schema.StatusFailure:
		if failsAtApplied(r) {
			run.SteadyAt, run.Failed = time.Time{}, true
		}
	}
	if !fresh && run == before {
		return runs
	}
	out := make([]Run, 0, len(runs)+1)
	out = append(out, runs...)
	if fresh {
		out = append(out, run)
	} else {
		out[len(out)-1] = run
	}
	return out[max(0, len(out)-MaxRuns):]
}

// failedAgain returns the runs after a report that does not say what is
// applied: a failure at what was applied last counts for it all the same.
func failedAgain(runs []Run, r *schema.Reconciler, index []int) []Run {
	if r.Status != schema.StatusFailure || len(runs) == 0 {
		return runs
	}
	last := runs[len(runs)-1]
	for i, commit := range last.Commits() {
		if i >= len(index) {
			return runs
		}
		if t := r.AttemptedCommit(index[i]); t != "" && t != commit {
			return runs
		}
	}
	out := slices.Clone(runs)
	last.SteadyAt, last.Failed = time.Time{}, true
	out[len(out)-1] = last
	return out
}

// failsAtApplied says whether a failure is one of what runs, not of a newer
// revision that was tried.
func failsAtApplied(r *schema.Reconciler) bool {
	for i := range r.Sources {
		if t := r.AttemptedCommit(i); t != "" && t != r.AppliedCommit(i) {
			return false
		}
	}
	return true
}

// agingKey returns the reason and revision of a wait that ages to a failure, or
// of a failure that is at no known commit for one of the sources; "" for all else.
func agingKey(r *schema.Reconciler) string {
	switch r.Status {
	case schema.StatusInProgress:
		waits := r.Reason == "ArtifactFailed" || r.Reason == "SourceNotReady" ||
			r.Reason == "DependencyNotReady" && r.Kind == "HelmRelease"
		if !waits {
			return ""
		}
	case schema.StatusFailure:
		known := true
		for i := range r.Sources {
			known = known && r.AttemptedCommit(i) != ""
		}
		if known {
			return ""
		}
	default:
		return ""
	}
	return r.Reason + separator + strings.Join(r.Attempted, separator)
}

// String returns the latch in its stored form, which ParseLatch reads: the runs
// as "commits,success,steady,failed" joined by ";", then, where something ages,
// "|since,now,key". Times are Unix milliseconds in base 36.
func (l Latch) String() string {
	if len(l.Runs) == 0 && l.AgingKey == "" {
		return ""
	}
	b := make([]byte, 0, 64*len(l.Runs)+len(l.AgingKey)+16)
	for i, r := range l.Runs {
		if i > 0 {
			b = append(b, ';')
		}
		b = append(b, r.Applied.Value()...)
		b = append(b, ',')
		b = appendTime(b, r.SuccessAt)
		b = append(b, ',')
		b = appendTime(b, r.SteadyAt)
		b = append(b, ',')
		b = appendFlag(b, r.Failed)
	}
	if l.AgingKey != "" {
		b = append(b, '|')
		b = appendTime(b, l.AgingSince)
		b = append(b, ',')
		b = appendFlag(b, l.Aging)
		b = append(b, ',')
		b = append(b, l.AgingKey...)
	}
	return string(b)
}

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return strconv.AppendInt(b, t.UnixMilli(), 36)
}

func appendFlag(b []byte, f bool) []byte {
	if f {
		return append(b, '1')
	}
	return b
}

// ParseLatch reads what String wrote.
func ParseLatch(s string) (Latch, error) {
	runs, aging, ages := strings.Cut(s, "|")
	var l Latch
	var err error
	if runs != "" {
		l.Runs = make([]Run, 0, strings.Count(runs, ";")+1)
		for part := range strings.SplitSeq(runs, ";") {
			run, parseErr := parseRun(part)
			err = errors.Join(err, parseErr)
			l.Runs = append(l.Runs, run)
		}
	}
	if ages {
		since, rest, _ := strings.Cut(aging, ",")
		now, key, ok := strings.Cut(rest, ",")
		if !ok || key == "" {
			err = errors.Join(err, errors.New("what ages has no reason"))
		}
		var parseErr error
		l.AgingSince, parseErr = parseTime(since)
		err = errors.Join(err, parseErr)
		l.Aging, l.AgingKey = now == "1", key
	}
	if err != nil {
		return Latch{}, fmt.Errorf("reading a stored latch: %w", err)
	}
	return l, nil
}

func parseRun(s string) (Run, error) {
	commits, rest, _ := strings.Cut(s, ",")
	success, rest, _ := strings.Cut(rest, ",")
	steady, failed, ok := strings.Cut(rest, ",")
	if !ok {
		return Run{}, errors.New("a run has less than four parts")
	}
	run := Run{Applied: unique.Make(commits), Failed: failed == "1"}
	var errSuccess, errSteady error
	run.SuccessAt, errSuccess = parseTime(success)
	run.SteadyAt, errSteady = parseTime(steady)
	return run, errors.Join(errSuccess, errSteady)
}

func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	ms, err := strconv.ParseInt(s, 36, 64)
	return time.UnixMilli(ms).UTC(), err
}

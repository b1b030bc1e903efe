package fold

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unique"

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
		return runs
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

// latchJSON is the stored form of a latch, times in Unix milliseconds.
type latchJSON struct {
	Runs       []runJSON `json:"r,omitempty"`
	AgingKey   string    `json:"k,omitempty"`
	AgingSince int64     `json:"s,omitempty"`
	Aging      bool      `json:"a,omitempty"`
}

type runJSON struct {
	Applied string `json:"a"`
	Success int64  `json:"s,omitempty"`
	Steady  int64  `json:"t,omitempty"`
	Failed  bool   `json:"f,omitempty"`
}

// String returns the latch in its stored form.
func (l Latch) String() string {
	if len(l.Runs) == 0 && l.AgingKey == "" {
		return ""
	}
	j := latchJSON{AgingKey: l.AgingKey, AgingSince: millis(l.AgingSince), Aging: l.Aging, Runs: make([]runJSON, len(l.Runs))}
	for i, r := range l.Runs {
		j.Runs[i] = runJSON{Applied: r.Applied.Value(), Success: millis(r.SuccessAt), Steady: millis(r.SteadyAt), Failed: r.Failed}
	}
	b, err := json.Marshal(j)
	if err != nil { // strings, numbers and booleans cannot fail
		panic(err)
	}
	return string(b)
}

// ParseLatch reads what String wrote.
func ParseLatch(s string) (Latch, error) {
	if s == "" {
		return Latch{}, nil
	}
	var j latchJSON
	if err := json.Unmarshal([]byte(s), &j); err != nil {
		return Latch{}, fmt.Errorf("reading a stored latch: %w", err)
	}
	l := Latch{AgingKey: j.AgingKey, AgingSince: fromMillis(j.AgingSince), Aging: j.Aging}
	for _, r := range j.Runs {
		l.Runs = append(l.Runs, Run{Applied: unique.Make(r.Applied), SuccessAt: fromMillis(r.Success), SteadyAt: fromMillis(r.Steady), Failed: r.Failed})
	}
	return l, nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

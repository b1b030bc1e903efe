package compliance

import "time"

// latch looks for success at or after the judged commit since the applied
// commit last left its descendants: readiness flickers on every interval, so a
// success that was seen once counts. It walks the runs from the newest
// backwards for as long as they hold the commit.
//
// since is the earliest success of that walk, zero when there was none. steady
// is where the soak counts from: the earliest moment of steadiness, but not
// beyond a failure, which resets the soak; zero when nothing is steady. A later
// commit does not reset it.
func (e *evaluation) latch(runs []Run) (since, steady time.Time) {
	failed := false
	for i := len(runs) - 1; i >= 0; i-- {
		r := &runs[i]
		if !e.lineage.reaches(r.Commit) {
			break
		}
		since = earliest(since, r.SuccessAt)
		if !failed {
			steady = earliest(steady, r.SteadyAt)
		}
		failed = failed || r.Failed
	}
	return since, steady
}

// leftCommit reports whether a run held the judged commit, for a subscriber
// that does not hold it now.
func (e *evaluation) leftCommit(runs []Run) bool {
	for i := len(runs) - 1; i >= 0; i-- {
		if e.lineage.reaches(runs[i].Commit) {
			return true
		}
	}
	return false
}

// earliest returns the earlier of two moments, where zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

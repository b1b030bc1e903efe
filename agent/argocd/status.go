package argocd

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

// What Argo CD writes, as far as the table speaks of it.
const (
	syncSynced    = "Synced"
	syncOutOfSync = "OutOfSync"

	healthHealthy     = "Healthy"
	healthProgressing = "Progressing"
	healthDegraded    = "Degraded"
	healthMissing     = "Missing"
	healthSuspended   = "Suspended"

	phaseRunning     = "Running"
	phaseTerminating = "Terminating"
	phaseSucceeded   = "Succeeded"
	phaseFailed      = "Failed"
	phaseError       = "Error"
)

// Every value that Argo CD is known to write; another one is no word of its.
var (
	syncs    = []string{"", syncSynced, syncOutOfSync, "Unknown"}
	healths  = []string{"", healthHealthy, healthProgressing, healthDegraded, healthMissing, healthSuspended, "Unknown"}
	phases   = []string{"", phaseRunning, phaseTerminating, phaseSucceeded, phaseFailed, phaseError}
	failures = []string{"ComparisonError", "InvalidSpecError", "UnknownError", conditionSync}
)

const conditionSync = "SyncError"

// outcome is a row of the status table.
type outcome struct {
	status  schema.Status
	reason  string
	message string
	drifted bool
	since   time.Time
}

// judge is the status table of the design; the first row that fits wins.
// Nothing is a success before the present specification was compared: until
// then the words are about another one.
func (a application) judge() outcome {
	if v, ok := a.unheardOf(); ok {
		return v
	}
	v := a.row()
	if v.status == schema.StatusSuccess && !a.current {
		return outcome{
			status: schema.StatusInProgress, reason: "SpecNotCompared",
			message: "its source or destination changed and was not compared yet",
		}
	}
	return v
}

func (a application) row() outcome {
	o := a.operation
	running := o.phase == phaseRunning || o.phase == phaseTerminating
	if a.reconciledAt.IsZero() || a.reconciledAt.Before(o.finishedAt) {
		return outcome{
			status: schema.StatusInProgress, reason: "NotReconciled", since: o.finishedAt,
			message: "it was not compared since its last operation ended",
		}
	}
	if v, ok := a.failedCondition(); ok {
		return v
	}
	switch {
	case (o.phase == phaseFailed || o.phase == phaseError) && o.isAt(a.compared):
		return outcome{status: schema.StatusFailure, reason: "Operation" + o.phase, message: o.message, since: o.finishedAt}
	case a.health == healthDegraded:
		return a.byHealth(schema.StatusFailure)
	case a.sync == syncSynced && a.health == healthMissing && !running:
		return a.byHealth(schema.StatusFailure)
	case running:
		return outcome{status: schema.StatusInProgress, reason: "Operation" + o.phase, message: o.message, since: o.startedAt}
	case a.health == healthProgressing, a.health == healthSuspended:
		return a.byHealth(schema.StatusInProgress)
	case a.sync == syncSynced && (a.health == healthHealthy || a.health == ""):
		return outcome{status: schema.StatusSuccess, reason: syncSynced, since: latest(a.healthSince, a.lastFullSync().at)}
	case a.sync == syncOutOfSync && a.deployedAsCompared() && !a.reconciledAt.After(latest(o.finishedAt, a.lastFullSync().at)):
		// Argo CD's times are whole seconds, and a first sync takes less than one:
		// this may be the comparison that asked for it, not one that found a drift.
		return outcome{
			status: schema.StatusInProgress, reason: "NotReconciled", since: o.finishedAt,
			message: "it was compared in the second in which its last sync ended: before or after it, nobody can tell",
		}
	case a.sync == syncOutOfSync && a.deployedAsCompared():
		return outcome{
			status: schema.StatusSuccess, reason: "Drifted", drifted: true,
			message: "what was deployed was changed on the cluster", since: latest(a.healthSince, a.lastFullSync().at),
		}
	case a.sync == syncOutOfSync && a.automated:
		return outcome{status: schema.StatusInProgress, reason: syncOutOfSync, message: "an automated sync is to come"}
	case a.sync == syncOutOfSync:
		return outcome{status: schema.StatusPending, reason: syncOutOfSync, message: "automated sync is off: it waits for a person"}
	}
	return outcome{
		status: schema.StatusUnknown, reason: "Sync" + cmp.Or(a.sync, "Missing") + "Health" + cmp.Or(a.health, "Missing"),
		message: a.healthText, since: a.healthSince,
	}
}

// unheardOf finds states that this reader does not know.
func (a application) unheardOf() (outcome, bool) {
	for _, w := range []struct {
		what, word string
		known      []string
	}{{"Sync", a.sync, syncs}, {"Health", a.health, healths}, {"Operation", a.operation.phase, phases}} {
		if !slices.Contains(w.known, w.word) {
			return outcome{status: schema.StatusUnknown, reason: w.what + "NotKnown", message: "Argo CD says " + w.word}, true
		}
	}
	return outcome{}, false
}

func (a application) byHealth(s schema.Status) outcome {
	return outcome{status: s, reason: a.health, message: a.healthText, since: a.healthSince}
}

// failedCondition finds a condition that says the application failed. A
// SyncError counts only for the revision that is compared now: Argo CD keeps it
// until the next sync.
func (a application) failedCondition() (outcome, bool) {
	for _, name := range failures {
		c, ok := a.conditions[name]
		if !ok || name == conditionSync && !a.syncErrorIsCurrent(c.message) {
			continue
		}
		return outcome{status: schema.StatusFailure, reason: name, message: c.message, since: c.since}, true
	}
	return outcome{}, false
}

// syncErrorIsCurrent reads the revisions out of "Failed last sync attempt to
// [a b]: …". Where none stand there, those of the operation that failed count,
// and where there is none either, the error does.
func (a application) syncErrorIsCurrent(message string) bool {
	_, rest, ok := strings.Cut(message, "attempt to ")
	list, _, colon := strings.Cut(rest, ":")
	if named := strings.Fields(strings.Trim(list, "[]")); ok && colon && len(named) > 0 {
		return slices.Equal(named, a.compared.revisions)
	}
	if o := a.operation; o.phase == phaseFailed || o.phase == phaseError {
		return o.isAt(a.compared)
	}
	return true
}

// deployedAsCompared reports whether the revision and source compared are those
// of the last full sync: then only the cluster can have changed. A health that
// nobody knows is no ground for it.
func (a application) deployedAsCompared() bool {
	last := a.lastFullSync().what
	return (a.health == "" || a.health == healthHealthy || a.health == healthMissing) &&
		len(a.compared.revisions) > 0 && slices.Equal(last.revisions, a.compared.revisions) && last.sameSources(a.compared)
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// operation is the last thing that Argo CD did to an application.
type operation struct {
	phase      string
	message    string
	startedAt  time.Time
	finishedAt time.Time
	// result is what it synced; asked is what it was told to sync, which may
	// name a branch.
	result, asked spread
	// full is false for what deploys nothing or a part only: a sync of some
	// resources, a dry run, a sync of local manifests.
	full bool
}

func readOperation(state object.Fields) operation {
	sync, result := state.Object("operation", "sync"), state.Object("syncResult")
	some, dry, local := len(sync.List("resources")) > 0, sync.Bool("dryRun", false), len(sync.Texts("manifests")) > 0
	return operation{
		phase: state.Text("phase"), message: state.Text("message"),
		startedAt: state.Time("startedAt"), finishedAt: state.Time("finishedAt"),
		result: spreadOf(result, result), asked: spreadOf(sync, sync),
		full: state.Object("operation").Has("sync") && !some && !dry && !local,
	}
}

// isAt reports whether the operation was about the revisions that s has. One
// that ended before it resolved them is known by those it was asked for.
func (o operation) isAt(s spread) bool {
	revisions := o.result.revisions
	if len(revisions) == 0 {
		revisions = o.asked.revisions
	}
	return len(revisions) > 0 && slices.Equal(revisions, s.revisions)
}

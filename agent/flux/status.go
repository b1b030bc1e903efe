package flux

import (
	"time"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

// observed is what the status tables look at.
type observed struct {
	suspended  bool
	current    bool // the generation was observed
	conditions map[string]condition
	attempted  string // the object's own
	source     string // the revision of the source's artifact
}

// outcome is a row of a status table: a status and the revision T that it is at.
type outcome struct {
	status  schema.Status
	at      string
	reason  string
	message string
	since   time.Time
}

// told is an outcome that a condition tells.
func told(s schema.Status, at string, c condition) outcome {
	return outcome{status: s, at: at, reason: c.reason, message: c.message, since: c.since}
}

// common holds the rows that Kustomization and HelmRelease share. It reports
// false when Ready is False: the rest is each kind's own.
func (o observed) common() (outcome, bool) {
	ready, stalled := o.conditions["Ready"], o.conditions["Stalled"]
	switch {
	case o.suspended: // the conditions still tell what was before
		return outcome{status: schema.StatusSuspended, at: o.attempted, reason: "Suspended", message: ready.message}, true
	case stalled.isTrue():
		return told(schema.StatusFailure, o.stalledAt(stalled.reason), stalled), true
	case ready.isTrue() && o.current:
		return told(schema.StatusSuccess, o.attempted, ready), true
	case ready.isTrue():
		return outcome{
			status: schema.StatusInProgress, at: o.attempted, reason: "GenerationNotObserved",
			message: "its specification changed and was not looked at yet",
		}, true
	case ready.status == "":
		return outcome{status: schema.StatusInProgress, at: o.attempted, reason: "NotReconciled", message: "it has no Ready condition yet"}, true
	case ready.status == "Unknown":
		return told(schema.StatusInProgress, o.attempted, ready), true
	case ready.isFalse():
		return outcome{}, false
	}
	return outcome{
		status: schema.StatusUnknown, at: o.attempted, reason: "UnknownCondition",
		message: "its Ready condition is neither True, False nor Unknown",
	}, true
}

// stalledAt returns the revision that a stalled object failed at. Some reasons
// come up before the attempted revision moves: then it is the artifact's.
func (o observed) stalledAt(reason string) string {
	switch reason {
	case "AccessDenied", "InvalidCELExpression", "FeatureGateDisabled":
		return o.source
	}
	if o.attempted == "" {
		return o.source
	}
	return o.attempted
}

// isCurrent reports whether the object's present generation was observed.
func isCurrent(f, status object.Fields) bool {
	generation := f.Object("metadata").Number("generation")
	return generation > 0 && status.Number("observedGeneration") == generation
}

package argocd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/schema"
)

const (
	commit508 = "508a11a06f010dd22052dcca9f4ed6fe3664c747"
	commitB6f = "b6ffa64481fdbefcda124d4beb308c8f524a5424"
	commitF47 = "f4763cde02e86387d75715329191cd02d2840fc0"
	commit9e0 = "9e04eced091a4b6b71e9a3bdf4e6972ad7573bd8"
	commit4d7 = "4d75591b1cd6e7c8e03e77117654c2219f3ad03b"
)

// edit changes an object that a test made its own.
type edit func(*unstructured.Unstructured)

func at(value any, path ...string) edit {
	return func(o *unstructured.Unstructured) { set(o, value, path...) }
}

func without(path ...string) edit { return func(o *unstructured.Unstructured) { unset(o, path...) } }

// condition gives an application one condition.
func withCondition(name, message string) edit {
	return at([]any{map[string]any{"type": name, "message": message, "lastTransitionTime": "2026-11-20T10:00:00Z"}}, "status", "conditions")
}

// phase sets the operation's phase.
func phase(p string) edit { return at(p, "status", "operationState", "phase") }

func health(h string) edit { return at(h, "status", "health", "status") }

func sync(s string) edit { return at(s, "status", "sync", "status") }

func many(edits ...edit) edit {
	return func(o *unstructured.Unstructured) {
		for _, e := range edits {
			e(o)
		}
	}
}

func TestApplicationStatus(t *testing.T) {
	const good, manual = "samples/application-good", "samples/application-outofsync-after-sync"
	one := func(rev string) []string { return []string{rev} }
	for name, c := range map[string]struct {
		reason  string
		object  string
		edit    edit
		status  schema.Status
		why     string // the reason
		at      []string
		applied []string
		drifted bool
		behind  bool // the generation was not observed
	}{
		"never-reconciled": {
			reason: "row 1: reconciledAt is missing", object: good, edit: without("status", "reconciledAt"),
			status: schema.StatusInProgress, why: "NotReconciled", at: one(commit508), applied: one(commit508),
		},
		"health-is-stale": {
			reason: "row 1: the operation ended after the last comparison", object: good,
			edit:   at("2026-11-20T09:49:58Z", "status", "reconciledAt"),
			status: schema.StatusInProgress, why: "NotReconciled", at: one(commit508), applied: one(commit508),
		},
		"stale-before-failed": {
			reason: "row 1 is before row 2", object: "samples/application-failapply",
			edit:   at("2026-11-20T09:49:58Z", "status", "reconciledAt"),
			status: schema.StatusInProgress, why: "NotReconciled", at: one(commit508),
		},
		"new": {
			reason: "row 1: no status at all", object: good, edit: without("status"),
			status: schema.StatusInProgress, why: "NotReconciled", behind: true,
		},
		"bad-path": {
			reason: "row 2: ComparisonError, while health says Healthy and the revision is a branch", object: "samples/application-badpath",
			status: schema.StatusFailure, why: "ComparisonError", at: one("main"),
		},
		"bad-revision": {
			reason: "row 2: ComparisonError at a branch that is not there", object: "samples/application-badrev",
			status: schema.StatusFailure, why: "ComparisonError", at: one("no-such-branch"),
		},
		"invalid-spec": {
			reason: "row 2", object: good, edit: withCondition("InvalidSpecError", "there is no such destination"),
			status: schema.StatusFailure, why: "InvalidSpecError", at: one(commit508), applied: one(commit508),
		},
		"unknown-error": {
			reason: "row 2", object: good, edit: withCondition("UnknownError", "panic"),
			status: schema.StatusFailure, why: "UnknownError", at: one(commit508), applied: one(commit508),
		},
		"failed-apply": {
			reason: "row 2: SyncError for the compared revision, OutOfSync and Healthy", object: "samples/application-failapply",
			status: schema.StatusFailure, why: "SyncError", at: one(commit508),
		},
		"missing-kind": {
			reason: "row 2: SyncError because a kind is not served", object: "samples/application-missingkind",
			status: schema.StatusFailure, why: "SyncError", at: one(commit508),
		},
		"sync-error-of-older-revision": {
			reason: "row 2: a SyncError for another revision does not fail this one; the operation's neither", object: "samples/application-failapply",
			edit:   at(commitB6f, "status", "sync", "revision"),
			status: schema.StatusInProgress, why: "OutOfSync", at: one(commitB6f),
		},
		"sync-error-without-revision": {
			reason: "row 2: a SyncError that names no revision is the failed operation's", object: "samples/application-failapply",
			edit:   withCondition("SyncError", "Failed last sync attempt to []: no"),
			status: schema.StatusFailure, why: "SyncError", at: one(commit508),
		},
		"sync-error-of-older-operation": {
			reason: "row 2: and that operation was about another revision", object: "samples/application-failapply",
			edit:   many(withCondition("SyncError", "Failed last sync attempt to []: no"), at(commitB6f, "status", "sync", "revision")),
			status: schema.StatusInProgress, why: "OutOfSync", at: one(commitB6f),
		},
		"sync-error-without-operation": {
			reason: "row 2: a SyncError of which nothing is known is believed", object: good,
			edit:   withCondition("SyncError", "no"),
			status: schema.StatusFailure, why: "SyncError", at: one(commit508), applied: one(commit508),
		},
		"warning": {
			reason: "row 2: a warning is no failure", object: good, edit: withCondition("OrphanedResourceWarning", "one"),
			status: schema.StatusSuccess, why: "Synced", at: one(commit508), applied: one(commit508),
		},
		"operation-failed": {
			reason: "row 3: a failed operation at the compared revision", object: "samples/application-failapply",
			edit:   without("status", "conditions"),
			status: schema.StatusFailure, why: "OperationFailed", at: one(commit508),
		},
		"operation-error": {
			reason: "row 3: so is one that ended in an error", object: "samples/application-failapply",
			edit:   many(without("status", "conditions"), phase("Error")),
			status: schema.StatusFailure, why: "OperationError", at: one(commit508),
		},
		"operation-unresolved": {
			reason: "row 3: an operation that ended before a result is known by what it was asked for", object: "samples/application-failapply",
			edit:   many(without("status", "conditions"), without("status", "operationState", "syncResult")),
			status: schema.StatusFailure, why: "OperationFailed", at: one(commit508),
		},
		"operation-failed-elsewhere": {
			reason: "row 3: a failed operation at an older revision does not fail the present one", object: good,
			edit:   many(phase("Failed"), at(commit4d7, "status", "operationState", "syncResult", "revision")),
			status: schema.StatusSuccess, why: "Synced", at: one(commit508), applied: one(commit508),
		},
		"degraded": {
			reason: "row 3: health Degraded, though Synced", object: "samples/application-degraded",
			status: schema.StatusFailure, why: "Degraded", at: one(commit508), applied: one(commit508),
		},
		"degraded-while-running": {
			reason: "row 3 is before row 4", object: "samples/application-degraded", edit: phase("Running"),
			status: schema.StatusFailure, why: "Degraded", at: one(commit508), applied: one(commit508),
		},
		"missing": {
			reason: "row 3: Synced, but nothing is there and nothing runs", object: good, edit: health("Missing"),
			status: schema.StatusFailure, why: "Missing", at: one(commit508), applied: one(commit508),
		},
		"missing-while-running": {
			reason: "row 4: something runs", object: good, edit: many(health("Missing"), phase("Running")),
			status: schema.StatusInProgress, why: "OperationRunning", at: one(commit508), applied: one(commit508),
		},
		"running": {
			reason: "row 4: Synced and Healthy say nothing while an operation runs", object: good, edit: phase("Running"),
			status: schema.StatusInProgress, why: "OperationRunning", at: one(commit508), applied: one(commit508),
		},
		"terminating": {
			reason: "row 4", object: good, edit: phase("Terminating"),
			status: schema.StatusInProgress, why: "OperationTerminating", at: one(commit508), applied: one(commit508),
		},
		"progressing": {
			reason: "row 4: health Progressing after a sync", object: "samples/application-progressing",
			status: schema.StatusInProgress, why: "Progressing", at: one(commitF47), applied: one(commitF47),
		},
		"suspended": {
			reason: "row 5: a suspended rollout", object: good, edit: health("Suspended"),
			status: schema.StatusInProgress, why: "Suspended", at: one(commit508), applied: one(commit508),
		},
		"good": {
			reason: "row 6: Synced and Healthy", object: good,
			status: schema.StatusSuccess, why: "Synced", at: one(commit508), applied: one(commit508),
		},
		"good-without-health": {
			reason: "row 6: what has no health is healthy", object: good, edit: without("status", "health"),
			status: schema.StatusSuccess, why: "Synced", at: one(commit508), applied: one(commit508),
		},
		"good-at-a-commit-that-changes-nothing": {
			reason: "row 6: a commit that changes nothing is deployed though the history does not know it", object: good,
			edit:   at(commitB6f, "status", "sync", "revision"),
			status: schema.StatusSuccess, why: "Synced", at: one(commitB6f), applied: one(commitB6f),
		},
		"drifted": {
			reason: "row 7: OutOfSync at the revision of the last full sync: the cluster changed", object: manual,
			edit:   at(commit508, "status", "sync", "revision"),
			status: schema.StatusSuccess, why: "Drifted", at: one(commit508), applied: one(commit508), drifted: true,
		},
		"drifted-with-automated-sync": {
			reason: "row 7 is before row 8", object: good,
			edit:   many(sync("OutOfSync"), at("2026-11-20T09:50:00Z", "status", "reconciledAt")),
			status: schema.StatusSuccess, why: "Drifted", at: one(commit508), applied: one(commit508), drifted: true,
		},
		"out-of-sync-in-the-second-of-its-sync": {
			reason: "row 7: times are whole seconds: this is what the comparison that asked for the sync left", object: good,
			edit:   many(sync("OutOfSync"), health("Missing")),
			status: schema.StatusInProgress, why: "NotReconciled", at: one(commit508), applied: one(commit508),
		},
		"drifted-no-history": {
			reason: "row 7: a full operation that succeeded is the last full sync where no history is kept", object: manual,
			edit:   many(at(commit508, "status", "sync", "revision"), without("status", "history")),
			status: schema.StatusSuccess, why: "Drifted", at: one(commit508), applied: one(commit508), drifted: true,
		},
		"same-revision-other-source": {
			reason: "row 7: another source at the same revision is no drift, and was never deployed", object: manual,
			edit: many(at(commit508, "status", "sync", "revision"), at("elsewhere", "spec", "source", "path"),
				at("elsewhere", "status", "sync", "comparedTo", "source", "path")),
			status: schema.StatusPending, why: "OutOfSync", at: one(commit508),
		},
		"health-unknown-is-no-drift": {
			reason: "row 7: not when nobody knows its health", object: manual,
			edit:   many(at(commit508, "status", "sync", "revision"), health("Unknown")),
			status: schema.StatusPending, why: "OutOfSync", at: one(commit508), applied: one(commit508),
		},
		"out-of-sync-automated": {
			reason: "row 8: a new commit, and the sync will come by itself", object: good,
			edit:   many(sync("OutOfSync"), at(commitB6f, "status", "sync", "revision")),
			status: schema.StatusInProgress, why: "OutOfSync", at: one(commitB6f), applied: one(commit508),
		},
		"out-of-sync-manual": {
			reason: "row 8: a new commit waits for a person; the previous operation still says Succeeded", object: manual,
			status: schema.StatusPending, why: "OutOfSync", at: one(commitB6f), applied: one(commit508),
		},
		"out-of-sync-never-synced": {
			reason: "row 8: nothing was ever deployed", object: "samples/application-outofsync",
			status: schema.StatusPending, why: "OutOfSync", at: one(commit508),
		},
		"out-of-sync-automated-disabled": {
			reason: "row 8: since 3.0 automated sync can be there and off", object: good,
			edit: many(sync("OutOfSync"), at(commitB6f, "status", "sync", "revision"),
				at(false, "spec", "syncPolicy", "automated", "enabled")),
			status: schema.StatusPending, why: "OutOfSync", at: one(commitB6f), applied: one(commit508),
		},
		"health-unknown": {
			reason: "row 9: Synced with health Unknown", object: good, edit: health("Unknown"),
			status: schema.StatusUnknown, why: "SyncSyncedHealthUnknown", at: one(commit508), applied: one(commit508),
		},
		"sync-unknown": {
			reason: "row 9: sync Unknown without a condition", object: good, edit: sync("Unknown"),
			status: schema.StatusUnknown, why: "SyncUnknownHealthHealthy", at: one(commit508), applied: one(commit508),
		},
		"odd-health": {
			reason: "row 9: a health that no Argo CD writes", object: good, edit: health("Splendid"),
			status: schema.StatusUnknown, why: "HealthNotKnown", at: one(commit508), applied: one(commit508),
		},
		"odd-phase": {
			reason: "row 9: a phase that no Argo CD writes", object: good, edit: phase("Pausing"),
			status: schema.StatusUnknown, why: "OperationNotKnown", at: one(commit508), applied: one(commit508),
		},
		"odd-sync": {
			reason: "row 9: a sync status that no Argo CD writes", object: good, edit: sync("InSync"),
			status: schema.StatusUnknown, why: "SyncNotKnown", at: one(commit508), applied: one(commit508),
		},
		"source-changed": {
			reason: "the present source was not compared: the words are about another one", object: good,
			edit:   at("elsewhere", "spec", "source", "path"),
			status: schema.StatusInProgress, why: "SpecNotCompared", behind: true,
		},
		"branch-changed": {
			reason: "another branch of the same folder: what runs is known, success is not", object: good,
			edit:   at("release", "spec", "source", "targetRevision"),
			status: schema.StatusInProgress, why: "SpecNotCompared", at: one(commit508), applied: one(commit508), behind: true,
		},
		"destination-changed": {
			reason: "the present destination was not compared", object: good,
			edit:   at("https://elsewhere.example.com", "spec", "destination", "server"),
			status: schema.StatusInProgress, why: "SpecNotCompared", at: one(commit508), applied: one(commit508), behind: true,
		},
		"drifted-but-changed": {
			reason: "a drift of another specification is no success either", object: good,
			edit: many(sync("OutOfSync"), at("release", "spec", "source", "targetRevision"),
				at("2026-11-20T09:50:00Z", "status", "reconciledAt")),
			status: schema.StatusInProgress, why: "SpecNotCompared", at: one(commit508), applied: one(commit508), behind: true,
		},
		"same-but-for-empty-members": {
			reason: "members that say nothing are no change", object: good,
			edit:   at(map[string]any{"recurse": false, "exclude": ""}, "spec", "source", "directory"),
			status: schema.StatusSuccess, why: "Synced", at: one(commit508), applied: one(commit508),
		},
		"multi-source": {
			reason: "row 6 with a chart, a values repository and a folder; user info goes, the owner comes", object: "made/multisource",
			status: schema.StatusSuccess, why: "Synced",
			at: []string{"6.5.1", commit508, commit9e0}, applied: []string{"6.5.1", commit508, commit9e0},
		},
		"multi-source-out-of-sync": {
			reason: "row 8: what runs is what the history has, source by source", object: "made/multisource", edit: sync("OutOfSync"),
			status: schema.StatusInProgress, why: "OutOfSync",
			at: []string{"6.5.1", commit508, commit9e0}, applied: []string{"6.5.0", commit4d7, commit9e0},
		},
		"multi-source-one-more": {
			reason: "a source was added: the revisions stay with theirs", object: "made/multisource",
			edit: func(o *unstructured.Unstructured) {
				list, _, _ := unstructured.NestedSlice(o.Object, "spec", "sources")
				first := map[string]any{"repoURL": "https://git.example.com/org/new.git", "path": "new"}
				set(o, append([]any{first}, list...), "spec", "sources")
			},
			status: schema.StatusInProgress, why: "SpecNotCompared", behind: true,
			at: []string{"", "6.5.1", commit508, commit9e0}, applied: []string{"", "6.5.1", commit508, commit9e0},
		},
		"multi-source-sync-error": {
			reason: "row 2: a SyncError for the same list of revisions", object: "made/multisource",
			edit:   withCondition("SyncError", "Failed last sync attempt to [6.5.1 "+commit508+" "+commit9e0+"]: no"),
			status: schema.StatusFailure, why: "SyncError",
			at: []string{"6.5.1", commit508, commit9e0}, applied: []string{"6.5.1", commit508, commit9e0},
		},
		"multi-source-sync-error-elsewhere": {
			reason: "row 2: one that differs in one source is another's", object: "made/multisource",
			edit:   withCondition("SyncError", "Failed last sync attempt to [6.5.0 "+commit508+" "+commit9e0+"]: no"),
			status: schema.StatusSuccess, why: "Synced",
			at: []string{"6.5.1", commit508, commit9e0}, applied: []string{"6.5.1", commit508, commit9e0},
		},
		"hydrated": {
			reason: "row 6: the hydrated commit, and the dry one that it was made from", object: "made/hydrated",
			status: schema.StatusSuccess, why: "Synced", at: []string{commit508, commit9e0}, applied: []string{commit508, commit9e0},
		},
		"hydrated-not-the-pair": {
			reason: "a newer dry commit was hydrated and not compared yet: the pair is not known", object: "made/hydrated",
			edit: many(at(commitB6f, "status", "sourceHydrator", "lastSuccessfulOperation", "hydratedSHA"),
				at(commitF47, "status", "sourceHydrator", "lastSuccessfulOperation", "drySHA")),
			status: schema.StatusSuccess, why: "Synced", at: []string{commit508, ""}, applied: []string{commit508, ""},
		},
		"hydrated-out-of-sync": {
			reason: "row 8: the new pair is compared, the old one runs and its dry side is not known any more", object: "made/hydrated",
			edit: many(sync("OutOfSync"), at(commitB6f, "status", "sync", "revision"),
				at(commitB6f, "status", "sourceHydrator", "lastSuccessfulOperation", "hydratedSHA"),
				at(commitF47, "status", "sourceHydrator", "lastSuccessfulOperation", "drySHA")),
			status: schema.StatusInProgress, why: "OutOfSync", at: []string{commitB6f, commitF47}, applied: []string{commit508, ""},
		},
		"hydration-failed": {
			reason: "a dry commit that cannot be rendered keeps newer ones back, like a source that cannot fetch", object: "made/hydrated",
			edit: many(at("Failed", "status", "sourceHydrator", "currentOperation", "phase"),
				at("cloning https://robot:hunter2@git.example.com/org/app.git: denied", "status", "sourceHydrator", "currentOperation", "message"),
				at(commitF47, "status", "sourceHydrator", "currentOperation", "drySHA")),
			status: schema.StatusSuccess, why: "Synced", at: []string{commit508, commit9e0}, applied: []string{commit508, commit9e0},
		},
		"root": {
			reason: "an app of apps that tracks itself owns itself nowhere", object: "made/root",
			status: schema.StatusSuccess, why: "Synced", at: one(commit508), applied: one(commit508),
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, c.object)
			if c.edit != nil {
				c.edit(obj)
			}
			r, err := Application(obj, Tracking{})
			if err != nil {
				t.Fatal(err)
			}
			if err := sendable(r); err != nil {
				t.Errorf("the hub would refuse it: %v", err)
			}
			if r.Status != c.status || r.Reason != c.why || r.Drifted != c.drifted {
				t.Errorf("%s, reason %s (%s), drifted %v; want %s, %s, %v: %s",
					r.Status, r.Reason, r.Message, r.Drifted, c.status, c.why, c.drifted, c.reason)
			}
			if diff := cmp.Diff(c.at, r.Attempted); diff != "" {
				t.Errorf("attempted: %s (-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.applied, r.Applied); diff != "" {
				t.Errorf("applied: %s (-want +got):\n%s", c.reason, diff)
			}
			if r.GenerationObserved == nil || *r.GenerationObserved == c.behind {
				t.Errorf("generation_observed is not %v: %s", !c.behind, c.reason)
			}
			golden(t, name, r)
		})
	}
}

// What the cluster runs while an application is out of sync.
func TestDeployed(t *testing.T) {
	full := func(edits ...edit) edit {
		return many(append([]edit{
			sync("OutOfSync"), at(commitB6f, "status", "sync", "revision"),
			without("status", "operationState", "operation", "sync", "resources"),
			at(commitF47, "status", "operationState", "syncResult", "revision"),
		}, edits...)...)
	}
	for name, c := range map[string]struct {
		reason string
		edit   edit
		want   []string
	}{
		"history": {
			reason: "a self-heal of some resources writes no history and deploys no revision",
			edit: many(sync("OutOfSync"), at(commitB6f, "status", "sync", "revision"),
				at(commitF47, "status", "operationState", "syncResult", "revision")),
			want: []string{commit508},
		},
		"full operation": {reason: "a full sync that succeeded, not yet in the history", edit: full(), want: []string{commitF47}},
		"full, no history": {
			reason: "revisionHistoryLimit: 0", edit: full(without("status", "history")), want: []string{commitF47},
		},
		"dry run": {
			reason: "a dry run deploys nothing",
			edit:   full(at(true, "status", "operationState", "operation", "sync", "dryRun")), want: []string{commit508},
		},
		"dry run, no history": {
			reason: "not even the first",
			edit:   full(at(true, "status", "operationState", "operation", "sync", "dryRun"), without("status", "history")),
		},
		"local manifests": {
			reason: "what a person had on disk is no revision",
			edit:   full(at([]any{"{}"}, "status", "operationState", "operation", "sync", "manifests")), want: []string{commit508},
		},
		"failed": {reason: "a failed sync deployed we do not know what", edit: full(phase("Failed")), want: []string{commit508}},
		"no sync": {
			reason: "an operation that is no sync deploys nothing",
			edit:   full(without("status", "operationState", "operation", "sync")), want: []string{commit508},
		},
		"older operation": {
			reason: "the history is newer",
			edit:   full(at("2026-11-20T08:00:00Z", "status", "operationState", "finishedAt")), want: []string{commit508},
		},
		"unresolved": {
			reason: "what was asked for is no result",
			edit:   full(without("status", "operationState", "syncResult")), want: []string{commit508},
		},
		"another place": {
			reason: "what runs came from another folder: it is no revision of this source",
			edit:   full(at("elsewhere", "spec", "source", "path"), at("elsewhere", "status", "sync", "comparedTo", "source", "path")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, "samples/application-good")
			c.edit(obj)
			r, err := Application(obj, Tracking{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.Applied); diff != "" {
				t.Errorf("applied: %s (-want +got):\n%s", c.reason, diff)
			}
			if r.Status == schema.StatusSuccess {
				t.Errorf("it is a success: %s", c.reason)
			}
		})
	}
}

func TestEndpoints(t *testing.T) {
	for name, c := range map[string]struct {
		source map[string]any
		want   schema.Source
	}{
		"folder": {
			source: map[string]any{"repoURL": "https://u:p@git.example.com/org/x.git", "path": "./a/", "targetRevision": "main"},
			want:   schema.Source{Type: schema.SourceGit, URL: "https://git.example.com/org/x.git", Ref: "main", Path: "./a/"},
		},
		"default branch": {
			source: map[string]any{"repoURL": "git@git.example.com:org/x.git", "path": "a"},
			want:   schema.Source{Type: schema.SourceGit, URL: "git.example.com:org/x.git", Path: "a"},
		},
		"tag": {
			source: map[string]any{"repoURL": "https://git.example.com/org/x", "targetRevision": "refs/tags/v1"},
			want:   schema.Source{Type: schema.SourceGit, URL: "https://git.example.com/org/x", Ref: "refs/tags/v1"},
		},
		"range of tags": {
			source: map[string]any{"repoURL": "https://git.example.com/org/x", "targetRevision": "v1.*"},
			want:   schema.Source{Type: schema.SourceGit, URL: "https://git.example.com/org/x", Ref: "semver:v1.*"},
		},
		"compared tags": {
			source: map[string]any{"repoURL": "https://git.example.com/org/x", "targetRevision": ">=1.2"},
			want:   schema.Source{Type: schema.SourceGit, URL: "https://git.example.com/org/x", Ref: "semver:>=1.2"},
		},
		"chart": {
			source: map[string]any{"repoURL": "ghcr.io/example/charts", "chart": "podinfo", "targetRevision": "6.*"},
			want:   schema.Source{Type: schema.SourceHelm, URL: "ghcr.io/example/charts", Ref: "6.*", Path: "podinfo"},
		},
		"oci": {
			source: map[string]any{"repoURL": "oci://ghcr.io/example/manifests", "path": ".", "targetRevision": "latest"},
			want:   schema.Source{Type: schema.SourceOCI, URL: "oci://ghcr.io/example/manifests", Ref: "latest", Path: "."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, "samples/application-good")
			set(obj, c.source, "spec", "source")
			r, err := Application(obj, Tracking{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]schema.Source{c.want}, r.Sources); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
		})
	}
}

// A source that cannot be sent is dropped with its revisions, not the report.
func TestUnsendableSource(t *testing.T) {
	obj := load(t, "made/multisource")
	for _, path := range [][]string{{"spec", "sources"}, {"status", "sync", "comparedTo", "sources"}} {
		list, _, _ := unstructured.NestedSlice(obj.Object, path...)
		list[1].(map[string]any)["repoURL"] = "not a repository"
		set(obj, list, path...)
	}
	r, err := Application(obj, Tracking{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"6.5.1", commit9e0}, r.Applied); diff != "" || len(r.Sources) != 2 {
		t.Errorf("%d sources, applied (-want +got):\n%s", len(r.Sources), diff)
	}
}

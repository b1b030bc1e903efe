package compliance_test

import (
	"slices"
	"time"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/schema"
)

// history is a small commit graph: parents by commit, tree ids by commit and
// folder, and the newest commit of each ref.
type history struct {
	parents map[string][]string
	trees   map[string]map[string]string
	heads   map[string]string
	// open are the folders that depend on others.
	open map[string]bool
}

func (h history) knows(c string) bool { _, ok := h.parents[c]; return ok }

func (h history) isAncestor(a, b string) bool {
	for _, p := range h.parents[b] {
		if p == a || h.isAncestor(a, p) {
			return true
		}
	}
	return false
}

func (h history) Relate(a, b string) compliance.Relation {
	switch {
	case !h.knows(a) || !h.knows(b):
		return compliance.Unknown
	case a == b:
		return compliance.Same
	case h.isAncestor(b, a):
		return compliance.Descendant
	case h.isAncestor(a, b):
		return compliance.Ancestor
	}
	return compliance.Unrelated
}

func (h history) SameTrees(a, b string, folders []string) (same, ok bool) {
	if h.trees[a] == nil || h.trees[b] == nil {
		return false, false
	}
	return !slices.ContainsFunc(folders, func(f string) bool { return h.trees[a][f] != h.trees[b][f] }), true
}

func (h history) SelfContained(c, folder string) bool { return !h.open[folder] && h.knows(c) }

func (h history) FirstParent(c string) (string, bool) {
	if len(h.parents[c]) == 0 {
		return "", false
	}
	return h.parents[c][0], true
}

func (h history) Head(ref string) (string, bool) {
	c, ok := h.heads[ref]
	return c, ok
}

// mainline is c0 ← c1 ← c2 ← c3 ← c4, with z beside it in a history of its own.
// The tests ask for c2, which changes the folder drone; c3 changes other; c4
// takes drone back to what it was at c1. Nothing ever changes idle.
func mainline() history {
	return history{
		parents: map[string][]string{"c0": {}, "c1": {"c0"}, "c2": {"c1"}, "c3": {"c2"}, "c4": {"c3"}, "z": {}},
		trees: map[string]map[string]string{
			"c0": {"drone": "d0", "other": "o0", "idle": "i0"},
			"c1": {"drone": "d1", "other": "o0", "idle": "i0"},
			"c2": {"drone": "d2", "other": "o0", "idle": "i0"},
			"c3": {"drone": "d2", "other": "o3", "idle": "i0"},
			"c4": {"drone": "d1", "other": "o3", "idle": "i0"},
			"z":  {"drone": "d2", "other": "o0", "idle": "i0"},
		},
		heads: map[string]string{"dev": "c4"},
	}
}

// at is a moment of the tests, in minutes after their beginning.
func at(minutes float64) time.Time {
	start := time.Date(2026, time.November, 20, 9, 0, 0, 0, time.UTC)
	return start.Add(time.Duration(minutes * float64(time.Minute)))
}

// now is when the tests ask, unless they say otherwise.
var now = at(60)

const heartbeat = 30 * time.Second

// cluster is one that was heard of ten seconds ago.
func cluster(name string) *compliance.Cluster {
	return &compliance.Cluster{Name: name, HeartbeatInterval: heartbeat, LastSeen: now.Add(-10 * time.Second)}
}

func kustomization(name string) schema.ObjectRef {
	return schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: name}
}

// on is a subscriber called drone on a cluster of that name: asked for, reading
// the folder drone, with nothing known of it yet.
func on(name string) compliance.Subscriber {
	c := cluster(name)
	return compliance.Subscriber{
		Ref: kustomization("drone"), Reporter: c, Destination: c, DestinationName: name, ClusterType: "drone",
		Asked: true, Status: schema.StatusInProgress, Reason: "Progressing",
		Sources: []compliance.Source{{Path: "drone"}},
	}
}

// run is a span in which a commit was applied and succeeded at a minute.
func run(commit string, minute float64) compliance.Run {
	return compliance.Run{Commit: commit, SuccessAt: at(minute), SteadyAt: at(minute)}
}

// compliantOn is a subscriber that succeeded at c2 in minute 10.
func compliantOn(name string) compliance.Subscriber {
	s := on(name)
	s.Status, s.Reason, s.Revision = schema.StatusSuccess, "ReconciliationSucceeded", "dev@sha1:c2"
	s.Sources[0].Applied, s.Sources[0].Attempted = "c2", "c2"
	s.Sources[0].Runs = []compliance.Run{run("c1", 1), run("c2", 10)}
	return s
}

// failedOn is a subscriber that failed at c2.
func failedOn(name string) compliance.Subscriber {
	s := on(name)
	s.Status, s.Reason, s.Revision = schema.StatusFailure, "BuildFailed", "dev@sha1:c2"
	s.Sources[0].Applied, s.Sources[0].Attempted = "c1", "c2"
	s.Sources[0].Runs = []compliance.Run{run("c1", 1)}
	return s
}

// pendingOn is a subscriber that stands at c1.
func pendingOn(name string) compliance.Subscriber {
	s := on(name)
	s.Status = schema.StatusSuccess
	s.Sources[0].Applied, s.Sources[0].Attempted = "c1", "c1"
	s.Sources[0].Runs = []compliance.Run{run("c1", 1)}
	return s
}

// progressingOn is a subscriber that works on c2.
func progressingOn(name string) compliance.Subscriber {
	s := failedOn(name)
	s.Status, s.Reason = schema.StatusInProgress, "Progressing"
	return s
}

// suspendedOn is a subscriber that somebody suspended at c1.
func suspendedOn(name string) compliance.Subscriber {
	s := pendingOn(name)
	s.Status = schema.StatusSuspended
	return s
}

// unknownOn is a subscriber whose status its reader did not know.
func unknownOn(name string) compliance.Subscriber {
	s := compliantOn(name)
	s.Status, s.Reason = schema.StatusUnknown, "HealthUnknown"
	return s
}

// strangerOn is a subscriber at a commit of another history.
func strangerOn(name string) compliance.Subscriber {
	s := compliantOn(name)
	s.Sources[0].Applied, s.Sources[0].Attempted = "z", "z"
	s.Sources[0].Runs = []compliance.Run{run("z", 1)}
	return s
}

// ask is the question for c2 of the mainline by the default policy, first asked
// five minutes ago.
func ask(subscribers ...compliance.Subscriber) compliance.Input {
	return compliance.Input{
		Question: compliance.Question{Repo: "https://git.example/org/platform", Ref: "dev", Commit: "c2"},
		Endpoint: schema.Endpoint{Repo: "git.example/org/platform", Ref: "dev"}, Commit: "c2",
		Policy: schema.DefaultPolicy(), Subscribers: subscribers, Graph: mainline(),
		Progress: compliance.Progress{FirstAsked: at(55)},
		Rules:    compliance.DefaultRules(), Now: now,
	}
}

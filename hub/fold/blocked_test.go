package fold

import (
	"fmt"
	"testing"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/schema"
)

// told is a blocked entry in a line: who is blocked, at which endpoint, by what.
func told(list []compliance.Blocked) []string {
	var all []string
	for _, b := range list {
		all = append(all, fmt.Sprintf("%s @%s#%s: %s %s (%s) ×%d", b.Owner.Name, b.Repo, b.Ref, b.Status, b.Child.Name, b.Reason, b.Count))
	}
	return all
}

func TestBlocked(t *testing.T) {
	root, mid, low := ref("Kustomization", "root"), ref("Kustomization", "mid"), ref("Kustomization", "low")
	failing, progressing := status(schema.StatusFailure, "Bad"), status(schema.StatusInProgress, "Busy")
	const apps = "@git.example/org/apps#dev: "
	cases := map[string]struct {
		reason   string
		says     []schema.Reconciler
		unlisted []string
		want     []string
	}{
		"Settled":     {"A child that succeeded blocks nobody.", []schema.Reconciler{kustomization("root"), kustomization("mid", ownedBy(root))}, nil, nil},
		"NoOwner":     {"Trouble without an owner blocks nobody.", []schema.Reconciler{kustomization("a", failing)}, nil, nil},
		"Depth1":      {"A failing child.", []schema.Reconciler{kustomization("root"), kustomization("mid", ownedBy(root), failing)}, nil, []string{"root " + apps + "failure mid (Bad) ×1"}},
		"Depth3":      {"Trouble is known at every depth.", []schema.Reconciler{kustomization("root"), kustomization("mid", ownedBy(root)), kustomization("low", ownedBy(mid)), kustomization("leaf", ownedBy(low), failing)}, nil, []string{"low " + apps + "failure leaf (Bad) ×1", "mid " + apps + "failure leaf (Bad) ×1", "root " + apps + "failure leaf (Bad) ×1"}},
		"AbsentOwner": {"An owner that was never seen is named; the chain ends there.", []schema.Reconciler{kustomization("leaf", ownedBy(mid), failing)}, nil, []string{"mid " + apps + "failure leaf (Bad) ×1"}},
		"Cycle":       {"A circle ends where it began.", []schema.Reconciler{kustomization("root", ownedBy(mid), failing), kustomization("mid", ownedBy(root))}, nil, []string{"mid " + apps + "failure root (Bad) ×1"}},
		"Worst":       {"Failure is worse than progress; both count.", []schema.Reconciler{kustomization("root"), kustomization("a", ownedBy(root), progressing), kustomization("b", ownedBy(root), failing), kustomization("c", ownedBy(root), status(schema.StatusUnknown, "Odd"))}, nil, []string{"root " + apps + "failure b (Bad) ×3"}},
		"Order":       {"Unknown is worse than suspended, which is worse than progress.", []schema.Reconciler{kustomization("a", ownedBy(root), progressing), kustomization("b", ownedBy(root), status(schema.StatusSuspended, "")), kustomization("c", ownedBy(root), status(schema.StatusUnknown, "Odd"))}, nil, []string{"root " + apps + "unknown c (Odd) ×3"}},
		"Alike":       {"Of equally bad ones the first by name.", []schema.Reconciler{kustomization("b", ownedBy(root), failing), kustomization("a", ownedBy(root), failing)}, nil, []string{"root " + apps + "failure a (Bad) ×2"}},
		"PerEndpoint": {"Each repository and ref stands by itself; paths do not.", []schema.Reconciler{kustomization("a", ownedBy(root), failing), kustomization("b", ownedBy(root), progressing), kustomization("c", ownedBy(root), progressing, sources(git("other", "c")))}, nil, []string{"root " + apps + "failure a (Bad) ×2", "root @git.example/org/other#dev: in_progress c (Busy) ×1"}},
		"TwoSources":  {"A child of two endpoints blocks at both, once each.", []schema.Reconciler{kustomization("a", ownedBy(root), failing, sources(git("other", "x"), git("apps", "a"), git("other", "y")))}, nil, []string{"root " + apps + "failure a (Bad) ×1", "root @git.example/org/other#dev: failure a (Bad) ×1"}},
		"NoSource":    {"A child without a source blocks at no endpoint.", []schema.Reconciler{kustomization("a", ownedBy(root), failing, sources(), applies())}, nil, []string{"root @#: failure a (Bad) ×1"}},
		"Unlisted":    {"A settled child of a kind that cannot be listed is unknown.", []schema.Reconciler{kustomization("h", ofKind("HelmRelease"), ownedBy(root))}, []string{"HelmRelease"}, []string{"root " + apps + "unknown h () ×1"}},
		"UnlistedBad": {"What a failing one of such a kind said does not hold any more.", []schema.Reconciler{kustomization("h", ofKind("HelmRelease"), ownedBy(root), failing)}, []string{"HelmRelease"}, []string{"root " + apps + "unknown h (Bad) ×1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewState()
			r := delta(1, tc.says...)
			r.UnlistedKinds = tc.unlisted
			diff(t, tc.reason, tc.want, told(tell(t, s, r).Blocked))
		})
	}
}

func TestBlockedFollowsTheState(t *testing.T) {
	root := ref("Kustomization", "root")
	s := NewState()
	failing := kustomization("a", ownedBy(root), status(schema.StatusFailure, "Bad"))
	if got := tell(t, s, delta(1, failing)).Blocked; len(got) != 1 {
		t.Fatalf("blocked: %v", told(got))
	}
	if got := tell(t, s, delta(2)).Blocked; len(got) != 1 {
		t.Errorf("a message about something else cleared it: %v", told(got))
	}
	if got := tell(t, s, delta(3, kustomization("a", ownedBy(root)))).Blocked; len(got) != 0 {
		t.Errorf("success does not clear it: %v", told(got))
	}
	tell(t, s, delta(4, kustomization("a", ownedBy(root), status(schema.StatusInProgress, ""), generation(false))))
	if got := tell(t, s, removal(5, ref("Kustomization", "a"))).Blocked; len(got) != 0 {
		t.Errorf("what is gone still blocks: %v", told(got))
	}
}

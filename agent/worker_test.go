package agent

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/agent/watch"
	"github.com/landfall-hub/landfall/schema"
)

var (
	good    = ref("Kustomization", "flux-system", "good")
	repo    = ref("GitRepository", "flux-system", "repo")
	release = ref("HelmRelease", "team-b", "web")
	chart   = ref("HelmChart", "sources", "team-b-web")
	charts  = ref("HelmRepository", "sources", "podinfo")
	root    = ref("Kustomization", "flux-system", "root")
	app     = ref("Application", "argocd", "good")
)

const (
	goodYAML    = "flux/samples/kustomization-good"
	repoYAML    = "flux/samples/gitrepository-repo"
	releaseYAML = "flux/made/helmrelease"
	chartYAML   = "flux/made/helmchart"
	chartsYAML  = "flux/made/helmrepository"
	appYAML     = "argocd/samples/application-good"
)

func (b *bench) facts(key schema.ObjectRef) schema.Reconciler {
	b.t.Helper()
	r, ok := b.hub.known[key]
	if !ok {
		b.t.Fatalf("the hub does not know %s", key)
	}
	return r
}

func wantNews(t *testing.T, b *bench, want ...[]string) {
	t.Helper()
	if diff := cmp.Diff(want, b.news()); diff != "" {
		t.Errorf("what was put (-want +got):\n%s", diff)
	}
}

// Nothing is said of a reconciler before its source can be known.
func TestFirstList(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		states map[string]watch.State
		want   []string
	}{
		"all there":        {"it is reported", nil, []string{"Application", "HelmRelease", "Kustomization"}},
		"itself":           {"a kind that is not listed completely is not reported", map[string]watch.State{"Kustomization": watch.Syncing}, []string{"Application", "HelmRelease"}},
		"source":           {"nor is one whose sources are not", map[string]watch.State{"GitRepository": watch.Syncing}, []string{"Application", "HelmRelease"}},
		"another source":   {"a kind that no reconciler reads from does not matter", map[string]watch.State{"Bucket": watch.Syncing}, []string{"Application", "HelmRelease", "Kustomization"}},
		"never served":     {"nor does one that there is not", map[string]watch.State{"Bucket": watch.Absent, "OCIRepository": watch.Absent}, []string{"Application", "HelmRelease", "Kustomization"}},
		"children":         {"a success is not judged before its children can be", map[string]watch.State{"HelmRelease": watch.Syncing}, []string{"Application"}},
		"not to be listed": {"a kind that cannot be listed is none of them", map[string]watch.State{"HelmRelease": watch.Unlisted}, []string{"Application", "Kustomization"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.has(load(t, goodYAML), load(t, repoYAML), load(t, releaseYAML), load(t, chartYAML), load(t, chartsYAML), load(t, appYAML),
				inventory(t, named(t, load(t, goodYAML), "flux-system", "root"), release))
			for kind, s := range c.states {
				b.turns(kind, s)
				if s == watch.Listed || reconcilers[kind] {
					continue
				}
				for key := range b.cluster.held {
					if key.Kind == kind { // what is not listed is not known
						delete(b.cluster.held, key)
					}
				}
			}
			if c.states["HelmRelease"] == watch.Syncing {
				delete(b.cluster.held, release)
			}
			b.rest()
			if diff := cmp.Diff(c.want, b.hub.listed); diff != "" {
				t.Errorf("%s; listed (-want +got):\n%s", c.reason, diff)
			}
			for key, r := range b.hub.known {
				if !slices.Contains(c.want, key.Kind) {
					t.Errorf("%s is reported", key)
				}
				if len(r.Sources) == 0 {
					t.Errorf("%s is reported without its source", key)
				}
			}
			if b.hub.puts != nil {
				t.Errorf("facts go out one by one before the first snapshot: %v", b.news())
			}
		})
	}
}

// Of a kind that is not served, or not watched, it is known that there is
// nothing: what an earlier agent said of it is taken back. An API server that
// starts may not know yet what it serves.
func TestNothingOfAKind(t *testing.T) {
	b := newBench(t, func(c *Config) { c.ArgoCD.Enabled = false })
	b.turns("HelmRelease", watch.Absent)
	b.has(load(t, goodYAML), load(t, repoYAML))
	b.look()
	if b.hub.listed != nil {
		t.Errorf("before anything is known, there is %v", b.hub.listed)
	}
	begin := b.now
	b.now = b.now.Add(settle)
	b.look()
	if p := b.worker.progress(); !p.told {
		t.Error("the agent waits for what may never come")
	}
	if diff := cmp.Diff([]string{"Application", "Kustomization"}, b.hub.listed); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	b.turns("HelmRelease", watch.Syncing) // it came
	b.look()
	b.turns("HelmRelease", watch.Absent) // and went
	b.now = begin.Add(absence)
	b.look()
	if diff := cmp.Diff([]string{"Application", "Kustomization"}, b.hub.listed); diff != "" {
		t.Errorf("too soon (-want +got):\n%s", diff)
	}
	b.rest()
	if diff := cmp.Diff([]string{"Application", "HelmRelease", "Kustomization"}, b.hub.listed); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
	if waited := b.now.Sub(begin); waited < 2*absence {
		t.Errorf("it was believed after %s", waited)
	}
}

// How long a kind waits to be believed goes by what it is now, also where the
// states between were missed.
func TestKindMovesWhileItOpens(t *testing.T) {
	b := newBench(t)
	b.turns("HelmRelease", watch.Absent)
	b.turns("Application", watch.Listed)
	b.look()
	b.turns("HelmRelease", watch.Listed)
	b.turns("Application", watch.Absent)
	b.look()
	b.now = b.now.Add(settle)
	b.look()
	if diff := cmp.Diff([]string{"HelmRelease", "Kustomization"}, b.hub.listed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is listed at about the same time travels in one snapshot.
func TestListedTogether(t *testing.T) {
	b := newBench(t)
	b.turns("HelmRelease", watch.Syncing)
	b.look()
	b.now = b.now.Add(settle / 2)
	b.turns("HelmRelease", watch.Listed)
	b.look()
	b.now = b.now.Add(settle / 2)
	b.look()
	if b.hub.listed != nil {
		t.Errorf("too soon: %v", b.hub.listed)
	}
	b.now = b.now.Add(settle / 2)
	b.look()
	if diff := cmp.Diff([]string{"Application", "HelmRelease", "Kustomization"}, b.hub.listed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What was held back is reported as soon as its source is listed.
func TestHeldBackUntilListed(t *testing.T) {
	b := newBench(t)
	b.turns("GitRepository", watch.Syncing)
	b.has(load(t, goodYAML))
	b.rest()
	if p := b.worker.progress(); p.held != good || p.heldCount != 1 || len(b.hub.known) != 0 {
		t.Fatalf("held %s of %d, known %v", p.held, p.heldCount, b.hub.known)
	}
	b.has(load(t, repoYAML))
	b.turns("GitRepository", watch.Listed)
	b.worker.queue.wake()
	b.rest()
	if got := b.facts(good); len(got.Sources) != 1 || got.SourceRevision == "" {
		t.Errorf("the facts are %+v", got)
	}
}

// A kind that comes later holds back who reads from it, and nobody else.
func TestKindComesLater(t *testing.T) {
	b := newBench(t)
	b.turns("OCIRepository", watch.Absent)
	b.has(load(t, goodYAML), load(t, repoYAML))
	b.rest()
	b.turns("OCIRepository", watch.Syncing)
	oci := load(t, "flux/made/kustomization-oci")
	b.has(oci, failing(t, load(t, goodYAML)))
	b.rest()
	wantNews(t, b, []string{"Kustomization/flux-system/good failure"})
	if slices.Contains(b.hub.listed, "Kustomization") {
		t.Error("a snapshot could forget the one that is held back")
	}
	b.has(load(t, "flux/made/ocirepository"))
	b.turns("OCIRepository", watch.Listed)
	b.rest()
	key := ref("Kustomization", oci.GetNamespace(), oci.GetName())
	if got := b.facts(key); len(got.Sources) != 1 {
		t.Errorf("its sources are %v", got.Sources)
	}
	if !slices.Contains(b.hub.listed, "Kustomization") {
		t.Error("the kind is not complete again")
	}
}

func TestSourceChanges(t *testing.T) {
	const revision = "main@sha1:5ce0d1a2b3c4d5e6f708192a3b4c5d6e7f809100"
	broken := func(o *unstructured.Unstructured) *unstructured.Unstructured {
		return edit(t, o, []any{map[string]any{"type": "FetchFailed", "status": "True", "reason": "GitOperationFailed", "message": "no route"}}, "status", "conditions")
	}
	for name, c := range map[string]struct {
		reason   string
		change   func(*bench)
		puts     int
		endpoint string
		revision string
		err      string
	}{
		"new artifact": {"its revision is its readers'", func(b *bench) { b.has(edit(t, load(t, repoYAML), revision, "status", "artifact", "revision")) }, 1, "main", revision, ""},
		"moved":        {"its endpoint is its readers'", func(b *bench) { b.has(edit(t, load(t, repoYAML), "dev", "spec", "ref", "branch")) }, 1, "dev", "", ""},
		"fails":        {"why it does not fetch is said", func(b *bench) { b.has(broken(load(t, repoYAML))) }, 1, "main", "", "no route"},
		"nothing":      {"a change that says nothing is none", func(b *bench) { b.has(edit(t, load(t, repoYAML), "9999", "metadata", "resourceVersion")) }, 0, "main", "", ""},
		"vanished":     {"the last endpoint stays", func(b *bench) { b.loses(repo) }, 1, "main", "-", "GitRepository/flux-system/repo is gone"},
		"came back": {"and is replaced", func(b *bench) {
			b.loses(repo)
			b.look()
			b.has(edit(t, load(t, repoYAML), "dev", "spec", "ref", "branch"))
		}, 2, "dev", "", ""},
		"unreadable": {"the last endpoint stays too", func(b *bench) { b.has(edit(t, load(t, repoYAML), int64(7), "spec", "url")) }, 1, "main", "-", "cannot be read"},
		"unlisted":   {"what is known may be old", func(b *bench) { b.turns("GitRepository", watch.Unlisted) }, 1, "main", "", "as it was last seen"},
		"listed again": {"until it is new", func(b *bench) {
			b.turns("GitRepository", watch.Unlisted)
			b.look()
			b.turns("GitRepository", watch.Listed)
		}, 2, "main", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.has(load(t, goodYAML), load(t, repoYAML), named(t, load(t, repoYAML), "flux-system", "other"), load(t, appYAML))
			b.rest()
			was := b.facts(good)
			c.change(b)
			b.rest()
			if n := len(b.hub.puts); n != c.puts {
				t.Errorf("%s: %d puts, want %d", c.reason, n, c.puts)
			}
			got := b.facts(good)
			if len(got.Sources) != 1 || got.Sources[0].Ref != c.endpoint || got.Status != schema.StatusSuccess {
				t.Errorf("%s: %+v", c.reason, got)
			}
			switch c.revision {
			case "":
				c.revision = was.SourceRevision
			case "-":
				c.revision = ""
			}
			if got.SourceRevision != c.revision || !strings.Contains(got.SourceError, c.err) || c.err == "" && got.SourceError != "" {
				t.Errorf("%s: revision %q, error %q", c.reason, got.SourceRevision, got.SourceError)
			}
			if diff := cmp.Diff([]string{"Application", "HelmRelease", "Kustomization"}, b.hub.listed); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
		})
	}
}

// A chart's repository is two steps away.
func TestRepositoryOfAChart(t *testing.T) {
	b := newBench(t)
	b.has(load(t, releaseYAML), load(t, chartYAML))
	b.rest()
	if got := b.facts(release); len(got.Sources) != 0 {
		t.Fatalf("without its repository the chart is at %v", got.Sources)
	}
	b.has(load(t, chartsYAML))
	b.rest()
	wantNews(t, b, []string{"HelmRelease/team-b/web success"})
	if got := b.facts(release).Sources; len(got) != 1 || got[0].URL != "https://charts.example.com/podinfo" {
		t.Errorf("the chart is at %v", got)
	}
	b.has(edit(t, load(t, chartsYAML), "https://charts.example.com/other", "spec", "url"))
	b.rest()
	if got := b.facts(release).Sources; got[0].URL != "https://charts.example.com/other" {
		t.Errorf("the chart is at %v", got)
	}
	b.loses(charts)
	b.rest()
	if got := b.facts(release); got.Sources[0].URL != "https://charts.example.com/other" || got.SourceError != "HelmRepository/sources/podinfo is gone" {
		t.Errorf("sources %v, error %q", got.Sources, got.SourceError)
	}
	b.loses(chart)
	b.rest()
	if got := b.facts(release); got.Sources[0].URL != "https://charts.example.com/other" || got.SourceError != "HelmChart/sources/team-b-web is gone" {
		t.Errorf("sources %v, error %q", got.Sources, got.SourceError)
	}
}

// Without the endpoint a reconciler would count for no commit, and a gate would
// pass without it: its kind counts as unknown instead.
func TestSourceNeverSeenAndNotListed(t *testing.T) {
	b := newBench(t)
	b.turns("GitRepository", watch.Unlisted)
	b.turns("Bucket", watch.Unlisted)
	b.has(load(t, goodYAML), load(t, releaseYAML), load(t, chartYAML), load(t, chartsYAML))
	b.rest()
	if diff := cmp.Diff([][]string{{"Application", "HelmRelease"}, {"Kustomization"}}, [][]string{b.hub.listed, b.hub.unlisted}); diff != "" {
		t.Errorf("listed, unlisted (-want +got):\n%s", diff)
	}
	if _, ok := b.hub.known[good]; ok || b.worker.progress().blind != good {
		t.Errorf("it was reported; blind is %s", b.worker.progress().blind)
	}
	b.has(load(t, repoYAML))
	b.turns("GitRepository", watch.Listed)
	b.rest()
	if got := b.facts(good); got.Status != schema.StatusSuccess || len(b.hub.unlisted) != 0 {
		t.Errorf("%+v; unlisted %v", got, b.hub.unlisted)
	}
}

// A parent's success holds only with all of its children.
func TestChildren(t *testing.T) {
	parent := func(children ...schema.ObjectRef) *unstructured.Unstructured {
		return inventory(t, named(t, load(t, goodYAML), "flux-system", "root"), children...)
	}
	for name, c := range map[string]struct {
		reason string
		config func(*Config)
		do     func(*bench)
		status schema.Status
		why    string
	}{
		"seen":          {"all are there", nil, func(*bench) {}, schema.StatusSuccess, "ReconciliationSucceeded"},
		"not seen":      {"one was never there", nil, func(b *bench) { b.has(parent(good, ref("Kustomization", "flux-system", "late"))) }, schema.StatusInProgress, object.ReasonChildNotSeen},
		"comes":         {"until it is", nil, func(b *bench) { b.loses(good); b.rest(); b.has(load(t, goodYAML)) }, schema.StatusSuccess, "ReconciliationSucceeded"},
		"vanishes":      {"one went", nil, func(b *bench) { b.loses(good) }, schema.StatusInProgress, object.ReasonChildNotSeen},
		"lost":          {"one cannot be looked at any more", nil, func(b *bench) { b.turns("HelmRelease", watch.Unlisted) }, schema.StatusUnknown, ReasonChildNotListed},
		"lost, unnamed": {"a kind without children does not matter", nil, func(b *bench) { b.turns("Application", watch.Unlisted) }, schema.StatusSuccess, "ReconciliationSucceeded"},
		"found":         {"and then can", nil, func(b *bench) { b.turns("HelmRelease", watch.Unlisted); b.rest(); b.turns("HelmRelease", watch.Listed) }, schema.StatusSuccess, "ReconciliationSucceeded"},
		"not served":    {"there is no such kind", nil, func(b *bench) { b.turns("HelmRelease", watch.Absent); b.loses(release) }, schema.StatusUnknown, ReasonChildNotListed},
		"syncing again": {"a kind that is being listed was not read", nil, func(b *bench) { b.turns("HelmRelease", watch.Syncing); b.loses(release) }, schema.StatusInProgress, object.ReasonChildNotSeen},
		"not watched":   {"nobody looks", func(c *Config) { c.ArgoCD.Enabled = false }, func(b *bench) { b.has(parent(good, app)) }, schema.StatusUnknown, ReasonChildNotListed},
		"failing":       {"a failure needs no children", nil, func(b *bench) { b.has(failing(t, parent(ref("Kustomization", "x", "late")))) }, schema.StatusFailure, "BuildFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			change := c.config
			if change == nil {
				change = func(*Config) {}
			}
			b := newBench(t, change)
			b.has(parent(good, release), load(t, goodYAML), load(t, repoYAML), load(t, releaseYAML), load(t, chartYAML), load(t, chartsYAML))
			b.rest()
			if got := b.facts(root); got.Status != schema.StatusSuccess {
				t.Fatalf("at first it is %s: %s", got.Status, got.Message)
			}
			c.do(b)
			b.rest()
			if got := b.facts(root); got.Status != c.status || got.Reason != c.why {
				t.Errorf("%s, %s: %s; want %s, %s: %s", got.Status, got.Reason, got.Message, c.status, c.why, c.reason)
			}
		})
	}
}

// A parent's success waits for the last word about its children, and travels
// with it.
func TestSettle(t *testing.T) {
	b := newBench(t)
	parent := inventory(t, named(t, load(t, goodYAML), "flux-system", "root"), good)
	b.has(failing(t, parent), load(t, goodYAML), load(t, repoYAML))
	b.rest()

	b.has(parent)
	b.look()
	wantNews(t, b)
	b.hub.snapshot("Kustomization")
	if got := b.facts(root); got.Status != schema.StatusInProgress {
		t.Errorf("in a snapshot meanwhile it is %s", got.Status)
	}
	b.has(failing(t, load(t, goodYAML))) // the slower watch
	b.look()
	wantNews(t, b, []string{"Kustomization/flux-system/good failure"})
	b.rest()
	wantNews(t, b, []string{"Kustomization/flux-system/good failure", "Kustomization/flux-system/root success"})

	b.has(failing(t, parent))
	b.look()
	wantNews(t, b, []string{"Kustomization/flux-system/root failure"})

	b.has(parent)
	b.hub.snapshot("Kustomization") // it was not looked at yet
	if got := b.facts(root); got.Status != schema.StatusInProgress {
		t.Errorf("in a snapshot before the first look it is %s", got.Status)
	}
	b.look()
	b.has(failing(t, parent))
	b.rest()
	wantNews(t, b, []string{"Kustomization/flux-system/root failure"})
}

// Parents within a tree go from the leaves up; a circle goes round once.
func TestTree(t *testing.T) {
	kustomization := func(name string, children ...schema.ObjectRef) *unstructured.Unstructured {
		return inventory(t, named(t, load(t, goodYAML), "flux-system", name), children...)
	}
	a, m, z := ref("Kustomization", "flux-system", "a"), ref("Kustomization", "flux-system", "m"), ref("Kustomization", "flux-system", "z")
	const aOK, mOK, zOK = "Kustomization/flux-system/a success", "Kustomization/flux-system/m success", "Kustomization/flux-system/z success"
	t.Run("tree", func(t *testing.T) {
		b := newBench(t)
		objs := []*unstructured.Unstructured{kustomization("a", m), kustomization("m", z), kustomization("z")}
		b.has(append(objs, load(t, repoYAML))...)
		b.rest()
		b.has(objs...)
		b.rest()
		wantNews(t, b, []string{zOK}, []string{zOK, mOK}, []string{mOK, aOK})
	})
	t.Run("one waits", func(t *testing.T) {
		b := newBench(t)
		objs := []*unstructured.Unstructured{kustomization("a", m), kustomization("m", z), kustomization("z")}
		b.has(append(objs, load(t, repoYAML))...)
		b.rest()
		b.has(objs[0])
		b.look()
		b.now = b.now.Add(settle / 2)
		b.has(objs[1])
		b.look()
		b.now = b.now.Add(settle / 2)
		b.look()
		wantNews(t, b)
		b.rest()
		wantNews(t, b, []string{zOK, mOK}, []string{mOK, aOK})
	})
	t.Run("circle", func(t *testing.T) {
		b := newBench(t)
		objs := []*unstructured.Unstructured{kustomization("a", m), kustomization("m", a)}
		b.has(append(objs, load(t, repoYAML))...)
		b.rest()
		b.has(objs...)
		b.rest()
		wantNews(t, b, []string{aOK, mOK}, []string{mOK, aOK})
		_ = z
	})
}

func TestGone(t *testing.T) {
	b := newBench(t)
	b.has(load(t, goodYAML), load(t, repoYAML), load(t, releaseYAML), load(t, chartYAML), load(t, chartsYAML),
		inventory(t, named(t, load(t, goodYAML), "flux-system", "root"), good, release))
	b.rest()
	b.loses(good)
	b.rest()
	if diff := cmp.Diff([]schema.ObjectRef{good}, b.hub.removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if _, ok := b.hub.known[good]; ok {
		t.Error("it is known still")
	}
	b.loses(root, release, repo, chart, charts)
	b.rest()
	if f := b.worker.facts; len(f.needs)+len(f.users)+len(f.sources) != 0 {
		t.Errorf("what nobody needs is kept: %v %v %v", f.needs, f.users, f.sources)
	}
	if len(b.worker.statuses) != 0 || len(b.hub.known) != 0 {
		t.Errorf("what is gone is kept: %v %v", b.worker.statuses, b.hub.known)
	}
}

// Whatever happens in whatever order: in the end the hub knows what is there.
func TestNothingIsLost(t *testing.T) {
	base := load(t, goodYAML)
	pool := []*unstructured.Unstructured{
		base, failing(t, base), inventory(t, base, release, app), load(t, repoYAML),
		edit(t, load(t, repoYAML), "dev", "spec", "ref", "branch"), edit(t, load(t, repoYAML), int64(1), "spec", "url"),
		load(t, releaseYAML), load(t, chartYAML), load(t, chartsYAML), edit(t, load(t, chartsYAML), "https://other.example/x", "spec", "url"),
		load(t, appYAML), inventory(t, named(t, base, "flux-system", "root"), good, release, app), failing(t, named(t, base, "flux-system", "root")),
		named(t, load(t, "flux/made/kustomization-oci"), "team", "oci"), load(t, "flux/made/ocirepository"), load(t, "argocd/made/root"),
		inventory(t, named(t, base, "flux-system", "circle"), root), inventory(t, named(t, base, "flux-system", "root"), ref("Kustomization", "flux-system", "circle")),
	}
	states := []watch.State{watch.Listed, watch.Listed, watch.Unlisted, watch.Syncing, watch.Absent}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := newBench(t)
		for range 60 {
			obj := pool[random.IntN(len(pool))]
			key := ref(obj.GetKind(), obj.GetNamespace(), obj.GetName())
			switch random.IntN(8) {
			case 0, 1, 2:
				b.has(obj.DeepCopy())
			case 3:
				b.loses(key)
			case 4:
				b.turns(key.Kind, states[random.IntN(len(states))])
				b.worker.queue.wake()
			case 5:
				b.hub.mu.Lock()
				listed := slices.Clone(b.hub.listed)
				b.hub.mu.Unlock()
				if len(listed) > 0 {
					b.hub.snapshot(listed[random.IntN(len(listed))])
				}
			default:
				b.now = b.now.Add(settle / 2)
				b.look()
			}
		}
		for kind := range b.cluster.states {
			b.turns(kind, watch.Listed)
		}
		b.rest()
		if diff := cmp.Diff([]string{"Application", "HelmRelease", "Kustomization"}, b.hub.listed); diff != "" {
			t.Fatalf("seed %d: listed (-want +got):\n%s", seed, diff)
		}
		want := map[schema.ObjectRef]schema.Reconciler{}
		for _, kind := range b.hub.listed {
			for _, key := range b.cluster.Keys(kind) {
				want[key] = b.worker.facts.read(key, b.cluster.States()).Reconciler
			}
		}
		if diff := cmp.Diff(want, b.hub.known); diff != "" {
			t.Fatalf("seed %d: the hub (-want +got):\n%s", seed, diff)
		}
	}
}

// The worker wakes by itself, and stops when it is told.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.has(inventory(t, named(t, load(t, goodYAML), "flux-system", "root"), good), load(t, goodYAML), load(t, repoYAML))
		done := make(chan error)
		ctx, cancel := contextOf(t)
		go func() { done <- b.worker.run(ctx) }()
		sleep(settle)
		if got := b.facts(root); got.Status != schema.StatusSuccess {
			t.Errorf("it is %s: %s", got.Status, got.Message)
		}
		b.has(inventory(t, named(t, load(t, goodYAML), "flux-system", "root"), release))
		synctest.Wait()
		if got := b.facts(root); got.Status != schema.StatusInProgress {
			t.Errorf("it is %s: %s", got.Status, got.Message)
		}
		b.has(load(t, releaseYAML))
		sleep(settle)
		if got := b.facts(root); got.Status != schema.StatusSuccess {
			t.Errorf("it is %s: %s", got.Status, got.Message)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A source object that was never there is said to be missing: the hub then
// keeps the reconciler where it read last.
func TestSourceThatIsNotThere(t *testing.T) {
	b := newBench(t)
	b.has(load(t, goodYAML))
	b.rest()
	r := b.facts(ref("Kustomization", "flux-system", "good"))
	if len(r.Sources) != 0 || r.SourceError != "GitRepository/flux-system/repo is not there" {
		t.Errorf("it reads %v, with %q", r.Sources, r.SourceError)
	}
	b.has(load(t, repoYAML))
	b.rest()
	if r := b.facts(ref("Kustomization", "flux-system", "good")); len(r.Sources) != 1 || r.SourceError != "" {
		t.Errorf("it reads %v, with %q", r.Sources, r.SourceError)
	}
}

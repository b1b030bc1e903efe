package names_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/schema"
)

var epoch = time.Unix(1_700_000_000, 0).UTC()

// line is a lineage whose commits are named after their points.
type line struct {
	chains []names.Chain
	// ends are the last positions of the chains.
	ends []int64
}

func commit(chain uint32, position int64) string { return fmt.Sprintf("%d-%d", chain, position) }

// real is the chain that a position of the nth chain lies on by itself.
func (l line) real(n int, position int64) int {
	for n > 0 && position <= l.chains[n].Fork {
		n--
	}
	return n
}

func (l line) point(n int, position int64) names.Point {
	return names.Point{
		Chain: l.chains[n].Number, Position: position, Commit: commit(l.chains[l.real(n, position)].Number, position), CommittedAt: epoch.Add(time.Duration(position) * time.Second),
	}
}

func (l line) Place(id string) (names.Point, bool) {
	for n := len(l.chains) - 1; n >= 0; n-- {
		for p := int64(0); p <= l.ends[n]; p++ {
			if at := l.point(n, p); at.Commit == id {
				return at, true
			}
		}
	}
	return names.Point{}, false
}

func (l line) On(chain uint32, position int64) (names.Point, bool) {
	for n := range l.chains {
		if l.chains[n].Number == chain && position >= 0 && position <= l.ends[n] {
			return l.point(n, position), true
		}
	}
	return names.Point{}, false
}

func (l line) Head() (names.Point, bool) {
	n := len(l.chains) - 1
	return l.point(n, l.ends[n]), true
}

func (l line) Configuration(id, folder string) string { return folder + "@" + id }

func target(environment, workload, name string) schema.Target {
	return schema.Target{Environment: environment, Workspace: "kaizen", Application: "greeting", Workload: workload, DeploymentTarget: name}
}

func named(t schema.Target, repo, ref, path string) names.Target {
	return names.Target{Target: t, Endpoint: schema.Endpoint{Repo: repo, Ref: ref, Path: path}}
}

const apps = "git.example/org/apps"

var repos = []names.Repo{
	{Names: []string{apps, "mirror.example/apps"}, Written: "https://git.example/org/apps", Default: "dev"},
	{Names: []string{"git.example/org/pushed"}},
}

// An endpoint belongs to the nearest target above it, whatever name its
// repository goes by.
func TestAt(t *testing.T) {
	root, one, deep, first, was := target("dev", "all", "root"), target("dev", "hello", "one"), target("dev", "hello", "deep"), target("dev", "a", "first"), target("dev", "hello", "was")
	x := names.New(names.Facts{
		Repos:   repos,
		Targets: []names.Target{named(root, apps, "stage", ""), named(deep, apps, "dev", "one/deep"), named(one, apps, "", "one"), named(first, apps, "dev", "one")},
		Former:  []names.Target{named(was, apps, "dev", "one"), named(was, apps, "dev", "gone")},
	})
	for name, tc := range map[string]struct {
		reason          string
		repo, ref, path string
		want            schema.Target
	}{
		"itself":       {"equal", apps, "dev", "one/deep", deep},
		"below":        {"the nearest above", apps, "dev", "one/deep/er", deep},
		"beside":       {"a path is made of whole names", apps, "dev", "one/deeper", first},
		"first":        {"of two, the first by name", apps, "dev", "one", first},
		"alias":        {"an alias is the repository", "mirror.example/apps", "dev", "one/deep", deep},
		"default":      {"HEAD is the default branch", apps, "", "one/deep", deep},
		"root":         {"the root is above all", apps, "stage", "x/y/z", root},
		"former":       {"what was is known where nothing else is", apps, "dev", "gone/x", was},
		"other ref":    {"another branch is another place", apps, "prod", "one", schema.Target{}},
		"above":        {"a target is not below what reads it", apps, "dev", "", schema.Target{}},
		"unknown repo": {"of a stranger nothing is known", "git.example/org/else", "dev", "one", schema.Target{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := x.At(schema.Endpoint{Repo: tc.repo, Ref: tc.ref, Path: tc.path})
			if got.Target != tc.want || ok != (tc.want != schema.Target{}) {
				t.Errorf("%s: it is %+v, %t", tc.reason, got.Target, ok)
			}
		})
	}
	if got := x.Targets(); len(got) != 4 || got[0].Target != first || got[1].Target != root {
		t.Errorf("targets are not sorted, or former ones are among them: %+v", got)
	}
}

func TestFindAndEnvironments(t *testing.T) {
	one, two, three := target("dev", "hello", "one"), target("stage", "hello", "one"), target("stage", "bye", "two")
	x := names.New(names.Facts{
		Repos:        repos,
		Targets:      []names.Target{named(one, apps, "dev", "one"), named(two, apps, "stage", "one"), named(three, apps, "both", "two"), named(one, apps, "both", "x")},
		Environments: []names.Environment{{Repo: "git.example/org/platform", Ref: "dev", Name: "dev"}, {Repo: apps, Ref: "stage", Name: "stage"}},
	})
	for name, tc := range map[string]struct {
		filter schema.StateFilter
		want   int
	}{
		"all":         {schema.StateFilter{Cluster: "drone", Status: schema.StatusSuccess}, 4},
		"environment": {schema.StateFilter{Environment: "stage"}, 2},
		"workload":    {schema.StateFilter{Workload: "hello", DeploymentTarget: "one", Workspace: "kaizen", Application: "greeting"}, 3},
		"none":        {schema.StateFilter{Environment: "dev", Workload: "bye"}, 0},
	} {
		if got := x.Find(tc.filter); len(got) != tc.want {
			t.Errorf("%s: %d targets, want %d", name, len(got), tc.want)
		}
	}
	for at, want := range map[[2]string]string{
		{apps, "dev"}: "dev", {apps, ""}: "dev", {"mirror.example/apps", "stage"}: "stage", {apps, "both"}: "", {apps, "prod"}: "", {"git.example/org/platform", "dev"}: "dev",
	} {
		if got := x.Environment(at[0], at[1]); got != want {
			t.Errorf("%s serves %q, want %q", at, got, want)
		}
	}
	if diff := cmp.Diff([]string{"dev", "stage"}, x.Environments()); diff != "" {
		t.Error(diff)
	}
	if written, ok := x.Repo("mirror.example/apps"); !ok || written != "https://git.example/org/apps" {
		t.Errorf("it is written %q", written)
	}
	if _, ok := x.Repo("git.example/org/pushed"); ok {
		t.Error("a repository that nobody follows has no address")
	}
	wild := names.Empty()
	if _, ok := wild.At(schema.Endpoint{Repo: apps}); ok || len(wild.Targets()) > 0 || wild.Platform(apps, "dev") || wild.ConfigAt(schema.Endpoint{Repo: apps}, "x", "y") != "" {
		t.Error("an empty index knows something")
	}
}

// Random chains with random assignments say at each commit what a walk down from
// it finds.
func TestVersionsOnChains(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := line{}
		one := target("dev", "hello", "one")
		var all []names.Assignment
		// said are the versions by chain and position, as they were put there.
		said := map[string]*names.Version{}
		for n := range 1 + r.IntN(4) {
			fork := int64(-1)
			if n > 0 {
				fork = int64(r.IntN(int(l.ends[n-1])+2)) - 1
			}
			c := names.Chain{Number: uint32(2*n + 1), Fork: fork}
			l.chains, l.ends = append(l.chains, c), append(l.ends, fork+1+int64(r.IntN(8)))
			for p := fork + 1; p <= l.ends[n]; p++ {
				if r.IntN(3) > 0 {
					continue
				}
				a := names.Assignment{Chain: c.Number, Position: p}
				if r.IntN(4) > 0 {
					a.Version = &names.Version{Version: fmt.Sprint("v", r.IntN(100))}
				}
				all = append(all, a)
				said[commit(c.Number, p)] = a.Version
			}
		}
		repo := repos[0]
		repo.Refs = []names.Ref{{Name: "dev", Lineage: l, Chains: l.chains, Assignments: map[schema.Target][]names.Assignment{one: all}, Configured: true}}
		tt := named(one, apps, "dev", "one")
		x := names.New(names.Facts{Repos: []names.Repo{repo}, Targets: []names.Target{tt}})
		last := len(l.chains) - 1
		for n := range l.chains {
			for p := int64(0); p <= l.ends[n]; p++ {
				id := l.point(n, p).Commit
				here, ok := x.Place(apps, "", id)
				if !ok {
					t.Fatalf("seed %d: %s is nowhere", seed, id)
				}
				on := 0
				for l.chains[on].Number != here.Chain {
					on++
				}
				var want *names.Version
				since := int64(-1)
				for q := p; q >= 0; q-- {
					if v, ok := said[l.point(on, q).Commit]; ok {
						want, since = v, q
						break
					}
				}
				v, at, ok := x.VersionAt(tt, id)
				if ok != (want != nil) || ok && (v.Version != want.Version || at != l.point(on, since)) {
					t.Fatalf("seed %d: at %s it is %+v since %+v, want %+v since %d", seed, id, v, at, want, since)
				}
				next := int64(-1)
				for q := p + 1; q <= l.ends[last] && on == last; q++ {
					if said[l.point(last, q).Commit] != nil {
						next = q
						break
					}
				}
				pending, ok := x.Pending(tt, id)
				if ok != (next >= 0) || ok && pending.Position != next {
					t.Fatalf("seed %d: after %s there is %+v, %t, want %d", seed, id, pending, ok, next)
				}
			}
		}
		if got := x.ConfigAt(schema.Endpoint{Repo: "mirror.example/apps", Path: "drone"}, "hello-one", "c"); got != "drone/hello-one@c" {
			t.Fatalf("the configuration is %q", got)
		}
	}
}

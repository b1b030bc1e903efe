package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/schema"
)

// push sends descriptors for a commit of the repository's main branch.
func (b *bench) push(t *testing.T, a *apps, commit string, all ...said) schema.PushedDescriptors {
	t.Helper()
	var texts []string
	for _, s := range all {
		texts = append(texts, s.text())
	}
	answer, err := b.catalog.Push(t.Context(), a.endpoint(""), commit, []byte(strings.Join(texts, "---\n")))
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// What is pushed is known to the next question, and after a restart.
func TestPush(t *testing.T) {
	a := newApps(t)
	first := a.commit(map[string]string{"README": "1"})
	second := a.commit(map[string]string{"a.yaml": a.says("one", "git").text()})
	third := a.commit(map[string]string{"README": "2"})
	fourth := a.commit(map[string]string{"a.yaml": ""})
	b := a.bench()
	b.start()
	answer := b.push(t, a, first, a.says("one", "pushed"), a.says("two", "pushed"))
	want := schema.PushedDescriptors{Placed: true, Items: []schema.PushedDescriptor{
		{Target: targetNamed("one"), Path: "one", Version: "pushed"}, {Target: targetNamed("two"), Path: "two", Version: "pushed"},
	}}
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	tables := func() []string {
		return b.rows("SELECT position, workload_version FROM assignments FINAL WHERE deployment_target = 'one' ORDER BY position")
	}
	for when, x := range map[string]*names.Index{"at once": b.catalog.Index(), "after a restart": b.start().Index()} {
		expect(t, when+", one", versions(x, a.endpoint("one"), first, second, third, fourth), strings.Join([]string{"pushed", "git", "git", "pushed"}, " "))
		expect(t, when+", two", versions(x, a.endpoint("two"), first, fourth), strings.Repeat(" pushed", 2)[1:])
		if got := tables(); !slices.Equal(got, []string{"0\tpushed", "1\tgit", "3\tpushed"}) {
			t.Errorf("%s the tables say %q", when, got)
		}
	}
	again := a.says("one", "corrected")
	b.push(t, a, first, again)
	expect(t, "corrected", versions(b.catalog.Index(), a.endpoint("one"), first, second, fourth), "corrected git corrected")
	expect(t, "corrected, after a restart", versions(b.start().Index(), a.endpoint("one"), first, second, fourth), "corrected git corrected")
}

// A descriptor may come before its commit.
func TestPushBeforeTheCommit(t *testing.T) {
	a := newApps(t)
	first := a.commit(map[string]string{"README": "1"})
	b := a.bench()
	b.start()
	a.tip = []int{a.stream.Commit(a.tip, map[string]string{"README": "2"})}
	second := a.push("main", a.tip[0])
	if answer := b.push(t, a, second, a.says("one", "1")); answer.Placed {
		t.Error("the commit is not there yet")
	}
	expect(t, "before", versions(b.catalog.Index(), a.endpoint("one"), first, second), "- -")
	b.again()
	expect(t, "after", versions(b.catalog.Index(), a.endpoint("one"), first, second), "- 1")
}

// Of a repository that nobody follows, commits count in the order in which
// descriptors came for them.
func TestPushForNobody(t *testing.T) {
	b := newBench(t)
	c := b.start()
	e := schema.Endpoint{Repo: "git.example/org/apps", Ref: "dev", Path: "one"}
	commits := []string{strings.Repeat("b", 40), strings.Repeat("a", 40)}
	for i, commit := range commits {
		s := said{target: targetNamed("one"), repo: "https://git.example/org/apps", branch: "dev", path: "one", version: fmt.Sprint(i + 1), built: built.Add(-time.Duration(i) * time.Hour)}
		answer, err := c.Push(t.Context(), e, commit, []byte(s.text()))
		if err != nil || !answer.Placed {
			t.Fatal(answer, err)
		}
	}
	for when, x := range map[string]*names.Index{"at once": c.Index(), "after a restart": b.start().Index()} {
		expect(t, when, versions(x, e, append(commits, strings.Repeat("c", 40))...), "1 2 -")
		one, _ := x.At(e)
		if v, at, ok := x.Scheduled(one); !ok || v.Version != "2" || at.Commit != commits[1] || at.Position != 1 {
			t.Errorf("%s: scheduled is %+v at %+v", when, v, at)
		}
		if p, ok := x.Pending(one, commits[0]); !ok || p.Commit != commits[1] {
			t.Errorf("%s: pending is %+v", when, p)
		}
	}
	if got := b.rows("SELECT deployment_target, path, deleted FROM deployment_targets FINAL"); !slices.Equal(got, []string{"one\t" + "one\t0"}) {
		t.Errorf("deployment targets: %q", got)
	}
}

// A body of which a part is broken is refused as a whole.
func TestPushRefuses(t *testing.T) {
	a := newApps(t)
	head := a.commit(map[string]string{"README": "1"})
	b := a.bench()
	c := b.start()
	good := a.says("one", "1").text()
	elsewhere := a.says("two", "1")
	elsewhere.branch = "dev"
	cases := map[string]struct {
		reason string
		body   string
		want   []schema.FileError
	}{
		"broken":  {"the line is that of the body", good + "---\n" + strings.Replace(good, `buildTime: "2026-11-20T09:00:00Z"`, `buildTime: yesterday`, 1), []schema.FileError{{File: "body", Line: 27, Reason: `spec.workloadVersion.buildTime is "yesterday": it must be a time between the years 1970 and 2200, like "2023-04-27T23:25:05Z"`}}},
		"nothing": {"an empty body says nothing", "# nothing\n", []schema.FileError{{File: "body", Reason: "it holds no document: send a DeploymentDescriptor"}}},
		"others":  {"other documents are none of ours", "kind: ConfigMap\n", []schema.FileError{{File: "body", Line: 1, Reason: `a document of kind "ConfigMap": only kind DeploymentDescriptor of hub.kalypso.io/v1alpha1 is taken here`}}},
		"elsewhere": {"the commit is of another branch", elsewhere.text(), []schema.FileError{{File: "body", Line: 1, Reason: fmt.Sprintf(
			"its manifests are in %[1]s, branch dev, and repo and ref name %[1]s, branch main: they must be the same", a.endpoint("").Repo)}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.Push(t.Context(), a.endpoint(""), head, []byte(tc.body))
			p, ok := errors.AsType[*schema.Problem](err)
			if !ok || p.Code != schema.CodeInvalidDescriptor {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, p.Errors); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if got := b.rows("SELECT count() FROM descriptors"); got[0] != "0" {
		t.Errorf("%s descriptors are stored", got[0])
	}
}

package catalog

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/internal/gitrepo/gittest"
	"github.com/landfall-hub/landfall/schema"
)

var built = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// apps is a repository with a stream of commits to its main branch.
type apps struct {
	testing.TB
	dir    string
	stream *gittest.Stream
	ids    []string
	tip    []int
}

func newApps(t testing.TB) *apps {
	t.Helper()
	return &apps{TB: t, dir: t.TempDir(), stream: gittest.NewStream()}
}

// says is a descriptor of a target in the repository's main branch.
func (a *apps) says(target, version string) said {
	return said{target: targetNamed(target), repo: a.dir, branch: "main", path: target, version: version, built: built}
}

// commit adds a commit to main and pushes it.
func (a *apps) commit(files map[string]string) string {
	a.Helper()
	a.tip = []int{a.stream.Commit(a.tip, files)}
	return a.push("main", a.tip[0])
}

func (a *apps) push(branch string, at int) string {
	a.Helper()
	a.stream.Branch(branch, at)
	a.ids = a.stream.Into(a.TB, a.dir)
	a.stream.ContinueFrom(a.ids)
	return a.ids[at]
}

func (a *apps) bench() *bench {
	a.Helper()
	return newBench(a.TB, gitops.Repository{URL: a.dir})
}

// endpoint is a folder of the repository's main branch.
func (a *apps) endpoint(path string) schema.Endpoint {
	a.Helper()
	e, err := schema.NewEndpoint(a.dir, "main", path)
	if err != nil {
		a.Fatal(err)
	}
	return e
}

// versions are what the index says of a target at commits; "-" for none.
func versions(x *names.Index, e schema.Endpoint, commits ...string) string {
	t, ok := x.At(e)
	if !ok {
		return "unknown"
	}
	var all []string
	for _, c := range commits {
		v, _, ok := x.VersionAt(t, c)
		if !ok {
			v.Version = "-"
		}
		all = append(all, v.Version)
	}
	return strings.Join(all, " ")
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// A version is that of the file that changed last, then of the newest build; a
// descriptor that is deleted ends its version, and the one that stays takes over.
func TestWhichDescriptorCounts(t *testing.T) {
	a := newApps(t)
	other := a.says("one", "2")
	other.built = built.Add(-time.Hour)
	first := a.commit(map[string]string{"README": "x"})
	second := a.commit(map[string]string{"a.yaml": a.says("one", "1").text()})
	third := a.commit(map[string]string{"b.yaml": other.text()})
	fourth := a.commit(map[string]string{"b.yaml": ""})
	fifth := a.commit(map[string]string{"a.yaml": a.says("one", "3").text(), "c.yaml": other.text()})
	sixth := a.commit(map[string]string{"a.yaml": "", "c.yaml": ""})
	x := a.bench().start().Index()
	expect(t, "versions", versions(x, a.endpoint("one"), first, second, third, fourth, fifth, sixth), "- 1 2 1 3 -")
	if all := x.Targets(); len(all) != 0 {
		t.Errorf("a target that nothing names is listed: %+v", all)
	}
	if all := x.Environments(); len(all) != 0 {
		t.Errorf("its environment, too: %v", all)
	}
}

// A branch that was forced elsewhere keeps its past, and begins a new chain with
// all that was true at the fork.
func TestForcedBranch(t *testing.T) {
	a := newApps(t)
	first := a.commit(map[string]string{"a.yaml": a.says("one", "1").text(), "b.yaml": a.says("two", "1").text(), "platform/hello/reconciler.yaml": "1"})
	second := a.commit(map[string]string{"a.yaml": a.says("one", "2").text()})
	lost := a.commit(map[string]string{"a.yaml": a.says("one", "3").text(), "platform/hello/reconciler.yaml": "2"})
	b := a.bench()
	b.start()
	a.tip = []int{1}
	forced := a.commit(map[string]string{"b.yaml": a.says("two", "4").text()})
	b.again()
	for when, x := range map[string]*names.Index{"before a restart": b.catalog.Index(), "after it": b.start().Index()} {
		expect(t, when+", one", versions(x, a.endpoint("one"), first, second, lost, forced), "1 2 3 2")
		expect(t, when+", two", versions(x, a.endpoint("two"), first, second, lost, forced), "1 1 1 4")
		one, _ := x.At(a.endpoint("one"))
		p, ok := x.Place(one.Endpoint.Repo, "", lost)
		if !ok || p.Chain != 0 || p.Position != 2 || p.Commit != lost {
			t.Errorf("%s: the lost commit is at %+v", when, p)
		}
		if p, ok := x.Place(one.Endpoint.Repo, "main", second); !ok || p.Chain != 1 || p.Position != 1 {
			t.Errorf("%s: a commit that survived is at %+v", when, p)
		}
		if _, at, ok := x.Scheduled(one); !ok || at.Commit != second || at.Chain != 1 {
			t.Errorf("%s: one is scheduled at %+v", when, at)
		}
		if _, ok := x.Pending(one, lost); ok {
			t.Errorf("%s: something is pending where nothing can be compared", when)
		}
	}
	got := b.rows("SELECT chain, deployment_target, position, workload_version, commit FROM assignments FINAL ORDER BY chain, deployment_target, position")
	want := []string{
		"0\tone\t0\t1\t" + first, "0\tone\t1\t2\t" + second, "0\tone\t2\t3\t" + lost, "0\ttwo\t0\t1\t" + first,
		"1\tone\t1\t2\t" + second, "1\ttwo\t1\t1\t" + first, "1\ttwo\t2\t4\t" + forced,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("assignments (-want +got):\n%s", diff)
	}
	if got := b.rows("SELECT chain, path, position FROM configurations FINAL ORDER BY chain, position"); !slices.Equal(got, []string{"0\tplatform/hello\t0", "0\tplatform/hello\t2", "1\tplatform/hello\t1"}) {
		t.Errorf("configurations: %q", got)
	}
	if got := b.rows("SELECT chain, fork, head, position FROM refs FINAL ORDER BY chain"); !slices.Equal(got, []string{"0\t-1\t" + lost + "\t2", "1\t1\t" + forced + "\t2"}) {
		t.Errorf("refs: %q", got)
	}
}

// However often a branch was forced elsewhere, what its commits share keeps its
// versions: also after a restart, and where the mirror lost what nobody has.
func TestForcedOften(t *testing.T) {
	a := newApps(t)
	shared := []string{a.commit(map[string]string{"a.yaml": a.says("one", "0").text()}), a.commit(map[string]string{"a.yaml": a.says("one", "1").text()})}
	b := a.bench()
	b.start()
	var forced string
	for i := range mostChains + 4 {
		a.tip = []int{1}
		forced = a.commit(map[string]string{"a.yaml": a.says("one", fmt.Sprint("forced", i)).text()})
		b.again()
		if i == 3 {
			shared = append(shared, forced)
			a.tip = []int{len(a.ids) - 1}
			forced = a.commit(map[string]string{"README": "x"})
			b.again()
		}
	}
	want := fmt.Sprint("0 1 forced", mostChains+3)
	check := func(when string, x *names.Index) {
		t.Helper()
		expect(t, when, versions(x, a.endpoint("one"), shared[0], shared[1], forced), want)
		one, _ := x.At(a.endpoint("one"))
		if p, ok := x.Pending(one, shared[0]); !ok || p.Commit != shared[1] {
			t.Errorf("%s: pending after the first is %+v, %t", when, p, ok)
		}
	}
	check("at once", b.catalog.Index())
	check("after a restart", b.start().Index())
	git(t, a.dir, "reflog", "expire", "--expire=now", "--all")
	git(t, a.dir, "gc", "--quiet", "--prune=now")
	b.mirrors = t.TempDir()
	check("with another mirror", b.start().Index())
}

// What a descriptor says of another place is known by its names only, and the
// complaint says what to do.
func TestStrangers(t *testing.T) {
	a := newApps(t)
	elsewhere := a.says("one", "1")
	elsewhere.repo = "https://git.example/org/apps"
	head := a.commit(map[string]string{"deep/a.yaml": "# a comment\n" + elsewhere.text()})
	b := a.bench()
	c := b.start()
	e := schema.Endpoint{Repo: "git.example/org/apps", Ref: "main", Path: "one"}
	expect(t, "by its own endpoint", versions(c.Index(), e, head), "-")
	n, first := c.Problems(a.endpoint("").Repo)
	if n != 1 || !strings.HasPrefix(first, "main: deep/a.yaml:2: its manifests are in git.example/org/apps, branch main") || !strings.Contains(first, "aliases") || !strings.Contains(first, "POST /api/v1/descriptors") {
		t.Errorf("%d problems: %s", n, first)
	}

	b.repositories[0].Aliases = []string{"https://git.example/org/apps"} // the operator follows the advice
	x := b.start().Index()
	expect(t, "with an alias", versions(x, e, head), "1")
	if n, first := b.catalog.Problems(a.endpoint("").Repo); n != 0 {
		t.Errorf("%d problems are left: %s", n, first)
	}
	one, _ := x.At(e)
	want := []schema.Endpoint{
		{Repo: a.endpoint("").Repo, Ref: "main", Path: "one"}, {Repo: "git.example/org/apps", Ref: "main", Path: "one"},
		{Repo: a.endpoint("").Repo, Ref: "", Path: "one"}, {Repo: "git.example/org/apps", Ref: "", Path: "one"},
	}
	if diff := cmp.Diff(want, x.Endpoints(one)); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
}

// What is broken is named with file, line and reason, and costs the others
// nothing: also what is hostile.
func TestBrokenFiles(t *testing.T) {
	a := newApps(t)
	good := a.says("one", "1").text()
	large := good + strings.Repeat("#", 50<<20)
	head := a.commit(map[string]string{
		"good.yaml": good, "large.yaml": large, "link.yaml": "-> large.yaml", "text.yaml": "-> " + a.says("link", "1").text(), "data.json": strings.Repeat(" ", 2<<20),
		"broken.yaml":             strings.Replace(a.says("two", "1").text(), "environment: dev", "environment: [dev]", 1),
		`"odd/new\nline\t.yaml"`:  strings.Replace(a.says("three", "1").text(), "metadata:", "metadat:", 1),
		"helm/templates/x.yaml":   "apiVersion: v1\nkind: {{ .Values.kind }}\n",
		"helm/templates/ours.yml": "apiVersion: hub.kalypso.io/v1alpha1\nmetadata: [\n",
	})
	c := a.bench().start()
	expect(t, "the good one", versions(c.Index(), a.endpoint("one"), head), "1")
	expect(t, "what a link says where it leads", versions(c.Index(), a.endpoint("link"), head), "unknown")
	var got []string
	for _, p := range c.problems[a.endpoint("").Repo] {
		got = append(got, p.String())
	}
	want := []string{
		"main: broken.yaml:11: spec.deploymentTarget.environment is a list: it must be a text",
		"main: helm/templates/ours.yml:2: not YAML",
		fmt.Sprintf("main: large.yaml: the file has %d bytes and is not read, 1048576 are the most: split it", len(large)),
		`main: "odd/new\nline\t.yaml":1: metadata is missing: add it`,
		`main: "odd/new\nline\t.yaml":3: nobody knows the field metadat: remove it; there are apiVersion, kind, metadata, spec`,
	}
	if len(got) != len(want) {
		t.Fatalf("%d problems, want %d: %s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("problem %d is\n%s, want\n%s", i, got[i], want[i])
		}
	}
}

// Workloads, registrations and environments name targets and places without any
// descriptor; a descriptor knows better.
func TestNamesWithoutDescriptors(t *testing.T) {
	a := newApps(t)
	a.commit(map[string]string{
		"workloads/hello.yaml": fmt.Sprintf(`apiVersion: scheduler.kalypso.io/v1alpha1
kind: Workload
metadata: {name: hello}
spec:
  deploymentTargets:
  - {name: one, environment: dev, labels: {edge: "true"}, manifests: {repo: %[1]q, branch: main, path: ./one}}
  - {name: two, environment: dev, manifests: {repo: %[1]q, branch: main, path: ./two}}
`, a.dir),
		"control/registration.yaml": fmt.Sprintf(`apiVersion: scheduler.kalypso.io/v1alpha1
kind: WorkloadRegistration
metadata: {name: hello}
spec: {workspace: kaizen, workload: {repo: %q, branch: main, path: workloads}}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Environment
metadata: {name: dev}
spec: {controlPlane: {repo: %[1]q, branch: main, path: control}}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: GitOpsRepo
metadata: {name: platform}
spec: {repo: https://git.example/org/platform, branch: dev, path: .}
`, a.dir),
		"one/descriptor.yaml": a.says("one", "1").text(),
	})
	x := a.bench().start().Index()
	want := []names.Target{
		{Target: schema.Target{Environment: "dev", Workspace: "kaizen", Workload: "hello", DeploymentTarget: "two"}, Endpoint: a.endpoint("two"), URL: a.dir},
		{Target: targetNamed("one"), Labels: map[string]string{"edge": "true"}, Endpoint: a.endpoint("one"), URL: a.dir},
	}
	if diff := cmp.Diff(want, x.Targets()); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	expect(t, "the platform's environment", x.Environment("git.example/org/platform", "dev"), "dev")
	expect(t, "the apps' environment", x.Environment(a.endpoint("").Repo, ""), "dev")
}

// Configurations are the folders that hold a file "reconciler", at the commit
// that is asked about.
func TestConfigurations(t *testing.T) {
	a := newApps(t)
	first := a.commit(map[string]string{"drone/hello-one/reconciler.sh": "1", "drone/hello-one/config.env": "1", "drone/other/namespace.yaml": "1"})
	second := a.commit(map[string]string{"drone/hello-one/config.env": "2"})
	third := a.commit(map[string]string{"drone/hello-one/reconciler.sh": ""})
	b := a.bench()
	x := b.start().Index()
	folder := names.ConfigFolders(targetNamed("one"))[0]
	var got []string
	for _, c := range []string{first, second, third} {
		got = append(got, x.ConfigAt(a.endpoint("drone"), folder, c))
	}
	tree := func(commit string) string { return git(t, a.dir, "rev-parse", commit+":drone/hello-one") }
	if want := []string{tree(first), tree(second), ""}; !slices.Equal(got, want) || got[0] == got[1] {
		t.Errorf("configurations are %q, want %q", got, want)
	}
	if x.ConfigAt(a.endpoint("drone"), "other", first) != "" {
		t.Error("a folder without a reconciler is no configuration")
	}
	rows := b.rows("SELECT path, position, config_version, deleted FROM configurations FINAL ORDER BY position")
	if want := []string{"drone/hello-one\t0\t" + tree(first) + "\t0", "drone/hello-one\t1\t" + tree(second) + "\t0", "drone/hello-one\t2\t\t1"}; !slices.Equal(rows, want) {
		t.Errorf("configurations are %q, want %q", rows, want)
	}
}

// Refs that nobody named are followed where they matter: the default branch, those
// that are read, that descriptors name or that hold some of their own.
func TestInterestingRefs(t *testing.T) {
	a := newApps(t)
	onDev := a.says("one", "1")
	onDev.branch = "dev"
	a.commit(map[string]string{"a.yaml": onDev.text()}) // names dev
	main := a.tip[0]
	a.push("dev", main)
	holds := a.says("two", "1")
	holds.branch = "holder"
	a.push("holder", a.stream.Commit([]int{main}, map[string]string{"b.yaml": holds.text()}))
	idle := a.stream.Commit([]int{main}, map[string]string{"README": "x"})
	a.push("idle", idle)
	a.push("read", idle)
	b := a.bench()
	c := b.start()
	refs := func() []string { return b.rows("SELECT DISTINCT ref FROM refs ORDER BY ref") }
	if got := refs(); !slices.Equal(got, []string{"dev", "holder", "main"}) {
		t.Errorf("followed are %q", got)
	}
	c.mu.Lock()
	c.subscribed[record.RefKey{Repo: a.endpoint("").Repo, Ref: "read"}] = true
	c.mu.Unlock()
	b.update()
	if got := refs(); !slices.Equal(got, []string{"dev", "holder", "main", "read"}) {
		t.Errorf("followed are %q", got)
	}
	expect(t, "dev", versions(c.Index(), schema.Endpoint{Repo: a.endpoint("").Repo, Ref: "dev", Path: "one"}, a.ids[main]), "1")
	if n, first := c.Problems(a.endpoint("").Repo); n != 0 {
		t.Errorf("a branch is a copy of another: %s", first)
	}
}

// A repository that cannot be had keeps what it named, and disturbs no other.
func TestOneRepositoryIsAway(t *testing.T) {
	a, other := newApps(t), newApps(t)
	a.commit(map[string]string{"a.yaml": a.says("one", "1").text()})
	other.commit(map[string]string{"a.yaml": other.says("two", "1").text()})
	b := newBench(t, gitops.Repository{URL: a.dir}, gitops.Repository{URL: other.dir})
	b.start()
	head := a.commit(map[string]string{"a.yaml": "", "b.yaml": a.says("three", "1").text()})
	if err := os.RemoveAll(other.dir); err != nil {
		t.Fatal(err)
	}
	b.mirrors = t.TempDir() // nothing is left of it
	b.may = true
	x := b.start().Index()
	var got []string
	for _, t := range x.Targets() {
		got = append(got, t.DeploymentTarget)
	}
	if !slices.Equal(got, []string{"three", "two"}) {
		t.Errorf("named are %q", got)
	}
	expect(t, "the other one", versions(x, a.endpoint("three"), head), "1")
}

// A branch that is gone leaves its past.
func TestGoneBranch(t *testing.T) {
	a := newApps(t)
	a.commit(map[string]string{"README": "x"})
	onDev := a.says("one", "1")
	onDev.branch = "dev"
	dev := a.push("dev", a.stream.Commit(a.tip, map[string]string{"a.yaml": onDev.text()}))
	b := a.bench()
	b.start()
	git(t, a.dir, "update-ref", "-d", "refs/heads/dev")
	b.again()
	e := schema.Endpoint{Repo: a.endpoint("").Repo, Ref: "dev", Path: "one"}
	for when, x := range map[string]*names.Index{"at once": b.catalog.Index(), "after a restart": b.start().Index()} {
		expect(t, when, versions(x, e, dev), "1")
		if len(x.Targets()) != 0 {
			t.Errorf("%s: %+v", when, x.Targets())
		}
	}
	if got := b.rows("SELECT deleted FROM deployment_targets FINAL"); !slices.Equal(got, []string{"1"}) {
		t.Errorf("deployment targets: %q", got)
	}
}

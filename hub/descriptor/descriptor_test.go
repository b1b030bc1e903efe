package descriptor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/schema"
)

// good is the one of the issue.
const good = `apiVersion: hub.kalypso.io/v1alpha1
kind: DeploymentDescriptor
metadata: {name: hello-world-functional-test-0-0-1}
spec:
  workload:
    name: hello-world
    source: {repo: https://user:secret@github.com/kaizentm/hello-world, branch: main, path: .}
    application: {name: greeting-service, workspace: {name: kaizentm}}
  deploymentTarget:
    name: functional-test
    environment: dev
    manifests: {repo: https://user:secret@github.com/kaizentm/hello-world-gitops, branch: dev, path: ./functional-test/}
  workloadVersion: {version: 0.0.1, build: build-1, commit: ca9ee9d0ff9ec52b998fdcf64e128c84ddd0e661, buildTime: "2023-04-27T23:25:05Z"}
`

func TestRead(t *testing.T) {
	want := Claim{
		Line:     1,
		Target:   schema.Target{Environment: "dev", Workspace: "kaizentm", Application: "greeting-service", Workload: "hello-world", DeploymentTarget: "functional-test"},
		Endpoint: schema.Endpoint{Repo: "github.com/kaizentm/hello-world-gitops", Ref: "dev", Path: "functional-test"},
		URL:      "https://github.com/kaizentm/hello-world-gitops",
		Version: &names.Version{
			Version: "0.0.1", Build: "build-1", SourceRepo: "https://github.com/kaizentm/hello-world",
			SourceCommit: "ca9ee9d0ff9ec52b998fdcf64e128c84ddd0e661", BuildTime: time.Date(2023, 4, 27, 23, 25, 5, 0, time.UTC),
		},
	}
	second := want
	second.Line = 17
	json := `{"apiVersion":"hub.kalypso.io/v1alpha1","kind":"DeploymentDescriptor","metadata":{"name":"x"},"spec":{
	"workload":{"name":"hello-world","source":{"repo":"https://github.com/kaizentm/hello-world"},"application":{"name":"greeting-service","workspace":{"name":"kaizentm"}}},
	"deploymentTarget":{"name":"functional-test","environment":"dev","manifests":{"repo":"https://github.com/kaizentm/hello-world-gitops","branch":"refs/heads/dev","path":"functional-test"}},
	"workloadVersion":{"version":"0.0.1","build":"build-1","commit":"ca9ee9d0ff9ec52b998fdcf64e128c84ddd0e661","buildTime":"2023-04-28T01:25:05+02:00"}}}`
	for name, tc := range map[string]struct {
		reason string
		text   string
		want   []Claim
	}{
		"one":       {"as the issue writes it", good, []Claim{want}},
		"several":   {"lines count in the file", good + "---\n# a comment\n\n" + good, []Claim{want, second}},
		"beside":    {"other documents are others' business", "kind: ConfigMap\ndata: {x: [1, 2]}\n---\n" + strings.TrimPrefix(good, "---\n"), []Claim{at(want, 4)}},
		"json":      {"JSON is YAML", json, []Claim{want}},
		"alias":     {"an alias is what it stands for", strings.Replace(strings.Replace(good, "name: functional-test\n", "name: &n functional-test\n", 1), "path: ./functional-test/", "path: *n", 1), []Claim{want}},
		"timestamp": {"a time needs no quotes", strings.Replace(good, `"2023-04-27T23:25:05Z"`, `2023-04-27T23:25:05Z`, 1), []Claim{want}},
		"nothing":   {"no document is no problem", "# hub.kalypso.io\n", nil},
		"not ours":  {"a file that does not name us is not parsed", "a: [\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := Read("a.yaml", []byte(tc.text))
			if diff := cmp.Diff(tc.want, f.Claims); diff != "" {
				t.Errorf("%s: claims (-want +got):\n%s", tc.reason, diff)
			}
			if len(f.Problems) > 0 {
				t.Errorf("%s: %v", tc.reason, f.Problems)
			}
		})
	}
}

func at(c Claim, line int) Claim {
	c.Line = line
	return c
}

// Each complaint names the line to go to and what to write there; the password in
// a URL is nobody's business.
func TestProblems(t *testing.T) {
	replace := func(old, now string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("there is no %q", old)
		}
		return strings.Replace(good, old, now, 1)
	}
	for name, tc := range map[string]struct {
		reason string
		text   string
		want   []string
	}{
		"unknown field":  {"a typo is no version", replace("build: build-1", "biuld: build-1"), []string{"13: nobody knows the field spec.workloadVersion.biuld: remove it; there are version, build, commit, buildTime", "13: spec.workloadVersion.build is missing: add it"}},
		"unknown at top": {"everywhere", good + "status: {}\n", []string{"14: nobody knows the field status: remove it; there are apiVersion, kind, metadata, spec"}},
		"missing":        {"nothing is guessed", replace("    environment: dev\n", ""), []string{"10: spec.deploymentTarget.environment is missing: add it"}},
		"missing part":   {"nothing is guessed", good[:strings.Index(good, "  workloadVersion")], []string{"5: spec.workloadVersion is missing: add it"}},
		"number":         {"1.10 is no number", replace("version: 0.0.1", "version: 1.10"), []string{`13: spec.workloadVersion.version is a number: write the text in quotes, "1.10"`}},
		"list":           {"a wrong type", replace("name: hello-world\n", "name: [hello]\n"), []string{"6: spec.workload.name is a list: it must be a text"}},
		"no mapping":     {"a wrong type", replace("application: {name: greeting-service, workspace: {name: kaizentm}}", "application: greeting"), []string{"8: spec.workload.application is a text: it must be a mapping of name, workspace"}},
		"null":           {"nothing is no text", replace("environment: dev", "environment:"), []string{"11: spec.deploymentTarget.environment is empty: it must be a text"}},
		"empty":          {"an empty name names nothing", replace("environment: dev", `environment: " "`), []string{"11: spec.deploymentTarget.environment is empty: say what it is"}},
		"time":           {"a time that is none", replace(`"2023-04-27T23:25:05Z"`, `"yesterday"`), []string{`13: spec.workloadVersion.buildTime is "yesterday": it must be a time between the years 1970 and 2200, like "2023-04-27T23:25:05Z"`}},
		"old time":       {"a time that nobody means", replace(`2023-04-27`, `0001-01-01`), []string{`13: spec.workloadVersion.buildTime is "0001-01-01T23:25:05Z": it must be a time between the years 1970 and 2200, like "2023-04-27T23:25:05Z"`}},
		"path":           {"a path that climbs out", replace("./functional-test/", "../x"), []string{`12: spec.deploymentTarget.manifests.path: the path climbs out of the repository: "../x"`}},
		"repo":           {"no repository", replace("https://user:secret@github.com/kaizentm/hello-world-gitops", "https://user:secret@"), []string{`12: spec.deploymentTarget.manifests.repo: not a repository URL: "…@" has no host; write https://host/org/repo, ssh://host/org/repo or host:org/repo`}},
		"twice":          {"which one?", replace("    environment: dev\n", "    environment: dev\n    environment: prod\n"), []string{"12: spec.deploymentTarget.environment stands there twice: remove one"}},
		"long":           {"everything has an end", replace("hello-world\n", strings.Repeat("x", 2000)+"\n"), []string{"6: spec.workload.name has 2000 bytes: at most 1024 are allowed"}},
		"control":        {"a name is one line", replace("name: hello-world\n", `name: "a\nb"`+"\n"), []string{"6: spec.workload.name holds a character that cannot be printed: remove it"}},
		"version":        {"another format", replace("v1alpha1", "v1beta1"), []string{`1: a DeploymentDescriptor of apiVersion "hub.kalypso.io/v1beta1" is not known: write hub.kalypso.io/v1alpha1`}},
		"not YAML":       {"the rest of the file counts", "hub.kalypso.io: [\n---\n" + good, []string{"1: not YAML: did not find expected node content"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Read("a.yaml", []byte(tc.text)).Problems {
				got = append(got, fmt.Sprintf("%d: %s", p.Line, p.Reason))
				if strings.Contains(p.Error(), "secret") || !strings.HasPrefix(p.Error(), "a.yaml:") {
					t.Errorf("%s: %s", tc.reason, p.Error())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Whatever somebody writes into a file, reading it ends, and a claim is whole.
func FuzzRead(f *testing.F) {
	f.Add(good)
	f.Add(good + "---\n" + strings.Replace(good, "spec:", "spec: &a\n  x: *a", 1))
	f.Add("apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: {name: x}\nspec: {deploymentTargets: [{name: a, environment: b, manifests: {repo: h.x/y}}]}\n")
	f.Add("kalypso.io: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		found := Read("a.yaml", []byte(text))
		for _, c := range found.Claims {
			if c.Endpoint.Repo == "" || c.Target.DeploymentTarget == "" || c.Target.Environment == "" {
				t.Errorf("half a claim: %+v", c)
			}
			if c.Version != nil && (c.Version.Version == "" || c.Target.Workspace == "") {
				t.Errorf("half a version: %+v", c)
			}
		}
		for _, p := range found.Problems {
			if p.Reason == "" || p.Line < 0 || strings.ContainsAny(p.Error(), "\x00\x1b") {
				t.Errorf("a bad complaint: %q", p.Error())
			}
		}
		if _, problems := ReadPushed([]byte(text)); len(problems) == 0 && len(found.Claims) == 0 {
			t.Error("nothing was found, and nothing complained of")
		}
	})
}

func TestMayHold(t *testing.T) {
	for name, want := range map[string]bool{"a.yaml": true, "a/b.YML": true, "c.json": true, "a.yaml.txt": false, "yaml": false, "": false} {
		if got := MayHold(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

package flux

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

func TestReadSource(t *testing.T) {
	for name, c := range map[string]struct{ object, repository string }{
		"gitrepository":        {object: "samples/gitrepository-repo"},
		"gitrepository-broken": {object: "samples/gitrepository-repo-broken"},
		"ocirepository":        {object: "made/ocirepository"},
		"ocirepository-chart":  {object: "made/ocirepository-chart"},
		"bucket":               {object: "made/bucket"},
		"helmrepository":       {object: "made/helmrepository"},
		"helmchart":            {object: "made/helmchart"},
		"helmchart-joined":     {object: "made/helmchart", repository: "made/helmrepository"},
		"externalartifact":     {object: "made/externalartifact"},
	} {
		t.Run(name, func(t *testing.T) { golden(t, "source-"+name, loadSource(t, c.object, c.repository)) })
	}
}

func TestGitRef(t *testing.T) {
	const commit = "508a11a06f010dd22052dcca9f4ed6fe3664c747"
	all := map[string]any{"branch": "b", "tag": "t", "semver": ">=1.0.0", "name": "refs/pull/4/head", "commit": commit}
	without := func(names ...string) map[string]any {
		m := map[string]any{}
		for k, v := range all {
			m[k] = v
		}
		for _, n := range names {
			delete(m, n)
		}
		return m
	}
	for name, c := range map[string]struct {
		reason string
		ref    any
		want   string
	}{
		"commit": {reason: "a commit is before all else", ref: all, want: commit},
		"name":   {reason: "then a full ref", ref: without("commit"), want: "refs/pull/4/head"},
		"semver": {reason: "then a range of tags", ref: without("commit", "name"), want: "semver:>=1.0.0"},
		"tag":    {reason: "then a tag", ref: without("commit", "name", "semver"), want: "refs/tags/t"},
		"branch": {reason: "then a branch", ref: without("commit", "name", "semver", "tag"), want: "b"},
		"empty":  {reason: "Flux checks out master, not the repository's default branch", ref: map[string]any{}, want: "master"},
		"none":   {reason: "so it does without a ref", ref: nil, want: "master"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, "samples/gitrepository-repo")
			set(obj, c.ref, "spec", "ref")
			s, err := ReadSource(obj)
			if err != nil {
				t.Fatal(err)
			}
			if s.Endpoint.Ref != c.want {
				t.Errorf("ref = %q, want %q: %s", s.Endpoint.Ref, c.want, c.reason)
			}
		})
	}
}

func TestOCIRef(t *testing.T) {
	for name, c := range map[string]struct {
		ref  any
		want string
	}{
		"digest": {ref: map[string]any{"digest": "sha256:ab", "semver": "1.x", "tag": "t"}, want: "sha256:ab"},
		"semver": {ref: map[string]any{"semver": "1.x", "tag": "t"}, want: "semver:1.x"},
		"tag":    {ref: map[string]any{"tag": "t"}, want: "t"},
		"none":   {want: "latest"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, "made/ocirepository")
			set(obj, c.ref, "spec", "ref")
			s, err := ReadSource(obj)
			if err != nil {
				t.Fatal(err)
			}
			if s.Endpoint.Ref != c.want {
				t.Errorf("ref = %q, want %q", s.Endpoint.Ref, c.want)
			}
		})
	}
}

func TestSourceError(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		edit   func(*unstructured.Unstructured)
		want   string
	}{
		"none": {reason: "it fetches", edit: func(*unstructured.Unstructured) {}},
		"fetch failed": {
			reason: "an old artifact is served, and Ready flickers while it is tried again",
			edit: func(o *unstructured.Unstructured) {
				says(o, [3]string{"Ready", "Unknown", "Progressing"}, [3]string{"FetchFailed", "True", "GitOperationFailed"})
			},
			want: "GitOperationFailed by hand",
		},
		"not stored": {
			reason: "the artifact could not be stored",
			edit: func(o *unstructured.Unstructured) {
				says(o, [3]string{"StorageOperationFailed", "True", "ArchiveOperationFailed"})
			},
			want: "ArchiveOperationFailed by hand",
		},
		"not verified": {
			reason: "a commit that is not signed is not served",
			edit:   func(o *unstructured.Unstructured) { says(o, [3]string{"SourceVerified", "False", "InvalidSignature"}) },
			want:   "InvalidSignature by hand",
		},
		"stalled": {
			reason: "it will not be tried again",
			edit:   func(o *unstructured.Unstructured) { says(o, [3]string{"Stalled", "True", "URLInvalid"}) },
			want:   "URLInvalid by hand",
		},
		"not ready":   {reason: "whatever the step", edit: ready("False", "Other"), want: "Other by hand"},
		"progressing": {reason: "it is at work", edit: ready("Unknown", "Progressing")},
		"suspended": {
			reason: "newer commits do not come either",
			edit:   func(o *unstructured.Unstructured) { set(o, true, "spec", "suspend") },
			want:   "GitRepository/flux-system/repo is suspended",
		},
		"unreadable": {
			reason: "nothing of it is believed",
			edit:   func(o *unstructured.Unstructured) { set(o, "main", "spec", "ref") },
			want:   "GitRepository/flux-system/repo cannot be read: spec.ref is a text, not an object",
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, "samples/gitrepository-repo")
			c.edit(obj)
			s, err := ReadSource(obj)
			if err != nil {
				t.Fatal(err)
			}
			if s.Error != c.want {
				t.Errorf("error = %q, want %q: %s", s.Error, c.want, c.reason)
			}
			r, err := Kustomization(load(t, "samples/kustomization-good"), s)
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != schema.StatusSuccess || r.SourceError != c.want {
				t.Errorf("the Kustomization says %s with source error %q; it keeps its own status", r.Status, r.SourceError)
			}
		})
	}
}

// A chart's own trouble is nearer than its repository's.
func TestChartError(t *testing.T) {
	broken := func(name string) Source {
		obj := load(t, name)
		says(obj, [3]string{"Ready", "False", "Of" + obj.GetKind()})
		s, err := ReadSource(obj)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if got := broken("made/helmchart").In(broken("made/helmrepository")).Error; got != "OfHelmChart by hand" {
		t.Errorf("error = %q, want the chart's", got)
	}
	if got := loadSource(t, "made/helmchart", "").In(broken("made/helmrepository")).Error; got != "OfHelmRepository by hand" {
		t.Errorf("error = %q, want the repository's", got)
	}
}

// A chart in Git must not make its HelmRelease a subscriber of the repository:
// its revisions are chart versions, and no commit would ever be reached.
func TestChartInGitIsHelm(t *testing.T) {
	obj := load(t, "made/helmchart")
	set(obj, "./charts/podinfo", "spec", "chart")
	chart, err := ReadSource(obj)
	if err != nil {
		t.Fatal(err)
	}
	got := chart.In(loadSource(t, "samples/gitrepository-repo", "")).Endpoint
	want := schema.Source{Type: schema.SourceHelm, URL: "http://127.0.0.1:18080/repo.git", Ref: "6.x", Path: "./charts/podinfo"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("endpoint (-want +got):\n%s", diff)
	}
}

// A source object that vanished leaves its last known endpoint, and no revision.
func TestSourceGone(t *testing.T) {
	r, err := Kustomization(load(t, "samples/kustomization-nopath"), loadSource(t, "samples/gitrepository-repo", "").Gone())
	if err != nil {
		t.Fatal(err)
	}
	want := []schema.Source{{Type: schema.SourceGit, URL: "http://127.0.0.1:18080/repo.git", Ref: "main", Path: "./does-not-exist"}}
	if diff := cmp.Diff(want, r.Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if r.SourceRevision != "" || r.Attempted != nil || r.SourceError != "GitRepository/flux-system/repo is gone" {
		t.Errorf("revision %q, attempted %v, error %q", r.SourceRevision, r.Attempted, r.SourceError)
	}
}

func TestReadSourceRefuses(t *testing.T) {
	for name, obj := range map[string]*unstructured.Unstructured{
		"nil":          nil,
		"empty":        {},
		"another kind": load(t, "samples/kustomization-good"),
	} {
		if _, err := ReadSource(obj); !errors.Is(err, object.ErrNotNamed) {
			t.Errorf("%s: error = %v, want ErrNotNamed", name, err)
		}
	}
}

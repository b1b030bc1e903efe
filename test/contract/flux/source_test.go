package contract

import (
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landfall-hub/landfall/agent/flux"
	"github.com/landfall-hub/landfall/schema"
)

func named() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "sources", Name: "x", Generation: 1}
}

// artifact is what every source serves, with the origin where `flux push` puts it.
func artifact() *meta.Artifact {
	return &meta.Artifact{Revision: "main@sha1:artifact", Metadata: map[string]string{"org.opencontainers.image.revision": "main@sha1:origin"}}
}

func TestSourceFields(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		typed any
		want  schema.Source
	}{
		"GitRepository": {
			kind: sourcev1.GitRepositoryKind,
			typed: &sourcev1.GitRepository{
				ObjectMeta: named(),
				Spec:       sourcev1.GitRepositorySpec{URL: "https://git.example.com/x", Reference: &sourcev1.GitRepositoryRef{Branch: "b"}},
				Status:     sourcev1.GitRepositoryStatus{Artifact: artifact()},
			},
			want: schema.Source{Type: schema.SourceGit, URL: "https://git.example.com/x", Ref: "b"},
		},
		"OCIRepository": {
			kind: sourcev1.OCIRepositoryKind,
			typed: &sourcev1.OCIRepository{
				ObjectMeta: named(),
				Spec:       sourcev1.OCIRepositorySpec{URL: "oci://ghcr.io/x", Reference: &sourcev1.OCIRepositoryRef{Tag: "t"}},
				Status:     sourcev1.OCIRepositoryStatus{Artifact: artifact()},
			},
			want: schema.Source{Type: schema.SourceOCI, URL: "oci://ghcr.io/x", Ref: "t"},
		},
		"Bucket": {
			kind: sourcev1.BucketKind,
			typed: &sourcev1.Bucket{
				ObjectMeta: named(), Spec: sourcev1.BucketSpec{Endpoint: "minio:9000", BucketName: "b"},
				Status: sourcev1.BucketStatus{Artifact: artifact()},
			},
			want: schema.Source{Type: schema.SourceBucket, URL: "minio:9000/b"},
		},
		"HelmRepository": {
			kind: sourcev1.HelmRepositoryKind,
			typed: &sourcev1.HelmRepository{
				ObjectMeta: named(), Spec: sourcev1.HelmRepositorySpec{URL: "https://charts.example.com"},
				Status: sourcev1.HelmRepositoryStatus{Artifact: artifact()},
			},
			want: schema.Source{Type: schema.SourceHelm, URL: "https://charts.example.com"},
		},
		"HelmChart": {
			kind: sourcev1.HelmChartKind,
			typed: &sourcev1.HelmChart{
				ObjectMeta: named(),
				Spec: sourcev1.HelmChartSpec{
					Chart: "podinfo", Version: "6.x", SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: "HelmRepository", Name: "charts"},
				},
				Status: sourcev1.HelmChartStatus{Artifact: artifact()},
			},
			want: schema.Source{Type: schema.SourceHelm, Path: "podinfo", Ref: "6.x"},
		},
		"ExternalArtifact": {
			kind:  sourcev1.ExternalArtifactKind,
			typed: &sourcev1.ExternalArtifact{ObjectMeta: named(), Status: sourcev1.ExternalArtifactStatus{Artifact: artifact()}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := flux.ReadSource(unstruct(t, c.kind, c.typed))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s.Endpoint); diff != "" {
				t.Errorf("endpoint (-want +got):\n%s", diff)
			}
			if s.Revision != "main@sha1:artifact" || s.Origin != "main@sha1:origin" || s.Error != "" {
				t.Errorf("status.artifact is read as %+v", s)
			}
			if c.kind == sourcev1.HelmChartKind && s.From != (schema.ObjectRef{Kind: "HelmRepository", Namespace: "sources", Name: "charts"}) {
				t.Errorf("spec.sourceRef is read as %s", s.From)
			}
		})
	}
}

func TestGitReferenceFields(t *testing.T) {
	for want, ref := range map[string]sourcev1.GitRepositoryRef{
		"c":           {Commit: "c", Name: "n", SemVer: "s", Tag: "t", Branch: "b"},
		"n":           {Name: "n", SemVer: "s", Tag: "t", Branch: "b"},
		"semver:s":    {SemVer: "s", Tag: "t", Branch: "b"},
		"refs/tags/t": {Tag: "t", Branch: "b"},
		"b":           {Branch: "b"},
		"master":      {},
	} {
		g := &sourcev1.GitRepository{ObjectMeta: named(), Spec: sourcev1.GitRepositorySpec{URL: "https://git.example.com/x", Reference: &ref}}
		s, err := flux.ReadSource(unstruct(t, sourcev1.GitRepositoryKind, g))
		if err != nil {
			t.Fatal(err)
		}
		if s.Endpoint.Ref != want {
			t.Errorf("%+v is read as %q, want %q", ref, s.Endpoint.Ref, want)
		}
	}
	for want, ref := range map[string]sourcev1.OCIRepositoryRef{
		"d": {Digest: "d", SemVer: "s", Tag: "t"}, "semver:s": {SemVer: "s", Tag: "t"}, "t": {Tag: "t"},
	} {
		o := &sourcev1.OCIRepository{ObjectMeta: named(), Spec: sourcev1.OCIRepositorySpec{URL: "oci://ghcr.io/x", Reference: &ref}}
		s, err := flux.ReadSource(unstruct(t, sourcev1.OCIRepositoryKind, o))
		if err != nil {
			t.Fatal(err)
		}
		if s.Endpoint.Ref != want {
			t.Errorf("%+v is read as %q, want %q", ref, s.Endpoint.Ref, want)
		}
	}
}

// The conditions that keep a source from fetching are the ones that Flux writes.
func TestSourceConditions(t *testing.T) {
	for name, c := range map[string]metav1.Condition{
		"stalled":      {Type: meta.StalledCondition, Status: metav1.ConditionTrue},
		"fetch":        {Type: sourcev1.FetchFailedCondition, Status: metav1.ConditionTrue},
		"storage":      {Type: sourcev1.StorageOperationFailedCondition, Status: metav1.ConditionTrue},
		"include":      {Type: sourcev1.IncludeUnavailableCondition, Status: metav1.ConditionTrue},
		"build":        {Type: sourcev1.BuildFailedCondition, Status: metav1.ConditionTrue},
		"verification": {Type: sourcev1.SourceVerifiedCondition, Status: metav1.ConditionFalse},
		"not ready":    {Type: meta.ReadyCondition, Status: metav1.ConditionFalse},
	} {
		c.Message = "no"
		g := &sourcev1.GitRepository{ObjectMeta: named(), Spec: sourcev1.GitRepositorySpec{URL: "https://git.example.com/x"}}
		g.Status.Artifact, g.Status.Conditions = artifact(), []metav1.Condition{c}
		s, err := flux.ReadSource(unstruct(t, sourcev1.GitRepositoryKind, g))
		if err != nil {
			t.Fatal(err)
		}
		if s.Error != "no" || s.Revision == "" {
			t.Errorf("%s: error %q at %q", name, s.Error, s.Revision)
		}
	}
	g := &sourcev1.GitRepository{ObjectMeta: named(), Spec: sourcev1.GitRepositorySpec{URL: "https://git.example.com/x", Suspend: true}}
	if s, err := flux.ReadSource(unstruct(t, sourcev1.GitRepositoryKind, g)); err != nil || s.Error == "" {
		t.Errorf("spec.suspend is not seen: %+v, %v", s, err)
	}
}

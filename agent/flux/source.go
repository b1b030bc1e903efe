package flux

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

// The kinds of sources.
const (
	KindGitRepository    = "GitRepository"
	KindOCIRepository    = "OCIRepository"
	KindBucket           = "Bucket"
	KindHelmRepository   = "HelmRepository"
	KindHelmChart        = "HelmChart"
	KindExternalArtifact = "ExternalArtifact"
)

// originRevision is the artifact metadata in which `flux push artifact` keeps
// the Git revision that an OCI artifact was made of.
const originRevision = "org.opencontainers.image.revision"

// defaultBranch is what Flux checks out when a GitRepository names no ref.
const defaultBranch = "master"

// Source is what a source object says. The zero value is a source that was
// never seen.
type Source struct {
	Ref schema.ObjectRef
	// Endpoint is where it fetches from. Its type is empty for an
	// ExternalArtifact, which has no endpoint.
	Endpoint schema.Source
	// From names the repository that a HelmChart is taken from: see In.
	From schema.ObjectRef
	// Revision is the revision of the artifact that it serves, or empty.
	Revision string
	// Origin is the Git revision behind that artifact, where it is known.
	Origin string
	// Error says why it does not fetch; an older artifact may still be served.
	Error string
}

// ReadSource reads a GitRepository, OCIRepository, Bucket, HelmRepository,
// HelmChart or ExternalArtifact of any version. The error wraps
// object.ErrNotNamed; a member of the wrong type is said in Source.Error, and
// nothing of such an object is believed.
func ReadSource(obj *unstructured.Unstructured) (Source, error) {
	if obj == nil {
		return Source{}, fmt.Errorf("reading a source: %w", object.ErrNotNamed)
	}
	ref, err := object.Ref(obj, sourceKind(obj.GetKind()))
	if err != nil {
		return Source{}, fmt.Errorf("reading a source: %w", err)
	}
	f := object.Read(obj)
	spec, status := f.Object("spec"), f.Object("status")
	artifact := status.Object("artifact")
	s := Source{
		Ref:      ref,
		Revision: artifact.Text("revision"),
		Origin:   artifact.Object("metadata").Text(originRevision),
		Error:    fetchError(ref, spec, status),
	}
	switch ref.Kind {
	case KindGitRepository:
		s.Endpoint = schema.Source{Type: schema.SourceGit, URL: spec.Text("url"), Ref: gitRef(spec.Object("ref"))}
	case KindOCIRepository:
		s.Endpoint = schema.Source{Type: schema.SourceOCI, URL: spec.Text("url"), Ref: ociRef(spec.Object("ref"))}
	case KindBucket:
		s.Endpoint = schema.Source{Type: schema.SourceBucket, URL: spec.Text("endpoint") + "/" + spec.Text("bucketName")}
	case KindHelmRepository:
		s.Endpoint = schema.Source{Type: schema.SourceHelm, URL: spec.Text("url")}
	case KindHelmChart:
		s.Endpoint = schema.Source{Type: schema.SourceHelm, Ref: spec.Text("version"), Path: chartPath(spec.Text("chart"))}
		from := spec.Object("sourceRef")
		s.From = schema.ObjectRef{Kind: from.Text("kind"), Namespace: ref.Namespace, Name: from.Text("name")}
	}
	s.Endpoint.URL = schema.StripUserInfo(s.Endpoint.URL)
	if err := f.Err(); err != nil {
		return Source{Ref: ref, Error: object.Message(fmt.Sprintf("%s cannot be read: %v", ref, err))}, nil
	}
	return s, nil
}

// sourceKind returns the kind if it is one of a source's.
func sourceKind(kind string) string {
	switch kind {
	case KindGitRepository, KindOCIRepository, KindBucket, KindHelmRepository, KindHelmChart, KindExternalArtifact:
		return kind
	}
	return "source"
}

// In returns a HelmChart's source with the URL of the repository that its From
// names; the chart's own trouble is said before the repository's. Every other
// source is returned as it is. A chart from a Git repository or a bucket counts
// as Helm too: its revisions are chart versions, never commits.
func (s Source) In(repository Source) Source {
	if s.Ref.Kind != KindHelmChart {
		return s
	}
	s.Endpoint.URL = repository.Endpoint.URL
	s.Error = cmp.Or(s.Error, repository.Error)
	return s
}

// Gone returns what is left of a source whose object vanished: its last known
// endpoint, and no revision to expect anything of.
func (s Source) Gone() Source {
	s.Revision, s.Origin = "", ""
	s.Error = s.Ref.String() + " is gone"
	return s
}

// endpoints returns the reconciler's list of sources: one, or none where the
// endpoint is not known or cannot be sent. The folder is the reconciler's own.
func (s Source) endpoints(folder string) []schema.Source {
	e := s.Endpoint
	if folder != "" {
		e.Path = folder
	}
	if e.Type == "" || !object.Reportable(e) {
		return []schema.Source{}
	}
	return []schema.Source{e}
}

// fetchError says why a source brings nothing new. The conditions of single
// steps come first: they stay while Ready flickers.
func fetchError(ref schema.ObjectRef, spec, status object.Fields) string {
	if spec.Bool("suspend", false) {
		return ref.String() + " is suspended"
	}
	all := conditions(status)
	for _, name := range []string{"Stalled", "FetchFailed", "StorageOperationFailed", "IncludeUnavailable", "BuildFailed"} {
		if c := all[name]; c.isTrue() {
			return said(c)
		}
	}
	for _, name := range []string{"SourceVerified", "Ready"} {
		if c := all[name]; c.isFalse() {
			return said(c)
		}
	}
	return ""
}

func said(c condition) string { return object.Message(cmp.Or(c.message, c.reason, "no message")) }

// gitRef returns the ref that a GitRepository follows; the first one given of
// commit, name, semver, tag and branch counts, as in Flux.
func gitRef(ref object.Fields) string {
	commit, name, semver, tag, branch := ref.Text("commit"), ref.Text("name"), ref.Text("semver"), ref.Text("tag"), ref.Text("branch")
	switch {
	case commit != "":
		return commit
	case name != "":
		return name
	case semver != "":
		return "semver:" + semver
	case tag != "":
		return "refs/tags/" + tag
	}
	return cmp.Or(branch, defaultBranch)
}

// ociRef returns the digest, version range or tag of an OCIRepository, the
// first one given.
func ociRef(ref object.Fields) string {
	digest, semver, tag := ref.Text("digest"), ref.Text("semver"), ref.Text("tag")
	switch {
	case digest != "":
		return digest
	case semver != "":
		return "semver:" + semver
	}
	return cmp.Or(tag, "latest")
}

// chartPath is a chart's name, or its folder where it lies in a repository.
func chartPath(chart string) string {
	if strings.HasPrefix(chart, ".") || strings.HasPrefix(chart, "/") {
		return folder(chart)
	}
	return chart
}

// folder keeps a path as it was written, except that one which climbs out of
// the repository is held inside it, as Flux does.
func folder(p string) string {
	if _, err := schema.CleanPath(p); err != nil {
		return strings.TrimPrefix(path.Clean("/"+p), "/")
	}
	return p
}

package watch

// Kind is a kind worth watching, in whatever version the cluster serves.
type Kind struct {
	Group    string // kustomize.toolkit.fluxcd.io; the core group is not supported
	Resource string // kustomizations
	Kind     string // Kustomization; keys carry it, so it is unique among the kinds watched
}

// DefaultKinds returns what Flux and Argo CD work with: reconcilers, and the
// sources that they read from.
func DefaultKinds() []Kind {
	const source = "source.toolkit.fluxcd.io"
	return []Kind{
		{"kustomize.toolkit.fluxcd.io", "kustomizations", "Kustomization"},
		{"helm.toolkit.fluxcd.io", "helmreleases", "HelmRelease"},
		{source, "gitrepositories", "GitRepository"},
		{source, "ocirepositories", "OCIRepository"},
		{source, "helmcharts", "HelmChart"},
		{source, "helmrepositories", "HelmRepository"},
		{source, "buckets", "Bucket"},
		{source, "externalartifacts", "ExternalArtifact"},
		{"argoproj.io", "applications", "Application"},
	}
}

// State is what is known of a kind.
type State string

const (
	// Absent is a kind that the cluster does not serve, and that was never
	// listed.
	Absent State = "absent"
	// Syncing is a kind that was not listed completely yet.
	Syncing State = "syncing"
	// Listed is a kind of which the objects known are those that the API server
	// has.
	Listed State = "listed"
	// Unlisted is a kind that cannot be listed now: forbidden, no longer served
	// after it was listed, or out of reach for longer than Options.Stale. The
	// objects known are those seen last.
	Unlisted State = "unlisted"
)

// states are all of them, as metrics show them.
var states = []State{Absent, Syncing, Listed, Unlisted}

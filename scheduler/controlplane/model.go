package controlplane

// Model is a control plane as one environment sees it. Every slice is sorted by
// name; of several documents of one kind and name, the first by place is here
// and the others are problems.
type Model struct {
	// Environment is the name of the environment that the model is for.
	Environment   string
	Environments  []Environment
	Registrations []Registration
	// Workloads are those that the registrations point to.
	Workloads    []Workload
	ClusterTypes []ClusterType
	Policies     []Policy
	Templates    []Template
	// ConfigMaps are those labelled platform-config: "true".
	ConfigMaps []ConfigMap
	Schemas    []ConfigSchema
	// BaseRepo is nil where the environment names none; of several, the first
	// by name counts and the others are problems. The same holds for GitOpsRepos,
	// but there all of them are kept.
	BaseRepo    *BaseRepo
	GitOpsRepos []GitOpsRepo
	// Problems are sorted.
	Problems []Problem
}

// Location is a folder of a repository, as it was written.
type Location struct {
	Repo, Branch string
	// Path is a folder below the repository's root; it never climbs out.
	Path string
}

// Environment is a place in the promotion chain, with the branch that holds its
// part of the control plane.
type Environment struct {
	Place
	Name         string
	Labels       map[string]string
	ControlPlane Location
}

// Registration (kind WorkloadRegistration) says where the Workload files of a
// team lie.
type Registration struct {
	Place
	Name      string
	Labels    map[string]string
	Workload  Location
	Workspace string
}

// Workload is a deployable, from its team's own repository.
type Workload struct {
	Place
	Name   string
	Labels map[string]string
	// Registration and Workspace are those of the registration by which the
	// workload was found; "" where it was read without one.
	Registration, Workspace string
	// ConfigSchemas hold for every target. Each is a JSON Schema (JSON or YAML
	// text) or the name of a ConfigSchema of the control plane.
	ConfigSchemas []string
	// Targets are sorted by name and environment.
	Targets []Target
}

// Target is a deployment target as its workload writes it; match.Targets gives
// it its whole name and its inherited labels.
type Target struct {
	Place
	Name        string
	Labels      map[string]string
	Environment string
	// Manifests is the manifests endpoint: repo, branch, path, and whatever
	// other keys its template wants. Values are string, bool, int64, uint64,
	// float64, nil, []any or map[string]any.
	Manifests     map[string]any
	ConfigSchemas []string
	// Broken says what is wrong with the target; "" when nothing is.
	Broken string
}

// ClusterType is a group of like clusters. Reconciler, NamespaceService and
// ConfigType are names of Templates; ConfigType may be empty.
type ClusterType struct {
	Place
	Name                                     string
	Labels                                   map[string]string
	Reconciler, NamespaceService, ConfigType string
	// Broken says what is wrong with the cluster type; "" when nothing is.
	Broken string
}

// Policy (kind SchedulingPolicy) assigns the deployment targets that it selects
// to the cluster types that it selects.
type Policy struct {
	Place
	Name   string
	Labels map[string]string
	// Workspace restricts the deployment targets to those of one workspace; ""
	// takes all.
	Workspace string
	// Targets selects deployment targets, ClusterTypes cluster types, by their
	// labels.
	Targets, ClusterTypes Selector
}

// TemplateType is what the files of a template are for.
type TemplateType string

// The types of templates.
const (
	TemplateReconciler TemplateType = "reconciler"
	TemplateNamespace  TemplateType = "namespace"
	TemplateConfig     TemplateType = "config"
)

// ContentType is what a template writes.
type ContentType string

// The content types of templates.
const (
	ContentYAML ContentType = "yaml"
	ContentEnv  ContentType = "env"
	ContentJSON ContentType = "json"
)

// Template is a set of Go text/templates.
type Template struct {
	Place
	Name        string
	Labels      map[string]string
	Type        TemplateType
	ContentType ContentType
	// Manifests are the templates, in the order of the document.
	Manifests []Manifest
	// Broken says what is wrong with the template; "" when nothing is.
	Broken string
}

// Manifest is one template of a Template.
type Manifest struct {
	// Place is where its text begins, so that line n of the text is line
	// Line+n-1 of the file for block scalars (| and |-).
	Place
	Text string
}

// ConfigMap is a container of configuration values. Its labels, other than
// platform-config and those of the tool that applied it, say where they apply.
type ConfigMap struct {
	Place
	Name   string
	Labels map[string]string
	// Merge is how its values meet those of earlier ConfigMaps.
	Merge Merge
	// Data are the values as text; Lines are the lines of their keys.
	Data  map[string]string
	Lines map[string]int
	// Broken says what is wrong with the ConfigMap; "" when nothing is. Nothing
	// may be composed where a broken one applies, neither from it nor without it.
	// An unreadable one has the labels that could be made out, which may be none
	// at all: it applies everywhere then.
	Broken string
}

// Merge is the strategy of annotation landfall.dev/merge.
type Merge string

// The strategies of merging.
const (
	// MergeDeep is the default: maps merge deeply, list items that are maps with
	// the same name merge, others are appended, a scalar replaces.
	MergeDeep Merge = "deep"
	// MergeReplace puts the value in the place of the earlier one, whole.
	MergeReplace Merge = "replace"
	// MergeAppend appends lists without looking for names; maps merge deeply, and
	// a scalar replaces.
	MergeAppend Merge = "append"
)

// ConfigSchema is a JSON Schema for the composed values wherever its labels
// apply, which they do by the rule of ConfigMap.
type ConfigSchema struct {
	Place
	Name   string
	Labels map[string]string
	// Schema is JSON or YAML text.
	Schema string
	// Broken says what is wrong with the document; "" when nothing is. Labels are
	// as in ConfigMap.Broken.
	Broken string
}

// BaseRepo pins the promoted commit of the common content.
type BaseRepo struct {
	Place
	Name   string
	Labels map[string]string
	Location
	// Commit is a full or abbreviated commit id; "" follows the branch.
	Commit string
}

// GitOpsRepo is where an environment's plan is published.
type GitOpsRepo struct {
	Place
	Name   string
	Labels map[string]string
	Location
}

// Package descriptor reads the documents that give commits their names:
// DeploymentDescriptors, which say which workload version a deployment target
// carries, and the scheduler's Workloads, WorkloadRegistrations, Environments and
// GitOpsRepos, which name targets without a version. A broken document is a
// problem with its file, line and reason, and costs the others nothing.
package descriptor

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/schema"
)

// APIVersion and Kind are a DeploymentDescriptor's.
const (
	APIVersion = "hub.kalypso.io/v1alpha1"
	Kind       = "DeploymentDescriptor"
)

// MostBytes is how long a file with documents may be.
const MostBytes = 1 << 20

// Claim is what a document says of one deployment target.
type Claim struct {
	// Line is where the document begins, in its file.
	Line   int
	Target schema.Target
	Labels map[string]string
	// Endpoint is canonical, as far as the document alone tells.
	Endpoint schema.Endpoint
	// URL is the repository as it was written, without user info.
	URL string
	// Version is nil where the document only names the target.
	Version *names.Version
}

// Registration says which workspace the workloads of a place belong to.
type Registration struct {
	Endpoint  schema.Endpoint
	Workspace string
}

// Environment says which branch of a control plane an environment has.
type Environment struct {
	Endpoint schema.Endpoint
	Name     string
}

// Found is what a file says.
type Found struct {
	Claims        []Claim
	Registrations []Registration
	Environments  []Environment
	// Platforms are the GitOps repositories that the scheduler writes to for the
	// environment whose branch of the control plane holds the file.
	Platforms []schema.Endpoint
	Problems  []Problem
}

// IsEmpty reports whether a file says nothing at all.
func (f *Found) IsEmpty() bool {
	return len(f.Claims)+len(f.Registrations)+len(f.Environments)+len(f.Platforms)+len(f.Problems) == 0
}

// Problem is a complaint about a place in a file.
type Problem struct {
	File string
	// Line counts from 1; 0 is the file as a whole.
	Line int
	// Reason says what is wrong and the remedy.
	Reason string
}

// Error returns the place and the reason. A file's name is quoted where it would
// not stay on one line.
func (p Problem) Error() string {
	file := p.File
	if quoted := fmt.Sprintf("%q", file); quoted != `"`+file+`"` {
		file = quoted
	}
	if p.Line == 0 {
		return file + ": " + p.Reason
	}
	return fmt.Sprintf("%s:%d: %s", file, p.Line, p.Reason)
}

// Compare orders problems by file, line and reason.
func (p Problem) Compare(q Problem) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Reason, q.Reason))
}

// MayHold reports whether a file of that name may hold documents.
func MayHold(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// group is in the API version of every document that is read here, and in few
// other files: those are not parsed.
var group = []byte("kalypso.io")

// Mentions reports whether a text may hold documents that are read here.
func Mentions(text []byte) bool { return bytes.Contains(text, group) }

// Read reads a file.
func Read(file string, text []byte) Found {
	var f Found
	if !Mentions(text) {
		return f
	}
	docs, problems := controlplane.Documents(controlplane.File{Path: file, Text: text})
	for _, p := range problems {
		f.Problems = append(f.Problems, problemOf(p))
	}
	for _, d := range docs {
		f.add(d)
	}
	return f
}

// add reads one document of whatever kind.
func (f *Found) add(d controlplane.Document) {
	switch {
	case d.Kind == Kind:
		claim, problems := Parse(d)
		f.Problems = append(f.Problems, problems...)
		if len(problems) == 0 {
			f.Claims = append(f.Claims, claim)
		}
	case d.APIVersion != controlplane.APIVersion:
	case d.Kind == "Workload":
		w, err := controlplane.ParseWorkload(d)
		f.note(err)
		f.workload(w)
	case d.Kind == "WorkloadRegistration":
		r, err := controlplane.ParseRegistration(d)
		if f.note(err); err == nil {
			f.place(d, r.Workload, func(e schema.Endpoint) { f.Registrations = append(f.Registrations, Registration{e, r.Workspace}) })
		}
	case d.Kind == "Environment":
		e, err := controlplane.ParseEnvironmentDocument(d)
		if f.note(err); err == nil {
			f.place(d, e.ControlPlane, func(at schema.Endpoint) { f.Environments = append(f.Environments, Environment{at, e.Name}) })
		}
	case d.Kind == "GitOpsRepo":
		f.platform(d)
	}
}

// note keeps what a document is complained of.
func (f *Found) note(err error) {
	if err == nil {
		return
	}
	all := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		all = several.Unwrap()
	}
	for _, err := range all {
		if p, ok := err.(controlplane.Problem); ok { //nolint:errorlint // see above
			f.Problems = append(f.Problems, problemOf(p))
		}
	}
}

func problemOf(p controlplane.Problem) Problem {
	reason := p.Message
	switch {
	case p.Kind != "" && p.Name != "":
		reason = fmt.Sprintf("%s %q: %s", p.Kind, p.Name, p.Message)
	case p.Kind != "":
		reason = p.Kind + ": " + p.Message
	}
	return Problem{p.File, p.Line, reason}
}

// place makes a location canonical; one that cannot be is a problem.
func (f *Found) place(d controlplane.Document, l controlplane.Location, use func(schema.Endpoint)) {
	e, err := schema.NewEndpoint(l.Repo, l.Branch, l.Path)
	if err != nil {
		f.Problems = append(f.Problems, Problem{d.File, d.Line, fmt.Sprintf("%s %q: %v", d.Kind, d.Name, err)})
		return
	}
	use(e)
}

// workload takes the targets that a workload names. Manifests that are in no Git
// repository have no endpoint to be known by.
func (f *Found) workload(w controlplane.Workload) {
	for _, t := range w.Targets {
		text := func(key string) string {
			s, _ := t.Manifests[key].(string)
			return s
		}
		e, err := schema.NewEndpoint(text("repo"), text("branch"), text("path"))
		if err != nil || t.Broken != "" {
			continue
		}
		f.Claims = append(f.Claims, Claim{
			Line: t.Line, Labels: t.Labels, Endpoint: e, URL: schema.StripUserInfo(text("repo")),
			Target: schema.Target{Environment: t.Environment, Workspace: w.Workspace, Workload: w.Name, DeploymentTarget: t.Name},
		})
	}
}

// platform takes the place that a GitOpsRepo names; whether it is as it should be
// is the scheduler's business.
func (f *Found) platform(d controlplane.Document) {
	var text struct {
		Spec struct {
			Repo, Branch, Path string
		}
	}
	if yaml.Unmarshal(d.Text, &text) != nil {
		return
	}
	if e, err := schema.NewEndpoint(text.Spec.Repo, text.Spec.Branch, text.Spec.Path); err == nil {
		f.Platforms = append(f.Platforms, e)
	}
}

// ReadPushed reads what was sent instead of being read from Git: descriptors and
// nothing else, at least one.
func ReadPushed(text []byte) ([]Claim, []Problem) {
	const body = "body"
	docs, broken := controlplane.Documents(controlplane.File{Path: body, Text: text})
	var claims []Claim
	var problems []Problem
	for _, p := range broken {
		problems = append(problems, problemOf(p))
	}
	for _, d := range docs {
		if d.Kind != Kind {
			problems = append(problems, Problem{body, d.Line, fmt.Sprintf("a document of kind %q: only kind %s of %s is taken here", shown(d.Kind), Kind, APIVersion)})
			continue
		}
		claim, wrong := Parse(d)
		claims, problems = append(claims, claim), append(problems, wrong...)
	}
	if len(docs) == 0 && len(problems) == 0 {
		problems = append(problems, Problem{body, 0, "it holds no document: send a " + Kind})
	}
	if len(problems) > 0 {
		slices.SortStableFunc(problems, Problem.Compare)
		return nil, problems
	}
	return claims, nil
}

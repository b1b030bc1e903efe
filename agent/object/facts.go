package object

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/schema"
)

// Reasons that the readers themselves give.
const (
	// ReasonUnreadable goes with status unknown: a member has the wrong type.
	ReasonUnreadable = "Unreadable"
	// ReasonUnreportable goes with status unknown: a member cannot be sent.
	ReasonUnreportable = "Unreportable"
	// ReasonChildNotSeen goes with in_progress: see Await.
	ReasonChildNotSeen = "ChildNotSeen"
)

// ErrNotNamed means that an object lacks the kind, namespace or name that a
// reconciler is known by, or is of another kind than its reader reads.
var ErrNotNamed = errors.New("not a reconciler's object")

// Ref returns an object's identity. The error wraps ErrNotNamed.
func Ref(obj *unstructured.Unstructured, kind string) (schema.ObjectRef, error) {
	if obj == nil || obj.Object == nil {
		return schema.ObjectRef{}, fmt.Errorf("%w: it is empty", ErrNotNamed)
	}
	f := Read(obj)
	m := f.Object("metadata")
	r := schema.ObjectRef{Kind: f.Text("kind"), Namespace: m.Text("namespace"), Name: m.Text("name")}
	if err := f.Err(); err != nil {
		return schema.ObjectRef{}, fmt.Errorf("%w: %w", ErrNotNamed, err)
	}
	if r.Kind != kind {
		return schema.ObjectRef{}, fmt.Errorf("%w: its kind is %q, not %s", ErrNotNamed, r.Kind, kind)
	}
	if r.Namespace == "" || r.Name == "" {
		return schema.ObjectRef{}, fmt.Errorf("%w: the %s has no namespace or no name", ErrNotNamed, kind)
	}
	if err := check(schema.Reconciler{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Sources: []schema.Source{}, Status: schema.StatusUnknown}); err != nil {
		return schema.ObjectRef{}, fmt.Errorf("%w: %w", ErrNotNamed, err)
	}
	return r, nil
}

// Finish makes what a reader found fit to be sent. Messages are cut and lose
// user info; an unreadable object (unreadable is Fields.Err) has status
// unknown; facts that the hub would refuse, and with them the report of a whole
// cluster, are dropped and leave status unknown too.
func Finish(r schema.Reconciler, unreadable error) schema.Reconciler {
	if r.Sources == nil {
		r.Sources = []schema.Source{}
	}
	if r.Owner != nil && *r.Owner == r.Ref() {
		r.Owner = nil // the root of a cluster applies itself
	}
	if unreadable != nil {
		r.Status, r.Reason, r.Message = schema.StatusUnknown, ReasonUnreadable, unreadable.Error()
		r.Drifted, r.Since = false, time.Time{}
	}
	r.Message, r.SourceError = Message(r.Message), Message(r.SourceError)
	r.Attempted, r.Applied, r.Origin = revisions(r.Attempted), revisions(r.Applied), revisions(r.Origin)
	err := check(r)
	if err == nil {
		return r
	}
	return schema.Reconciler{
		Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Sources: []schema.Source{},
		Status: schema.StatusUnknown, Reason: ReasonUnreportable, Message: Message(err.Error()),
	}
}

// revisions returns nil for a list in which nothing is known.
func revisions(list []string) []string {
	for _, rev := range list {
		if rev != "" {
			return list
		}
	}
	return nil
}

// check says whether the hub would take the reconciler.
func check(r schema.Reconciler) error {
	report := schema.Report{
		Epoch: 1, Sequence: 1, Mode: schema.ModeDelta, ObservedAt: time.Unix(0, 0),
		Reconcilers: []schema.Reconciler{r},
	}
	return report.Validate()
}

// Reportable says whether a source can be sent: its URL is one of a repository,
// and nothing is too long.
func Reportable(s schema.Source) bool {
	return check(schema.Reconciler{Kind: "x", Namespace: "x", Name: "x", Status: schema.StatusUnknown, Sources: []schema.Source{s}}) == nil
}

package schema_test

import (
	"testing"

	"github.com/landfall-hub/landfall/schema"
)

func TestSeverity(t *testing.T) {
	order := []schema.Outcome{
		schema.OutcomeFailed, schema.OutcomeUnknown, schema.OutcomeUnknownLineage, schema.OutcomePending,
		schema.OutcomeInProgress, schema.OutcomeSuspended, schema.OutcomeCompliant,
	}
	for i, o := range order {
		if o.Severity() != i {
			t.Errorf("%s: want %d, got %d", o, i, o.Severity())
		}
	}
	if schema.Outcome("new").Severity() != schema.OutcomeUnknown.Severity() {
		t.Error("an outcome that nobody knows is unknown")
	}
}

func TestCounts(t *testing.T) {
	var c schema.Counts
	for i, o := range []schema.Outcome{
		schema.OutcomeCompliant, schema.OutcomeFailed, schema.OutcomeInProgress, schema.OutcomePending,
		schema.OutcomeSuspended, schema.OutcomeUnknown, schema.OutcomeUnknownLineage,
	} {
		for range i + 1 {
			c.Add(o)
		}
	}
	want := schema.Counts{Total: 28, Compliant: 1, Failed: 2, InProgress: 3, Pending: 4, Suspended: 5, Unknown: 6, UnknownLineage: 7}
	if c != want {
		t.Errorf("want %+v, got %+v", want, c)
	}
}

func TestStatusesAndRoles(t *testing.T) {
	for _, s := range schema.Statuses() {
		if !s.Valid() {
			t.Errorf("%s is valid", s)
		}
	}
	for _, r := range schema.Roles() {
		if !r.Valid() {
			t.Errorf("%s is valid", r)
		}
	}
	if schema.Status("").Valid() || schema.Status("Success").Valid() || schema.Role("root").Valid() {
		t.Error("what is not in the lists is not valid")
	}
}

func TestObjectRef(t *testing.T) {
	a := schema.ObjectRef{Kind: "Kustomization", Namespace: "b", Name: "c"}
	if a.String() != "Kustomization/b/c" || a.IsZero() || !(schema.ObjectRef{}).IsZero() {
		t.Errorf("got %s", a)
	}
	for _, larger := range []schema.ObjectRef{{Kind: "L"}, {Kind: "Kustomization", Namespace: "c"}, {Kind: "Kustomization", Namespace: "b", Name: "d"}} {
		if a.Compare(larger) >= 0 || larger.Compare(a) <= 0 || a.Compare(a) != 0 {
			t.Errorf("%s comes before %s", a, larger)
		}
	}
}

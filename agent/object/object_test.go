package object

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/schema"
)

func TestMessage(t *testing.T) {
	for name, c := range map[string]struct{ reason, in, want string }{
		"plain":          {"nothing to hide", " failed: x@y \n", "failed: x@y"},
		"password":       {"user and password", "clone 'https://u:p@h/x.git': no", "clone 'https://h/x.git': no"},
		"at sign":        {"a password with an at sign", "https://u:p@ss@h/x", "https://h/x"},
		"slash":          {"a password with a slash", "https://u:p/ss@h/x", "https://h/x"},
		"several":        {"every URL", "ssh://git@h/x and https://u@h/y", "ssh://h/x and https://h/y"},
		"digest":         {"an at sign behind the host is none of a user", "oci://h:5000/x@sha256:ab https://h/@scope/x", "oci://h:5000/x@sha256:ab https://h/@scope/x"},
		"six":            {"an IPv6 address", "https://[::1]:8443/a@b", "https://[::1]:8443/a@b"},
		"nothing behind": {"a scheme alone", "odd ://", "odd ://"},
		"not UTF-8":      {"bytes of another encoding", "a\xffb", "a\uFFFDb"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Message(c.in); got != c.want {
				t.Errorf("Message = %q, want %q: %s", got, c.want, c.reason)
			}
		})
	}
}

// A password is cut out before the text is cut off: half of one is one too many.
func TestMessageIsCut(t *testing.T) {
	in := strings.Repeat("a", schema.MaxMessage-12) + "https://user:password@host/" + strings.Repeat("€", 9)
	got := Message(in)
	if len(got) > schema.MaxMessage || !utf8.ValidString(got) || strings.Contains(got, "user") {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-20:])
	}
	if got := Message("a" + strings.Repeat("€", schema.MaxMessage)); len(got) != schema.MaxMessage || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
	}
	if got := Message("ab" + strings.Repeat("€", schema.MaxMessage)); len(got) != schema.MaxMessage-2 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
	}
}

func TestAwait(t *testing.T) {
	a, b := schema.ObjectRef{Kind: "Application", Namespace: "n", Name: "a"}, schema.ObjectRef{Kind: "Kustomization", Namespace: "n", Name: "b"}
	for name, c := range map[string]struct {
		reason string
		status schema.Status
		seen   []schema.ObjectRef
		want   schema.Status
		names  string
	}{
		"all seen":  {"success holds", schema.StatusSuccess, []schema.ObjectRef{a, b}, schema.StatusSuccess, ""},
		"one seen":  {"the other is named", schema.StatusSuccess, []schema.ObjectRef{a}, schema.StatusInProgress, "Kustomization/n/b"},
		"none seen": {"the first is named", schema.StatusSuccess, nil, schema.StatusInProgress, "Application/n/a"},
		"failure":   {"only a success waits", schema.StatusFailure, nil, schema.StatusFailure, ""},
		"suspended": {"only a success waits", schema.StatusSuspended, nil, schema.StatusSuspended, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Await(schema.Reconciler{Status: c.status}, []schema.ObjectRef{a, b}, func(r schema.ObjectRef) bool {
				for _, s := range c.seen {
					if s == r {
						return true
					}
				}
				return false
			})
			if got.Status != c.want || !strings.Contains(got.Message, c.names) || (c.names != "") != (got.Reason == ReasonChildNotSeen) {
				t.Errorf("%s, %s: %q; want %s naming %q: %s", got.Status, got.Reason, got.Message, c.want, c.names, c.reason)
			}
		})
	}
}

func TestChildren(t *testing.T) {
	self := schema.ObjectRef{Kind: "Kustomization", Namespace: "n", Name: "self"}
	a, b := schema.ObjectRef{Kind: "Application", Namespace: "n", Name: "a"}, schema.ObjectRef{Kind: "Application", Namespace: "n", Name: "b"}
	got := Children(self, []schema.ObjectRef{b, self, a, b, {Kind: "Application", Name: "nowhere"}})
	if diff := cmp.Diff([]schema.ObjectRef{a, b}, got); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
}

// What the hub would refuse must not take the report of a cluster with it.
func TestFinish(t *testing.T) {
	named := schema.Reconciler{Kind: "Kustomization", Namespace: "n", Name: "x", Status: schema.StatusSuccess}
	bad := named
	bad.Applied = []string{"\x00"}
	got := Finish(bad, nil)
	if got.Status != schema.StatusUnknown || got.Reason != ReasonUnreportable || got.Applied != nil || check(got) != nil {
		t.Errorf("%+v", got)
	}
	got = Finish(named, errors.New("spec is a text, not an object"))
	if got.Status != schema.StatusUnknown || got.Reason != ReasonUnreadable || check(got) != nil {
		t.Errorf("%+v", got)
	}
	self := named.Ref()
	named.Owner, named.Attempted = &self, []string{""}
	if got := Finish(named, nil); got.Owner != nil || got.Attempted != nil || got.Status != schema.StatusSuccess {
		t.Errorf("%+v", got)
	}
}

// The first complaint is kept, and it shows no value.
func TestFieldsComplain(t *testing.T) {
	f := Read(&unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"password": []any{"hunter2"}, "list": []any{map[string]any{"n": 1.5}}, "whole": 2.0},
	}})
	spec := f.Object("spec")
	if n := spec.Number("whole"); n != 2 || f.Err() != nil {
		t.Errorf("a whole number is %d, %v", n, f.Err())
	}
	spec.List("list")[0].Number("n")
	spec.Text("password")
	const want = "spec.list[0].n is a float, not a whole number"
	if err := f.Err(); err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

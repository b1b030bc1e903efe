package names

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

// Refs are named in every way in which a reconciler may name them.
func TestRefsUnderAllNames(t *testing.T) {
	x := New(Facts{
		Repos: []Repo{
			{Names: []string{"h/platform", "mirror/platform"}, Default: "main", Refs: []Ref{{Name: "main", Configured: true}, {Name: "stage", Configured: true}, {Name: "other"}}},
			{Names: []string{"h/app"}, Refs: []Ref{{Name: "dev"}}},
		},
		Targets:      []Target{{Target: schema.Target{Environment: "dev"}, Endpoint: schema.Endpoint{Repo: "h/app", Ref: "dev", Path: "x"}}},
		Environments: []Environment{{"mirror/platform", "", "dev"}, {"h/platform", "stage", "stage"}, {"h/unfollowed", "dev", "dev"}, {"h/both", "b", "dev"}, {"h/both", "b", "stage"}},
	})
	at := func(repo, ref string) schema.Endpoint { return schema.Endpoint{Repo: repo, Ref: ref} }
	platforms := []schema.Endpoint{at("h/platform", ""), at("h/platform", "main"), at("h/platform", "stage"), at("mirror/platform", ""), at("mirror/platform", "main"), at("mirror/platform", "stage")}
	if d := cmp.Diff(platforms, x.Platforms()); d != "" {
		t.Errorf("platforms (-want +got):\n%s", d)
	}
	dev := []schema.Endpoint{at("h/app", "dev"), at("h/platform", ""), at("h/platform", "main"), at("h/unfollowed", "dev"), at("mirror/platform", ""), at("mirror/platform", "main")}
	if d := cmp.Diff(dev, x.Serving("dev")); d != "" {
		t.Errorf("what serves dev (-want +got):\n%s", d)
	}
	if got := x.Serving(""); got != nil {
		t.Errorf("what serves nothing: %v", got)
	}
	if got := Empty().Platforms(); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

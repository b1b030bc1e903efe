package contract

// application_test.go is the one of argocdv2 with the other import path.
//go:generate sh -c "sed 's#argo-cd/v2/#argo-cd/v3/#' ../argocdv2/application_test.go > application_test.go"

import (
	"testing"

	"github.com/landfall-hub/landfall/agent/argocd"
	"github.com/landfall-hub/landfall/schema"
)

// Since 3.0 automated sync can be there and off.
func TestAutomatedDisabled(t *testing.T) {
	off := false
	a := good()
	outOfSync(a)
	a.Spec.SyncPolicy.Automated.Enabled = &off
	r, err := argocd.Application(unstruct(t, a), argocd.Tracking{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != schema.StatusPending {
		t.Errorf("spec.syncPolicy.automated.enabled is read as %s", r.Status)
	}
}

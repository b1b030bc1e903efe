package contract

import (
	"testing"

	"github.com/argoproj/gitops-engine/pkg/health"

	"github.com/landfall-hub/landfall/agent/argocd"
)

// Before 3.0 the health of an application has a message.
func TestHealthMessage(t *testing.T) {
	a := good()
	ill(health.HealthStatusDegraded)(a)
	a.Status.Health.Message = "why"
	r, err := argocd.Application(unstruct(t, a), argocd.Tracking{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Message != "why" {
		t.Errorf("status.health.message is read as %q", r.Message)
	}
}

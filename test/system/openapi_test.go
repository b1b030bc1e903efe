package system

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestTheHubDescribesItsRoutes asks for the document that the hub serves.
func TestTheHubDescribesItsRoutes(t *testing.T) {
	t.Parallel()
	h := sharedHub(t)
	status, text := request(t, http.MethodGet, h.url+"/openapi.json", "", "")
	var document struct {
		OpenAPI string                                `json:"openapi"`
		Paths   map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil || status != http.StatusOK || !strings.HasPrefix(document.OpenAPI, "3.1") {
		t.Fatalf("want OpenAPI 3.1: %d %v %.100s", status, err, text)
	}
	const cluster = "/api/v1/clusters/{cluster}"
	for _, route := range []string{
		"put " + cluster, "get " + cluster, "delete " + cluster, "post " + cluster + "/reports", "post " + cluster + "/heartbeat",
		"get /api/v1/clusters", "get /api/v1/state/clusters", "get /api/v1/compliance", "get /api/v1/compliance/stream",
		"post /api/v1/tokens", "get /api/v1/tokens", "delete /api/v1/tokens/{id}",
		"get /healthz", "get /readyz", "get /metrics", "get /openapi.json", "get /",
	} {
		method, path, _ := strings.Cut(route, " ")
		if _, there := document.Paths[path][method]; !there {
			t.Errorf("the document does not know %s", route)
		}
	}
}

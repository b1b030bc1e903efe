package api

import (
	"context"
	_ "embed"
	"net/http"
	"time"
)

// readyTimeout is how long the checks of /readyz may take.
const readyTimeout = 5 * time.Second

// openAPIDocument describes every route; tests hold it against them.
//
//go:embed openapi.json
var openAPIDocument []byte

// root serves `/`: what this is, and where to look.
func (a *API) root(w http.ResponseWriter, r *http.Request) error {
	return a.answer(w, r, http.StatusOK, struct {
		Name    string   `json:"name"`
		Version string   `json:"version"`
		What    string   `json:"what"`
		Look    []string `json:"look"`
	}{"landfall-hub", a.version, "knows what is deployed where, and answers whether a commit has landed",
		[]string{"/openapi.json", "/healthz", "/readyz", "/metrics", "/api/v1/clusters", "/api/v1/compliance"}})
}

// healthz says that the process serves requests, and nothing else.
func (a *API) healthz(w http.ResponseWriter, r *http.Request) error {
	return a.answer(w, r, http.StatusOK, status{Status: "ok"})
}

type status struct {
	Status string `json:"status"`
}

// readiness is the answer of /readyz.
type readiness struct {
	Status string  `json:"status"`
	Checks []Check `json:"checks"`
}

// readyz is 200 when all that the hub cannot be without is there, 503 with the
// same shape otherwise.
func (a *API) readyz(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	answer, code := readiness{Status: "ready", Checks: a.health(ctx)}, http.StatusOK
	for _, c := range answer.Checks {
		if !c.OK && !c.Minor {
			answer.Status, code = "not ready", http.StatusServiceUnavailable
		}
	}
	return a.answer(w, r, code, answer)
}

func (a *API) exposeMetrics(w http.ResponseWriter, r *http.Request) error {
	a.exposed.ServeHTTP(w, r)
	return nil
}

func (a *API) openAPI(w http.ResponseWriter, r *http.Request) error {
	a.write(w, r, http.StatusOK, "application/json", openAPIDocument)
	return nil
}

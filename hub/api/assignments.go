package api

import (
	"net/http"

	"github.com/landfall-hub/landfall/schema"
)

// listAssignments serves GET /assignments.
func (a *API) listAssignments(w http.ResponseWriter, r *http.Request) error {
	return serveList(a, w, r, "assignments", a.assignments.Assignments, func(p parameters) (schema.AssignmentFilter, error) {
		return schema.AssignmentFilter{
			Environment: p["environment"], ClusterType: p["cluster_type"], DeploymentTarget: p["deployment_target"],
			Workload: p["workload"], Workspace: p["workspace"],
		}, nil
	}, []string{"environment", "cluster_type", "deployment_target", "workload", "workspace"})
}

// getAssignment serves GET /assignments/{environment}/{cluster_type}/{deployment_target}.
func (a *API) getAssignment(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseParameters(r); err != nil {
		return err
	}
	d, err := a.assignments.Assignment(r.Context(), segment(r, "environment"), segment(r, "cluster_type"), segment(r, "deployment_target"))
	if err != nil {
		return err
	}
	return a.answer(w, r, http.StatusOK, d)
}

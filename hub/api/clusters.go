package api

import (
	"errors"
	"net/http"

	"github.com/landfall-hub/landfall/schema"
)

// register serves PUT /clusters/{cluster}.
func (a *API) register(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseParameters(r); err != nil {
		return err
	}
	var reg schema.Registration
	release, err := a.decode(w, r, &reg)
	defer release()
	if err != nil {
		return err
	}
	if err := reg.Validate(); err != nil {
		return err
	}
	reg.Normalize()
	if err := a.refuseDecommissioned(r); err != nil {
		return err
	}
	epoch, err := a.ingester.Register(r.Context(), segment(r, "cluster"), reg)
	if err != nil {
		return err
	}
	return a.answer(w, r, http.StatusOK, schema.RegistrationAnswer{Epoch: epoch})
}

// refuseDecommissioned keeps an agent from bringing its cluster back by itself:
// that is an admin's word.
func (a *API) refuseDecommissioned(r *http.Request) error {
	if callerOf(r.Context()).Role == schema.RoleAdmin {
		return nil
	}
	c, err := a.fleet.Cluster(r.Context(), segment(r, "cluster"))
	var refusal *schema.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Code == schema.CodeNotFound:
		return nil
	case err != nil:
		return err
	case c.Status == schema.ClusterDecommissioned:
		return refuse(schema.CodeDecommissioned, "the cluster %s is decommissioned; an admin registers it again", c.Name)
	}
	return nil
}

// listClusters serves GET /clusters.
func (a *API) listClusters(w http.ResponseWriter, r *http.Request) error {
	p, err := parseParameters(r, "environment", "cluster_type", "status", "limit", "cursor")
	if err != nil {
		return err
	}
	f := schema.ClusterFilter{Environment: p["environment"], ClusterType: p["cluster_type"], Status: schema.ClusterStatus(p["status"])}
	switch f.Status {
	case "", schema.ClusterLive, schema.ClusterSilent, schema.ClusterDecommissioned:
	default:
		return blame(schema.CodeInvalidParameter, "status", "status is live, silent or decommissioned, not %q", string(f.Status))
	}
	page, err := p.page("clusters", f)
	if err != nil {
		return err
	}
	rows, next, err := a.fleet.Clusters(r.Context(), f, page)
	if err != nil {
		return err
	}
	return answerList(a, w, r, "clusters", f, rows, next)
}

// getCluster serves GET /clusters/{cluster}.
func (a *API) getCluster(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseParameters(r); err != nil {
		return err
	}
	c, err := a.fleet.Cluster(r.Context(), segment(r, "cluster"))
	if err != nil {
		return err
	}
	return a.answer(w, r, http.StatusOK, c)
}

// decommission serves DELETE /clusters/{cluster}.
func (a *API) decommission(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseParameters(r); err != nil {
		return err
	}
	if err := a.ingester.Decommission(r.Context(), segment(r, "cluster")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// answerList writes a page of a list.
func answerList[T any](a *API, w http.ResponseWriter, r *http.Request, name string, filter any, rows []T, next []string) error {
	cursor, err := formatCursor(name, filter, next)
	if err != nil {
		return err
	}
	return a.answer(w, r, http.StatusOK, list[T]{Items: rows, NextCursor: cursor})
}

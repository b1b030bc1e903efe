package api

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/landfall-hub/landfall/schema"
)

// handler answers a request or returns the error that becomes a problem.
type handler func(w http.ResponseWriter, r *http.Request) error

// route is a line of the API's table.
type route struct {
	method, pattern string
	// roles are who may call, beside admins; an agent calls for its own cluster
	// only. Open routes ask nobody.
	roles []schema.Role
	open  bool
	serve handler
}

// table lists every route that there is.
func (a *API) table() []route {
	const v1 = "/api/v1"
	agent, reader, pipeline := schema.RoleAgent, schema.RoleReader, schema.RolePipeline
	return []route{
		{method: http.MethodPut, pattern: v1 + "/clusters/{cluster}", roles: []schema.Role{agent}, serve: a.register},
		{method: http.MethodGet, pattern: v1 + "/clusters", roles: []schema.Role{reader}, serve: a.listClusters},
		{method: http.MethodGet, pattern: v1 + "/clusters/{cluster}", roles: []schema.Role{reader}, serve: a.getCluster},
		{method: http.MethodDelete, pattern: v1 + "/clusters/{cluster}", serve: a.decommission},
		{method: http.MethodPost, pattern: v1 + "/clusters/{cluster}/reports", roles: []schema.Role{agent}, serve: a.report},
		{method: http.MethodPost, pattern: v1 + "/clusters/{cluster}/heartbeat", roles: []schema.Role{agent}, serve: a.heartbeat},
		{method: http.MethodPost, pattern: v1 + "/descriptors", roles: []schema.Role{pipeline}, serve: a.pushDescriptors},
		{method: http.MethodGet, pattern: v1 + "/compliance", roles: []schema.Role{reader, pipeline}, serve: a.compliance},
		{method: http.MethodGet, pattern: v1 + "/compliance/stream", roles: []schema.Role{reader, pipeline}, serve: a.complianceStream},
		{method: http.MethodGet, pattern: v1 + "/state", roles: []schema.Role{reader}, serve: a.environmentStates},
		{method: http.MethodGet, pattern: v1 + "/state/clusters", roles: []schema.Role{reader}, serve: a.clusterStates},
		{method: http.MethodGet, pattern: v1 + "/history", roles: []schema.Role{reader}, serve: a.history},
		{method: http.MethodGet, pattern: v1 + "/discrepancies", roles: []schema.Role{reader}, serve: a.discrepancies},
		{method: http.MethodGet, pattern: v1 + "/drift", roles: []schema.Role{reader}, serve: a.drift},
		{method: http.MethodGet, pattern: v1 + "/dora", roles: []schema.Role{reader}, serve: a.dora},
		{method: http.MethodGet, pattern: v1 + "/assignments", roles: []schema.Role{reader}, serve: a.listAssignments},
		{method: http.MethodGet, pattern: v1 + "/assignments/{environment}/{cluster_type}/{deployment_target}", roles: []schema.Role{reader}, serve: a.getAssignment},
		{method: http.MethodPost, pattern: v1 + "/tokens", serve: a.createToken},
		{method: http.MethodGet, pattern: v1 + "/tokens", serve: a.listTokens},
		{method: http.MethodDelete, pattern: v1 + "/tokens/{id}", serve: a.revokeToken},
		// Who may call is told by the signature.
		{method: http.MethodPost, pattern: v1 + "/webhooks/{provider}", open: true, serve: a.webhook},

		{method: http.MethodGet, pattern: "/", open: true, serve: a.root},
		{method: http.MethodGet, pattern: "/healthz", open: true, serve: a.healthz},
		{method: http.MethodGet, pattern: "/readyz", open: true, serve: a.readyz},
		{method: http.MethodGet, pattern: "/metrics", open: true, serve: a.exposeMetrics},
		{method: http.MethodGet, pattern: "/openapi.json", open: true, serve: a.openAPI},
	}
}

func (a *API) routes() *chi.Mux {
	mux := chi.NewRouter()
	mux.Use(a.observe, drained, a.recoverPanics, headAsGet)
	for _, rt := range a.table() {
		serve := rt.serve
		if !rt.open {
			serve = a.guard(rt)
		}
		mux.Method(rt.method, rt.pattern, a.handle(serve))
	}
	mux.NotFound(a.handle(func(_ http.ResponseWriter, r *http.Request) error {
		return refuse(schema.CodeNotFound, "there is no %s; /openapi.json lists the routes", r.URL.Path)
	}).ServeHTTP)
	mux.MethodNotAllowed(a.handle(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allowed(mux, r))
		return refuse(schema.CodeMethodNotAllowed, "%s does not know the method %s; it has %s", r.URL.Path, r.Method, w.Header().Get("Allow"))
	}).ServeHTTP)
	return mux
}

// handle turns a handler's error into a problem.
func (a *API) handle(serve handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil {
			a.fail(w, r, err)
		}
	})
}

// headAsGet answers HEAD wherever GET is answered; the server drops the body.
func headAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			chi.RouteContext(r.Context()).RouteMethod = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// allowed lists the methods of the request's path, for the Allow header.
func allowed(mux *chi.Mux, r *http.Request) string {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	var list string
	for _, m := range []string{http.MethodDelete, http.MethodGet, http.MethodPost, http.MethodPut} {
		if !mux.Match(chi.NewRouteContext(), m, path) {
			continue
		}
		if list != "" {
			list += ", "
		}
		list += m
		if m == http.MethodGet {
			list += ", " + http.MethodHead
		}
	}
	return list
}

package api

import (
	"context"
	"net/http"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// names of the parameters that narrow by what a target is called, and by where
// it is deployed.
var (
	targetParameters = []string{"environment", "workspace", "application", "workload", "deployment_target"}
	placeParameters  = []string{"cluster_type", "cluster", "status"}
	spanParameters   = []string{"from", "to"}
	pageParameters   = []string{"limit", "cursor"}
)

// environmentStates serves GET /state.
func (a *API) environmentStates(w http.ResponseWriter, r *http.Request) error {
	return serveList(a, w, r, "state", a.overview.EnvironmentStates, parameters.stateFilter, targetParameters, placeParameters)
}

// clusterStates serves GET /state/clusters.
func (a *API) clusterStates(w http.ResponseWriter, r *http.Request) error {
	return serveList(a, w, r, "state/clusters", a.overview.ClusterStates, parameters.stateFilter, targetParameters, placeParameters)
}

// history serves GET /history.
func (a *API) history(w http.ResponseWriter, r *http.Request) error {
	return serveList(a, w, r, "history", a.overview.History, func(p parameters) (f schema.HistoryFilter, err error) {
		if f.StateFilter, err = p.stateFilter(); err == nil {
			f.Span, err = p.span()
		}
		return f, err
	}, targetParameters, placeParameters, spanParameters)
}

// discrepancies serves GET /discrepancies.
func (a *API) discrepancies(w http.ResponseWriter, r *http.Request) error {
	return serveList(a, w, r, "discrepancies", a.figures.Discrepancies, func(p parameters) (f schema.DiscrepancyFilter, err error) {
		if f.StateFilter, err = p.stateFilter(); err == nil {
			f.All, err = p.flag("all")
		}
		return f, err
	}, targetParameters, placeParameters, []string{"all"})
}

// drift serves GET /drift.
func (a *API) drift(w http.ResponseWriter, r *http.Request) error {
	return serveList(a, w, r, "drift", a.figures.Drift, func(p parameters) (f schema.DriftFilter, err error) {
		if f.StateFilter, err = p.stateFilter(); err != nil {
			return f, err
		}
		if f.Span, err = p.span(); err == nil {
			f.All, err = p.flag("all")
		}
		return f, err
	}, targetParameters, placeParameters, spanParameters, []string{"all"})
}

// dora serves GET /dora.
func (a *API) dora(w http.ResponseWriter, r *http.Request) error {
	return serveList(a, w, r, "dora", a.figures.DORA, func(p parameters) (f schema.DORAFilter, err error) {
		if f.StateFilter, err = p.stateFilter(); err == nil {
			f.Span, err = p.span()
		}
		return f, err
	}, targetParameters, spanParameters)
}

// serveList answers a page of a list whose filter is read from the parameters
// of these names.
func serveList[F, T any](
	a *API, w http.ResponseWriter, r *http.Request, name string,
	read func(context.Context, F, schema.Page) ([]T, []string, error), filterOf func(parameters) (F, error), known ...[]string,
) error {
	var names []string
	for _, some := range append(known, pageParameters) {
		names = append(names, some...)
	}
	p, err := parseParameters(r, names...)
	if err != nil {
		return err
	}
	f, err := filterOf(p)
	if err != nil {
		return err
	}
	page, err := p.page(name, f)
	if err != nil {
		return err
	}
	rows, next, err := read(r.Context(), f, page)
	if err != nil {
		return err
	}
	return answerList(a, w, r, name, f, rows, next)
}

// stateFilter reads what narrows reconcilers and targets.
func (p parameters) stateFilter() (schema.StateFilter, error) {
	f := schema.StateFilter{
		Environment: p["environment"], Workspace: p["workspace"], Application: p["application"], Workload: p["workload"],
		DeploymentTarget: p["deployment_target"], ClusterType: p["cluster_type"], Cluster: p["cluster"],
		Status: schema.Status(p["status"]),
	}
	if f.Status != "" && !f.Status.Valid() {
		return f, blame(schema.CodeInvalidParameter, "status", "status is one of %v, not %q", schema.Statuses(), shorten(string(f.Status), 100))
	}
	return f, nil
}

// span reads from and to.
func (p parameters) span() (s schema.Span, err error) {
	if s.From, err = p.time("from"); err != nil {
		return s, err
	}
	if s.To, err = p.time("to"); err != nil {
		return s, err
	}
	if !s.From.IsZero() && !s.To.IsZero() && s.From.After(s.To) {
		return s, blame(schema.CodeInvalidParameter, "from", "from is after to; what is asked for begins at from and ends before to")
	}
	return s, nil
}

// lastYear bounds the times that a parameter may name.
const lastYear = 2200

func (p parameters) time(name string) (time.Time, error) {
	text, given := p[name]
	if !given {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1970 || t.Year() > lastYear {
		return t, blame(schema.CodeInvalidParameter, name,
			"%s is a time between 1970 and %d in RFC 3339 such as 2026-11-20T09:00:00Z, not %q; a plus sign is written %%2B", name, lastYear, shorten(text, 100))
	}
	return t.UTC(), nil
}

// flag reads true or false.
func (p parameters) flag(name string) (bool, error) {
	switch text, given := p[name]; {
	case !given, text == "false":
		return false, nil
	case text == "true":
		return true, nil
	default:
		return false, blame(schema.CodeInvalidParameter, name, "%s is true or false, not %q", name, shorten(text, 100))
	}
}

package api

import (
	"net/http"

	"github.com/landfall-hub/landfall/schema"
)

// report serves POST /clusters/{cluster}/reports.
func (a *API) report(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseParameters(r); err != nil {
		return err
	}
	report := new(schema.Report)
	release, err := a.decode(w, r, report)
	defer release()
	if err != nil {
		return err
	}
	if err := report.Validate(); err != nil {
		return err
	}
	report.Normalize()
	epoch, err := a.ingester.Report(r.Context(), segment(r, "cluster"), report)
	if err != nil {
		return err
	}
	return a.answer(w, r, http.StatusAccepted, schema.ReportAnswer{CurrentEpoch: epoch})
}

// heartbeat serves POST /clusters/{cluster}/heartbeat.
func (a *API) heartbeat(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseParameters(r); err != nil {
		return err
	}
	var h schema.Heartbeat
	release, err := a.decode(w, r, &h)
	defer release()
	if err != nil {
		return err
	}
	if err := h.Validate(); err != nil {
		return err
	}
	answer, err := a.ingester.Heartbeat(r.Context(), segment(r, "cluster"), h)
	if err != nil {
		return err
	}
	return a.answer(w, r, http.StatusOK, answer)
}

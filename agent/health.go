package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/landfall-hub/landfall/agent/outbox"
	"github.com/landfall-hub/landfall/agent/watch"
)

// check is the state of one thing, as /readyz shows it; the hub's has the same
// shape.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// handler serves /healthz, /readyz and /metrics.
func (a *Agent) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		checks := append(a.lookout.checks(), hubCheck(a.outbox.Status(), time.Now()))
		status, code := "ready", http.StatusOK
		if slices.ContainsFunc(checks, func(c check) bool { return !c.OK }) {
			status, code = "not ready", http.StatusServiceUnavailable
		}
		answer(w, code, struct {
			Status string  `json:"status"`
			Checks []check `json:"checks"`
		}{status, checks})
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}))
	return mux
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the caller left
}

// kindChecks say whether everything that is watched can be looked at, and
// whether all that was found is reported.
func kindChecks(states map[string]watch.State, p progress) []check {
	kinds := check{Name: "kinds"}
	reports := check{Name: "reports"}
	in := func(s watch.State) string {
		var names []string
		for name, state := range states {
			if state == s {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return strings.Join(names, ", ")
	}
	switch unlisted, syncing, listed := in(watch.Unlisted), in(watch.Syncing), in(watch.Listed); {
	case unlisted != "":
		kinds.Detail = "cannot be listed: " + unlisted + "; the agent's ClusterRole must allow list and watch, and the CRDs must be there"
	case syncing != "":
		kinds.Detail = "not listed completely yet: " + syncing
	case listed == "":
		kinds.OK, kinds.Detail = true, "the cluster serves no kind of Flux or Argo CD"
	default:
		kinds.OK, kinds.Detail = true, "listed: "+listed
	}
	switch {
	case p.blindCount > 0:
		reports.Detail = fmt.Sprintf("%s and %d more read from sources that were never seen and cannot be listed: their kind counts as unknown", p.blind, p.blindCount-1)
	case p.heldCount > 0:
		reports.Detail = fmt.Sprintf("%s and %d more wait until the kinds that they hang on are listed", p.held, p.heldCount-1)
	case len(p.unlisted) > 0:
		reports.Detail = "reported as unknown: " + strings.Join(p.unlisted, ", ")
	case !p.told:
		reports.Detail = "nothing was reported yet"
	default:
		// Those that are not served or not watched are known to be empty.
		there := slices.DeleteFunc(slices.Clone(p.listed), func(name string) bool { return states[name] != watch.Listed })
		reports.OK, reports.Detail = true, "reported: "+cmp.Or(strings.Join(there, ", "), "nothing, there is nothing to report")
	}
	return []check{kinds, reports}
}

// hubCheck says where the agent stands with the hub.
func hubCheck(s outbox.Status, now time.Time) check {
	c := check{Name: "hub"}
	why := ""
	if s.Error != nil {
		why = ": " + s.Error.Error()
	}
	switch {
	case s.Mode == outbox.Registering:
		c.Detail = "not registered yet" + why
	case s.Mode == outbox.Superseded:
		c.Detail = "superseded: another agent reports for this cluster; this one takes over when that one is silent" + why
	case s.Mode == outbox.Decommissioned:
		c.Detail = "decommissioned: an admin took the cluster out; register it again to report" + why
	case s.Error != nil:
		c.Detail = fmt.Sprintf("%d changes wait%s", s.Waiting, why)
	default:
		c.OK, c.Detail = true, fmt.Sprintf("registered under epoch %d, heard %s ago, %d changes wait", s.Epoch, now.Sub(s.Acknowledged).Round(time.Second), s.Waiting)
	}
	return c
}

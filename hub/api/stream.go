package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// keepAlive is how long a stream stays without a word.
const keepAlive = 15 * time.Second

// complianceStream serves GET /compliance/stream: Server-Sent Events named
// `verdict`, until one is final. A fault on the way is an event named `problem`
// that ends the stream; the client connects again.
func (a *API) complianceStream(w http.ResponseWriter, r *http.Request) error {
	p, err := parseParameters(r, append([]string{"repo", "ref", "path", "commit"}, schema.PolicyFields()...)...)
	if err != nil {
		return err
	}
	q, err := question(p)
	if err != nil {
		return err
	}
	v, err := a.gate.Ask(r.Context(), q)
	if err != nil {
		return err
	}
	done, err := a.startWaiting()
	if err != nil {
		return err
	}
	defer done()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // or nginx keeps the events to itself
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	a.follow(w, r, q, v)
	return nil
}

// follow writes verdicts until one is final, the client is gone or the hub stops.
func (a *API) follow(w http.ResponseWriter, r *http.Request, q schema.Question, v schema.Verdict) {
	if !a.event(w, "verdict", v) {
		return
	}
	for !v.State.Final() && r.Context().Err() == nil {
		next, err := a.next(r.Context(), q, v)
		switch {
		case r.Context().Err() != nil:
			return
		case err != nil:
			a.event(w, "problem", problemOf(err, requestID(r.Context())))
			return
		case next.SameAs(&v):
			if !send(w, ": keep-alive\n\n") {
				return
			}
		default:
			if v = next; !a.event(w, "verdict", v) {
				return
			}
		}
	}
}

func (a *API) next(ctx context.Context, q schema.Question, seen schema.Verdict) (schema.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, keepAlive)
	defer cancel()
	return a.gate.Next(ctx, q, seen)
}

// event writes one event; false when nobody reads any more.
func (a *API) event(w http.ResponseWriter, name string, v any) bool {
	data, err := marshal(v)
	if err != nil {
		a.logger.Error("writing an event failed", "event", name, "error", err)
		return false
	}
	return send(w, fmt.Sprintf("event: %s\ndata: %s\n\n", name, data))
}

func send(w http.ResponseWriter, text string) bool {
	extendWriting(w, keepAlive+writeTimeout)
	if _, err := w.Write([]byte(text)); err != nil {
		return false
	}
	return http.NewResponseController(w).Flush() == nil
}

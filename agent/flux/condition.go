package flux

import (
	"time"

	"github.com/landfall-hub/landfall/agent/object"
)

// A condition is one entry of status.conditions.
type condition struct {
	status  string // True, False or Unknown; empty when there is no such condition
	reason  string
	message string
	since   time.Time
}

func (c condition) isTrue() bool  { return c.status == "True" }
func (c condition) isFalse() bool { return c.status == "False" }

// conditions returns status.conditions by type; the first of a type counts.
func conditions(status object.Fields) map[string]condition {
	all := map[string]condition{}
	for _, f := range status.List("conditions") {
		name := f.Text("type")
		c := condition{
			status: f.Text("status"), reason: f.Text("reason"), message: f.Text("message"), since: f.Time("lastTransitionTime"),
		}
		if _, twice := all[name]; !twice {
			all[name] = c
		}
	}
	return all
}

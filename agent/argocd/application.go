package argocd

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

// KindApplication is the kind that Application reads.
const KindApplication = "Application"

// Application reads an Application in any namespace, with one source, several,
// or a source hydrator. Its Cluster is left to the caller: see ReadDestination.
// The error wraps object.ErrNotNamed; an object that can be named but not
// understood has status unknown.
//
// A hydrated application has two sources: the branch that is synced, and the
// dry one that it was made from. The dry revision is known only while the
// hydrated one beside it is the one that was compared or deployed; it is the
// Origin of the first source too.
func Application(obj *unstructured.Unstructured, t Tracking) (schema.Reconciler, error) {
	ref, err := object.Ref(obj, KindApplication)
	if err != nil {
		return schema.Reconciler{}, fmt.Errorf("reading an Application: %w", err)
	}
	f := object.Read(obj)
	a := read(f)
	v := a.judge()
	destination, status := f.Object("spec", "destination"), f.Object("status")
	inventory(ref, destination, status) // resources that cannot be read hide children

	compared, deployed := a.desired.align(a.compared), a.desired.align(a.deployed())
	r := schema.Reconciler{
		Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
		Sources: a.desired.endpoints(),
		Status:  v.status, Reason: v.reason, Message: v.message, Since: v.since,
		Attempted: compared, Applied: deployed,
		SourceError:        a.hydrator.failed,
		GenerationObserved: &a.current,
		Health:             a.health,
		Drifted:            v.drifted,
		Owner:              t.owner(f),
	}
	if a.hydrator.on {
		r.Sources = append(r.Sources, a.hydrator.source.endpoint)
		r.Attempted = []string{compared[0], a.hydrator.dry(compared[0])}
		r.Applied = []string{deployed[0], a.hydrator.dry(deployed[0])}
		r.Origin = []string{r.Applied[1]}
	}
	return object.Finish(reportable(r), f.Err()), nil
}

// reportable drops sources that cannot be sent, each with its revisions.
func reportable(r schema.Reconciler) schema.Reconciler {
	var sources []schema.Source
	var attempted, applied, origin []string
	for i, s := range r.Sources {
		if !object.Reportable(s) {
			continue
		}
		sources = append(sources, s)
		attempted, applied = append(attempted, r.Attempted[i]), append(applied, r.Applied[i])
		if i < len(r.Origin) {
			origin = append(origin, r.Origin[i])
		}
	}
	r.Sources, r.Attempted, r.Applied, r.Origin = sources, attempted, applied, origin
	return r
}

// application is what the status table looks at.
type application struct {
	desired  spread // what the specification asks for
	compared spread // what the sync status speaks of
	current  bool   // they are the same, and so are their destinations

	reconciledAt time.Time
	conditions   map[string]condition
	operation    operation
	health       string
	healthText   string
	healthSince  time.Time
	sync         string
	history      []deployment
	automated    bool
	hydrator     hydrator
}

// A condition is one entry of status.conditions.
type condition struct {
	message string
	since   time.Time
}

func read(f object.Fields) application {
	spec, status := f.Object("spec"), f.Object("status")
	sync, health := status.Object("sync"), status.Object("health")
	comparedTo := sync.Object("comparedTo")
	automated := spec.Object("syncPolicy").Object("automated")
	a := application{
		desired:      specified(spec),
		compared:     spreadOf(comparedTo, sync),
		reconciledAt: status.Time("reconciledAt"),
		conditions:   map[string]condition{},
		operation:    readOperation(status.Object("operationState")),
		health:       health.Text("status"),
		healthText:   health.Text("message"),
		healthSince:  health.Time("lastTransitionTime"),
		sync:         sync.Text("status"),
		automated:    spec.Object("syncPolicy").Has("automated") && automated.Bool("enabled", true),
		hydrator:     readHydrator(spec, status.Object("sourceHydrator")),
	}
	a.current = !comparedTo.IsZero() && a.desired.sameSources(a.compared) &&
		sameDestination(spec.Object("destination"), comparedTo.Object("destination"))
	for _, c := range status.List("conditions") {
		name := c.Text("type")
		if _, twice := a.conditions[name]; !twice {
			a.conditions[name] = condition{message: c.Text("message"), since: c.Time("lastTransitionTime")}
		}
	}
	for _, h := range status.List("history") {
		a.history = append(a.history, deployment{what: spreadOf(h, h), at: h.Time("deployedAt")})
	}
	return a
}

// A deployment is one full sync that succeeded.
type deployment struct {
	what spread
	at   time.Time
}

// lastFullSync returns what the newest full sync deployed: the last entry of
// the history, or the present operation where that is a full one which wrote
// none. The zero deployment where there was never one.
func (a application) lastFullSync() deployment {
	var last deployment
	if n := len(a.history); n > 0 {
		last = a.history[n-1]
	}
	if o := a.operation; o.full && o.phase == phaseSucceeded && len(o.result.revisions) > 0 && !o.finishedAt.Before(last.at) {
		return deployment{what: o.result, at: o.finishedAt}
	}
	return last
}

// deployed returns the sources and revisions that the cluster runs.
func (a application) deployed() spread {
	if a.sync == syncSynced {
		return a.compared
	}
	return a.lastFullSync().what
}

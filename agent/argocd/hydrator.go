package argocd

import (
	"cmp"

	"github.com/landfall-hub/landfall/agent/object"
)

// hydrator is what Argo CD says of manifests that it renders into a branch
// before it syncs them.
type hydrator struct {
	on bool
	// source is the dry one, the manifests before they are rendered.
	source source
	// drySHA was rendered into hydratedSHA, the last time that this succeeded.
	drySHA, hydratedSHA string
	// failed says why the newest dry revision was not rendered.
	failed string
}

func readHydrator(spec, status object.Fields) hydrator {
	last, now := status.Object("lastSuccessfulOperation"), status.Object("currentOperation")
	h := hydrator{
		on:     !spec.Object("sourceHydrator").IsZero(),
		source: readSource(spec.Object("sourceHydrator", "drySource")),
		drySHA: last.Text("drySHA"), hydratedSHA: last.Text("hydratedSHA"),
	}
	if dry, message := now.Text("drySHA"), now.Text("message"); now.Text("phase") == phaseFailed {
		h.failed = "hydrating " + cmp.Or(dry, "the dry source") + " failed: " + message
	}
	if !h.on {
		return hydrator{}
	}
	return h
}

// dry returns the dry revision behind a hydrated one; empty where the pair is
// not known.
func (h hydrator) dry(hydrated string) string {
	if hydrated != "" && hydrated == h.hydratedSHA {
		return h.drySHA
	}
	return ""
}

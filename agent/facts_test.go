package agent

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/agent/outbox"
	"github.com/landfall-hub/landfall/agent/watch"
	"github.com/landfall-hub/landfall/schema"
)

// Where an Application deploys to is told by the name that the hub knows.
func TestDestination(t *testing.T) {
	config := func(c *Config) {
		c.ArgoCD.Destinations = []DestinationConfig{
			{Name: "east", Server: "https://EAST.example:6443/", Cluster: "drone-08"}, {Name: "myself", Cluster: "drone-07"},
		}
	}
	for name, c := range map[string]struct {
		reason       string
		server, name string
		cluster      string
		status       schema.Status // of a root with a child that was not seen
		unmapped     int
	}{
		"in-cluster":      {"this cluster has no name of its own", "https://kubernetes.default.svc", "", "", schema.StatusInProgress, 0},
		"in-cluster name": {"by either", "", "in-cluster", "", schema.StatusInProgress, 0},
		"by name":         {"another one by its name", "", "east", "drone-08", schema.StatusSuccess, 0},
		"by server":       {"or its address, however it is written", "https://east.example:6443", "", "drone-08", schema.StatusSuccess, 0},
		"this one":        {"this cluster by another name has its children here", "", "myself", "", schema.StatusInProgress, 0},
		"not named":       {"one that nobody names counts for this cluster", "https://west.example", "", "", schema.StatusSuccess, 1},
		"name not named":  {"the name counts, as in Argo CD", "https://east.example:6443", "west", "", schema.StatusSuccess, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, config)
			var log bytes.Buffer
			b.worker.facts.clusters.log = slog.New(slog.NewTextHandler(&log, nil))
			to := map[string]any{"namespace": "argocd", "server": c.server, "name": c.name}
			obj := edit(t, edit(t, load(t, "argocd/made/root"), to, "spec", "destination"), to, "status", "sync", "comparedTo", "destination")
			b.has(obj)
			b.rest()
			b.has(edit(t, obj, "x", "metadata", "resourceVersion"))
			b.rest()
			r := b.facts(ref("Application", "argocd", "root"))
			if r.Cluster != c.cluster || r.Status != c.status {
				t.Errorf("cluster %q, status %s; want %q, %s: %s", r.Cluster, r.Status, c.cluster, c.status, c.reason)
			}
			if n := strings.Count(log.String(), "argocd.destinations"); n != c.unmapped {
				t.Errorf("%d complaints, want %d:\n%s", n, c.unmapped, &log)
			}
		})
	}
}

func TestOwner(t *testing.T) {
	const label, id = "app.kubernetes.io/instance", "argocd.argoproj.io/tracking-id"
	fluxLabels := map[string]any{"kustomize.toolkit.fluxcd.io/namespace": "flux-system", "kustomize.toolkit.fluxcd.io/name": "apps"}
	byFlux, byArgo := ref("Kustomization", "flux-system", "apps"), ref("Application", "argocd", "apps")
	for name, c := range map[string]struct {
		reason      string
		obj         *unstructured.Unstructured
		labels      map[string]any
		annotations map[string]any
		want        *schema.ObjectRef
	}{
		"flux":             {"Flux's labels", load(t, goodYAML), fluxLabels, nil, &byFlux},
		"argo":             {"Argo CD's tracking id on Flux's object", load(t, goodYAML), nil, map[string]any{id: "apps:kustomize.toolkit.fluxcd.io/Kustomization:flux-system/good"}, &byArgo},
		"argo label":       {"or its label", load(t, goodYAML), map[string]any{label: "apps"}, nil, &byArgo},
		"flux, label":      {"a chart sets that label too", load(t, goodYAML), map[string]any{label: "good", "kustomize.toolkit.fluxcd.io/namespace": "flux-system", "kustomize.toolkit.fluxcd.io/name": "apps"}, nil, &byFlux},
		"application":      {"Flux's labels on an Application", load(t, appYAML), fluxLabels, nil, &byFlux},
		"app of apps":      {"Argo CD's own", load(t, appYAML), map[string]any{label: "apps"}, nil, &byArgo},
		"application both": {"Flux's labels again", load(t, appYAML), map[string]any{label: "other", "kustomize.toolkit.fluxcd.io/namespace": "flux-system", "kustomize.toolkit.fluxcd.io/name": "apps"}, nil, &byFlux},
		"nobody":           {"applied by hand", load(t, goodYAML), nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			obj := edit(t, edit(t, c.obj, c.labels, "metadata", "labels"), c.annotations, "metadata", "annotations")
			b.has(obj, load(t, repoYAML))
			b.rest()
			if diff := cmp.Diff(c.want, b.facts(ref(obj.GetKind(), obj.GetNamespace(), obj.GetName())).Owner); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// What nobody can read is reported as such, and not left out.
func TestUnreadable(t *testing.T) {
	b := newBench(t)
	b.has(edit(t, load(t, goodYAML), "yes", "spec", "suspend"), load(t, repoYAML))
	b.rest()
	if r := b.facts(good); r.Status != schema.StatusUnknown || r.Reason != object.ReasonUnreadable {
		t.Errorf("%+v", r)
	}
}

func TestKindChecks(t *testing.T) {
	all := []string{"Application", "HelmRelease", "Kustomization"}
	for name, c := range map[string]struct {
		reason         string
		states         map[string]watch.State
		progress       progress
		kinds, reports string // beginning with ! when not ok
	}{
		"good":      {"all is listed and reported", map[string]watch.State{"Kustomization": watch.Listed, "Bucket": watch.Absent}, progress{told: true, listed: all}, "listed: Kustomization", "reported: Kustomization"},
		"start":     {"nothing is known", map[string]watch.State{"Kustomization": watch.Syncing}, progress{}, "!not listed completely yet: Kustomization", "!nothing was reported yet"},
		"empty":     {"a cluster without Flux and Argo CD is well", map[string]watch.State{"Kustomization": watch.Absent}, progress{told: true, listed: all}, "the cluster serves no kind of Flux or Argo CD", "reported: nothing, there is nothing"},
		"forbidden": {"a role is missing", map[string]watch.State{"Kustomization": watch.Unlisted, "Bucket": watch.Unlisted, "Application": watch.Syncing}, progress{told: true, unlisted: all[2:]}, "!cannot be listed: Bucket, Kustomization; the agent's ClusterRole", "!reported as unknown: Kustomization"},
		"held":      {"a source is still being listed", map[string]watch.State{"Kustomization": watch.Listed, "Bucket": watch.Syncing}, progress{told: true, held: good, heldCount: 3}, "!not listed", "!Kustomization/flux-system/good and 2 more wait"},
		"blind":     {"a source cannot be listed", map[string]watch.State{"Kustomization": watch.Listed, "Bucket": watch.Unlisted}, progress{told: true, unlisted: all[2:], blind: good, blindCount: 1}, "!cannot be listed: Bucket", "!Kustomization/flux-system/good and 0 more read from sources"},
	} {
		t.Run(name, func(t *testing.T) {
			got := kindChecks(c.states, c.progress)
			for i, want := range []string{c.kinds, c.reports} {
				text, bad := strings.CutPrefix(want, "!")
				if got[i].OK == bad || !strings.HasPrefix(got[i].Detail, text) {
					t.Errorf("%s: %+v, want %s", c.reason, got[i], want)
				}
			}
		})
	}
}

func TestHubCheck(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	down := errors.New("no route to host")
	for name, c := range map[string]struct {
		reason string
		status outbox.Status
		want   string
	}{
		"current":        {"it reports", outbox.Status{Mode: outbox.Current, Epoch: 7, Acknowledged: now.Add(-3 * time.Second), Waiting: 2}, "registered under epoch 7, heard 3s ago, 2 changes wait"},
		"new":            {"it was not heard of", outbox.Status{Mode: outbox.Registering}, "!not registered yet"},
		"new, down":      {"and why", outbox.Status{Mode: outbox.Registering, Error: down}, "!not registered yet: no route to host"},
		"down":           {"the hub went", outbox.Status{Mode: outbox.Current, Epoch: 7, Waiting: 2, Error: down}, "!2 changes wait: no route to host"},
		"superseded":     {"another agent reports", outbox.Status{Mode: outbox.Superseded, Epoch: 7}, "!superseded: another agent reports"},
		"decommissioned": {"an admin said so", outbox.Status{Mode: outbox.Decommissioned}, "!decommissioned: an admin"},
	} {
		t.Run(name, func(t *testing.T) {
			text, bad := strings.CutPrefix(c.want, "!")
			if got := hubCheck(c.status, now); got.OK == bad || !strings.HasPrefix(got.Detail, text) {
				t.Errorf("%s: %+v, want %s", c.reason, got, c.want)
			}
		})
	}
}

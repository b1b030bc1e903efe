//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/schema"
)

const (
	// idleWindow is how long a process is looked at once it has settled, two of
	// the agent's heartbeats; changeWindow is how long it takes at least to write
	// every Kustomization once.
	idleWindow   = 60 * time.Second
	changeWindow = 30 * time.Second
	// inventoryEntries is how many objects each Kustomization says it applied:
	// an application with its Deployments, Services, ConfigMaps and policies.
	inventoryEntries = 25
	// perSource is how many Kustomizations read one GitRepository.
	perSource = 100
)

// BenchmarkAgent measures the agent's resident memory and processor time on a
// real API server with so many Kustomizations, whose statuses have the size of
// real ones, beside those of a bare dynamic informer over the same objects:
//
//	rss-MiB        after it has settled
//	peak-MiB       the highest since its start
//	millicores     over a minute in which nothing changes
//	changing-…     over half a minute or more in which each Kustomization is
//	               written once
//
// Both run with their own defaults.
func BenchmarkAgent(b *testing.B) {
	for _, n := range []int{50, 5_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { measureAgent(b, n) })
	}
}

func measureAgent(b *testing.B, n int) {
	b.Helper()
	nameLogs(b)
	need(b, startGitOnce, startHubOnce)
	name := fmt.Sprintf("footprint-%d", n)
	c, err := startCluster(name)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := c.stop(); err != nil {
			b.Error(err)
		}
	}()
	if err := errors.Join(c.installFlux(b.Context()), c.installArgoCD(b.Context())); err != nil {
		b.Fatal(err)
	}
	s := newSceneOn(b, name, c, shared.hub)
	size := s.fill(n)
	b.ReportMetric(float64(size), "B/object")

	informer := startYardstick(b, c)
	b.ReportMetric(0, "ns/op") // the time that all of this took says nothing
	informer.report(b, "informer-", s, n)
	if err := informer.stop(); err != nil {
		b.Error(err)
	}

	a, err := startAgent(c, shared.hub, name, "agent-"+name)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := a.stop(); err != nil {
			b.Error(err)
		}
	}()
	eventually(b, "the hub has all that the agent reads", func() error {
		cluster, err := s.hub.client.Cluster(b.Context(), name)
		if err != nil {
			return err
		}
		if got := int(cluster.Counts[schema.StatusSuccess]); got != n {
			return fmt.Errorf("%d of %d", got, n)
		}
		return nil
	})
	watched{a.process}.report(b, "", s, n)
	if info, err := os.Stat(a.path); err == nil {
		b.ReportMetric(float64(info.Size())/(1<<20), "binary-MiB")
	}
}

// fill makes n Kustomizations as Flux leaves them, and returns how large one is
// as JSON, in bytes.
func (s *scene) fill(n int) int {
	s.t.Helper()
	ctx := s.t.Context()
	var all errgroup.Group
	all.SetLimit(8)
	for i := 0; i < n; i += perSource {
		all.Go(func() error {
			name := fmt.Sprintf("repo-%02d", i/perSource)
			text := fmt.Sprintf(`{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: %s, namespace: %s},
spec: {interval: 1m, url: "https://git.example/org/%s", ref: {branch: main}}}`, name, s.namespace, name)
			if err := s.applyText(ctx, text); err != nil {
				return err
			}
			return s.patch(ctx, gitRepos, s.namespace, name, map[string]any{"status": fetched(commitNumber(0))}, "status")
		})
	}
	for i := range n {
		all.Go(func() error {
			text := fmt.Sprintf(`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: %s, namespace: %s, finalizers: [finalizers.fluxcd.io]},
spec: {interval: 10m, retryInterval: 1m, timeout: 3m, path: ./apps/team-%02d/%s, prune: true, wait: true, targetNamespace: %s, sourceRef: {kind: GitRepository, name: repo-%02d}}}`,
				kustomizationNumber(i), s.namespace, i%50, kustomizationNumber(i), kustomizationNumber(i), i/perSource)
			if err := s.applyText(ctx, text); err != nil {
				return err
			}
			return s.writeNumber(ctx, i, 0)
		})
	}
	if err := all.Wait(); err != nil {
		s.t.Fatal(err)
	}
	obj, err := s.client.Resource(kustomizations).Namespace(s.namespace).Get(ctx, kustomizationNumber(0), getOptions)
	if err != nil {
		s.t.Fatal(err)
	}
	size, err := obj.MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}
	return len(size)
}

func kustomizationNumber(i int) string { return fmt.Sprintf("application-%04d", i) }

func commitNumber(n int) string { return fmt.Sprintf("%040x", n+1) }

// writeNumber writes the i-th Kustomization's status at the n-th commit.
func (s *scene) writeNumber(ctx context.Context, i, n int) error {
	name, commit := kustomizationNumber(i), commitNumber(n)
	obj := &unstructured.Unstructured{}
	obj.SetGeneration(1)
	status := applied(obj, commit)
	now := time.Now().UTC().Format(time.RFC3339)
	entries, history := make([]any, inventoryEntries), make([]any, 5)
	kinds := []string{"apps_Deployment", "_Service", "_ConfigMap", "networking.k8s.io_NetworkPolicy", "policy_PodDisruptionBudget"}
	for e := range entries {
		group, kind, _ := strings.Cut(kinds[e%len(kinds)], "_")
		entries[e] = map[string]any{"id": fmt.Sprintf("%s_%s-component-%02d_%s_%s", name, name, e, group, kind), "v": "v1"}
	}
	for h := range history {
		history[h] = map[string]any{
			"digest": fmt.Sprintf("sha256:%064x", h), "firstReconciled": now, "lastReconciled": now, "lastReconciledDuration": "1.259946794s",
			"lastReconciledStatus": "ReconciliationSucceeded", "totalReconciliations": 42, "metadata": map[string]any{"revision": revision(commitNumber(h))},
		}
	}
	status["inventory"], status["history"] = map[string]any{"entries": entries}, history
	status["conditions"] = append(status["conditions"].([]any), map[string]any{
		"type": "Healthy", "status": "True", "reason": "Succeeded", "observedGeneration": 1, "lastTransitionTime": now, "message": "Health check passed in 1.15s",
	})
	return s.patch(ctx, kustomizations, s.namespace, name, map[string]any{"status": status}, "status")
}

// watched is a process whose memory and processor time are read.
type watched struct{ *process }

// startYardstick builds and runs the bare informer.
func startYardstick(b *testing.B, c *cluster) watched {
	b.Helper()
	path := filepath.Join(scratchFolder(), "yardstick")
	cmd := exec.Command("go", "build", "-tags", "e2e", "-trimpath", "-ldflags", "-s -w", "-o", path, "./yardstick")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("building the yardstick: %v: %s", err, out)
	}
	kubeconfig, err := c.kubeconfig(c.admin, "yardstick", "default")
	if err != nil {
		b.Fatal(err)
	}
	p, err := start(program{name: c.name + "-yardstick", path: path, env: []string{"KUBECONFIG=" + kubeconfig}})
	if err != nil {
		b.Fatal(err)
	}
	eventually(b, "the yardstick is synced", func() error {
		log, err := os.ReadFile(p.log)
		if err == nil && !bytes.Contains(log, []byte("\nsynced ")) {
			err = errors.New("it has not said so")
		}
		return err
	})
	return watched{p}
}

// report looks at the process for two windows: one in which nothing happens,
// and one in which every Kustomization is written once.
func (w watched) report(b *testing.B, prefix string, s *scene, n int) {
	b.Helper()
	idle := w.load(b, func() { wait(b, idleWindow) })
	b.ReportMetric(w.memory(b, "VmRSS"), prefix+"rss-MiB")
	b.ReportMetric(w.memory(b, "VmHWM"), prefix+"peak-MiB")
	b.ReportMetric(idle, prefix+"millicores")

	again := time.NewTicker(changeWindow / time.Duration(n))
	defer again.Stop()
	changing := w.load(b, func() {
		for i := range n {
			if err := s.writeNumber(b.Context(), i, i%7+1); err != nil {
				b.Fatal(err)
			}
			<-again.C
		}
	})
	b.ReportMetric(changing, prefix+"changing-millicores")
	b.ReportMetric(w.memory(b, "VmRSS"), prefix+"changing-rss-MiB")
}

// wait lets time pass, for a measurement over a window.
func wait(b *testing.B, d time.Duration) {
	b.Helper()
	select {
	case <-time.After(d):
	case <-b.Context().Done():
	}
}

// load is how much of a processor the process used meanwhile, in thousandths.
func (w watched) load(b *testing.B, meanwhile func()) float64 {
	b.Helper()
	began, before := time.Now(), w.used(b)
	meanwhile()
	return float64(w.used(b)-before) / float64(time.Since(began)) * 1000
}

// used is the processor time that the process has had.
func (w watched) used(b *testing.B) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.pid()))
	if err != nil {
		b.Fatal(err)
	}
	// pid (name) state and then the rest; user and system time are the 14th and
	// 15th field, in hundredths of a second.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		b.Fatal(err)
	}
	system, err := strconv.Atoi(fields[12])
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// memory reads a line of the process's status, in MiB.
func (w watched) memory(b *testing.B, line string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.pid()))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), line+":")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) / 1024
}

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// controllers are the programs of one reconciler, in the order of their start.
type controllers []*process

func (c controllers) stop() error {
	var errs []error
	for i := len(c) - 1; i >= 0; i-- {
		errs = append(errs, c[i].stop())
	}
	return errors.Join(errs...)
}

// moduleFiles returns files of the module that a program is built from; its
// custom resources lie there.
func moduleFiles(program, module string, patterns ...string) ([]string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = filepath.Join("programs", program)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOTOOLCHAIN=local")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("finding the files of %s: %w", module, err)
	}
	var found struct{ Dir, Error string }
	if err := json.Unmarshal(out, &found); err != nil || found.Error != "" || found.Dir == "" {
		return nil, fmt.Errorf("finding the files of %s: %s", module, out)
	}
	var files []string
	for _, pattern := range patterns {
		matches, err := filepath.Glob(filepath.Join(found.Dir, pattern))
		if err != nil {
			return nil, err
		}
		if len(matches) == 0 {
			return nil, fmt.Errorf("%s has no %s", module, pattern)
		}
		files = append(files, matches...)
	}
	return files, nil
}

// installFlux brings Flux' custom resources.
func (c *cluster) installFlux(ctx context.Context) error {
	for program, module := range map[string]string{
		"source-controller": "github.com/fluxcd/source-controller", "kustomize-controller": "github.com/fluxcd/kustomize-controller",
	} {
		files, err := moduleFiles(program, module, "config/crd/bases/*.yaml")
		if err != nil {
			return err
		}
		if err := c.applyCRDs(ctx, files...); err != nil {
			return fmt.Errorf("installing Flux: %w", err)
		}
	}
	return nil
}

// startFlux runs Flux' controllers against the cluster.
func (c *cluster) startFlux(ctx context.Context) (flux controllers, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, flux.stop())
		}
	}()
	if err := c.installFlux(ctx); err != nil {
		return nil, err
	}
	if err := c.applyText(ctx, "{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}"); err != nil {
		return nil, err
	}
	kubeconfig, err := c.kubeconfig(c.admin, "flux", "flux-system")
	if err != nil {
		return nil, err
	}
	storage, err := newFolder("flux-storage")
	if err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(5)
	if err != nil {
		return nil, err
	}
	for _, p := range []program{
		{name: "source-controller", args: []string{"--storage-path=" + storage, "--storage-addr=" + addresses[0], "--storage-adv-addr=" + addresses[0]}},
		// The default of half a minute is for clusters, not for tests.
		{name: "kustomize-controller", args: []string{"--requeue-dependency=1s"}},
	} {
		i := 1 + 2*len(flux)
		if p.path, err = built("e2e", p.name); err != nil {
			return flux, err
		}
		p.args = append(p.args, "--metrics-addr="+addresses[i], "--health-addr="+addresses[i+1], "--events-addr=",
			"--enable-leader-election=false", "--watch-all-namespaces=true", "--log-level=info")
		p.env = []string{"KUBECONFIG=" + kubeconfig, "RUNTIME_NAMESPACE=flux-system"}
		proc, err := start(p)
		if err != nil {
			return flux, err
		}
		flux = append(flux, proc)
	}
	return flux, nil
}

// argoNamespace is where Argo CD lives.
const argoNamespace = "argocd"

// argoSettings are what Argo CD reads from its own namespace.
const argoSettings = `
apiVersion: v1
kind: Namespace
metadata: {name: argocd}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
data: {timeout.reconciliation: 10s, timeout.reconciliation.jitter: 0s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-rbac-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cmd-params-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
stringData: {server.secretkey: e2e, admin.password: x}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: argocd}
spec:
  sourceRepos: ["*"]
  destinations: [{namespace: "*", server: "*"}]
  clusterResourceWhitelist: [{group: "*", kind: "*"}]
`

// installArgoCD brings Argo CD's custom resources and its settings.
func (c *cluster) installArgoCD(ctx context.Context) error {
	files, err := moduleFiles("argocd", "github.com/argoproj/argo-cd/v3",
		"manifests/crds/application-crd.yaml", "manifests/crds/appproject-crd.yaml", "manifests/crds/applicationset-crd.yaml")
	if err != nil {
		return err
	}
	if err := c.applyCRDs(ctx, files...); err != nil {
		return fmt.Errorf("installing Argo CD: %w", err)
	}
	return c.applyText(ctx, argoSettings)
}

// startArgoCD runs Redis, Argo CD's repo-server and its application controller
// against the cluster.
func (c *cluster) startArgoCD(ctx context.Context) (argo controllers, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, argo.stop())
		}
	}()
	redis, err := installed("redis-server", "Argo CD keeps its cache there: install Debian's redis-server, or run `make e2e-programs` as root")
	if err != nil {
		return nil, err
	}
	path, err := built("e2e", "argocd")
	if err != nil {
		return nil, err
	}
	if err := c.installArgoCD(ctx); err != nil {
		return nil, err
	}
	programs, err := c.argoPrograms(redis, path)
	if err != nil {
		return nil, err
	}
	for _, p := range programs {
		proc, err := start(p)
		if err != nil {
			return argo, err
		}
		argo = append(argo, proc)
	}
	return argo, nil
}

// argoPrograms says how each part of Argo CD is run outside of a cluster.
func (c *cluster) argoPrograms(redis, path string) ([]program, error) {
	kubeconfig, err := c.kubeconfig(c.admin, "argocd", argoNamespace)
	if err != nil {
		return nil, err
	}
	folder, err := newFolder("argocd")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"tls", "ssh", "gpg-source", "gpg-keys", "plugins"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
			return nil, err
		}
	}
	addresses, err := freeAddresses(4)
	if err != nil {
		return nil, err
	}
	port := make([]string, len(addresses))
	for i, address := range addresses {
		if _, port[i], err = net.SplitHostPort(address); err != nil {
			return nil, err
		}
	}
	env := []string{
		"KUBECONFIG=" + kubeconfig, "ARGOCD_FAKE_IN_CLUSTER=true", "HOSTNAME=e2e-0",
		"ARGOCD_TLS_DATA_PATH=" + filepath.Join(folder, "tls"), "ARGOCD_SSH_DATA_PATH=" + filepath.Join(folder, "ssh"),
		"ARGOCD_GPG_DATA_PATH=" + filepath.Join(folder, "gpg-source"), "ARGOCD_GNUPGHOME=" + filepath.Join(folder, "gpg-keys"), "ARGOCD_GPG_ENABLED=false",
		"ARGOCD_PLUGINSOCKFILEPATH=" + filepath.Join(folder, "plugins"), "ARGOCD_ASK_PASS_SOCK=" + filepath.Join(folder, "ask.sock"),
		"ARGOCD_RECONCILIATION_TIMEOUT=10s", "ARGOCD_RECONCILIATION_JITTER=0s",
	}
	return []program{
		{name: "redis", path: redis, args: []string{"--bind", "127.0.0.1", "--port", port[0], "--save", "", "--appendonly", "no"}},
		{
			name: "argocd-repo-server", path: path, env: append([]string{"ARGOCD_BINARY_NAME=argocd-repo-server"}, env...),
			args: []string{
				"--loglevel", "info", "--address", "127.0.0.1", "--port", port[1],
				"--metrics-address", "127.0.0.1", "--metrics-port", port[2], "--redis", addresses[0],
			},
		},
		{
			name: "argocd-application-controller", path: path, env: append([]string{"ARGOCD_BINARY_NAME=argocd-application-controller"}, env...),
			args: []string{
				"--loglevel", "info", "--namespace", argoNamespace, "--redis", addresses[0], "--repo-server", addresses[1],
				"--metrics-port", port[3], "--app-resync", "10", "--status-processors", "4", "--operation-processors", "4",
			},
		},
	}, nil
}

package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"

	"k8s.io/klog/v2"

	"github.com/landfall-hub/landfall/internal/command"
)

const usage = `landfall-agent tells a Landfall hub what Flux and Argo CD do on a cluster. On a
host without Kubernetes it follows folders of Git repositories, and applies them
itself: "host" in the settings file.

  landfall-agent run [flags]            run the agent
  landfall-agent config check [flags]   read the settings, say what is wrong, run nothing
  landfall-agent version

Flags of run and config check; each is also LANDFALL_… in the environment:
  --config FILE                settings (YAML)
  --cluster NAME               name of the cluster, as the hub is to know it
  --memberships ENV/TYPE,…     environments and cluster types that it belongs to
  --labels KEY=VALUE,…         labels of the cluster
  --hub URL                    the hub
  --token-file FILE            the agent's token (LANDFALL_TOKEN: the token itself)
  --ca-file FILE               certificates to trust for the hub, beside the system's
  --heartbeat-interval TIME    how often the hub hears of the agent at least (30s)
  --kubeconfig FILE            how to reach the API server; in a cluster it is known
  --context NAME               context of the kubeconfig
  --discovery-interval TIME    how often to look for kinds that came or went (30s)
  --flux=false, --argocd=false leave one of them out
  --argocd-namespace NAME      where Argo CD runs (argocd)
  --listen HOST:PORT           address of health and metrics (127.0.0.1:8081)
  --log-level LEVEL            debug, info, warn or error (info)
  --log-format FORMAT          text or json (text)
`

// Program is the command line around the agent, with what only a main function
// may read.
type Program command.Program

// Main runs a command and returns the exit code: 0 done, 1 failed, 2 usage.
func (p Program) Main(ctx context.Context) int {
	return command.Service[Config]{
		Name: "landfall-agent", Run: "run", Usage: usage, Settings: configuration, Serve: runService, Check: checkSettings,
	}.Main(ctx, command.Program(p))
}

func runService(ctx context.Context, p command.Program, config Config) error {
	if p.Env("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	log := newLogger(p.Stderr, config.Log)
	klog.SetSlogLogger(log.With("part", "client-go"))
	a, err := New(Options{Config: config, Version: p.Version, Log: log, Env: p.Env})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// gcPercent is how far the heap may grow before it is cleaned, where the
// environment does not say: an agent stands on every cluster and idles there,
// so that memory is dearer to it than processor time. There is no limit: one
// that a large cluster exceeds would cost it all of its time.
const gcPercent = 50

func newLogger(to io.Writer, c LogConfig) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level}
	if c.Format == formatJSON {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

// checkSettings looks whether hub and API server could be asked, without asking.
func checkSettings(p command.Program, config Config) (string, error) {
	if _, err := newHubClient(config.Hub, p.Version); err != nil {
		return "", err
	}
	if config.Kubernetes.Kubeconfig != "" {
		if _, err := restConfig(config.Kubernetes); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("the settings are good: report %s of the cluster %s to %s",
		strings.Join(config.reported(), ", "), config.Cluster.Name, config.Hub.URL), nil
}

// Command landfall-agent tells a hub what Flux and Argo CD do on a cluster.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/landfall-hub/landfall/agent"
)

// version is set by the build.
var version = "unknown"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return agent.Program{Args: os.Args[1:], Env: os.Getenv, Stdout: os.Stdout, Stderr: os.Stderr, Version: version}.Main(ctx)
}

// Command landfall-hub is the service: it stores what agents report and
// answers where a commit has landed.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/landfall-hub/landfall/hub"
)

// version is set by the build.
var version = "unknown"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return hub.Program{Args: os.Args[1:], Env: os.Getenv, Stdout: os.Stdout, Stderr: os.Stderr, Version: version}.Main(ctx)
}

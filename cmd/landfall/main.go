// Command landfall asks a Landfall hub what has landed where, and waits until a
// commit has. `landfall --help` lists its commands and exit codes.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/landfall-hub/landfall/internal/cli"
)

// version is set by the build.
var version string

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks the command to end; a second one ends it at once.
	context.AfterFunc(ctx, stop)
	return cli.Main(ctx, version, os.Args[1:], os.Getenv, cli.FileStreams(os.Stdin, os.Stdout, os.Stderr))
}

// Command demo is what `make run` shows: it starts a hub with its own
// ClickHouse, registers a small simulated fleet through the public API, lets a
// commit roll out over it, and says what to try next. Ctrl-C ends all of it and
// leaves nothing behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

func main() { os.Exit(run()) }

func run() int {
	listen := flag.String("listen", "127.0.0.1:8080", "address of the hub")
	bin := flag.String("bin", "bin", "folder of the programs that `make build` made")
	once := flag.Bool("once", false, "end after the rollout instead of waiting for Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := demo(ctx, *listen, *bin, *once)
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	return 0
}

func demo(ctx context.Context, listen, bin string, once bool) error {
	dir, err := os.MkdirTemp("", "landfall-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	sayf("starting a hub with its own ClickHouse in %s …", dir)
	h, err := startHub(ctx, filepath.Join(bin, "landfall-hub"), listen, dir)
	if err != nil {
		return err
	}
	defer h.stop()
	sayf("the hub is ready at %s", h.url)
	client, err := hubclient.New(hubclient.Options{URL: h.url, UserAgent: "landfall-demo"})
	if err != nil {
		return err
	}
	f, err := newFleet(ctx, client)
	if err != nil {
		return err
	}
	sayf("registered %d clusters: 8 drones, 4 large", len(f.clusters))
	if err := tell(ctx, client, f, bin, h.url, once); err != nil {
		return err
	}
	if once {
		return nil
	}
	return f.keepAlive(ctx, h.exited)
}

// tell runs the story: everything at one commit, then the next one rolls out
// and fails on a cluster.
func tell(ctx context.Context, client *hubclient.Client, f *fleet, bin, url string, once bool) error {
	for i := range f.clusters {
		if err := f.report(ctx, i, schema.StatusSuccess, oldCommit, oldCommit, ""); err != nil {
			return err
		}
	}
	if err := show(ctx, client, "every cluster runs commit "+oldCommit[:7], oldCommit); err != nil {
		return err
	}
	sayf("\ncommit %s lands on the branch dev and rolls out …", newCommit[:7])
	if err := show(ctx, client, "nothing has it yet", newCommit); err != nil {
		return err
	}
	for i := range f.clusters {
		if err := f.report(ctx, i, schema.StatusInProgress, newCommit, oldCommit, "Reconciliation in progress"); err != nil {
			return err
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
		status, applied, message := schema.StatusSuccess, newCommit, ""
		if i == sick {
			status, applied, message = schema.StatusFailure, oldCommit, "health check failed after 30s: Deployment/hello/web status: 'InProgress'"
		}
		if err := f.report(ctx, i, status, newCommit, applied, message); err != nil {
			return err
		}
		if i%4 == 3 {
			if err := show(ctx, client, fmt.Sprintf("%d clusters have tried", i+1), newCommit); err != nil {
				return err
			}
		}
	}
	if once {
		return nil
	}
	sayf(`
Try it, in another terminal (everything here runs until Ctrl-C):

  %[1]s/landfall gate --repo %[2]s --ref dev --path drone --commit %[3]s --no-wait
      may the commit go on? It says which cluster failed, and why (exit code 1)
  %[1]s/landfall gate --repo %[2]s --ref dev --path drone --commit %[3]s --no-wait --max-failures 1 --min-compliant 80%%
      the same with a failure budget (exit code 0)
  %[1]s/landfall status            every reconciler with its commit and status
  %[1]s/landfall clusters          who reports, and when each was last heard of
  curl '%[4]s/api/v1/compliance?repo=%[2]s&ref=dev&path=drone&commit=%[3]s'
  curl %[4]s/openapi.json          the whole API`, bin, repo, newCommit, url)
	if url != "http://127.0.0.1:8080" {
		sayf("\n(first: export LANDFALL_HUB=%s)", url)
	}
	sayf("\n%s is repaired in one minute; ask again then.", f.clusters[sick].name)
	return nil
}

// show asks the gate and prints a line.
func show(ctx context.Context, client *hubclient.Client, what, commit string) error {
	v, err := client.Compliance(ctx, hubclient.Question{Repo: repo, Ref: "dev", Commit: commit}, 0)
	if err != nil {
		return err
	}
	c := v.Counts
	line := fmt.Sprintf("%-36s gate: %-8s %2d of %2d compliant", what, v.State, c.Compliant, c.Total)
	if len(v.Unfinished) > 0 {
		u := v.Unfinished[0]
		line += fmt.Sprintf("; %s is %s: %s", u.Cluster, u.Verdict, u.Reason)
	}
	sayf("%s", line)
	return nil
}

func sayf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

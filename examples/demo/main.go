// Command demo is what `make run` shows: a control plane in Git, a hub with its
// own ClickHouse that plans it and writes the platform's GitOps repository, and a
// dozen hosts whose agents follow what is assigned to them and run an apply
// command. A version lands and the gate passes; one host cannot take the next one
// and the gate says why; the fix lands; a ConfigMap is edited and reaches the hosts
// that it is for. Ctrl-C ends all of it and leaves nothing behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

// Children are told to end with the thread that started them (see process.go):
// the first one lives as long as the program.
func init() { runtime.LockOSThread() }

func main() { os.Exit(run()) }

// settings are where things are.
type settings struct {
	listen, bin, example string
}

func run() int {
	var s settings
	flag.StringVar(&s.listen, "listen", "127.0.0.1:8080", "address of the hub")
	flag.StringVar(&s.bin, "bin", "bin", "folder of the programs that `make build` made")
	flag.StringVar(&s.example, "example", filepath.Join("examples", "control-plane"), "folder of the repositories' content")
	withParent := flag.Bool("with-parent", false, "end when the program that started this one ends, even by force")
	flag.Parse()
	if *withParent {
		if err := endWithParent(); err != nil {
			fmt.Fprintln(os.Stderr, "demo:", err)
			return 1
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := demo(ctx, s)
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	return 0
}

// demo makes everything, tells the story and takes everything away again.
func demo(ctx context.Context, s settings) (err error) {
	dir, err := os.MkdirTemp("", "landfall-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	programs, err := newPrograms(s.bin, filepath.Join(dir, "logs"))
	if err != nil {
		return err
	}
	defer programs.stop()

	repos, err := newRepos(ctx, s.example, filepath.Join(dir, "repos"))
	if err != nil {
		return err
	}
	sayf("made a control plane and five other Git repositories: %s", repos.dir)
	sayf("starting a hub with its own ClickHouse …")
	url, err := startHub(ctx, programs, s.listen, filepath.Join(dir, "hub"), repos)
	if err != nil {
		return err
	}
	sayf("the hub is ready at %s", url)
	t, err := newStory(url, repos, programs, dir)
	if err != nil {
		return err
	}
	assigned, err := t.planned(ctx)
	if err != nil {
		return err
	}
	sayf("it planned the environment dev, and wrote %s (commit %.7s):", platform, assigned[0].GitOpsCommit)
	for i := range assigned {
		sayf("  %s", nameOf(&assigned[i]))
	}
	hosts := newHosts()
	if err := hosts.start(programs, url, repos, assigned, dir); err != nil {
		return err
	}
	sayf("started %d host agents: 8 drones, 4 large; their logs are in %s", len(hosts), programs.logs)
	if err := t.tell(ctx); err != nil {
		return err
	}
	t.suggest()
	return programs.wait(ctx)
}

func sayf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

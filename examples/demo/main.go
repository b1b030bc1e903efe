// Command demo is what `make run` shows: two Git repositories, a hub with its
// own ClickHouse, and a dozen hosts whose agents follow the repositories and
// run an apply command. A version lands and the gate passes; one host cannot
// take the next one and the gate says why; the fix lands. Ctrl-C ends all of it
// and leaves nothing behind.
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
	listen, bin, gitops string
	once                bool
}

func run() int {
	var s settings
	flag.StringVar(&s.listen, "listen", "127.0.0.1:8080", "address of the hub")
	flag.StringVar(&s.bin, "bin", "bin", "folder of the programs that `make build` made")
	flag.StringVar(&s.gitops, "gitops", filepath.Join("examples", "gitops"), "folder of the repositories' content")
	flag.BoolVar(&s.once, "once", false, "end after the story instead of waiting for Ctrl-C")
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

	repos, err := newRepos(ctx, s.gitops, filepath.Join(dir, "repos"))
	if err != nil {
		return err
	}
	sayf("made two Git repositories, branch dev: %s", repos.dir)
	sayf("starting a hub with its own ClickHouse …")
	url, err := startHub(ctx, programs, s.listen, filepath.Join(dir, "hub"), repos)
	if err != nil {
		return err
	}
	sayf("the hub is ready at %s", url)
	hosts := newHosts()
	if err := hosts.start(programs, url, repos, s.gitops, dir); err != nil {
		return err
	}
	sayf("started %d host agents: 8 drones, 4 large; their logs are in %s", len(hosts), programs.logs)

	t, err := newStory(url, repos, programs)
	if err != nil {
		return err
	}
	fix, err := t.tell(ctx)
	if err != nil || s.once {
		return err
	}
	t.suggest(fix)
	return programs.wait(ctx)
}

func sayf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// Package bench measures the running hub through its public API, and bare
// ClickHouse beside it: figures come with the ratio to that yardstick, taken in
// the same run on the same machine. Nothing here asserts a time.
package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/engine"
)

// service is a landfall-hub process on a data folder.
type service struct {
	cmd *exec.Cmd
	url string
	dir string
	// startup is how long it took from the start to ready.
	startup time.Duration
}

var readyLine = regexp.MustCompile(`msg=ready url=(\S+)`)

// binary is a program that `make build` left in bin/.
func binary(b testing.TB, name string) string {
	b.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", name))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		b.Skipf("%s is missing: run `make build` first", path)
	}
	return path
}

func startHub(b testing.TB, dir string) *service {
	b.Helper()
	s := &service{dir: dir}
	s.cmd = exec.Command(binary(b, "landfall-hub"), "serve", "--listen", "127.0.0.1:0", "--data-dir", dir)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	if err := s.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	var log strings.Builder
	for lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
			s.url, s.startup = m[1], time.Since(begin)
			break
		}
	}
	if s.url == "" {
		b.Fatalf("the hub did not start:\n%s", log.String())
	}
	go io.Copy(io.Discard, stderr) // nobody reads on
	return s
}

func (s *service) stop(b testing.TB) {
	b.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		b.Fatalf("the hub did not stop well: %v", err)
	}
}

// memory is what the hub process has resident, and had at most, in MiB.
func (s *service) memory(b testing.TB) (now, most float64) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	read := func(key string) float64 {
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, key+":"); ok {
				kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64) // zero then
				return kb / 1024
			}
		}
		return 0
	}
	return read("VmRSS"), read("VmHWM")
}

// bareEngine starts landfall-engine alone on a hub's data folder, for the yardsticks.
func bareEngine(b testing.TB, dir string) (url string, stop func()) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	p, err := engine.StartProcess(ctx, engine.ProcessOptions{
		Binary: binary(b, "landfall-engine"), Path: filepath.Join(dir, "clickhouse"), Listen: "127.0.0.1:0",
		Password: "bench", LockWait: 30 * time.Second, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + engine.User + ":bench@" + p.Address() + "/landfall", func() { p.Stop(30 * time.Second) }
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 256}}

// statement is how long ClickHouse took on average for a family of statements,
// decoding included, in milliseconds, by the hub's own metrics.
func (s *service) statement(b testing.TB, family string) float64 {
	b.Helper()
	resp, err := client.Get(s.url + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	sum, count := 0.0, 0.0
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		for name, into := range map[string]*float64{"sum": &sum, "count": &count} {
			if rest, ok := strings.CutPrefix(lines.Text(), "landfall_store_statement_duration_seconds_"+name+`{family="`+family+`"} `); ok {
				*into, _ = strconv.ParseFloat(rest, 64) // zero then
			}
		}
	}
	if count == 0 {
		return 0
	}
	return sum / count * 1000
}

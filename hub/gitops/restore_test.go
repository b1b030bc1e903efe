package gitops

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

// BenchmarkRestore starts on a mirror of 100,000 commits, with the copy of its
// graph and without it.
func BenchmarkRestore(b *testing.B) {
	bare, ids := imported(b, mainline(100_000))
	dir := filepath.Join(b.TempDir(), "mirror")
	source, err := gitrepo.Open(gitrepo.Options{URL: bare, Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	log, metrics := slog.New(slog.DiscardHandler), newMetrics(nil)
	if _, err := newMirror("bench", nil, source, log, metrics).fetch(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"Copy", "Mirror"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if name == "Mirror" {
					if err := os.Remove(filepath.Join(dir, graphFile)); err != nil {
						b.Fatal(err)
					}
				}
				m := newMirror("bench", nil, source, log, metrics)
				if _, err := m.restore(b.Context()); err != nil {
					b.Fatal(err)
				}
				if n := len(m.current.Load().graph.ids); n != len(ids) {
					b.Fatalf("%d commits, want %d", n, len(ids))
				}
			}
		})
	}
}

package catalog

import (
	"fmt"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// Thousands of descriptors in as many files, and one that changes.
func TestManyDescriptors(t *testing.T) {
	a := newApps(t)
	const many = 3000
	files := map[string]string{}
	for i := range many {
		files[fmt.Sprintf("d%02d/%d.yaml", i%100, i)] = a.says(fmt.Sprint("t", i), "1").text()
	}
	first := a.commit(files)
	b := a.bench()
	b.start()
	second := a.commit(map[string]string{"d07/7.yaml": a.says("t7", "2").text()})
	b.again()
	x := b.catalog.Index()
	if n := len(x.Targets()); n != many {
		t.Errorf("%d targets, want %d", n, many)
	}
	expect(t, "the one that changed", versions(x, a.endpoint("t7"), first, second), "1 2")
	expect(t, "another", versions(b.start().Index(), a.endpoint("t2999"), first, second), "1 1")
	if got := b.rows("SELECT count() FROM assignments FINAL"); got[0] != fmt.Sprint(many+1) {
		t.Errorf("%s assignments", got[0])
	}
}

// BenchmarkCatalog reads a repository of 100,000 commits from the beginning, after
// one more commit, and after a restart; a thousand descriptors, one of which
// changes with every tenth commit.
func BenchmarkCatalog(b *testing.B) {
	for _, commits := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(commits), func(b *testing.B) {
			a := newApps(b)
			files := map[string]string{}
			for i := range 1000 {
				files[fmt.Sprintf("d%d/%d.yaml", i%10, i)] = a.says(fmt.Sprint("t", i), "0").text()
			}
			a.tip = []int{a.stream.Commit(nil, files)}
			for i := 1; i < commits; i++ {
				change := map[string]string{fmt.Sprintf("src/%d/%d", i%10, i%1000): fmt.Sprint(i)}
				if i%10 == 0 {
					n := i / 10 % 1000
					change = map[string]string{fmt.Sprintf("d%d/%d.yaml", n%10, n): a.says(fmt.Sprint("t", n), fmt.Sprint(i)).text()}
				}
				a.tip = []int{a.stream.Commit(a.tip, change)}
			}
			a.push("main", a.tip[0])
			x := a.bench()
			began := time.Now()
			mirrors := x.fetched()
			figures := map[string]time.Duration{"fetch-ms": time.Since(began)}
			c, err := New(Options{Mirrors: mirrors, Reader: x.store, Writer: x.store, Dir: x.names, Log: x.log()})
			if err != nil {
				b.Fatal(err)
			}
			x.catalog = c
			began = time.Now()
			x.update()
			figures["cold-ms"] = time.Since(began)

			began = time.Now()
			if c, err = New(Options{Mirrors: mirrors, Reader: x.store, Writer: x.store, Dir: x.names, Log: x.log()}); err != nil {
				b.Fatal(err)
			}
			if err := c.Load(b.Context()); err != nil {
				b.Fatal(err)
			}
			x.catalog = c
			x.update()
			figures["restart-ms"] = time.Since(began)

			n := 0
			var spent time.Duration
			for b.Loop() {
				b.StopTimer()
				n++
				a.commit(map[string]string{"d7/7.yaml": a.says("t7", fmt.Sprint("v", n)).text()})
				c.opts.Mirrors = x.fetched()
				b.StartTimer()
				began := time.Now()
				x.update()
				spent += time.Since(began)
			}
			figures["one-commit-ms"] = spent / time.Duration(n)
			for name, took := range figures {
				b.ReportMetric(float64(took.Microseconds())/1000, name)
			}
			one, ok := c.Index().At(schema.Endpoint{Repo: a.endpoint("").Repo, Ref: "main", Path: "t7"})
			if v, _, is := c.Index().Scheduled(one); !ok || !is || v.Version != fmt.Sprint("v", n) {
				b.Errorf("scheduled is %+v", v)
			}
		})
	}
}

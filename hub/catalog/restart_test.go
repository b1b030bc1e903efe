package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/landfall-hub/landfall/hub/record"
)

// faulty is a store that fails now and then.
type faulty struct {
	Writer
	left atomic.Int64
}

var errAway = errors.New("ClickHouse is away")

func (b *faulty) WriteNames(ctx context.Context, n record.Names) error {
	if b.left.Add(-1) < 0 { // after it has taken a part
		n.Commits, n.Chains = nil, nil
		return errors.Join(b.Writer.WriteNames(ctx, n), errAway)
	}
	return b.Writer.WriteNames(ctx, n)
}

// When ClickHouse goes away in the middle of a history, or the hub does, nothing
// is lost and nothing is there twice; what is in the tables of a commit is whole
// at any moment.
func TestAwayInTheMiddle(t *testing.T) {
	a := newApps(t)
	const commits, batch = 600, 1000 // more than one: two rows a commit
	for i := range commits {
		a.tip = []int{a.stream.Commit(a.tip, map[string]string{"a.yaml": a.says("one", fmt.Sprint(i)).text(), fmt.Sprint("x", i%7): fmt.Sprint(i)})}
	}
	a.push("main", a.tip[0])
	b := a.bench()
	c, err := New(Options{Mirrors: b.fetched(), Reader: b.store, Writer: b.store, Dir: b.names, Log: b.log(), batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	store := &faulty{Writer: b.store}
	for round := 0; ; round++ {
		store.left.Store(int64(round % 3))
		c.opts.Writer = store
		f := c.followers[0]
		err := f.update(t.Context())
		if n := b.rows("SELECT count() FROM commits AS c FINAL WHERE (c.chain, c.position) NOT IN (SELECT chain, position FROM assignments)"); n[0] != "0" {
			t.Fatalf("round %d: %s commits have no assignments", round, n[0])
		}
		if err == nil {
			break
		}
		if !errors.Is(err, errAway) || round > 20 {
			t.Fatalf("round %d: %v", round, err)
		}
		if round%2 == 1 { // the hub goes, too
			if c, err = New(Options{Mirrors: c.opts.Mirrors, Reader: b.store, Writer: b.store, Dir: b.names, Log: b.log(), batch: batch}); err != nil {
				t.Fatal(err)
			}
			if err := c.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := b.rows("SELECT count(), uniqExact(position), max(position) FROM assignments FINAL"); got[0] != fmt.Sprintf("%d\t%[1]d\t%d", commits, commits-1) {
		t.Errorf("assignments: %s", got[0])
	}
	if got := b.rows("SELECT count(), max(chain) FROM commits FINAL"); got[0] != fmt.Sprintf("%d\t0", commits) {
		t.Errorf("commits: %s", got[0])
	}
	for i := 0; i < commits; i += 29 {
		expect(t, fmt.Sprint("commit ", i), versions(c.Index(), a.endpoint("one"), a.ids[i]), fmt.Sprint(i))
	}
}

// A restart reads what was written, not the history: also where the copy is lost
// or of something else, it says the same.
func TestRestart(t *testing.T) {
	a := newApps(t)
	first := a.commit(map[string]string{"a.yaml": a.says("one", "1").text()})
	second := a.commit(map[string]string{"a.yaml": a.says("one", "2").text()})
	b := a.bench()
	b.start()
	writes := func() string { return b.rows("SELECT max(version) FROM commits")[0] }
	before := writes()
	for name, spoil := range map[string]func(){
		"with the copy":      func() {},
		"without it":         func() { b.names = t.TempDir() },
		"with a damaged one": func() { damage(t, b.names) },
	} {
		spoil()
		x := b.start().Index()
		expect(t, name, versions(x, a.endpoint("one"), first, second), "1 2")
		if got := writes(); got != before {
			t.Errorf("%s: commits were written again", name)
		}
	}
	third := a.commit(map[string]string{"a.yaml": ""})
	expect(t, "after another commit", versions(b.start().Index(), a.endpoint("one"), first, second, third), "1 2 -")
	a.tip = []int{0} // further back than this hub can remember
	fourth := a.commit(map[string]string{"README": "x"})
	b.again()
	expect(t, "forced to before the restart", versions(b.catalog.Index(), a.endpoint("one"), first, second, third, fourth), "1 2 - 1")
	a.tip = []int{3}
	fifth := a.commit(map[string]string{"b.yaml": a.says("one", "3").text()})
	sixth := a.commit(map[string]string{"b.yaml": ""}) // what is left takes over
	b.again()
	expect(t, "and on", versions(b.catalog.Index(), a.endpoint("one"), first, fifth, sixth), "1 3 1")
}

func damage(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.WriteFile(dir+"/"+f.Name(), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

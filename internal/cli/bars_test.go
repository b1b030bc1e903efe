package cli

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/landfall-hub/landfall/schema"
)

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestBarsGolden draws bars for terminals of several kinds.
func TestBarsGolden(t *testing.T) {
	mixed := verdict(schema.Waiting, func(v *schema.Verdict) {
		v.Counts = schema.Counts{Total: 1000, Compliant: 700, Failed: 1, InProgress: 99, Pending: 150, Suspended: 20, Unknown: 25, UnknownLineage: 5}
		v.ByClusterType = map[string]schema.TypeCount{"drone": {Total: 899, Compliant: 600}, "large": {Total: 100, Compliant: 100}, "": {Total: 1}}
	})
	many := verdict(schema.Waiting, func(v *schema.Verdict) {
		v.ByClusterType = map[string]schema.TypeCount{}
		for i := range 12 {
			v.ByClusterType[fmt.Sprintf("a-type-with-a-very-long-name-%02d", i)] = schema.TypeCount{Total: 12, Compliant: i}
		}
	})
	nobody := verdict(schema.Waiting, func(v *schema.Verdict) {
		v.Counts, v.ByClusterType, v.Unfinished = schema.Counts{}, nil, nil
	})
	for name, c := range map[string]struct {
		verdict *schema.Verdict
		width   int
		style   style
	}{
		"bars-plain.txt":  {mixed, 80, style{}},
		"bars-colour.txt": {mixed, 80, style{colours: true}},
		"bars-wide.txt":   {mixed, 200, style{}},
		"bars-narrow.txt": {mixed, 24, style{}},
		"bars-many.txt":   {many, 60, style{}},
		"bars-nobody.txt": {nobody, 80, style{}},
	} {
		t.Run(name, func(t *testing.T) {
			lines := drawBars(c.verdict, c.width, c.style)
			golden(t, name, strings.ReplaceAll(strings.Join(lines, "\n"), "\x1b", "ESC")+"\n")
			for _, l := range lines {
				if n := utf8.RuneCountInString(escapes.ReplaceAllString(l, "")); n >= c.width {
					t.Errorf("a line of %d columns on a terminal of %d: %q", n, c.width, l)
				}
			}
		})
	}
}

// TestCells checks the sharing of a bar's cells on random counts.
func TestCells(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		counts := make([]int, 7)
		total := 0
		for i := range counts {
			if r.IntN(2) == 0 {
				counts[i] = r.IntN([]int{2, 10, 100_000}[r.IntN(3)])
			}
			total += counts[i]
		}
		width := 7 + r.IntN(50)
		got := cells(counts, width)
		sum := 0
		for i, n := range got {
			sum += n
			if (n > 0) != (counts[i] > 0) {
				t.Fatalf("cells(%v, %d) = %v: part %d is shown wrongly", counts, width, got, i)
			}
			if d := n*total - counts[i]*width; total > 0 && n > 1 && (d > 7*total || d < -7*total) {
				t.Fatalf("cells(%v, %d) = %v: part %d is far from its share", counts, width, got, i)
			}
		}
		if total > 0 && sum != width || total == 0 && sum != 0 {
			t.Fatalf("cells(%v, %d) = %v: sum %d", counts, width, got, sum)
		}
	}
}

// TestGateTerminal holds all that a gate writes to a terminal, and to things
// that are none.
func TestGateTerminal(t *testing.T) {
	for name, c := range map[string]struct {
		terminal bool
		env      map[string]string
		file     string
	}{
		"terminal":         {true, map[string]string{"TERM": "xterm-256color"}, "gate-terminal.txt"},
		"NO_COLOR":         {true, map[string]string{"TERM": "xterm-256color", "NO_COLOR": "1"}, "gate-nocolor.txt"},
		"dumb":             {true, map[string]string{"TERM": "dumb"}, "gate-plain.txt"},
		"TERM is not set":  {true, nil, "gate-plain.txt"},
		"not a terminal":   {false, map[string]string{"TERM": "xterm-256color"}, "gate-plain.txt"},
		"a pipeline's log": {false, nil, "gate-plain.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := runner{terminal: c.terminal, env: c.env}
				h := newFakeHub(verdict(schema.Waiting))
				defer r.net.serve(h)()
				go func() {
					time.Sleep(1500 * time.Millisecond)
					h.set(verdict(schema.Waiting, func(v *schema.Verdict) {
						v.Counts = schema.Counts{Total: 3, Compliant: 2, Failed: 1}
						v.Unfinished = v.Unfinished[:1]
						v.Unfinished[0].Verdict, v.Unfinished[0].Reason = schema.OutcomeFailed, "Build\x1b[31mFailed"
					}))
					time.Sleep(time.Second)
					h.set(verdict(schema.Passed, func(v *schema.Verdict) {
						v.Currently = []schema.Currently{{Cluster: "drone-01", Reconciler: "Kustomization/flux-system/hello", Status: schema.StatusInProgress, Reason: "Progressing"}}
					}))
				}()
				got := r.run(t.Context(), gateArgs()...)
				wantCode(t, got, exitDone)
				golden(t, c.file, strings.ReplaceAll(got.err+"--- stdout\n"+got.out, "\x1b", "ESC"))
			})
		})
	}
}

// TestVerdictGolden holds the tables at a gate's end.
func TestVerdictGolden(t *testing.T) {
	nobody := func(v *schema.Verdict) {
		v.Counts, v.ByClusterType, v.Unfinished, v.Reason = schema.Counts{}, nil, nil, "zero_targets"
	}
	for name, v := range map[string]*schema.Verdict{
		"verdict-failed.txt":  verdict(schema.Failed),
		"verdict-passed.txt":  verdict(schema.Passed),
		"verdict-nobody.txt":  verdict(schema.Failed, nobody),
		"verdict-default.txt": verdict(schema.Passed, func(v *schema.Verdict) { v.Ref, v.Path = "", "functional-test" }),
		"verdict-near.txt": verdict(schema.Failed, nobody, func(v *schema.Verdict) {
			v.NearMisses = []schema.NearMiss{
				{Cluster: "b", Reconciler: "Kustomization/flux-system/x", Ref: "main", Path: "drone", Why: schema.NearOtherRef},
				{Cluster: "a", Reconciler: "Application/argocd/y", Ref: "refs/tags/v1", Path: "", Why: schema.NearPinned},
				{Cluster: "a", Reconciler: "Kustomization/flux-system/root", Ref: "dev", Path: "apps", Why: schema.NearParentPath},
			}
		}),
		"verdict-many.txt": verdict(schema.Waiting, func(v *schema.Verdict) {
			v.Counts = schema.Counts{Total: 5000, Compliant: 2000, Pending: 2999, Failed: 1}
			v.Unfinished = nil
			for i := range 1000 {
				v.Unfinished = append(v.Unfinished, schema.Unfinished{Cluster: fmt.Sprintf("c-%03d", 999-i), Reconciler: "Kustomization/flux-system/x", Verdict: schema.OutcomePending, Reason: "not fetched"})
			}
			v.Unfinished[500].Verdict = schema.OutcomeFailed
			v.Unfinished[500].Reason = strings.Repeat("a very long reason ", 100)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := writeVerdict(&b, v, style{}, 0); err != nil {
				t.Fatal(err)
			}
			golden(t, name, b.String())
		})
	}
}

// TestAge writes ages.
func TestAge(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"now": -time.Minute, "1s ago": time.Second, "59s ago": time.Minute - 1, "1m ago": time.Minute, "59m ago": time.Hour - 1,
		"1h ago": time.Hour, "47h ago": 48*time.Hour - 1, "2d ago": 48 * time.Hour, "365d ago": 365 * 24 * time.Hour,
	} {
		if got := age(testNow, testNow.Add(-d)); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	if got := age(testNow, time.Time{}); got != "never" {
		t.Errorf("zero time: %q", got)
	}
}

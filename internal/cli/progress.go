package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// progress tells on the standard error how a gate goes: one line per change
// and, on a terminal, bars that are redrawn in place below the lines.
type progress struct {
	w       io.Writer
	style   style
	now     func() time.Time
	hub     string
	timeout time.Duration
	// width returns the terminal's width; nil where nothing can be redrawn.
	width func() int

	started time.Time
	last    *schema.Verdict
	// lost holds the causes that were told since the last verdict: an outage of
	// an hour is no hundred lines.
	lost map[string]bool
	// drawn is how many lines of bars stand on the terminal.
	drawn int
}

func (a *app) newProgress(hub string, timeout time.Duration) *progress {
	p := &progress{
		w: a.streams.Err, style: a.styleOf(a.streams.ErrTerminal), now: a.now,
		hub: hub, timeout: timeout, started: a.now(), lost: map[string]bool{},
	}
	if a.streams.ErrTerminal && a.smart() {
		p.width = a.streams.Width
	}
	return p
}

// follow runs the follower and shows what it tells. It returns when the
// follower has ended.
func (p *progress) follow(ctx context.Context, client *hubclient.Client, q hubclient.Question) (*schema.Verdict, error) {
	notes := make(chan note)
	var last *schema.Verdict
	var failure error
	go func() {
		defer close(notes)
		f := &follower{client: client, q: q, tell: func(n note) { notes <- n }}
		last, failure = f.run(ctx)
	}()
	var ticks <-chan time.Time
	if p.width != nil {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		ticks = t.C
	}
	for {
		select {
		case n, more := <-notes:
			if !more {
				return last, failure
			}
			p.show(n)
		case <-ticks:
			p.redraw("")
		}
	}
}

// show writes what is new in a note.
func (p *progress) show(n note) {
	stamp := p.now().Format("15:04:05 ")
	var lines strings.Builder
	switch {
	case n.err != nil:
		// The cause without the request, which is another one with each try.
		text := printable(cmp.Or(errors.Unwrap(n.err), n.err).Error())
		if p.lost[text] {
			return
		}
		p.lost[text] = true
		fmt.Fprintf(&lines, "%sno answer from %s: %s; trying again in %s\n", stamp, p.hub, text, n.pause.Round(100*time.Millisecond))
	default:
		if len(p.lost) > 0 {
			clear(p.lost)
			fmt.Fprintf(&lines, "%sthe hub %s answers\n", stamp, p.hub)
		}
		if p.last == nil || !p.last.SameAs(n.verdict) {
			fmt.Fprintf(&lines, "%s%s\n", stamp, change(p.last, n.verdict, p.style))
		}
		p.last = n.verdict
	}
	p.redraw(lines.String())
}

// redraw writes lines in place of the bars, and the bars again below.
func (p *progress) redraw(lines string) {
	if p.width == nil {
		io.WriteString(p.w, lines) //nolint:errcheck // progress that nobody can read is no reason to stop
		return
	}
	var bars []string
	if p.last != nil {
		bars = drawBars(p.last, p.width(), p.style)
	}
	bars = append(bars, p.clock())
	var out strings.Builder
	if p.drawn > 0 {
		out.WriteString("\x1b[" + strconv.Itoa(p.drawn) + "A\r\x1b[J")
	}
	out.WriteString(lines)
	for _, b := range bars {
		out.WriteString(b + "\n")
	}
	p.drawn = len(bars)
	io.WriteString(p.w, out.String()) //nolint:errcheck // as above
}

// clock says how much of the time is over.
func (p *progress) clock() string {
	text := "waiting"
	switch {
	case len(p.lost) > 0:
		text = "no answer"
	case p.last != nil:
		text = string(p.last.State)
	}
	return text + " " + p.now().Sub(p.started).Round(time.Second).String() + " of " + schema.Duration(p.timeout).String()
}

// change says in one line how a verdict stands and what is new since prev, which
// may be nil.
func change(prev, v *schema.Verdict, st style) string {
	text := st.paint(stateColour(v.State), string(v.State)) + ": " + countWords(v.Counts)
	if v.Reason != "" {
		text += " (" + printable(v.Reason) + ")"
	}
	if prev == nil {
		return text
	}
	const most = 3
	moves := moved(prev, v)
	for i, m := range moves {
		if i == most {
			return text + "; and " + strconv.Itoa(len(moves)-most) + " more"
		}
		text += "; " + m
	}
	return text
}

// countWords writes the counts that are not zero.
func countWords(c schema.Counts) string {
	words := strconv.Itoa(c.Compliant) + " of " + strconv.Itoa(c.Total) + " compliant"
	for _, p := range parts(c) {
		if p.n > 0 && p.outcome != schema.OutcomeCompliant {
			words += ", " + strconv.Itoa(p.n) + " " + outcomeWords(p.outcome)
		}
	}
	return words
}

func outcomeWords(o schema.Outcome) string { return strings.ReplaceAll(string(o), "_", " ") }

// moved lists the reconcilers whose outcome or revision changed, the worst first.
func moved(prev, v *schema.Verdict) []string {
	type key struct{ cluster, reconciler string }
	before := map[key]schema.Unfinished{}
	for _, u := range prev.Unfinished {
		before[key{u.Cluster, u.Reconciler}] = u
	}
	type move struct {
		severity int
		key      key
		text     string
	}
	var moves []move
	for _, u := range v.Unfinished {
		k := key{u.Cluster, u.Reconciler}
		old, known := before[k]
		delete(before, k)
		text := outcomeWords(u.Verdict)
		switch {
		case !known:
		case old.Verdict != u.Verdict:
			text = outcomeWords(old.Verdict) + " → " + text
		case old.Revision != u.Revision:
			text += " at " + shortRevision(u.Revision)
		default:
			continue
		}
		if u.Reason != "" {
			text += " (" + cut(u.Reason, 80) + ")"
		}
		moves = append(moves, move{u.Verdict.Severity(), k, text})
	}
	if len(v.Unfinished) < schema.MaxUnfinished { // else it may only be cut off
		for k, old := range before {
			moves = append(moves, move{schema.OutcomeCompliant.Severity(), k, outcomeWords(old.Verdict) + " → done"})
		}
	}
	slices.SortFunc(moves, func(a, b move) int {
		return cmp.Or(cmp.Compare(a.severity, b.severity), cmp.Compare(a.key.cluster, b.key.cluster), cmp.Compare(a.key.reconciler, b.key.reconciler))
	})
	texts := make([]string, len(moves))
	for i, m := range moves {
		texts[i] = printable(m.key.cluster + " " + m.key.reconciler + ": " + m.text)
	}
	return texts
}

// shortRevision shortens the digest of a revision, as dev@sha1:5ce0d1a2b3c4.
func shortRevision(s string) string {
	r := schema.ParseRevision(s)
	if r.Hex == "" {
		return s
	}
	text := r.Algorithm + ":" + shortCommit(r.Hex)
	if r.Ref != "" {
		text = r.Ref + "@" + text
	}
	return text
}

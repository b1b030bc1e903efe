package cli

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/landfall-hub/landfall/schema"
)

const (
	// widestBar and narrowestBar bound a bar, in cells; without room for the
	// narrowest there are numbers alone.
	widestBar    = 40
	narrowestBar = 10
	widestLabel  = 24
	// mostTypes bounds the lines, so that the bars fit a small terminal.
	mostTypes = 8
)

// part is one colour of a bar.
type part struct {
	outcome schema.Outcome
	n       int
}

// parts returns the counts in the order in which bars and sentences show them.
func parts(c schema.Counts) []part {
	return []part{
		{schema.OutcomeCompliant, c.Compliant},
		{schema.OutcomeFailed, c.Failed},
		{schema.OutcomeInProgress, c.InProgress},
		{schema.OutcomePending, c.Pending},
		{schema.OutcomeSuspended, c.Suspended},
		{schema.OutcomeUnknown, c.Unknown},
		{schema.OutcomeUnknownLineage, c.UnknownLineage},
	}
}

// glyph tells the parts of a bar apart where there are no colours.
func glyph(o schema.Outcome) string {
	switch o {
	case schema.OutcomeCompliant:
		return "█"
	case schema.OutcomeFailed:
		return "x"
	case schema.OutcomeInProgress:
		return "▒"
	case schema.OutcomePending:
		return "░"
	case schema.OutcomeSuspended:
		return "="
	case schema.OutcomeUnknown, schema.OutcomeUnknownLineage:
		return "?"
	}
	return "?"
}

// drawBars returns the lines of a verdict's bars for a terminal of that width,
// none of them wider: one per cluster type, whose counts tell the compliant
// ones from the rest only, and one for all, where every outcome has its colour.
func drawBars(v *schema.Verdict, width int, st style) []string {
	if width <= 0 {
		width = 80
	}
	types := slices.Sorted(maps.Keys(v.ByClusterType))
	more := max(0, len(types)-mostTypes)
	types = types[:len(types)-more]

	label, number := len("all"), 0
	for _, t := range types {
		label = max(label, utf8.RuneCountInString(typeLabel(t)))
	}
	label = min(label, widestLabel)
	for _, c := range v.ByClusterType {
		number = max(number, len(fraction(c.Compliant, c.Total)))
	}
	number = max(number, len(fraction(v.Counts.Compliant, v.Counts.Total)))
	room := min(widestBar, width-1-label-number-4)

	line := func(name string, compliant, total int, ps []part) string {
		name = cut(name, label)
		text := name + strings.Repeat(" ", label-utf8.RuneCountInString(name)) + "  "
		if room >= narrowestBar {
			text += bar(ps, room, st) + "  "
		}
		f := fraction(compliant, total)
		return text + strings.Repeat(" ", number-len(f)) + f
	}
	var lines []string
	for _, t := range types {
		c := v.ByClusterType[t]
		lines = append(lines, line(typeLabel(t), c.Compliant, c.Total, []part{
			{schema.OutcomeCompliant, c.Compliant}, {schema.OutcomePending, max(0, c.Total-c.Compliant)},
		}))
	}
	if more > 0 {
		lines = append(lines, cut("… and "+strconv.Itoa(more)+" more cluster types", width-1))
	}
	return append(lines, line("all", v.Counts.Compliant, v.Counts.Total, parts(v.Counts)))
}

// typeLabel names a cluster type; reconcilers of several memberships have none.
func typeLabel(t string) string {
	if t == "" {
		return "(no type)"
	}
	return printable(t)
}

func fraction(n, of int) string { return strconv.Itoa(n) + "/" + strconv.Itoa(of) }

// bar draws the parts over width cells.
func bar(ps []part, width int, st style) string {
	counts := make([]int, len(ps))
	for i, p := range ps {
		counts[i] = p.n
	}
	var b strings.Builder
	used := 0
	for i, n := range cells(counts, width) {
		b.WriteString(st.paint(outcomeColour(ps[i].outcome), strings.Repeat(glyph(ps[i].outcome), n)))
		used += n
	}
	return b.String() + strings.Repeat(" ", width-used)
}

// cells shares width cells among the counts: everyone who has any gets at least
// one, so that a single failure among thousands is seen and a bar is full of one
// colour only when all are of it. The sum is width, or zero when all counts are.
func cells(counts []int, width int) []int {
	total := 0
	for _, n := range counts {
		total += n
	}
	shares := make([]int, len(counts))
	if total == 0 {
		return shares
	}
	used := 0
	for i, n := range counts {
		if n > 0 {
			shares[i] = max(1, n*width/total)
			used += shares[i]
		}
	}
	for used != width {
		// Give to or take from the one that is furthest from its due; of equals
		// the first.
		best := -1
		for i, n := range counts {
			if n == 0 || used > width && shares[i] == 1 {
				continue
			}
			if best < 0 || (used < width) == (off(n, shares[i], width, total) > off(counts[best], shares[best], width, total)) {
				best = i
			}
		}
		if used < width {
			shares[best]++
			used++
			continue
		}
		shares[best]--
		used--
	}
	return shares
}

// off returns how much a count's share is below its due, times total.
func off(n, share, width, total int) int { return n*width - share*total }

package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/landfall-hub/landfall/schema"
)

// mostRows bounds the tables of a gate's end; the JSON has all rows.
const mostRows = 20

// writeVerdict writes how a gate ended: the verdict in one line, then who is
// missing and why.
func writeVerdict(w io.Writer, v *schema.Verdict, st style, width int) error {
	where := "ref " + v.Ref
	if v.Ref == "" {
		where = "the default branch"
	}
	if v.Path != "" {
		where += ", path " + v.Path
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n", change(nil, v, st), printable(shortCommit(v.Commit)+" of "+v.Repo+", "+where))
	if err != nil {
		return err
	}
	if v.Counts.Total == 0 {
		return writeNobody(w, v, st, width)
	}
	if err := writeUnfinished(w, v, st, width); err != nil {
		return err
	}
	return writeCurrently(w, v, st, width)
}

func writeUnfinished(w io.Writer, v *schema.Verdict, st style, width int) error {
	rows := slices.Clone(v.Unfinished)
	slices.SortStableFunc(rows, func(a, b schema.Unfinished) int {
		return cmp.Or(cmp.Compare(a.Verdict.Severity(), b.Verdict.Severity()), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Reconciler, b.Reconciler))
	})
	t := &table{
		header:       []string{"CLUSTER", "RECONCILER", "VERDICT", "REVISION", "REASON"},
		colourColumn: 2, colour: func(s string) colour { return outcomeColour(schema.Outcome(s)) },
	}
	for _, u := range rows[:min(len(rows), mostRows)] {
		t.add(u.Cluster, u.Reconciler, string(u.Verdict), shortRevision(u.Revision), u.Reason)
	}
	// The hub's list is cut too; its counts never are.
	all := max(len(rows), v.Counts.Total-v.Counts.Compliant)
	return writeRows(w, "", t, all, st, width)
}

func writeCurrently(w io.Writer, v *schema.Verdict, st style, width int) error {
	rows := slices.Clone(v.Currently)
	slices.SortStableFunc(rows, func(a, b schema.Currently) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Reconciler, b.Reconciler))
	})
	t := &table{
		header:       []string{"CLUSTER", "RECONCILER", "STATUS", "REASON"},
		colourColumn: 2, colour: func(s string) colour { return statusColour(schema.Status(s)) },
	}
	for _, c := range rows[:min(len(rows), mostRows)] {
		t.add(c.Cluster, c.Reconciler, string(c.Status), c.Reason)
	}
	return writeRows(w, "Compliant, but not in success now:", t, len(rows), st, width)
}

// writeNobody explains a verdict over nobody: the commonest cause is a question
// about another place than the one that is followed.
func writeNobody(w io.Writer, v *schema.Verdict, st style, width int) error {
	if len(v.NearMisses) == 0 {
		_, err := io.WriteString(w, "\nNobody follows this repository there. Is --repo right, and does an agent report from the clusters (landfall clusters)?\n")
		return err
	}
	rows := slices.Clone(v.NearMisses)
	slices.SortStableFunc(rows, func(a, b schema.NearMiss) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Reconciler, b.Reconciler), cmp.Compare(a.Path, b.Path))
	})
	t := &table{header: []string{"CLUSTER", "RECONCILER", "REF", "PATH", "WHY"}}
	for _, m := range rows[:min(len(rows), mostRows)] {
		t.add(m.Cluster, m.Reconciler, m.Ref, m.Path, nearWords(m.Why))
	}
	return writeRows(w, "Nobody follows this endpoint. These read the same repository; is --ref or --path wrong?", t, len(rows), st, width)
}

func nearWords(r schema.NearReason) string {
	switch r {
	case schema.NearOtherRef:
		return "other_ref: it follows another ref"
	case schema.NearPinned:
		return "pinned: it follows no branch"
	case schema.NearParentPath:
		return "parent_path: its path is above the one asked for"
	}
	return string(r)
}

// writeRows writes a title and a table of the first of all rows, and how many
// more there are; without rows it writes nothing.
func writeRows(w io.Writer, title string, t *table, all int, st style, width int) error {
	if len(t.rows) == 0 {
		return nil
	}
	if title != "" {
		title += "\n"
	}
	if _, err := io.WriteString(w, "\n"+title); err != nil {
		return err
	}
	if err := t.write(w, st, width); err != nil {
		return err
	}
	if rest := all - len(t.rows); rest > 0 {
		_, err := io.WriteString(w, "… and "+strconv.Itoa(rest)+" more (-o json has the rows)\n")
		return err
	}
	return nil
}

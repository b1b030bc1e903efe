package cli

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// listing is what a command lists: rows of the hub, in pages that nobody sees.
type listing[T any] struct {
	// ask returns the rows that are wanted.
	ask func(*hubclient.Client) iter.Seq2[T, error]
	// limit is how many are shown at most; zero is all of them.
	limit int
	// order sorts them; nil leaves the hub's order.
	order func(x, y T) int
	// table is their form for people.
	table func([]T) *table
}

// show lists rows in the format asked for, and says on the standard error when
// there are more.
func show[T any](a *app, l listing[T]) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	var items []T
	more := false
	for item, err := range atMost(l.ask(client), l.limit, &more) {
		if err != nil {
			return fromHub(err)
		}
		items = append(items, item)
	}
	if l.order != nil {
		slices.SortStableFunc(items, l.order)
	}
	err = a.print(listOf(items), func(w io.Writer) error {
		return l.table(items).write(w, a.styleOf(a.streams.OutTerminal), a.tableWidth())
	})
	if err != nil {
		return err
	}
	a.tellMore(more, l.limit)
	return nil
}

// atMost ends rows after so many, and sets more when there are others; a limit
// of zero ends nothing.
func atMost[T any](rows iter.Seq2[T, error], limit int, more *bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for row, err := range rows {
			if err == nil && limit > 0 && n == limit {
				*more = true
				return
			}
			n++
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

func (a *app) tellMore(more bool, limit int) {
	if more {
		fmt.Fprintf(a.streams.Err, "landfall: there are more than %d rows; narrow the filters or raise --limit\n", limit)
	}
}

// rowFlags are the flags that say which rows a command lists.
type rowFlags struct {
	filter schema.StateFilter
	span   schema.Span
	all    bool
	limit  int
	// status, from and to are as they were written.
	status, from, to string
}

// defineNames adds the filters by name.
func (f *rowFlags) defineNames(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.filter.Environment, "environment", "", "only this environment")
	flags.StringVar(&f.filter.Workspace, "workspace", "", "only this workspace")
	flags.StringVar(&f.filter.Application, "application", "", "only this application")
	flags.StringVar(&f.filter.Workload, "workload", "", "only this workload")
	flags.StringVar(&f.filter.DeploymentTarget, "deployment-target", "", "only this deployment target")
}

// defineFilters adds all filters that rows about clusters have.
func (f *rowFlags) defineFilters(cmd *cobra.Command) {
	f.defineNames(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.filter.ClusterType, "cluster-type", "", "only clusters of this type")
	flags.StringVar(&f.filter.Cluster, "cluster", "", "only this cluster")
	flags.StringVar(&f.status, "status", "", "only this status: "+orList(schema.Statuses()))
	complete(cmd, "status", names(schema.Statuses())...)
}

// defineSpan adds --from and --to, which bound what is shown.
func (f *rowFlags) defineSpan(cmd *cobra.Command, what, beginning string) {
	cmd.Flags().StringVar(&f.from, "from", "", what+" from this `TIME` on: RFC 3339, or how long ago, as 24h or 7d (left out: "+beginning+")")
	cmd.Flags().StringVar(&f.to, "to", "", what+" before this `TIME`, written like --from (left out: now)")
}

// defineAll adds --all.
func (f *rowFlags) defineAll(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&f.all, "all", false, usage)
}

// defineLimit adds --limit, which comes last.
func (f *rowFlags) defineLimit(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.limit, "limit", 1000, "the most rows to show")
}

// resolve checks the flags and fills in what they say.
func (f *rowFlags) resolve(now time.Time) error {
	f.filter.Status = schema.Status(f.status)
	if f.status != "" && !f.filter.Status.Valid() {
		return usagef("--status is %s, not %q", orList(schema.Statuses()), f.status)
	}
	if f.limit < 1 {
		return usagef("--limit is %d; give the most rows to show, 1 or more", f.limit)
	}
	var err error
	if f.span.From, err = when("from", f.from, now); err != nil {
		return err
	}
	if f.span.To, err = when("to", f.to, now); err != nil {
		return err
	}
	until := f.span.To
	if until.IsZero() {
		until = now.UTC()
	}
	if !f.span.From.Before(until) {
		return usagef("--from is %s, which is not before --to, %s", f.span.From.Format(time.RFC3339), until.Format(time.RFC3339))
	}
	return nil
}

// pageSize is one row more than shown: it tells whether there are more.
func (f *rowFlags) pageSize() int { return f.limit + 1 }

// when reads a time that is written as it is, or as how long ago it was; empty
// is the zero time.
func when(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UTC(), nil
	}
	ago, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		ago = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || ago < 0 {
		return time.Time{}, usagef("--%s is a time such as 2026-11-20T09:00:00Z, or how long ago it was such as 90m, 24h or 7d; not %q", flag, text)
	}
	return now.Add(-ago).UTC(), nil
}

// stamp writes a time as tables have it, to the second; zero is nothing.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// slashed joins the names of a deployment target, and of what it belongs to, that
// are known.
func slashed(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), "/")
}

// targetOf names the deployment target of a row.
func targetOf(r schema.ClusterState) string {
	return slashed(r.Workspace, r.Application, r.Workload, r.DeploymentTarget)
}

// statusOf is a row's status, with its drift.
func statusOf(r schema.ClusterState) string {
	if r.Drifted {
		return string(r.Status) + drifted
	}
	return string(r.Status)
}

// drifted follows the status of what was changed live.
const drifted = " (drifted)"

// colourOfStatus colours what statusOf wrote.
func colourOfStatus(s string) colour {
	return statusColour(schema.Status(strings.TrimSuffix(s, drifted)))
}

package cli

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

func (a *app) driftCommand() *cobra.Command {
	var f rowFlags
	cmd := &cobra.Command{
		Use:   "drift",
		Short: "Show which clusters do not run what is desired",
		Long: `Show which clusters do not run what is desired: what lies behind the newest
version in Git, by how many commits and since when, and what was changed on the
cluster itself (drifted).`,
		Example: `  landfall drift --environment prod
  landfall drift --workload hello --cluster-type drone
  landfall drift -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.resolve(a.now()); err != nil {
				return err
			}
			return show(a, drifts(cmd.Context(), &f))
		},
	}
	f.defineFilters(cmd)
	f.defineSpan(cmd, "what began", "any")
	f.defineAll(cmd, "also those that run what is desired")
	f.defineLimit(cmd)
	return cmd
}

func drifts(ctx context.Context, f *rowFlags) listing[schema.Drift] {
	return listing[schema.Drift]{
		limit: f.limit,
		ask: func(c *hubclient.Client) iter.Seq2[schema.Drift, error] {
			return c.Drift(ctx, schema.DriftFilter{StateFilter: f.filter, Span: f.span, All: f.all}, f.pageSize())
		},
		table: func(rows []schema.Drift) *table {
			t := &table{
				header:       []string{"CLUSTER", "ENVIRONMENT", "TARGET", "RECONCILER", "VERSION", "COMMIT", "DESIRED", "COMMIT", "BEHIND", "WAITING", "STATUS", "REASON"},
				colourColumn: 10, colour: colourOfStatus,
			}
			for _, r := range rows {
				t.add(r.Cluster, r.Environment, targetOf(r.ClusterState), r.Reconciler, shortVersion(r.Version), shortCommit(r.Commit),
					shortVersion(r.DesiredVersion), shortCommit(r.DesiredCommit), behind(r.BehindCommits), span(float64(r.BehindSeconds)),
					statusOf(r.ClusterState), r.Reason)
			}
			return t
		},
	}
}

// behind counts commits; what cannot be told is a question mark.
func behind(commits int64) string {
	if commits < 0 {
		return "?"
	}
	return strconv.FormatInt(commits, 10)
}

// span writes seconds in two units at most; zero is nothing.
func span(seconds float64) string {
	const day = 24 * time.Hour
	switch d := time.Duration(seconds * float64(time.Second)).Round(time.Second); {
	case d <= 0:
		return ""
	case d < time.Minute:
		return d.String()
	case d < time.Hour:
		return two(d, time.Minute, "m", time.Second, "s")
	case d < day:
		return two(d, time.Hour, "h", time.Minute, "m")
	default:
		return two(d, day, "d", time.Hour, "h")
	}
}

// two writes a duration in a large and a small unit, the small one where it is
// not zero.
func two(d, large time.Duration, l string, small time.Duration, s string) string {
	text := strconv.FormatInt(int64(d/large), 10) + l
	if rest := d % large / small; rest > 0 {
		text += strconv.FormatInt(int64(rest), 10) + s
	}
	return text
}

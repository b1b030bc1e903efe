package cli

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

func (a *app) doraCommand() *cobra.Command {
	var f rowFlags
	cmd := &cobra.Command{
		Use:   "dora",
		Short: "Show deployment frequency, lead time, change failure rate and time to restore",
		Long: `Show the four DORA figures of each deployment target in each environment:

  deployments   versions that landed on at least one cluster, and how many a day
  lead time     from the commit that brought a version into the GitOps repository
                to its first success: the median, and what 95 of 100 stay below
  failures      the share of the commits that failed anywhere, each counted once
  restored in   the median time from a reconciler's failure to its next success,
                and how many failures have not ended

What cannot be told is a dash.`,
		Example: `  landfall dora
  landfall dora --environment prod --from 90d
  landfall dora --workspace kaizen --from 2026-10-01T00:00:00Z --to 2026-11-01T00:00:00Z -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.resolve(a.now()); err != nil {
				return err
			}
			return show(a, figures(cmd.Context(), &f))
		},
	}
	f.defineNames(cmd)
	f.defineSpan(cmd, "what happened", "30 days before --to")
	f.defineLimit(cmd)
	return cmd
}

func figures(ctx context.Context, f *rowFlags) listing[schema.DORA] {
	return listing[schema.DORA]{
		limit: f.limit,
		ask: func(c *hubclient.Client) iter.Seq2[schema.DORA, error] {
			return c.DORA(ctx, schema.DORAFilter{StateFilter: f.filter, Span: f.span}, f.pageSize())
		},
		table: func(rows []schema.DORA) *table {
			t := &table{header: []string{
				"ENVIRONMENT", "TARGET", "FROM", "TO", "DEPLOYMENTS", "A DAY", "ROLLBACKS", "LEAD P50", "LEAD P95", "FAILURES", "RESTORED IN", "UNRESTORED",
			}}
			for _, r := range rows {
				t.add(r.Environment, slashed(r.Workspace, r.Application, r.Workload, r.DeploymentTarget), stamp(r.From), stamp(r.To),
					strconv.FormatUint(r.Deployments, 10), strconv.FormatFloat(r.DeploymentsPerDay, 'f', 2, 64), strconv.FormatUint(r.Rollbacks, 10),
					took(r.LeadTimeP50), took(r.LeadTimeP95), failures(r), took(r.TimeToRestore), strconv.FormatUint(r.Unrestored, 10))
			}
			return t
		},
	}
}

// took writes how many seconds something took, nothing where that is not known.
func took(seconds *float64) string {
	switch {
	case seconds == nil:
		return ""
	case *seconds < 1:
		return "0s"
	}
	return span(*seconds)
}

// failures writes "12% (3 of 25)".
func failures(r schema.DORA) string {
	if r.ChangeFailureRate == nil {
		return ""
	}
	return fmt.Sprintf("%d%% (%d of %d)", int(math.Round(*r.ChangeFailureRate*100)), r.FailedCommits, r.Commits)
}

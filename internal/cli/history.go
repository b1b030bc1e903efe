package cli

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

func (a *app) historyCommand() *cobra.Command {
	var f rowFlags
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show what changed on which cluster, the newest first",
		Long: `Show what changed on which cluster, the newest first: each state that a
reconciler reported, by when the hub received it, with what was deployed by it.
JSON, YAML and CSV have also the agent's time, the message, and links to the
commit and to what came with it.

With -o csv the rows come as RFC 4180 has it, under the names of the JSON. A cell
that begins with =, +, -, @ or a tab would be a formula to a spreadsheet: it gets
a ' in front. Control characters other than tab and line break are left out. -o
json changes nothing.`,
		Example: `  landfall history --cluster drone-07 --from 24h
  landfall history --workload hello --environment prod --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z
  landfall history --from 30d --limit 100000 -o csv > history.csv`,
		Args:        cobra.NoArgs,
		Annotations: map[string]string{alsoCSV: ""},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.resolve(a.now()); err != nil {
				return err
			}
			if a.global.output == formatCSV {
				return export(a, changes(cmd.Context(), &f))
			}
			return show(a, changes(cmd.Context(), &f))
		},
	}
	f.defineFilters(cmd)
	f.defineSpan(cmd, "what the hub received", "from the start")
	f.defineLimit(cmd)
	return cmd
}

func changes(ctx context.Context, f *rowFlags) listing[schema.HistoryEntry] {
	return listing[schema.HistoryEntry]{
		limit: f.limit,
		ask: func(c *hubclient.Client) iter.Seq2[schema.HistoryEntry, error] {
			return c.History(ctx, schema.HistoryFilter{StateFilter: f.filter, Span: f.span}, f.pageSize())
		},
		table: func(rows []schema.HistoryEntry) *table {
			t := &table{
				header:       []string{"RECEIVED", "CLUSTER", "ENVIRONMENT", "TARGET", "RECONCILER", "CHANGE", "VERSION", "COMMIT", "STATUS", "REASON"},
				colourColumn: 8, colour: colourOfStatus,
			}
			for _, r := range rows {
				change := string(r.Change)
				if r.Rollback {
					change += ", rollback"
				}
				t.add(stamp(r.ReceivedAt), r.Cluster, r.Environment, targetOf(r.ClusterState), r.Reconciler, change,
					shortVersion(r.Version), shortCommit(r.Commit), statusOf(r.ClusterState), r.Reason)
			}
			return t
		},
	}
}

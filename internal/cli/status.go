package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall-hub/landfall/schema"
)

func (a *app) statusCommand() *cobra.Command {
	var f schema.StateFilter
	var status string
	var limit int
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what runs on which cluster",
		Example: `  landfall status --environment dev
  landfall status --cluster-type drone --status failure
  landfall status --workload hello -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Status = schema.Status(status)
			if status != "" && !f.Status.Valid() {
				return usagef("--status is %s, not %q", orList(schema.Statuses()), status)
			}
			if limit < 1 {
				return usagef("--limit is %d; give the most rows to show, 1 or more", limit)
			}
			return a.status(cmd.Context(), f, limit)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.Environment, "environment", "", "only this environment")
	flags.StringVar(&f.Workspace, "workspace", "", "only this workspace")
	flags.StringVar(&f.Application, "application", "", "only this application")
	flags.StringVar(&f.Workload, "workload", "", "only this workload")
	flags.StringVar(&f.DeploymentTarget, "deployment-target", "", "only this deployment target")
	flags.StringVar(&f.ClusterType, "cluster-type", "", "only clusters of this type")
	flags.StringVar(&f.Cluster, "cluster", "", "only this cluster")
	flags.StringVar(&status, "status", "", "only this status: "+orList(schema.Statuses()))
	flags.IntVar(&limit, "limit", 1000, "the most rows to show")
	complete(cmd, "status", names(schema.Statuses())...)
	return cmd
}

func (a *app) status(ctx context.Context, f schema.StateFilter, limit int) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	var rows []schema.ClusterState
	more := false
	// One row more than shown tells whether there are more.
	for row, err := range client.ClusterStates(ctx, f, limit+1) {
		if err != nil {
			return fromHub(err)
		}
		if len(rows) == limit {
			more = true
			break
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(x, y schema.ClusterState) int {
		return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Reconciler, y.Reconciler),
			cmp.Compare(x.Environment, y.Environment), cmp.Compare(x.DeploymentTarget, y.DeploymentTarget), cmp.Compare(x.Path, y.Path))
	})
	err = a.print(listOf(rows), func(w io.Writer) error {
		t := &table{
			header:       []string{"CLUSTER", "TYPE", "ENVIRONMENT", "TARGET", "RECONCILER", "VERSION", "COMMIT", "STATUS", "SINCE", "REASON"},
			colourColumn: 7, colour: func(s string) colour { return statusColour(schema.Status(strings.TrimSuffix(s, " (drifted)"))) },
		}
		for _, r := range rows {
			status := string(r.Status)
			if r.Drifted {
				status += " (drifted)"
			}
			t.add(r.Cluster, r.ClusterType, r.Environment, target(r), r.Reconciler, r.Version, shortCommit(r.Commit),
				status, age(a.now(), r.Since), r.Reason)
		}
		return t.write(w, a.styleOf(a.streams.OutTerminal), a.tableWidth())
	})
	if err == nil && more {
		fmt.Fprintf(a.streams.Err, "landfall: there are more than %d rows; narrow the filters or raise --limit\n", limit)
	}
	return err
}

// target names the deployment target with what it belongs to, or nothing when
// the names are not known yet.
func target(r schema.ClusterState) string {
	var known []string
	for _, s := range []string{r.Workspace, r.Application, r.Workload, r.DeploymentTarget} {
		if s != "" {
			known = append(known, s)
		}
	}
	return strings.Join(known, "/")
}

func names[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// orList writes "a, b or c".
func orList[T ~string](values []T) string {
	n := names(values)
	if len(n) < 2 {
		return strings.Join(n, "")
	}
	return strings.Join(n[:len(n)-1], ", ") + " or " + n[len(n)-1]
}

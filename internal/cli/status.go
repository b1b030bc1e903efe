package cli

import (
	"cmp"
	"context"
	"iter"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

func (a *app) statusCommand() *cobra.Command {
	var f rowFlags
	var summary bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what runs on which cluster, or what should run where",
		Long: `Show what runs on which cluster: a row for each reconciler. With --summary, show
what should run of each deployment target and what does: a row for each version
that is deployed, with the number of its clusters.`,
		Example: `  landfall status --environment dev
  landfall status --cluster-type drone --status failure
  landfall status --summary --environment stage
  landfall status --workload hello -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.resolve(a.now()); err != nil {
				return err
			}
			if summary {
				return show(a, summaries(cmd.Context(), &f))
			}
			return show(a, a.clusterStates(cmd.Context(), &f))
		},
	}
	cmd.Flags().BoolVar(&summary, "summary", false, "a row for each deployment target and version")
	f.defineFilters(cmd)
	f.defineLimit(cmd)
	return cmd
}

func (a *app) clusterStates(ctx context.Context, f *rowFlags) listing[schema.ClusterState] {
	return listing[schema.ClusterState]{
		limit: f.limit,
		ask: func(c *hubclient.Client) iter.Seq2[schema.ClusterState, error] {
			return c.ClusterStates(ctx, f.filter, f.pageSize())
		},
		order: func(x, y schema.ClusterState) int {
			return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Reconciler, y.Reconciler),
				cmp.Compare(x.Environment, y.Environment), cmp.Compare(x.DeploymentTarget, y.DeploymentTarget), cmp.Compare(x.Path, y.Path))
		},
		table: func(rows []schema.ClusterState) *table {
			t := &table{
				header:       []string{"CLUSTER", "TYPE", "ENVIRONMENT", "TARGET", "RECONCILER", "VERSION", "COMMIT", "STATUS", "SINCE", "REASON"},
				colourColumn: 7, colour: colourOfStatus,
			}
			for _, r := range rows {
				t.add(r.Cluster, r.ClusterType, r.Environment, targetOf(r), r.Reconciler, shortVersion(r.Version), shortCommit(r.Commit),
					statusOf(r), age(a.now(), r.Since), r.Reason)
			}
			return t
		},
	}
}

// summaries is what should run of each deployment target, and what does.
func summaries(ctx context.Context, f *rowFlags) listing[schema.EnvironmentState] {
	return listing[schema.EnvironmentState]{
		limit: f.limit,
		ask: func(c *hubclient.Client) iter.Seq2[schema.EnvironmentState, error] {
			return c.EnvironmentStates(ctx, f.filter, f.pageSize())
		},
		table: func(rows []schema.EnvironmentState) *table {
			t := &table{
				header:       []string{"ENVIRONMENT", "TARGET", "SCHEDULED", "CONFIG", "DEPLOYED", "CONFIG", "COMMIT", "STATUS", "CLUSTERS"},
				colourColumn: 7, colour: colourOfStatus,
			}
			for _, r := range rows {
				head := []string{r.Environment, stateName(r), shortVersion(r.ScheduledVersion), short(r.ScheduledConfigVersion)}
				if len(r.Deployed) == 0 {
					t.add(append(head, "", "", "", "", "0")...)
				}
				for _, d := range r.Deployed {
					t.add(append(head[:4:4], shortVersion(d.Version), short(d.ConfigVersion), shortCommit(d.Commit), string(d.Status),
						strconv.FormatUint(d.Clusters, 10))...)
				}
			}
			return t
		},
	}
}

// stateName names a row: its deployment target or, as long as that is not
// known, its endpoint.
func stateName(r schema.EnvironmentState) string {
	if name := slashed(r.Workspace, r.Application, r.Workload, r.DeploymentTarget); name != "" {
		return name
	}
	name := r.Repo
	if r.Path != "" {
		name += "//" + r.Path
	}
	if r.Ref != "" {
		name += "@" + r.Ref
	}
	return name
}

// shortVersion is a workload version, or a commit in its place, cut.
func shortVersion(s string) string {
	if schema.IsCommit(s) {
		return shortCommit(s)
	}
	return s
}

// short is the beginning of a configuration version.
func short(s string) string { return s[:min(len(s), 8)] }

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

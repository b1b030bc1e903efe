package cli

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

func (a *app) compareCommand() *cobra.Command {
	var f rowFlags
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Show what differs between environments",
		Long: `Show what differs between environments: a row for each deployment target, a
column for each environment. A cell has the versions that are deployed, each with
the number of its clusters, and behind an arrow the version that is scheduled,
unless nothing else is deployed. The beginning of the configuration version is added in
brackets where one version has several.`,
		Example: `  landfall compare
  landfall compare --workspace kaizen --all
  landfall compare --workload hello -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.resolve(a.now()); err != nil {
				return err
			}
			return show(a, discrepancies(cmd.Context(), &f))
		},
	}
	f.defineFilters(cmd)
	f.defineAll(cmd, "also deployment targets that do not differ")
	f.defineLimit(cmd)
	return cmd
}

func discrepancies(ctx context.Context, f *rowFlags) listing[schema.Discrepancy] {
	return listing[schema.Discrepancy]{
		limit: f.limit,
		ask: func(c *hubclient.Client) iter.Seq2[schema.Discrepancy, error] {
			return c.Discrepancies(ctx, schema.DiscrepancyFilter{StateFilter: f.filter, All: f.all}, f.pageSize())
		},
		table: func(rows []schema.Discrepancy) *table {
			var environments []string
			for _, r := range rows {
				for _, e := range r.Environments {
					environments = append(environments, e.Environment)
				}
			}
			slices.Sort(environments)
			environments = slices.Compact(environments)
			t := &table{header: []string{"TARGET", "DIFFERS"}}
			for _, e := range environments {
				t.header = append(t.header, printable(e))
			}
			for _, r := range rows {
				cells := make([]string, 2+len(environments))
				cells[0], cells[1] = slashed(r.Workspace, r.Application, r.Workload, r.DeploymentTarget), "no"
				if r.Discrepant {
					cells[1] = "yes"
				}
				for _, e := range r.Environments {
					cells[2+slices.Index(environments, e.Environment)] = sideBySide(e)
				}
				t.add(cells...)
			}
			return t
		},
	}
}

// combination is a version with its configuration.
type combination struct{ version, config string }

// sideBySide writes what one environment has of a deployment target, such as
// "1.1.0 ×40, 1.0.0 ×8 → 1.2.0".
func sideBySide(e schema.EnvironmentVersion) string {
	scheduled := combination{e.ScheduledVersion, e.ScheduledConfigVersion}
	var deployed []combination
	clusters := map[combination]uint64{}
	configs := map[string][]string{}
	note := func(c combination) {
		if c.config != "" && !slices.Contains(configs[c.version], c.config) {
			configs[c.version] = append(configs[c.version], c.config)
		}
	}
	note(scheduled)
	for _, d := range e.Deployed {
		c := combination{d.Version, d.ConfigVersion}
		if clusters[c] == 0 {
			deployed = append(deployed, c)
		}
		clusters[c] += d.Clusters
		note(c)
	}
	write := func(c combination) string {
		if len(configs[c.version]) > 1 && c.config != "" {
			return shortVersion(c.version) + " (" + short(c.config) + ")"
		}
		return shortVersion(c.version)
	}
	words := make([]string, len(deployed))
	for i, c := range deployed {
		words[i] = write(c) + " ×" + strconv.FormatUint(clusters[c], 10)
	}
	text := strings.Join(words, ", ")
	if scheduled.version == "" || len(deployed) == 1 && write(deployed[0]) == write(scheduled) {
		return text
	}
	return strings.TrimSpace(text + " → " + write(scheduled))
}

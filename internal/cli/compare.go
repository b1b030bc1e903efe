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

// sideBySide writes what one environment has of a deployment target, such as
// "1.1.0 ×40, 1.0.0 ×8 → 1.2.0".
func sideBySide(e schema.EnvironmentVersion) string {
	configs := map[string][]string{}
	note := func(version, config string) {
		if config != "" && !slices.Contains(configs[version], config) {
			configs[version] = append(configs[version], config)
		}
	}
	note(e.ScheduledVersion, e.ScheduledConfigVersion)
	for _, d := range e.Deployed {
		note(d.Version, d.ConfigVersion)
	}
	write := func(version, config string) string {
		if len(configs[version]) > 1 && config != "" {
			return shortVersion(version) + " (" + short(config) + ")"
		}
		return shortVersion(version)
	}
	var deployed []string
	clusters := map[string]uint64{}
	for _, d := range e.Deployed {
		text := write(d.Version, d.ConfigVersion)
		if !slices.Contains(deployed, text) {
			deployed = append(deployed, text)
		}
		clusters[text] += d.Clusters
	}
	scheduled := write(e.ScheduledVersion, e.ScheduledConfigVersion)
	expected := scheduled == "" || len(deployed) == 1 && deployed[0] == scheduled
	for i, text := range deployed {
		deployed[i] = text + " ×" + strconv.FormatUint(clusters[text], 10)
	}
	cell := strings.Join(deployed, ", ")
	if expected {
		return cell
	}
	return strings.TrimSpace(cell + " → " + scheduled)
}

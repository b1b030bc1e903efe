package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

func (a *app) clustersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clusters",
		Short: "List, show and decommission clusters",
		Example: `  landfall clusters
  landfall clusters list --status silent
  landfall clusters show drone-07
  landfall clusters decommission drone-07`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.listClusters(cmd.Context(), schema.ClusterFilter{})
		},
	}
	cmd.AddCommand(a.clustersListCommand(), a.clustersShowCommand(), a.clustersDecommissionCommand())
	return cmd
}

func (a *app) clustersListCommand() *cobra.Command {
	var f schema.ClusterFilter
	var status string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the clusters and when they were last seen",
		Example: "  landfall clusters list --environment dev --status silent",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Status = schema.ClusterStatus(status)
			if status != "" && !slices.Contains(clusterStatuses, f.Status) {
				return usagef("--status is %s, not %q", orList(clusterStatuses), status)
			}
			return a.listClusters(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.Environment, "environment", "", "only this environment")
	flags.StringVar(&f.ClusterType, "cluster-type", "", "only clusters of this type")
	flags.StringVar(&status, "status", "", "only this status: "+orList(clusterStatuses)+" (left out: all but decommissioned)")
	complete(cmd, "status", names(clusterStatuses)...)
	return cmd
}

var clusterStatuses = []schema.ClusterStatus{schema.ClusterLive, schema.ClusterSilent, schema.ClusterDecommissioned}

func (a *app) listClusters(ctx context.Context, f schema.ClusterFilter) error {
	return show(a, listing[schema.Cluster]{
		ask:   func(c *hubclient.Client) iter.Seq2[schema.Cluster, error] { return c.Clusters(ctx, f, schema.MaxPage) },
		order: func(x, y schema.Cluster) int { return cmp.Compare(x.Name, y.Name) },
		table: func(all []schema.Cluster) *table {
			t := &table{
				header:       []string{"NAME", "STATUS", "KIND", "LAST SEEN", "AGENT", "MEMBERSHIPS", "RECONCILERS"},
				colourColumn: 1, colour: func(s string) colour { return clusterColour(schema.ClusterStatus(s)) },
			}
			for _, c := range all {
				t.add(c.Name, string(c.Status), string(c.Kind), age(a.now(), c.LastSeen), c.AgentVersion, memberships(c), statusCounts(c))
			}
			return t
		},
	})
}

func clusterColour(s schema.ClusterStatus) colour {
	switch s {
	case schema.ClusterLive:
		return green
	case schema.ClusterSilent:
		return orange
	case schema.ClusterDecommissioned:
		return grey
	}
	return orange
}

// memberships writes "dev/drone, stage/drone".
func memberships(c schema.Cluster) string {
	words := make([]string, len(c.Memberships))
	for i, m := range c.Memberships {
		words[i] = m.Environment + "/" + m.Type
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// statusCounts writes the counts that are not zero.
func statusCounts(c schema.Cluster) string {
	var words []string
	for _, s := range schema.Statuses() {
		if n := c.Counts[s]; n > 0 {
			words = append(words, strconv.FormatUint(n, 10)+" "+strings.ReplaceAll(string(s), "_", " "))
		}
	}
	if words == nil {
		return "0"
	}
	return strings.Join(words, ", ")
}

// clusterName checks the one argument of a command about one cluster.
func clusterName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("name one cluster; landfall clusters list lists them")
	}
	if err := schema.ValidateClusterName(args[0]); err != nil {
		return usagef("%w", err)
	}
	return nil
}

func (a *app) clustersShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show one cluster",
		Example: "  landfall clusters show drone-07 -o yaml",
		Args:    clusterName,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			c, err := client.Cluster(cmd.Context(), args[0])
			if err != nil {
				return fromHub(err)
			}
			return a.print(c, func(w io.Writer) error { return a.writeCluster(w, c) })
		},
	}
}

func (a *app) writeCluster(w io.Writer, c schema.Cluster) error {
	labels := make([]string, 0, len(c.Labels))
	for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
		labels = append(labels, k+"="+c.Labels[k])
	}
	when := func(t time.Time) string {
		if t.IsZero() {
			return "never"
		}
		return age(a.now(), t) + " (" + t.UTC().Format(time.RFC3339) + ")"
	}
	unlisted, reportsFor := slices.Sorted(slices.Values(c.UnlistedKinds)), slices.Sorted(slices.Values(c.ReportsFor))
	st := a.styleOf(a.streams.OutTerminal)
	for _, row := range [][2]string{
		{"Name", c.Name},
		{"Status", string(c.Status)},
		{"Kind", string(c.Kind)},
		{"Memberships", memberships(c)},
		{"Labels", strings.Join(labels, ", ")},
		{"Reports for", strings.Join(reportsFor, ", ")},
		{"Reconcilers", statusCounts(c)},
		{"Not listed now", strings.Join(unlisted, ", ")},
		{"Agent", c.AgentVersion},
		{"Heartbeat", "every " + c.HeartbeatInterval.String()},
		{"Registered", when(c.RegisteredAt)},
		{"Last seen", when(c.LastSeen)},
		{"Epoch", strconv.FormatUint(c.Epoch, 10)},
		{"Sequence", strconv.FormatUint(c.Sequence, 10)},
	} {
		value := printable(row[1])
		if value == "" {
			value = "-"
		}
		if row[0] == "Status" {
			value = st.paint(clusterColour(c.Status), value)
		}
		if _, err := fmt.Fprintf(w, "%-15s %s\n", row[0]+":", value); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) clustersDecommissionCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "decommission NAME",
		Short: "Take a cluster out of every verdict",
		Long: `Take a cluster out of every verdict. Its history stays; its agent is refused
until an admin registers the cluster again.`,
		Example: "  landfall clusters decommission drone-07 --yes",
		Args:    clusterName,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			if !yes {
				if err := a.confirm(cmd.Context(), "Decommission "+args[0]+"? Its agent will be refused. [y/N] "); err != nil {
					return err
				}
			}
			if err := client.Decommission(cmd.Context(), args[0]); err != nil {
				return fromHub(err)
			}
			fmt.Fprintf(a.streams.Err, "%s is decommissioned\n", args[0])
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// confirm asks a person; anything but yes is an error.
func (a *app) confirm(ctx context.Context, prompt string) error {
	if !a.streams.InTerminal || !a.streams.ErrTerminal {
		return usagef("there is no terminal to ask on; give --yes")
	}
	fmt.Fprint(a.streams.Err, prompt)
	answer := make(chan string, 1)
	// A read from a terminal cannot be called off: when ctx ends first, this
	// goroutine ends with the program.
	go func() {
		line, _ := bufio.NewReader(a.streams.In).ReadString('\n') // an answer that cannot be read is a no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.streams.Err)
		return fmt.Errorf("nothing was done: %w", context.Cause(ctx))
	case text := <-answer:
		if text == "y" || text == "yes" {
			return nil
		}
		return fmt.Errorf("nothing was done: the answer was not yes")
	}
}

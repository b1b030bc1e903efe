package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall-hub/landfall/scheduler"
	"github.com/landfall-hub/landfall/scheduler/compose"
	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/match"
)

func (a *app) explainCommand() *cobra.Command {
	var p planInputs
	var missing bool
	cmd := &cobra.Command{
		Use:   "explain ENVIRONMENT/CLUSTER-TYPE/DEPLOYMENT-TARGET",
		Short: "Say why something is assigned, and where each of its values comes from",
		Long: `Say why a deployment target is assigned to a cluster type, where each of its
configuration values comes from and what was overridden, and what schemas object
to. With --missing, say what the schemas still want and which ConfigMap could
give it.`,
		Example: `  landfall explain dev/drone/hello-world-app-functional-test --base ./main --control-plane ./dev
  landfall explain dev/drone/hello-world-app-functional-test --base ./main --control-plane ./dev --missing`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			parts := strings.Split(args[0], "/")
			if len(parts) != 3 || slices.Contains(parts, "") {
				return usagef("%q is not ENVIRONMENT/CLUSTER-TYPE/DEPLOYMENT-TARGET", args[0])
			}
			if p.environment != "" && p.environment != parts[0] {
				return usagef("--environment is %s and the assignment's is %s; leave the flag out", p.environment, parts[0])
			}
			p.environment = parts[0]
			if err := p.check(true); err != nil {
				return err
			}
			return withTrees(p.auth, []string{p.base, p.controlPlane}, func(t *trees) error {
				return a.explain(cmd.Context(), t, &p, parts[1], parts[2], missing)
			})
		},
	}
	p.flags(cmd)
	cmd.Flags().BoolVar(&missing, "missing", false, "say what schemas want that nobody gives")
	return cmd
}

// explanation is what landfall explain says.
type explanation struct {
	Assignment string         `json:"assignment"`
	Policies   []string       `json:"policies"`
	Version    string         `json:"version"`
	Error      string         `json:"error"`
	Files      []string       `json:"files"`
	Values     []valueOrigin  `json:"values"`
	Violations []string       `json:"violations"`
	Missing    []missingValue `json:"missing"`
}

type valueOrigin struct {
	Key        string   `json:"key"`
	Value      string   `json:"value"`
	ConfigMap  string   `json:"config_map"`
	Place      string   `json:"place"`
	Overridden []string `json:"overridden"`
}

type missingValue struct {
	Key        string   `json:"key"`
	Schema     string   `json:"schema"`
	Candidates []string `json:"candidates"`
}

func (a *app) explain(ctx context.Context, t *trees, p *planInputs, clusterType, target string, missing bool) error {
	model, _, err := t.load(ctx, p)
	if err != nil {
		return err
	}
	plan := scheduler.New(model)
	n := slices.IndexFunc(plan.Assignments, func(x scheduler.Planned) bool {
		return x.ClusterType == clusterType && x.DeploymentTarget == target
	})
	if n < 0 {
		return &exitError{code: exitFailed, err: notAssigned(&model, clusterType, target)}
	}
	e := explained(p.environment, &plan.Assignments[n])
	if missing {
		e.Missing = missingValues(&model, clusterType, target)
	}
	return a.print(e, func(w io.Writer) error { return a.explanationTable(w, e, missing) })
}

// notAssigned says which part of the name is wrong, or that no policy asks.
func notAssigned(m *controlplane.Model, clusterType, target string) error {
	var types, targets []string
	for i := range m.ClusterTypes {
		types = append(types, m.ClusterTypes[i].Name)
	}
	all, _ := match.Targets(m)
	for i := range all {
		targets = append(targets, all[i].Name)
	}
	switch {
	case !slices.Contains(types, clusterType):
		return fmt.Errorf("%s has no cluster type %q; it has %s", m.Environment, clusterType, orNothing(types))
	case !slices.Contains(targets, target):
		return fmt.Errorf("%s has no deployment target %q; it has %s", m.Environment, target, orNothing(targets))
	}
	return fmt.Errorf("no scheduling policy of %s assigns %s to %s", m.Environment, target, clusterType)
}

func orNothing(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

func explained(environment string, x *scheduler.Planned) *explanation {
	e := &explanation{
		Assignment: environment + "/" + x.Name(), Policies: notNil(x.Policies), Version: x.Version, Error: x.Err,
		Files: []string{}, Values: []valueOrigin{}, Violations: []string{}, Missing: []missingValue{},
	}
	for _, f := range x.Files {
		e.Files = append(e.Files, f.Name)
	}
	for _, v := range x.Config.Values() {
		e.Values = append(e.Values, valueOrigin{
			Key: v.Key, Value: fmt.Sprint(v.Value), ConfigMap: v.ConfigMap, Place: v.Place.String(), Overridden: notNil(v.Overridden),
		})
	}
	for _, v := range x.Violations {
		e.Violations = append(e.Violations, violation(&v).Error())
	}
	return e
}

// violation words what a schema objects to.
func violation(v *compose.Violation) error {
	what := "the configuration"
	if v.Key != "" {
		what = v.Key
	}
	by := ""
	if v.ConfigMap != "" {
		by = ", given by ConfigMap " + v.ConfigMap
	}
	text := fmt.Sprintf("%s: %s: %s (schema %s%s)", v.Assignment, what, v.Message, v.Schema, by)
	if v.Place.File != "" {
		text = v.Place.String() + ": " + text
	}
	return errors.New(text)
}

func missingValues(m *controlplane.Model, clusterType, target string) []missingValue {
	found := []missingValue{}
	targets, _ := match.Targets(m)
	all, _ := match.Assignments(m, targets)
	composer, _ := compose.NewComposer(m.ConfigMaps)
	checker, _ := compose.NewChecker(m.Schemas)
	for i := range all {
		if all[i].ClusterType.Name != clusterType || all[i].Target.Name != target {
			continue
		}
		config, _ := composer.Compose(&all[i])
		for _, v := range checker.Missing(&all[i], &config, m.ConfigMaps) {
			found = append(found, missingValue{Key: v.Key, Schema: v.Schema, Candidates: notNil(v.Candidates)})
		}
	}
	return found
}

func (a *app) explanationTable(w io.Writer, e *explanation, missing bool) error {
	fmt.Fprintf(w, "%s is assigned by %s\n", e.Assignment, orNothing(e.Policies))
	switch {
	case e.Error != "":
		fmt.Fprintf(w, "not planned, its last good output stays: %s\n", printable(e.Error))
	default:
		fmt.Fprintf(w, "version %s: %s\n", e.Version, orNothing(e.Files))
	}
	for _, v := range e.Violations {
		fmt.Fprintf(w, "schema: %s\n", printable(v))
	}
	fmt.Fprintln(w)
	t := &table{header: []string{"KEY", "VALUE", "FROM", "PLACE", "OVERRIDDEN"}}
	for _, v := range e.Values {
		t.add(v.Key, v.Value, v.ConfigMap, v.Place, strings.Join(v.Overridden, ", "))
	}
	if err := t.write(w, a.styleOf(a.streams.OutTerminal), a.tableWidth()); err != nil {
		return err
	}
	if !missing {
		return nil
	}
	fmt.Fprintln(w)
	if len(e.Missing) == 0 {
		fmt.Fprintln(w, "no schema wants more")
		return nil
	}
	t = &table{header: []string{"MISSING", "SCHEMA", "COULD BE GIVEN BY"}}
	for _, v := range e.Missing {
		t.add(v.Key, v.Schema, orNothing(v.Candidates))
	}
	return t.write(w, a.styleOf(a.streams.OutTerminal), a.tableWidth())
}

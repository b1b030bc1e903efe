package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall-hub/landfall/scheduler"
	"github.com/landfall-hub/landfall/scheduler/publish"
)

// scheduleFlags are those of landfall schedule.
type scheduleFlags struct {
	planInputs
	out, message, name, email string
	dryRun, diff              bool
}

func (a *app) scheduleCommand() *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Plan an environment of a control plane and write its GitOps repository",
		Long: `Plan an environment of a control plane and write what its GitOps repository
should hold: a folder for each cluster type, with one for each deployment target
that is assigned to it. Nothing is asked of a hub.

Only folders of the scheduler's own are touched. What cannot be planned stays as
it was; everything else is written all the same, and the exit code is 1.`,
		Example: `  landfall schedule --environment dev --base ./main --control-plane ./dev --out ./gitops
  landfall schedule --environment dev --base https://git.example/org/control-plane@main \
    --control-plane https://git.example/org/control-plane@dev --out https://git.example/org/platform-gitops@dev
  landfall schedule --environment dev --base ./main --control-plane ./dev --out ./gitops --dry-run --diff`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(true); err != nil {
				return err
			}
			if f.out == "" {
				return usagef("say where to write with --out (%s)", placeHelp)
			}
			return withTrees(f.auth, []string{f.base, f.controlPlane, f.out}, func(t *trees) error { return a.schedule(cmd.Context(), t, &f) })
		},
	}
	f.flags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "write to this `DIR|URL@REF`; a branch that is not there is made")
	flags.BoolVar(&f.dryRun, "dry-run", false, "write nothing; say what would change")
	flags.BoolVar(&f.diff, "diff", false, "show what changes as a unified diff")
	flags.StringVar(&f.message, "message", "", "the first line of the commit's `TEXT`")
	flags.StringVar(&f.name, "author-name", "landfall", "the commit's author")
	flags.StringVar(&f.email, "author-email", "landfall@localhost", "the author's address")
	return cmd
}

// scheduled is what landfall schedule says.
type scheduled struct {
	Environment string `json:"environment"`
	// Commit is where the branch is now; "" of a folder.
	Commit string `json:"commit"`
	// Written says whether anything was.
	Written     bool     `json:"written"`
	Assignments int      `json:"assignments"`
	Added       []string `json:"added"`
	Changed     []string `json:"changed"`
	Deleted     []string `json:"deleted"`
	Kept        []string `json:"kept"`
	Adopted     []string `json:"adopted"`
	Foreign     []string `json:"foreign"`
	Problems    []string `json:"problems"`
	Diff        string   `json:"diff,omitempty"`
}

func (a *app) schedule(ctx context.Context, t *trees, f *scheduleFlags) error {
	model, base, err := t.load(ctx, &f.planInputs)
	if err != nil {
		return err
	}
	plan := scheduler.New(model)
	if plan.PromotedCommit == "" {
		plan.PromotedCommit = base.Commit
	}
	result := scheduled{Environment: f.environment, Assignments: len(plan.Assignments), Problems: complaints(&plan)}
	if err := a.publish(ctx, t, f, publish.Of(&plan), &result); err != nil {
		return err
	}
	if err := a.print(&result, func(w io.Writer) error { return result.table(w, f.dryRun) }); err != nil {
		return err
	}
	if len(result.Problems) > 0 {
		return &exitError{code: exitFailed, err: fmt.Errorf("%d problems; what they stop is left as it was", len(result.Problems))}
	}
	return nil
}

// publish compares the plan with the place that was asked for, and writes it.
func (a *app) publish(ctx context.Context, t *trees, f *scheduleFlags, want *publish.Desired, result *scheduled) error {
	out, err := parsePlace(f.out)
	if err != nil {
		return inputError("--out", err)
	}
	if out.isRepository() {
		return a.publishToRepository(ctx, t, f, out, want, result)
	}
	folder, err := publish.OpenFolder(out.dir)
	if err != nil {
		return inputError("--out", err)
	}
	change, err := folder.Compare(want)
	if err != nil {
		return err
	}
	result.take(&change.Summary)
	if f.diff {
		var text strings.Builder
		if err := change.Diff(ctx, &text); err != nil {
			return err
		}
		result.Diff = text.String()
	}
	if f.dryRun || change.Empty() {
		return nil
	}
	result.Written = true
	return change.Write()
}

func (a *app) publishToRepository(ctx context.Context, t *trees, f *scheduleFlags, out place, want *publish.Desired, result *scheduled) error {
	repo, err := t.repo(out.url)
	if err != nil {
		return inputError("--out", err)
	}
	message := f.message
	if message == "" {
		message = "Schedule " + f.environment
	}
	o := publish.Options{Repo: repo, Branch: out.ref, Name: f.name, Email: f.email, Now: a.now(), Message: message + "\n"}
	var text strings.Builder
	if f.diff {
		o.Diff = &text
	}
	publishing := publish.Push
	if f.dryRun {
		publishing = publish.Compare
	}
	r, err := publishing(ctx, o, want)
	if err != nil {
		return &exitError{code: exitNoAnswer, err: fmt.Errorf("--out: %w", err)}
	}
	result.take(&r.Summary)
	result.Commit, result.Written, result.Diff = r.Commit, r.Changed, text.String()
	return nil
}

func (s *scheduled) take(from *publish.Summary) {
	s.Added, s.Changed, s.Deleted, s.Kept = notNil(from.Added), notNil(from.Changed), notNil(from.Deleted), notNil(append(from.Kept, from.Missing...))
	s.Adopted, s.Foreign = notNil(from.Adopted), notNil(from.Foreign)
}

func notNil(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}

// complaints are all that a plan complains of, a line each.
func complaints(p *scheduler.Plan) []string {
	all := []string{}
	for i := range p.Problems {
		all = append(all, p.Problems[i].Error())
	}
	for i := range p.Assignments {
		for _, v := range p.Assignments[i].Violations {
			all = append(all, violation(&v).Error())
		}
	}
	return all
}

func (s *scheduled) table(w io.Writer, dry bool) error {
	var b strings.Builder
	for _, part := range []struct {
		word  string
		names []string
	}{{"added", s.Added}, {"changed", s.Changed}, {"deleted", s.Deleted}, {"kept as it was", s.Kept}, {"adopted", s.Adopted}, {"left alone: not the scheduler's", s.Foreign}} {
		for _, name := range part.names {
			fmt.Fprintf(&b, "%s: %s\n", part.word, printable(name))
		}
	}
	if s.Diff != "" {
		b.WriteString(s.Diff)
	}
	for _, p := range s.Problems {
		fmt.Fprintf(&b, "problem: %s\n", printable(p))
	}
	touched := len(s.Added) + len(s.Changed) + len(s.Deleted)
	switch {
	case dry:
		fmt.Fprintf(&b, "%s: %d assignments, %d would change; nothing was written\n", s.Environment, s.Assignments, touched)
	case !s.Written:
		fmt.Fprintf(&b, "%s: %d assignments, nothing to write\n", s.Environment, s.Assignments)
	case s.Commit != "":
		fmt.Fprintf(&b, "%s: %d assignments, %d changed, commit %s\n", s.Environment, s.Assignments, touched, s.Commit)
	default:
		fmt.Fprintf(&b, "%s: %d assignments, %d changed\n", s.Environment, s.Assignments, touched)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *app) validateCommand() *cobra.Command {
	var p planInputs
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check a control plane, as a pull request should be",
		Long: `Check a control plane: every document, selector, template, schema and value. With
--control-plane and --environment the whole environment is planned; without, only
the promoted content is read. Each problem is a line that names file and line.

Exit code 0 means that nothing is wrong, 1 that something is.`,
		Example: `  landfall validate --base .
  landfall validate --base ../main --control-plane . --environment dev`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.check(p.controlPlane != "" || p.environment != ""); err != nil {
				return err
			}
			return withTrees(p.auth, []string{p.base, p.controlPlane}, func(t *trees) error { return a.validate(cmd.Context(), t, &p) })
		},
	}
	p.flags(cmd)
	return cmd
}

func (a *app) validate(ctx context.Context, t *trees, p *planInputs) error {
	model, _, err := t.load(ctx, p)
	if err != nil {
		return err
	}
	plan := scheduler.New(model)
	found := complaints(&plan)
	if err := a.print(listOf(found), func(w io.Writer) error {
		for _, text := range found {
			fmt.Fprintln(w, printable(text))
		}
		return nil
	}); err != nil {
		return err
	}
	if len(found) > 0 {
		return &exitError{code: exitFailed, err: fmt.Errorf("%d problems", len(found))}
	}
	return nil
}

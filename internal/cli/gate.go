package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// gateOptions are the flags of `landfall gate`.
type gateOptions struct {
	repo, ref, path, commit string
	timeout                 time.Duration
	noWait                  bool
	// policy holds the text of each policy flag by its field's name.
	policy map[string]*string
}

// policyFlags describes the policy's fields for people; their names are those
// of schema.PolicyFields with dashes.
var policyFlags = map[string]struct {
	usage  string
	values []string
}{
	"min_compliant":     {usage: "the `SHARE` that must be compliant, as 95% (hub's default 100%)"},
	"max_failures":      {usage: "how many may fail, `N` (hub's default 0)"},
	"mandatory":         {usage: "a label `SELECTOR` of clusters that must all be compliant"},
	"zero_targets":      {usage: "what too few reconcilers mean: a `RULE`: deny, allow or require:N (hub's default deny)", values: []string{"deny", "allow", "require:"}},
	"unknown":           {usage: "`block|exclude` reconcilers that are unknown (hub's default block)", values: []string{"block", "exclude"}},
	"suspended":         {usage: "`block|exclude` suspended reconcilers (hub's default exclude)", values: []string{"block", "exclude"}},
	"children":          {usage: "`require|ignore` what a reconciler made (hub's default require)", values: []string{"require", "ignore"}},
	"min_success_time":  {usage: "how long it must have held, the soak, a `DURATION` (hub's default 0s)"},
	"progress_deadline": {usage: "fail after so long without progress, a `DURATION` (hub's default 10m)"},
}

func (a *app) gateCommand() *cobra.Command {
	o := gateOptions{policy: map[string]*string{}}
	cmd := &cobra.Command{
		Use:   "gate --repo URL --commit ID [--ref BRANCH] [--path FOLDER]",
		Short: "Wait until a commit has landed on every cluster that follows it",
		Long: `Wait until a commit has landed on every cluster that follows it.

The gate asks the hub, prints one line per change, and ends when the policy has
passed or failed or the time is over. It outlives restarts of the hub and
interruptions of the network. Only a whole verdict on exactly this commit ends
it with 0.

Exit codes:
  0  passed
  1  failed
  2  wrong usage or bad input, also when the hub says so
  3  still waiting when the time was over, also when the hub was lost meanwhile
  4  the hub never answered, or refused access`,
		Example: `  # wait up to 15 minutes for the commit just pushed to dev
  landfall gate --repo https://git.example/org/app-gitops --ref dev --commit "$(git rev-parse HEAD)"

  # one folder; 95 % are enough if the canaries are among them
  landfall gate --repo https://git.example/org/app-gitops --ref dev --path functional-test \
    --commit "$SHA" --min-compliant 95% --max-failures 2 --mandatory tier=canary

  # only ask how it stands
  landfall gate --repo https://git.example/org/app-gitops --ref dev --commit "$SHA" --no-wait -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := o.question(cmd)
			if err != nil {
				return err
			}
			return a.gate(cmd.Context(), q, o)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.repo, "repo", "", "the `URL` of the GitOps repository (required)")
	flags.StringVar(&o.ref, "ref", "", "the `BRANCH`; left out, the default branch")
	flags.StringVar(&o.path, "path", "", "only reconcilers of this `FOLDER` and below")
	flags.StringVar(&o.commit, "commit", "", "the full commit `ID` (required)")
	for _, field := range schema.PolicyFields() {
		name := flagOf(field)
		o.policy[field] = flags.String(name, "", policyFlags[field].usage)
		if values := policyFlags[field].values; values != nil {
			complete(cmd, name, values...)
		}
	}
	flags.DurationVar(&o.timeout, "timeout", 15*time.Minute, "how long to wait at most, a `DURATION`")
	flags.BoolVar(&o.noWait, "no-wait", false, "ask once and do not wait")
	return cmd
}

func flagOf(field string) string { return strings.ReplaceAll(field, "_", "-") }

// question checks the flags and makes the question of them.
func (o gateOptions) question(cmd *cobra.Command) (hubclient.Question, error) {
	q := hubclient.Question{Repo: o.repo, Ref: o.ref, Path: o.path, Commit: strings.TrimSpace(o.commit), Policy: map[string]string{}}
	changed := cmd.Flags().Changed
	switch {
	case o.repo == "":
		return q, usagef("--repo is missing; give the URL of the GitOps repository")
	case q.Commit == "":
		return q, usagef("--commit is missing; give the full id, as git rev-parse HEAD prints it")
	case !schema.IsCommit(q.Commit):
		return q, usagef("--commit %q is no full commit id of 40 or 64 hex digits; git rev-parse %q prints it", q.Commit, q.Commit)
	case o.ref == "" && changed("ref"):
		// An unset variable of a pipeline must not ask about another branch.
		return q, usagef("--ref is empty; name the branch, or leave the flag out for the default branch")
	case o.path == "" && changed("path"):
		return q, usagef("--path is empty; name the folder, or leave the flag out for all")
	case o.timeout <= 0:
		return q, usagef("--timeout is %s; give a time above zero, as 15m", o.timeout)
	}
	policy := schema.DefaultPolicy()
	for _, field := range schema.PolicyFields() {
		if !changed(flagOf(field)) {
			continue
		}
		value := *o.policy[field]
		if value == "" {
			return q, usagef("--%s is empty; give a value, or leave the flag out", flagOf(field))
		}
		if err := policy.Set(field, value); err != nil {
			return q, usagef("--%s: %w", flagOf(field), err)
		}
		q.Policy[field] = value
	}
	_, err := schema.NewEndpoint(o.repo, o.ref, o.path)
	switch {
	case errors.Is(err, schema.ErrInvalidRepo):
		return q, usagef("--repo: %w", err)
	case errors.Is(err, schema.ErrInvalidRef):
		return q, usagef("--ref: %w", err)
	case err != nil:
		return q, usagef("--path: %w", err)
	}
	return q, nil
}

// gate asks until the question is answered or the time is over, prints the
// verdict and returns the error that carries the exit code.
func (a *app) gate(ctx context.Context, q hubclient.Question, o gateOptions) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()

	var last *schema.Verdict
	var failure error
	if o.noWait {
		last, failure = client.Compliance(timed, q, 0)
	} else {
		p := a.newProgress(client.URL(), o.timeout)
		last, failure = p.follow(timed, client, q)
	}
	return a.conclude(last, failure, o, ctx.Err() != nil)
}

// gateCode is the one place that decides how a gate ends: the last verdict that
// was read, if any, and the error that ended the asking, if any.
func gateCode(last *schema.Verdict, failure error) int {
	switch hubclient.Status(failure) {
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitNoAnswer
	case http.StatusBadRequest:
		return exitUsage
	}
	switch {
	case last == nil:
		return exitNoAnswer
	case last.State == schema.Passed && failure == nil:
		return exitDone
	case last.State == schema.Failed && failure == nil:
		return exitFailed
	}
	return exitWaiting
}

// conclude prints the last verdict and returns the error of the exit code.
// Interrupted says that a person or a pipeline ended the gate.
func (a *app) conclude(last *schema.Verdict, failure error, o gateOptions, interrupted bool) error {
	code := gateCode(last, failure)
	if last != nil {
		err := a.print(last, func(w io.Writer) error {
			return writeVerdict(w, last, a.styleOf(a.streams.OutTerminal), a.tableWidth())
		})
		if err != nil && code == exitDone {
			return err
		}
	}
	switch {
	case code == exitDone:
		return nil
	case code == exitFailed:
		return &exitError{code: code}
	case interrupted:
		return &exitError{code: code, err: errors.New("interrupted before there was a final verdict")}
	case code == exitWaiting && failure != nil:
		return &exitError{code: code, err: fmt.Errorf("still waiting when the hub was lost: %w", failure)}
	case code == exitWaiting && o.noWait:
		return &exitError{code: code, err: errors.New("still waiting")}
	case code == exitWaiting:
		return &exitError{code: code, err: fmt.Errorf("still waiting when the time was over (--timeout %s)", schema.Duration(o.timeout))}
	case failure == nil:
		return &exitError{code: code, err: fmt.Errorf("the hub %s did not answer (--timeout %s)", a.global.hub, schema.Duration(o.timeout))}
	}
	return &exitError{code: code, err: failure}
}

// tableWidth returns the width to which tables on the standard output are cut,
// or zero.
func (a *app) tableWidth() int {
	if !a.streams.OutTerminal || a.streams.Width == nil {
		return 0
	}
	return a.streams.Width()
}

package cli

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

func (a *app) tokensCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tokens",
		Short: "Create, list and revoke access tokens",
		Example: `  landfall tokens create --role agent --cluster drone-07 > token
  landfall tokens list
  landfall tokens revoke 7f3a9c`,
		Args: cobra.NoArgs,
		RunE: needsCommand,
	}
	cmd.AddCommand(a.tokensCreateCommand(), a.tokensListCommand(), a.tokensRevokeCommand())
	return cmd
}

func (a *app) tokensCreateCommand() *cobra.Command {
	var r schema.TokenRequest
	var role string
	cmd := &cobra.Command{
		Use:   "create --role ROLE [--cluster NAME] [--name TEXT]",
		Short: "Create a token and print its secret",
		Long: `Create a token. Its secret is printed alone on the standard output, once: the
hub keeps only a hash of it.`,
		Example: `  landfall tokens create --role pipeline --name "app pipelines" > token
  landfall tokens create --role agent --cluster drone-07 > token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.Role = schema.Role(role)
			switch {
			case role == "":
				return usagef("--role is missing; give %s", orList(schema.Roles()))
			case !r.Role.Valid():
				return usagef("--role is %s, not %q", orList(schema.Roles()), role)
			case r.Cluster != "" && r.Role != schema.RoleAgent:
				return usagef("--cluster goes with --role agent only")
			}
			if r.Cluster != "" {
				if err := schema.ValidateClusterName(r.Cluster); err != nil {
					return usagef("--cluster: %w", err)
				}
			}
			client, err := a.client()
			if err != nil {
				return err
			}
			t, err := client.CreateToken(cmd.Context(), r)
			if err != nil {
				return fromHub(err)
			}
			err = a.print(t, func(w io.Writer) error {
				_, err := io.WriteString(w, t.Secret+"\n")
				return err
			})
			if err != nil {
				return fmt.Errorf("token %s was made and could not be handed over; revoke it: %w", t.ID, err)
			}
			fmt.Fprintf(a.streams.Err, "created token %s with role %s; its secret is shown this once\n", printable(t.ID), printable(string(t.Role)))
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&role, "role", "", "what the bearer may do: "+orList(schema.Roles())+" (required)")
	flags.StringVar(&r.Cluster, "cluster", "", "the one cluster that an agent's token may write")
	flags.StringVar(&r.Name, "name", "", "what the token is for, in your words")
	complete(cmd, "role", names(schema.Roles())...)
	return cmd
}

func (a *app) tokensListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the tokens, without their secrets",
		Example: "  landfall tokens list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(a, listing[schema.Token]{
				ask: func(c *hubclient.Client) iter.Seq2[schema.Token, error] {
					return withoutSecrets(c.Tokens(cmd.Context(), schema.MaxPage))
				},
				order: func(x, y schema.Token) int {
					return cmp.Or(x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID))
				},
				table: func(all []schema.Token) *table {
					t := &table{header: []string{"ID", "ROLE", "CLUSTER", "CREATED", "NAME"}}
					for _, token := range all {
						t.add(token.ID, string(token.Role), token.Cluster, age(a.now(), token.CreatedAt), token.Name)
					}
					return t
				},
			})
		},
	}
}

// withoutSecrets keeps a list from showing one, whatever the hub sends.
func withoutSecrets(tokens iter.Seq2[schema.Token, error]) iter.Seq2[schema.Token, error] {
	return func(yield func(schema.Token, error) bool) {
		for t, err := range tokens {
			t.Secret = ""
			if !yield(t, err) {
				return
			}
		}
	}
}

func (a *app) tokensRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke a token",
		Example: "  landfall tokens revoke 7f3a9c",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) != 1 || strings.Trim(args[0], ".") == "":
				return usagef("name one token by its id; landfall tokens list lists them")
			case strings.HasPrefix(args[0], "lf_") && strings.Count(args[0], "_") > 1:
				// It may be the whole secret, which belongs in no URL.
				return usagef("that is a token, not its id; landfall tokens list lists the ids")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			if err := client.RevokeToken(cmd.Context(), args[0]); err != nil {
				return fromHub(err)
			}
			fmt.Fprintf(a.streams.Err, "token %s is revoked\n", printable(args[0]))
			return nil
		},
	}
}
